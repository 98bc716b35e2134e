package diarize

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/voices"
)

// setting is a kind of recording of simulated voices. A window's vector is the
// sum of a part common to all voices, the voice, its turn, and noise, half of
// which overlapping windows share; their shares of its squared length add up to
// 1.
type setting struct {
	name      string
	common    float64    // of all vectors: the mean cosine of two voices
	voice     [2]float64 // with common the mean cosine of two windows of a voice; drawn for each window
	turn      float64    // of the windows of one turn
	longest   int        // windows of a turn
	main      float64    // share of the speech of one voice; 0: shares at random
	drift     float64    // cosine of a voice at the beginning and at the end; 0: no drift
	strangers float64    // share of windows without a voice: laughter, knocking
}

// least returns the number of recordings out of 60 with the right count. A
// voice that changes within ten minutes often counts as two: the rules were
// chosen on real people, whose voices in one room are more similar than the
// beginning and end of such a voice.
func (c setting) least() int {
	if c.drift > 0 {
		return 42
	}
	return 57
}

// settings are five conditions. Cosines of two voices deviate by 0.1 from their
// mean, cosines of two windows of a voice vary around common plus voice. In the
// first setting that is 0.6 against 0.05 with the published ECAPA's threshold
// of 0.25 (SpeechBrain's verify_files) far from both, as expected from equal
// error rates of 0.7 to 0.9 % on VoxCeleb1-O; the others are worse than any
// published result for whole sentences, as windows of 1.5 s are. The shared
// noise and the drift are assumptions.
var settings = []setting{
	{name: "clean", common: 0.05, voice: [2]float64{0.45, 0.65}, turn: 0.05, longest: 12},
	{name: "noisy", common: 0.15, voice: [2]float64{0.22, 0.45}, turn: 0.08, longest: 12, strangers: 0.02},
	{name: "short turns", common: 0.05, voice: [2]float64{0.3, 0.5}, turn: 0.1, longest: 3},
	{name: "unequal shares", common: 0.05, voice: [2]float64{0.35, 0.55}, turn: 0.06, longest: 10, main: 0.6},
	{name: "drifting channel", common: 0.1, voice: [2]float64{0.35, 0.55}, turn: 0.06, longest: 12, drift: 0.6},
}

const (
	simDim     = 192
	simWindows = 800 // ten minutes of speech
	leastPart  = 0.02
)

// spread returns a random vector of mean squared length 1 whose variances fall
// like e^(−i/decay).
func spread(r *rand.Rand, decay float64) []float64 {
	step := math.Exp(-0.5 / decay)
	deviation := math.Sqrt((1 - step*step) / (1 - math.Pow(step, 2*simDim)))
	v := make([]float64, simDim)
	for i := range v {
		v[i] = r.NormFloat64() * deviation
		deviation *= step
	}
	return v
}

// parts draws the number of windows of each voice, at least leastPart of all.
func parts(r *rand.Rand, speakers int, main float64) []int {
	weights, all := make([]float64, speakers), 0.0
	for s := range weights {
		weights[s] = r.ExpFloat64() + r.ExpFloat64()
		all += weights[s]
	}
	out := make([]int, speakers)
	free, left := 1-leastPart*float64(speakers), simWindows
	if main > 0 && speakers > 1 {
		free = 1 - main - leastPart*float64(speakers-1)
		all -= weights[0]
	}
	for s := speakers - 1; s > 0; s-- {
		out[s] = int(math.Ceil(simWindows * (leastPart + free*weights[s]/all)))
		left -= out[s]
	}
	out[0] = left
	return out
}

