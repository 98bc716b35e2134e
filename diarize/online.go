package diarize

import (
	"cmp"
	"context"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// Online names voices while a sound grows. A voice gets a number, from 0 on,
// once it has spoken for numberedAfter seconds, and keeps it: no number ever
// belongs to another voice. A Change reports where an earlier answer was wrong.
// It is not safe for concurrent use.
type Online struct {
	all    Embeddings // of all utterances so far
	labels []int      // per window: the index of its voice
	shown  []int      // per window: the number that was reported; −1 none
	voices []onlineVoice
	next   int // the next number
	least  float64
	most   int
	opt    ClusterOptions
	due    int // windows from which on Revise clusters again
}

// onlineVoice is a voice of an Online.
type onlineVoice struct {
	sum     []float32 // of its windows' vectors
	seconds float64   // of its speech
	number  int       // −1: it has not spoken for long enough
}

// Change is speech whose voice has another number than was reported; −1 is no
// number yet.
type Change struct {
	audio.Span
	From, To int
}

const (
	// numberedAfter is the speech, in seconds, after which a voice gets its
	// number.
	numberedAfter = 1.5
	// ownShare is the least cosine of a voice with one of its windows, as a
	// share of the cosine from which two voices are one: a window of 1.5 s says
	// less than a whole voice.
	ownShare = 0.8
	// reviseGrowth is by how much the windows grow until they are clustered
	// again, and leastRevise the number of windows for the first time: in less
	// than a minute of speech, Cluster takes voices of few words for others.
	reviseGrowth, leastRevise = 1.25, 80
)

// NewOnline returns an Online for the voices of an embedder.
func NewOnline(e Embedder, opt ClusterOptions) (*Online, error) {
	if err := opt.validate(false); err != nil {
		return nil, err
	}
	opt.SameSpeakerCosine = cmp.Or(opt.SameSpeakerCosine, e.SameSpeaker(), DefaultSameSpeaker)
	opt = opt.filled()
	most := cmp.Or(opt.NumSpeakers, opt.MaxSpeakers)
	return &Online{all: Embeddings{embedder: e, vectors: matrix{dim: e.Dim()}}, least: ownShare * opt.SameSpeakerCosine, most: most, opt: opt, due: leastRevise}, nil
}

// Add takes the next utterance, from Embed without a segmenter, and returns its
// turns. A turn whose voice has no number yet has the Speaker −1.
func (o *Online) Add(e *Embeddings) []Turn {
	first, segments := len(o.labels), len(o.all.Speech)
	o.all.Speech = append(o.all.Speech, e.Speech...)
	o.all.Windows = append(o.all.Windows, e.Windows...)
	o.all.vectors.data = append(o.all.vectors.data, e.vectors.data...)
	o.all.vectors.n += e.vectors.n
	for _, s := range e.Segment {
		o.all.Segment = append(o.all.Segment, segments+s)
	}
	for i := first; i < o.all.vectors.n; i++ {
		o.labels = append(o.labels, o.voice(i))
		o.shown = append(o.shown, -1)
	}
	for i := first; i < len(o.labels); i++ {
		o.shown[i] = o.voices[o.labels[i]].number
	}
	return o.turns(first)
}

// voice returns the voice of a window, perhaps a new one, and adds the window
// to it.
func (o *Online) voice(i int) int {
	v := o.all.vectors.row(i)
	mean := slices.Clone(v) // with the windows that overlap it: they share its voice
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < o.all.vectors.n && o.all.Segment[j] == o.all.Segment[i] {
			for d, x := range o.all.vectors.row(j) {
				mean[d] += x / 2
			}
		}
	}
	best, cosine := -1, 0.0
	for k, known := range o.voices {
		if c := Similarity(mean, known.sum); best < 0 || c > cosine {
			best, cosine = k, c
		}
	}
	if best < 0 || cosine < o.least && len(o.voices) < o.most {
		best = len(o.voices)
		o.voices = append(o.voices, onlineVoice{sum: make([]float32, o.all.vectors.dim), number: -1})
	}
	o.hear(best, i)
	return best
}

