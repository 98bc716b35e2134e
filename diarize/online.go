package diarize

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// Online names voices while a sound grows. A voice gets a number, from 0 on,
// once it has spoken for 1.5 seconds, and keeps it: no number ever belongs to
// another voice. A Change reports where an earlier answer was wrong, in the last
// minute of speech. It is not safe for concurrent use.
type Online struct {
	recent  Embeddings // the last windows, and their speech
	seconds []float64  // per window: speech that the one before does not have
	labels  []int      // per window: the index of its voice; −1 none yet
	shown   []int      // per window: the number that was reported; −1 none
	voices  []onlineVoice
	known   [][]float32 // per number: the sum of its voice's vectors when it last spoke
	most    int
	cosines cosines
}

type onlineVoice struct {
	sum     []float32 // of the vectors of its settled windows
	windows int       // that are settled
	seconds float64   // of their speech
	number  int       // −1: it has not spoken for long enough
}

// Change is speech whose voice has another number than reported; −1: none.
type Change struct {
	audio.Span
	From, To int
}

const (
	// numberedAfter is the speech (s) after which a voice gets its number.
	numberedAfter = 1.5
	// recentWindows is the number of windows whose voices may still change: a
	// minute of speech. Earlier ones are settled, and their voices stay apart.
	recentWindows = 80
	// settledWorth limits the weight of a voice's settled windows, in windows.
	settledWorth = 20
	// For an embedder that states no cosines, the usual cosines of one voice
	// and of two are usualSpread above and below usualCosine times its
	// threshold of one voice, as for the embedded model.
	usualCosine, usualSpread = 0.8, 0.15
)

// NewOnline returns an Online for the voices of an embedder, at most
// opt.NumSpeakers or opt.MaxSpeakers.
func NewOnline(e Embedder, opt ClusterOptions) (*Online, error) {
	if err := opt.validate(false); err != nil {
		return nil, err
	}
	o := &Online{recent: Embeddings{vectors: matrix{dim: e.Dim()}}, most: cmp.Or(opt.NumSpeakers, opt.filled().MaxSpeakers)}
	if o.cosines.one, o.cosines.two = e.Cosines(); o.cosines.one == 0 {
		middle := usualCosine * cmp.Or(opt.SameSpeakerCosine, e.SameSpeaker(), DefaultSameSpeaker)
		o.cosines = cosines{middle + usualSpread, middle - usualSpread}
	}
	return o, nil
}

// Add takes the next utterance, from Embed without a segmenter, and returns its
// turns. A turn whose voice has no number yet has the Speaker −1.
func (o *Online) Add(e *Embeddings) []Turn {
	o.settle(len(o.labels) + len(e.Windows) - recentWindows)
	first, segments := len(o.labels), len(o.recent.Speech)
	o.recent.Speech = append(o.recent.Speech, e.Speech...)
	o.recent.vectors.data = append(o.recent.vectors.data, e.vectors.data...)
	o.recent.vectors.n += e.vectors.n
	covered := 0
	for i, w := range e.Windows {
		o.recent.Windows = append(o.recent.Windows, w)
		o.recent.Segment = append(o.recent.Segment, segments+e.Segment[i])
		o.seconds = append(o.seconds, float64(w.End-max(w.Start, covered))/audio.SampleRate)
		o.labels, o.shown = append(o.labels, -1), append(o.shown, -1)
		covered = w.End
	}
	o.group()
	o.number()
	for i := first; i < len(o.labels); i++ {
		o.shown[i] = o.voices[o.labels[i]].number
	}
	return o.turns(first)
}

// current returns the voices with their windows that are not settled.
func (o *Online) current() []onlineVoice {
	list := slices.Clone(o.voices)
	for k := range list {
		list[k].sum = slices.Clone(list[k].sum)
	}
	for i, l := range o.labels {
		list[l].add(o.recent.vectors.row(i))
		list[l].seconds += o.seconds[i]
	}
	return list
}

// number gives numbers to voices: the number of a similar voice that has joined
// another voice, or the next number.
func (o *Online) number() {
	list := o.current()
	held := make([]bool, len(o.known)+len(list))
	for _, v := range list {
		if v.number >= 0 {
			held[v.number] = true
		}
	}
	for k, v := range list {
		if v.number < 0 && v.seconds >= numberedAfter-1e-3 {
			least := o.cosines.one
			if len(o.known) == o.most {
				least = -2
			}
			for n, x := range o.known {
				if cosine := Similarity(x, v.sum); !held[n] && cosine > least {
					v.number, least = n, cosine
				}
			}
			if v.number < 0 {
				v.number, o.known = len(o.known), append(o.known, nil)
			}
		}
		if o.voices[k].number = v.number; v.number >= 0 {
			held[v.number], o.known[v.number] = true, v.sum
		}
	}
}

