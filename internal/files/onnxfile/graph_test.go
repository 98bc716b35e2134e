package onnxfile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
)

func open(t *testing.T, g *onnxfile.Graph) *ort.Session {
	t.Helper()
	s, err := ort.Open(ort.Source{Data: g.Bytes(), Name: "made-up.onnx", Role: "test"}, ort.Options{})
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestMadeUpModelRuns(t *testing.T) {
	s := open(t, madeUp())
	out, err := s.Run(context.Background(), map[string]*ort.Tensor{
		"x": ort.NewFloat32([]int64{2, 3}, []float32{0, 0, 5, 1, 0, 0}),
	}, "y", "rows")
	require.NoError(t, err)
	assert.Equal(t, []int64{2, 2}, out[0].Shape())
	assert.InDeltaSlice(t, []float32{0.5, 0.5, 0.731059, 0.268941}, out[0].Float32(), 1e-5)
	assert.Equal(t, []int64{2}, out[1].Integers())
	assert.Equal(t, []int64{1}, out[1].Shape())
}

// TestOperators runs every operator used by the tests of the recognizers,
// embedders and taggers.
func TestOperators(t *testing.T) {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "B", "T", 2)
	g.Input("len", onnxfile.Int32, "B")
	start, end, axis := g.Const(onnxfile.Ints([]int64{1}, 1)), g.Const(onnxfile.Ints([]int64{1}, 3)), g.Const(onnxfile.Ints([]int64{1}, 1))
	slice := g.Op("Slice", []string{"x", start, end, axis})
	mean := g.Op("ReduceMean", []string{slice}, onnxfile.AttrInts("axes", 1), onnxfile.AttrInt("keepdims", 0))
	both := g.Op("Concat", []string{mean, mean}, onnxfile.AttrInt("axis", 1))
	flat := g.Op("Reshape", []string{both, g.Const(onnxfile.Ints([]int64{1}, -1))})
	g.Node("Identity", []string{flat}, []string{"flat"})
	g.Node("Cast", []string{"len"}, []string{"len64"}, onnxfile.AttrInt("to", int64(onnxfile.Int64)))
	g.Node("ConstantOfShape", []string{g.Op("Shape", []string{"x"})}, []string{"ones"}, onnxfile.AttrTensor("value", onnxfile.Floats([]int64{1}, 1)))
	g.Node("LayerNormalization", []string{"x", g.Const(onnxfile.Floats([]int64{2}, 1, 1))}, []string{"norm"}, onnxfile.AttrFloat("epsilon", 1e-5))
	g.Opset = 17
	yes, no := onnxfile.NewGraph(), onnxfile.NewGraph()
	yes.Constant("a", onnxfile.Floats([]int64{1}, 7)).Output("a", onnxfile.Float32, 1)
	no.Constant("b", onnxfile.Floats([]int64{1}, 8)).Output("b", onnxfile.Float32, 1)
	cond := g.Op("ReduceMax", []string{g.Op("Cast", []string{"len"}, onnxfile.AttrInt("to", int64(onnxfile.Float32)))}, onnxfile.AttrInt("keepdims", 0))
	cond = g.Op("Greater", []string{cond, g.Const(onnxfile.Floats(nil, 5))})
	g.Node("If", []string{cond}, []string{"branch"}, onnxfile.AttrGraph("then_branch", yes), onnxfile.AttrGraph("else_branch", no))
	g.Output("flat", onnxfile.Float32, nil)
	g.Output("len64", onnxfile.Int64, "B")
	g.OutputWithoutShape("ones", onnxfile.Float32)
	g.Output("norm", onnxfile.Float32, "B", "T", 2)
	g.Output("branch", onnxfile.Float32, 1)

	out, err := open(t, g).Run(context.Background(), map[string]*ort.Tensor{
		"x":   ort.NewFloat32([]int64{1, 4, 2}, []float32{9, 9, 1, 2, 3, 6, 9, 9}),
		"len": ort.NewInt32([]int64{1}, []int32{4}),
	})
	require.NoError(t, err)
	assert.Equal(t, []float32{2, 4, 2, 4}, out[0].Float32())
	assert.Equal(t, []int64{4}, out[1].Integers())
	assert.Equal(t, []int64{1, 4, 2}, out[2].Shape())
	assert.Equal(t, []float32{1, 1, 1, 1, 1, 1, 1, 1}, out[2].Float32())
	assert.InDelta(t, -1, out[3].Float32()[2], 1e-3)
	assert.Equal(t, []float32{8}, out[4].Float32())
}
