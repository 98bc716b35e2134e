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

// The tests write protobuf themselves, field by field.

func num(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func msg(field int, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	out := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3|2), uint64(len(body)))
	return append(out, body...)
}

func text(field int, s string) []byte { return msg(field, []byte(s)) }

// tensorValue returns a ValueInfoProto; a dimension below 0 is written as a
// name.
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

// elsewhere returns a TensorProto [2] of float32 whose data is in another file.
func elsewhere(field int, name, location string) []byte {
	return msg(field, num(1, 2), num(2, uint64(Float32)), text(8, name), num(14, 1),
		msg(13, text(1, "location"), text(2, location)), msg(13, text(1, "offset"), text(2, "8")))
}

func parse(data []byte) (*Header, error) { return Read(bytes.NewReader(data), int64(len(data))) }

func sample() []byte {
	external := elsewhere(5, "weights", "encoder.weights")
	inside := elsewhere(5, "inner", "inner.data")
	node := msg(1, text(4, "If"), msg(5, text(1, "then_branch"), msg(6, inside, tensorValue(12, "not mine", Float32, 1))))
	return bytes.Join([][]byte{
		num(1, 3),
		msg(8, text(1, ""), num(2, 17)),
		msg(8, text(1, "ai.onnx.ml"), num(2, 3)),
		msg(14, text(1, "model_type"), text(2, "zipformer2_ctc")),
		msg(7,
			node,
			external,
			msg(5, num(1, 25_000), num(2, uint64(Float32)), text(8, "bias"), msg(9, make([]byte, 100_000))),
			msg(15, msg(1, num(1, 1), num(2, uint64(Float32)), text(8, "sparse"), msg(9, make([]byte, 4))),
				msg(2, num(1, 1), num(2, uint64(Int64)), msg(9, make([]byte, 8)))),
			tensorValue(11, "x", Float32, -1, -1, 80),
			tensorValue(11, "x_lens", Int64, -1),
			tensorValue(11, "bias", Float32, 25_000),
			tensorValue(11, "sparse", Float32, 9),
			tensorValue(11, "sr", Int64),
			msg(11, text(1, "loose"), msg(2, msg(1, num(1, 1)))),
			tensorValue(12, "log_probs", Float32, -1, -1, 500),
		),
	}, nil)
}

func TestReadReturnsTheHeader(t *testing.T) {
	h, err := parse(sample())
	require.NoError(t, err)
	assert.Equal(t, int64(3), h.IRVersion)
	assert.Equal(t, map[string]int64{"": 17, "ai.onnx.ml": 3}, h.Opsets)
	assert.Equal(t, map[string]string{"model_type": "zipformer2_ctc"}, h.Metadata)
	assert.Equal(t, []string{"inner.data", "encoder.weights"}, h.External)
	assert.Equal(t, []Value{
		{"x", Float32, []int64{-1, -1, 80}},
		{"x_lens", Int64, []int64{-1}},
		{"sr", Int64, []int64{}},
		{"loose", Float32, nil},
	}, h.Inputs, "the initializers among the inputs are left out")
	assert.Equal(t, []Value{{"log_probs", Float32, []int64{-1, -1, 500}}}, h.Outputs)
	assert.Equal(t, "inputs x float32[?,?,80], x_lens int64[?], sr int64[], loose float32[…]; outputs log_probs float32[?,?,500]", Signature(h.Inputs, h.Outputs))
	out, ok := Find(h.Outputs, "log_probs")
	require.True(t, ok)
	assert.Equal(t, int64(500), out.Last())
	loose, _ := Find(h.Inputs, "loose")
	assert.Equal(t, -1, loose.Rank())
}

