package onnx

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
)

// TestAlignWithWaveformModel checks that a text is aligned with a model on
// samples as with any CTC model.
func TestAlignWithWaveformModel(t *testing.T) {
	e := openMadeUp(t, parts{
		ONNX: source(madeUpWaveform("input_values", false, rawTones), "model.onnx"), Tokens: sideFile{vocabName, []byte(waveformTokens)},
		Config: sideFile{preprocessorName, []byte(rawPreprocessor)},
	})
	a, err := align.Words(context.Background(), e, recording(), recordingSpeech, align.Split("Bana, BANA!"), align.Options{})
	require.NoError(t, err)
	require.Len(t, a.Words, 2)
	assert.Greater(t, a.Score, 0.9)
	for i, want := range [][2]float64{{0.5, 1.1}, {2.6, 3.2}} {
		assert.False(t, a.Words[i].Missing)
		assert.Less(t, a.Words[i].Start, want[1], "the first tone is the word's first half")
		assert.Greater(t, a.Words[i].End, want[1], "the second tone is its second half")
	}
}

// TestWaveformVocabulary checks vocab.json, which has capital letters, | after
// each word and the padding as the blank, and lists in fairseq's order, which
// begin with the blank.
func TestWaveformVocabulary(t *testing.T) {
	symbols, err := parseTokens(sideFile{vocabName, []byte(`{"[PAD]": 5, "|": 0, "E": 1, "'": 2, "T": 3, "[UNK]": 4}`)})
	require.NoError(t, err)
	v := newVocabulary(vocabName, symbols, writeLetters)
	assert.Equal(t, 5, v.blank)
	assert.Equal(t, []string{" ", "E", "'", "T", "", ""}, texts(v))
	assert.True(t, v.spaced && v.upper && !v.lower)

	symbols, err = parseTokens(tokensFile("<s> 0\n<pad> 1\n</s> 2\n<unk> 3\n  4\ne 5\n| 6\n"))
	require.NoError(t, err)
	v = newVocabulary("tokens.txt", symbols, writeLetters)
	assert.Equal(t, 0, v.blank)
	assert.Equal(t, []string{"", "", "", "", " ", "e", "|"}, texts(v), "a list with a space has | as a sign")
}

func texts(v *vocabulary) (out []string) {
	for _, b := range v.text {
		out = append(out, string(b))
	}
	return out
}

func TestNormalizeSamples(t *testing.T) {
	x := []float32{1, 3, 1, 3}
	normalizeSamples(x)
	assert.InDeltaSlice(t, []float32{-1, 1, -1, 1}, x, 1e-4)
	silent := []float32{0, 0}
	normalizeSamples(silent)
	assert.Equal(t, []float32{0, 0}, silent)
}

func TestWaveformRefusals(t *testing.T) {
	waves := func() *onnxfile.Graph { return madeUpWaveform("input_values", false, rawTones) }
	for name, c := range map[string]struct {
		model parts
		want  error
		text  string
	}{
		"other rate": {
			parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(waveformTokens)}, Config: sideFile{preprocessorName, []byte(`{"sampling_rate": 8000}`)}},
			ErrFile, "model file does not fit: preprocessor_config.json: sampling_rate: expected 16000, found 8000",
		},
		"no blank": {
			parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(`{"a": 0, "b": 1, "c": 2, "d": 3, "|": 4}`)}},
			ErrTokens, "vocab.json has no blank",
		},
		"no inputs": {
			parts{ONNX: graph(nil, []ort.Info{f32("logits", -1, -1, 5)}), Tokens: sideFile{vocabName, []byte(waveformTokens)}, Model: models.Model{Contract: models.ContractWaveformCTC}},
			ErrContract, "expected input input_values",
		},
		"no tokens":      {parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(`{}`)}}, ErrTokens, "vocab.json"},
		"too few tokens": {parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(`{"<pad>": 0, "|": 1}`)}}, ErrTokens, "5"},
		"an id twice":    {parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(`{"<pad>": 0, "a": 0}`)}}, ErrTokens, "id 0 is taken"},
		"ids beyond":     {parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(`{"<pad>": 0, "a": 7}`)}}, ErrTokens, "outside 0 … 1"},
		"languages":      {parts{ONNX: source(waves(), "m.onnx"), Tokens: sideFile{vocabName, []byte(`{"eng": {"a": 1}}`)}}, ErrTokens, "expected a JSON object from symbols to ids"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openParts(c.model)
			if errors.Is(err, native.ErrMissing) {
				t.Skip(err)
			}
			require.ErrorIs(t, err, c.want)
			assert.ErrorContains(t, err, c.text)
		})
	}
}

// TestWaveformStride checks that a model is refused if its rows are not 20 ms
// long, since its times would be wrong.
func TestWaveformStride(t *testing.T) {
	g := onnxfile.NewGraph()
	g.Input("input_values", onnxfile.Float32, "N", "T")
	rows := g.Op("Conv", []string{g.Op("Unsqueeze", []string{"input_values", g.Const(ints(1))}), g.Const(zeros(5, 1, 640))}, onnxfile.AttrInts("strides", 640))
	g.Node("Transpose", []string{rows}, []string{"logits"}, onnxfile.AttrInts("perm", 0, 2, 1))
	g.Output("logits", onnxfile.Float32, "N", "F", 5)
	e := openMadeUp(t, parts{ONNX: source(g, "slow.onnx"), Tokens: sideFile{vocabName, []byte(waveformTokens)}})
	_, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, 32000)), []audio.Span{{Start: 0, End: 32000}}, asr.Options{})
	require.ErrorIs(t, err, ErrContract)
	assert.ErrorContains(t, err, "expected a row for each 320 samples, 100 for 32000 samples, found 50")
}
