package tag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

func TestMain(m *testing.M) { outside.Main(m) }

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

// waveNet returns the first and the last sample of every row of [B,samples] as
// its classes 20 and 21.
func waveNet(g *onnxfile.Graph, input string, classes int) (scores string) {
	first := g.Op("Slice", []string{input, one(g, 0), one(g, 1), one(g, 1)})
	last := g.Op("Slice", []string{input, one(g, -1), one(g, math.MaxInt32), one(g, 1)})
	both := g.Op("Concat", []string{first, last}, onnxfile.AttrInt("axis", 1))
	return g.Op("MatMul", []string{both, g.Const(spread(2, 20, classes))})
}

func panns(fixed any) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("waveform", onnxfile.Float32, "B", fixed)
	g.Node("Relu", []string{waveNet(g, "waveform", 527)}, []string{"clipwise_output"}) // scores are never negative
	g.Node("Identity", []string{"waveform"}, []string{"embedding"})
	return g.Output("embedding", onnxfile.Float32, "B", 2048).Output("clipwise_output", onnxfile.Float32, "B", 527)
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

// TestPANNsWindows checks windows of two seconds every second, at both sample
// rates; the signal reveals which samples the network received.
func TestPANNsWindows(t *testing.T) {
	needsRuntime(t)
	for _, c := range []struct {
		name    string
		graph   *onnxfile.Graph
		opt     config
		rate    int
		window  float64
		seconds float64
		frames  int
	}{
		{"32 kHz is the rule", panns("samples"), config{}, 32000, 2, 12.5, 12},
		{"16 kHz by option", panns("samples"), config{SampleRate: 16000}, 16000, 2, 12.5, 12},
		{"16 kHz by metadata", panns("samples").Meta("sample_rate", "16000"), config{Threads: 3}, 16000, 2, 30, 29},
		{"three seconds fixed", panns(96000), config{}, 32000, 3, 12.5, 11},
		{"one second fixed", panns(16000), config{SampleRate: 16000}, 16000, 1, 3, 3},
		{"shorter than a window", panns("samples"), config{}, 32000, 2, 0.4, 1},
		{"44.1 kHz", panns("samples"), config{SampleRate: 44100, Contract: models.ContractPANNs}, 44100, 2, 5, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := openSource(source(c.graph), c.opt)
			require.NoError(t, err)
			defer func() { assert.NoError(t, m.Close()) }()
			assert.Equal(t, models.ContractPANNs, m.layout.contract)
			assert.Equal(t, c.rate, m.plan.rate)
			assert.Equal(t, events.Grid{Window: c.window, Hop: 1}, m.Grid())
			samples := ramp(int(c.seconds * audio.SampleRate))
			frames := collect(t, m, samples)
			require.Len(t, frames, c.frames)
			first, last := at(t, 20), at(t, 21)
			for i, f := range frames {
				if i > 0 { // the resampler rings at the very first sample
					assert.InDelta(t, float64(i)/100, f[first], 2e-5, "frame %d begins", i)
				}
				if end := float64(i) + c.window - 1/float64(c.rate); end < c.seconds-0.01 {
					assert.InDelta(t, end/100, f[last], 2e-5, "frame %d ends", i)
				} else if end > c.seconds+0.01 {
					assert.Zero(t, f[last], "zeros after the end")
				}
			}
		})
	}
}