func TestEveryCutIsRefusedOrHarmless(t *testing.T) {
	whole := sample()
	for n := range len(whole) {
		if n > 400 && n < len(whole)-200 && n%997 != 0 {
			continue // inside the 100 kB of weights
		}
		h, err := parse(whole[:n])
		require.ErrorIs(t, err, ErrInvalid, "cut at %d", n)
		assert.Nil(t, h)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	output := tensorValue(12, "y", Float32, 1)
	model := func(graph ...[]byte) []byte { // a valid model around the parts of a graph
		return bytes.Join([][]byte{num(1, 8), msg(8, num(2, 17)), msg(7, append(graph, output)...)}, nil)
	}
	deep := tensorValue(12, "inside", Float32, 1)
	for range 40 {
		deep = msg(1, msg(5, msg(6, deep)))
	}
	tooShort := [][]byte{num(1, 3), num(2, uint64(Float32)), text(8, "w"), msg(9, make([]byte, 8))}
	cases := map[string]struct {
		data []byte
		says string
	}{
		"empty":              {nil, "empty"},
		"text":               {[]byte("<html><body>not found</body></html>"), ""},
		"ORT format":         {[]byte("....ORTM"), "truncated"},
		"length over end":    {binary.AppendUvarint(binary.AppendUvarint(nil, 7<<3|2), 1<<62), "in the middle"},
		"length wraps":       {binary.AppendUvarint(binary.AppendUvarint(nil, 7<<3|2), 1<<64-1), "in the middle"},
		"endless number":     {bytes.Repeat([]byte{0xff}, 64), "overflows"},
		"no outputs":         {bytes.Join([][]byte{num(1, 8), msg(8, num(2, 17)), msg(7, tensorValue(11, "x", Float32, 1))}, nil), "no output"},
		"no operator set":    {append(num(1, 8), msg(7, output)...), "operator set"},
		"no format version":  {append(msg(8, num(2, 17)), msg(7, output)...), "format version 0"},
		"too many inputs":    {model(bytes.Repeat(tensorValue(11, "x", Float32, 1), maxPorts+1)), "more than"},
		"too many dims":      {model(tensorValue(11, "x", Float32, make([]int64, maxRank+1)...)), "dimensions"},
		"huge name":          {model(tensorValue(11, strings.Repeat("n", maxName+1), Float32, 1)), "at most"},
		"deep graphs":        {model(deep), "deeper"},
		"graph a number":     {num(7, 5), "no message"},
		"metadata too big":   {msg(14, text(1, "k"), text(2, strings.Repeat("v", maxMetaBytes+1))), "more than"},
		"group wire type":    {[]byte{7<<3 | 3}, "wire type"},
		"short weights":      {model(msg(5, tooShort...)), "needs 12 bytes"},
		"short constant":     {model(msg(1, msg(5, msg(5, tooShort...)))), "needs 12 bytes"},
		"short, in a branch": {model(msg(1, msg(5, msg(6, msg(5, tooShort...))))), "needs 12 bytes"},
		"short, sparse":      {model(msg(15, msg(1, tooShort...))), "needs 12 bytes"},
		"sparse constant":    {model(msg(1, msg(5, msg(22, msg(2, tooShort...))))), "needs 12 bytes"},
		"short, in function": {append(model(), msg(25, msg(7, msg(5, msg(5, tooShort...))))...), "needs 12 bytes"},
		"short, by default":  {append(model(), msg(25, msg(11, msg(5, tooShort...)))...), "needs 12 bytes"},
		"external length":    {model(msg(5, num(14, 1), msg(13, text(1, "length"), text(2, "-1")))), "is not a number of bytes"},
	}
	_, err := parse(model())
	require.NoError(t, err)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parse(c.data)
			require.ErrorIs(t, err, ErrInvalid)
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

func TestWeightsAreSkipped(t *testing.T) {
	data := bytes.Join([][]byte{
		num(1, 8), msg(8, num(2, 17)),
		msg(7, msg(5, text(8, "w"), msg(9, make([]byte, 8<<20))), tensorValue(11, "x", Float32, 1), tensorValue(12, "y", Float32, 1)),
	}, nil)
	r := &counted{Reader: bytes.NewReader(data)}
	_, err := Read(r, int64(len(data)))
	require.NoError(t, err)
	assert.Less(t, r.read, 64<<10)
}

// broken fails to read.
type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, os.ErrPermission }

func TestReadErrorsAreNotErrInvalid(t *testing.T) {
	_, err := Read(broken{}, 1000)
	require.ErrorIs(t, err, os.ErrPermission)
	assert.NotErrorIs(t, err, ErrInvalid)
}

func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	h, err := parse(sample())
	require.NoError(t, err)
	require.ErrorIs(t, h.CheckExternal(dir), os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "encoder.weights"), make([]byte, 16), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inner.data"), make([]byte, 15), 0o600))
	err = h.CheckExternal(dir)
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "inner.data has 15 bytes, 8 at 8 are named")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inner.data"), make([]byte, 16), 0o600))
	require.NoError(t, h.CheckExternal(dir))

	for _, location := range []string{"", "../encoder.weights", "/etc/passwd", "a\x00b"} {
		h, err := parse(bytes.Join([][]byte{num(1, 8), msg(8, num(2, 17)), msg(7, elsewhere(5, "w", location), tensorValue(12, "y", Float32, 1))}, nil))
		require.NoError(t, err)
		err = h.CheckExternal(dir)
		require.ErrorIs(t, err, ErrInvalid, "%q", location)
		assert.ErrorContains(t, err, "own folder")
	}
}

func TestLongListsAreRefused(t *testing.T) {
	assert.Equal(t, "none", FormatValues(nil))
	many := make([]Value, 30)
	assert.True(t, strings.HasSuffix(FormatValues(many), "and 18 more"))
}

func FuzzRead(f *testing.F) {
	f.Add(sample()[:300])
	f.Add(sample())
	f.Add(NewGraph().Input("x", Float32, "N", 2).
		Constant("w", ExternalTensor(Float32, []int64{2, 2}, "w.bin", 16)).
		Node("MatMul", []string{"x", "w"}, []string{"y"}).Output("y", Float32, "N", 2).
		Meta("model_type", "linear").Bytes())
	f.Add([]byte("not a model"))
	f.Add([]byte{7<<3 | 2, 0xff, 0xff, 0x7f})
	f.Add([]byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parse(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || h != nil {
				t.Fatalf("another error, or a header in addition: %v", err)
			}
			return
		}
		if len(h.Outputs) == 0 || len(h.Inputs) > maxPorts || len(h.Outputs) > maxPorts || len(h.Metadata) > maxMetaKeys {
			t.Errorf("accepted %d inputs, %d outputs, %d keys", len(h.Inputs), len(h.Outputs), len(h.Metadata))
		}
		for _, v := range append(h.Inputs, h.Outputs...) {
			if v.Name == "" || len(v.Shape) > maxRank {
				t.Errorf("accepted %v", v)
			}
		}
		_ = Signature(h.Inputs, h.Outputs)
	})
}
