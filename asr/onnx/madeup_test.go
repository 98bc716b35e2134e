package onnx

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// The made-up recognizers below know two sounds: a low tone is one token, a
// high tone another, anything else is blank. Their graphs are linear maps from
// the family's features to scores, so their output is right only if features,
// layout, lengths and subsampling are.

const lowTone, highTone = 500.0, 3000.0

// tones returns silence with tones, given as (start, end, Hz) in seconds. They
// fade over 30 ms, because a click would reach every band.
func tones(seconds float64, list ...[3]float64) []float32 {
	x := make([]float32, int(seconds*audio.SampleRate))
	for _, t := range list {
		for i := int(t[0] * audio.SampleRate); i < int(t[1]*audio.SampleRate); i++ {
			at := float64(i) / audio.SampleRate
			rise := math.Sin(math.Pi / 2 * min(1, (at-t[0])/0.03, (t[1]-at)/0.03))
			x[i] = float32(0.5 * rise * rise * math.Sin(2*math.Pi*t[2]*at))
		}
	}
	return x
}

// recording returns the tones "low high" twice, with a pause between.
func recording() *audio.PCM {
	return audio.FromSamples(tones(4.2, [3]float64{0.5, 0.8, lowTone}, [3]float64{1.1, 1.4, highTone}, [3]float64{2.6, 2.9, lowTone}, [3]float64{3.2, 3.5, highTone}))
}

var recordingSpeech = []audio.Span{{Start: 6400, End: 24000}, {Start: 40000, End: 57600}}

// loudestBand returns a tone's band in a matrix of features.
func loudestBand(rows []float32, bands, frames int) int {
	best, at := math.Inf(-1), 0
	for b := range bands {
		var s float64
		for f := range frames {
			s += float64(rows[f*bands+b])
		}
		if s > best {
			best, at = s, b
		}
	}
	return at
}

func fbankBands(o dsp.FbankOptions) (low, high int) {
	fb := dsp.NewFbank(o)
	for i, hz := range []float64{lowTone, highTone} {
		x := tones(0.5, [3]float64{0, 0.5, hz})
		rows := make([]float32, fb.Frames(len(x))*80)
		n := fb.Compute(rows, x)
		*[]*int{&low, &high}[i] = loudestBand(rows, 80, n)
	}
	return low, high
}

func nemoBands(bands int) (low, high int) {
	m := dsp.NewNeMoMel(bands)
	for i, hz := range []float64{lowTone, highTone} {
		x := tones(0.5, [3]float64{0, 0.5, hz})
		rows := make([]float32, m.Frames(len(x))*bands)
		n := m.Compute(rows, x)
		*[]*int{&low, &high}[i] = loudestBand(rows, bands, n)
	}
	return low, high
}

// script holds the ids of the tones and the blank in a vocabulary of v tokens.
type script struct{ v, blank, low, high int }

// weights returns the [dim, v] matrix and the bias row: the two tokens score
// the feature at their band, the blank scores level, and all others score far
// below.
func (s script) weights(dim, lowAt, highAt int, level float32) (w, bias onnxfile.Tensor) {
	m := make([]float32, dim*s.v)
	m[lowAt*s.v+s.low] = 1
	m[highAt*s.v+s.high] = 1
	b := make([]float32, s.v)
	for i := range b {
		b[i] = -1000
	}
	b[s.low], b[s.high], b[s.blank] = 0, 0, level
	return onnxfile.Floats([]int64{int64(dim), int64(s.v)}, m...), onnxfile.Floats([]int64{int64(s.v)}, b...)
}

func zeros(shape ...int64) onnxfile.Tensor {
	n, _ := onnxfile.Elements(shape)
	return onnxfile.Floats(shape, make([]float32, n)...)
}

func int32s(shape []int64, v ...int32) onnxfile.Tensor {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(x))
	}
	return onnxfile.RawTensor(onnxfile.Int32, shape, raw)
}

