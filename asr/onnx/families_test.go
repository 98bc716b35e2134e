//go:build families

package onnx

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/modeltest"
)

// The graphs below have random weights with the ports and metadata of the
// published families. The same sound is fed to Otograph and to sherpa-onnx
// (make test-families installs it from npm). Where the two front ends differ, a
// third one, written from the definition in double precision, decides.

const familySymbols = 24

// family is one case: its files, sherpa-onnx's name for the kind, and the
// comparison's expectations.
type family struct {
	kind  string
	files map[string]*onnxfile.Graph
	list  []string
	// truth computes the features from their definition; nil if sherpa-onnx
	// computes the same.
	truth func(x []float64) ([]float32, int)
	// differs is the reason why sherpa-onnx may find other tokens, "" if it
	// must not.
	differs string
	// later is the delay of sherpa-onnx's times in seconds.
	later float64
}

func random(r *rand.Rand, scale float64, shape ...int64) onnxfile.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return onnxfile.Floats(shape, randomFloats(r, int(n), scale)...)
}

// randomScores returns rows of scores: a strided convolution of x [N,T,dim],
// tanh, and a projection that is sharp and favors the blank.
func randomScores(g *onnxfile.Graph, r *rand.Rand, x string, dim, stride, v, blank int, shift, gain float64) string {
	return projected(g, r, x, dim, stride, v, blank, shift, gain, scores)
}

func projected(g *onnxfile.Graph, r *rand.Rand, x string, dim, stride, v, blank int, shift, gain float64, to project) string {
	const hidden = 24
	x = g.Op("Mul", []string{g.Op("Add", []string{x, g.Const(onnxfile.Floats(nil, float32(shift)))}), g.Const(onnxfile.Floats(nil, float32(gain)))})
	x = g.Op("Transpose", []string{x}, onnxfile.AttrInts("perm", 0, 2, 1))
	w := random(r, 1.6/math.Sqrt(float64(dim*stride)), hidden, int64(dim), int64(stride))
	x = g.Op("Conv", []string{x, g.Const(w)}, onnxfile.AttrInts("kernel_shape", int64(stride)), onnxfile.AttrInts("strides", int64(stride)), onnxfile.AttrInts("pads", 0, int64(stride-1)))
	x = g.Op("Transpose", []string{g.Op("Tanh", []string{x})}, onnxfile.AttrInts("perm", 0, 2, 1))
	bias := make([]float32, v)
	if blank >= 0 {
		bias[blank] = 10
	}
	return to(g, x, random(r, 12, hidden, int64(v)), onnxfile.Floats([]int64{int64(v)}, bias...))
}

// toFloat, toUint8 and toHalf are ONNX's numbers of the data types that scores8
// and scores16 convert to.
const toFloat, toUint8, toHalf = 1, 2, 10

// scores8 computes scores with 8-bit weights, as onnxruntime's quantize_dynamic
// writes them.
func scores8(g *onnxfile.Graph, x string, w, bias onnxfile.Tensor) string {
	step, zero := g.Const(onnxfile.Floats(nil, 0.4)), g.Op("Cast", []string{g.Const(int32s(nil, 128))}, onnxfile.AttrInt("to", toUint8))
	weights := g.Op("QuantizeLinear", []string{g.Const(w), step, zero})
	g.Node("DynamicQuantizeLinear", []string{x}, []string{"q", "q_scale", "q_zero"})
	y := g.Op("Cast", []string{g.Op("MatMulInteger", []string{"q", weights, "q_zero", zero})}, onnxfile.AttrInt("to", toFloat))
	return g.Op("Add", []string{g.Op("Mul", []string{y, g.Op("Mul", []string{"q_scale", step})}), g.Const(bias)})
}

// scores16 computes scores with half-precision weights between single-precision
// ports.
func scores16(g *onnxfile.Graph, x string, w, bias onnxfile.Tensor) string {
	half := func(x string) string { return g.Op("Cast", []string{x}, onnxfile.AttrInt("to", toHalf)) }
	y := g.Op("Cast", []string{g.Op("MatMul", []string{half(x), half(g.Const(w))})}, onnxfile.AttrInt("to", toFloat))
	return g.Op("Add", []string{y, g.Const(bias)})
}

type project func(g *onnxfile.Graph, x string, w, bias onnxfile.Tensor) string

