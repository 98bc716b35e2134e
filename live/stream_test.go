package live

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/spec"
)

// streamingPipeline is the demonstration with a streaming recognizer of made-up
// weights.
func streamingPipeline(t testing.TB) *otograph.Pipeline {
	t.Helper()
	demoPipeline(t) // skips without the native libraries
	set, err := library.OpenDir(modeltest.Folder(t, modeltest.StreamingTransducer()))
	require.NoError(t, err)
	p, err := otograph.Open(set.Merge(demo.Models()), demoConfig)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// With a streaming recognizer, the finals are the texts of the recording, byte
// for byte, and partials only grow; with hotwords too, which no draft honors.
func TestStreamingRecognizer(t *testing.T) {
	p := streamingPipeline(t)
	pcm := decoded(t, filepath.Join("..", "testdata", "demo", "long", "en_2.opus"))
	pcm = audio.FromSamples(pcm.Samples(0, 20*audio.SampleRate))
	opt := tiers()["optimized"]
	opt.ASRLanguage = new("en")
	for name, hotwords := range map[string][]string{"greedy": nil, "beam": {"barato"}} {
		opt.Hotwords = hotwords
		s, err := Open(t.Context(), p, Options{Options: opt})
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(7, 8))
		events, _ := play(t, s, pcm, func() (int, bool) { return 1 + r.IntN(audio.SampleRate/5), true })
		words := checkFinals(t, p, s, opt, pcm, events[spec.LiveFinal])
		kept := checkGrowth(t, events[spec.LivePartial], events[spec.LiveFinal])
		t.Logf("%s: %d words, %d utterances, %d partials, %d finals kept words", name, words, len(s.speech), len(events[spec.LivePartial]), kept)
		assert.Greater(t, words, 15)
		assert.NotEmpty(t, events[spec.LivePartial])
		assert.LessOrEqual(t, kept, 1, "partials read from where the final begins")

		s, err = Open(t.Context(), p, Options{Options: opt, Manual: true})
		require.NoError(t, err)
		require.NoError(t, s.Write(pcm.Samples(0, 4*audio.SampleRate)))
		s.settle()
		u := &utterance{}
		s.sketch(u, 0, false, 1)
		assert.Equal(t, hotwords == nil, u.state != nil)
		_, err = s.Close()
		require.NoError(t, err)
	}
}

// Sessions with a streaming recognizer leave no goroutine, and nothing of
// themselves in memory, closed or canceled.
func TestStreamingSessionsLeaveNothing(t *testing.T) {
	p := streamingPipeline(t)
	pcm := decoded(t, "../testdata/demo/short/en_00.flac")
	opt := tiers()["optimized"]
	opt.ASRLanguage = new("en")
	count := 200
	if testing.Short() {
		count = 20
	}
	before := runtime.NumGoroutine()
	sessions := make([]weak.Pointer[Session], count)
	for i := range sessions {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := Open(ctx, p, Options{Options: opt})
		require.NoError(t, err)
		sessions[i] = weak.Make(s)
		require.NoError(t, s.Write(pcm.Samples(0, 3*audio.SampleRate)))
		s.settle()
		if i%3 == 0 {
			cancel()
		}
		if _, err = s.Close(); i%3 > 0 {
			require.NoError(t, err)
		}
		cancel()
	}
	left := func() (n int) {
		runtime.GC()
		for _, s := range sessions {
			if s.Value() != nil {
				n++
			}
		}
		return n
	}
	for range 100 {
		if left() == 0 && runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	assert.Zero(t, left())
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}
