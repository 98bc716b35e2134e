package onnx

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
)

func TestMain(m *testing.M) { outside.Main(m) }

// graph returns a model with ports only, which is enough for models that are
// refused before they run.
func graph(inputs, outputs []ort.Info, meta ...string) ort.Source {
	g := onnxfile.NewGraph()
	dims := func(s []int64) []any {
		var d []any
		for _, n := range s {
			if n < 0 {
				d = append(d, nil)
			} else {
				d = append(d, n)
			}
		}
		return d
	}
	for _, p := range inputs {
		g.Input(p.Name, p.Type, dims(p.Shape)...)
	}
	for _, p := range outputs {
		g.Output(p.Name, p.Type, dims(p.Shape)...)
	}
	for i := 0; i+1 < len(meta); i += 2 {
		g.Meta(meta[i], meta[i+1])
	}
	return source(g, "made-up.onnx")
}

func f32(name string, shape ...int64) ort.Info {
	return ort.Info{Name: name, Type: ort.Float32, Shape: shape}
}

func i64(name string, shape ...int64) ort.Info {
	return ort.Info{Name: name, Type: ort.Int64, Shape: shape}
}

func i32(name string, shape ...int64) ort.Info {
	return ort.Info{Name: name, Type: ort.Int32, Shape: shape}
}

