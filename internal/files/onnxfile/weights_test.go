package onnxfile_test

import (
	"bytes"
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

func TestWeights(t *testing.T) {
	data := weightsModel()
	got, err := onnxfile.Weights(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	assert.Equal(t, map[string]onnxfile.Weight{
		"wide":  {Shape: []int64{1, 2}, Data: []float32{1, 2}},
		"half":  {Shape: []int64{3}, Data: []float32{1, -2, 1.0 / (1 << 24)}},
		"inner": {Shape: []int64{2}, Data: []float32{3, 4}},
	}, got)
}

func FuzzWeights(f *testing.F) {
	data := weightsModel()
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := onnxfile.Weights(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			require.ErrorIs(t, err, onnxfile.ErrInvalid)
		}
		for name, w := range got {
			n, ok := onnxfile.Elements(w.Shape)
			require.True(t, ok && n == int64(len(w.Data)), name)
		}
	})
}
