package onnx

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
)

func openMadeUp(t testing.TB, m parts) *Engine {
	t.Helper()
	e, err := openParts(m)
	skipWithoutRuntime(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

func tokensFile(data string) sideFile { return sideFile{Name: "tokens.txt", Data: []byte(data)} }

// toneFamilies returns all families, each with a made-up model that recognizes
// tones.
func toneFamilies() map[string]struct {
	model    parts
	contract string
	shift    float64
} {
	type family = struct {
		model    parts
		contract string
		shift    float64
	}
	config := sideFile{Name: "config.json", Data: []byte(`{"model_type":"nemo-conformer-tdt","features_size":128,"subsampling_factor":8}`)}
	two := []float32{0, 0, 3, 0, 0} // every step lasts two frames
	return map[string]family{
		"zipformer":          {parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile(sampleTokens)}, models.ContractZipformerCTC, 0.04},
		"zipformer no meta":  {parts{ONNX: source(madeUpZipformer(false), "zip.onnx"), Tokens: tokensFile(sampleTokens), Model: models.Model{Contract: models.ContractZipformerCTC}}, models.ContractZipformerCTC, 0.04},
		"wenet":              {parts{ONNX: source(madeUpWeNet(), "wenet.onnx"), Tokens: tokensFile("<blank> 0\n<unk> 1\n<sos/eos> 2\n▁ba 3\nna 4\n")}, models.ContractWeNetCTC, 0.04},
		"sense voice k2":     {parts{ONNX: source(madeUpSenseVoice(), "sense.onnx"), Tokens: sideFile{"tokens.txt", numbered(senseTokens)}}, models.ContractSenseVoice, 0.06},
		"sense voice funasr": {parts{ONNX: source(madeUpSenseVoiceFunASR(), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(senseTokens)}, CMVN: cmvnFile()}, models.ContractSenseVoice, 0.06},
		"nemo k2":            {parts{ONNX: source(madeUpNeMo(80, 8, true), "model.onnx"), Tokens: tokensFile(nemoTokens)}, models.ContractNeMoCTC, 0.08},
		"nemo conf":          {parts{ONNX: source(madeUpNeMo(80, 4, true), "model.onnx"), Tokens: tokensFile(nemoTokens)}, models.ContractNeMoCTC, 0.04},
		"nemo onnx-asr":      {parts{ONNX: source(madeUpNeMo(128, 8, false), "model.onnx"), Tokens: sideFile{"vocab.txt", []byte(nemoTokens)}, Config: config}, models.ContractNeMoCTC, 0.08},
		"wav2vec2 raw": {parts{
			ONNX: source(madeUpWaveform("input_values", false, rawTones), "model.onnx"), Tokens: sideFile{vocabName, []byte(waveformTokens)},
			Config: sideFile{preprocessorName, []byte(rawPreprocessor)},
		}, models.ContractWaveformCTC, 0.02},
		"wav2vec2 with a mask": {parts{
			ONNX: source(madeUpWaveform("input_values", true, normalizedTones), "model.onnx"), Tokens: sideFile{vocabName, []byte(waveformTokens)},
			Config: sideFile{preprocessorName, []byte(normalizingPreprocessor)},
		}, models.ContractWaveformCTC, 0.02},
		"omnilingual": {parts{
			ONNX: source(madeUpWaveform("x", false, normalizedTones), "model.onnx"), Tokens: tokensFile(omnilingualTokens), Model: models.Model{Contract: models.ContractWaveformCTC},
		}, models.ContractWaveformCTC, 0.02},
		"wav2vec2 onnx-asr": {parts{
			ONNX: source(madeUpWaveformLengths(), "model.onnx"), Tokens: sideFile{"vocab.txt", []byte("<blk> 0\n<s> 1\n<unk> 2\n▁ba 3\nna 4\n")},
		}, models.ContractWaveformCTC, 0.02},
		"gigaam v2": {parts{ONNX: source(madeUpGigaAM(2, true), "model.int8.onnx"), Tokens: tokensFile(nemoTokens)}, models.ContractGigaAMCTC, 0.04},
		"gigaam v3": {parts{ONNX: source(madeUpGigaAM(3, true), "model.int8.onnx"), Tokens: tokensFile(nemoTokens)}, models.ContractGigaAMCTC, 0.04},
		"gigaam v3 onnx-asr": {parts{
			ONNX: source(madeUpGigaAM(3, false), "v3_ctc.onnx"), Tokens: sideFile{"v3_vocab.txt", []byte(nemoTokens)},
		}, models.ContractGigaAMCTC, 0.04},
		"gigaam transducer": {parts{
			ONNX:    source(madeUpGigaEncoder(3).Meta("is_giga_am", "1").Meta("comment", "v3").Meta("subsampling_factor", "4"), "encoder.int8.onnx"),
			Decoder: source(madeUpGigaDecoder(true), "decoder.onnx"), Joiner: source(madeUpGigaJoiner(), "joiner.onnx"), Tokens: tokensFile(nemoTokens),
		}, models.ContractGigaAMTransducer, 0.04},
		"gigaam transducer onnx-asr": {parts{
			ONNX:    source(madeUpGigaEncoder(2), "v2_rnnt_encoder.onnx"),
			Decoder: source(madeUpGigaDecoder(false), "v2_rnnt_decoder.onnx"), Joiner: source(madeUpGigaJoiner(), "v2_rnnt_joint.onnx"),
			Tokens: sideFile{"v2_vocab.txt", []byte(nemoTokens)}, Config: sideFile{"config.json", []byte(`{"model_type": "gigaam-v2-rnnt", "max_tokens_per_step": 3}`)},
		}, models.ContractGigaAMTransducer, 0.04},
		"rnnt three files": {parts{
			ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"),
			Joiner: source(madeUpJoiner(nil), "joiner.onnx"), Tokens: tokensFile(nemoTokens),
		}, models.ContractNeMoTransducer, 0.08},
		"icefall transducer": {icefallParts(2), models.ContractIcefallTransducer, 0.04},
		"icefall streaming":  {streamingParts(), models.ContractIcefallTransducer, 0.04},
		"nemo streaming":     {nemoStreamParts(), models.ContractNeMoTransducer, 0.08},
		"tdt three files": {parts{
			ONNX: source(madeUpEncoder(true), "encoder.onnx"), Decoder: source(madeUpDecoder(), "decoder.onnx"),
			Joiner: source(madeUpJoiner(two), "joiner.onnx"), Tokens: tokensFile(nemoTokens),
		}, models.ContractNeMoTransducer, 0.16},
		"tdt two files": {parts{
			ONNX: source(madeUpEncoder(false), "encoder-model.onnx"), Decoder: source(madeUpDecoderJoint(two), "decoder_joint-model.onnx"),
			Tokens: sideFile{"vocab.txt", []byte(nemoTokens)}, Config: config,
		}, models.ContractNeMoTransducer, 0.16},
		"tdt that stays": {parts{
			ONNX: source(madeUpEncoder(false), "encoder-model.onnx"), Decoder: source(madeUpDecoderJoint([]float32{3, 0, 0, 0, 0}), "decoder_joint-model.onnx"),
			Tokens: sideFile{"vocab.txt", []byte(nemoTokens)}, Config: config,
		}, models.ContractNeMoTransducer, 0.08},
	}
}

func TestEveryFamilyDecodesToKnownTokensAndTimes(t *testing.T) {
	for name, f := range toneFamilies() {
		t.Run(name, func(t *testing.T) {
			e := openMadeUp(t, f.model)
			assert.Equal(t, f.contract, e.contract)
			pcm := recording()

			// First the token times, with the whole recording in one window.
			windows := e.windows(pcm, []audio.Span{{Start: 0, End: pcm.Len()}})
			require.Len(t, windows, 1)
			hyps, err := e.decode(context.Background(), pcm, windows, request{}, asr.Options{}, nil)
			require.NoError(t, err)
			want := []struct {
				symbol     string
				start, end float64
			}{{" ba", 0.5, 0.8}, {"na", 1.1, 1.4}, {" ba", 2.6, 2.9}, {"na", 3.2, 3.5}}
			got := e.vocab.write(hyps[0].emissions)
			require.Len(t, got, len(want), "%v", got)
			for i, w := range want {
				assert.Equal(t, w.symbol, got[i].text)
				assert.InDelta(t, w.start, got[i].start, f.shift+0.03, "start of token %d", i)
				assert.Greater(t, got[i].end, got[i].start)
				assert.LessOrEqual(t, got[i].end, w.end+f.shift+0.03, "end of token %d", i)
				assert.LessOrEqual(t, got[i].logProb, 0.0)
				assert.Greater(t, got[i].logProb, -1.0, "the best token of a clear tone is likely")
			}

			// Then the transcript: two segments within the given speech, with a
			// word each.
			tr, err := e.Transcribe(context.Background(), pcm, recordingSpeech, asr.Options{WordTimestamps: true})
			require.NoError(t, err)
			require.Len(t, tr.Segments, 2, "%+v", tr.Segments)
			assert.Equal(t, "Bana", tr.Segments[0].Text)
			assert.Equal(t, "Bana", tr.Segments[1].Text)
			assert.InDelta(t, 0.4, tr.Segments[0].Start, 1e-9, "the first word begins where speech does")
			assert.InDelta(t, 2.5, tr.Segments[1].Start, 1e-9)
			windows = e.windows(pcm, recordingSpeech)
			hyps, err = e.decode(context.Background(), pcm, windows, request{}, asr.Options{}, nil)
			require.NoError(t, err)
			for i, speechEnd := range []float64{1.5, 3.6} {
				tokens := e.vocab.write(hyps[i].emissions)
				end := windows[i].Time(tokens[len(tokens)-1].end)
				assert.InDelta(t, min(speechEnd, end+tail), tr.Segments[i].End, 1e-9, "the last word ends with the speech, at most tail after its token")
			}
			for _, s := range tr.Segments {
				if hyps[0].unbounded {
					assert.Nil(t, s.Words, "words need times")
				} else if assert.Len(t, s.Words, 1) {
					assert.Equal(t, s.Text, s.Words[0].Text)
				}
				assert.LessOrEqual(t, s.AvgLogProb, 0.0)
			}
			assert.Equal(t, 2, tr.Stats.Windows)
			assert.Equal(t, 2, tr.Stats.EncoderPasses)
			transducer := slices.Contains([]string{models.ContractNeMoTransducer, models.ContractGigaAMTransducer, models.ContractIcefallTransducer}, f.contract)
			assert.Equal(t, transducer, tr.Stats.DecoderSteps > 0)

			// Silence says nothing.
			silent := audio.FromSamples(make([]float32, 32000))
			tr, err = e.Transcribe(context.Background(), silent, []audio.Span{{Start: 0, End: 32000}}, asr.Options{})
			require.NoError(t, err)
			assert.Empty(t, tr.Segments)
			// The shortest stretch of speech must not make a network fail.
			_, err = e.Transcribe(context.Background(), silent, []audio.Span{{Start: 16000, End: 16010}}, asr.Options{})
			require.NoError(t, err)
		})
	}
}

func TestParaformer(t *testing.T) {
	pcm := audio.FromSamples(tones(2.0, [3]float64{0.1, 1.9, lowTone}))
	speech := []audio.Span{{Start: 0, End: pcm.Len()}}
	for name, peaks := range map[string]bool{"with peaks": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			front := newFunASR()
			frames := front.features(pcm.Samples(0, pcm.Len())).frames
			e := openMadeUp(t, parts{ONNX: source(madeUpParaformer(frames, peaks), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(paraformerTokens)}})
			assert.Equal(t, models.ContractParaformer, e.contract)
			hyps, err := e.decode(context.Background(), pcm, e.windows(pcm, speech), request{}, asr.Options{}, nil)
			require.NoError(t, err)
			require.Len(t, hyps[0].emissions, 5)
			assert.Equal(t, !peaks, hyps[0].unbounded)
			if peaks {
				for i, m := range hyps[0].emissions {
					assert.InDelta(t, (float64(5*i+4)-1.5)*0.02, m.start, 1e-9)
					assert.InDelta(t, (float64(5*i+9)-1.5)*0.02, m.end, 1e-9)
				}
			}
			tr, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Language: "zh"})
			require.NoError(t, err)
			require.Len(t, tr.Segments, 1)
			assert.Equal(t, "你好 hello go", tr.Segments[0].Text)
			assert.Equal(t, "zh", tr.Language)
			assert.GreaterOrEqual(t, tr.Segments[0].Start, 0.0)
			assert.LessOrEqual(t, tr.Segments[0].End, 2.0)
		})
	}
}