func ints(v ...int64) onnxfile.Tensor { return onnxfile.Ints([]int64{int64(len(v))}, v...) }

// everyNth returns each n-th row of [N,T,D].
func everyNth(g *onnxfile.Graph, x string, n int64) string {
	return g.Op("Slice", []string{x, g.Const(ints(0)), g.Const(ints(1 << 30)), g.Const(ints(1)), g.Const(ints(n))})
}

func scores(g *onnxfile.Graph, x string, w, bias onnxfile.Tensor) string {
	return g.Op("Add", []string{g.Op("MatMul", []string{x, g.Const(w)}), g.Const(bias)})
}

func jsonList(symbols []string) []byte {
	b, err := json.Marshal(symbols)
	if err != nil {
		panic(err)
	}
	return b
}

// sampleTokens is a list with blank 0, <sos/eos> 1, <unk> 2 and the two words.
const sampleTokens = "<blk> 0\n<sos/eos> 1\n<unk> 2\n▁ba 3\nna 4\n"

var sampleScript = script{v: 5, blank: 0, low: 3, high: 4}

// madeUpZipformer has icefall's ports; T' = ((T-7)/2+1)/2.
func madeUpZipformer(meta bool) *onnxfile.Graph {
	o := dsp.DefaultFbankOptions()
	o.SnipEdges, o.HighHz = false, -400
	low, high := fbankBands(o)
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
	w, bias := sampleScript.weights(80, low, high, -2)
	g.Node("LogSoftmax", []string{scores(g, everyNth(g, "x", 4), w, bias)}, []string{"log_probs"}, onnxfile.AttrInt("axis", -1))
	half := g.Op("Div", []string{g.Op("Sub", []string{"x_lens", g.Const(ints(7))}), g.Const(ints(2))})
	g.Node("Div", []string{g.Op("Add", []string{half, g.Const(ints(1))}), g.Const(ints(2))}, []string{"log_probs_len"})
	g.Output("log_probs", onnxfile.Float32, "N", "T4", 5).Output("log_probs_len", onnxfile.Int64, "N")
	if meta {
		g.Meta("model_type", "zipformer2_ctc").Meta("version", "1").Meta("model_author", "k2-fsa")
	}
	return g
}

// madeUpWeNet expects samples on the 16-bit scale, so its blank scores 20.8
// higher.
func madeUpWeNet() *onnxfile.Graph {
	o := dsp.DefaultFbankOptions()
	o.Scale = 32768
	low, high := fbankBands(o)
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, 1, "T", 80).Input("x_lens", onnxfile.Int64, 1)
	w, bias := sampleScript.weights(80, low, high, 18)
	g.Node("LogSoftmax", []string{scores(g, everyNth(g, "x", 4), w, bias)}, []string{"log_probs"}, onnxfile.AttrInt("axis", -1))
	g.Node("Div", []string{"x_lens", g.Const(ints(4))}, []string{"log_probs_lens"})
	g.Output("log_probs", onnxfile.Float32, 1, "T4", "V").Output("log_probs_lens", onnxfile.Int64, 1)
	return g.Meta("model_type", "wenet_ctc").Meta("subsampling_factor", "4").Meta("vocab_size", "5")
}

// senseTokens is a small list in SenseVoice's style.
var senseTokens = []string{
	"<unk>", "<s>", "</s>", "▁ba", "na", "<|zh|>", "<|en|>", "<|yue|>", "<|ja|>", "<|ko|>", "<|nospeech|>",
	"<|HAPPY|>", "<|Speech|>", "<|withitn|>", "<|woitn|>",
}

var senseScript = script{v: 15, blank: 0, low: 3, high: 4}

func numbered(symbols []string) []byte {
	var b strings.Builder
	for i, s := range symbols {
		fmt.Fprintf(&b, "%s %d\n", s, i)
	}
	return []byte(b.String())
}