func randomFrames(r *rand.Rand, meta, counts string, shift float64, to project) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
	g.Node("LogSoftmax", []string{projected(g, r, "x", 80, 4, familySymbols, 0, shift, 0.25, to)}, []string{"log_probs"}, onnxfile.AttrInt("axis", -1))
	g.Node("Div", []string{g.Op("Add", []string{"x_lens", g.Const(ints(3))}), g.Const(ints(4))}, []string{counts})
	return g.Output("log_probs", onnxfile.Float32, "N", "T2", familySymbols).Output(counts, onnxfile.Int64, "N").
		Meta("model_type", meta).Meta("version", "1").Meta("model_author", "k2-fsa").Meta("subsampling_factor", "4").Meta("vocab_size", fmt.Sprint(familySymbols))
}

func randomNeMo(r *rand.Rand) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", 80, "T").Input("length", onnxfile.Int64, "B")
	x := g.Op("Transpose", []string{"audio_signal"}, onnxfile.AttrInts("perm", 0, 2, 1))
	g.Node("LogSoftmax", []string{randomScores(g, r, x, 80, 4, familySymbols, familySymbols-1, 0, 1)}, []string{"logprobs"}, onnxfile.AttrInt("axis", -1))
	return g.Output("logprobs", onnxfile.Float32, "B", "T2", familySymbols).Meta("model_type", "EncDecCTCModelBPE").Meta("version", "1").
		Meta("vocab_size", fmt.Sprint(familySymbols-1)).Meta("normalize_type", "per_feature").Meta("subsampling_factor", "4")
}

func randomCMVN(g *onnxfile.Graph, kind string) *onnxfile.Graph {
	return g.Meta("neg_mean", strings.TrimSuffix(strings.Repeat("-11.5,", lfrDim), ",")).Meta("inv_stddev", strings.TrimSuffix(strings.Repeat("0.22,", lfrDim), ",")).
		Meta("lfr_window_size", "7").Meta("lfr_window_shift", "6").Meta("model_type", kind).Meta("version", "1").Meta("vocab_size", fmt.Sprint(familySymbols))
}

// randomSenseVoice writes the tags of English before the tokens.
func randomSenseVoice(r *rand.Rand) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", "T", lfrDim).Input("x_length", onnxfile.Int32, "N").Input("language", onnxfile.Int32, "N").Input("text_norm", onnxfile.Int32, "N")
	tags := make([]float32, 4*familySymbols)
	for i, id := range []int{4, 7, 8, 9} {
		tags[i*familySymbols+id] = 400
	}
	used := g.Op("Cast", []string{g.Op("Add", []string{"x_length", g.Op("Add", []string{"language", "text_norm"})})}, onnxfile.AttrInt("to", 1))
	used = g.Op("Unsqueeze", []string{g.Op("Mul", []string{used, g.Const(onnxfile.Floats(nil, 0))}), g.Const(ints(1, 2))})
	y := g.Op("Concat", []string{g.Const(onnxfile.Floats([]int64{1, 4, familySymbols}, tags...)), randomScores(g, r, "x", lfrDim, 1, familySymbols, 0, 0, 1)}, onnxfile.AttrInt("axis", 1))
	g.Node("Add", []string{y, used}, []string{"logits"})
	g.Output("logits", onnxfile.Float32, "N", "T4", familySymbols)
	for i, l := range []string{"auto", "zh", "en", "yue", "ja", "ko", "nospeech"} {
		g.Meta("lang_"+l, fmt.Sprint([]int{0, 3, 4, 7, 11, 12, 13}[i]))
	}
	return randomCMVN(g, "sense_voice_ctc").Meta("normalize_samples", "0").Meta("with_itn", "14").Meta("without_itn", "15")
}

// randomParaformer writes a token every fifth frame and returns its time.
func randomParaformer(r *rand.Rand) *onnxfile.Graph {
	const every = 5
	g := onnxfile.NewGraph()
	g.Input("speech", onnxfile.Float32, "B", "T", lfrDim).Input("speech_lengths", onnxfile.Int32, "B")
	g.Node("LogSoftmax", []string{randomScores(g, r, "speech", lfrDim, every, familySymbols, -1, 0, 1)}, []string{"logits"}, onnxfile.AttrInt("axis", -1))
	count := g.Op("Cast", []string{g.Op("Gather", []string{g.Op("Shape", []string{"logits"}), g.Const(onnxfile.Ints(nil, 1))}, onnxfile.AttrInt("axis", 0))}, onnxfile.AttrInt("to", 6))
	g.Node("Add", []string{g.Op("Mul", []string{"speech_lengths", g.Const(int32s(nil, 0))}), count}, []string{"token_num"})
	frames := g.Op("Gather", []string{g.Op("Shape", []string{"speech"}), g.Const(onnxfile.Ints(nil, 1))}, onnxfile.AttrInt("axis", 0))
	entries := g.Op("Mul", []string{frames, g.Const(onnxfile.Ints(nil, 3))})
	at := g.Op("Range", []string{g.Const(onnxfile.Ints(nil, 0)), entries, g.Const(onnxfile.Ints(nil, 1))})
	peak := g.Op("Equal", []string{g.Op("Mod", []string{at, g.Const(onnxfile.Ints(nil, 3*every))}), g.Const(onnxfile.Ints(nil, 4))})
	last := g.Op("Equal", []string{at, g.Op("Sub", []string{entries, g.Const(onnxfile.Ints(nil, 1))})})
	peaks := g.Op("Cast", []string{g.Op("Or", []string{peak, last})}, onnxfile.AttrInt("to", 1))
	g.Node("Unsqueeze", []string{peaks, g.Const(ints(0))}, []string{"us_cif_peak"})
	g.Node("Mul", []string{"us_cif_peak", g.Const(onnxfile.Floats(nil, 0.5))}, []string{"us_alphas"})
	g.Output("logits", onnxfile.Float32, "B", "U", familySymbols).Output("token_num", onnxfile.Int32, "B")
	return randomCMVN(g.Output("us_alphas", onnxfile.Float32, "B", "P").Output("us_cif_peak", onnxfile.Float32, "B", "P"), "paraformer")
}

