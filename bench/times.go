package bench

import (
	"math"
	"strings"
)

// TimeErrors are absolute differences, in seconds, between the times of a
// reference and of a hypothesis.
type TimeErrors struct {
	Starts  []float64 `json:"starts"`  // of the matched
	Ends    []float64 `json:"ends"`    // of the matched
	Missing int       `json:"missing"` // unmatched words or sentences of the reference
}

// Add adds the errors of another recording.
func (e *TimeErrors) Add(o TimeErrors) {
	e.Starts, e.Ends, e.Missing = append(e.Starts, o.Starts...), append(e.Ends, o.Ends...), e.Missing+o.Missing
}

// Matched returns the matched share of the reference.
func (e TimeErrors) Matched() float64 { return share(len(e.Starts), len(e.Starts)+e.Missing) }

// MeanStart returns the mean difference of the matched starts, or 0 if there
// are none.
func (e TimeErrors) MeanStart() float64 {
	var sum float64
	for _, off := range e.Starts {
		sum += off
	}
	return sum / float64(max(len(e.Starts), 1))
}

// Within returns the share of the matched starts that differ by at most the
// given number of seconds.
func (e TimeErrors) Within(seconds float64) float64 {
	n := 0
	for _, off := range e.Starts {
		if off <= seconds+1e-9 {
			n++
		}
	}
	return share(n, len(e.Starts))
}

func (e *TimeErrors) put(ref, hyp TimedText) {
	e.Starts = append(e.Starts, round(math.Abs(ref.Start-hyp.Start), 1e3))
	e.Ends = append(e.Ends, round(math.Abs(ref.End-hyp.End), 1e3))
}

func round(v, digits float64) float64 { return math.Round(v*digits) / digits }

// scoreSentenceTimes matches each sentence of the reference with the segments
// of the hypothesis of which more than half is within it, and compares the
// first one's start and the last one's end. A segment that spans several
// sentences only matches the one that contains most of it.
func scoreSentenceTimes(reference, hypothesis []TimedText) TimeErrors {
	var out TimeErrors
	h := 0
	for _, ref := range reference {
		for h < len(hypothesis) && hypothesis[h].End <= ref.Start {
			h++
		}
		found, joined := false, TimedText{}
		for i := h; i < len(hypothesis) && hypothesis[i].Start < ref.End; i++ {
			hyp := hypothesis[i]
			if common := min(ref.End, hyp.End) - max(ref.Start, hyp.Start); common*2 <= hyp.End-hyp.Start {
				continue
			}
			if !found {
				joined = hyp
			}
			joined.End = max(joined.End, hyp.End)
			found = true
		}
		if found {
			out.put(ref, joined)
		} else {
			out.Missing++
		}
	}
	return out
}

// maxAlignment limits the cells of an alignment that is traced back: two texts
// of 16,000 words temporarily take 256 MB.
const maxAlignment = 256 << 20

// ScoreWordTimes aligns the words and compares the times of the correct ones.
// ok is false if the recording has too many words to trace the alignment (more
// than 16,000 in both).
func ScoreWordTimes(language string, reference, hypothesis []TimedText) (out TimeErrors, ok bool) {
	ref, hyp := unitsOf(language, reference), unitsOf(language, hypothesis)
	if len(ref)*len(hyp) > maxAlignment {
		return out, false
	}
	pairs := equalPairs(ref, hyp)
	for _, p := range pairs {
		out.put(ref[p[0]], hyp[p[1]])
	}
	out.Missing = len(ref) - len(pairs)
	return out, true
}

// unitsOf converts words to the form in which they are compared. A word of
// several units (a hyphen) becomes one, because its parts have no separate
// times.
func unitsOf(language string, words []TimedText) []TimedText {
	var out []TimedText
	for _, w := range words {
		if u := strings.Join(Units(language, w.Text), ""); u != "" {
			out = append(out, TimedText{w.Start, w.End, u})
		}
	}
	return out
}

// equalPairs returns the indices of the words that an alignment of least cost
// leaves unchanged.
func equalPairs(ref, hyp []TimedText) [][2]int {
	const (
		diagonal = iota
		del
		ins
	)
	width := len(hyp) + 1
	from := make([]byte, (len(ref)+1)*width)
	row := make([]int, width)
	for j := range row {
		row[j] = j
		from[j] = ins
	}
	for i := 1; i <= len(ref); i++ {
		corner := row[0]
		row[0] = i
		from[i*width] = del
		for j := 1; j < width; j++ {
			best, way := corner, byte(diagonal)
			if ref[i-1].Text != hyp[j-1].Text {
				best++
			}
			if row[j]+1 < best {
				best, way = row[j]+1, del
			}
			if row[j-1]+1 < best {
				best, way = row[j-1]+1, ins
			}
			corner = row[j]
			row[j], from[i*width+j] = best, way
		}
	}
	var pairs [][2]int
	for i, j := len(ref), len(hyp); i > 0 || j > 0; {
		switch from[i*width+j] {
		case diagonal:
			i, j = i-1, j-1
			if ref[i].Text == hyp[j].Text {
				pairs = append(pairs, [2]int{i, j})
			}
		case del:
			i--
		default:
			j--
		}
	}
	for a, b := 0, len(pairs)-1; a < b; a, b = a+1, b-1 {
		pairs[a], pairs[b] = pairs[b], pairs[a]
	}
	return pairs
}