// senseBands returns the places of the tones in the middle one of the seven
// stacked frames.
func senseBands() (low, high int) {
	o := dsp.DefaultFbankOptions()
	o.Window, o.Scale = dsp.WindowHamming, 32768
	low, high = fbankBands(o)
	return 3*80 + low, 3*80 + high
}

// sensePromptRows returns the first four rows for each language prompt 0 … 15.
func sensePromptRows() onnxfile.Tensor {
	v := senseScript.v
	m := make([]float32, 16*4*v)
	set := func(prompt, row, id int, x float32) { m[(prompt*4+row)*v+id] = x }
	heard := map[int]int{0: 6, 3: 5, 4: 6, 7: 7, 11: 8, 12: 9} // "auto" hears English
	for p := range 16 {
		if id, ok := heard[p]; ok {
			set(p, 0, id, 3)
		}
		set(p, 1, 11, 9)
		set(p, 2, 12, 9)
		set(p, 3, 13, 9)
	}
	return onnxfile.Floats([]int64{16, 4, int64(v)}, m...)
}

// cmvnMeta writes metadata with which (x + shift)·scale is (x - 18) / 10.
func cmvnMeta(g *onnxfile.Graph) *onnxfile.Graph {
	return g.Meta("neg_mean", strings.TrimSuffix(strings.Repeat("-18,", lfrDim), ",")).
		Meta("inv_stddev", strings.TrimSuffix(strings.Repeat("0.1,", lfrDim), ",")).
		Meta("lfr_window_size", "7").Meta("lfr_window_shift", "6")
}

func cmvnFile() sideFile {
	list := func(x string) string { return strings.Repeat(x+" ", lfrDim) }
	return sideFile{Name: "am.mvn", Data: []byte("<Nnet>\n<Splice> 560 560\n[ 0 ]\n<AddShift> 560 560\n<LearnRateCoef> 0 [ " + list("-18") +
		"]\n<Rescale> 560 560\n<LearnRateCoef> 0 [ " + list("0.1") + "]\n</Nnet>\n")}
}

// senseLogits returns raw scores, scaled up as the features are scaled down.
func senseLogits(g *onnxfile.Graph, x, language string) string {
	low, high := senseBands()
	w, bias := senseScript.weights(lfrDim, low, high, 0)
	speech := g.Op("Mul", []string{scores(g, x, w, bias), g.Const(onnxfile.Floats(nil, 10))})
	return g.Op("Concat", []string{g.Op("Gather", []string{g.Const(sensePromptRows()), language}, onnxfile.AttrInt("axis", 0)), speech}, onnxfile.AttrInt("axis", 1))
}

func madeUpSenseVoice() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", "T", lfrDim).Input("x_length", onnxfile.Int32, "N").Input("language", onnxfile.Int32, "N").Input("text_norm", onnxfile.Int32, "N")
	g.Node("Identity", []string{senseLogits(g, "x", "language")}, []string{"logits"})
	g.Output("logits", onnxfile.Float32, "N", "T4", 15)
	return cmvnMeta(g).Meta("model_type", "sense_voice_ctc").Meta("vocab_size", "15").Meta("lang_en", "4").Meta("with_itn", "14")
}

// madeUpSenseVoiceFunASR is FunASR's own export: other names, lengths as an
// output, no metadata.
func madeUpSenseVoiceFunASR() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("speech", onnxfile.Float32, "N", "T", lfrDim).Input("speech_lengths", onnxfile.Int32, "N").Input("language", onnxfile.Int32, "N").Input("textnorm", onnxfile.Int32, "N")
	g.Node("Identity", []string{senseLogits(g, "speech", "language")}, []string{"ctc_logits"})
	g.Node("Add", []string{"speech_lengths", g.Const(int32s([]int64{1}, 4))}, []string{"encoder_out_lens"})
	return g.Output("ctc_logits", onnxfile.Float32, "N", "T4", nil).Output("encoder_out_lens", onnxfile.Int32, "N")
}

