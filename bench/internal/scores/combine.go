package scores

import (
	"slices"

	"github.com/otograph/otograph/internal/engine/texts"
)

// maxCombination limits the cells of an exact ORC-WER, whose number is the
// product of the lengths of all streams and of the segments.
const maxCombination = 8 << 20

// ORC computes the optimal reference combination word error rate: each segment
// of the reference is assigned to the stream of the hypothesis with the fewest
// errors. ok is false if an exact answer is too expensive.
func ORC(reference, hypothesis []Segment) (e Errors, ok bool) {
	names := interned{}
	segments, hyp := segmentIDs(reference, names), streams(hypothesis, names, nil)
	if len(segments) == 0 || len(hyp) == 0 {
		return combined(segments, hyp, make([]int, len(segments))), true
	}
	g := grid{}
	size := 1
	for _, s := range hyp {
		g.strides = append(g.strides, size)
		g.hyp = append(g.hyp, s.ids)
		size *= len(s.ids) + 1
		if size*(len(segments)+1) > maxCombination {
			return Errors{}, false
		}
	}
	return combined(segments, hyp, g.match(segments, size)), true
}

// GreedyORC computes the ORC-WER by MeetEval's greedy search, which starts at
// the assignment of cpWER and moves segments while that reduces the errors: an
// upper bound, in a time that grows with the product of both lengths.
func GreedyORC(reference, hypothesis []Segment) Errors {
	names := interned{}
	segments, hyp := segmentIDs(reference, names), streams(hypothesis, names, nil)
	assignment := make([]int, len(segments))
	if len(segments) > 0 && len(hyp) > 0 {
		ids := make([][]int, len(hyp))
		for i, s := range hyp {
			ids[i] = s.ids
		}
		assignment = speakerAssignment(streams(reference, names, nil), hyp, sorted(reference))
		for _, substitution := range []int{2, 1} {
			assignment = improve(segments, ids, assignment, substitution)
		}
	}
	return combined(segments, hyp, assignment)
}

// GreedyDICP computes the diarization-invariant cpWER by MeetEval's greedy
// search: each segment of the hypothesis is assigned to a speaker of the
// reference so that the errors are fewest.
func GreedyDICP(reference, hypothesis []Segment) Errors {
	e := GreedyORC(hypothesis, reference)
	e.Insertions, e.Deletions = e.Deletions, e.Insertions
	e.Reference = 0
	for _, s := range reference {
		e.Reference += len(s.Words)
	}
	return e
}

// segmentIDs returns the words of segments in the order of their starts.
func segmentIDs(segments []Segment, names interned) [][]int {
	var out [][]int
	for _, s := range sorted(segments) {
		out = append(out, names.of(s.Words))
	}
	return out
}

// combined counts the errors of segments assigned to streams.
func combined(segments [][]int, hyp []stream, assignment []int) (e Errors) {
	for i, words := range assigned(segments, assignment, max(1, len(hyp))) {
		var ids []int
		if i < len(hyp) {
			ids = hyp[i].ids
		}
		e.Add(count(slices.Concat(words...), ids, kaldiRule, nil))
	}
	return e
}

// assigned returns the segments of each of n streams.
func assigned(segments [][]int, assignment []int, n int) [][][]int {
	out := make([][][]int, n)
	for i, a := range assignment {
		out[a] = append(out[a], segments[i])
	}
	return out
}

// speakerAssignment assigns each segment to the stream of its speaker by cpWER;
// a speaker without a partner is assigned where it makes the fewest errors.
func speakerAssignment(ref, hyp []stream, segments []Segment) []int {
	_, partners, costs := matchSpeakers(ref, hyp,
		func(r, h stream) int { return texts.EditDistance(r.ids, h.ids) },
		func(stream, stream) Errors { return Errors{} })
	at := map[string]int{}
	for r, s := range ref {
		at[s.speaker] = partners[r]
		if partners[r] >= len(hyp) {
			at[s.speaker] = slices.Index(costs[r], slices.Min(costs[r][:len(hyp)]))
		}
	}
	out := make([]int, len(segments))
	for i, s := range segments {
		out[i] = at[s.Speaker]
	}
	return out
}

// grid is the state of an exact combination: a cell for each position in all
// streams of the hypothesis.
type grid struct {
	hyp     [][]int
	strides []int
}

// link records how a cell was reached.
type link struct {
	stream int32
	from   int32 // the cell before the segment
}

// reach is the cost of a cell and the cell before the segment.
type reach struct{ cost, from int32 }

// match returns the stream of each segment.
func (g grid) match(segments [][]int, size int) []int {
	cost, next := make([]int32, size), make([]int32, size)
	for i := range cost {
		for s, stride := range g.strides {
			cost[i] += int32(i / stride % (len(g.hyp[s]) + 1))
		}
	}
	links := make([][]link, len(segments))
	for k, words := range segments {
		links[k] = make([]link, size)
		for s := range g.hyp {
			g.advance(s, words, cost, next, links[k])
		}
		cost, next = next, cost
	}
	out := make([]int, len(segments))
	at := int32(size - 1)
	for k := len(segments) - 1; k >= 0; k-- {
		l := links[k][at]
		out[k], at = int(l.stream), l.from
	}
	return out
}

// advance assigns a segment's words to a stream, and updates the cells that
// this makes cheaper.
func (g grid) advance(s int, words []int, cost, next []int32, links []link) {
	stride, n := g.strides[s], len(g.hyp[s])+1
	row := make([]reach, n)
	for block := 0; block < len(cost); block += stride * n {
		for i := block; i < block+stride; i++ {
			for j := range row {
				row[j] = reach{cost[i+j*stride], int32(i + j*stride)}
			}
			addWords(row, words, g.hyp[s])
			for j, r := range row {
				if k := i + j*stride; s == 0 || next[k] > r.cost {
					next[k], links[k] = r.cost, link{int32(s), r.from}
				}
			}
		}
	}
}

// addWords extends a row of an alignment by words of the reference.
func addWords(row []reach, words, hyp []int) {
	for _, w := range words {
		diag := row[0]
		row[0].cost++
		left := row[0]
		for j, h := range hyp {
			above := row[j+1]
			if w == h {
				left = diag
			} else {
				if above.cost < left.cost {
					left = above
				}
				if diag.cost < left.cost {
					left = diag
				}
				left.cost++
			}
			row[j+1], diag = left, above
		}
	}
}