// TestParaformerFailureWithoutTokensIsSilence checks that a failure in the
// predictor, which published graphs have without a token, is an empty result.
// Another family's failure is an error.
func TestParaformerFailureWithoutTokensIsSilence(t *testing.T) {
	fail := func(g *onnxfile.Graph, like string) string {
		zero := g.Op("Mul", []string{g.Op("Shape", []string{like}), g.Const(ints(0))})
		return g.Op("Gather", []string{g.Const(zeros(1, 9)), g.Op("Add", []string{zero, g.Const(ints(99))})}, onnxfile.AttrInt("axis", 0))
	}
	g := onnxfile.NewGraph()
	g.Input("speech", onnxfile.Float32, "N", "T", lfrDim).Input("speech_lengths", onnxfile.Int32, "N")
	g.Node("Unsqueeze", []string{fail(g, "speech"), g.Const(ints(0))}, []string{"logits"})
	g.Node("Identity", []string{"speech_lengths"}, []string{"token_num"})
	g.Output("logits", onnxfile.Float32, nil, nil, 9).Output("token_num", onnxfile.Int32, nil)
	e := openMadeUp(t, parts{ONNX: source(cmvnMeta(g), "model.onnx"), Tokens: sideFile{"tokens.json", jsonList(paraformerTokens)}})
	tr, err := e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{})
	require.NoError(t, err)
	assert.Empty(t, tr.Segments)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Transcribe(ctx, recording(), recordingSpeech, asr.Options{})
	require.ErrorIs(t, err, context.Canceled, "a canceled run is not silence")

	g = onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N")
	g.Node("Unsqueeze", []string{fail(g, "x"), g.Const(ints(0))}, []string{"log_probs"})
	g.Node("Identity", []string{"x_lens"}, []string{"log_probs_len"})
	g.Output("log_probs", onnxfile.Float32, nil, nil, nil).Output("log_probs_len", onnxfile.Int64, nil)
	e = openMadeUp(t, parts{ONNX: source(g, "zip.onnx"), Tokens: tokensFile(sampleTokens)})
	_, err = e.Transcribe(context.Background(), recording(), recordingSpeech, asr.Options{})
	require.ErrorIs(t, err, ort.ErrRun)
	assert.ErrorContains(t, err, "optimized model zip.onnx")
}

