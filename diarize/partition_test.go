package diarize

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// split returns the window counts of n speakers: even, or 90 % for the first.
func split(speakers, perSpeaker int, lopsided bool) []int {
	counts := make([]int, speakers)
	total := speakers * perSpeaker
	for s := range counts {
		counts[s] = perSpeaker
		if lopsided && speakers > 1 {
			counts[s] = max(4, total/10/(speakers-1))
		}
	}
	if lopsided && speakers > 1 {
		counts[0] = total * 9 / 10
	}
	return counts
}

// agreement returns the share of windows with the most frequent label of their
// true speaker.
func agreement(labels, truth []int) float64 {
	votes := make(map[[2]int]int)
	for i, l := range labels {
		votes[[2]int{truth[i], l}]++
	}
	best := make(map[int]int)
	for k, v := range votes {
		best[k[0]] = max(best[k[0]], v)
	}
	sum := 0
	for _, v := range best {
		sum += v
	}
	return float64(sum) / float64(len(labels))
}

// TestSpeakerCountOnSimulatedVoices: embeddings with the cosines of a real
// network, 1 to 10 speakers, even and 90/10. The short form has few windows for
// each speaker.
func TestSpeakerCountOnSimulatedVoices(t *testing.T) {
	type condition struct {
		name       string
		voices     simulated
		perSpeaker int
		same       float64
		least      float64 // least share of recordings with the right number of speakers
	}
	for _, c := range []condition{
		{"3 s and more", simulated{}, 30, 0.5, 0.9},
		{"3 s and more, few windows", simulated{}, 9, 0.5, 0.9},
		{"1.5 s windows", simulated{low: 0.35, high: 0.5}, 30, 0.5, 0.9},
		{"1.5 s windows, same-speaker cosine 0.45", simulated{low: 0.35, high: 0.5}, 30, 0.45, 0.9},
		{"1.5 s windows, few", simulated{low: 0.35, high: 0.5}, 12, 0.5, 0.9},
	} {
		if testing.Short() && c.perSpeaker > 12 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			right, tried, agree := 0, 0, 0.0
			var wrong []string
			for speakers := 1; speakers <= 10; speakers++ {
				for _, lopsided := range []bool{false, true} {
					seeds := uint64(3)
					if raceEnabled {
						seeds = 1
					}
					for seed := range seeds {
						r := rand.New(rand.NewPCG(seed+100*uint64(speakers), 7))
						x, truth := simulate(r, split(speakers, c.perSpeaker, lopsided), c.voices)
						e := timeline(truth)
						e.vectors = x
						opt := DefaultOptions().ClusterOptions.filled()
						opt.SameSpeakerCosine = c.same
						labels, k, err := label(t.Context(), e, opt)
						require.NoError(t, err)
						tried++
						agree += agreement(labels, truth)
						if k == speakers {
							right++
						} else {
							wrong = append(wrong, fmt.Sprintf("%d→%d lopsided=%v", speakers, k, lopsided))
						}
					}
				}
			}
			t.Logf("speaker count right in %d of %d, windows with their speaker %.4f; wrong: %v", right, tried, agree/float64(tried), wrong)
			assert.GreaterOrEqual(t, float64(right), c.least*float64(tried))
			assert.GreaterOrEqual(t, agree/float64(tried), 0.97)
		})
	}
}

