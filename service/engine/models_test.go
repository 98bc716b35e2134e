package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/native"
)

// TestCheckModels: a missing library and a changed file are failures of the
// machine, for which no task is to blame.
func TestCheckModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vad.onnx")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	e := &Engine{files: map[string]int64{path: 3}}
	t.Run("without a library", func(t *testing.T) {
		t.Setenv(native.EnvONNXRuntime, filepath.Join(t.TempDir(), "none.so"))
		assert.ErrorIs(t, e.CheckModels(t.Context()), native.ErrMissing)
	})
	require.NoError(t, e.CheckModels(t.Context()))
	require.NoError(t, os.Truncate(path, 2))
	assert.ErrorContains(t, e.CheckModels(t.Context()), "expected 3 bytes, found 2")
}
