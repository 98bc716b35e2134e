package bench

import (
	"math"
	"strings"

	"github.com/otograph/otograph/internal/scores"
)

// TimeErrors holds absolute differences, in seconds, between the times of a
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
func (e TimeErrors) Matched() float64 { return scores.Share(len(e.Starts), len(e.Starts)+e.Missing) }

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
	return scores.Share(n, len(e.Starts))
}

func (e *TimeErrors) put(ref, hyp TimedText) {
	e.Starts = append(e.Starts, round(math.Abs(ref.Start-hyp.Start), 1e3))
	e.Ends = append(e.Ends, round(math.Abs(ref.End-hyp.End), 1e3))
}

func round(v, digits float64) float64 { return math.Round(v*digits) / digits }

// scoreSentenceTimes matches each sentence of the reference with the segments
// of the hypothesis that overlap it by more than half of their length, and
// compares the first one's start and the last one's end. A segment over several
// sentences only matches a sentence with more than half of it.
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

// ScoreWordTimes aligns the words and compares the times of the correct ones.
// ok is false if the recording has too many words to trace the alignment (more
// than 16,000 in both).
func ScoreWordTimes(language string, reference, hypothesis []TimedText) (out TimeErrors, ok bool) {
	ref, hyp := unitsOf(language, reference), unitsOf(language, hypothesis)
	pairs, ok := equalPairs(ref, hyp)
	if !ok {
		return out, false
	}
	for _, p := range pairs {
		out.put(ref[p[0]], hyp[p[1]])
	}
	out.Missing = len(ref) - len(pairs)
	return out, true
}

// unitsOf converts words to the form for comparison. A word of several units (a
// hyphen) becomes one, because its parts have no separate times.
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
// leaves unchanged; ok is false if there are too many to trace it.
func equalPairs(ref, hyp []TimedText) (pairs [][2]int, ok bool) {
	texts := func(list []TimedText) []string {
		out := make([]string, len(list))
		for i, w := range list {
			out[i] = w.Text
		}
		return out
	}
	edits, ok := scores.Align(texts(ref), texts(hyp))
	for _, e := range edits {
		if e.Reference >= 0 && e.Hypothesis >= 0 && ref[e.Reference].Text == hyp[e.Hypothesis].Text {
			pairs = append(pairs, [2]int{e.Reference, e.Hypothesis})
		}
	}
	return pairs, ok
}
