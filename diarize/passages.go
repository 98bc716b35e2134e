package diarize

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// A passage of leastPassage to mostPassage samples has one speaker: the one
// with the most similar voice. Windows of 1.5 s blur short answers; longer
// passages have windows of their own. On ten recordings of people this lowers
// the confused speech from 7.0 % to 5.7 %, as do passages of any length, and to
// 6.3 % if the voice must be more similar by 0.05.
const (
	leastPassage = 3 * audio.SampleRate / 10
	mostPassage  = 3 * audio.SampleRate
)

// leastProof is how much more similar a stretch of a passage must be to its
// speaker than to any other, if the speaker changes within the passage.
const leastProof = 0.1

// passage is a stretch that probably one voice speaks.
type passage struct {
	audio.Span
	runs  []piece // its speakers, in order of time
	first int     // index of the vector of the first run, if there are several
	whole int     // index of the passage's own vector, −1 without one
}

// answered returns the pieces with each short passage assigned to its speaker.
// The speaker changes in a passage only if the voices on both sides prove it.
func answered(ctx context.Context, e *Embeddings, parts []piece, centre matrix, passages []audio.Span) ([]piece, error) {
	if centre.n < 2 {
		return parts, nil
	}
	var list []passage
	var spans []audio.Span
	at := 0 // the first part that may touch the passage
	for _, span := range passages {
		p := passage{Span: audio.Span{Start: max(span.Start, 0), End: min(span.End, e.pcm.Len())}, first: len(spans), whole: -1}
		for at < len(parts) && parts[at].End <= p.Start {
			at++
		}
		if p.runs = runsWithin(parts[at:], p.Span); len(p.runs) > 1 {
			for _, r := range p.runs {
				spans = append(spans, r.Span)
			}
		}
		if p.Len() >= leastPassage && p.Len() <= mostPassage && (len(p.runs) > 0 || len(e.unknown(parts, piece{Span: p.Span})) > 0) {
			p.whole = len(spans)
			spans = append(spans, p.Span)
		}
		list = append(list, p)
	}
	vectors, err := e.passageVectors(ctx, spans)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		for _, r := range p.spoken(vectors, centre) {
			parts = give(parts, r.Span, r.speaker)
			if r.Span != p.Span {
				continue
			}
			if more := e.unknown(parts, r); len(more) > 0 {
				parts = append(parts, more...)
				slices.SortStableFunc(parts, func(a, b piece) int { return cmp.Compare(a.Start, b.Start) })
			}
		}
	}
	return joinTouching(parts), nil
}

// passageVectors returns the vectors of stretches, nil for a stretch that is too
// short. If wide windows cover most of a stretch, it takes their vectors.
func (e *Embeddings) passageVectors(ctx context.Context, spans []audio.Span) ([][]float32, error) {
	out := make([][]float32, len(spans))
	var rest []audio.Span
	var index []int
	for i, s := range spans {
		if e.wide {
			out[i] = e.mean(s)
		}
		if out[i] == nil && s.Len() >= leastPassage {
			rest, index = append(rest, e.part(s, mostPassage)), append(index, i)
		}
	}
	vectors, err := e.embed(ctx, rest)
	for k, v := range vectors {
		out[index[k]] = v
	}
	return out, err
}

// mean returns the mean of the windows' vectors in a stretch; nil if they cover
// less than half of it.
func (e *Embeddings) mean(s audio.Span) []float32 {
	sum, covered := make([]float32, e.vectors.dim), 0
	first := sort.Search(len(e.Windows), func(i int) bool { return e.Windows[i].End > s.Start })
	for i := first; i < len(e.Windows) && e.Windows[i].Start < s.End; i++ {
		n := min(s.End, e.Windows[i].End) - max(s.Start, e.Windows[i].Start)
		for d, v := range e.vectors.row(i) {
			sum[d] += v * float32(n)
		}
		covered += n
	}
	if 2*covered < s.Len() {
		return nil
	}
	voices.Normalize(sum)
	return sum
}

// unknown returns a passage's stretches of speech that are too short for a
// window and in no piece, as pieces of the passage's speaker.
func (e *Embeddings) unknown(parts []piece, p piece) (out []piece) {
	for _, s := range e.Speech {
		inside := audio.Span{Start: max(s.Start, p.Start), End: min(s.End, p.End)}
		from := sort.Search(len(parts), func(i int) bool { return parts[i].End > inside.Start })
		if inside.Len() > 0 && len(runsWithin(parts[from:], inside)) == 0 {
			out = append(out, piece{inside, p.speaker})
		}
	}
	return out
}

// runsWithin returns who speaks when in a passage, a piece per change.
func runsWithin(parts []piece, span audio.Span) (runs []piece) {
	for _, p := range parts {
		if p.Start >= span.End {
			break
		}
		p.Start, p.End = max(p.Start, span.Start), min(p.End, span.End)
		if n := len(runs); n > 0 && runs[n-1].speaker == p.speaker {
			runs[n-1].End = p.End
		} else if p.Len() > 0 {
			runs = append(runs, p)
		}
	}
	return runs
}

// spoken returns the stretches of a passage whose speaker differs from that of
// their runs.
func (p passage) spoken(vectors [][]float32, centre matrix) (out []piece) {
	var unproven []int
	if len(p.runs) > 1 {
		for i, r := range p.runs {
			if r.Len() < leastPassage || !proves(vectors[p.first+i], centre, r.speaker) {
				unproven = append(unproven, i)
			}
		}
		if len(unproven) == 0 {
			return nil
		}
	}
	if p.whole >= 0 {
		if best, cosine := nearestCentroid(vectors[p.whole], centre); cosine > 0 {
			out = append(out, piece{p.Span, best})
		}
		return out
	}
	for _, i := range unproven { // joins the longer neighbor
		to := max(i-1, 0)
		if i == 0 || i+1 < len(p.runs) && p.runs[i+1].Len() > p.runs[to].Len() {
			to = i + 1
		}
		out = append(out, piece{p.runs[i].Span, p.runs[to].speaker})
	}
	return out
}

// proves reports whether a vector is the speaker's rather than any other's.
func proves(v []float32, centre matrix, speaker int) bool {
	own := dot1(v, centre.row(speaker))
	for s := range centre.n {
		if s != speaker && own-dot1(v, centre.row(s)) < leastProof {
			return false
		}
	}
	return true
}

// give returns the pieces with the speech in a span assigned to a speaker.
func give(parts []piece, span audio.Span, speaker int) []piece {
	out := make([]piece, 0, len(parts)+2)
	add := func(start, end, who int) {
		if start < end {
			out = append(out, piece{audio.Span{Start: start, End: end}, who})
		}
	}
	for _, p := range parts {
		add(p.Start, min(p.End, span.Start), p.speaker)
		add(max(p.Start, span.Start), min(p.End, span.End), speaker)
		add(max(p.Start, span.End), p.End, p.speaker)
	}
	return out
}
