package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/test/modeltest"
)

// TestQuantized checks that a quantized file is valid, smaller, and has the
// same tensors.
func TestQuantized(t *testing.T) {
	size, err := modeltest.FindSize("micro")
	require.NoError(t, err)
	var model bytes.Buffer
	require.NoError(t, modeltest.WriteModel(&model, size, modeltest.ShapeOptions{}))
	before, err := ggmlfile.Check(bytes.NewReader(model.Bytes()), int64(model.Len()), false)
	require.NoError(t, err)
	in, out := filepath.Join(t.TempDir(), "in.bin"), filepath.Join(t.TempDir(), "out.bin")
	require.NoError(t, os.WriteFile(in, model.Bytes(), 0o600))
	last := model.Len()
	for _, c := range []struct {
		typ  modeltest.Type
		file int32
	}{{modeltest.Q8_0, 2007}, {modeltest.Q5_1, 2009}, {modeltest.Q5_0, 2008}} {
		require.NoError(t, run(c.typ, []string{in, out}))
		data, err := os.ReadFile(out)
		require.NoError(t, err, c.typ)
		after, err := ggmlfile.Check(bytes.NewReader(data), int64(len(data)), false)
		require.NoError(t, err, c.typ)
		assert.Len(t, after.Index, len(before.Index), c.typ)
		assert.Equal(t, c.file, after.Type, c.typ)
		assert.Less(t, len(data), last, c.typ)
		last = len(data)
	}
	require.ErrorContains(t, run(modeltest.Q8_0, []string{out, in}), "or q6_K, found type 6")
	require.ErrorContains(t, run("q4", []string{in, out}), `found "q4"`)
	require.ErrorContains(t, run(modeltest.Q8_0, nil), "expected [MODEL] OUTPUT")
}