// randomSearch is a transducer whose encoder ignores the sound, so that the
// comparison covers only the search, with its states and durations.
func randomSearch(r *rand.Rand, durations int, url string) map[string]*onnxfile.Graph {
	const dim = 16
	e := onnxfile.NewGraph()
	e.Input("audio_signal", onnxfile.Float32, "B", 80, "T").Input("length", onnxfile.Int64, "B")
	n := e.Op("Div", []string{e.Op("Sub", []string{"length", e.Const(ints(20))}), e.Const(ints(8))})
	e.Node("Slice", []string{e.Const(random(r, 0.9, 1, dim, 400)), e.Const(ints(0)), n, e.Const(ints(2))}, []string{"outputs"})
	e.Node("Identity", []string{n}, []string{"encoded_lengths"})
	e.Output("outputs", onnxfile.Float32, "B", dim, "T8").Output("encoded_lengths", onnxfile.Int64, "B")
	nemoMeta(e, url).Meta("normalize_type", "per_feature")
	d := onnxfile.NewGraph()
	d.Input("targets", onnxfile.Int32, "B", "U").Input("target_length", onnxfile.Int32, "B")
	d.Input("states.1", onnxfile.Float32, 2, "B", nemoWide).Input("states.2", onnxfile.Float32, 2, "B", nemoWide)
	said := d.Op("Gather", []string{d.Const(random(r, 1, familySymbols, nemoWide)), "targets"}, onnxfile.AttrInt("axis", 0))
	one := d.Op("Tanh", []string{d.Op("Add", []string{d.Op("Mul", []string{"states.1", d.Const(onnxfile.Floats(nil, 0.6))}), said})})
	two := d.Op("Tanh", []string{d.Op("Add", []string{d.Op("Mul", []string{"states.2", d.Const(onnxfile.Floats(nil, 0.3))}), d.Op("Mul", []string{one, d.Const(onnxfile.Floats(nil, -0.5))})})})
	d.Node("Identity", []string{one}, []string{"new.1"})
	d.Node("Identity", []string{two}, []string{"new.2"})
	top := d.Op("Slice", []string{d.Op("Add", []string{one, two}), d.Const(ints(1)), d.Const(ints(2)), d.Const(ints(0))})
	d.Node("Transpose", []string{d.Op("MatMul", []string{top, d.Const(random(r, 0.5, nemoWide, dim))})}, []string{"outputs"}, onnxfile.AttrInts("perm", 0, 2, 1))
	d.Node("Identity", []string{"target_length"}, []string{"prednet_lengths"})
	d.Output("outputs", onnxfile.Float32, "B", dim, "U").Output("prednet_lengths", onnxfile.Int32, "B").
		Output("new.1", onnxfile.Float32, 2, "B", nemoWide).Output("new.2", onnxfile.Float32, 2, "B", nemoWide)
	j := onnxfile.NewGraph()
	j.Input("encoder_outputs", onnxfile.Float32, "B", dim, 1).Input("decoder_outputs", onnxfile.Float32, "B", dim, 1)
	sum := j.Op("Tanh", []string{j.Op("Transpose", []string{j.Op("Add", []string{"encoder_outputs", "decoder_outputs"})}, onnxfile.AttrInts("perm", 0, 2, 1))})
	out := familySymbols + durations
	bias := make([]float32, out)
	bias[familySymbols-1] = 8
	y := scores(j, sum, random(r, 2, dim, int64(out)), onnxfile.Floats([]int64{int64(out)}, bias...))
	j.Node("Unsqueeze", []string{y, j.Const(ints(2))}, []string{"outputs"})
	j.Output("outputs", onnxfile.Float32, "B", "T", "U", out)
	return map[string]*onnxfile.Graph{"encoder.onnx": e, "decoder.onnx": d, "joiner.onnx": j}
}

