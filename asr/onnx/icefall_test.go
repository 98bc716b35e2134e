package onnx

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// madeUpIcefallEncoder recognizes the tones as madeUpZipformer does, with four
// frames per output frame.
func madeUpIcefallEncoder() *onnxfile.Graph {
	o := dsp.DefaultFbankOptions()
	o.SnipEdges, o.HighHz = false, -400
	low, high := fbankBands(o)
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
	w, bias := sampleScript.weights(80, low, high, -2)
	g.Node("Identity", []string{scores(g, everyNth(g, "x", 4), w, bias)}, []string{"encoder_out"})
	half := g.Op("Div", []string{g.Op("Sub", []string{"x_lens", g.Const(ints(7))}), g.Const(ints(2))})
	g.Node("Div", []string{g.Op("Add", []string{half, g.Const(ints(1))}), g.Const(ints(2))}, []string{"encoder_out_lens"})
	return g.Output("encoder_out", onnxfile.Float32, "N", "T4", 5).Output("encoder_out_lens", onnxfile.Int64, "N").Meta("model_type", "zipformer2")
}

// madeUpIcefallDecoder forbids the last token, so that a tone is one token.
// Like icefall's decoder, it accepts -1 and the blank before the text.
func madeUpIcefallDecoder(context int64) *onnxfile.Graph {
	forbid := make([]float32, 6*5)
	for i := 3; i < 5; i++ {
		forbid[(i+1)*5+i] = -500
	}
	g := onnxfile.NewGraph()
	g.Input("y", onnxfile.Int64, "N", context)
	last := g.Op("Gather", []string{g.Op("Add", []string{"y", g.Const(ints(1))}), g.Const(onnxfile.Ints(nil, context-1))}, onnxfile.AttrInt("axis", 1))
	g.Node("Gather", []string{g.Const(onnxfile.Floats([]int64{6, 5}, forbid...)), last}, []string{"decoder_out"}, onnxfile.AttrInt("axis", 0))
	return g.Output("decoder_out", onnxfile.Float32, "N", 5).Meta("context_size", strconv.FormatInt(context, 10)).Meta("vocab_size", "5")
}

// madeUpIcefallJoiner adds encoder and decoder; columns beyond the fifth are 0.
func madeUpIcefallJoiner(columns int64) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("encoder_out", onnxfile.Float32, "N", 5).Input("decoder_out", onnxfile.Float32, "N", 5)
	sum := g.Op("Add", []string{"encoder_out", "decoder_out"})
	if columns > 5 {
		sum = g.Op("Pad", []string{sum, g.Const(ints(0, 0, 0, columns-5))})
	}
	g.Node("Identity", []string{sum}, []string{"logit"})
	return g.Output("logit", onnxfile.Float32, "N", columns).Meta("joiner_dim", "5")
}

func icefallParts(context int64) parts {
	return parts{
		ONNX: source(madeUpIcefallEncoder(), "encoder.onnx"), Decoder: source(madeUpIcefallDecoder(context), "decoder.onnx"),
		Joiner: source(madeUpIcefallJoiner(5), "joiner.onnx"), Tokens: tokensFile(sampleTokens),
	}
}

// rowsOf returns the encoder's frames of a window, each with the scores of five
// tokens.
func rowsOf(rows ...[5]float32) encoded {
	e := encoded{dim: 5, stride: 1, step: 5, n: len(rows)}
	for _, r := range rows {
		e.data = append(e.data, r[:]...)
	}
	return e
}

// TestIcefallSearch checks that a frame writes at most one token, that <unk>
// writes nothing, and that the decoder's input is first the blank and then the
// last tokens.
func TestIcefallSearch(t *testing.T) {
	for _, size := range []int64{1, 2, 3} {
		net := openMadeUp(t, icefallParts(size)).net.(*icefall)
		before := net.beginning()
		assert.Len(t, before, int(size))
		assert.Equal(t, net.blank, before[size-1])
		for _, id := range before[:size-1] {
			assert.Equal(t, beforeText, id)
		}
		frames := rowsOf(
			[5]float32{0, 0, 0, 9, 0}, // ba
			[5]float32{3, 0, 0, 9, 0}, // the decoder forbids a second ba
			[5]float32{3, 0, 9, 4, 5}, // <unk>, although na is likelier than the blank
			[5]float32{3, 0, 0, 4, 9}, // na
			[5]float32{0, 0, 0, 9, 9}, // ba, because na was the last token
		)
		for _, width := range []int{1, 4} {
			got, steps, err := net.beam(context.Background(), frames, fusion{}, width)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, steps, 5)
			greedy, steps, err := net.search(context.Background(), frames, request{})
			require.NoError(t, err)
			assert.Equal(t, 5, steps)
			for name, list := range map[string][]emission{"greedy": greedy, "beam": got} {
				var ids []int
				for _, e := range list {
					ids = append(ids, e.id)
				}
				assert.Equal(t, []int{3, 4, 3}, ids, "%s, width %d", name, width)
			}
			assert.InDelta(t, 3*0.04, greedy[1].start, 1e-9)
			assert.LessOrEqual(t, greedy[1].logProb, 0.0)
			assert.Greater(t, greedy[1].logProb, math.Log(0.9))
		}
	}
}
