package silero

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxgraph"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/vad"
)

// form describes a synthetic network in one of the published forms
// (madeUpForms). Its probability is
//
//	0.25·(first sample of the row) + 0.5·(last sample) + 0.00005·(state)
//
// where the state counts windows, so that a missing context, a shifted window
// or a lost state shows in the numbers.
type form struct {
	name     string
	context  int
	batch    any // dimension of the batch
	width    any // of the input
	input    string
	rate     int // rank of sr, -1 without it
	state    []string
	stateN   []string
	layers   int
	size     int
	output   string
	sequence bool
}

var madeUpForms = []form{
	{"v5/v6", 64, "N", nil, "input", 0, []string{"state"}, []string{"stateN"}, 2, 128, "output", false},
	{"v5/v6", 64, "N", 576, "input", -1, []string{"state"}, []string{"stateN"}, 2, 128, "output", false},
	{"v5/v6", 64, "N", 576, "input", 1, []string{"state"}, []string{"stateN"}, 2, 128, "output", false},
	{"v5/v6", 64, 1, 576, "input", -1, []string{"state"}, []string{"stateN"}, 2, 128, "output", false},
	{"v4", 0, "N", nil, "input", 0, []string{"h", "c"}, []string{"hn", "cn"}, 2, 64, "output", false},
	{"v4 (k2-fsa export)", 0, "N", 512, "x", -1, []string{"h", "c"}, []string{"new_h", "new_c"}, 2, 64, "prob", false},
	{"v4 (k2-fsa export)", 0, 1, 512, "x", -1, []string{"h", "c"}, []string{"next_h", "next_c"}, 2, 64, "prob", false},
	{"v6 sequence", 64, "n", 576, "input", -1, []string{"h", "c"}, []string{"hn", "cn"}, 1, 128, "speech_probs", true},
}

func (f form) model() []byte {
	g := onnxgraph.New()
	g.Input(f.input, onnxgraph.Float32, f.batch, f.width)
	stateBatch := f.batch
	if f.sequence {
		stateBatch = 1
	}
	switch f.rate {
	case 0:
		g.Input("sr", onnxgraph.Int64)
	case 1:
		g.Input("sr", onnxgraph.Int64, 1)
	}
	ints := func(v ...int64) string { return g.Const(onnxgraph.Ints([]int64{int64(len(v))}, v...)) }
	last := int64(f.context + vad.Window - 1)
	a := g.Op("Gather", []string{f.input, g.Const(onnxgraph.Ints([]int64{1}, 0))}, onnxgraph.AttrInt("axis", 1))
	b := g.Op("Gather", []string{f.input, g.Const(onnxgraph.Ints([]int64{1}, last))}, onnxgraph.AttrInt("axis", 1))
	p := g.Op("Add", []string{
		g.Op("Mul", []string{a, g.Const(onnxgraph.Floats(nil, 0.25))}),
		g.Op("Mul", []string{b, g.Const(onnxgraph.Floats(nil, 0.5))}),
	})
	for i, s := range f.state {
		g.Input(s, onnxgraph.Float32, f.layers, stateBatch, f.size)
		g.Output(f.stateN[i], onnxgraph.Float32, f.layers, stateBatch, f.size)
		step := g.Const(onnxgraph.Floats(nil, 1))
		if f.sequence { // the state advances by one per row
			rows := g.Op("Gather", []string{g.Op("Shape", []string{f.input}), ints(0)}, onnxgraph.AttrInt("axis", 0))
			step = g.Op("Cast", []string{rows}, onnxgraph.AttrInt("to", int64(onnxgraph.Float32)))
		}
		g.Node("Add", []string{s, step}, []string{f.stateN[i]})
	}
	// [layers, B, size] → [B, 1]: the last number of the last layer
	st := g.Op("Slice", []string{f.state[len(f.state)-1], ints(int64(f.layers)-1, int64(f.size)-1), ints(int64(f.layers), int64(f.size)), ints(0, 2)})
	st = g.Op("Reshape", []string{st, ints(-1, 1)})
	p = g.Op("Add", []string{p, g.Op("Mul", []string{st, g.Const(onnxgraph.Floats(nil, 0.00005))})})
	if f.sequence {
		g.Node("Reshape", []string{p, ints(-1)}, []string{f.output})
		g.Output(f.output, onnxgraph.Float32, f.batch)
	} else {
		g.Node("Identity", []string{p}, []string{f.output})
		g.Output(f.output, onnxgraph.Float32, f.batch, 1)
	}
	return g.Bytes()
}