// recording simulates one recording and records the voice of each window.
func (c setting) recording(r *rand.Rand, speakers int) *Embeddings {
	const between, within = 50.0, 100.0 // decay: cosines of unrelated vectors deviate by 0.10 and 0.08
	common := spread(r, between)
	voice, goal := make([][]float64, speakers), make([][]float64, speakers)
	for s := range voice {
		voice[s], goal[s] = spread(r, between), spread(r, between)
	}
	left := parts(r, speakers, c.main)
	x := newMatrix(simWindows, simDim)
	var truth []int
	last := -1
	for len(truth) < simWindows {
		s := 0
		for pick := r.IntN(simWindows - len(truth)); pick >= left[s]; s++ {
			pick -= left[s]
		}
		if s == last && left[s] < simWindows-len(truth) {
			continue
		}
		last = s
		turn, before := spread(r, within), spread(r, within)
		for range min(1+r.IntN(c.longest), left[s]) {
			own := voice[s]
			if c.drift > 0 {
				own = make([]float64, simDim)
				a := math.Acos(c.drift) * float64(len(truth)) / simWindows
				for d := range own {
					own[d] = math.Cos(a)*voice[s][d] + math.Sin(a)*goal[s][d]
				}
			}
			share := c.voice[0] + (c.voice[1]-c.voice[0])*r.Float64()
			fresh := spread(r, within)
			row := x.row(len(truth))
			stranger := r.Float64() < c.strangers
			for d := range row {
				noise := (before[d] + fresh[d]) / math.Sqrt2
				v := math.Sqrt(c.common)*common[d] + math.Sqrt(share)*own[d] + math.Sqrt(c.turn)*turn[d] + math.Sqrt(1-c.common-share-c.turn)*noise
				if stranger {
					v = fresh[d]
				}
				row[d] = float32(v)
			}
			voices.Normalize(row)
			before = fresh
			truth = append(truth, s)
			left[s]--
		}
	}
	e := timeline(truth)
	e.vectors = x
	return e
}

// scales are the cosines of other embedders, tested as a model that states no
// threshold: two windows of two voices have common on average, two of one voice
// common plus voice and, in one turn, turn more. The first three resemble the
// reported values of published families; no such model was measured here. In
// the next the noise is the same as above and the voices are weaker, in the
// last two the network's vectors have a large part in common.
var scales = []setting{
	{name: "ResNet34", common: 0.15, voice: [2]float64{0.4, 0.6}, turn: 0.05, longest: 12},
	{name: "CAM++", common: 0.1, voice: [2]float64{0.45, 0.65}, turn: 0.05, longest: 12},
	{name: "TitaNet", common: 0.1, voice: [2]float64{0.5, 0.7}, turn: 0.05, longest: 12},
	{name: "weak", common: 0.02, voice: [2]float64{0.15, 0.3}, turn: 0.05, longest: 12},
	{name: "not centered", common: 0.45, voice: [2]float64{0.3, 0.4}, turn: 0.03, longest: 12},
	{name: "and drifting", common: 0.4, voice: [2]float64{0.25, 0.4}, turn: 0.04, longest: 12, drift: 0.6},
}

// TestCountingVoices counts the voices of simulated recordings.
// OTOGRAPH_COUNTING_SEED runs the whole table with another seed; the rules were
// chosen with 1 and 2.
func TestCountingVoices(t *testing.T) {
	seed, rounds, counts := uint64(101), 1, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	given := os.Getenv("OTOGRAPH_COUNTING_SEED")
	if given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
		rounds = 6
	} else if raceEnabled {
		counts = []int{5}
	}
	right, near, all := 0, 0, 0
	for _, c := range slices.Concat(settings, scales) {
		var wrong []string
		before := right
		for _, speakers := range counts {
			for round := range rounds {
				e := c.recording(rand.New(rand.NewPCG(seed*1000+uint64(round), uint64(speakers))), speakers)
				_, k, err := label(t.Context(), e, ClusterOptions{SingleSpeakerThreshold: 0.05}.filled())
				require.NoError(t, err)
				all++
				if k == speakers {
					right++
				} else {
					wrong = append(wrong, fmt.Sprintf("%d→%d", speakers, k))
				}
				if max(k-speakers, speakers-k) <= 1 {
					near++
				}
			}
		}
		t.Logf("%-16s number of voices right in %d of %d %v", c.name, right-before, rounds*len(counts), wrong)
		if given != "" {
			assert.GreaterOrEqual(t, right-before, c.least(), c.name)
		}
	}
	t.Logf("right in %d of %d, within one in %d", right, all, near)
	assert.GreaterOrEqual(t, float64(right), 0.95*float64(all)-1)
	assert.GreaterOrEqual(t, float64(near), 0.99*float64(all)-1)
}
