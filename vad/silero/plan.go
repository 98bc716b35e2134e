package silero

import (
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/vad"
)

// stretch is a run of windows computed as one row of a batch, after a run-in in
// which the state settles.
type stretch struct {
	start, end int // windows [start, end)
	runIn      int // windows before start
}

const (
	// onePiece: recordings of up to a quarter of an hour are computed in one
	// piece. Batching would save a second and lose exactness.
	onePiece = 900 * audio.SampleRate / vad.Window
	// perStretch is the shortest stretch (4 min), longest the longest (20 min).
	perStretch = 240 * audio.SampleRate / vad.Window
	longest    = 1200 * audio.SampleRate / vad.Window
	// maxRows limits the size of a batch; more rows were not faster.
	maxRows = 16
	// runIn is a minute. Every stretch but the first begins its run-in with the
	// state of the first one after warmUp (30 s). These networks have a long
	// memory: over 7 minutes of published recordings with a run-in of 3 s from
	// zeros, probabilities in the next second differed by up to 0.5 from the
	// sequential ones. With a minute from a warm state, 99 % differed by less
	// than 0.01, 90 % by less than 0.0005, and one border of 410 segment
	// borders moved (Silero 6.2).
	runIn  = 60 * audio.SampleRate / vad.Window
	warmUp = 30 * audio.SampleRate / vad.Window
	// search is the distance (3 s) from its evenly spaced position in which a
	// cut looks for the quietest half second (quiet windows).
	search = 3 * audio.SampleRate / vad.Window
	quiet  = 16
)

// plan splits a recording into stretches at the quietest places, and groups
// them into batches, regardless of the number of threads. Up to whole windows
// stay in one piece.
func plan(pcm *audio.PCM, whole int) [][]stretch {
	windows := vad.Windows(pcm.Len())
	if windows <= whole || windows < 2*perStretch {
		return [][]stretch{{{end: windows}}}
	}
	count := max(min(windows/perStretch, maxRows), (windows+longest-1)/longest)
	list := make([]stretch, count)
	for k := range list {
		if k > 0 {
			list[k].start = quietest(pcm, k*windows/count)
			list[k-1].end = list[k].start
			list[k].runIn = runIn
		}
	}
	list[count-1].end = windows
	groups := max((count+maxRows-1)/maxRows, min(2, count/8))
	if groups <= 1 {
		return [][]stretch{list}
	}
	out := make([][]stretch, groups)
	for g := range out {
		out[g] = slices.Clone(list[g*count/groups : (g+1)*count/groups])
	}
	return out
}

// quietest returns the middle of the quietest half second near a window.
func quietest(pcm *audio.PCM, at int) int {
	first := at - search - quiet/2
	energy := make([]float64, 2*search+quiet)
	pcm = pcm.Unleveled() // its gain hardly changes within the search
	for i := range energy {
		for _, x := range pcm.Samples((first+i)*vad.Window, (first+i+1)*vad.Window) {
			energy[i] += float64(x) * float64(x)
		}
	}
	best, least := at, math.Inf(1)
	for i := range 2 * search {
		sum := 0.0
		for _, e := range energy[i : i+quiet] {
			sum += e
		}
		if sum < least {
			best, least = first+i+quiet/2, sum
		}
	}
	return best
}
