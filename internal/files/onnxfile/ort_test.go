package onnxfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
)

// branches.ort (branches.py writes it) has an If node; both branches multiply x
// by 8-bit weights, apply Softmax and add 10 or 20.
const branches = "testdata/branches.ort"

func alloc(size int) []byte { return make([]byte, size) }

func TestTranslatedModelRuns(t *testing.T) {
	s, err := ort.Open(ort.Source{Path: branches}, ort.Options{Expose: "/block/Softmax"})
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	assert.Equal(t, "inputs pick bool[1], x float32[?,3]; outputs y float32[?,2], exposed.0 float32[…]", s.Graph().IOList())
	assert.Equal(t, "made_up", s.Graph().Metadata["model_type"])
	for pick, added := range map[bool]float32{true: 10, false: 20} {
		in := map[string]*ort.Tensor{"pick": ort.NewBool([]int64{1}, []bool{pick}), "x": ort.NewFloat32([]int64{1, 3}, []float32{2, 0, 1})}
		out, err := s.Run(context.Background(), in)
		require.NoError(t, err)
		assert.Equal(t, []float32{3.5, 5}, out[1].Float32(), "(2·1 + 5, 2·2 + 6) / 2")
		assert.InDeltaSlice(t, []float32{0.18242551 + added, 0.8175745 + added}, out[0].Float32(), 1e-5)

		y := make([]float32, 2)
		require.NoError(t, s.Into(in, map[string]*ort.Tensor{"y": ort.NewFloat32([]int64{1, 2}, y)}))
		assert.Equal(t, out[0].Float32(), y)
		err = s.Into(in, map[string]*ort.Tensor{"y": ort.NewFloat32([]int64{1, 3}, make([]float32, 3))})
		require.ErrorIs(t, err, ort.ErrContract)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	data, err := os.ReadFile(branches)
	require.NoError(t, err)
	for n := range len(data) - 64 {
		_, err := onnxfile.FromORT(data[:n], alloc)
		require.ErrorIs(t, err, onnxfile.ErrInvalid, n)
		_, err = onnxfile.Read(bytes.NewReader(data[:n]), int64(n))
		require.ErrorIs(t, err, onnxfile.ErrInvalid, n)
		_, err = onnxfile.Read(bytes.NewReader(data[:n]), int64(len(data)))
		require.Error(t, err, "a file that ends early")
	}
}

// TestHeaderOfLargeFile puts bytes between the root and the rest of a file,
// where weights lie, so that the parts of a header lie in several pieces of the
// file.
func TestHeaderOfLargeFile(t *testing.T) {
	data, err := os.ReadFile(branches)
	require.NoError(t, err)
	want, err := onnxfile.Read(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	for _, added := range []int{64 << 10, 1<<20 - 8, 1<<20 - 4} {
		large := append(slices.Clone(data[:8]), make([]byte, added)...)
		large = append(large, data[8:]...)
		binary.LittleEndian.PutUint32(large, binary.LittleEndian.Uint32(data)+uint32(added))
		r := &countingReader{r: bytes.NewReader(large)}
		got, err := onnxfile.Read(r, int64(len(large)))
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Less(t, r.bytes, 256<<10, "of %d bytes", len(large))
	}
}

type countingReader struct {
	r     io.ReaderAt
	bytes int
}

func (c *countingReader) ReadAt(b []byte, at int64) (int, error) {
	c.bytes += len(b)
	return c.r.ReadAt(b, at)
}

func FuzzONNX(f *testing.F) {
	data, err := os.ReadFile(branches)
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte("\x08\x00\x00\x00ORTM\x00\x00\x00\x00"))
	loop := append([]byte("\x08\x00\x00\x00ORTM"), make([]byte, 64)...)
	binary.LittleEndian.PutUint32(loop[8:], 4)
	f.Add(loop)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := onnxfile.Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			require.ErrorIs(t, err, onnxfile.ErrInvalid)
		}
		out, err := onnxfile.FromORT(data, alloc)
		if err != nil {
			require.ErrorIs(t, err, onnxfile.ErrInvalid)
			return
		}
		assert.LessOrEqual(t, len(out), 2*len(data)+1<<20)
	})
}
