package tag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func needsRuntime(t testing.TB) {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
}

func source(g *onnxfile.Graph) ort.Source {
	return ort.Source{Data: g.Bytes(), Name: "made-up.onnx", Role: "tagger"}
}

// ramp returns a signal whose value encodes the time: sample i is i/16000/100,
// so it stays within [0,1] for 100 seconds.
func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i) / audio.SampleRate / 100
	}
	return x
}

// noise returns sound that differs from frame to frame.
func noise(n int) []float32 {
	x := make([]float32, n)
	seed := uint32(11)
	for i := range x {
		seed = seed*1664525 + 1013904223
		x[i] = (float32(seed>>8)/(1<<24) - 0.5) * (0.02 + float32(i%9000)/20000)
	}
	return x
}

// spread returns a matrix [n × classes] that copies number i to class first+i.
func spread(n, first, classes int) onnxfile.Tensor {
	w := make([]float32, n*classes)
	for i := range n {
		w[i*classes+first+i] = 1
	}
	return onnxfile.Floats([]int64{int64(n), int64(classes)}, w...)
}

func one(g *onnxfile.Graph, v int64) string { return g.Const(onnxfile.Ints([]int64{1}, v)) }

// clipNet has the ports of CED: logits of its 527 classes, all shift.
func clipNet(shift float32) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("feats", onnxfile.Float32, "B", 64, "T")
	mean := g.Op("ReduceMean", []string{"feats"}, onnxfile.AttrInts("axes", 2), onnxfile.AttrInt("keepdims", 0))
	zero := g.Op("MatMul", []string{mean, g.Const(onnxfile.Floats([]int64{64, 527}, make([]float32, 64*527)...))})
	g.Node("Add", []string{zero, g.Const(onnxfile.Floats(nil, shift))}, []string{"prob"})
	return g.Output("prob", onnxfile.Float32, "B", 527)
}

// collect returns all frames.
func collect(t testing.TB, m *Model, samples []float32) (frames [][]float32) {
	t.Helper()
	require.NoError(t, m.Scores(t.Context(), audio.FromSamples(samples), func(i int, s []float32) error {
		require.Equal(t, len(frames), i)
		require.Len(t, s, spec.NumEventClasses)
		frames = append(frames, append([]float32(nil), s...))
		return nil
	}))
	return frames
}

// at returns the index among the 521 of class column of the 527.
func at(t testing.TB, column int) int {
	t.Helper()
	for i, c := range fullColumns() {
		if c == column {
			return i
		}
	}
	t.Fatalf("column %d is not among the 521", column)
	return 0
}

func TestClassesAreMatchedByIdentifier(t *testing.T) {
	columns := fullColumns()
	require.Len(t, columns, spec.NumEventClasses)
	assert.Equal(t, 0, columns[0])
	assert.Equal(t, 3, columns[1], "1 and 2, male and female speech, are left out")
	assert.Equal(t, 526, columns[520])
	seen := map[int]bool{}
	for _, c := range columns {
		assert.False(t, seen[c])
		seen[c] = true
	}
	for _, dropped := range []int{1, 2, 12, 32, 33, 277} {
		assert.False(t, seen[dropped], "%d", dropped)
	}
	row := make([]float32, fullClasses)
	row[3] = 0.5
	got := make([]float32, spec.NumEventClasses)
	pick(got, row)
	assert.Equal(t, float32(0.5), got[1])
}

// yamnetWave follows YAMNet's contract: a patch of 15,600 samples every 7,680.
// It returns the first and last sample of each patch as classes 20 and 21.
func yamnetWave(batch bool) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	x := "waveform"
	if batch {
		g.Input(x, onnxfile.Float32, 1, "samples")
		x = g.Op("Squeeze", []string{x, one(g, 0)})
	} else {
		g.Input(x, onnxfile.Float32, "samples")
	}
	count := g.Op("Shape", []string{x})
	pick := func(offset int64) string { // samples offset, offset + 7680, …
		limit := g.Op("Add", []string{count, one(g, offset-15600+1)})
		return g.Op("Unsqueeze", []string{g.Op("Slice", []string{x, one(g, offset), limit, one(g, 0), one(g, 7680)}), one(g, 1)})
	}
	both := g.Op("Concat", []string{pick(0), pick(15599)}, onnxfile.AttrInt("axis", 1))
	g.Node("Relu", []string{g.Op("MatMul", []string{both, g.Const(spread(2, 20, 521))})}, []string{"output_0"})
	g.Node("Identity", []string{both}, []string{"output_1"})
	return g.Output("output_1", onnxfile.Float32, "P", 1024).Output("output_0", onnxfile.Float32, "P", 521)
}