// randomIcefall is an offline transducer of icefall: the joiner projects the
// sum of the encoder's frame and the decoder's state.
func randomIcefall(r *rand.Rand) map[string]*onnxfile.Graph {
	const dim = 24
	e := onnxfile.NewGraph()
	e.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
	plain := func(g *onnxfile.Graph, x string, _, _ onnxfile.Tensor) string { return x }
	e.Node("Identity", []string{projected(e, r, "x", 80, 4, familySymbols, 0, 6, 0.25, plain)}, []string{"encoder_out"})
	e.Node("Div", []string{e.Op("Add", []string{"x_lens", e.Const(ints(3))}), e.Const(ints(4))}, []string{"encoder_out_lens"})
	e.Output("encoder_out", onnxfile.Float32, "N", "T4", dim).Output("encoder_out_lens", onnxfile.Int64, "N").
		Meta("model_type", "zipformer2").Meta("version", "1").Meta("model_author", "k2-fsa")
	d := onnxfile.NewGraph()
	d.Input("y", onnxfile.Int64, "N", 2)
	seen := d.Op("Gather", []string{d.Const(random(r, 0.7, familySymbols+1, dim)), d.Op("Add", []string{"y", d.Const(ints(1))})}, onnxfile.AttrInt("axis", 0))
	weighted := d.Op("Mul", []string{seen, d.Const(onnxfile.Floats([]int64{1, 2, 1}, 0.5, 1))})
	d.Node("ReduceSum", []string{weighted, d.Const(ints(1))}, []string{"decoder_out"}, onnxfile.AttrInt("keepdims", 0))
	d.Output("decoder_out", onnxfile.Float32, "N", dim).Meta("context_size", "2").Meta("vocab_size", fmt.Sprint(familySymbols))
	j := onnxfile.NewGraph()
	j.Input("encoder_out", onnxfile.Float32, "N", dim).Input("decoder_out", onnxfile.Float32, "N", dim)
	bias := make([]float32, familySymbols)
	bias[0], bias[2] = 8, 4
	sum := j.Op("Tanh", []string{j.Op("Add", []string{"encoder_out", "decoder_out"})})
	j.Node("Identity", []string{scores(j, sum, random(r, 4, dim, familySymbols), onnxfile.Floats([]int64{familySymbols}, bias...))}, []string{"logit"})
	j.Output("logit", onnxfile.Float32, "N", familySymbols).Meta("joiner_dim", fmt.Sprint(dim))
	return map[string]*onnxfile.Graph{"encoder.onnx": e, "decoder.onnx": d, "joiner.onnx": j}
}

