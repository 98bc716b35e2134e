package onnxfile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

func weightsModel() []byte {
	branch := onnxfile.NewGraph()
	branch.Node("Constant", nil, []string{"inner"}, onnxfile.AttrTensor("value", onnxfile.Floats([]int64{2}, 3, 4)))
	branch.Output("inner", onnxfile.Float32, 2)
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Bool)
	g.Constant("wide", onnxfile.Floats([]int64{1, 2}, 1, 2))
	g.Constant("half", onnxfile.RawTensor(onnxfile.Float16, []int64{3}, []byte{0, 0x3c, 0, 0xc0, 1, 0}))
	g.Constant("whole", onnxfile.Ints([]int64{1}, 7))
	g.Constant("far", onnxfile.ExternalTensor(onnxfile.Float32, []int64{2}, "weights.bin", 8))
	g.Node("If", []string{"x"}, []string{"y"}, onnxfile.AttrGraph("then_branch", branch), onnxfile.AttrGraph("else_branch", branch))
	g.Output("y", onnxfile.Float32, 2)
	return g.Bytes()
}

func TestReadParts(t *testing.T) {
	parts, err := onnxfile.ReadParts(weightsModel())
	require.NoError(t, err)
	type weight struct {
		typ   onnxfile.Type
		shape []int64
		data  []float32
	}
	got := map[string]weight{}
	for name, w := range parts.Tensors {
		got[name] = weight{w.Type(), w.Shape(), w.Floats()}
	}
	assert.Equal(t, map[string]weight{
		"wide":  {onnxfile.Float32, []int64{1, 2}, []float32{1, 2}},
		"half":  {onnxfile.Float16, []int64{3}, []float32{1, -2, 1.0 / (1 << 24)}},
		"whole": {onnxfile.Int64, []int64{1}, nil},
		"inner": {onnxfile.Float32, []int64{2}, []float32{3, 4}},
	}, got)
}

func FuzzReadParts(f *testing.F) {
	data := weightsModel()
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("\x00\x00\x00\x00ORTM and so on"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, err := onnxfile.ReadParts(data)
		if err != nil {
			require.ErrorIs(t, err, onnxfile.ErrInvalid)
			return
		}
		for name, w := range parts.Tensors {
			n, ok := onnxfile.Elements(w.Shape())
			require.True(t, ok && n*w.Type().Size() == int64(len(w.Raw())), name)
		}
	})
}