func TestYAMNetWaveform(t *testing.T) {
	needsRuntime(t)
	for _, batch := range []bool{false, true} {
		m, err := openSource(source(yamnetWave(batch)), "")
		require.NoError(t, err)
		assert.Equal(t, models.ContractYAMNet, m.layout.contract)
		assert.Equal(t, events.Grid{Window: 0.96, Hop: 0.48}, m.Grid())
		for _, c := range []struct{ samples, patches int }{{1, 1}, {15600, 1}, {15601, 2}, {15600 + 7680, 2}, {15600 + 70*7680 + 1, 72}} {
			frames := collect(t, m, ramp(c.samples))
			require.Len(t, frames, c.patches, "%d samples", c.samples)
			for i, f := range frames {
				assert.InDelta(t, float64(i)*0.48/100, f[20], 1e-6)
				if end := i*7680 + 15599; end < c.samples {
					assert.InDelta(t, float64(end)/1600000, f[21], 1e-6)
				} else {
					assert.Zero(t, f[21])
				}
			}
		}
		require.NoError(t, m.Close())
	}
}

// TestYAMNetFixedLength tests exports that take a single patch.
func TestYAMNetFixedLength(t *testing.T) {
	needsRuntime(t)
	g := onnxfile.NewGraph()
	g.Input("waveform", onnxfile.Float32, 15600)
	g.Node("Relu", []string{g.Op("MatMul", []string{g.Op("Slice", []string{g.Op("Unsqueeze", []string{"waveform", one(g, 0)}), one(g, 0), one(g, 2), one(g, 1)}), g.Const(spread(2, 20, 521))})}, []string{"scores"})
	g.Output("scores", onnxfile.Float32, 1, 521)
	m, err := openSource(source(g), "")
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	frames := collect(t, m, ramp(5*audio.SampleRate))
	require.Len(t, frames, 10)
	for i, f := range frames {
		assert.InDelta(t, float64(i)*0.48/100, f[20], 1e-6)
	}
}

// TestYAMNetPatches checks that the patches are cut from the log-mel features
// of the whole recording, even if it is split into batches.
func TestYAMNetPatches(t *testing.T) {
	needsRuntime(t)
	g := onnxfile.NewGraph()
	g.Input("patches", onnxfile.Float32, "n", 96, 64)
	// Frames 0 and 95 of each patch, 64 bands each, as classes 0 … 127, scaled
	// into [0,1].
	row := func(i int64) string {
		return g.Op("Gather", []string{"patches", g.Const(onnxfile.Ints(nil, i))}, onnxfile.AttrInt("axis", 1))
	}
	both := g.Op("Concat", []string{row(0), row(95)}, onnxfile.AttrInt("axis", 1))
	scaled := g.Op("Add", []string{g.Op("Mul", []string{both, g.Const(onnxfile.Floats(nil, 0.05))}), g.Const(onnxfile.Floats(nil, 0.5))})
	g.Node("MatMul", []string{scaled, g.Const(spread(128, 0, 521))}, []string{"scores"})
	g.Output("scores", onnxfile.Float32, "n", 521)
	m, err := openSource(source(g), "")
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	assert.Equal(t, models.ContractYAMNetPatches, m.layout.contract)
	x := noise(40*audio.SampleRate + 123)
	frames := collect(t, m, x)
	require.Len(t, frames, (len(x)-15600+7679)/7680+1)
	padded := append(x, make([]float32, 15600+(len(frames)-1)*7680-len(x))...)
	mel := dsp.NewYAMNetMel()
	rows := make([]float32, mel.Frames(len(padded))*64)
	mel.Compute(rows, padded)
	for i, f := range frames {
		for b := range 64 {
			require.InDelta(t, rows[(i*48)*64+b]*0.05+0.5, f[b], 1e-5)
			require.InDelta(t, rows[(i*48+95)*64+b]*0.05+0.5, f[64+b], 1e-5)
		}
	}
}

