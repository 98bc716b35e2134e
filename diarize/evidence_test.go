package diarize

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// TestVoicesByEvidence counts the voices of short recordings with an embedder
// that states its cosines, also with a given number and with bounds.
func TestVoicesByEvidence(t *testing.T) {
	right, all := 0, 0
	for speakers := 1; speakers <= 6; speakers++ {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, uint64(speakers)))
			counts := make([]int, speakers)
			for s := range counts {
				counts[s] = 6 + r.IntN(20)
			}
			x, truth := simulate(r, counts, simulated{low: 0.55, high: 0.69, common: 0.7})
			e := timeline(truth)
			e.vectors = x
			number := func(opt ClusterOptions) int {
				opt.SingleSpeakerThreshold = 0.05
				opt = opt.filled()
				opt.cosines = cosines{0.62, 0.43}
				_, k, err := label(t.Context(), e, opt)
				require.NoError(t, err)
				return k
			}
			all++
			if number(ClusterOptions{}) == speakers {
				right++
			}
			assert.Equal(t, 3, number(ClusterOptions{NumSpeakers: 3}), "%d voices, seed %d", speakers, seed)
			assert.GreaterOrEqual(t, number(ClusterOptions{MinSpeakers: 4}), 4, "%d voices, seed %d", speakers, seed)
			assert.LessOrEqual(t, number(ClusterOptions{MaxSpeakers: 2}), 2, "%d voices, seed %d", speakers, seed)
		}
	}
	assert.GreaterOrEqual(t, right, all-1, "of %d", all)
}

// TestEvenRecording: one person who speaks in two ways (means with a cosine of
// 0.65) is one voice, two people (0.3) are two.
func TestEvenRecording(t *testing.T) {
	for common, want := range map[float64]int{0.65: 1, 0.3: 2} {
		x, truth := simulate(rand.New(rand.NewPCG(1, 2)), []int{10, 10}, simulated{low: 0.55, high: 0.6, common: common})
		e, opt := timeline(truth), ClusterOptions{}.filled()
		e.vectors, opt.cosines = x, cosines{0.55, 0.25}
		_, k, err := label(t.Context(), e, opt)
		require.NoError(t, err)
		assert.Equal(t, want, k, "%v", common)
	}
}

// TestVoicesOfLongRecordings counts the voices of seven blocks, and finds the
// allowed maximum for 300 voices.
func TestVoicesOfLongRecordings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, truth := simulate(r, []int{300, 200, 120, 60}, simulated{low: 0.5, high: 0.6, common: 0.25})
	for from := 0; from < x.n; from += 60 { // each voice changes a little every minute or two
		var drift [4][]float64
		for s := range drift {
			drift[s] = gauss(r, make([]float64, x.dim))
		}
		for i := from; i < min(from+60, x.n); i++ {
			for d := range x.row(i) {
				x.row(i)[d] += float32(0.5 * drift[truth[i]][d])
			}
			voices.Normalize(x.row(i))
		}
	}
	e := timeline(truth)
	e.vectors = x
	opt := DefaultOptions().ClusterOptions.filled()
	opt.cosines = cosines{0.55, 0.25}
	labels, k, err := label(t.Context(), e, opt)
	require.NoError(t, err)
	assert.Equal(t, 4, k)
	assert.Greater(t, agreement(labels, truth), 0.95)
	opt.NumSpeakers = 3
	_, k, err = label(t.Context(), e, opt)
	require.NoError(t, err)
	assert.Equal(t, 3, k)
	e.vectors, truth = simulate(r, slices.Repeat([]int{5}, 300), simulated{low: 0.8, high: 0.9})
	many := timeline(truth)
	many.vectors, opt.NumSpeakers, opt.MaxSpeakers = e.vectors, 0, 60
	_, k, err = label(t.Context(), many, opt)
	require.NoError(t, err)
	assert.Equal(t, 60, k)
}

// TestCosineOfLocalSpeakers reads the cosine of two voices off the windows that
// the segmenter gives two local speakers.
func TestCosineOfLocalSpeakers(t *testing.T) {
	x := matrix{data: []float32{1, 0, 0.6, 0.8, 0, 1, 0, 1}, n: 4, dim: 2}
	windows := []audio.Span{{Start: 0, End: 10}, {Start: 10, End: 20}, {Start: 15, End: 25}, {Start: 30, End: 40}}
	p := parted(x, windows, [][]localWindow{{{0, 0}, {1, 1}, {2, 0}}, {{3, 0}}})
	assert.Equal(t, 1, p.pairs, "windows 1 and 2 overlap")
	assert.InDelta(t, 0.6, p.cosine, 1e-6)
	s := &sums{cosines: cosines{0.62, 0.43}, parted: pairs{60, 60 * 0.53}}
	assert.InDelta(t, 0.48, s.twoVoices(), 1e-9)
}
