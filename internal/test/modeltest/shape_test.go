package modeltest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

func micro(t *testing.T) modeltest.Size {
	t.Helper()
	s, err := modeltest.FindSize("micro")
	require.NoError(t, err)
	return s
}

func TestWriteModelIsDeterministic(t *testing.T) {
	sum := func(o modeltest.ShapeOptions) [32]byte {
		h := sha256.New()
		require.NoError(t, modeltest.WriteModel(h, micro(t), o))
		return [32]byte(h.Sum(nil))
	}
	first := sum(modeltest.ShapeOptions{})
	assert.Equal(t, first, sum(modeltest.ShapeOptions{Type: modeltest.F16, Tokens: 100, Seed: 1}), "the defaults match the documentation")
	assert.NotEqual(t, first, sum(modeltest.ShapeOptions{Seed: 2}))
	assert.NotEqual(t, first, sum(modeltest.ShapeOptions{Tokens: 20}))
	assert.NotEqual(t, first, sum(modeltest.ShapeOptions{Type: modeltest.Q8_0}))
}

// The models have the published numbers of weights: 39 million in tiny, 74
// million in base.
func TestPublishedSizes(t *testing.T) {
	sizes := map[string]float64{"tiny": 39e6, "base": 74e6}
	if testing.Short() {
		delete(sizes, "base")
	}
	for name, want := range sizes {
		size, err := modeltest.FindSize(name)
		require.NoError(t, err)
		var n int64
		var head bytes.Buffer
		require.NoError(t, modeltest.WriteModel(writer(func(b []byte) (int, error) {
			if head.Len() < 48 {
				head.Write(b[:min(48, len(b))])
			}
			n += int64(len(b))
			return len(b), nil
		}), size, modeltest.ShapeOptions{}))
		assert.Equal(t, uint32(0x67676d6c), binary.LittleEndian.Uint32(head.Bytes()))
		assert.InDelta(t, want, float64(n)/2, want*0.06, "%s: two bytes for a weight", name)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestWriteModelErrors(t *testing.T) {
	_, err := modeltest.FindSize("huge")
	require.ErrorContains(t, err, "micro, tiny, base, small, turbo")
	require.ErrorContains(t, modeltest.WriteModel(io.Discard, micro(t), modeltest.ShapeOptions{Type: "q3"}), `type "q3"`)
	require.ErrorContains(t, modeltest.WriteModel(io.Discard, micro(t), modeltest.ShapeOptions{Tokens: 171}), "1 to 170")
	require.ErrorContains(t, modeltest.WriteModel(io.Discard, modeltest.Size{}, modeltest.ShapeOptions{}), "unknown size")
	full := errors.New("disk full")
	require.ErrorIs(t, modeltest.WriteModel(writer(func([]byte) (int, error) { return 0, full }), micro(t), modeltest.ShapeOptions{}), full)
}

// A synthetic model loads, returns English, and yields text for the amount of
// speech in each window, regardless of prompt and beam size. Its beams stay in
// use.
func TestModelYieldsTextInProportionToSpeech(t *testing.T) {
	if _, err := native.Whisper(); err != nil {
		t.Skip(err)
	}
	sound := modeltest.Speech(29, 1, 1)
	whole := audio.FromSamples(sound)
	half := slices.Clone(sound)
	for i := len(half) / 2; i < len(half); i++ {
		half[i] = 0
	}
	speech := []audio.Span{{Start: 8000, End: whole.Len() - 8000}}
	for _, typ := range []modeltest.Type{modeltest.F16, modeltest.Q8_0, modeltest.Q5_1, modeltest.Q5_0} {
		path := filepath.Join(t.TempDir(), "m.bin")
		f, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, modeltest.WriteModel(f, micro(t), modeltest.ShapeOptions{Type: typ, Tokens: 40}))
		require.NoError(t, f.Close())
		e, err := whisper.Open(&models.Model{Files: []models.File{{Part: models.PartModel, Name: path, Path: path}}}, whisper.Options{})
		require.NoError(t, err)
		language, p, err := e.DetectLanguage(context.Background(), whole, speech, asr.Detection{})
		require.NoError(t, err)
		assert.Equal(t, "en", language)
		assert.Greater(t, p, 0.9)
		words := func(pcm *audio.PCM, beam int, prompt string) (n int) {
			t.Helper()
			o := asr.DefaultOptions()
			o.Language, o.BeamSize, o.WordTimestamps, o.InitialPrompt = "en", beam, true, prompt
			got, err := e.Transcribe(context.Background(), pcm, speech, o)
			require.NoError(t, err)
			// The text that a synthetic model yields with a prompt may look
			// invalid; the window is then decoded again without it.
			passes := 1 + got.Stats.Unprompted
			assert.Equal(t, 1, got.Stats.EncoderPasses, "%s: %+v", typ, got.Stats)
			if prompt == "" {
				assert.Equal(t, 1, passes)
			}
			assert.Zero(t, got.Stats.Fallbacks)
			for _, s := range got.Segments {
				n += len(s.Words)
			}
			assert.InDelta(t, n*passes, got.Stats.DecoderSteps, float64(14*passes), "%s: words, time marks, prompt", typ)
			return n
		}
		all := words(whole, 1, "")
		assert.InDelta(t, 40*0.7, all, 6, "%s: about 70 %% of the sound is speech", typ)
		assert.Equal(t, all, words(whole, 5, ""), "%s: beams", typ)
		assert.InDelta(t, all, words(whole, 1, "some text that came before"), 1, "%s: prompt", typ)
		assert.InDelta(t, all/2, words(audio.FromSamples(half), 1, ""), 4, "%s: half the speech", typ)
		require.NoError(t, e.Close())
	}
}

// The detector finds the synthetic speech and its pauses.
func TestSpeechIsDetected(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	m, ok := demo.Models().Role(models.RoleVAD)
	require.True(t, ok)
	model, err := silero.Open(m, silero.Options{})
	require.NoError(t, err)
	defer model.Close()
	samples := modeltest.Speech(60, 2, 1)
	pcm := audio.FromSamples(samples)
	found, err := vad.Detect(context.Background(), model, pcm, vad.DefaultOptions())
	require.NoError(t, err)
	speech := 0
	for _, s := range found {
		speech += s.Len()
	}
	share := float64(speech) / float64(len(samples))
	assert.Greater(t, share, 0.6)
	assert.Less(t, share, 0.95)
	assert.Greater(t, len(found), 8, "phrases with pauses between them")
	for _, v := range samples {
		if math.Abs(float64(v)) > 1 || math.IsNaN(float64(v)) {
			t.Fatalf("sample %v", v)
		}
	}
	assert.Equal(t, samples, modeltest.Speech(60, 2, 1))
	assert.NotEqual(t, samples, modeltest.Speech(60, 2, 2))
}