// TestOutliersAreNotSpeakers: laughter, coughs and overlapping voices give
// windows that resemble no voice, and sometimes each other.
func TestOutliersAreNotSpeakers(t *testing.T) {
	right := 0
	rounds := 12
	if raceEnabled {
		rounds = 4
	}
	for round := range rounds {
		speakers := 1 + round%4
		r := rand.New(rand.NewPCG(uint64(speakers), uint64(round/4)))
		x, truth := simulate(r, split(speakers, 1600/speakers, false), simulated{low: 0.35, high: 0.5})
		e := timeline(truth)
		e.vectors = x
		replace := func(i int, v []float64) {
			for d, w := range v {
				x.row(i)[d] = float32(w)
			}
		}
		for range 40 { // alone
			replace(r.IntN(x.n), gauss(r, make([]float64, x.dim)))
		}
		for range 6 { // three similar ones
			noise, at := gauss(r, make([]float64, x.dim)), r.IntN(x.n-3)
			for i := range 3 {
				replace(at+i, blend(0.6, noise, gauss(r, make([]float64, x.dim))))
			}
		}
		_, k, err := label(t.Context(), e, ClusterOptions{SameSpeakerCosine: 0.5, SingleSpeakerThreshold: 0.05}.filled())
		require.NoError(t, err)
		if k == speakers {
			right++
		} else {
			t.Logf("%d speakers, found %d", speakers, k)
		}
	}
	assert.GreaterOrEqual(t, right, rounds*9/10, "of %d recordings", rounds)
}

func TestNumberOfSpeakersIsKept(t *testing.T) {
	x, truth := simulate(rand.New(rand.NewPCG(3, 3)), []int{40, 20, 12, 6}, simulated{low: 0.35, high: 0.5})
	e := timeline(truth)
	e.vectors = x
	for k := 1; k <= 12; k++ {
		labels, got, err := label(t.Context(), e, ClusterOptions{NumSpeakers: k, SameSpeakerCosine: 0.5}.filled())
		require.NoError(t, err)
		assert.Equal(t, k, got)
		assert.Equal(t, k, distinct(labels), "every one of %d speakers has windows", k)
		if k == 4 {
			assert.GreaterOrEqual(t, agreement(labels, truth), 0.98)
		}
	}
	for _, bounds := range [][2]int{{1, 2}, {2, 2}, {5, 7}, {6, 20}, {1, 1}} {
		_, got, err := label(t.Context(), e, ClusterOptions{MinSpeakers: bounds[0], MaxSpeakers: bounds[1], SameSpeakerCosine: 0.5}.filled())
		require.NoError(t, err)
		assert.GreaterOrEqual(t, got, bounds[0])
		assert.LessOrEqual(t, got, bounds[1])
	}
}

func TestClustersOfFewWindows(t *testing.T) {
	for n := 1; n <= 4; n++ {
		x, truth := simulate(rand.New(rand.NewPCG(9, 9)), []int{n}, simulated{})
		e := timeline(truth)
		e.vectors = x
		for _, opt := range []ClusterOptions{{}, {NumSpeakers: 3}, {MinSpeakers: 2, MaxSpeakers: 5}, {MaxSpeakers: 1}} {
			opt.SameSpeakerCosine = 0.5
			labels, k, err := label(t.Context(), e, opt.filled())
			require.NoError(t, err)
			assert.Len(t, labels, n)
			assert.Equal(t, k, distinct(labels))
			switch {
			case opt.NumSpeakers > 0:
				assert.Equal(t, min(opt.NumSpeakers, n), k)
			case opt.MinSpeakers > 0:
				assert.GreaterOrEqual(t, k, min(2, n))
			default:
				assert.Equal(t, 1, k, "%d windows of one voice", n)
			}
		}
	}
}

// TestSampledClusteringAgrees: above ExactWindows a sample is clustered; the
// speakers must be the same.
func TestSampledClusteringAgrees(t *testing.T) {
	x, truth := simulate(rand.New(rand.NewPCG(11, 4)), []int{900, 500, 300, 120}, simulated{low: 0.35, high: 0.5})
	e := timeline(truth)
	e.vectors = x
	opt := ClusterOptions{SameSpeakerCosine: 0.5, ExactWindows: 400}.filled()
	labels, k, err := label(t.Context(), e, opt)
	require.NoError(t, err)
	assert.Equal(t, 4, k)
	assert.GreaterOrEqual(t, agreement(labels, truth), 0.995)
}

