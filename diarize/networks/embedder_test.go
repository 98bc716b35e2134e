package networks

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/voices"
)

func TestMain(m *testing.M) { outside.Main(m) }

func needsRuntime(t testing.TB) {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
}

// frame is the index of the frame that the made-up networks return.
const frame = 7

// widen returns an 80 × dim matrix that copies its input to the first 80
// outputs.
func widen(bands, dim int) onnxfile.Tensor {
	w := make([]float32, bands*dim)
	for i := range bands {
		w[i*dim+i] = 1
	}
	return onnxfile.Floats([]int64{int64(bands), int64(dim)}, w...)
}

// featureNet returns a network whose output is frame 7 of its input [B,T,80],
// widened to dim numbers.
func featureNet(input, output string, dim int) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input(input, onnxfile.Float32, "B", "T", 80)
	row := g.Op("Gather", []string{input, g.Const(onnxfile.Ints(nil, frame))}, onnxfile.AttrInt("axis", 1))
	g.Node("MatMul", []string{row, g.Const(widen(80, dim))}, []string{output})
	return g.Output(output, onnxfile.Float32, "B", dim)
}

// nemoNet returns a network whose output is frame 7 of [B,bands,T] and, as the
// last number, the length.
func nemoNet(bands int, length onnxfile.Type) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", bands, "T").Input("length", length, "B")
	row := g.Op("Gather", []string{"audio_signal", g.Const(onnxfile.Ints(nil, frame))}, onnxfile.AttrInt("axis", 2))
	emb := g.Op("MatMul", []string{row, g.Const(widen(bands, 192))})
	count := g.Op("Unsqueeze", []string{g.Op("Cast", []string{"length"}, onnxfile.AttrInt("to", int64(onnxfile.Float32))), g.Const(onnxfile.Ints([]int64{1}, 1))})
	last := make([]float32, 192)
	last[191] = 1
	g.Node("Add", []string{emb, g.Op("Mul", []string{count, g.Const(onnxfile.Floats([]int64{1, 192}, last...))})}, []string{"embs"})
	g.Node("MatMul", []string{row, g.Const(widen(bands, 200))}, []string{"logits"})
	return g.Output("logits", onnxfile.Float32, "B", 200).Output("embs", onnxfile.Float32, "B", 192)
}

// waveNet returns a network whose output is the first 192 samples, times the
// relative length.
func waveNet(lens bool) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("wav", onnxfile.Float32, "B", "S")
	one := func(v int64) string { return g.Const(onnxfile.Ints([]int64{1}, v)) }
	head := g.Op("Slice", []string{"wav", one(0), one(192), one(1)})
	if lens {
		g.Input("lens", onnxfile.Float32, "B")
		head = g.Op("Mul", []string{head, g.Op("Unsqueeze", []string{"lens", one(1)})})
	}
	g.Node("Unsqueeze", []string{head, one(1)}, []string{"emb"})
	return g.Output("emb", onnxfile.Float32, "B", 1, 192)
}

func source(g *onnxfile.Graph) ort.Source {
	return ort.Source{Data: g.Bytes(), Name: "made-up.onnx", Role: "embedder"}
}

// sound returns noise that grows and changes color, so that every frame is
// different.
func sound(n int) []float32 {
	x := make([]float32, n)
	seed, last := uint32(3), float32(0)
	for i := range x {
		seed = seed*1664525 + 1013904223
		v := float32(seed>>8)/(1<<24) - 0.5
		last = last*float32(i%7000)/8000 + v
		x[i] = 0.05 * last * (1 + float32(i%16000)/8000)
	}
	return x
}

// unit returns v widened to dim numbers and scaled to unit length.
func unit(v []float32, dim int) []float32 {
	out := make([]float32, dim)
	copy(out, v)
	voices.Normalize(out)
	return out
}

// kaldiFrame returns the features of frame 7 as in wespeaker (hamming, 16-bit)
// or 3D-Speaker (povey, unit).
func kaldiFrame(x []float32, window dsp.Window, scale float32) []float32 {
	opt := dsp.DefaultFbankOptions()
	opt.Window, opt.Scale = window, scale
	bank := dsp.NewFbank(opt)
	rows := make([]float32, bank.Frames(len(x))*80)
	n := bank.Compute(rows, x)
	dsp.SubtractMean(rows, n, 80)
	return rows[frame*80 : (frame+1)*80]
}

