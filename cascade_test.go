package otograph_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models/demo"
)

// With the cascade, a recording without speech has no text and causes little
// work: the standard tier only processes segments in which the optimized tier
// recognized words.
func TestCascadeAddsNoTextToSilence(t *testing.T) {
	p, alone := open(t, demo.Models(), otograph.Config{Cascade: new(1.0)}), shared(t)
	for name, src := range withoutSpeech(t) {
		opt := otograph.Options{EnableDiarize: new(false), EnableAudioEvents: new(false), ASRLanguage: new("en")}
		res, err := p.Run(t.Context(), src, opt)
		require.NoError(t, err, name)
		assert.Equal(t, otograph.TierOptimized, res.Tier, name)
		if strings.HasPrefix(name, "event_") { // the demo model mistakes barking and whistling for speech
			first, err := alone.Run(t.Context(), src, opt)
			require.NoError(t, err, name)
			assert.LessOrEqual(t, len(res.Segments), len(first.Segments), name)
		} else {
			assert.Empty(t, res.Segments, name)
		}
		done := res.Stats.Cascade
		assert.LessOrEqual(t, done.DoubtfulSeconds, done.Seconds, name)
		if done.Segments == 0 {
			assert.Zero(t, done.ASR.Windows+done.Hearings, name)
		}
	}
}

// withoutSpeech returns recordings of silence, noise and music and, with
// OTOGRAPH_SHARED, real ones of animals and things.
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
	paths, err := filepath.Glob(filepath.Join("testdata", "demo", "nonspeech", "*.opus"))
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