func TestThresholdDecidesForOneSpeaker(t *testing.T) {
	x, truth := simulate(rand.New(rand.NewPCG(2, 4)), []int{40, 40}, simulated{})
	e := timeline(truth)
	e.vectors = x
	_, k, err := label(t.Context(), e, ClusterOptions{SameSpeakerCosine: 0.5, SingleSpeakerThreshold: 0.05}.filled())
	require.NoError(t, err)
	assert.Equal(t, 2, k)
	_, k, err = label(t.Context(), e, ClusterOptions{SameSpeakerCosine: 0.5, SingleSpeakerThreshold: 0.95}.filled())
	require.NoError(t, err)
	assert.Equal(t, 1, k, "a silhouette below the threshold means one speaker")
}

// TestMemoryOfClustering: 10,000 windows must cluster within 400 MB; total
// allocations are an upper bound of the memory in use.
func TestMemoryOfClustering(t *testing.T) {
	n := 10000
	if testing.Short() || raceEnabled {
		n = 2500
	}
	x, truth := simulate(rand.New(rand.NewPCG(1, 1)), []int{n * 4 / 10, n * 3 / 10, n * 2 / 10, n / 10}, simulated{low: 0.35, high: 0.5})
	e := timeline(truth)
	e.vectors = x
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, k, err := label(t.Context(), e, ClusterOptions{SameSpeakerCosine: 0.5}.filled())
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	mb := float64(after.TotalAlloc-before.TotalAlloc) / 1e6
	t.Logf("%d windows: %d speakers, %.1f MB allocated in all", n, k, mb)
	assert.Equal(t, 4, k)
	assert.Less(t, mb, 400.0*float64(n)/10000)
}

func BenchmarkCluster(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d windows, %d threads", n, threads), func(b *testing.B) {
				x, truth := simulate(rand.New(rand.NewPCG(1, 1)), []int{n * 4 / 10, n * 3 / 10, n * 2 / 10, n / 10}, simulated{low: 0.35, high: 0.5})
				e := timeline(truth)
				e.vectors = x
				b.ReportAllocs()
				for b.Loop() {
					if _, k, err := label(b.Context(), e, ClusterOptions{SameSpeakerCosine: 0.5, Threads: threads}.filled()); err != nil || k != 4 {
						b.Fatal(k, err)
					}
				}
			})
		}
	}
}

func TestByFirstAppearance(t *testing.T) {
	assert.Equal(t, []int{0, 1, 0, 2, 1}, byFirstAppearance([]int{7, 3, 7, 9, 3}))
	assert.True(t, slices.Equal([]int{}, byFirstAppearance(nil)))
}

// Two groups of one voice are joined once their windows have settled; another
// voice, and the least number of speakers, stay.
func TestSettledGroupsAreJoined(t *testing.T) {
	x, truth := simulate(rand.New(rand.NewPCG(3, 4)), []int{120, 60}, simulated{low: 0.55, high: 0.7})
	var speech []audio.Span
	segment := make([]int, x.n)
	for i := range x.n {
		speech = append(speech, audio.Span{Start: 2 * i * windowSamples, End: (2*i + 1) * windowSamples})
		segment[i] = i
	}
	e := &Embeddings{Speech: speech, Windows: speech, Segment: segment, vectors: x}
	labels := make([]int, x.n)
	for i, voice := range truth {
		labels[i] = 2 * voice
		if voice == 0 {
			labels[i] = i % 2
		}
	}
	opt := DefaultOptions().ClusterOptions.filled()
	joined, k := e.settled(slices.Clone(labels), 3, nil, opt)
	assert.Equal(t, 2, k)
	assert.InDelta(t, 1, agreement(joined, truth), 1e-9)
	opt.MinSpeakers = 3
	_, k = e.settled(labels, 3, nil, opt)
	assert.Equal(t, 3, k)
}
