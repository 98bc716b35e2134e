package onnx

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
)

// moonshineList begins as Moonshine's token lists do.
const (
	moonshineList  = "\x05<unk>\x03<s>\x04</s>\x05▁ba\x02na"
	moonshineEvery = 10 // frames between the tokens of the made-up decoder
	toFloat32      = 1  // a data type of Cast
)

// madeUpMoonshineEncoder returns the energies of the two tones in each frame of
// 384 samples, and a 1.
func madeUpMoonshineEncoder(masked bool) *onnxfile.Graph {
	const size = moonshineStride
	g := onnxfile.NewGraph()
	g.Input("input_values", onnxfile.Float32, "N", "T")
	if masked {
		g.Input("attention_mask", onnxfile.Int64, "N", "T")
	}
	x := toneEnergies(g, "input_values", size)
	g.Node("Transpose", []string{x}, []string{"last_hidden_state"}, onnxfile.AttrInts("perm", 0, 2, 1))
	return g.Output("last_hidden_state", onnxfile.Float32, "N", "F", 3)
}

// moonshineWeights are the scores of the tokens by a frame's energies and 1.
var moonshineWeights = []float32{0, 0, 0, 4, 0 /* low */, 0, 0, 0, 0, 4 /* high */, 16, 0, 0, 0, 0 /* a frame */}

// toneEnergies returns [N,3,frames] of samples [N,T]: the energies of the two
// tones in each frame, and a 1.
func toneEnergies(g *onnxfile.Graph, samples string, size int) string {
	var waves []float32
	for _, hz := range []float64{lowTone, highTone} {
		for _, phase := range []float64{0, math.Pi / 2} {
			for i := range size {
				waves = append(waves, float32(math.Sin(2*math.Pi*hz*float64(i)/audio.SampleRate+phase)*9.6/float64(size)))
			}
		}
	}
	x := g.Op("Unsqueeze", []string{samples, g.Const(ints(1))})
	x = g.Op("Conv", []string{x, g.Const(onnxfile.Floats([]int64{4, 1, int64(size)}, waves...))}, onnxfile.AttrInts("strides", int64(size)))
	x = g.Op("Mul", []string{x, x})
	both := onnxfile.Floats([]int64{3, 4, 1}, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0)
	return g.Op("Conv", []string{x, g.Const(both), g.Const(onnxfile.Floats([]int64{3}, 0, 0, 1))})
}

