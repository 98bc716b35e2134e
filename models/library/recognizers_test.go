package library

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// TestRecognizers: all recognizers of a folder are found, listed or not, each
// once and with a unique name; other models and broken files are skipped.
func TestRecognizers(t *testing.T) {
	none, err := Recognizers(filepath.Join(t.TempDir(), "missing"))
	require.NoError(t, err)
	assert.Empty(t, none)
	dir := t.TempDir()
	whisper, err := demo.Models().Need(models.RoleStandard)
	require.NoError(t, err)
	data, err := whisper.Main().Bytes()
	require.NoError(t, err)
	for _, name := range []string{"ggml-one.bin", "two/ggml-model.bin", "more/ggml-three.bin", "more/ggml-four.bin"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.bin"), []byte("no model"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"roles": {"standard": {"name": "house", "file": "ggml-one.bin"}}}`), 0o600))
	found, err := Recognizers(dir)
	require.NoError(t, err)
	var names []string
	for _, m := range found {
		names = append(names, m.Name)
		assert.Equal(t, models.RoleStandard, m.Role)
	}
	assert.Equal(t, []string{"house", "ggml-four", "ggml-three", "two"}, names)
}
