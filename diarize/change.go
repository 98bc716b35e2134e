package diarize

import (
	"context"
	"slices"

	"github.com/otograph/otograph/audio"
)

// A change of speaker inside a segment is located between the centers of the
// windows around it, every 0.1 s, by the sound just before and after.
const (
	changeStep = audio.SampleRate / 10
	changeSide = 7 * changeStep // samples before and after a candidate
)

// change is a point inside a segment where the speaker changes.
type change struct {
	segment  audio.Span
	low      int // candidates lie in [low, high), so that two changes never meet
	high     int
	from, to int // speakers before and after
	at       int // the change point: the middle until it is refined
}

// refineChanges moves every change to the candidate where the stretches on its
// two sides differ most, measured along the two known voices: the similarity of
// the left side with the first voice and of the right side with the second,
// minus the opposite similarities. The stretches of up to embedAtOnce changes are
// embedded together.
func refineChanges(ctx context.Context, e *Embeddings, centre matrix, changes []change) error {
	type candidate struct{ at, left, right int } // left, right: index into spans
	for batch := range slices.Chunk(changes, embedAtOnce) {
		var spans []audio.Span
		candidates := make([][]candidate, len(batch))
		for i, c := range batch {
			// The stretch that ends at one candidate begins at an earlier one.
			index := make(map[int]int)
			stretch := func(start int) int {
				k, ok := index[start]
				if !ok {
					k = len(spans)
					index[start] = k
					spans = append(spans, audio.Span{Start: start, End: start + changeSide})
				}
				return k
			}
			for at := c.low; at < c.high; at += changeStep {
				if at-changeSide >= c.segment.Start && at+changeSide <= c.segment.End {
					candidates[i] = append(candidates[i], candidate{at, stretch(at - changeSide), stretch(at)})
				}
			}
		}
		vectors, err := e.embed(ctx, spans)
		if err != nil {
			return err
		}
		for i := range batch {
			c := &batch[i]
			first, second := centre.row(c.from), centre.row(c.to)
			var best float32
			found := false
			for _, k := range candidates[i] {
				left, right := vectors[k.left], vectors[k.right]
				contrast := dot1(left, first) - dot1(left, second) + dot1(right, second) - dot1(right, first)
				if contrast == contrast && (!found || contrast > best) {
					best, found, c.at = contrast, true, k.at
				}
			}
		}
	}
	return nil
}