func TestEachFamilyGetsItsFeatures(t *testing.T) {
	needsRuntime(t)
	nemoFrame := func(bands int) func(x []float32) []float32 {
		return func(x []float32) []float32 {
			mel := dsp.NewNeMoMel(bands)
			frames := mel.Frames(len(x))
			rows := make([]float32, frames*bands)
			mel.Compute(rows, x)
			dsp.NormalizePerFeature(rows, frames, bands)
			out := make([]float32, 192)
			copy(out, rows[frame*bands:(frame+1)*bands])
			out[191] = float32(frames)
			return out
		}
	}
	weSpeaker := func(x []float32) []float32 { return kaldiFrame(x, dsp.WindowHamming, 32768) }
	threeD := func(x []float32) []float32 { return kaldiFrame(x, dsp.WindowPovey, 1) }
	speechBrain := func(x []float32) []float32 {
		bank := dsp.NewSpeechbrainFbank(80)
		rows := make([]float32, bank.Frames(len(x))*80)
		dsp.SubtractMean(rows, bank.Compute(rows, x), 80)
		return rows[frame*80 : (frame+1)*80]
	}
	wave := func(x []float32) []float32 { return x[:192] }
	weighted := featureNet("fbank", "wide", 256) // as in community-1: each frame has a weight
	weighted.Input("weights", onnxfile.Float32, "B", "T")
	weighted.Node("Mul", []string{"wide", weighted.Op("ReduceMean", []string{"weights"}, onnxfile.AttrInts("axes", 1))}, []string{"embedding"})
	weighted.Output("embedding", onnxfile.Float32, "B", 256)
	onlyOne := featureNet("x", "wide", 192) // as published: the output's batch axis is a fixed 1
	onlyOne.Node("Reshape", []string{"wide", onlyOne.Const(onnxfile.Ints([]int64{2}, 1, 192))}, []string{"embedding"})
	onlyOne.Output("embedding", onnxfile.Float32, 1, 192)

	for _, c := range []struct {
		name     string
		graph    *onnxfile.Graph
		given    string
		contract string
		dim      int
		expect   func(x []float32) []float32
	}{
		{"wespeaker by metadata", featureNet("in", "out", 192).Meta("framework", "wespeaker"), "", models.ContractWeSpeaker, 192, weSpeaker},
		{"wespeaker by names", featureNet("feats", "embs", 192), "", models.ContractWeSpeaker, 192, weSpeaker},
		{"wespeaker of 256 numbers", featureNet("feats", "embs", 256), "", models.ContractWeSpeaker, 256, weSpeaker},
		{"3D-Speaker by metadata", featureNet("in", "out", 192).Meta("framework", "3d-speaker"), "", models.Contract3DSpeaker, 192, threeD},
		{"3D-Speaker, own exporter", featureNet("feature", "embedding", 192), "", models.Contract3DSpeaker, 192, threeD},
		{"3D-Speaker, k2-fsa", featureNet("x", "embedding", 512), "", models.Contract3DSpeaker, 512, threeD},
		{"3D-Speaker, batch of one", onlyOne, "", models.Contract3DSpeaker, 192, threeD},
		{"TitaNet", nemoNet(80, onnxfile.Int64), "", models.ContractNeMoSpeaker, 192, nemoFrame(80)},
		{"TitaNet, 32-bit length, 64 bands", nemoNet(64, onnxfile.Int32).Meta("framework", "nemo").Meta("feat_dim", "64"), "", models.ContractNeMoSpeaker, 192, nemoFrame(64)},
		{"speechbrain, given", featureNet("features", "out", 192), models.ContractSpeechBrain, models.ContractSpeechBrain, 192, speechBrain},
		{"wespeaker with weights", weighted, "", models.ContractWeSpeaker, 256, weSpeaker},
		{"wespeaker, given", featureNet("features", "out", 192), models.ContractWeSpeaker, models.ContractWeSpeaker, 192, weSpeaker},
		{"speechbrain, waveform", waveNet(true), "", models.ContractSpeechBrainWave, 192, wave},
		{"speechbrain, waveform without lengths", waveNet(false), "", models.ContractSpeechBrainWave, 192, wave},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := openEmbedder(source(c.graph), models.Model{Contract: c.given}, Options{Threads: 2})
			require.NoError(t, err)
			defer func() { assert.NoError(t, m.Close()) }()
			assert.Equal(t, c.contract, m.layout.contract)
			assert.Equal(t, c.dim, m.Dim())
			assert.Zero(t, m.SameSpeaker())
			pcm := audio.FromSamples(sound(30 * audio.SampleRate))
			// More windows than a batch, of two lengths, in mixed order.
			var windows []audio.Span
			for i := range 40 {
				start := i * 9001
				windows = append(windows, audio.Span{Start: start, End: start + 24000 - 4000*(i%2)})
			}
			got, err := m.Embed(t.Context(), pcm, windows)
			require.NoError(t, err)
			require.Len(t, got, len(windows))
			for i, w := range windows {
				want := unit(c.expect(pcm.Samples(w.Start, w.End)), c.dim)
				require.InDeltaSlice(t, want, got[i], 1e-5, "window %d", i)
			}
		})
	}
}

