package diarize

import (
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// clearVoice is the quantile of the fits of sure windows to their speakers that
// a doubtful segment must reach.
const clearVoice = 0.1

// relabeled returns the embeddings without doubtful, unclear segments, and each
// window's label: the given one if sure, else the nearest centroid's.
func (e *Embeddings) relabeled(sure *Embeddings, labels []int, centre matrix) (*Embeddings, []int) {
	fits := make([]float64, 0, len(labels))
	for i, l := range labels {
		fits = append(fits, float64(dot1(sure.vectors.row(i), centre.row(l))))
	}
	slices.Sort(fits)
	if len(fits) == 0 {
		return sure, labels
	}
	least := fits[int(clearVoice*float64(len(fits)))]
	clear := map[audio.Span]bool{}
	for from := 0; from < len(e.Windows); {
		segment, to := e.spoken(from), from
		mean := make([]float32, e.vectors.dim)
		for ; to < len(e.Windows) && e.spoken(to) == segment; to++ {
			for d, v := range e.vectors.row(to) {
				mean[d] += v
			}
		}
		if voices.Normalize(mean) {
			_, fit := nearestCentroid(mean, centre)
			clear[segment] = float64(fit) >= least
		}
		from = to
	}
	kept := e.filter(func(speech audio.Span) bool { return e.sure(speech) || clear[speech] })
	out := make([]int, len(kept.Windows))
	next := 0
	for i, w := range kept.Windows {
		if next < len(labels) && sure.Windows[next] == w {
			out[i] = labels[next]
			next++
			continue
		}
		out[i], _ = nearestCentroid(kept.vectors.row(i), centre)
	}
	return kept, out
}
