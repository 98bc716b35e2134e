package stages

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

// open returns the stages of a run with the demo models and the default
// options.
func open(t testing.TB) *Stages {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("needs the native libraries (make setup): %v", err)
	}
	effective, err := spec.Options{}.Effective()
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	s := &Stages{Engines: engines.New(demo.Models(), engines.Options{Cores: 2, Logger: log}), Options: effective, Cores: 2, Gate: semaphore.NewWeighted(2), Log: log}
	t.Cleanup(func() { assert.NoError(t, s.Engines.Close()) })
	return s
}

// In recordings without speech, the standard tier does not replace a doubtful
// segment by words, and decodes no more often than for speech.
func TestCascadeAddsNoWordsToSilence(t *testing.T) {
	s := open(t)
	s.Cascade = 1
	said := []asr.Segment{sentence(1, 2, "guess", 0.4), sentence(3, 4, "another guess", 0.4)}
	for name, src := range withoutSpeech(t) {
		pcm, err := audio.Open(t.Context(), src, audio.Options{})
		require.NoError(t, err)
		defer pcm.Close()
		text := &asr.Transcript{Language: "en", Segments: slices.Clone(said)}
		opt := asr.DefaultOptions()
		opt.Parallel, opt.Gate = s.Cores, s.Gate
		done, _, err := s.again(t.Context(), pcm, &Speech{Spans: []audio.Span{{Start: audio.SampleRate, End: 4 * audio.SampleRate}}}, text, opt)
		require.NoError(t, err)
		assert.Equal(t, said, text.Segments, name)
		assert.Equal(t, 2, done.Doubtful, name)
		assert.Zero(t, done.Replaced, name)
		assert.Positive(t, done.ASR.Windows, "%s: the standard tier decoded", name)
		assert.LessOrEqual(t, done.ASR.EncoderPasses, done.ASR.Windows+(done.ASR.Windows+3)/4, "%s: %+v", name, done.ASR)
	}
}

// withoutSpeech returns recordings of silence, noise and music.
func withoutSpeech(t *testing.T) map[string]audio.Source {
	r := rand.New(rand.NewPCG(30, 3))
	noise := make([]float32, 5*audio.SampleRate)
	for i := range noise {
		noise[i] = float32(0.02 * r.NormFloat64())
	}
	list := map[string]audio.Source{
		"silence":     audio.Raw(make([]float32, 5*audio.SampleRate), audio.SampleRate, 1),
		"white noise": audio.Raw(noise, audio.SampleRate, 1),
	}
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "demo", "nonspeech", "*.opus"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	if shared := os.Getenv("OTOGRAPH_SHARED"); shared != "" {
		events, err := filepath.Glob(filepath.Join(shared, "testdata", "real", "event_*.flac"))
		require.NoError(t, err)
		require.NotEmpty(t, events)
		paths = append(paths, events...)
	}
	for _, path := range paths {
		list[filepath.Base(path)] = audio.File(path)
	}
	return list
}