func TestShortLongAndSilentWindows(t *testing.T) {
	needsRuntime(t)
	m, err := openEmbedder(source(featureNet("feats", "embs", 192)), models.Model{SameSpeaker: 0.45}, Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	assert.Equal(t, 0.45, m.SameSpeaker())
	samples := sound(60 * audio.SampleRate)
	clear(samples[:32000])
	pcm := audio.FromSamples(samples)
	got, err := m.Embed(t.Context(), pcm, []audio.Span{
		{Start: 0, End: 24000},           // silence
		{Start: 40000, End: 40100},       // 6 ms
		{Start: 100000, End: 820000},     // 45 s: three pieces, averaged
		{Start: 40000, End: 40000 + 799}, // repeated to the minimum length
	})
	require.NoError(t, err)
	assert.Equal(t, make([]float32, 192), got[0])
	short := make([]float32, shortest)
	for i := range short {
		short[i] = samples[40000+i%100]
	}
	assert.InDeltaSlice(t, unit(kaldiFrame(short, dsp.WindowHamming, 32768), 192), got[1], 1e-5)
	mean := make([]float32, 192)
	for k := range 3 {
		for d, v := range unit(kaldiFrame(samples[100000+k*240000:100000+(k+1)*240000], dsp.WindowHamming, 32768), 192) {
			mean[d] += v
		}
	}
	voices.Normalize(mean)
	assert.InDeltaSlice(t, mean, got[2], 1e-5)

	for _, w := range []audio.Span{{Start: -1, End: 100}, {Start: 5, End: 5}, {Start: 0, End: pcm.Len() + 1}} {
		_, err := m.Embed(t.Context(), pcm, []audio.Span{w})
		assert.ErrorContains(t, err, "embedder model made-up.onnx: window 0")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Embed(ctx, pcm, []audio.Span{{Start: 40000, End: 64000}})
	assert.ErrorIs(t, err, context.Canceled)
	none, err := m.Embed(t.Context(), pcm, nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}

// TestPLDAFile: the file beside the network is read, and one for vectors of
// another size is refused.
func TestPLDAFile(t *testing.T) {
	needsRuntime(t)
	plda := func(dim int) models.File {
		zeros := strings.TrimSuffix(strings.Repeat("0,", dim), ",")
		text := fmt.Sprintf(`{"mean1":[%s],"lda":[%[1]s],"mean2":[0],"plda_mu":[0],"plda_tr":[1],"plda_psi":[1]}`, zeros)
		return models.File{Part: models.PartPLDA, Name: "plda.json", Data: func() ([]byte, error) { return []byte(text), nil }}
	}
	net := models.File{Part: models.PartModel, Name: "x.onnx", Data: func() ([]byte, error) { return featureNet("feats", "embs", 192).Bytes(), nil }}
	open := func(files ...models.File) (*Embedder, error) {
		return OpenEmbedder(&models.Model{Role: models.RoleEmbedder, Name: "x", Files: files}, Options{})
	}
	for brings, files := range map[bool][]models.File{false: {net}, true: {net, plda(192)}} {
		m, err := open(files...)
		require.NoError(t, err)
		assert.Equal(t, brings, m.PLDA() != nil)
		require.NoError(t, m.Close())
	}
	_, err := open(net, plda(256))
	require.ErrorContains(t, err, "embedder model x: plda.json: PLDA from 192 to 1 numbers: mean1: expected 192 numbers, found 256")
}

// TestFixedFrames: some exports take only one number of frames.
func TestFixedFrames(t *testing.T) {
	needsRuntime(t)
	g := onnxfile.NewGraph()
	g.Input("feats", onnxfile.Float32, "B", 200, 80)
	row := g.Op("Gather", []string{"feats", g.Const(onnxfile.Ints(nil, 199))}, onnxfile.AttrInt("axis", 1))
	g.Node("MatMul", []string{row, g.Const(widen(80, 192))}, []string{"embs"})
	g.Output("embs", onnxfile.Float32, "B", 192)
	m, err := openEmbedder(source(g), models.Model{}, Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	pcm := audio.FromSamples(sound(10 * audio.SampleRate))
	got, err := m.Embed(t.Context(), pcm, []audio.Span{{Start: 0, End: 12000}, {Start: 0, End: 24000}, {Start: 100, End: 80000}})
	require.NoError(t, err)
	for _, v := range got {
		var sq float64
		for _, x := range v {
			sq += float64(x) * float64(x)
		}
		assert.InDelta(t, 1, sq, 1e-5)
	}
}

func TestUnknownNetworksAreRefused(t *testing.T) {
	ambiguous := featureNet("input", "output", 192)
	recognizer := onnxfile.NewGraph().Input("audio_signal", onnxfile.Float32, "B", 80, "T").Input("length", onnxfile.Int64, "B")
	recognizer.Node("Identity", []string{"audio_signal"}, []string{"logprobs"})
	recognizer.Output("logprobs", onnxfile.Float32, "B", "T", 129)
	wideFeatures := onnxfile.NewGraph().Input("feats", onnxfile.Float32, "B", "T", 40)
	wideFeatures.Node("Identity", []string{"feats"}, []string{"embs"})
	wideFeatures.Output("embs", onnxfile.Float32, "B", 192)
	integers := onnxfile.NewGraph().Input("feats", onnxfile.Int64, "B", "T", 80)
	integers.Node("Identity", []string{"feats"}, []string{"embs"})
	integers.Output("embs", onnxfile.Int64, "B", 192)
	lies := featureNet("feats", "wide", 256)
	lies.Node("Identity", []string{"wide"}, []string{"embs"})
	lies.Output("embs", onnxfile.Float32, "B", "D").Meta("output_dim", "192")

	for _, c := range []struct {
		name  string
		graph *onnxfile.Graph
		given string
		say   []string
	}{
		{"several contracts fit", ambiguous, "", []string{"embedder model made-up.onnx", "features differ", "name the contract", "input float32[?,?,80]"}},
		{"a recognizer", recognizer, "", []string{"role embedder: expected one of 3d-speaker", "logprobs"}},
		{"40 bands", wideFeatures, "", []string{"contract wespeaker", "float32 input [B,T,80]", "feats float32[?,?,40]"}},
		{"integers", integers, models.ContractWeSpeaker, []string{"expected one float32 input", "int64"}},
		{"another contract given", featureNet("feats", "embs", 192), models.ContractNeMoSpeaker, []string{"contract nemo-speaker", "audio_signal", "feats"}},
		{"no such contract", featureNet("feats", "embs", 192), "x-vector", []string{`role embedder has no contract "x-vector"`, models.ContractWeSpeaker}},
		{"waveform wanted", featureNet("feats", "embs", 192), models.ContractSpeechBrainWave, []string{"wav float32[B,samples]"}},
		{"dimension not as stated", lies, "", []string{"expected 192 numbers", "found 256"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "dimension not as stated" {
				needsRuntime(t)
			}
			_, err := openEmbedder(source(c.graph), models.Model{Contract: c.given}, Options{})
			require.ErrorIs(t, err, ort.ErrContract)
			for _, s := range c.say {
				assert.ErrorContains(t, err, s)
			}
		})
	}
	_, err := openEmbedder(ort.Source{Data: []byte("not a model"), Name: "x.onnx", Role: "embedder"}, models.Model{}, Options{})
	assert.ErrorIs(t, err, ort.ErrInvalid)
	_, err = openEmbedder(source(ambiguous), models.Model{SameSpeaker: math.NaN()}, Options{})
	assert.ErrorContains(t, err, "same-speaker")
}