// randomStream is a streaming Zipformer2 transducer of two stacks. Its states are
// mixed with the sound, and all of them have a part in each frame.
func randomStream(r *rand.Rand, chunk, shift int) map[string]*onnxfile.Graph {
	const dim = 24
	files := randomIcefall(r)
	e := onnxfile.NewGraph()
	e.Input("x", onnxfile.Float32, "N", chunk, 80).Output("encoder_out", onnxfile.Float32, "N", shift/4, dim)
	part := e.Op("Slice", []string{"x", e.Const(ints(int64(chunk - shift))), e.Const(ints(int64(chunk))), e.Const(ints(1))})
	plain := func(g *onnxfile.Graph, x string, _, _ onnxfile.Tensor) string { return x }
	out := projected(e, r, part, 80, 4, familySymbols, 0, 6, 0.25, plain)
	heard := e.Op("ReduceMean", []string{out}, onnxfile.AttrInt("keepdims", 0)) // of all
	state := func(name string, shape ...any) {
		e.Input(name, onnxfile.Float32, shape...)
		fixed := make([]int64, len(shape))
		for i, d := range shape {
			fixed[i] = 1
			if n, ok := d.(int); ok {
				fixed[i] = int64(n)
			}
		}
		fresh := e.Op("Tanh", []string{e.Op("Mul", []string{heard, e.Const(random(r, 20, fixed...))})})
		e.Node("Add", []string{e.Op("Mul", []string{name, e.Const(onnxfile.Floats(nil, 0.7))}), fresh}, []string{"new_" + name})
		e.Output("new_"+name, onnxfile.Float32, shape...)
		mean := e.Op("ReduceMean", []string{e.Op("Mul", []string{name, e.Const(random(r, 3, fixed...))})}, onnxfile.AttrInt("keepdims", 0))
		out = e.Op("Add", []string{out, e.Op("Mul", []string{mean, e.Const(random(r, 2, dim))})})
	}
	for i, stack := range []struct{ dim, key, value, left, kernel int }{{8, 8, 6, 16, 5}, {12, 16, 12, 8, 3}, {12, 16, 12, 8, 3}} {
		state(fmt.Sprint("cached_key_", i), stack.left, "N", stack.key)
		state(fmt.Sprint("cached_nonlin_attn_", i), 1, "N", stack.left, 3*stack.dim/4)
		state(fmt.Sprint("cached_val1_", i), stack.left, "N", stack.value)
		state(fmt.Sprint("cached_val2_", i), stack.left, "N", stack.value)
		state(fmt.Sprint("cached_conv1_", i), "N", stack.dim, stack.kernel/2)
		state(fmt.Sprint("cached_conv2_", i), "N", stack.dim, stack.kernel/2)
	}
	state("embed_states", "N", 128, 3, 19)
	e.Input("processed_lens", onnxfile.Int64, "N")
	e.Node("Add", []string{"processed_lens", e.Const(ints(int64(shift / 2)))}, []string{"new_processed_lens"})
	age := e.Op("Sin", []string{e.Op("Cast", []string{"processed_lens"}, onnxfile.AttrInt("to", toFloat))})
	e.Node("Add", []string{out, e.Op("Mul", []string{age, e.Const(random(r, 0.3, dim))})}, []string{"encoder_out"})
	e.Output("new_processed_lens", onnxfile.Int64, "N")
	for k, v := range map[string]string{
		"model_type": "zipformer2", "version": "1", "model_author": "k2-fsa", "T": fmt.Sprint(chunk), "decode_chunk_len": fmt.Sprint(shift),
		"num_encoder_layers": "1,2", "encoder_dims": "8,12", "query_head_dims": "4,4", "value_head_dims": "3,3", "num_heads": "2,4",
		"cnn_module_kernels": "5,3", "left_context_len": "16,8",
	} {
		e.Meta(k, v)
	}
	files["encoder.onnx"] = e
	return files
}

// nemoWide is the width of randomSearch's predictor.
const nemoWide = 12

func nemoMeta(g *onnxfile.Graph, url string) *onnxfile.Graph {
	return g.Meta("vocab_size", fmt.Sprint(familySymbols-1)).Meta("pred_rnn_layers", "2").Meta("pred_hidden", fmt.Sprint(nemoWide)).
		Meta("subsampling_factor", "8").Meta("model_type", "EncDecRNNTBPEModel").Meta("version", "2").Meta("model_author", "NeMo").Meta("url", url)
}

// randomNeMoStream is randomSearch with a cache-aware encoder, which ignores the
// sound: each frame is computed from the caches, which count and mix.
func randomNeMoStream(r *rand.Rand, window, shift int) map[string]*onnxfile.Graph {
	const dim = 16
	const url = "https://example.org/fastconformer-streaming"
	files := randomSearch(r, 0, url)
	e := nemoMeta(onnxfile.NewGraph(), url)
	frames := int64(shift / 8)
	e.Input("audio_signal", onnxfile.Float32, "B", 80, window).Input("length", onnxfile.Int64, "B")
	e.Output("outputs", onnxfile.Float32, "B", dim, int(frames)).Output("encoded_lengths", onnxfile.Int64, "B") // sherpa-onnx counts outputs
	age := e.Op("Cast", []string{"cache_last_channel_len"}, onnxfile.AttrInt("to", toFloat))
	out := e.Op("Sin", []string{e.Op("Add", []string{e.Const(random(r, 3, 1, dim, frames)), e.Op("Mul", []string{age, e.Const(random(r, 2, dim, frames))})})})
	for i, name := range []string{"cache_last_channel", "cache_last_time"} {
		shape := [][2]int64{{5, dim}, {dim, 4}}[i]
		e.Input(name, onnxfile.Float32, "B", 3, nil, nil).Output(name+"_next", onnxfile.Float32, "B", 3, nil, nil)
		e.Meta(name+"_dim1", "3").Meta(name+"_dim2", fmt.Sprint(shape[0])).Meta(name+"_dim3", fmt.Sprint(shape[1]))
		fresh := e.Op("Sin", []string{e.Op("Mul", []string{e.Op("Add", []string{age, e.Const(onnxfile.Floats(nil, 1))}), e.Const(random(r, 5, 1, 3, shape[0], shape[1]))})})
		e.Node("Add", []string{e.Op("Mul", []string{name, e.Const(onnxfile.Floats(nil, 0.7))}), fresh}, []string{name + "_next"})
		mean := e.Op("ReduceMean", []string{e.Op("Mul", []string{name, e.Const(random(r, 3, 1, 3, shape[0], shape[1]))})}, onnxfile.AttrInt("keepdims", 0))
		out = e.Op("Add", []string{out, e.Op("Mul", []string{mean, e.Const(random(r, 2, dim, 1))})})
	}
	e.Input("cache_last_channel_len", onnxfile.Int64, "B").Output("cache_last_channel_next_len", onnxfile.Int64, "B")
	e.Node("Add", []string{"cache_last_channel_len", e.Const(ints(int64(shift / 8)))}, []string{"cache_last_channel_next_len"})
	e.Node("Identity", []string{out}, []string{"outputs"})
	e.Node("Div", []string{"length", e.Const(ints(8))}, []string{"encoded_lengths"})
	e.Meta("normalize_type", "NA").Meta("window_size", fmt.Sprint(window)).Meta("chunk_shift", fmt.Sprint(shift))
	files["encoder.onnx"] = e
	return files
}

