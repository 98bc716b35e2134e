package ort

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// linear returns y = x·w with x [N,2] and w [2,2], and some metadata.
func linear() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 2)
	g.Constant("w", onnxfile.Floats([]int64{2, 2}, 1, 2, 3, 4))
	g.Node("MatMul", []string{"x", "w"}, []string{"y"})
	g.Output("y", onnxfile.Float32, "N", 2)
	return g.Meta("model_type", "linear").Meta("vocab_size", "7")
}

func TestInspect(t *testing.T) {
	g, err := Inspect(Source{Data: linear().Bytes(), Name: "linear.onnx"})
	require.NoError(t, err)
	assert.Equal(t, []Info{{Name: "x", Type: Float32, Shape: []int64{-1, 2}}}, g.Inputs)
	assert.Equal(t, []Info{{Name: "y", Type: Float32, Shape: []int64{-1, 2}}}, g.Outputs)
	assert.Equal(t, map[string]string{"model_type": "linear", "vocab_size": "7"}, g.Metadata)
	assert.Equal(t, map[string]int64{"": onnxfile.DefaultOpset}, g.Opsets)
	assert.EqualValues(t, onnxfile.DefaultIR, g.IRVersion)
	assert.Empty(t, g.External)
	assert.Equal(t, "inputs x float32[?,2]; outputs y float32[?,2]", g.IOList())

	ports := onnxfile.NewGraph()
	ports.Input("scalar", onnxfile.Int64).Input("free", onnxfile.Int32, nil, "T", 0, 80)
	ports.OutputWithoutShape("y", onnxfile.Bool)
	g, err = Inspect(Source{Data: ports.Bytes()})
	require.NoError(t, err)
	assert.Equal(t, []Info{{Name: "scalar", Type: Int64, Shape: []int64{}}, {Name: "free", Type: Int32, Shape: []int64{-1, -1, -1, 80}}}, g.Inputs)
	assert.Equal(t, []Info{{Name: "y", Type: onnxfile.Bool}}, g.Outputs)
	assert.Equal(t, 0, g.Inputs[0].Rank())
	assert.Equal(t, -1, g.Outputs[0].Rank())
	assert.Equal(t, "y bool[…]", g.Outputs[0].String())
}

func TestWeightsAreNotInputs(t *testing.T) { // the layout of files before format version 4
	g := linear()
	g.IR = 3
	g.Input("w", onnxfile.Float32, 2, 2)
	got, err := Inspect(Source{Data: g.Bytes()})
	require.NoError(t, err)
	assert.Len(t, got.Inputs, 1)
}

func TestInspectFromFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "linear.onnx")
	require.NoError(t, os.WriteFile(name, linear().Bytes(), 0o644))
	g, err := Inspect(Source{Path: name})
	require.NoError(t, err)
	assert.Len(t, g.Inputs, 1)

	_, err = Inspect(Source{Path: filepath.Join(dir, "absent.onnx"), Role: "vad"})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "vad model absent.onnx")
	_, err = Inspect(Source{Path: dir})
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "expected a regular file")
	_, err = Inspect(Source{Role: "vad"})
	require.ErrorIs(t, err, ErrInvalid)
}

// message returns a protobuf field with a length.
func message(num uint64, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.AppendUvarint(nil, num<<3|2)
	b = binary.AppendUvarint(b, uint64(len(body)))
	return append(b, body...)
}

func number(num, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, num<<3), v)
}

func TestHostileModels(t *testing.T) {
	good := linear().Bytes()
	version, opset := number(1, 8), message(8, number(2, 13))
	output := message(12, message(1, []byte("y")))
	tensor := func(parts ...[]byte) []byte {
		return bytes.Join([][]byte{version, opset, message(7, output, message(5, parts...))}, nil)
	}
	nested := message(1)
	for range 60 { // deeply nested: a node with an attribute with a graph with a node …
		nested = message(1, message(5, message(6, nested)))
	}
	many := []byte{}
	for range 1100 {
		many = append(many, output...)
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", []byte{}, "empty"},
		{"text", []byte("This is not a model, but a sentence that somebody wrote."), ""},
		{"zeros", make([]byte, 4096), "field number 0"},
		{"ort format", append([]byte{1, 2, 3, 4}, "ORTM and more"...), "truncated"},
		{"cut off", good[:len(good)/2], "the file ends in the middle"},
		{"no graph", append(version, opset...), "no graph"},
		{"no output", bytes.Join([][]byte{version, opset, message(7)}, nil), "no output"},
		{"no operator set", bytes.Join([][]byte{version, message(7, output)}, nil), "operator set"},
		{"two graphs", append(bytes.Clone(good), message(7, output)...), "more than one graph"},
		{"huge number", append([]byte{8}, bytes.Repeat([]byte{0xff}, 20)...), "overflows"},
		{"length beyond the end", append(bytes.Clone(version), 0x3a, 0xff, 0xff, 0xff, 0xff, 0x7f), "the file ends"},
		{"wire type", append(bytes.Clone(version), 0x0b), "wire type 3"},
		{"negative dimension", tensor(number(1, 1<<63), number(2, 1)), "impossible"},
		{"dimensions overflow", tensor(number(1, 1<<33), number(1, 1<<33), number(2, 1)), "impossible"},
		{"too many dimensions", tensor(bytes.Repeat(number(1, 1), 40), number(2, 1)), "more than 16 dimensions"},
		{"weights too short", tensor(number(1, 1000), number(2, 1), message(9, make([]byte, 10))), "needs 4000 bytes of data, it has 10"},
		{"nested", bytes.Join([][]byte{version, opset, message(7, output, nested)}, nil), "nested deeper"},
		{"same output often", bytes.Join([][]byte{version, opset, message(7, many)}, nil), "more than 1024"},
		{"same output twice", bytes.Join([][]byte{version, opset, message(7, output, output)}, nil), "there twice"},
		{"long name", bytes.Join([][]byte{version, opset, message(7, message(12, message(1, make([]byte, 10000))))}, nil), "at most 4096"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Inspect(Source{Data: tt.data, Name: "bad.onnx", Role: "tagger"})
			require.ErrorIs(t, err, ErrInvalid)
			assert.ErrorContains(t, err, "tagger model bad.onnx")
			assert.ErrorContains(t, err, tt.want)
			_, err = Open(Source{Data: tt.data, Name: "bad.onnx", Role: "tagger"}, Options{})
			assert.ErrorIs(t, err, ErrInvalid, "Open has to refuse it before ONNX Runtime sees it")
		})
	}
}

