package diarize

import (
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// Filter returns the embeddings of the speech segments for which keep is true.
// The other segments take no part in finding the speakers. They have no turns
// either, except, if clear is set, segments whose voice clearly matches one of
// the speakers. With a segmenter, a stretch with voices has turns if it touches
// such a segment or keep is true.
func (e *Embeddings) Filter(keep func(speech audio.Span) bool, clear bool) *Embeddings {
	if !clear {
		return e.filter(keep)
	}
	out := *e
	out.sure = keep
	return &out
}

func (e *Embeddings) filter(keep func(speech audio.Span) bool) *Embeddings {
	index := make([]int, len(e.Speech)) // per segment: its index in out, −1 if dropped
	kept := 0
	original := make([]int, len(e.original)) // the same for the segments of the stretches
	out := &Embeddings{embedder: e.embedder, pcm: e.pcm, scene: e.scene, wide: e.wide, sure: e.sure}
	for i, s := range e.original {
		original[i] = -1
		if keep(s) {
			original[i] = len(out.original)
			out.original = append(out.original, s)
		}
	}
	next := 0
	for _, v := range e.voices {
		for next < len(out.original) && out.original[next].End <= v.Start {
			next++
		}
		if next < len(out.original) && out.original[next].Start < v.End || keep(v) {
			out.voices = append(out.voices, v)
		}
	}
	for i, s := range e.Speech {
		index[i] = -1
		if e.scene == nil && keep(s) || e.scene != nil && original[e.within[i]] >= 0 {
			index[i] = kept
			kept++
		}
	}
	if kept == len(e.Speech) && len(out.voices) == len(e.voices) && len(out.original) == len(e.original) {
		return e // nothing to copy: the vectors of hours take tens of megabytes
	}
	windows := 0
	for _, segment := range e.Segment {
		if index[segment] >= 0 {
			windows++
		}
	}
	out.vectors = matrix{data: make([]float32, 0, windows*e.vectors.dim), n: windows, dim: e.vectors.dim}
	for i, s := range e.Speech {
		if index[i] >= 0 {
			out.Speech = append(out.Speech, s)
			if e.scene != nil {
				out.within = append(out.within, original[e.within[i]])
			}
		}
	}
	for i, w := range e.Windows {
		if at := index[e.Segment[i]]; at >= 0 {
			out.Windows = append(out.Windows, w)
			out.Segment = append(out.Segment, at)
			out.vectors.data = append(out.vectors.data, e.vectors.row(i)...)
		}
	}
	return out
}

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