func TestUnsuitableModelsAreRefused(t *testing.T) {
	type ports = []ort.Info
	zipIn, zipOut := ports{f32("x", -1, -1, 80), i64("x_lens", -1)}, ports{f32("log_probs", -1, -1, 5), i64("log_probs_len", -1)}
	tokens := tokensFile(sampleTokens)
	sense := func() parts {
		return parts{ONNX: source(madeUpSenseVoice(), "sense.onnx"), Tokens: sideFile{"tokens.txt", numbered(senseTokens)}}
	}
	for name, c := range map[string]struct {
		model parts
		is    error
		want  []string
	}{
		"not ONNX":      {parts{ONNX: ort.Source{Data: []byte("hello"), Name: "a.onnx", Role: "optimized"}, Tokens: tokens}, ort.ErrInvalid, []string{"optimized model a.onnx"}},
		"no file":       {parts{ONNX: ort.Source{Path: "/nonexistent/a.onnx", Role: "optimized"}, Tokens: tokens}, nil, []string{"a.onnx", "no such file"}},
		"other network": {parts{ONNX: graph(ports{f32("feats", -1, -1, 80)}, ports{f32("embs", -1, 192)}), Tokens: tokens}, ErrContract, []string{"optimized model made-up.onnx", "expected one of gigaam-ctc, gigaam-transducer, icefall-transducer", "found a model for role embedder (wespeaker)", "inputs feats float32[?,?,80]; outputs embs float32[?,192]"}},
		"wenet stream":  {parts{ONNX: graph(ports{f32("chunk", -1, -1, 80), i64("offset"), f32("att_cache", -1)}, ports{f32("output", -1)}), Tokens: tokens}, ErrContract, []string{"WeNet's own streaming export"}},
		"wenet ctc":     {parts{ONNX: graph(ports{f32("hidden", -1, -1, 256)}, ports{f32("probs", -1, -1, 5)}), Tokens: tokens}, ErrContract, []string{"CTC layer of WeNet"}},
		"zip stream":    {parts{ONNX: graph(append(ports{f32("cached", -1)}, zipIn...), zipOut, "model_type", "zipformer2_ctc"), Tokens: tokens}, ErrContract, []string{"streaming Zipformer", "cached float32[?]"}},
		"rnnt stream":   {parts{ONNX: graph(append(ports{f32("cached", -1)}, zipIn...), ports{f32("encoder_out", -1, -1, 5)}, "model_type", "zipformer2"), Tokens: tokens}, ErrContract, []string{"an icefall transducer in an unknown layout"}},
		"chunks":        {parts{ONNX: graph(ports{f32("x", -1, 45, 80), f32("state", -1, 4)}, ports{f32("encoder_out", -1, -1, 5), f32("new_state", -1, 4)}, "T", "45", "decode_chunk_len", "46"), Tokens: tokens}, ErrContract, []string{"decode_chunk_len of 1 to T", "T \"45\" and decode_chunk_len \"46\""}},
		"state":         {parts{ONNX: graph(ports{f32("x", -1, 45, 80), f32("state", -1, -1)}, ports{f32("encoder_out", -1, -1, 5), f32("new_state", -1, -1)}, "T", "45", "decode_chunk_len", "32"), Tokens: tokens}, ErrContract, []string{"a state with one free dimension at most", "found state float32[1,?]"}},
		"rnnt alone":    {parts{ONNX: source(madeUpIcefallEncoder(), "encoder.onnx"), Tokens: tokens}, ErrFile, []string{"needs its decoder and joiner"}},
		"rnnt decoder":  {parts{ONNX: source(madeUpIcefallEncoder(), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"), Joiner: source(madeUpIcefallJoiner(5), "joiner.onnx"), Tokens: tokens}, ErrContract, []string{"expected input y int32[?,?] or int64[?,?]"}},
		"rnnt joiner":   {parts{ONNX: source(madeUpIcefallEncoder(), "encoder.onnx"), Decoder: source(madeUpIcefallDecoder(2), "decoder.onnx"), Joiner: source(madeUpIcefallJoiner(6), "joiner.onnx"), Tokens: tokens}, ErrTokens, []string{"output logit should have 5 columns, it has 6"}},
		"speaker":       {parts{ONNX: graph(ports{f32("audio_signal", -1, 80, -1), i64("length", -1)}, ports{f32("logits", -1), f32("embs", -1, 192)}), Tokens: tokens}, ErrContract, []string{"found a model for role embedder (nemo-speaker)"}},
		"nemo branch":   {parts{ONNX: graph(ports{f32("audio_signal", -1, 80, -1), i64("length", -1)}, ports{f32("nothing", -1)}, "model_type", "EncDecHybridRNNTCTCBPEModel"), Tokens: tokens}, ErrContract, []string{"neither CTC (output logprobs) nor a transducer"}},
		"said another":  {parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokens, Model: models.Model{Contract: models.ContractNeMoCTC}}, ErrContract, []string{"expected input audio_signal", "it has inputs x float32[?,?,80]"}},
		"said nonsense": {parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokens, Model: models.Model{Contract: "panns"}}, ErrContract, []string{`role optimized has no contract "panns"`}},
		"bands":         {parts{ONNX: graph(ports{f32("x", -1, -1, 40), i64("x_lens", -1)}, zipOut, "model_type", "zipformer2_ctc"), Tokens: tokens}, ErrContract, []string{"expected input x float32[?,?,80], found x float32[?,?,40]"}},
		"length type":   {parts{ONNX: graph(ports{f32("x", -1, -1, 80), f32("x_lens", -1)}, zipOut, "model_type", "zipformer2_ctc"), Tokens: tokens}, ErrContract, []string{"expected input x_lens int32[?] or int64[?]"}},
		"no output":     {parts{ONNX: graph(zipIn, ports{f32("log_probs", -1, -1, 5)}, "model_type", "zipformer2_ctc"), Tokens: tokens}, ErrContract, []string{"expected output log_probs_len", "found none of that name"}},
		"no tokens":     {parts{ONNX: source(madeUpZipformer(true), "zip.onnx")}, ErrTokens, []string{"zip.onnx", "empty or missing"}},
		"fewer tokens":  {parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile("<blk> 0\na 1\n")}, ErrTokens, []string{"tokens.txt lists 2 tokens, so output log_probs should have 2 columns, it has 5"}},
		"no blank":      {parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile("a 0\nb 1\nc 2\nd 3\ne 4\n")}, ErrTokens, []string{"no blank"}},
		"factor":        {parts{ONNX: graph(zipIn, ports{f32("log_probs", -1, -1, 5), i64("log_probs_lens", -1)}, "model_type", "wenet_ctc", "subsampling_factor", "four"), Tokens: tokens}, ErrContract, []string{"metadata subsampling_factor: expected a number from 1 to 64, found \"four\""}},
		"no CMVN": {
			parts{ONNX: source(madeUpSenseVoiceFunASR(), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(senseTokens)}},
			ErrFile,
			[]string{"expected neg_mean and inv_stddev in the metadata or a file am.mvn"},
		},
		"broken CMVN": {parts{
			ONNX: source(madeUpSenseVoiceFunASR(), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(senseTokens)},
			CMVN: sideFile{"am.mvn", []byte("<LearnRateCoef> 0 [ 1 2 3 ]")},
		}, ErrFile, []string{"am.mvn", "expected two <LearnRateCoef> lists of 560 numbers", "found 3 numbers"}},
		"half CMVN":  {parts{ONNX: source(madeUpSenseVoiceFunASR().Meta("neg_mean", strings.Repeat("1,", 559)+"1"), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(senseTokens)}}, ErrContract, []string{"found one of them"}},
		"short CMVN": {parts{ONNX: source(madeUpSenseVoiceFunASR().Meta("neg_mean", "1,2"), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(senseTokens)}}, ErrContract, []string{"metadata neg_mean: expected 560 numbers", "found 2 numbers"}},
		"no language tags": {parts{ONNX: source(madeUpSenseVoice(), "sense.onnx"), Tokens: sideFile{"tokens.txt", numbered([]string{
			"<unk>", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
		})}}, ErrTokens, []string{"no language tags"}},
		"blank outside": {parts{ONNX: source(madeUpSenseVoice().Meta("blank_id", "77"), "sense.onnx"), Tokens: sense().Tokens}, ErrTokens, []string{"blank_id 77"}},
		"language":      {func() parts { m := sense(); m.Languages = []string{"en", "pt"}; return m }(), ErrFile, []string{`language "pt"`, "zh, en, yue, ja, ko"}},
		"no code":       {func() parts { m := sense(); m.Languages = []string{"klingon"}; return m }(), ErrFile, []string{`"klingon"`}},
		"window":        {func() parts { m := sense(); m.WindowSeconds = 1e6; return m }(), ErrFile, []string{"window of 1e+06 s"}},
		"gigaam":        {parts{ONNX: source(madeUpGigaAM(3, false), "model.onnx"), Tokens: tokensFile(nemoTokens)}, ErrContract, []string{"expected GigaAM v2 or v3"}},
		"mel bands":     {parts{ONNX: graph(ports{f32("audio_signal", -1, 40, -1), i64("length", -1)}, ports{f32("logprobs", -1, -1, 5)}), Tokens: tokensFile(nemoTokens)}, ErrContract, []string{"expected 64, 80 or 128 mel bands, found 40"}},
		"normalization": {parts{ONNX: graph(ports{f32("audio_signal", -1, 80, -1), i64("length", -1)}, ports{f32("logprobs", -1, -1, 5)}, "normalize_type", "all_features"), Tokens: tokensFile(nemoTokens)}, ErrContract, []string{"normalize_type: expected per_feature or NA, found \"all_features\""}},
		"config":        {parts{ONNX: source(madeUpNeMo(80, 8, false), "model.onnx"), Tokens: tokensFile(nemoTokens), Config: sideFile{"config.json", []byte("{")}}, ErrFile, []string{"config.json"}},
		"no decoder":    {parts{ONNX: source(madeUpEncoder(true), "encoder.onnx"), Tokens: tokensFile(nemoTokens)}, ErrFile, []string{"encoder.onnx", "decoder and joiner (or decoder_joint)"}},
		"no joiner":     {parts{ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"), Tokens: tokensFile(nemoTokens)}, ErrContract, []string{"decoder.onnx", "found a decoder without encoder_outputs and no joiner"}},
		"joiner twice": {
			parts{ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoderJoint(nil), "dj.onnx"), Joiner: source(madeUpJoiner(nil), "joiner.onnx"), Tokens: tokensFile(nemoTokens)},
			ErrContract,
			[]string{"dj.onnx", "found a decoder_joint and a joiner"},
		},
		"joiner is a decoder": {
			parts{ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"), Joiner: source(madeUpDecoder(), "joiner.onnx"), Tokens: tokensFile(nemoTokens)},
			ErrContract,
			[]string{"joiner.onnx", "expected input encoder_outputs"},
		},
		"decoder is a joiner": {
			parts{ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpJoiner(nil), "joiner.onnx"), Tokens: tokensFile(nemoTokens)},
			ErrContract,
			[]string{"joiner.onnx", "expected input targets"},
		},
		"paraformer": {
			parts{ONNX: graph(ports{f32("speech", -1, -1, 560), i32("speech_lengths", -1)}, ports{f32("logits", -1, -1, 7), i32("token_num", -1)}), Tokens: sideFile{"tokens.json", jsonList(paraformerTokens)}},
			ErrTokens,
			[]string{"tokens.json lists 9 tokens, so output logits should have 9 columns, it has 7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := openParts(c.model)
			if err == nil {
				_ = e.Close()
			}
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, w := range c.want {
				assert.ErrorContains(t, err, w)
			}
		})
	}
}