func families() map[string]family {
	r := func(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
	list := func(first, last []string) []string {
		out := first
		for i := 0; len(out)+len(last) < familySymbols; i++ {
			out = append(out, fmt.Sprintf("▁w%c", 'a'+i))
		}
		return append(out, last...)
	}
	one := func(g *onnxfile.Graph) map[string]*onnxfile.Graph { return map[string]*onnxfile.Graph{"model.onnx": g} }
	nemo := list([]string{"<unk>"}, []string{"<blk>"})
	approximate := "sherpa-onnx approximates the front end; the definition decides"
	zipformer := list([]string{"<blk>", "<sos/eos>", "<unk>"}, nil)
	return map[string]family{
		"Zipformer CTC, int8":          {kind: "zipformerCtc", files: one(randomFrames(r(1), "zipformer2_ctc", "log_probs_len", 6, scores8)), list: zipformer},
		"Zipformer CTC, fp16":          {kind: "zipformerCtc", files: one(randomFrames(r(1), "zipformer2_ctc", "log_probs_len", 6, scores16)), list: zipformer},
		"Zipformer CTC":                {kind: "zipformerCtc", files: one(randomFrames(r(1), "zipformer2_ctc", "log_probs_len", 6, scores)), list: zipformer, truth: kaldiTruth(1, false, 7600)},
		"WeNet CTC":                    {kind: "wenetCtc", files: one(randomFrames(r(2), "wenet_ctc", "log_probs_lens", -12, scores)), list: list([]string{"<blank>", "<unk>"}, []string{"<sos/eos>"}), truth: kaldiTruth(32768, true, 8000), differs: approximate},
		"NeMo CTC":                     {kind: "nemoCtc", files: one(randomNeMo(r(3))), list: nemo, truth: nemoTruth, differs: approximate},
		"SenseVoice":                   {kind: "senseVoice", files: one(randomSenseVoice(r(4))), list: list([]string{"<unk>", "<s>", "</s>", "<|zh|>", "<|en|>", "<|yue|>", "<|ja|>", "<|HAPPY|>", "<|Speech|>", "<|withitn|>", "<|ko|>", "<|nospeech|>"}, nil)},
		"Paraformer":                   {kind: "paraformer", files: one(randomParaformer(r(5))), list: list([]string{"<blank>", "<s>", "</s>"}, []string{"<unk>"}), later: peakDelay * peakSeconds},
		"icefall transducer":           {kind: "icefallTransducer", files: randomIcefall(r(9)), list: zipformer, truth: kaldiTruth(1, false, 7600)},
		"icefall streaming transducer": {kind: "zipformerOnline", files: randomStream(r(10), 45, 32), list: zipformer},
		"icefall streaming transducer, chunks of 64 frames": {kind: "zipformerOnline", files: randomStream(r(11), 77, 64), list: zipformer},
		"NeMo streaming RNN-T, search alone":                {kind: "nemoOnline", files: randomNeMoStream(r(12), 25, 16), list: list(nil, []string{"<blk>"})},
		"NeMo RNN-T, search alone":                          {kind: "transducer", files: randomSearch(r(6), 0, "https://example.org/fastconformer"), list: nemo},
		"NeMo TDT, search alone":                            {kind: "transducer", files: randomSearch(r(8), 5, "https://example.org/parakeet-tdt"), list: nemo},
	}
}

// powers returns the power spectrum (512 points) of a frame.
func powers(frame []float64) []float64 {
	out := make([]float64, 257)
	for k := range out {
		var re, im float64
		for i, v := range frame {
			s, c := math.Sincos(2 * math.Pi * float64(k*i%512) / 512)
			re += v * c
			im += v * s
		}
		out[k] = re*re + im*im
	}
	return out
}

// kaldiTruth computes torchaudio's kaldi.fbank with a povey window and 80
// bands.
func kaldiTruth(scale float64, snip bool, high float64) func(x []float64) ([]float32, int) {
	return func(x []float64) ([]float32, int) {
		mel := func(f float64) float64 { return 1127 * math.Log(1+f/700) }
		n, count := len(x), (len(x)+80)/160
		if snip {
			count = 1 + (len(x)-400)/160
		}
		low, step := mel(20), (mel(high)-mel(20))/81
		out := make([]float32, 0, count*80)
		for t := range count {
			start := t * 160
			if !snip {
				start -= 120
			}
			frame, mean := make([]float64, 400), 0.0
			for i := range frame {
				at := start + i
				if at < 0 {
					at = -at - 1
				}
				if at >= n {
					at = 2*n - 1 - at
				}
				frame[i] = x[at] * scale
				mean += frame[i] / 400
			}
			for i := range frame {
				frame[i] -= mean
			}
			for i := 399; i > 0; i-- {
				frame[i] -= 0.97 * frame[i-1]
			}
			frame[0] *= 0.03
			for i := range frame {
				frame[i] *= math.Pow(0.5-0.5*math.Cos(2*math.Pi*float64(i)/399), 0.85)
			}
			p := powers(frame)
			for b := range 80 {
				sum, left := 0.0, low+float64(b)*step
				for k, v := range p[:256] {
					m := mel(float64(k) * 31.25)
					sum += v * max(0, min((m-left)/step, (left+2*step-m)/step))
				}
				out = append(out, float32(math.Log(max(sum, 1.1920929e-07))))
			}
		}
		return out, count
	}
}

// nemoTruth computes NeMo's log-mel of 80 bands, normalized by band; [bands,
// frames].
func nemoTruth(x []float64) ([]float32, int) {
	count := len(x) / 160
	padded := make([]float64, len(x)+512)
	for i := range x {
		padded[i+256] = x[i]
		if i > 0 {
			padded[i+256] -= 0.97 * x[i-1]
		}
	}
	hz := func(m float64) float64 {
		if m < 15 {
			return m * 200 / 3
		}
		return 1000 * math.Exp((m-15)*math.Log(6.4)/27)
	}
	top := 15 + math.Log(8)/(math.Log(6.4)/27)
	out := make([]float32, 80*count)
	raw := make([][]float64, 80)
	for t := range count {
		frame := make([]float64, 400)
		for i := range frame {
			frame[i] = padded[t*160+56+i] * (0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/399))
		}
		p := powers(frame)
		for b := range 80 {
			e := [3]float64{hz(top * float64(b) / 81), hz(top * float64(b+1) / 81), hz(top * float64(b+2) / 81)}
			sum := 0.0
			for k, v := range p {
				f := float64(k) * 31.25
				sum += v * max(0, min((f-e[0])/(e[1]-e[0]), (e[2]-f)/(e[2]-e[1])))
			}
			raw[b] = append(raw[b], math.Log(sum*2/(e[2]-e[0])+math.Pow(2, -24)))
		}
	}
	for b, band := range raw {
		mean, square := 0.0, 0.0
		for _, v := range band {
			mean += v / float64(count)
		}
		for _, v := range band {
			square += (v - mean) * (v - mean)
		}
		for t, v := range band {
			out[b*count+t] = float32((v - mean) / (math.Sqrt(square/float64(count-1)) + 1e-5))
		}
	}
	return out, count
}

