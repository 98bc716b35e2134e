package diarize

import "github.com/otograph/otograph/audio"

// Only returns the embeddings of the speech segments that keep is true for. The
// others take no part: neither in finding the speakers nor in their turns.
func (e *Embeddings) Only(keep func(speech audio.Span) bool) *Embeddings {
	out := &Embeddings{embedder: e.embedder, pcm: e.pcm, vectors: matrix{dim: e.vectors.dim}}
	index := make([]int, len(e.Speech)) // per segment: its place in out, −1 when left out
	for i, s := range e.Speech {
		index[i] = -1
		if keep(s) {
			index[i] = len(out.Speech)
			out.Speech = append(out.Speech, s)
		}
	}
	for i, w := range e.Windows {
		if at := index[e.Segment[i]]; at >= 0 {
			out.Windows = append(out.Windows, w)
			out.Segment = append(out.Segment, at)
			out.vectors.data = append(out.vectors.data, e.vectors.row(i)...)
			out.vectors.n++
		}
	}
	return out
}