func TestCED(t *testing.T) {
	needsRuntime(t)
	ced := onnxfile.NewGraph()
	ced.Input("feats", onnxfile.Float32, "B", 64, "T")
	mel := ced.Op("Gather", []string{"feats", ced.Const(onnxfile.Ints(nil, 9))}, onnxfile.AttrInt("axis", 2))
	mel = ced.Op("Add", []string{ced.Op("Mul", []string{mel, ced.Const(onnxfile.Floats(nil, 0.005))}), ced.Const(onnxfile.Floats(nil, 0.5))})
	ced.Node("MatMul", []string{mel, ced.Const(spread(64, 34, 527))}, []string{"prob"})
	ced.Output("prob", onnxfile.Float32, "B", 527)

	m, err := openSource(source(ced), "")
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	assert.Equal(t, models.ContractCED, m.layout.contract)
	assert.Equal(t, events.Grid{Window: 2, Hop: 1}, m.Grid())
	x := noise(11*audio.SampleRate + 777) // more windows than one call has
	frames := collect(t, m, x)
	require.Len(t, frames, 11)
	for i, f := range frames {
		window := make([]float32, 2*audio.SampleRate)
		copy(window, x[i*audio.SampleRate:])
		features := dsp.NewCEDMel()
		rows := make([]float32, features.Frames(len(window))*64)
		features.Compute(rows, window)
		for b := range 64 {
			require.InDelta(t, rows[9*64+b]*0.005+0.5, f[at(t, 34+b)], 1e-5)
		}
	}
}

// TestLogitsGetTheSigmoid checks that an export without a sigmoid is detected
// by scores outside [0,1].
func TestLogitsGetTheSigmoid(t *testing.T) {
	needsRuntime(t)
	for shift, want := range map[float32]float64{-4: 1 / (1 + math.Exp(4)), 0.5: 0.5, 3: 1 / (1 + math.Exp(-3))} {
		m, err := openSource(source(clipNet(shift)), "")
		require.NoError(t, err)
		for _, f := range collect(t, m, make([]float32, 40000)) {
			assert.InDelta(t, want, f[300], 1e-6, "shift %v", shift)
		}
		require.NoError(t, m.Close())
	}
}

func TestRefusals(t *testing.T) {
	silero := onnxfile.NewGraph().Input("input", onnxfile.Float32, "B", 576).Input("state", onnxfile.Float32, 2, "B", 128)
	silero.Node("Identity", []string{"state"}, []string{"stateN"})
	silero.Output("stateN", onnxfile.Float32, 2, "B", 128)
	fewer := onnxfile.NewGraph().Input("waveform", onnxfile.Float32, "B", "samples")
	fewer.Node("Identity", []string{"waveform"}, []string{"probs"})
	fewer.Output("probs", onnxfile.Float32, "B", 50)
	for _, c := range []struct {
		name     string
		graph    *onnxfile.Graph
		contract string
		say      []string
	}{
		{"a voice detector", silero, "", []string{"tagger model made-up.onnx", "role tagger: expected one of ced, yamnet", "input float32[?,576]"}},
		{"50 classes", fewer, "", []string{"role tagger: expected one of ced, yamnet", "probs float32[?,50]"}},
		{"50 classes, contract given", fewer, models.ContractYAMNet, []string{"contract yamnet", "last dimension is 521"}},
		{"patches wanted", yamnetWave(false), models.ContractYAMNetPatches, []string{"[n,96,64]", "waveform float32"}},
		{"CED wanted", yamnetWave(false), models.ContractCED, []string{"[B,64,T]"}},
		{"no such contract", clipNet(0), "vggish", []string{`role tagger has no contract "vggish"`, models.ContractYAMNet}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := openSource(source(c.graph), c.contract)
			require.ErrorIs(t, err, ort.ErrContract)
			for _, s := range c.say {
				assert.ErrorContains(t, err, s)
			}
		})
	}
	_, err := openSource(ort.Source{Data: []byte("not a model"), Name: "x.onnx", Role: "tagger"}, "")
	assert.ErrorIs(t, err, ort.ErrInvalid)
}