// TestWidthIsCheckedAtTheFirstRun checks exports that leave the last dimension
// open.
func TestWidthIsCheckedAtTheFirstRun(t *testing.T) {
	e := openMadeUp(t, parts{ONNX: source(madeUpWeNet(), "wenet.onnx"), Tokens: tokensFile("<blank> 0\na 1\nb 2\n")})
	_, err := e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{})
	require.ErrorIs(t, err, ErrTokens)
	assert.ErrorContains(t, err, "optimized model wenet.onnx")
	assert.ErrorContains(t, err, "lists 3 tokens, so output log_probs should have 3 columns, it has 5")

	e = openMadeUp(t, parts{
		ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"),
		Joiner: source(madeUpJoiner(nil), "joiner.onnx"), Tokens: tokensFile(nemoTokens + "z 5\n"),
	})
	_, err = e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{})
	require.ErrorIs(t, err, ErrTokens)
}

func TestLanguagesAreChecked(t *testing.T) {
	e := openMadeUp(t, parts{Model: models.Model{Name: "made-up", Languages: []string{"English", "pt-BR"}}, ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile(sampleTokens)})
	assert.Equal(t, []string{"en", "pt"}, e.Languages())
	tr, err := e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{Language: "por"})
	require.NoError(t, err)
	assert.Equal(t, "pt", tr.Language)
	_, err = e.Transcribe(context.Background(), recording(), nil, asr.Options{Language: "de"})
	require.ErrorIs(t, err, asr.ErrLanguage)
	assert.ErrorContains(t, err, `made-up: language: it supports en, pt, not "de": language not supported`)
	_, _, err = e.DetectLanguage(context.Background(), recording(), recordingSpeech, asr.Detection{})
	require.ErrorIs(t, err, asr.ErrNoLanguage)
	tr, err = e.Transcribe(context.Background(), recording(), nil, asr.Options{})
	require.NoError(t, err)
	assert.Empty(t, tr.Segments, "no speech, no text")
	assert.Empty(t, tr.Language, "two languages, none requested")
}

