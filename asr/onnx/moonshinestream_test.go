package onnx

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// madeUpStream returns Moonshine's streaming layout. Its features are the
// energies of the two tones in each frame of 320 samples and some of those of the
// fourth frame before, and a 1; the frontend keeps four frames and the samples
// that do not fill one. The encoder adds some of the 16 features before and the
// two after a feature, the adapter the position. The decoder writes as
// madeUpMoonshineDecoder does, and reads the sound in the second of two layers.
func madeUpStream() parts {
	frontend := onnxfile.NewGraph().Input("audio_chunk", onnxfile.Float32, 1, "T").Input("sample_buffer", onnxfile.Float32, 1, 319).
		Input("sample_len", onnxfile.Int64, 1).Input("conv1_buffer", onnxfile.Float32, 1, 3, 4).Input("conv2_buffer", onnxfile.Float32, 1, 3, 4).Input("frame_count", onnxfile.Int64, 1)
	kept := frontend.Op("Slice", []string{"sample_buffer", frontend.Const(ints(0)), "sample_len", frontend.Const(ints(1))})
	x := frontend.Op("Concat", []string{kept, "audio_chunk"}, onnxfile.AttrInt("axis", 1))
	energies := toneEnergies(frontend, x, streamGrid.stride)
	both := frontend.Op("Concat", []string{"conv1_buffer", energies}, onnxfile.AttrInt("axis", 2))
	earlier := frontend.Op("Slice", []string{both, frontend.Const(ints(0)), frontend.Const(ints(-4)), frontend.Const(ints(2))})
	frontend.Node("Slice", []string{both, frontend.Const(ints(-4)), frontend.Const(ints(math.MaxInt64)), frontend.Const(ints(2))}, []string{"conv1_buffer_out"})
	sum := frontend.Op("Add", []string{energies, frontend.Op("Mul", []string{earlier, frontend.Const(onnxfile.Floats(nil, 0.01))})})
	frontend.Node("Transpose", []string{sum}, []string{"features"}, onnxfile.AttrInts("perm", 0, 2, 1))
	all := frontend.Op("Gather", []string{frontend.Op("Shape", []string{x}), frontend.Const(ints(1))})
	frontend.Node("Mod", []string{all, frontend.Const(ints(int64(streamGrid.stride)))}, []string{"sample_len_out"})
	rest := frontend.Op("Slice", []string{x, frontend.Op("Sub", []string{all, "sample_len_out"}), all, frontend.Const(ints(1))})
	padded := frontend.Op("Concat", []string{rest, "sample_buffer"}, onnxfile.AttrInt("axis", 1))
	frontend.Node("Slice", []string{padded, frontend.Const(ints(0)), frontend.Const(ints(319)), frontend.Const(ints(1))}, []string{"sample_buffer_out"})
	for _, state := range []string{"conv2_buffer", "frame_count"} {
		frontend.Node("Identity", []string{state}, []string{state + "_out"})
	}
	frontend.Output("features", onnxfile.Float32, 1, "F", 3)
	for _, in := range []struct {
		name string
		typ  onnxfile.Type
	}{{"sample_buffer", onnxfile.Float32}, {"sample_len", onnxfile.Int64}, {"conv1_buffer", onnxfile.Float32}, {"conv2_buffer", onnxfile.Float32}, {"frame_count", onnxfile.Int64}} {
		frontend.OutputWithoutShape(in.name+"_out", in.typ)
	}

	encoder := onnxfile.NewGraph().Input("features", onnxfile.Float32, 1, "F", 3).Output("encoded", onnxfile.Float32, 1, "F", 3)
	near := make([]float32, 9*19)
	for channel := range 3 {
		for k := range 19 {
			near[channel*4*19+k] = 0.001 * float32(k)
		}
		near[channel*4*19+16] = 1
	}
	columns := encoder.Op("Transpose", []string{"features"}, onnxfile.AttrInts("perm", 0, 2, 1))
	columns = encoder.Op("Conv", []string{columns, encoder.Const(onnxfile.Floats([]int64{3, 3, 19}, near...))}, onnxfile.AttrInts("pads", 16, 2))
	encoder.Node("Transpose", []string{columns}, []string{"encoded"}, onnxfile.AttrInts("perm", 0, 2, 1))

	adapter := onnxfile.NewGraph().Input("encoded", onnxfile.Float32, 1, "F", 3).Input("pos_offset", onnxfile.Int64, 1).Output("memory", onnxfile.Float32, 1, "F", 3)
	count := adapter.Op("Gather", []string{adapter.Op("Shape", []string{"encoded"}), adapter.Const(onnxfile.Ints(nil, 1))})
	places := adapter.Op("Range", []string{adapter.Const(onnxfile.Ints(nil, 0)), count, adapter.Const(onnxfile.Ints(nil, 1))})
	places = adapter.Op("Cast", []string{adapter.Op("Add", []string{places, "pos_offset"})}, onnxfile.AttrInt("to", toFloat32))
	places = adapter.Op("Mul", []string{adapter.Op("Unsqueeze", []string{places, adapter.Const(ints(1))}), adapter.Const(onnxfile.Floats(nil, 1e-4))})
	adapter.Node("Add", []string{"encoded", places}, []string{"memory"})

	joiner := onnxfile.NewGraph().Input("memory", onnxfile.Float32, 1, "F", 3)
	one := joiner.Op("Unsqueeze", []string{"memory", joiner.Const(ints(0, 1))})
	none := joiner.Op("Mul", []string{one, joiner.Const(onnxfile.Floats(nil, 0))})
	for _, name := range []string{"k_cross", "v_cross"} {
		joiner.Node("Concat", []string{none, one}, []string{name}, onnxfile.AttrInt("axis", 0))
		joiner.Output(name, onnxfile.Float32, 2, 1, 1, "F", 3)
	}
	return parts{
		ONNX: source(encoder, "encoder.onnx"), Frontend: source(frontend, "frontend.onnx"), Adapter: source(adapter, "adapter.onnx"),
		Joiner: source(joiner, "cross_kv.onnx"), Decoder: source(madeUpStreamDecoder("cross_attentions.0", "cross_attentions.1"), "decoder_kv.onnx"), Tokens: sideFile{"tokenizer.bin", []byte(moonshineList)},
		Config: sideFile{"streaming_config.json", []byte(`{"depth":1,"total_lookahead":2}`)},
	}
}

