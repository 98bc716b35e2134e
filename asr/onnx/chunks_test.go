package onnx

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// afterRows adds to each row [N,T,5] a tenth of the row before (first precedes the
// first row), and to the columns of two tokens a share of the row's number,
// counted from at.
func afterRows(g *onnxfile.Graph, rows, first, at string) string {
	shape := g.Op("Shape", []string{rows})
	count := g.Op("Gather", []string{shape, g.Const(onnxfile.Ints(nil, 1))})
	numbers := g.Op("Add", []string{g.Op("Range", []string{g.Const(onnxfile.Ints(nil, 0)), count, g.Const(onnxfile.Ints(nil, 1))}), at})
	numbers = g.Op("Unsqueeze", []string{g.Op("Cast", []string{numbers}, onnxfile.AttrInt("to", 1)), g.Const(ints(0, 2))})
	rows = g.Op("Add", []string{rows, g.Op("Mul", []string{numbers, g.Const(onnxfile.Floats([]int64{5}, 0, 0, 0, 1./64, 1./32))})})
	all := g.Op("Slice", []string{rows, g.Const(ints(0)), g.Const(ints(-1)), g.Const(ints(1))})
	before := g.Op("Concat", []string{first, all}, onnxfile.AttrInt("axis", 1))
	return g.Op("Add", []string{rows, g.Op("Mul", []string{before, g.Const(onnxfile.Floats(nil, 0.1))})})
}

// toneRows are the scores of every fourth frame.
func toneRows(g *onnxfile.Graph, x string) string {
	o := dsp.DefaultFbankOptions()
	o.SnipEdges, o.HighHz = false, -400
	low, high := fbankBands(o)
	w, bias := sampleScript.weights(80, low, high, -2)
	return scores(g, everyNth(g, x, 4), w, bias)
}

// madeUpStreamingEncoder recognizes the tones in chunks of 32 frames, with the
// last row of the chunk before as a state.
func madeUpStreamingEncoder() *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 45, 80).Input("cached_conv1_0", onnxfile.Float32, "N", 5, 1).Input("processed_lens", onnxfile.Int64, "N")
	chunk := g.Op("Slice", []string{"x", g.Const(ints(0)), g.Const(ints(32)), g.Const(ints(1))})
	rows := toneRows(g, chunk)
	turned := func(x string) string { return g.Op("Transpose", []string{x}, onnxfile.AttrInts("perm", 0, 2, 1)) }
	g.Node("Identity", []string{afterRows(g, rows, turned("cached_conv1_0"), g.Op("Div", []string{"processed_lens", g.Const(ints(2))}))}, []string{"encoder_out"})
	g.Node("Identity", []string{turned(g.Op("Slice", []string{rows, g.Const(ints(-1)), g.Const(ints(1 << 30)), g.Const(ints(1))}))}, []string{"new_cached_conv1_0"})
	g.Node("Add", []string{"processed_lens", g.Const(ints(16))}, []string{"new_processed_lens"})
	return g.Output("encoder_out", onnxfile.Float32, "N", 8, 5).Output("new_cached_conv1_0", onnxfile.Float32, "N", 5, 1).Output("new_processed_lens", onnxfile.Int64, "N").
		Meta("model_type", "zipformer2").Meta("T", "45").Meta("decode_chunk_len", "32")
}

// madeUpNeMoStream recognizes the tones in the first two rows of a chunk, and
// adds the caches, which the made-up network leaves empty.
func madeUpNeMoStream() *onnxfile.Graph {
	low, high := nemoBands(128)
	g := onnxfile.NewGraph()
	g.Input("audio_signal", onnxfile.Float32, "B", 128, "T").Input("length", onnxfile.Int64, "B")
	g.Input("cache_last_channel", onnxfile.Float32, "B", 1, 5, nil).Input("cache_last_channel_len", onnxfile.Int64, "B")
	turned := func(x string) string { return g.Op("Transpose", []string{x}, onnxfile.AttrInts("perm", 0, 2, 1)) }
	chunk := g.Op("Slice", []string{turned("audio_signal"), g.Const(ints(0)), g.Const(ints(16)), g.Const(ints(1))})
	w, bias := script{v: 5, blank: 4, low: 2, high: 3}.weights(128, low, high, -4)
	rows := turned(scores(g, everyNth(g, chunk, 8), w, bias))
	g.Node("Add", []string{rows, g.Op("Squeeze", []string{"cache_last_channel", g.Const(ints(1))})}, []string{"outputs"})
	g.Node("Identity", []string{"cache_last_channel"}, []string{"cache_last_channel_next"})
	g.Node("Add", []string{"cache_last_channel_len", g.Const(ints(2))}, []string{"cache_last_channel_next_len"})
	g.Node("Div", []string{"length", g.Const(ints(12))}, []string{"encoded_lengths"})
	return g.Output("outputs", onnxfile.Float32, "B", 5, 2).Output("encoded_lengths", onnxfile.Int64, "B").
		Output("cache_last_channel_next", onnxfile.Float32, "B", 1, 5, nil).Output("cache_last_channel_next_len", onnxfile.Int64, "B").
		Meta("model_type", "EncDecRNNTBPEModel").Meta("normalize_type", "NA").Meta("window_size", "25").Meta("chunk_shift", "16").
		Meta("cache_last_channel_dim3", "1").Meta("subsampling_factor", "8").Meta("pred_rnn_layers", "2").Meta("pred_hidden", "6")
}

