package diarize

import (
	"context"

	"github.com/otograph/otograph/audio"
)

// Speaker is one voice found in a recording.
type Speaker struct {
	// Embedding is the normalized mean of two vectors: the centroid of the
	// speaker's windows, and the vector of some of these windows end to end. It has
	// unit length and the embedder's dimension, and is comparable by cosine only
	// with embeddings of the same model.
	Embedding []float32
	// Segments is the number of speech segments with windows of the speaker.
	Segments int
}

// Result holds who speaks when.
type Result struct {
	// Turns in order of time; together they are exactly the speech segments.
	// With a segmenter they are the stretches in which it hears someone, also
	// outside the speech segments, and the segments in which it hears nobody;
	// they overlap where voices overlap.
	Turns []Turn
	// Exclusive are the turns without overlaps: where voices overlap, the turn
	// that began first lasts to its end. They decide the speaker of each word.
	Exclusive []Turn
	// Speakers by number; empty without speech. Speech that is digital silence
	// to the embedder belongs to one speaker with a zero embedding.
	Speakers []Speaker
	// Probability is the probability, 0 to 1, that the number of speakers is
	// right; nil if the options give the number, and without speech.
	Probability *float64
}

// Diarize finds the speakers of the speech segments and their turns. It is
// Embed followed by Cluster.
//
// Errors: ErrOptions, the embedder's, the context's.
func Diarize(ctx context.Context, e Embedder, pcm *audio.PCM, speech []audio.Span, opt Options) (*Result, error) {
	if err := opt.ClusterOptions.validate(opt.Segmenter != nil); err != nil { // before the work of Embed
		return nil, err
	}
	embedded, err := Embed(ctx, e, pcm, speech, opt.EmbedOptions)
	if err != nil {
		return nil, err
	}
	return Cluster(ctx, embedded, opt.ClusterOptions)
}

// Cluster finds the speakers of embedded windows and their turns: the second
// half of Diarize. It needs the embedder again, for a few short windows around
// the changes of speaker inside segments.
//
// Errors: ErrOptions, the embedder's, the context's.
func Cluster(ctx context.Context, e *Embeddings, opt ClusterOptions) (*Result, error) {
	if err := opt.validate(e.scene != nil); err != nil {
		return nil, err
	}
	if opt.SameSpeakerCosine == 0 && e.embedder != nil {
		opt.SameSpeakerCosine = e.embedder.SameSpeaker()
	}
	opt = opt.filled()
	if e.embedder != nil {
		opt.cosines.one, opt.cosines.two = e.embedder.Cosines()
		opt.plda = e.embedder.PLDA()
	}
	sure := e
	if e.sure != nil {
		sure = e.filter(e.sure)
	}
	labels, k, err := label(ctx, sure, opt)
	if err != nil {
		return nil, err
	}
	centre, probability := centroids(sure.vectors, labels, k), sure.certainty(labels, k, opt.cosines)
	if e.sure != nil {
		e, labels = e.relabeled(sure, labels, centre)
	}
	parts, err := pieces(ctx, e, labels, centre)
	if err != nil {
		return nil, err
	}
	if parts, err = answered(ctx, e, parts, centre, opt.Passages); err != nil {
		return nil, err
	}
	if e.scene != nil {
		parts, err = overlapping(ctx, e, parts, centre)
	} else {
		parts = nearest(e.Speech, parts)
	}
	if err != nil {
		return nil, err
	}
	if centre, err = e.joined(ctx, labels, centre); err != nil {
		return nil, err
	}
	r := result(e, labels, max(k, min(len(parts), 1)), centre, parts)
	if k > 0 && opt.NumSpeakers == 0 && opt.MinSpeakers < opt.MaxSpeakers {
		r.Probability = new(probability)
	}
	return r, nil
}

// label returns each window's cluster, 0 … k−1.
func label(ctx context.Context, e *Embeddings, opt ClusterOptions) (labels []int, k int, err error) {
	near := e.windowsByTile()
	labels, k, err = partition(ctx, e.vectors, e.Windows, near, opt)
	if err != nil {
		return nil, 0, err
	}
	labels, k = e.settled(labels, k, near, opt)
	return labels, k, nil
}

// settled returns the labels once every window is with its nearest centroid.
// Groups that differed as two voices may then be alike, and are joined: for 60
// mixtures of real people and two models, 70 instead of 67 of 120 numbers of
// voices are right.
func (e *Embeddings) settled(labels []int, k int, near [][]localWindow, opt ClusterOptions) (settled []int, n int) {
	least, _ := opt.bounds(e.vectors.n)
	cost := changeCosts(e)
	for {
		labels = settle(e.vectors, labels, k, cost)
		if k <= least || opt.cosines.one > 0 {
			return labels, k
		}
		s := newSums(e.vectors, labels, k)
		s.compare(e.vectors, e.Windows, near, opt)
		group, n := s.mergeWeak(counting(k), e.Windows, s.enough(e.Windows), opt.SameSpeakerCosine, least)
		if n == k {
			return labels, k
		}
		for i, l := range labels {
			labels[i] = group[l]
		}
		k = n
	}
}

// result numbers the speakers by their first turn and counts their segments.
func result(e *Embeddings, labels []int, k int, centre matrix, parts []piece) *Result {
	order := make([]int, 0, len(parts)+k)
	for _, p := range parts {
		order = append(order, p.speaker)
	}
	// A voice has no turn if all its turns overlap another voice.
	number := byFirstAppearance(append(order, counting(k)...))[len(parts):]
	turns := func(parts []piece) []Turn {
		out := make([]Turn, len(parts))
		for i, p := range parts {
			start, end := p.Seconds()
			out[i] = Turn{Start: start, End: end, Speaker: number[p.speaker]}
		}
		return out
	}
	r := &Result{Turns: turns(parts), Exclusive: turns(exclusive(parts))}
	r.Speakers = make([]Speaker, k)
	for l, s := range number {
		r.Speakers[s].Embedding = make([]float32, e.vectors.dim)
		if l < centre.n {
			copy(r.Speakers[s].Embedding, centre.row(l))
		}
	}
	seen := make([]int, k) // per label: last segment counted, plus one
	for i, l := range labels {
		segment := e.Segment[i]
		if e.scene != nil {
			segment = e.within[segment]
		}
		if seen[l] != segment+1 {
			seen[l] = segment + 1
			r.Speakers[number[l]].Segments++
		}
	}
	return r
}
