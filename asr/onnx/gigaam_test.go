package onnx

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
)

// gigaBands returns the bands of the two tones.
func gigaBands(version int) (low, high int) {
	m := dsp.NewGigaAMMel(version)
	for i, hz := range []float64{lowTone, highTone} {
		x := tones(0.5, [3]float64{0, 0.5, hz})
		rows := make([]float32, m.Frames(len(x))*m.Bands())
		n := m.Compute(rows, x)
		*[]*int{&low, &high}[i] = loudestBand(rows, m.Bands(), n)
	}
	return low, high
}

// gigaScores returns a GigaAM model's rows of scores; the blank lies between a
// tone and silence.
func gigaScores(g *onnxfile.Graph, version int, signal string) string {
	low, high := gigaBands(version)
	w, bias := script{v: 5, blank: 4, low: 2, high: 3}.weights(64, low, high, 2)
	return scores(g, everyNth(g, g.Op("Transpose", []string{signal}, onnxfile.AttrInts("perm", 0, 2, 1)), 4), w, bias)
}

// madeUpGigaAM returns a CTC model, with sherpa-onnx's metadata or in
// onnx-asr's layout.
func madeUpGigaAM(version int, meta bool) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("features", onnxfile.Float32, "B", 64, "T").Input("feature_lengths", onnxfile.Int64, "B")
	g.Node("LogSoftmax", []string{gigaScores(g, version, "features")}, []string{"log_probs"}, onnxfile.AttrInt("axis", -1))
	g.Output("log_probs", onnxfile.Float32, "B", "T4", 5)
	if meta {
		g.Meta("model_type", "EncDecCTCModel").Meta("vocab_size", "5").Meta("normalize_type", "").Meta("subsampling_factor", "4").Meta("is_giga_am", "1")
		if version == 3 {
			g.Meta("comment", "v3 with puncutations")
		}
	}
	return g
}

// madeUpGigaEncoder returns a transducer's encoder.
func madeUpGigaEncoder(version int) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", 64, "T").Input("length", onnxfile.Int64, "B")
	g.Node("Transpose", []string{gigaScores(g, version, "audio_signal")}, []string{"encoded"}, onnxfile.AttrInts("perm", 0, 2, 1))
	frames := g.Op("Div", []string{g.Op("Add", []string{"length", g.Const(ints(3))}), g.Const(ints(4))})
	g.Node("Cast", []string{frames}, []string{"encoded_len"}, onnxfile.AttrInt("to", int64(onnxfile.Int32)))
	return g.Output("encoded", onnxfile.Float32, "B", 5, "T4").Output("encoded_len", onnxfile.Int32, "B")
}

// madeUpGigaDecoder forbids its last token, as madeUpDecoder does. In
// sherpa-onnx's layout it takes a length and orders its axes differently.
func madeUpGigaDecoder(sherpa bool) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	kind := onnxfile.Int64
	if sherpa {
		kind = onnxfile.Int32
	}
	g.Input("x", kind, 1, 1)
	if sherpa {
		g.Input("unused_x_len.1", onnxfile.Int32, 1)
	}
	g.Input("h.1", onnxfile.Float32, 1, 1, 6).Input("c.1", onnxfile.Float32, 1, 1, 6)
	forbid := make([]float32, 5*5)
	for i := range 4 {
		forbid[i*5+i] = -500
	}
	row := g.Op("Gather", []string{g.Const(onnxfile.Floats([]int64{5, 5}, forbid...)), "x"}, onnxfile.AttrInt("axis", 0)) // [1,1,5]
	for _, s := range []string{"h", "c"} {
		g.Node("Add", []string{s + ".1", g.Const(onnxfile.Floats(nil, 1))}, []string{s})
	}
	if sherpa {
		g.Node("Transpose", []string{row}, []string{"dec"}, onnxfile.AttrInts("perm", 0, 2, 1))
		g.Node("Identity", []string{"unused_x_len.1"}, []string{"unused_x_len"})
		g.Output("dec", onnxfile.Float32, 1, 5, 1).Output("unused_x_len", onnxfile.Int32, 1)
	} else {
		g.Node("Identity", []string{row}, []string{"dec"})
		g.Output("dec", onnxfile.Float32, 1, 1, 5)
	}
	return g.Output("h", onnxfile.Float32, 1, 1, 6).Output("c", onnxfile.Float32, 1, 1, 6)
}

func madeUpGigaJoiner() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("enc", onnxfile.Float32, 1, 5, 1).Input("dec", onnxfile.Float32, 1, 5, 1)
	sum := g.Op("Transpose", []string{g.Op("Add", []string{"enc", "dec"})}, onnxfile.AttrInts("perm", 0, 2, 1))
	g.Node("Unsqueeze", []string{sum, g.Const(ints(1))}, []string{"joint"})
	return g.Output("joint", onnxfile.Float32, 1, 1, 1, 5)
}

// TestGigaVersion checks that the versions are recognized, and that an unclear
// file is refused.
func TestGigaVersion(t *testing.T) {
	sherpa := func(comment string) *ort.Graph {
		return &ort.Graph{Header: onnxfile.Header{Metadata: map[string]string{"is_giga_am": "1", "comment": comment}}}
	}
	bare := &ort.Graph{}
	for _, c := range []struct {
		m    parts
		g    *ort.Graph
		c    nemoConfig
		want int
	}{
		{parts{}, sherpa(""), nemoConfig{}, 2},
		{parts{}, sherpa("v3"), nemoConfig{}, 3},
		{parts{}, bare, nemoConfig{ModelType: "gigaam-v3-e2e-ctc"}, 3},
		{parts{ONNX: ort.Source{Path: "models/v3_e2e_rnnt_encoder.int8.onnx"}}, bare, nemoConfig{ModelType: "gigaam"}, 3},
		{parts{ONNX: ort.Source{Path: "v3/v2_ctc.onnx"}}, bare, nemoConfig{}, 2},
		{parts{Model: models.Model{Name: "gigaam-v2"}}, bare, nemoConfig{}, 2},
	} {
		g := &checker{Graph: c.g}
		assert.Equal(t, c.want, gigaVersion(c.m, g, c.c))
		require.NoError(t, g.err)
	}
	g := &checker{Graph: bare}
	gigaVersion(parts{ONNX: ort.Source{Path: "model.onnx"}}, g, nemoConfig{})
	require.ErrorIs(t, g.err, ErrContract)
	require.ErrorContains(t, g.err, "expected GigaAM v2 or v3")
}