func nemoStreamParts() parts {
	return parts{
		ONNX: source(madeUpNeMoStream(), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"),
		Joiner: source(madeUpJoiner(nil), "joiner.onnx"), Tokens: tokensFile(nemoTokens),
	}
}

func streamingParts() parts {
	m := icefallParts(2)
	m.ONNX = source(madeUpStreamingEncoder(), "encoder.onnx")
	return m
}

// TestChunksAreTheWhole compares the streaming encoder, which has only its
// states of the sound before a chunk, with a network that reads all at once.
func TestChunksAreTheWhole(t *testing.T) {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, 1, "T", 80).Input("x_lens", onnxfile.Int64, 1)
	g.Node("Identity", []string{afterRows(g, toneRows(g, "x"), g.Const(zeros(1, 1, 5)), g.Const(ints(0)))}, []string{"encoder_out"})
	g.Node("Div", []string{g.Op("Add", []string{"x_lens", g.Const(ints(3))}), g.Const(ints(4))}, []string{"encoder_out_lens"})
	g.Output("encoder_out", onnxfile.Float32, "N", "T4", 5).Output("encoder_out_lens", onnxfile.Int64, "N").Meta("model_type", "zipformer2")
	m := icefallParts(2)
	m.ONNX = source(g, "encoder.onnx")
	whole, chunked := openMadeUp(t, m), openMadeUp(t, streamingParts())
	pcm := recording()
	for _, hotwords := range [][]string{nil, {"bana"}} { // greedy, and with a beam
		opt := asr.Options{WordTimestamps: true, Hotwords: hotwords}
		want, err := whole.Transcribe(context.Background(), pcm, recordingSpeech, opt)
		require.NoError(t, err)
		got, err := chunked.Transcribe(context.Background(), pcm, recordingSpeech, opt)
		require.NoError(t, err)
		assert.Equal(t, want.Segments, got.Segments)
	}
}

// TestDraftsCostTheNewSound checks, for speech that grows, that its text is that
// of the same sound without a state, and at the end that of Transcribe, that text
// only continues, and that a transcription reads only chunks that are new.
func TestDraftsCostTheNewSound(t *testing.T) {
	samples := tones(7, [3]float64{0.7, 1, lowTone}, [3]float64{1.6, 1.9, highTone}, [3]float64{2.6, 2.9, lowTone}, [3]float64{3.9, 4.4, highTone}, [3]float64{5, 5.5, lowTone})
	for name, m := range map[string]parts{"icefall": streamingParts(), "nemo": nemoStreamParts()} {
		t.Run(name, func(t *testing.T) {
			e, rows := openMadeUp(t, m), map[string]int{"icefall": 8, "nemo": 2}[name]
			k := e.net.chunked()
			long := e.net.features(samples)
			for n := 14000; n < 14200; n += 7 { // more of a tone changes no frame that a draft may read
				whole := (n - frameReach) / frameHop * long.dim
				assert.Equal(t, long.data[:whole], e.net.features(samples[:n]).data[:whole])
			}
			for seed := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, 3))
				begin := 8000 + r.IntN(300)
				var opt asr.Options
				var read int
				var before []int32
				for at := begin + 6000; at < len(samples); at += r.IntN(12000) {
					pcm, speech := audio.FromSamples(samples[:at]), []audio.Span{{Start: begin, End: at}}
					opt.Draft.Open = r.Float64() < 0.7
					got, err := e.Transcribe(context.Background(), pcm, speech, opt)
					require.NoError(t, err)
					want, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Draft: asr.Draft{Open: opt.Draft.Open}})
					require.NoError(t, err)
					assert.Equal(t, want.Segments, got.Segments)
					if !opt.Draft.Open {
						assert.Nil(t, got.State)
						continue
					}
					opt.Draft.State = got.State
					d := got.State.(*draft)
					sound := (at - begin + 1600 - frameReach) / frameHop
					assert.Equal(t, max(sound-k.size+k.shift, 0)/k.shift, d.chunks)
					now := tokensOf(got)
					steps := (d.chunks - read) * rows
					if name == "nemo" { // stays on a frame after a token
						steps += len(now) - len(before)
					}
					assert.Equal(t, steps, got.Stats.DecoderSteps)
					read = d.chunks
					require.LessOrEqual(t, len(before), len(now))
					assert.True(t, slices.Equal(before, now[:len(before)]))
					before = now
				}
				assert.NotEmpty(t, before)
			}
		})
	}
}

func tokensOf(tr *asr.Transcript) (list []int32) {
	for _, s := range tr.Segments {
		list = append(list, s.Tokens...)
	}
	return list
}

// With hotwords, a text is that of the whole sound.
func TestNoDraftWithHotwords(t *testing.T) {
	e, pcm := openMadeUp(t, streamingParts()), recording()
	opt := asr.Options{Hotwords: []string{"bana"}}
	want, err := e.Transcribe(context.Background(), pcm, recordingSpeech[:1], opt)
	require.NoError(t, err)
	opt.Draft.Open = true
	got, err := e.Transcribe(context.Background(), pcm, recordingSpeech[:1], opt)
	require.NoError(t, err)
	assert.Nil(t, got.State)
	assert.Equal(t, want, got)
}