func madeUpStreamDecoder(attention ...string) *onnxfile.Graph {
	g := onnxfile.NewGraph().Input("token", onnxfile.Int64, 1, "L")
	for _, name := range []string{"k_self", "v_self", "out_k_cross", "out_v_cross"} {
		g.Input(name, onnxfile.Float32, 2, 1, 1, "P"+name, 3)
	}
	length := func(name string) string {
		return g.Op("Gather", []string{g.Op("Shape", []string{name}), g.Const(onnxfile.Ints(nil, 3))})
	}
	at := g.Op("Mul", []string{length("k_self"), g.Const(onnxfile.Ints(nil, streamEvery))})
	sound := g.Op("Gather", []string{"out_v_cross", g.Const(onnxfile.Ints(nil, 1))}) // [1,1,F,3]
	behind := g.Op("Pad", []string{sound, g.Const(ints(0, 0, 0, 0, 0, 0, 1000, 0))})
	row := g.Op("Gather", []string{behind, at}, onnxfile.AttrInt("axis", 2)) // [1,1,3]
	scores := g.Op("MatMul", []string{row, g.Const(onnxfile.Floats([]int64{3, 5}, moonshineWeights...))})
	g.Node("Add", []string{scores, g.Const(onnxfile.Floats([]int64{5}, 0, -100, 8, 0, 0))}, []string{"logits"})
	g.Output("logits", onnxfile.Float32, 1, "L", 5)
	one := g.Op("Unsqueeze", []string{row, g.Const(ints(0, 1))}) // [1,1,1,1,3]
	both := g.Op("Concat", []string{one, one}, onnxfile.AttrInt("axis", 0))
	for _, name := range []string{"k_self", "v_self"} {
		g.Node("Concat", []string{name, both}, []string{"out_" + name}, onnxfile.AttrInt("axis", 3))
		g.Output("out_"+name, onnxfile.Float32, 2, 1, 1, nil, 3)
	}
	places := g.Op("Range", []string{g.Const(onnxfile.Ints(nil, 0)), length("out_k_cross"), g.Const(onnxfile.Ints(nil, 1))})
	off := g.Op("Cast", []string{g.Op("Sub", []string{places, at})}, onnxfile.AttrInt("to", toFloat32))
	off = g.Op("Mul", []string{g.Op("Mul", []string{off, off}), g.Const(onnxfile.Floats(nil, -0.2))})
	for _, name := range attention {
		g.Node("Softmax", []string{g.Op("Unsqueeze", []string{off, g.Const(ints(0, 1, 2))})}, []string{name}, onnxfile.AttrInt("axis", -1))
		g.Output(name, onnxfile.Float32, 1, 1, "L", "F")
	}
	return g
}

// streamEvery is the number of frames between the tokens of the made-up decoder.
const streamEvery = moonshineEvery * moonshineStride / 320