// madeUpNeMo has no lengths among its outputs. Features are normalized, so the
// blank scores between tone and silence, and the scores are scaled up to the
// confidence of a trained network.
func madeUpNeMo(bands int, factor int64, meta bool) *onnxfile.Graph {
	low, high := nemoBands(bands)
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", bands, "T").Input("length", onnxfile.Int64, "B")
	rows := g.Op("Transpose", []string{"audio_signal"}, onnxfile.AttrInts("perm", 0, 2, 1))
	w, bias := script{v: 5, blank: 4, low: 2, high: 3}.weights(bands, low, high, 0.8)
	sure := g.Op("Mul", []string{scores(g, everyNth(g, rows, factor), w, bias), g.Const(onnxfile.Floats([]int64{1}, 8))})
	g.Node("LogSoftmax", []string{sure}, []string{"logprobs"}, onnxfile.AttrInt("axis", -1))
	g.Output("logprobs", onnxfile.Float32, "B", "T8", 5)
	if meta {
		g.Meta("model_type", "EncDecCTCModelBPE").Meta("vocab_size", "5").Meta("normalize_type", "per_feature").Meta("subsampling_factor", fmt.Sprint(factor))
	}
	return g
}

const nemoTokens = "<unk> 0\n▁x 1\n▁ba 2\nna 3\n<blk> 4\n"

// madeUpWaveform recognizes tones in samples [N,T] by their strength in each
// stretch of 320. Its blank scores half the strength of a recording's tones at
// input level.
func madeUpWaveform(input string, mask bool, level float32) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Node("Identity", []string{waveformScores(g, input, mask, level)}, []string{"logits"})
	return g.Output("logits", onnxfile.Float32, "batch_size", "frames", 5)
}

// madeUpWaveformLengths has onnx-asr's layout: it takes the lengths of the
// samples and returns logarithms.
func madeUpWaveformLengths() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	x := waveformScores(g, "input_values", false, rawTones)
	g.Input("input_lengths", onnxfile.Int64, "batch_size")
	g.Node("LogSoftmax", []string{x}, []string{"logprobs"}, onnxfile.AttrInt("axis", -1))
	return g.Output("logprobs", onnxfile.Float32, "batch_size", "frames", 5)
}

func waveformScores(g *onnxfile.Graph, input string, mask bool, level float32) string {
	g.Input(input, onnxfile.Float32, "batch_size", "sequence_length")
	if mask {
		g.Input("attention_mask", onnxfile.Int64, "batch_size", "sequence_length")
	}
	waves := make([]float32, 0, 4*waveformStride)
	for _, hz := range []float64{lowTone, highTone} {
		for _, phase := range []float64{0, math.Pi / 2} {
			for i := range waveformStride {
				waves = append(waves, float32(math.Sin(2*math.Pi*hz*float64(i)/audio.SampleRate+phase)))
			}
		}
	}
	x := g.Op("Unsqueeze", []string{input, g.Const(ints(1))})
	x = g.Op("Conv", []string{x, g.Const(onnxfile.Floats([]int64{4, 1, waveformStride}, waves...))}, onnxfile.AttrInts("strides", waveformStride))
	x = g.Op("Transpose", []string{g.Op("Mul", []string{x, x})}, onnxfile.AttrInts("perm", 0, 2, 1))
	w, bias := make([]float32, 4*5), []float32{level, -1e9, -1e9, 0, 0}
	w[0*5+3], w[1*5+3], w[2*5+4], w[3*5+4] = 1, 1, 1, 1
	return scores(g, x, onnxfile.Floats([]int64{4, 5}, w...), onnxfile.Floats([]int64{5}, bias...))
}