// TestWordsLastThroughSpeech checks that tokens 0.9 s apart in one stretch of
// speech are one sentence, and two with a silence between them.
func TestWordsLastThroughSpeech(t *testing.T) {
	e := openMadeUp(t, parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile(sampleTokens)})
	pcm := audio.FromSamples(tones(3, [3]float64{0.5, 0.6, lowTone}, [3]float64{1.5, 1.6, lowTone}))
	for _, c := range []struct {
		speech []audio.Span
		want   []asr.Segment
	}{
		{[]audio.Span{{Start: 6400, End: 28800}}, []asr.Segment{{Start: 0.4, End: 1.8, Text: "Ba ba"}}},
		{[]audio.Span{{Start: 6400, End: 10400}, {Start: 23680, End: 28800}}, []asr.Segment{{Start: 0.4, End: 0.65, Text: "Ba"}, {Start: 1.48, End: 1.8, Text: "Ba"}}},
	} {
		tr, err := e.Transcribe(context.Background(), pcm, c.speech, asr.Options{})
		require.NoError(t, err)
		require.Len(t, tr.Segments, len(c.want))
		for i, w := range c.want {
			assert.Equal(t, w.Text, tr.Segments[i].Text)
			assert.InDelta(t, w.Start, tr.Segments[i].Start, 1e-9)
			assert.InDelta(t, w.End, tr.Segments[i].End, 1e-9)
		}
	}
}

