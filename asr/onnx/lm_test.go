package onnx

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

const sailors = `\data\
ngram 1=6
ngram 2=2
\1-grams:
-1 </s>
-99 <s>
-6 <unk>
-1 the	-1
-2 sea	-1
-2 see	-1
\2-grams:
-0.1 the sea
-3 the see
\end\
`

func lmFile(text string) sideFile { return sideFile{Name: "lm.arpa", Data: []byte(text)} }

// TestLanguageModelDecidesBetweenHomophones checks that the language model
// turns both a homophone and a word that does not exist into the right word.
func TestLanguageModelDecidesBetweenHomophones(t *testing.T) {
	v := sampleVocabulary(t, "▁the", "▁sea", "▁se", "e", "a", "h")
	h := head{vocab: v, blank: 0, shift: 0.04}
	model, err := parseARPA("lm.arpa", []byte(sailors))
	require.NoError(t, err)
	lm := newWordScorer(model, v.texts())
	b := row(v, map[string]float64{"<blk>": 0.99})
	the := row(v, map[string]float64{"▁the": 0.9})
	see := flat(b, the, b, row(v, map[string]float64{"▁se": 0.95}), row(v, map[string]float64{"e": 0.6, "a": 0.3}), b)
	assert.Equal(t, "the see", textFrom(v, h.decode(see, 6, v.size(), 10, fusion{})))
	assert.Equal(t, "the sea", textFrom(v, h.decode(see, 6, v.size(), 10, fusion{vocab: v, lm: lm})))
	seh := flat(b, the, b, row(v, map[string]float64{"▁se": 0.95}), row(v, map[string]float64{"h": 0.6, "a": 0.3}), b)
	assert.Equal(t, "the seh", textFrom(v, h.decode(seh, 6, v.size(), 10, fusion{})))
	got := h.decode(seh, 6, v.size(), 10, fusion{vocab: v, lm: lm})
	assert.Equal(t, "the sea", textFrom(v, got))
	require.Len(t, got, 3)
	assert.InDelta(t, 0.16, got[2].start, 1e-9, "the times come from the network's output")
	assert.InDelta(t, -1.2, got[2].logProb, 0.01, "and so are the probabilities (ln 0.3)")

	// A hotword unknown to the language model needs no higher score than
	// without the model.
	assert.Equal(t, "the seh", textFrom(v, h.decode(seh, 6, v.size(), 10, newFusion([]string{"seh"}, v, lm))))
}

func TestLanguageModelInventsNothingInSilence(t *testing.T) {
	v := sampleVocabulary(t, "▁the", "▁sea")
	h := head{vocab: v, blank: 0, shift: 0.04}
	model, err := parseARPA("lm.arpa", []byte(sailors))
	require.NoError(t, err)
	silence := row(v, map[string]float64{"<blk>": 0.98, "▁the": 0.01, "▁sea": 0.01})
	var rows []float32
	for range 500 {
		rows = append(rows, silence...)
	}
	assert.Empty(t, h.decode(rows, 500, v.size(), 10, fusion{vocab: v, lm: newWordScorer(model, v.texts())}))
}

// TestLanguageModelCorrectsADemoClip uses a noisy sentence in which the demo
// model alone writes a word that does not exist.
func TestLanguageModelCorrectsADemoClip(t *testing.T) {
	pcm := audio.FromSamples(noisy(wavSamples(t, "hotword.wav"), 14))
	text := func(m parts) string {
		tr, err := openMadeUp(t, m).Transcribe(context.Background(), pcm, []audio.Span{{Start: 0, End: pcm.Len()}}, asr.Options{})
		require.NoError(t, err)
		require.Len(t, tr.Segments, 1)
		return tr.Segments[0].Text
	}
	m := demoModel(t)
	assert.Equal(t, "Do you have time to stay at home today?", text(m))
	m.LM = sideFile{}
	assert.NotEqual(t, "Do you have time to stay at home today?", text(m))
}

func TestUnsuitableLanguageModelsAreRefused(t *testing.T) {
	zipformer := parts{ONNX: source(madeUpZipformer(true), "zip.onnx"), Tokens: tokensFile(sampleTokens), LM: lmFile("\\data\\\nngram 1=1\n\\1-grams:\nx a\n")}
	_, err := openParts(zipformer)
	require.ErrorIs(t, err, ErrFile)
	for _, want := range []string{"zip.onnx", "lm.arpa", "line 4", `not "x"`} {
		assert.ErrorContains(t, err, want)
	}
	zipformer.LM = lmFile("")
	_, err = openParts(zipformer)
	require.ErrorContains(t, err, "no language model in the ARPA format", "an empty file is not a missing one")
}
