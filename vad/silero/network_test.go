package silero

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/vad"
)

// sequential computes a recording with the file as it is.
func sequential(t testing.TB, src ort.Source, pcm *audio.PCM) []float32 {
	t.Helper()
	open(t, src, Options{}) // skips if the library is missing
	original, err := openOriginal(src, "")
	require.NoError(t, err)
	defer func() { assert.NoError(t, original.Close()) }()
	step := stepper(original)
	probs := make([]float32, vad.Windows(pcm.Len()))
	for w := range probs {
		probs[w], err = step(pcm, w)
		require.NoError(t, err)
	}
	return probs
}

// TestNetworkEqualsItsFile checks that a network returns the same as its file
// one window at a time, over minutes, with any number of threads.
func TestNetworkEqualsItsFile(t *testing.T) {
	src := embedded(t)
	m := open(t, src, Options{})
	pcm := audio.FromSamples(recording(t, 120))
	got, err := m.Probabilities(context.Background(), pcm)
	require.NoError(t, err)
	within(t, sequential(t, src, pcm), got, 1e-5)
	for _, threads := range []int{2, 3} {
		m.threads = threads
		again, err := m.Probabilities(context.Background(), pcm)
		require.NoError(t, err)
		assert.True(t, slices.Equal(got, again), "%d threads change the result", threads)
	}
}

// TestComparisonCoversSpeechAndSilence checks that the comparison's sound drives
// the network up and down.
func TestComparisonCoversSpeechAndSilence(t *testing.T) {
	probs := sequential(t, embedded(t), audio.FromSamples(testSound(80*vad.Window)))
	for _, within := range [][2]float32{{0, 0.1}, {0.3, 0.6}, {0.6, 0.9}, {0.9, 1}} {
		assert.True(t, slices.ContainsFunc(probs, func(p float32) bool { return p >= within[0] && p < within[1] }), within)
	}
}

// TestStateIsCarried checks that pieces of a recording, each begun with the state
// after the one before, have the probabilities of the whole.
func TestStateIsCarried(t *testing.T) {
	m := open(t, embedded(t), Options{})
	pcm := audio.FromSamples(jfk(t))
	want, err := m.Probabilities(t.Context(), pcm)
	require.NoError(t, err)
	got, st := make([]float32, len(want)), newState()
	for at, n := 0, 1; at < len(got); at, n = at+n, (7*n+1)%(blockWindows+1) { // pieces of 0 to 64 windows
		n = max(min(n, len(got)-at), 1)
		window := func(dst []float32, w int) { fillWindow(dst, pcm, at+w) }
		require.NoError(t, m.network.run(t.Context(), context.Context.Err, window, st, got[at:at+n], 1))
	}
	within(t, want, got, 1e-6)
}

func TestCancelledWithinOneBlock(t *testing.T) {
	m := open(t, embedded(t), Options{})
	ctx := &countingContext{Context: context.Background(), left: 4}
	probs := make([]float32, 64*blockWindows)
	for i := range probs {
		probs[i] = -1
	}
	silence := func(dst []float32, _ int) { clear(dst) }
	err := m.network.run(context.Background(), func(context.Context) error { return ctx.Err() }, silence, newState(), probs, 1)
	require.ErrorIs(t, err, context.Canceled)
	assert.GreaterOrEqual(t, probs[4*blockWindows-1], float32(0))
	assert.Equal(t, float32(-1), probs[4*blockWindows], "went on after the context had ended")

	ended, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	m.threads = 3
	_, err = m.Probabilities(ended, audio.FromSamples(make([]float32, 1200*audio.SampleRate)))
	assert.ErrorIs(t, err, context.Canceled)
}

// TestNothingAllocatedPerWindow allows a block of 64 windows the tensors of its
// two calls.
func TestNothingAllocatedPerWindow(t *testing.T) {
	m := open(t, embedded(t), Options{})
	allocs := func(blocks int) float64 {
		probs := make([]float32, blocks*blockWindows)
		return testing.AllocsPerRun(5, func() {
			assert.NoError(t, m.network.run(context.Background(), m.check, func(dst []float32, _ int) { clear(dst) }, newState(), probs, 1))
		})
	}
	assert.Less(t, (allocs(30)-allocs(2))/28, 60.0)
}