// TestFramesAreScoredInLongWindows checks that a network that scores frames of
// 10 ms is evaluated in whole seconds.
func TestFramesAreScoredInLongWindows(t *testing.T) {
	needsRuntime(t)
	g := onnxfile.NewGraph()
	g.Input("waveform", onnxfile.Float32, "B", "samples")
	// One frame per 160 samples: the mean of each, as class 20.
	frames := g.Op("Reshape", []string{"waveform", g.Const(onnxfile.Ints([]int64{3}, 0, -1, 160))})
	mean := g.Op("ReduceMean", []string{frames}, onnxfile.AttrInts("axes", 2), onnxfile.AttrInt("keepdims", 1))
	g.Node("Relu", []string{g.Op("MatMul", []string{mean, g.Const(spread(1, 20, 527))})}, []string{"framewise_output"})
	g.Node("ReduceMax", []string{"framewise_output"}, []string{"clipwise_output"}, onnxfile.AttrInts("axes", 1), onnxfile.AttrInt("keepdims", 0))
	g.Output("clipwise_output", onnxfile.Float32, "B", 527).Output("framewise_output", onnxfile.Float32, "B", "F", 527)
	for _, threads := range []int{1, 2} {
		m, err := openSource(source(g), config{SampleRate: 16000, Threads: threads})
		require.NoError(t, err)
		for _, length := range []float64{0.5, 3, 9.5, 10, 10.5, 18, 18.5, 27.3} {
			frames := collect(t, m, ramp(int(length*audio.SampleRate)))
			require.Len(t, frames, int(math.Ceil(length)), "%v s", length)
			for i, f := range frames {
				assert.InDelta(t, min(float64(i)+1, length)/100, f[at(t, 20)], 2e-4, "second %d of %v", i, length)
			}
		}
		assert.Equal(t, events.Grid{Window: 1, Hop: 1}, m.Grid())
		require.NoError(t, m.Close())
	}
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
		m, err := openSource(source(yamnetWave(batch)), config{})
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
	m, err := openSource(source(g), config{})
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
	m, err := openSource(source(g), config{Threads: 2})
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

func TestCEDAndZipformer(t *testing.T) {
	needsRuntime(t)
	ced := onnxfile.NewGraph()
	ced.Input("feats", onnxfile.Float32, "B", 64, "T")
	mel := ced.Op("Gather", []string{"feats", ced.Const(onnxfile.Ints(nil, 9))}, onnxfile.AttrInt("axis", 2))
	mel = ced.Op("Add", []string{ced.Op("Mul", []string{mel, ced.Const(onnxfile.Floats(nil, 0.005))}), ced.Const(onnxfile.Floats(nil, 0.5))})
	ced.Node("MatMul", []string{mel, ced.Const(spread(64, 34, 527))}, []string{"prob"})
	ced.Output("prob", onnxfile.Float32, "B", 527)

	zip := onnxfile.NewGraph()
	zip.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
	bank := zip.Op("Gather", []string{"x", zip.Const(onnxfile.Ints(nil, 9))}, onnxfile.AttrInt("axis", 1))
	bank = zip.Op("Add", []string{zip.Op("Mul", []string{bank, zip.Const(onnxfile.Floats(nil, 0.02))}), zip.Const(onnxfile.Floats(nil, 0.5))})
	count := zip.Op("Unsqueeze", []string{zip.Op("Mul", []string{zip.Op("Cast", []string{"x_lens"}, onnxfile.AttrInt("to", int64(onnxfile.Float32))), zip.Const(onnxfile.Floats(nil, 0.001))}), one(zip, 1)})
	zip.Node("MatMul", []string{zip.Op("Concat", []string{bank, count}, onnxfile.AttrInt("axis", 1)), zip.Const(spread(81, 34, 527))}, []string{"logits"})
	zip.Output("logits", onnxfile.Float32, "N", 527).Meta("model_type", "zipformer2")

	x := noise(7 * audio.SampleRate)
	window := func(i int) []float32 { return x[i*audio.SampleRate : (i+2)*audio.SampleRate] }
	for _, c := range []struct {
		contract string
		graph    *onnxfile.Graph
		check    func(i int, f []float32)
	}{
		{models.ContractCED, ced, func(i int, f []float32) {
			m := dsp.NewCEDMel()
			rows := make([]float32, m.Frames(2*audio.SampleRate)*64)
			m.Compute(rows, window(i))
			for b := range 64 {
				require.InDelta(t, rows[9*64+b]*0.005+0.5, f[at(t, 34+b)], 1e-5)
			}
		}},
		{models.ContractZipformerTagger, zip, func(i int, f []float32) {
			opt := dsp.DefaultFbankOptions()
			opt.SnipEdges, opt.HighHz = false, -400
			m := dsp.NewFbank(opt)
			rows := make([]float32, m.Frames(2*audio.SampleRate)*80)
			m.Compute(rows, window(i))
			for b := range 80 {
				require.InDelta(t, rows[9*80+b]*0.02+0.5, f[at(t, 34+b)], 1e-5)
			}
			require.InDelta(t, 0.2, f[at(t, 34+80)], 1e-6, "200 frames")
		}},
	} {
		t.Run(c.contract, func(t *testing.T) {
			m, err := openSource(source(c.graph), config{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, m.Close()) }()
			assert.Equal(t, c.contract, m.layout.contract)
			frames := collect(t, m, x)
			require.Len(t, frames, 6)
			for i, f := range frames {
				c.check(i, f)
			}
		})
	}
}

// TestLogitsGetTheSigmoid checks that an export without a sigmoid is detected
// by scores outside [0,1].
func TestLogitsGetTheSigmoid(t *testing.T) {
	needsRuntime(t)
	build := func(shift float32) *onnxfile.Graph {
		g := onnxfile.NewGraph()
		g.Input("waveform", onnxfile.Float32, "B", "samples")
		g.Node("Add", []string{waveNet(g, "waveform", 527), g.Const(onnxfile.Floats(nil, shift))}, []string{"clipwise_output"})
		return g.Output("clipwise_output", onnxfile.Float32, "B", 527)
	}
	for shift, want := range map[float32]float64{-4: 1 / (1 + math.Exp(4)), 0.5: 0.5, 3: 1 / (1 + math.Exp(-3))} {
		m, err := openSource(source(build(shift)), config{SampleRate: 16000})
		require.NoError(t, err)
		for _, f := range collect(t, m, make([]float32, 40000)) {
			assert.InDelta(t, want, f[300], 1e-6, "shift %v", shift)
		}
		require.NoError(t, m.Close())
	}
}

func TestUnknownTaggersAreRefused(t *testing.T) {
	silero := onnxfile.NewGraph().Input("input", onnxfile.Float32, "B", 576).Input("state", onnxfile.Float32, 2, "B", 128)
	silero.Node("Identity", []string{"state"}, []string{"stateN"})
	silero.Output("stateN", onnxfile.Float32, 2, "B", 128)
	fewer := onnxfile.NewGraph().Input("waveform", onnxfile.Float32, "B", "samples")
	fewer.Node("Identity", []string{"waveform"}, []string{"probs"})
	fewer.Output("probs", onnxfile.Float32, "B", 50)
	for _, c := range []struct {
		name  string
		graph *onnxfile.Graph
		opt   config
		say   []string
	}{
		{"a voice detector", silero, config{}, []string{"tagger model made-up.onnx", "role tagger: expected one of ced, panns", "input float32[?,576]"}},
		{"50 classes", fewer, config{}, []string{"role tagger: expected one of ced, panns", "probs float32[?,50]"}},
		{"50 classes, contract given", fewer, config{Contract: models.ContractPANNs}, []string{"contract panns", "last dimension is 527"}},
		{"patches wanted", panns("samples"), config{Contract: models.ContractYAMNetPatches}, []string{"[n,96,64]", "waveform float32"}},
		{"CED wanted", panns("samples"), config{Contract: models.ContractCED}, []string{"[B,64,T]"}},
		{"Zipformer wanted", panns("samples"), config{Contract: models.ContractZipformerTagger}, []string{"x_lens"}},
		{"no such contract", panns("samples"), config{Contract: "vggish"}, []string{`role tagger has no contract "vggish"`, models.ContractYAMNet}},
		{"a rate that YAMNet has not", yamnetWave(false), config{SampleRate: 32000}, []string{"16000 Hz", "32000"}},
		{"a rate that is none", panns("samples"), config{SampleRate: 5}, []string{"sample rate between 4000 and 192000 Hz, found 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := openSource(source(c.graph), c.opt)
			require.ErrorIs(t, err, ort.ErrContract)
			for _, s := range c.say {
				assert.ErrorContains(t, err, s)
			}
		})
	}
	_, err := openSource(ort.Source{Data: []byte("not a model"), Name: "x.onnx", Role: "tagger"}, config{})
	assert.ErrorIs(t, err, ort.ErrInvalid)
}
