package onnxfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests write their own protobuf, field by field.

func num(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func msg(field int, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	out := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3|2), uint64(len(body)))
	return append(out, body...)
}

func text(field int, s string) []byte { return msg(field, []byte(s)) }

// tensorValue is a ValueInfoProto; a dimension below 0 is written as a name.
func tensorValue(field int, name string, typ Type, dims ...int64) []byte {
	var shape []byte
	for _, d := range dims {
		if d < 0 {
			shape = append(shape, msg(1, text(2, "N"))...)
		} else {
			shape = append(shape, msg(1, num(1, uint64(d)))...)
		}
	}
	return msg(field, text(1, name), msg(2, msg(1, num(1, uint64(typ)), msg(2, shape))))
}

func sample() []byte {
	external := msg(5, text(8, "weights"), msg(13, text(1, "location"), text(2, "encoder.weights")), msg(13, text(1, "offset"), text(2, "0")))
	inside := msg(5, text(8, "inner"), msg(13, text(1, "location"), text(2, "inner.data")))
	node := msg(1, text(4, "If"), msg(5, text(1, "then_branch"), msg(6, inside, tensorValue(12, "not mine", Float32, 1))))
	return bytes.Join([][]byte{
		num(1, 3),
		msg(8, text(1, ""), num(2, 17)),
		msg(8, text(1, "ai.onnx.ml"), num(2, 3)),
		msg(14, text(1, "model_type"), text(2, "zipformer2_ctc")),
		msg(7,
			node,
			external,
			msg(5, text(8, "bias"), msg(9, make([]byte, 100_000))),
			tensorValue(11, "x", Float32, -1, -1, 80),
			tensorValue(11, "x_lens", Int64, -1),
			tensorValue(11, "bias", Float32, 25_000),
			tensorValue(11, "sr", Int64),
			msg(11, text(1, "loose"), msg(2, msg(1, num(1, 1)))),
			tensorValue(12, "log_probs", Float32, -1, -1, 500),
		),
	}, nil)
}

func TestReadTellsWhatTheFileSays(t *testing.T) {
	h, err := Parse(sample())
	require.NoError(t, err)
	assert.Equal(t, int64(3), h.IRVersion)
	assert.Equal(t, int64(17), h.Opset)
	assert.Equal(t, map[string]string{"model_type": "zipformer2_ctc"}, h.Metadata)
	assert.Equal(t, []string{"inner.data", "encoder.weights"}, h.External)
	assert.Equal(t, 1, h.Nodes)
	assert.Equal(t, []Value{
		{"x", Float32, []int64{-1, -1, 80}},
		{"x_lens", Int64, []int64{-1}},
		{"sr", Int64, []int64{}},
		{"loose", Float32, nil},
	}, h.Inputs, "the initializer among the inputs is left out")
	assert.Equal(t, []Value{{"log_probs", Float32, []int64{-1, -1, 500}}}, h.Outputs)
	assert.Equal(t, "inputs x float32[?,?,80], x_lens int64[?], sr int64[], loose float32[…]; outputs log_probs float32[?,?,500]", h.Signature())
	out, ok := h.Output("probs", "log_probs")
	require.True(t, ok)
	assert.Equal(t, int64(500), out.Last())
	loose, _ := h.Input("loose")
	assert.Equal(t, -1, loose.Rank())
}

func TestEveryCutIsRefusedOrHarmless(t *testing.T) {
	whole := sample()
	for n := range len(whole) {
		if n > 400 && n < len(whole)-200 && n%997 != 0 {
			continue // inside the 100 kB of weights
		}
		h, err := Parse(whole[:n])
		require.ErrorIs(t, err, ErrNotONNX, "cut at %d", n)
		assert.Nil(t, h)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	deep := tensorValue(12, "y", Float32, 1)
	for range 40 {
		deep = msg(1, msg(5, msg(6, deep)))
	}
	cases := map[string]struct {
		data []byte
		says string
	}{
		"empty":            {nil, "no graph"},
		"text":             {[]byte("<html><body>not found</body></html>"), ""},
		"length over end":  {binary.AppendUvarint(binary.AppendUvarint(nil, 7<<3|2), 1<<62), "over the end"},
		"length wraps":     {binary.AppendUvarint(binary.AppendUvarint(nil, 7<<3|2), 1<<64-1), "over the end"},
		"endless number":   {bytes.Repeat([]byte{0xff}, 64), "ten bytes"},
		"no inputs":        {msg(7, tensorValue(12, "y", Float32, 1)), "0 inputs"},
		"too many inputs":  {msg(7, bytes.Repeat(tensorValue(11, "x", Float32, 1), maxValues+1)), "more than"},
		"too many dims":    {msg(7, tensorValue(11, "x", Float32, make([]int64, maxDims+1)...)), "dimensions"},
		"huge name":        {msg(7, tensorValue(11, strings.Repeat("n", maxName+1), Float32, 1)), "at most"},
		"deep graphs":      {msg(7, deep), "deeper"},
		"graph a number":   {num(7, 5), "message expected"},
		"metadata too big": {msg(14, text(1, "k"), text(2, strings.Repeat("v", maxMetaText+1))), "at most"},
		"group wire type":  {[]byte{7<<3 | 3}, "wire type"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.data)
			require.ErrorIs(t, err, ErrNotONNX)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

// counted counts the bytes read.
type counted struct {
	*bytes.Reader
	read int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.read += n
	return n, err
}

func TestWeightsAreSteppedOver(t *testing.T) {
	data := msg(7, msg(5, text(8, "w"), msg(9, make([]byte, 8<<20))), tensorValue(11, "x", Float32, 1), tensorValue(12, "y", Float32, 1))
	r := &counted{Reader: bytes.NewReader(data)}
	_, err := Read(r, int64(len(data)))
	require.NoError(t, err)
	assert.Less(t, r.read, 64<<10)
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	require.NoError(t, os.WriteFile(path, sample(), 0o600))
	h, err := Open(path)
	require.NoError(t, err)
	assert.Len(t, h.Inputs, 4)
	_, err = Open(filepath.Dir(path))
	require.ErrorIs(t, err, ErrNotONNX)
	_, err = Open(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParse(f *testing.F) {
	f.Add(sample()[:300])
	f.Add(msg(7, tensorValue(11, "x", Float32, 1), tensorValue(12, "y", Float32, -1)))
	f.Add([]byte{7<<3 | 2, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrNotONNX) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if len(h.Inputs) == 0 || len(h.Outputs) == 0 {
			t.Fatal("a header without inputs or outputs")
		}
		_ = h.Signature()
	})
}