// TestStreamWithoutAttention has the layout's plain decoder: it writes the same
// text, without times of words.
func TestStreamWithoutAttention(t *testing.T) {
	m := madeUpStream()
	m.Decoder = source(madeUpStreamDecoder(), "decoder_kv.onnx")
	e := openMadeUp(t, m)
	w := e.net.features(tones(2, [3]float64{0.2, 0.5, lowTone}, [3]float64{0.8, 1.1, highTone}))
	hyps, err := e.net.run(context.Background(), []matrix{w}, request{times: true})
	require.NoError(t, err)
	assert.True(t, hyps[0].unbounded)
	assert.Empty(t, hyps[0].attention)
}

// TestStreamDrafts checks, for speech that grows, that a draft's text and frames
// are those of a reading of all of the sound, and that it reads only new sound.
func TestStreamDrafts(t *testing.T) {
	samples := tones(5, [3]float64{0.7, 1, lowTone}, [3]float64{1.6, 1.9, highTone}, [3]float64{2.6, 2.9, lowTone}, [3]float64{3.9, 4.4, highTone})
	e := openMadeUp(t, madeUpStream())
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		begin, longest := 8000+r.IntN(300), 0
		var opt asr.Options
		for at := begin + 4000; at < len(samples); at += r.IntN(9000) {
			pcm, speech := audio.FromSamples(samples[:at]), []audio.Span{{Start: begin, End: at}}
			opt.Draft.Open = r.Float64() < 0.7
			got, err := e.Transcribe(context.Background(), pcm, speech, opt)
			require.NoError(t, err)
			want, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Draft: asr.Draft{Open: opt.Draft.Open}})
			require.NoError(t, err)
			assert.Equal(t, tokensOf(want), tokensOf(got))
			longest = max(longest, len(tokensOf(got)))
			if !opt.Draft.Open {
				continue
			}
			assert.False(t, got.Grows, "the text is written anew")
			d, whole := got.State.(*draft), want.State.(*draft)
			assert.Equal(t, (at-begin+1600-frameReach)/streamGrid.stride, d.chunks)
			assert.Equal(t, d.chunks-2, d.memory.frames)
			assert.Equal(t, min(d.chunks, 18), d.features.frames)
			assert.InDeltaSlice(t, whole.memory.states, d.memory.states, 1e-4)
			opt.Draft.State = d
			closed := *d
			closed.window.End, closed.again, closed.end = d.window.End+1000, 0, math.MaxInt
			w, err := e.net.(*moonshine).encodeStream(context.Background(), make([]float32, shortestInput), &closed)
			require.NoError(t, err)
			assert.Equal(t, (max(closed.window.Len(), shortestInput)+319)/320, w.frames, "padding is not sound")
		}
		assert.Greater(t, longest, 2)
	}
}

func TestIncompleteStreamIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*parts)
		says   string
	}{
		"no frontend":      {func(m *parts) { m.Frontend = ort.Source{} }, "encoder.onnx: model file does not fit: Moonshine's streaming layout needs frontend, adapter, cross_kv and decoder_kv"},
		"another decoder":  {func(m *parts) { m.Decoder = m.Adapter }, "adapter.onnx: model broken: other inputs or outputs: expected input token"},
		"another joiner":   {func(m *parts) { m.Joiner = m.Adapter }, "adapter.onnx: model broken: other inputs or outputs: expected input memory"},
		"another adapter":  {func(m *parts) { m.Adapter = m.Joiner }, "cross_kv.onnx: model broken: other inputs or outputs: expected input encoded"},
		"a damaged config": {func(m *parts) { m.Config.Data = []byte(`{"depth":0,"total_lookahead":2}`) }, "streaming_config.json: expected depth from 1 and total_lookahead from 0 to 1000"},
		"a free state": {func(m *parts) {
			g := onnxfile.NewGraph().Input("audio_chunk", onnxfile.Float32, 1, "T").Input("sample_buffer", onnxfile.Float32, 1, "S")
			g.Node("Unsqueeze", []string{"audio_chunk", g.Const(ints(0))}, []string{"features"})
			g.Node("Identity", []string{"sample_buffer"}, []string{"sample_buffer_out"})
			m.Frontend = source(g.Output("features", onnxfile.Float32, 1, "F", 3).Output("sample_buffer_out", onnxfile.Float32, 1, "S"), "frontend.onnx")
		}, "frontend.onnx: model broken: other inputs or outputs: expected a state of a fixed shape and an output sample_buffer_out"},
	} {
		t.Run(name, func(t *testing.T) {
			m := madeUpStream()
			c.change(&m)
			_, err := openParts(m)
			require.Error(t, err)
			assert.ErrorContains(t, err, c.says)
		})
	}
}