func TestCancellationAndClose(t *testing.T) {
	e := openMadeUp(t, parts{Model: models.Model{Name: "made-up"}, ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile(sampleTokens)})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Transcribe(ctx, recording(), recordingSpeech, asr.Options{})
	require.ErrorIs(t, err, context.Canceled)

	// After a cancellation no further batch starts.
	x := make([]float32, 100*audio.SampleRate)
	var speech []audio.Span
	for i := range 40 {
		speech = append(speech, audio.Span{Start: i * 40000, End: i*40000 + 10000 + 600*i})
	}
	ctx, cancel = context.WithCancel(context.Background())
	var calls atomic.Int32
	_, err = e.Transcribe(ctx, audio.FromSamples(x), speech, asr.Options{Parallel: 2, Progress: func(done, total float64) {
		calls.Add(1)
		cancel()
	}})
	require.ErrorIs(t, err, context.Canceled)
	assert.LessOrEqual(t, calls.Load(), int32(3))

	// Close waits for running calls and may be called twice; afterwards every
	// call fails.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{Parallel: 2})
			if err != nil {
				assert.ErrorIs(t, err, ErrClosed)
			}
		})
	}
	wg.Go(func() { assert.NoError(t, e.Close()) })
	wg.Wait()
	require.NoError(t, e.Close())
	_, err = e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{})
	require.ErrorIs(t, err, ErrClosed)
	assert.ErrorContains(t, err, "made-up")
}

func TestBatchesAreOfSimilarLength(t *testing.T) {
	got := batches([]int{100, 40, 95, 90, 41, 86, 84, 100}, 3, 1000)
	assert.Equal(t, [][]int{{0, 7, 2}, {3, 5, 6}, {4, 1}}, got)
	seen := map[int]bool{}
	for _, b := range got {
		for _, i := range b {
			assert.False(t, seen[i], fmt.Sprint(i))
			seen[i] = true
		}
	}
	assert.Len(t, seen, 8)
	assert.Equal(t, [][]int{{0, 1}, {2}}, batches([]int{100, 100, 100}, 4, 299), "at most the budget")
	assert.Equal(t, [][]int{{0}, {1}}, batches([]int{100, 100}, 4, 50), "a single window may exceed the budget")
	assert.Empty(t, batches(nil, 4, 10))
}

// TestSentencesComeGroupByGroup: sentences come while later windows are
// decoded, and are the transcript's sentences.
func TestSentencesComeGroupByGroup(t *testing.T) {
	assert.Equal(t, []int{0}, groups(0))
	assert.Equal(t, []int{8, 40, 50}, groups(50))
	const copies = 25
	one := recording()
	var samples []float32
	var speech []audio.Span
	for i := range copies {
		for _, s := range recordingSpeech {
			speech = append(speech, audio.Span{Start: i*one.Len() + s.Start, End: i*one.Len() + s.End})
		}
		samples = append(samples, one.Samples(0, one.Len())...)
	}
	e := openMadeUp(t, toneFamilies()["nemo onnx-asr"].model)
	windows := 0
	var when []int
	var sentences []asr.Segment
	tr, err := e.Transcribe(context.Background(), audio.FromSamples(samples), speech, asr.Options{
		WordTimestamps: true, Progress: func(float64, float64) { windows++ },
		Settled: func(list []asr.Segment) { sentences, when = append(sentences, list...), append(when, windows) },
	})
	require.NoError(t, err)
	require.Len(t, tr.Segments, 2*copies)
	assert.Len(t, when, 2, "after the first and the second group of three")
	assert.Less(t, when[0], when[1])
	assert.Less(t, when[1], windows-1)
	require.Greater(t, len(sentences), 30)
	for i, s := range sentences {
		assert.Equal(t, []any{tr.Segments[i].Start, tr.Segments[i].End, tr.Segments[i].Text}, []any{s.Start, s.End, s.Text})
	}
}