// greedyTokens returns the best tokens of a CTC family's rows for the given
// features. Other families decode themselves.
func greedyTokens(t *testing.T, e *Engine, w matrix) []emission {
	t.Helper()
	ctx := context.Background()
	var out []*ort.Tensor
	var err error
	skip := 0
	switch n := e.net.(type) {
	case *frames:
		out, err = n.encoder.Run(ctx, map[string]*ort.Tensor{"x": pad([]matrix{w}, 0), "x_lens": ort.NewIntegers(n.lens, []int{w.frames})}, n.out)
	case *nemoCTC:
		out, err = n.encoder.Run(ctx, n.inputs(w), "logprobs")
	case *senseVoice:
		skip = prompts
		out, err = n.encoder.Run(ctx, map[string]*ort.Tensor{
			n.x: pad([]matrix{w}, 0), n.lens.Name: ort.NewIntegers(n.lens, []int{w.frames}),
			n.language.Name: ort.NewIntegers(n.language, []int{0}), n.norm.Name: ort.NewIntegers(n.norm, []int{n.withITN}),
		}, n.out)
	default:
		hyps, err := e.net.run(ctx, []matrix{w}, request{})
		require.NoError(t, err)
		return hyps[0].emissions
	}
	require.NoError(t, err)
	h, shape, data := e.net.ctc(), out[0].Shape(), out[0].Float32()
	var tokens []emission
	last := -1
	for row := skip; row < int(shape[1]); row++ {
		best := argmax(data[row*int(shape[2]):][:shape[2]])
		if best != h.blank && best != last {
			tokens = append(tokens, emission{id: best, start: float64(row-skip) * h.shift})
		}
		last = best
	}
	return tokens
}