// hear adds a window to a voice, which may get its number.
func (o *Online) hear(k, i int) {
	voice, w := &o.voices[k], o.all.Windows[i]
	for d, x := range o.all.vectors.row(i) {
		voice.sum[d] += x
	}
	if i > 0 {
		w.Start = max(w.Start, min(o.all.Windows[i-1].End, w.End))
	}
	voice.seconds += o.all.seconds(w.Len())
	if voice.number < 0 && voice.seconds >= numberedAfter-1e-3 {
		voice.number = o.next
		o.next++
	}
}

// turns returns the turns of the windows from one on: the speaker changes in
// the middle between two windows.
func (o *Online) turns(first int) (out []Turn) {
	for i := first; i < len(o.labels); i++ {
		start, end := o.reach(i).Seconds()
		if n := len(out); n > 0 && out[n-1].Speaker == o.shown[i] && o.all.Segment[i] == o.all.Segment[i-1] {
			out[n-1].End = end
			continue
		}
		out = append(out, Turn{Start: start, End: end, Speaker: o.shown[i]})
	}
	return out
}

// reach returns the part of a window's segment that is nearer to it than to the
// other windows.
func (o *Online) reach(i int) audio.Span {
	out := o.all.Speech[o.all.Segment[i]]
	middle := func(j int) int { return (o.all.Windows[j].Start + o.all.Windows[j].End) / 2 }
	if i > 0 && o.all.Segment[i-1] == o.all.Segment[i] {
		out.Start = (middle(i-1) + middle(i)) / 2
	}
	if i+1 < len(o.labels) && o.all.Segment[i+1] == o.all.Segment[i] {
		out.End = (middle(i) + middle(i+1)) / 2
	}
	return out
}

// Changes returns the speech whose number differs from the one that was
// reported, in order of time; each once.
func (o *Online) Changes() (out []Change) {
	for i, l := range o.labels {
		number := o.voices[l].number
		if number == o.shown[i] {
			continue
		}
		c := Change{Span: o.reach(i), From: o.shown[i], To: number}
		o.shown[i] = number
		if n := len(out); n > 0 && out[n-1].From == c.From && out[n-1].To == c.To && out[n-1].End == c.Start {
			out[n-1].End = c.End
			continue
		}
		out = append(out, c)
	}
	return out
}

// Revise clusters all windows again, as Cluster does, once there are a quarter
// more than at the last time. A cluster keeps the number of the voice with
// which it has most windows in common.
func (o *Online) Revise(ctx context.Context) error {
	if len(o.labels) < o.due {
		return nil
	}
	labels, k, err := label(ctx, &o.all, o.opt)
	if err != nil {
		return err
	}
	o.due = int(reviseGrowth * float64(len(o.labels)))
	common := make([]int, k*len(o.voices))
	for i, l := range labels {
		common[l*len(o.voices)+o.labels[i]]++
	}
	numbers := slices.Repeat([]int{-1}, k)
	for {
		at := 0
		for i, n := range common {
			if n > common[at] {
				at = i
			}
		}
		if len(common) == 0 || common[at] == 0 {
			break
		}
		cluster, old := at/len(o.voices), at%len(o.voices)
		numbers[cluster] = o.voices[old].number
		for i := range common {
			if i/len(o.voices) == cluster || i%len(o.voices) == old {
				common[i] = 0
			}
		}
	}
	o.labels, o.voices = labels, nil
	for _, n := range numbers {
		o.voices = append(o.voices, onlineVoice{sum: make([]float32, o.all.vectors.dim), number: n})
	}
	for i, l := range labels {
		o.hear(l, i)
	}
	return nil
}

// Speakers returns the voices by number; one that has joined another has no
// Embedding.
func (o *Online) Speakers() []Speaker {
	out := make([]Speaker, o.next)
	for _, v := range o.voices {
		if v.number >= 0 {
			x := slices.Clone(v.sum)
			voices.Normalize(x)
			out[v.number].Embedding = x
		}
	}
	return out
}