// settle fixes the voices of the first n windows that have one.
func (o *Online) settle(n int) {
	n = min(max(n, 0), len(o.labels))
	r := &o.recent
	for i, l := range o.labels[:n] {
		v := &o.voices[l]
		v.add(r.vectors.row(i))
		v.windows++
		v.seconds += o.seconds[i]
	}
	segments := len(r.Speech)
	if n < len(o.labels) {
		segments = r.Segment[n]
		r.Speech[segments].Start = o.reach(n).Start // earlier speech has settled
	}
	r.Speech, r.Windows, r.Segment = r.Speech[segments:], r.Windows[n:], r.Segment[n:]
	for i := range r.Segment {
		r.Segment[i] -= segments
	}
	r.vectors.data = r.vectors.data[n*r.vectors.dim:]
	r.vectors.n -= n
	o.seconds, o.labels, o.shown = o.seconds[n:], o.labels[n:], o.shown[n:]
}

func (v *onlineVoice) add(x []float32) {
	for d, y := range x {
		v.sum[d] += y
	}
}

// group clusters the voices with settled windows and the other windows by
// evidence, and labels each window with the voice of its cluster. A cluster
// without settled windows keeps the voice with which it shares most windows, or
// is a new voice.
func (o *Online) group() {
	var sums [][]float32
	var size []float64
	var voice []int // per group: the index of its voice; −1 none yet
	for k, v := range o.voices {
		if v.windows > 0 {
			sums, size, voice = append(sums, v.sum), append(size, float64(v.windows)), append(voice, k)
		}
	}
	settled := len(sums)
	for i := range o.labels {
		sums, size, voice = append(sums, o.recent.vectors.row(i)), append(size, 1), append(voice, -1)
	}
	k := len(sums)
	e := newEvidence(size, o.cosines, func(a, b int) float64 { return float64(dot1(sums[a], sums[b])) })
	e.settled = settled
	for g := range settled {
		size[g] = min(size[g], settledWorth)
	}
	group := e.groups(o.most)
	o.keep(group[settled:], voice)
	var list []onlineVoice
	index := make([]int, k) // per group: the index of its voice in list, plus one
	for _, g := range group {
		if index[g] == 0 {
			v := onlineVoice{sum: make([]float32, o.recent.vectors.dim), number: -1}
			if voice[g] >= 0 {
				v = o.voices[voice[g]]
			}
			list = append(list, v)
			index[g] = len(list)
		}
	}
	for i, g := range group[settled:] {
		o.labels[i] = index[g] - 1
	}
	o.voices = list
}

// keep assigns each group without a voice to the voice that shares most windows
// with the group. Only voices without settled windows are assigned.
func (o *Online) keep(group, voice []int) {
	n := len(o.voices)
	common := make([]int, len(voice)*n)
	for i, l := range o.labels {
		if l >= 0 && voice[group[i]] < 0 && o.voices[l].windows == 0 {
			common[group[i]*n+l]++
		}
	}
	for len(common) > 0 {
		at := slices.Index(common, slices.Max(common))
		if common[at] == 0 {
			break
		}
		voice[at/n] = at % n
		for i := range common {
			if i/n == at/n || i%n == at%n {
				common[i] = 0
			}
		}
	}
}

// turns returns the turns of the windows from index first on: the speaker changes
// in the middle between two windows.
func (o *Online) turns(first int) (out []Turn) {
	for i := first; i < len(o.labels); i++ {
		start, end := o.reach(i).Seconds()
		if n := len(out); n > 0 && out[n-1].Speaker == o.shown[i] && o.recent.Segment[i] == o.recent.Segment[i-1] {
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
	out := o.recent.Speech[o.recent.Segment[i]]
	middle := func(j int) int { return (o.recent.Windows[j].Start + o.recent.Windows[j].End) / 2 }
	if i > 0 && o.recent.Segment[i-1] == o.recent.Segment[i] {
		out.Start = (middle(i-1) + middle(i)) / 2
	}
	if i+1 < len(o.labels) && o.recent.Segment[i+1] == o.recent.Segment[i] {
		out.End = (middle(i) + middle(i+1)) / 2
	}
	return out
}

// Changes returns the speech whose number differs from the reported one, in
// order of time; each change once.
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

// Speakers returns the voices by number, joined ones without Embedding.
func (o *Online) Speakers() []Speaker {
	out := make([]Speaker, len(o.known))
	for _, v := range o.current() {
		if v.number >= 0 && voices.Normalize(v.sum) {
			out[v.number].Embedding = v.sum
		}
	}
	return out
}