// madeUpMoonshineDecoder writes a token for each tenth frame of the sound, the
// unknown token in silence, and ends after the last frame. It derives its
// position in the text from the length of its cache. Once the cache holds the
// sound, it reads the sound only there. Its attention is at the frame of the
// token.
func madeUpMoonshineDecoder(masked bool) *onnxfile.Graph {
	branch := func(cached bool) *onnxfile.Graph {
		g := onnxfile.NewGraph()
		sound := g.Op("Unsqueeze", []string{"encoder_hidden_states", g.Const(ints(1))})
		at := g.Const(onnxfile.Ints(nil, 0))
		if cached {
			sound = "past_key_values.0.encoder.key"
			at = g.Op("Mul", []string{g.Op("Gather", []string{g.Op("Shape", []string{"past_key_values.0.decoder.key"}), g.Const(onnxfile.Ints(nil, 2))}), g.Const(onnxfile.Ints(nil, moonshineEvery))})
		}
		behind := g.Op("Pad", []string{sound, g.Const(ints(0, 0, 0, 0, 0, 0, 1000, 0))})
		row := g.Op("Gather", []string{behind, at}, onnxfile.AttrInt("axis", 2)) // [N,1,3]
		if masked {
			mask := g.Op("Pad", []string{g.Op("Cast", []string{"encoder_attention_mask"}, onnxfile.AttrInt("to", toFloat32)), g.Const(ints(0, 0, 0, 1<<20))})
			heard := g.Op("Gather", []string{mask, g.Op("Mul", []string{at, g.Const(onnxfile.Ints(nil, moonshineStride))})}, onnxfile.AttrInt("axis", 1)) // [N]
			row = g.Op("Mul", []string{row, g.Op("Unsqueeze", []string{heard, g.Const(ints(1, 2))})})
		}
		scores := g.Op("MatMul", []string{row, g.Const(onnxfile.Floats([]int64{3, 5}, moonshineWeights...))})
		g.Node("Add", []string{scores, g.Const(onnxfile.Floats([]int64{5}, 0, -100, 8, 0, 0))}, []string{"b_logits"})
		own := g.Op("Unsqueeze", []string{row, g.Const(ints(1))})
		for _, kind := range []string{"key", "value"} {
			if cached {
				g.Node("Concat", []string{"past_key_values.0.decoder." + kind, own}, []string{"b_decoder_" + kind}, onnxfile.AttrInt("axis", 2))
			} else {
				g.Node("Identity", []string{own}, []string{"b_decoder_" + kind})
			}
			g.Node("Identity", []string{sound}, []string{"b_encoder_" + kind})
		}
		frames := g.Op("Gather", []string{g.Op("Shape", []string{sound}), g.Const(onnxfile.Ints(nil, 2))})
		places := g.Op("Range", []string{g.Const(onnxfile.Ints(nil, 0)), frames, g.Const(onnxfile.Ints(nil, 1))})
		off := g.Op("Cast", []string{g.Op("Sub", []string{places, at})}, onnxfile.AttrInt("to", toFloat32))
		off = g.Op("Mul", []string{g.Op("Mul", []string{off, off}), g.Const(onnxfile.Floats(nil, -0.2))})
		rows := g.Op("Mul", []string{g.Op("ReduceSum", []string{sound, g.Const(ints(3))}, onnxfile.AttrInt("keepdims", 0)), g.Const(onnxfile.Floats(nil, 0))})
		attention := g.Op("Unsqueeze", []string{g.Op("Add", []string{rows, off}), g.Const(ints(1))})
		g.Node("Softmax", []string{attention}, []string{"unused"}, onnxfile.AttrInt("axis", -1), onnxfile.Named("/model/decoder/layers.0/encoder_attn/Softmax"))
		g.OutputWithoutShape("b_logits", onnxfile.Float32)
		for _, name := range []string{"b_decoder_key", "b_decoder_value", "b_encoder_key", "b_encoder_value"} {
			g.OutputWithoutShape(name, onnxfile.Float32)
		}
		return g
	}
	g := onnxfile.NewGraph()
	if masked {
		g.Input("encoder_attention_mask", onnxfile.Int64, "N", "S")
	}
	g.Input("input_ids", onnxfile.Int64, "N", "L").Input("encoder_hidden_states", onnxfile.Float32, "N", "F", 3)
	outputs := []string{"logits"}
	for _, side := range []string{"decoder", "encoder"} {
		for _, kind := range []string{"key", "value"} {
			g.Input("past_key_values.0."+side+"."+kind, onnxfile.Float32, "N", 1, "P"+side, 3)
			outputs = append(outputs, "present.0."+side+"."+kind)
		}
	}
	g.Input("use_cache_branch", onnxfile.Bool, 1)
	g.Node("If", []string{"use_cache_branch"}, outputs, onnxfile.AttrGraph("then_branch", branch(true)), onnxfile.AttrGraph("else_branch", branch(false)))
	g.Output("logits", onnxfile.Float32, "N", "L", 5)
	for _, name := range outputs[1:] {
		g.Output(name, onnxfile.Float32, "N", 1, nil, 3)
	}
	return g
}

func moonshineParts(masked bool) parts {
	return parts{
		ONNX: source(madeUpMoonshineEncoder(masked), "encoder_model.onnx"), Decoder: source(madeUpMoonshineDecoder(masked), "decoder_model_merged.onnx"),
		Tokens: sideFile{"tokenizer.bin", []byte(moonshineList)},
	}
}

func TestMoonshineWritesTheText(t *testing.T) {
	for name, m := range map[string]parts{"tiny": moonshineParts(true), "base": moonshineParts(false), "stream": madeUpStream()} {
		t.Run(name, func(t *testing.T) {
			e := openMadeUp(t, m)
			assert.Equal(t, models.ContractMoonshine, e.contract)
			pcm := recording()
			for _, hotwords := range [][]string{nil, {"bana"}} { // greedy and beam
				got, err := e.Transcribe(context.Background(), pcm, recordingSpeech, asr.Options{WordTimestamps: true, Hotwords: hotwords})
				require.NoError(t, err)
				text := ""
				var starts []float64
				for _, s := range got.Segments {
					text += s.Text
					for _, w := range s.Words {
						starts = append(starts, w.Start)
					}
				}
				assert.Equal(t, "BanaBana", text)
				require.Len(t, starts, 2)
				assert.InDelta(t, 0.5, starts[0], 0.15)
				assert.InDelta(t, 2.6, starts[1], 0.15)
				assert.InDelta(t, 0, got.Segments[0].NoSpeechProb, 0.001)
			}
		})
	}
}

