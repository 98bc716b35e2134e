package silero

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxgraph"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/vad"
)

// stepwise opens a model without unrolling it.
func stepwise(t testing.TB, src ort.Source, opt Options) *Model {
	t.Helper()
	open(t, src, opt) // skips if the library is missing
	m, err := openFile(src, "", opt)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// An unrolled network returns the same as one window at a time, over minutes,
// with any number of threads.
func TestUnrolledNetworkReturnsTheSame(t *testing.T) {
	sources := map[string]ort.Source{"demo": demoSource(t)}
	if shared := os.Getenv("OTOGRAPH_SHARED"); shared != "" {
		sources["published"] = ort.Source{Path: filepath.Join(shared, "models/real/silero_vad.onnx"), Role: "vad"}
	}
	for name, src := range sources {
		t.Run(name, func(t *testing.T) {
			m := open(t, src, Options{})
			require.NotNil(t, m.unrolled, "it is computed one window at a time")
			pcm := audio.FromSamples(recording(t, 120))
			got, err := m.Probabilities(context.Background(), pcm)
			require.NoError(t, err)
			within(t, sequential(t, stepwise(t, src, Options{}), pcm), got, 1e-5)
			for _, threads := range []int{2, 3} {
				m.opt.Threads = threads
				again, err := m.Probabilities(context.Background(), pcm)
				require.NoError(t, err)
				assert.True(t, slices.Equal(got, again), "%d threads change the result", threads)
			}
		})
	}
}

// The comparison's sound drives the network up and down.
func TestComparisonCoversSpeechAndSilence(t *testing.T) {
	m := stepwise(t, demoSource(t), Options{})
	probs := sequential(t, m, audio.FromSamples(testSound(80*vad.Window)))
	for _, within := range [][2]float32{{0, 0.1}, {0.1, 0.3}, {0.3, 0.6}, {0.6, 0.9}, {0.9, 1}} {
		assert.True(t, slices.ContainsFunc(probs, func(p float32) bool { return p >= within[0] && p < within[1] }), within)
	}
}

// A network with the names and shapes of a known one but a different
// computation is not unrolled.
func TestAnotherNetworkIsNotUnrolled(t *testing.T) {
	g := constant(0.25)
	for name, shape := range map[string][]int64{
		"front.k_h": {258, 1, 256}, "front.mel_h": {40, 129, 1}, "fc.weight_h": {128, 160}, "fc.bias": {128},
		"lstm.weight_ih_l0_h": {512, 128}, "lstm.weight_hh_l0_h": {512, 128}, "lstm.bias_ih_l0_h": {512}, "lstm.bias_hh_l0_h": {512},
		"out.weight": {1, 128}, "out.bias": {1},
	} {
		g.Constant(name, onnxgraph.Zeros(shape...))
	}
	src := ort.Source{Data: g.Bytes(), Name: "another.onnx", Role: "vad"}
	s, err := openSequence(src)
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NotNil(t, s, "its weights are those of a known network")
	require.NoError(t, s.close())
	m := open(t, src, Options{})
	assert.Nil(t, m.unrolled)
	probs, err := m.Probabilities(context.Background(), audio.FromSamples(make([]float32, 5000)))
	require.NoError(t, err)
	assert.InDelta(t, 0.25, probs[9], 1e-6)
}

func TestUnrolledIsCancelledWithinOneBlock(t *testing.T) {
	m := open(t, demoSource(t), Options{})
	ctx := &countingContext{Context: context.Background(), left: 4}
	probs := make([]float32, 64*sequenceRows)
	for i := range probs {
		probs[i] = -1
	}
	err := m.unrolled.run(context.Background(), func(context.Context) error { return ctx.Err() },
		audio.FromSamples(make([]float32, len(probs)*vad.Window)), probs, 1)
	require.ErrorIs(t, err, context.Canceled)
	assert.GreaterOrEqual(t, probs[4*sequenceRows-1], float32(0))
	assert.Equal(t, float32(-1), probs[4*sequenceRows], "went on after the context had ended")

	ended, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	m.opt.Threads = 3
	_, err = m.Probabilities(ended, audio.FromSamples(make([]float32, 1200*audio.SampleRate)))
	assert.ErrorIs(t, err, context.Canceled)
}

func TestNothingAllocatedPerBlock(t *testing.T) {
	m := open(t, demoSource(t), Options{})
	allocs := func(blocks int) float64 {
		pcm := audio.FromSamples(make([]float32, blocks*sequenceRows*vad.Window))
		probs := make([]float32, blocks*sequenceRows)
		return testing.AllocsPerRun(5, func() {
			assert.NoError(t, m.unrolled.run(context.Background(), m.check, pcm, probs, 1))
		})
	}
	assert.InDelta(t, allocs(2), allocs(30), 8)
}
