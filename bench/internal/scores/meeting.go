package scores

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/engine/texts"
)

// Segment is a stretch of one speaker's speech. Times are in seconds.
type Segment struct {
	Speaker    string
	Start, End float64
	Words      []string
}

// sorted returns segments in the order of their starts.
func sorted(segments []Segment) []Segment {
	segments = slices.Clone(segments)
	slices.SortStableFunc(segments, func(a, b Segment) int { return cmp.Compare(a.Start, b.Start) })
	return segments
}

type word struct {
	id         int
	start, end float64
}

// stream holds the words of one speaker.
type stream struct {
	ids   []int
	words []word // with their times, if these count
}

// streams collects the words of each speaker, ordered by the speakers' first
// words. times, if not nil, returns the times of a segment's words.
func streams(segments []Segment, names interned, times func(Segment) []word) []stream {
	var out []stream
	at := map[string]int{}
	for _, s := range sorted(segments) {
		i, ok := at[s.Speaker]
		if !ok {
			i = len(out)
			at[s.Speaker] = i
			out = append(out, stream{})
		}
		ids := names.of(s.Words)
		out[i].ids = append(out[i].ids, ids...)
		if times == nil {
			continue
		}
		words := times(s)
		for k, id := range ids {
			words[k].id = id
		}
		out[i].words = append(out[i].words, words...)
	}
	return out
}

// intervals divides a segment's time among its words by their letters.
func intervals(s Segment) []word {
	out := make([]word, len(s.Words))
	if len(out) == 1 {
		out[0] = word{start: s.Start, end: s.End}
		return out
	}
	letter := (s.End - s.Start) / float64(utf8.RuneCountInString(strings.Join(s.Words, "")))
	before := 0
	for i, w := range s.Words {
		after := before + utf8.RuneCountInString(w)
		out[i] = word{start: s.Start + float64(letter*float64(before)), end: s.Start + float64(letter*float64(after))}
		before = after
	}
	return out
}

// points returns the centers of the words' intervals, widened by a collar.
func points(collar float64) func(Segment) []word {
	return func(s Segment) []word {
		out := intervals(s)
		for i, w := range out {
			center := (w.end + w.start) / 2
			out[i] = word{start: center - collar, end: center + collar}
		}
		return out
	}
}

// CP computes the concatenated minimum-permutation word error rate: each
// speaker's words in order, with speakers matched for the fewest errors.
func CP(reference, hypothesis []Segment) Errors {
	names := interned{}
	ref, hyp := streams(reference, names, nil), streams(hypothesis, names, nil)
	return matchSpeakers(ref, hyp,
		func(r, h stream) int { return texts.EditDistance(r.ids, h.ids) },
		func(r, h stream) Errors { return count(r.ids, h.ids, kaldiRule, nil) })
}

// TCP computes the time-constrained cpWER: a word only counts within collar
// seconds of its time, which is estimated from its segment by letters.
func TCP(reference, hypothesis []Segment, collar float64) Errors {
	names := interned{}
	ref, hyp := streams(reference, names, intervals), streams(hypothesis, names, points(collar))
	return matchSpeakers(ref, hyp,
		func(r, h stream) int { return timedCount(r.words, h.words).Errors() },
		func(r, h stream) Errors { return timedCount(r.words, h.words) })
}

// matchSpeakers assigns the speakers of both sides and adds up the errors of
// the pairs. Missing speakers have no words.
func matchSpeakers(ref, hyp []stream, cost func(r, h stream) int, errors func(r, h stream) Errors) (sum Errors) {
	n := max(len(ref), len(hyp))
	at := func(list []stream, i int) stream {
		if i < len(list) {
			return list[i]
		}
		return stream{}
	}
	costs := make([][]float64, n)
	for r := range costs {
		for h := range n {
			costs[r] = append(costs[r], float64(cost(at(ref, r), at(hyp, h))))
		}
	}
	for r, h := range Assign(costs, n) {
		sum = sum.Add(errors(at(ref, r), at(hyp, h)))
	}
	return sum
}

// unreached is the cost of a cell that an alignment skips.
const unreached = math.MaxInt32

// timedCount aligns words; only those that overlap in time replace each other.
func timedCount(ref, hyp []word) Errors {
	if len(ref) == 0 || len(hyp) == 0 {
		return Errors{Deletions: len(ref), Insertions: len(hyp), Reference: len(ref)}
	}
	t := timedAlignment{ref: ref, hyp: hyp, first: 1, latest: ref[0].end, prune: inOrder(ref) && inOrder(hyp)}
	above, row := make([]cell, len(hyp)+1), make([]cell, len(hyp)+1)
	for j := range above {
		above[j] = cell{cost: j, ins: j}
	}
	for i := range ref {
		for j := range row {
			row[j].cost = unreached
		}
		t.row(i, above, row)
		above, row = row, above
	}
	last := above[len(hyp)]
	return Errors{last.sub, last.del, last.ins, len(ref)}
}

// inOrder reports whether words begin one after the other and not before 0.
// Only then does MeetEval skip distant cells.
func inOrder(words []word) bool {
	last := 0.0
	for _, w := range words {
		if w.start < last {
			return false
		}
		last = w.start
	}
	return true
}

// timedAlignment is shared by the rows of a time-constrained alignment.
type timedAlignment struct {
	ref, hyp []word
	first    int     // the first column whose word has not ended
	latest   float64 // the latest end of the reference so far
	prune    bool
}

// row computes the cells of a word of the reference.
func (t *timedAlignment) row(i int, above, row []cell) {
	ref := t.ref[i]
	t.latest = max(t.latest, ref.end)
	for t.prune && t.first <= len(t.hyp) && t.hyp[t.first-1].end <= ref.start {
		t.first++
	}
	border := above[t.first-1]
	border.cost++
	border.del++
	row[t.first-1] = border
	j := t.first
	for ; j <= len(t.hyp); j++ {
		hyp := t.hyp[j-1]
		if t.prune && hyp.start > t.latest {
			break
		}
		row[j] = timedCell(ref, hyp, above[j-1], above[j], row[j-1])
	}
	for ; j <= len(t.hyp); j++ {
		row[j] = timedCell(ref, t.hyp[j-1], above[j-1], above[j], row[j-1])
		row[j].cost = row[j-1].cost + 1
		if i+1 < len(t.ref) && t.hyp[j-1].start > t.ref[i+1].end {
			break
		}
	}
}

// timedCell returns the cell of two words from its neighbors.
func timedCell(ref, hyp word, diag, above, left cell) cell {
	cost, how := min(above.cost, left.cost)+1, insertion
	if above.cost < left.cost {
		how = deletion
	}
	change := 0
	if ref.id != hyp.id {
		change = 1
	}
	if hyp.start < ref.end && hyp.end > ref.start && diag.cost+change < cost {
		cost, how = diag.cost+change, diagonal
	}
	return extend(how, cost, change, diag, above, left)
}
