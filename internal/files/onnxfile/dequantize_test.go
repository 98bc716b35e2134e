package onnxfile_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/files/onnxgraph"
)

// quantized returns a model with an int8 weight of the given shape that is
// multiplied by a factor. more adds to the graph.
func quantized(shape []int64, values []byte, factorShape []int64, factors []float32, more func(g *onnxgraph.Graph)) []byte {
	g := onnxgraph.New()
	g.Input("x", onnxgraph.Float32, "N", shape[0])
	g.Constant("before", onnxgraph.Floats([]int64{1}, 5))
	g.Constant("q", onnxgraph.Raw(onnxgraph.Int8, shape, values))
	g.Constant("s", onnxgraph.Floats(factorShape, factors...))
	g.Node("Cast", []string{"q"}, []string{"f"}, onnxgraph.AttrInt("to", int64(onnxgraph.Float32)))
	g.Node("Mul", []string{"s", "f"}, []string{"w"})
	g.Node("MatMul", []string{"x", "w"}, []string{"y"})
	g.Output("y", onnxgraph.Float32, "N", nil)
	g.Meta("made", "up")
	if more != nil {
		more(g)
	}
	return g.Bytes()
}

func fresh(n int) []byte { return make([]byte, n) }

func TestDequantized(t *testing.T) {
	six := []byte{1, 2, 0xff, 0x80, 0x7f, 0}
	for name, c := range map[string]struct {
		shape, factorShape []int64
		values             []byte
		factors, want      []float32
	}{
		"by column":    {[]int64{2, 3}, []int64{1, 3}, six, []float32{0.5, 2, 3}, []float32{0.5, 4, -3, -64, 254, 0}},
		"by row":       {[]int64{2, 3}, []int64{2, 1}, six, []float32{0.5, 2}, []float32{0.5, 1, -0.5, -256, 254, 0}},
		"by the next":  {[]int64{1, 2, 3}, []int64{1, 2, 1}, six, []float32{0.5, 2}, []float32{0.5, 1, -0.5, -256, 254, 0}},
		"one for all":  {[]int64{2, 3}, []int64{1, 1}, six, []float32{2}, []float32{2, 4, -2, -256, 254, 0}},
		"five columns": {[]int64{1, 5}, []int64{1, 5}, []byte{1, 1, 1, 1, 1}, []float32{1, 2, 3, 4, 5}, []float32{1, 2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			got := onnxfile.Dequantized(quantized(c.shape, c.values, c.factorShape, c.factors, nil), func(n int) []byte {
				asked = n
				return bytes.Repeat([]byte{0xaa}, n)
			})
			require.Len(t, got, asked)
			weights, err := onnxfile.Weights(bytes.NewReader(got), int64(len(got)))
			require.NoError(t, err)
			assert.Equal(t, map[string]onnxfile.Weight{
				"before": {Shape: []int64{1}, Data: []float32{5}}, "w": {Shape: c.shape, Data: c.want},
			}, weights)
			h, err := onnxfile.Read(bytes.NewReader(got), int64(len(got)))
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"made": "up"}, h.Metadata)
			assert.Nil(t, onnxfile.Dequantized(got, fresh), "no work is left")
		})
	}
}

// TestDequantizedKeepsSharedValues checks that values with other uses keep
// their form.
func TestDequantizedKeepsSharedValues(t *testing.T) {
	build := func(factorShape []int64, factors []float32, more func(g *onnxgraph.Graph)) []byte {
		return quantized([]int64{2, 2}, []byte{1, 2, 3, 4}, factorShape, factors, more)
	}
	columns := []float32{1, 2}
	require.NotNil(t, onnxfile.Dequantized(build([]int64{1, 2}, columns, nil), fresh), "otherwise the rest of the test proves nothing")
	branch := onnxgraph.New()
	branch.Node("Identity", []string{"f"}, []string{"z"})
	branch.Output("z", onnxgraph.Float32, 2, 2)
	for name, data := range map[string][]byte{
		"factors of another rank":  build([]int64{2}, columns, nil),
		"a factor for each weight": build([]int64{2, 2}, []float32{1, 2, 3, 4}, nil),
		"the converted weight":     build([]int64{1, 2}, columns, func(g *onnxgraph.Graph) { g.Output("f", onnxgraph.Float32, 2, 2) }),
		"the weight as an input":   build([]int64{1, 2}, columns, func(g *onnxgraph.Graph) { g.Input("q", onnxgraph.Int8, 2, 2) }),
		"the weight in a node": build([]int64{1, 2}, columns, func(g *onnxgraph.Graph) {
			g.Node("Identity", []string{"q"}, []string{"p"})
			g.Output("p", onnxgraph.Int8, 2, 2)
		}),
		"a graph in the graph": build([]int64{1, 2}, columns, func(g *onnxgraph.Graph) {
			g.Input("which", onnxgraph.Bool)
			g.Node("If", []string{"which"}, []string{"z"}, onnxgraph.AttrGraph("then_branch", branch), onnxgraph.AttrGraph("else_branch", branch))
			g.Output("z", onnxgraph.Float32, 2, 2)
		}),
		"no model": []byte("text"),
		"nothing":  nil,
	} {
		assert.Nil(t, onnxfile.Dequantized(data, fresh), name)
	}
	shared := onnxfile.Dequantized(build([]int64{1, 2}, columns, func(g *onnxgraph.Graph) { g.Output("s", onnxgraph.Float32, 1, 2) }), fresh)
	require.NotNil(t, shared)
	weights, err := onnxfile.Weights(bytes.NewReader(shared), int64(len(shared)))
	require.NoError(t, err)
	assert.Contains(t, weights, "s", "factors that are also an output stay")
}

func FuzzDequantized(f *testing.F) {
	data := quantized([]int64{2, 3}, []byte{1, 2, 3, 4, 5, 6}, []int64{1, 3}, []float32{1, 2, 3}, nil)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		got := onnxfile.Dequantized(data, fresh)
		if _, err := onnxfile.Read(bytes.NewReader(data), int64(len(data))); err == nil && got != nil {
			_, err := onnxfile.Read(bytes.NewReader(got), int64(len(got)))
			require.NoError(t, err)
		}
	})
}