// withExternal returns y = x·w with w in another file.
func withExternal(location string, length int64) []byte {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 2)
	g.Constant("w", onnxfile.ExternalTensor(onnxfile.Float32, []int64{2, 2}, location, length))
	g.Node("MatMul", []string{"x", "w"}, []string{"y"})
	g.Output("y", onnxfile.Float32, "N", 2)
	return g.Bytes()
}

func TestExternalData(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "model")
	require.NoError(t, os.Mkdir(dir, 0o755))
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, data, 0o644))
		return name
	}
	write("w.bin", make([]byte, 16))
	write("short.bin", make([]byte, 15))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), make([]byte, 16), 0o644))

	g, err := Inspect(Source{Path: write("good.onnx", withExternal("w.bin", 16))})
	require.NoError(t, err)
	assert.Equal(t, []string{"w.bin"}, g.External)

	_, err = Inspect(Source{Data: withExternal("w.bin", 16), Name: "memory.onnx"})
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "open it by its path")

	for location, want := range map[string]string{
		"../secret":                        "own folder",
		filepath.Join(outside, "secret"):   "own folder",
		"sub/../../secret":                 "own folder",
		"":                                 "own folder",
		"short.bin":                        "has 15 bytes",
		strings.Repeat("a/", 10) + "../..": "not a regular file",
	} {
		_, err = Inspect(Source{Path: write("bad.onnx", withExternalAlways(location))})
		if want == "not a regular file" {
			require.Error(t, err, location)
			continue
		}
		require.ErrorIs(t, err, ErrInvalid, location)
		assert.ErrorContains(t, err, want, location)
	}
	_, err = Inspect(Source{Path: write("bad.onnx", withExternal("absent.bin", 16))})
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Inspect(Source{Path: write("bad.onnx", withExternal("w.bin", 12))})
	assert.ErrorContains(t, err, "needs 16 bytes of external data, it names 12")
}

// withExternalAlways declares external data even if the location is empty.
func withExternalAlways(location string) []byte {
	if location != "" {
		return withExternal(location, 16)
	}
	version, opset := number(1, 8), message(8, number(2, 13))
	output := message(12, message(1, []byte("y")))
	return bytes.Join([][]byte{version, opset, message(7, output, message(5, number(1, 1), number(2, 1), number(14, 1)))}, nil)
}

func TestCheck(t *testing.T) {
	g, err := Inspect(Source{Data: linear().Bytes(), Name: "linear.onnx", Role: "embedder"})
	require.NoError(t, err)
	assert.NoError(t, g.Check(Contract{
		Inputs:  []Info{{Name: "x", Type: Float32, Shape: []int64{-1, -1}}},
		Outputs: []Info{{Name: "y"}}, Exact: true,
	}))
	err = g.Check(Contract{
		Inputs:  []Info{{Name: "x", Type: Int64, Shape: []int64{-1, 80, -1}}, {Name: "length", Type: Int64, Shape: []int64{-1}}},
		Outputs: []Info{{Name: "y", Type: Float32, Shape: []int64{-1, 192}}},
	})
	require.ErrorIs(t, err, ErrContract)
	for _, want := range []string{
		"embedder model linear.onnx",
		"expected input x int64[?,80,?], found x float32[?,2]",
		"expected input length int64[?], found none of that name",
		"expected output y float32[?,192], found y float32[?,2]",
		"it has inputs x float32[?,2]; outputs y float32[?,2]",
	} {
		assert.ErrorContains(t, err, want)
	}
	err = g.Check(Contract{Exact: true})
	assert.ErrorContains(t, err, "nothing to feed to input x float32[?,2]")
}