// waveformTokens is a vocab.json. raw and normalized are half the tones'
// strength squared, as recorded and at variance 1.
const (
	waveformTokens              = `{"<pad>": 0, "<s>": 1, "<unk>": 2, "|ba": 3, "na": 4}`
	rawTones, normalizedTones   = 40 * 40, 130 * 130
	rawPreprocessor             = `{"do_normalize": false, "sampling_rate": 16000}`
	normalizingPreprocessor     = `{"do_normalize": true, "feature_extractor_type": "Wav2Vec2FeatureExtractor"}`
	omnilingualTokens           = "<s> 0\n<pad> 1\n</s> 2\n ba 3\nna 4\n"
	preprocessorName, vocabName = "preprocessor_config.json", "vocab.json"
)

// madeUpEncoder scores low tone, high tone and blank in three channels.
func madeUpEncoder(meta bool) *onnxfile.Graph {
	low, high := nemoBands(128)
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", 128, "T").Input("length", onnxfile.Int64, "B")
	rows := g.Op("Transpose", []string{"audio_signal"}, onnxfile.AttrInts("perm", 0, 2, 1))
	w, bias := script{v: 5, blank: 4, low: 2, high: 3}.weights(128, low, high, 0.8)
	g.Node("Transpose", []string{scores(g, everyNth(g, rows, 8), w, bias)}, []string{"outputs"}, onnxfile.AttrInts("perm", 0, 2, 1))
	g.Node("Div", []string{g.Op("Add", []string{"length", g.Const(ints(7))}), g.Const(ints(8))}, []string{"encoded_lengths"})
	g.Output("outputs", onnxfile.Float32, "B", 5, "T8").Output("encoded_lengths", onnxfile.Int64, "B")
	if meta {
		g.Meta("model_type", "EncDecRNNTBPEModel").Meta("vocab_size", "4").Meta("normalize_type", "per_feature").
			Meta("subsampling_factor", "8").Meta("feat_dim", "128").Meta("pred_rnn_layers", "2").Meta("pred_hidden", "6")
	}
	return g
}

// predict adds the prediction network. It forbids its last token, so that a
// long tone is one token, and counts its steps in a state. ▁x and ▁ba, which
// fit the same tone, forbid each other.
func predict(g *onnxfile.Graph, stateIn, stateOut [2]string) string {
	forbid := make([]float32, 5*5)
	for i := range 4 {
		forbid[i*5+i] = -500
	}
	forbid[1*5+2], forbid[2*5+1] = -500, -500
	row := g.Op("Gather", []string{g.Const(onnxfile.Floats([]int64{5, 5}, forbid...)), "targets"}, onnxfile.AttrInt("axis", 0)) // [B,1,5]
	for i := range 2 {
		g.Node("Add", []string{stateIn[i], g.Const(onnxfile.Floats(nil, 1))}, []string{stateOut[i]})
	}
	g.Node("Identity", []string{"target_length"}, []string{"prednet_lengths"})
	return g.Op("Transpose", []string{row}, onnxfile.AttrInts("perm", 0, 2, 1)) // [B,5,1]
}

// joint adds up encoder and predictor. durations are the scores of 0 … 4
// frames, none for RNN-T.
func joint(g *onnxfile.Graph, enc, dec string, durations []float32) {
	sum := g.Op("Transpose", []string{g.Op("Add", []string{enc, dec})}, onnxfile.AttrInts("perm", 0, 2, 1)) // [B,1,5]
	if durations != nil {
		sum = g.Op("Concat", []string{sum, g.Const(onnxfile.Floats([]int64{1, 1, int64(len(durations))}, durations...))}, onnxfile.AttrInt("axis", 2))
	}
	g.Node("Unsqueeze", []string{sum, g.Const(ints(1))}, []string{"outputs"})
	g.Output("outputs", onnxfile.Float32, "B", 1, 1, nil)
}

