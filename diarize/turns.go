package diarize

import (
	"cmp"
	"context"
	"slices"

	"github.com/otograph/otograph/audio"
)

// Turn is a stretch of speech of one speaker.
type Turn struct {
	Start, End float64 // seconds from the beginning of the recording
	Speaker    int     // 0 … n−1; speaker 0 speaks first
}

// piece is a turn in samples, before speakers are numbered.
type piece struct {
	audio.Span
	speaker int
}

// pieces converts window labels to turns that cover every segment with windows
// once. Segments are cut where the label changes.
func pieces(ctx context.Context, e *Embeddings, labels []int, centre matrix) ([]piece, error) {
	var changes []change
	for i := 1; i < len(labels); i++ {
		if e.Segment[i] != e.Segment[i-1] || labels[i] == labels[i-1] {
			continue
		}
		before, after := e.Windows[i-1], e.Windows[i]
		low, high := (before.Start+before.End)/2, (after.Start+after.End)/2
		changes = append(changes, change{
			segment: e.Speech[e.Segment[i]], low: low, high: high,
			from: labels[i-1], to: labels[i], at: (low + high) / 2,
		})
	}
	if e.scene == nil { // with a segmenter, all other changes are at its borders
		if err := refineChanges(ctx, e, centre, changes); err != nil {
			return nil, err
		}
	}

	var out []piece
	speaker := slices.Repeat([]int{-1}, len(e.Speech)) // per segment: the label of its first window
	for i := len(labels) - 1; i >= 0; i-- {
		speaker[e.Segment[i]] = labels[i]
	}
	next := 0 // change
	for s, span := range e.Speech {
		if speaker[s] < 0 || span.Len() == 0 {
			continue
		}
		from, who := span.Start, speaker[s]
		for ; next < len(changes) && changes[next].segment == span; next++ {
			c := changes[next]
			out = append(out, piece{audio.Span{Start: from, End: c.at}, who})
			from, who = c.at, c.to
		}
		out = append(out, piece{audio.Span{Start: from, End: span.End}, who})
	}
	return out, nil
}

// nearest assigns each segment without a known piece the speaker of the nearest
// piece, so that the pieces cover every segment.
func nearest(speech []audio.Span, out []piece) []piece {
	known := len(out)
	at := 0 // the first known piece that ends after the segment begins
	for _, span := range speech {
		for at < known && out[at].End <= span.Start {
			at++
		}
		if span.Len() == 0 || at < known && out[at].Start < span.End {
			continue
		}
		who := 0
		switch {
		case known == 0:
		case at == known, at > 0 && span.Start-out[at-1].End <= out[at].Start-span.End:
			who = out[at-1].speaker
		default:
			who = out[at].speaker
		}
		out = append(out, piece{span, who})
	}
	slices.SortFunc(out, func(a, b piece) int { return cmp.Compare(a.Start, b.Start) })
	return joinTouching(out)
}

// joinTouching joins adjacent pieces of the same speaker.
func joinTouching(in []piece) []piece {
	out := in[:0]
	for _, p := range in {
		if n := len(out); n > 0 && out[n-1].End == p.Start && out[n-1].speaker == p.speaker {
			out[n-1].End = p.End
			continue
		}
		out = append(out, p)
	}
	return out
}