func TestPublishedForms(t *testing.T) {
	x := make([]float32, 600*vad.Window+100)
	for i := range x {
		x[i] = float32(i%977) / 2000
	}
	at := func(i int) float32 {
		if i < 0 || i >= len(x) {
			return 0
		}
		return x[i]
	}
	for i, f := range madeUpForms {
		t.Run(fmt.Sprintf("%d %s", i, f.name), func(t *testing.T) {
			m := open(t, ort.Source{Data: f.model(), Name: "made-up.onnx", Role: "vad"}, Options{})
			assert.Equal(t, f.name, m.layout.name)
			probs, err := m.Probabilities(context.Background(), audio.FromSamples(x))
			require.NoError(t, err)
			want := make([]float32, 601)
			for w := range want {
				state := w // counted windows before this one
				if f.sequence {
					state = w / blockWindows * blockWindows
				}
				want[w] = min(1, 0.25*at(w*512-f.context)+0.5*at(w*512+511)+0.00005*float32(state))
			}
			within(t, want, probs, 1e-6)
		})
	}
}

func TestFixedBatchIsSequential(t *testing.T) {
	m := open(t, ort.Source{Data: madeUpForms[3].model(), Name: "fixed.onnx"}, Options{})
	assert.EqualValues(t, 1, m.layout.maxRows)
	m.whole = 0 // batched if possible
	probs, err := m.Probabilities(context.Background(), audio.FromSamples(make([]float32, 600*audio.SampleRate)))
	require.NoError(t, err)
	require.Len(t, probs, 18750)
	assert.InDelta(t, 0.00005*18749, probs[18749], 1e-4) // one state was carried through all windows
}

// leaky returns a v5 network whose state is a slow average of the loudness; its
// memory is longer than the run-in.
func leaky() []byte {
	g := onnxgraph.New()
	g.Input("input", onnxgraph.Float32, "N", 576)
	g.Input("state", onnxgraph.Float32, 2, "N", 128)
	mean := g.Op("ReduceMean", []string{g.Op("Abs", []string{"input"})}, onnxgraph.AttrInts("axes", 1), onnxgraph.AttrInt("keepdims", 1))
	keep, add := g.Const(onnxgraph.Floats(nil, 0.9995)), g.Const(onnxgraph.Floats(nil, 0.0005))
	g.Node("Add", []string{g.Op("Mul", []string{"state", keep}), g.Op("Mul", []string{mean, add})}, []string{"stateN"})
	s := g.Op("Slice", []string{"stateN", g.Const(onnxgraph.Ints([]int64{2}, 0, 0)), g.Const(onnxgraph.Ints([]int64{2}, 1, 1)), g.Const(onnxgraph.Ints([]int64{2}, 0, 2))})
	g.Node("Reshape", []string{s, g.Const(onnxgraph.Ints([]int64{2}, -1, 1))}, []string{"output"})
	g.Output("output", onnxgraph.Float32, "N", 1)
	g.Output("stateN", onnxgraph.Float32, 2, "N", 128)
	return g.Bytes()
}

func TestStretchContinuesUntilItAgrees(t *testing.T) {
	x := make([]float32, 700*audio.SampleRate)
	for i := range x { // loud first, softer later: the state at a joint differs greatly from the warm one
		x[i] = 1
		if i > 100*audio.SampleRate {
			x[i] = 0.5
		}
	}
	pcm := audio.FromSamples(x)
	m := open(t, ort.Source{Data: leaky(), Name: "leaky.onnx"}, Options{})
	want := sequential(t, m, pcm)
	m.whole = 0
	got, err := m.Probabilities(context.Background(), pcm)
	require.NoError(t, err)
	within(t, want, got, agreeWithin)

	list := plan(pcm, 0)
	require.Len(t, list[0], 2)
	uncarried := make([]float32, len(want))
	warm, err := m.group(context.Background(), pcm, uncarried, []stretch{{end: warmUp}}, nil)
	require.NoError(t, err)
	_, err = m.group(context.Background(), pcm, uncarried, list[0][1:], warm[0].state)
	require.NoError(t, err)
	at := list[0][1].start
	assert.Greater(t, want[at]-uncarried[at], float32(agreeWithin), "the network forgets too fast for this test")
}