func TestWordsGoToTheNearestSpeech(t *testing.T) {
	words := []decode.Word{
		{Word: asr.Word{Start: 0.9, End: 0.95}},                                          // fires before its stretch begins
		{Word: asr.Word{Start: 1.8, End: 1.85}},                                          // fires long before the next word
		{Word: asr.Word{Start: 3.0, End: 3.05}},                                          // in the middle
		{Word: asr.Word{Start: 4.1, End: 4.15}},                                          // fires after its stretch has ended
		{Word: asr.Word{Start: 5.8, End: 5.9}}, {Word: asr.Word{Start: 5.95, End: 6.00}}, // before the next one begins
	}
	snapToSpeech(words, []audio.Span{{Start: 16000, End: 64000}, {Start: 96000, End: 112000}, {Start: 160000, End: 168000}})
	for i, w := range [][2]float64{{1, 1.55}, {1.8, 2.45}, {3, 3.65}, {4.1, 4.15}, {6, 5.95}, {5.95, 6.25}} {
		assert.InDelta(t, w[0], words[i].Start, 1e-9, "start of word %d", i)
		assert.InDelta(t, w[1], words[i].End, 1e-9, "end of word %d", i)
	}
	snapToSpeech(nil, []audio.Span{{Start: 0, End: 1}})
	snapToSpeech(words, nil)
}