func madeUpDecoder() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("targets", onnxfile.Int32, "B", 1).Input("target_length", onnxfile.Int32, "B")
	g.Input("states.1", onnxfile.Float32, 2, "B", 6).Input("onnx::LSTM_3", onnxfile.Float32, nil, nil, nil)
	dec := predict(g, [2]string{"states.1", "onnx::LSTM_3"}, [2]string{"new.1", "new.2"})
	g.Node("Identity", []string{dec}, []string{"outputs"})
	return g.Output("outputs", onnxfile.Float32, "B", 5, 1).Output("prednet_lengths", onnxfile.Int32, "B").
		Output("new.1", onnxfile.Float32, 2, "B", 6).Output("new.2", onnxfile.Float32, nil, nil, nil)
}

func madeUpJoiner(durations []float32) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("encoder_outputs", onnxfile.Float32, "B", 5, 1).Input("decoder_outputs", onnxfile.Float32, "B", 5, 1)
	joint(g, "encoder_outputs", "decoder_outputs", durations)
	return g
}

func madeUpDecoderJoint(durations []float32) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("encoder_outputs", onnxfile.Float32, "B", 5, 1).Input("targets", onnxfile.Int32, "B", 1).Input("target_length", onnxfile.Int32, "B")
	g.Input("input_states_1", onnxfile.Float32, 2, "B", 6).Input("input_states_2", onnxfile.Float32, 2, "B", 6)
	dec := predict(g, [2]string{"input_states_1", "input_states_2"}, [2]string{"output_states_1", "output_states_2"})
	joint(g, "encoder_outputs", dec, durations)
	return g.Output("prednet_lengths", onnxfile.Int32, "B").Output("output_states_1", onnxfile.Float32, 2, "B", 6).Output("output_states_2", onnxfile.Float32, 2, "B", 6)
}

// paraformerTokens has Han characters, a word of letters in two pieces and a
// plain one.
var paraformerTokens = []string{"<blank>", "<s>", "</s>", "你", "好", "he@@", "llo", "go", "<unk>"}

// madeUpParaformer writes 你好 hello go, then the end. With peaks it also returns
// times: a peak at every fifth entry, one more than there are tokens.
func madeUpParaformer(frames int, peaks bool) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("speech", onnxfile.Float32, 1, "T", lfrDim).Input("speech_lengths", onnxfile.Int32, 1)
	ids := []int{3, 4, 5, 6, 7, 2}
	if peaks {
		ids = ids[:5]
	}
	m := make([]float32, len(ids)*9)
	for i, id := range ids {
		m[i*9+id] = 6
	}
	// The graph reads the speech but ignores it.
	nothing := g.Op("Mul", []string{g.Op("ReduceMean", []string{"speech"}, onnxfile.AttrInt("keepdims", 0)), g.Const(onnxfile.Floats(nil, 0))})
	g.Node("LogSoftmax", []string{g.Op("Add", []string{g.Const(onnxfile.Floats([]int64{1, int64(len(ids)), 9}, m...)), nothing})}, []string{"logits"}, onnxfile.AttrInt("axis", -1))
	g.Node("Add", []string{g.Op("Mul", []string{"speech_lengths", g.Const(int32s([]int64{1}, 0))}), g.Const(int32s([]int64{1}, int32(len(ids))))}, []string{"token_num"})
	g.Output("logits", onnxfile.Float32, 1, "U", 9).Output("token_num", onnxfile.Int32, 1)
	if peaks {
		p := make([]float32, 3*frames)
		for i := range p {
			p[i] = 0.5
			if i%5 == 4 && i/5 <= 5 {
				p[i] = 1
			}
		}
		g.Node("Identity", []string{g.Const(onnxfile.Floats([]int64{1, int64(len(p))}, p...))}, []string{"us_cif_peak"})
		g.Output("us_cif_peak", onnxfile.Float32, 1, nil)
	}
	return cmvnMeta(g).Meta("model_type", "paraformer").Meta("vocab_size", "9")
}

func source(g *onnxfile.Graph, name string) ort.Source {
	return ort.Source{Data: g.Bytes(), Name: name, Role: "optimized"}
}