func TestUnknownFormsAreRefused(t *testing.T) {
	v3 := onnxgraph.New()
	v3.Input("input", onnxgraph.Float32, "N", 512).Input("h0", onnxgraph.Float32, 2, "N", 64).Input("c0", onnxgraph.Float32, 2, "N", 64)
	v3.Node("Identity", []string{"input"}, []string{"output"}).Output("output", onnxgraph.Float32, 1, 2, 1)
	narrow := madeUpForms[1]
	narrow.width = 512
	extra := onnxgraph.New()
	extra.Input("input", onnxgraph.Float32, "N", 576).Input("state", onnxgraph.Float32, 2, "N", 128).Input("mood", onnxgraph.Float32, 1)
	extra.Node("Identity", []string{"input"}, []string{"output"}).Output("output", onnxgraph.Float32, "N", 1)
	extra.Node("Add", []string{"state", "mood"}, []string{"stateN"}).Output("stateN", onnxgraph.Float32, 2, "N", 128)
	pair := madeUpForms[1]
	pair.batch = 2
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"v3":          {v3.Bytes(), "Silero VAD v3"},
		"no context":  {narrow.model(), "expected input input float32[?,576], found input float32[?,512]"},
		"extra input": {extra.Bytes(), "nothing to feed to input mood float32[1]"},
		"batch of 2":  {pair.model(), "fixed batch of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openSource(ort.Source{Data: tt.data, Name: "odd.onnx", Role: "vad"}, "", Options{})
			if errors.Is(err, native.ErrMissing) {
				t.Skip(err)
			}
			require.ErrorIs(t, err, ort.ErrContract)
			assert.ErrorContains(t, err, "vad model odd.onnx")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

// constant returns a v5 network whose output is constant.
func constant(p float32) *onnxgraph.Graph {
	g := onnxgraph.New()
	g.Input("input", onnxgraph.Float32, "N", 576).Input("state", onnxgraph.Float32, 2, "N", 128)
	first := g.Op("Gather", []string{"input", g.Const(onnxgraph.Ints([]int64{1}, 0))}, onnxgraph.AttrInt("axis", 1))
	zero := g.Op("Mul", []string{first, g.Const(onnxgraph.Floats(nil, 0))})
	g.Node("Add", []string{zero, g.Const(onnxgraph.Floats(nil, p))}, []string{"output"}).Output("output", onnxgraph.Float32, "N", 1)
	g.Node("Identity", []string{"state"}, []string{"stateN"}).Output("stateN", onnxgraph.Float32, 2, "N", 128)
	return g
}

func TestImpossibleProbabilities(t *testing.T) {
	m := open(t, ort.Source{Data: constant(3).Bytes(), Name: "broken.onnx", Role: "vad"}, Options{})
	_, err := m.Probabilities(context.Background(), audio.FromSamples(make([]float32, 1000)))
	assert.ErrorContains(t, err, "vad model broken.onnx")
	assert.ErrorContains(t, err, "3 as the probability of speech")
}

func TestDeafModelIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		prob    float32
		samples []float32
		want    int
	}{
		"loud and deaf":   {0.01, noise(130, 0.2), 1},
		"loud and hears":  {0.2, noise(130, 0.2), 0},
		"quiet":           {0.01, noise(130, 0.005), 0},
		"loud, but short": {0.01, noise(60, 0.2), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			m := open(t, ort.Source{Data: constant(tt.prob).Bytes(), Name: "deaf.onnx", Role: "vad"},
				Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			_, err := m.Probabilities(context.Background(), audio.FromSamples(tt.samples))
			require.NoError(t, err)
			assert.Equal(t, tt.want, bytes.Count(log.Bytes(), []byte("level=WARN")), log.String())
		})
	}
}