// TestMoonshineBatchesAreExact decodes windows of different lengths alone and
// together.
func TestMoonshineBatchesAreExact(t *testing.T) {
	e := openMadeUp(t, moonshineParts(true))
	var windows []matrix
	for _, seconds := range []float64{1.4, 2, 1.7} {
		windows = append(windows, e.net.features(tones(seconds, [3]float64{0.2, 0.5, lowTone}, [3]float64{0.9, seconds - 0.2, highTone})))
	}
	req := request{times: true}
	together, err := e.net.run(context.Background(), windows, req)
	require.NoError(t, err)
	for i := range windows {
		alone, err := e.net.run(context.Background(), windows[i:i+1], req)
		require.NoError(t, err)
		assert.Equal(t, alone[0], together[i])
		assert.Equal(t, len(alone[0].emissions)+1, alone[0].steps, "a step for each token and the end")
	}
}

// TestMoonshineStopsALoop has a decoder that never writes the end: it writes a
// token until the limit, and then again, without the loop.
func TestMoonshineStopsALoop(t *testing.T) {
	m := moonshineParts(false)
	m.Tokens.Data = []byte("\x05<unk>\x04</s>\x03<s>\x05▁ba\x02na") // it never writes token 1
	e := openMadeUp(t, m)
	hyps, err := e.net.run(context.Background(), []matrix{e.net.features(tones(6, [3]float64{0, 6, lowTone}))}, request{})
	require.NoError(t, err)
	assert.Len(t, hyps[0].emissions, 39, "6.5 tokens a second")
	assert.Equal(t, 2*39, hyps[0].steps)
	text := ""
	for _, m := range hyps[0].emissions {
		text += string(rune('0' + m.id))
	}
	assert.Contains(t, text, strings.Repeat("3", 9))
	assert.NotContains(t, text, strings.Repeat("3", 10))
}

func TestUnsuitableMoonshineIsRefused(t *testing.T) {
	cases := map[string]struct {
		change func(*parts)
		says   string
		is     error
	}{
		"no decoder": {func(m *parts) { m.Decoder = ort.Source{} }, "encoder_model.onnx: model file does not fit: Moonshine needs its decoder (decoder_model_merged)", ErrFile},
		"another decoder": {
			func(m *parts) { m.Decoder = source(madeUpDecoder(), "decoder.onnx") },
			"decoder.onnx: model broken: other inputs or outputs: expected input input_ids", ErrContract,
		},
		"other states": {func(m *parts) {
			m.ONNX = source(madeUpMoonshineEncoder(true).Output("last_hidden_state", onnxfile.Float32, 1, 1, 4), "e.onnx")
		}, "", nil},
		"a long list":           {func(m *parts) { m.Tokens.Data = append(m.Tokens.Data, 1, 'x') }, "tokenizer.bin lists 6 tokens, so output logits should have as many columns or more, it has 5", ErrTokens},
		"a list without an end": {func(m *parts) { m.Tokens.Data = []byte("\x03<s>") }, "tokenizer.bin lists no <s> and </s>", ErrTokens},
		"a list cut off":        {func(m *parts) { m.Tokens.Data = m.Tokens.Data[:len(m.Tokens.Data)-1] }, "tokenizer.bin: token list does not fit: expected Moonshine's tokenizer.bin or transformers' tokenizer.json: it ends in the middle of token 4", ErrTokens},
		"no list":               {func(m *parts) { m.Tokens.Data = nil }, "the file is empty or missing", ErrTokens},
	}
	delete(cases, "other states")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := moonshineParts(true)
			c.change(&m)
			_, err := openParts(m)
			if errors.Is(err, native.ErrMissing) {
				t.Skip(err)
			}
			require.ErrorIs(t, err, c.is)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestMoonshineTokenLists(t *testing.T) {
	long := "\x80\x01" + string(slices.Repeat([]byte{'a'}, 128)) // two bytes of length
	for data, want := range map[string][]string{
		moonshineList:                          {"<unk>", "<s>", "</s>", "▁ba", "na"},
		"\x08<<ST_7>>" + "\x01\xff\x00" + long: {"", "\xff", "", long[2:]},
		`{"model":{"vocab":{"<s>":0,"▁ba":2}},"added_tokens":[{"id":1,"content":"</s>"},{"id":3,"content":"<<ST_0>>"}]}`: {"<s>", "</s>", "▁ba", ""},
	} {
		got, err := moonshineSymbols(sideFile{"tokenizer.bin", []byte(data)})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

func FuzzMoonshineSymbols(f *testing.F) {
	f.Add([]byte(moonshineList))
	f.Add([]byte(`{"model":{"vocab":{"a":1}},"added_tokens":[{"id":0,"content":"b"}]}`))
	f.Add([]byte(`{"model":{"vocab":{"a":99999999}}}`))
	f.Add([]byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		symbols, err := moonshineSymbols(sideFile{"tokenizer.bin", data})
		if err != nil {
			require.ErrorIs(t, err, ErrTokens)
			return
		}
		assert.LessOrEqual(t, len(symbols), maxTokens)
	})
}
