package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench/shape"
	"github.com/otograph/otograph/internal/ggmlfile"
)

// TestFromQ6K uses the demonstration recognizer, whose matrices are q6_K.
func TestFromQ6K(t *testing.T) {
	block := make([]byte, 210)
	for i := range 208 {
		block[i] = byte(37 * i)
	}
	block[208], block[209] = 0, 0x3c // 1
	got := fromQ6K(nil, block)
	require.Len(t, got, 256)
	six := func(low, high byte) float32 { return float32(int(low|high<<4) - 32) }
	assert.Equal(t, float32(int8(block[192]))*six(block[0]&15, block[128]&3), got[0])
	assert.Equal(t, float32(int8(block[193]))*six(block[16]&15, block[144]&3), got[16])
	assert.Equal(t, float32(int8(block[194]))*six(block[32]&15, block[128]>>2&3), got[32])
	assert.Equal(t, float32(int8(block[196]))*six(block[0]>>4, block[128]>>4&3), got[64])
	assert.Equal(t, float32(int8(block[207]))*six(block[127]>>4, block[191]>>6), got[255])
}

// TestQuantized checks that a quantized file is valid, smaller, and has the
// same tensors.
func TestQuantized(t *testing.T) {
	size, err := shape.Find("micro")
	require.NoError(t, err)
	var model bytes.Buffer
	require.NoError(t, shape.WriteModel(&model, size, shape.Options{}))
	before, err := ggmlfile.Check(bytes.NewReader(model.Bytes()), int64(model.Len()), nil)
	require.NoError(t, err)
	in, out := filepath.Join(t.TempDir(), "in.bin"), filepath.Join(t.TempDir(), "out.bin")
	require.NoError(t, os.WriteFile(in, model.Bytes(), 0o600))
	last := int64(model.Len())
	for _, c := range []struct {
		typ  shape.Type
		file int32
	}{{shape.Q8_0, 2007}, {shape.Q5_1, 2009}, {shape.Q5_0, 2008}} {
		require.NoError(t, run(c.typ, []string{in, out}))
		after, err := ggmlfile.CheckFile(out, nil)
		require.NoError(t, err, c.typ)
		assert.Equal(t, before.Tensors, after.Tensors, c.typ)
		assert.Equal(t, c.file, after.Type, c.typ)
		info, err := os.Stat(out)
		require.NoError(t, err)
		assert.Less(t, info.Size(), last, c.typ)
		last = info.Size()
	}
	require.ErrorContains(t, run(shape.Q8_0, []string{out, in}), "or q6_K, found type 6")
	require.ErrorContains(t, run("q4", []string{in, out}), `found "q4"`)
	require.ErrorContains(t, run(shape.Q8_0, nil), "expected [MODEL] OUTPUT")
}