// TestSentencesEndSoonAfterTheirLastToken checks that a sentence ends 0.25 s
// after its last token if the detector reports speech longer, as it does in
// noise or in a pause between sentences.
func TestSentencesEndSoonAfterTheirLastToken(t *testing.T) {
	words := []decode.Word{
		{Word: asr.Word{Text: " One.", Start: 0.1, End: 0.4}},
		{Word: asr.Word{Text: " Two", Start: 1.2, End: 1.3}},
		{Word: asr.Word{Text: " three.", Start: 1.6, End: 1.8}},
		{Word: asr.Word{Text: " Four.", Start: 1.9, End: 2.1}},
	}
	snapToSpeech(words, []audio.Span{{Start: 0, End: 40000}})
	for i, end := range []float64{0.65, 1.6, 1.9, 2.35} {
		assert.InDelta(t, end, words[i].End, 1e-9, "end of %s", words[i].Text)
	}
	assert.Zero(t, words[0].Start)
}

func TestPeakTimes(t *testing.T) {
	tokens := make([]emission, 2)
	peaks := make([]float32, 60)
	peaks[2], peaks[10], peaks[50] = 1, 0.99995, 1
	require.True(t, peakTimes(tokens, peaks, 20))
	assert.InDelta(t, 0.01, tokens[0].start, 1e-9)
	assert.InDelta(t, 0.17, tokens[0].end, 1e-9)
	assert.InDelta(t, 0.17, tokens[1].start, 1e-9)
	assert.InDelta(t, 0.77, tokens[1].end, 1e-9, "no token is longer than 0.6 s")
	assert.False(t, peakTimes(make([]emission, 3), peaks, 20), "peaks as many as tokens are refused")
	assert.False(t, peakTimes(tokens, peaks, 10), "peaks after the window do not count")
}

func TestSenseVoiceDetectsTheLanguage(t *testing.T) {
	e := openMadeUp(t, parts{ONNX: source(madeUpSenseVoice(), "sense.onnx"), Tokens: sideFile{"tokens.txt", numbered(senseTokens)}})
	assert.Equal(t, []string{"zh", "en", "yue", "ja", "ko"}, e.Languages())
	pcm := recording()

	language, p, err := e.DetectLanguage(context.Background(), pcm, recordingSpeech, asr.Detection{})
	require.NoError(t, err)
	assert.Equal(t, "en", language)
	// The logit of one tag is 3, the other five are 0.
	assert.InDelta(t, 20.0855/(20.0855+5), p, 1e-4)
	language, _, err = e.DetectLanguage(context.Background(), pcm, nil, asr.Detection{})
	require.NoError(t, err)
	assert.Equal(t, "en", language)

	tr, err := e.Transcribe(context.Background(), pcm, recordingSpeech, asr.Options{})
	require.NoError(t, err)
	assert.Equal(t, "en", tr.Language, "detected, because none was given")

	// A requested language is passed to the network.
	tr, err = e.Transcribe(context.Background(), pcm, recordingSpeech, asr.Options{Language: "ja-JP"})
	require.NoError(t, err)
	assert.Equal(t, "ja", tr.Language)

	_, err = e.Transcribe(context.Background(), pcm, recordingSpeech, asr.Options{Language: "pt"})
	require.ErrorIs(t, err, asr.ErrLanguage)
	assert.ErrorContains(t, err, "zh, en, yue, ja, ko")
}

func TestBatchesGiveTheSameTextAsSingleWindows(t *testing.T) {
	for _, name := range []string{"zipformer", "sense voice k2", "sense voice funasr"} {
		f := toneFamilies()[name]
		t.Run(name, func(t *testing.T) {
			e := openMadeUp(t, f.model)
			// The recording has twelve utterances of slightly different length.
			var x []float32
			var speech []audio.Span
			for i := range 12 {
				u := tones(1.0+float64(i%4)*0.05, [3]float64{0.2, 0.5, lowTone}, [3]float64{0.6, 0.9, highTone})
				x = append(x, make([]float32, 16000)...)
				speech = append(speech, audio.Span{Start: len(x), End: len(x) + len(u)})
				x = append(x, u...)
			}
			pcm := audio.FromSamples(append(x, make([]float32, 16000)...))
			run := func(batch, parallel int) *asr.Transcript {
				e.batch = batch
				var calls []float64
				tr, err := e.Transcribe(context.Background(), pcm, speech, asr.Options{Parallel: parallel, Progress: func(done, total float64) {
					calls = append(calls, done/total)
				}})
				require.NoError(t, err)
				require.NotEmpty(t, calls)
				assert.InDelta(t, 1, calls[len(calls)-1], 1e-9)
				assert.IsNonDecreasing(t, calls)
				return tr
			}
			one := run(1, 1)
			require.Len(t, one.Segments, 12)
			assert.Equal(t, "Bana", one.Segments[11].Text)
			four := run(4, 1)
			assert.Equal(t, one.Segments, four.Segments)
			assert.Equal(t, four, run(4, 3), "the result does not depend on parallelism")
		})
	}
}