func tokenEdits(a, b []string) int {
	d := make([]int, len(b)+1)
	for j := range d {
		d[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := d[0]
		d[0] = i
		for j := 1; j <= len(b); j++ {
			c := diagonal
			if a[i-1] != b[j-1] {
				c++
			}
			diagonal = d[j]
			d[j] = min(d[j]+1, d[j-1]+1, c)
		}
	}
	return d[len(b)]
}

func TestFamiliesEqualSherpaONNX(t *testing.T) {
	samples := ffmpegSamples(t, filepath.Join("testdata", "families.opus"))
	samples = samples[:min(len(samples), 11*audio.SampleRate)]
	for name, f := range families() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(file string, data []byte) string {
				path := filepath.Join(dir, file)
				require.NoError(t, os.WriteFile(path, data, 0o600))
				return path
			}
			m := parts{Tokens: sideFile{Name: "tokens.txt", Data: numbered(f.list)}}
			sources := map[string]*ort.Source{"model.onnx": &m.ONNX, "encoder.onnx": &m.ONNX, "decoder.onnx": &m.Decoder, "joiner.onnx": &m.Joiner}
			for file, g := range f.files {
				*sources[file] = ort.Source{Path: write(file, g.Bytes())}
			}
			write("tokens.txt", m.Tokens.Data)
			e := openMadeUp(t, m)
			features := e.net.features(samples)
			theirSamples := slices.Clone(samples)
			if e.net.chunked() != nil { // sherpa-onnx reads a chunk once there is a frame after it
				theirSamples = append(theirSamples, make([]float32, (features.frames+3)*audio.SampleRate/100-len(samples))...)
			}
			wave, err := json.Marshal(theirSamples)
			require.NoError(t, err)
			write("samples.json", wave)
			var theirs struct {
				Tokens     []string
				Timestamps []float64
			}
			modeltest.RunSherpa(t, &theirs, dir, f.kind)
			pcm := audio.FromSamples(samples)
			_, err = e.Transcribe(context.Background(), pcm, []audio.Span{{Start: 0, End: pcm.Len()}}, asr.Options{})
			require.NoError(t, err)
			mine := greedyTokens(t, e, features)
			symbols := func(list []emission) (out []string) {
				for _, m := range list {
					out = append(out, strings.TrimSpace(strings.ReplaceAll(f.list[m.id], "▁", " ")))
				}
				return out
			}
			for i := range theirs.Tokens {
				theirs.Tokens[i] = strings.TrimSpace(strings.ReplaceAll(theirs.Tokens[i], "▁", " "))
			}
			edits := tokenEdits(symbols(mine), theirs.Tokens)
			t.Logf("%d tokens, %d by sherpa-onnx, %d differ. %s", len(mine), len(theirs.Tokens), edits, f.differs)
			require.Greater(t, len(mine), 10)
			modeltest.AssertFamilyRow(t, name, fmt.Sprint(len(mine), " tokens"), edits == 0)
			if f.differs == "" && assert.Zero(t, edits) {
				for i, at := range theirs.Timestamps {
					assert.InDelta(t, at-f.later, mine[i].start, 0.011, "token %d", i)
				}
			}
			if f.truth == nil {
				return
			}
			x := make([]float64, len(samples))
			for i, s := range samples {
				x[i] = float64(s)
			}
			defined, frames := f.truth(x)
			require.Len(t, defined, len(features.data))
			worst := 0.0
			for i, v := range defined {
				worst = max(worst, math.Abs(float64(v-features.data[i])))
			}
			right := greedyTokens(t, e, matrix{data: defined, frames: frames, dim: features.dim})
			t.Logf("features within %.1e of their definition; tokens on it: %d of %d differ", worst, tokenEdits(symbols(mine), symbols(right)), len(right))
			assert.Less(t, worst, 1e-2)
			assert.Equal(t, symbols(right), symbols(mine))
		})
	}
}
