package bench

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
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

// MeanStart returns the mean difference of the matched starts, or 0.
func (e TimeErrors) MeanStart() float64 {
	var sum float64
	for _, off := range e.Starts {
		sum += off
	}
	return sum / float64(max(len(e.Starts), 1))
}

// Within returns the share of matched starts that differ by up to some seconds.
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
	byStart := func(a, b TimedText) int { return cmp.Compare(a.Start, b.Start) }
	hypothesis = slices.SortedStableFunc(slices.Values(hypothesis), byStart)
	for _, ref := range slices.SortedStableFunc(slices.Values(reference), byStart) { // a manifest may list them by speakers
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

// ScoreWordTimes aligns the words and compares the correct ones' times. ok is
// false if there are too many to trace (more than 16,000 in both).
func ScoreWordTimes(language string, reference, hypothesis []TimedText) (out TimeErrors, ok bool) {
	ref, refTexts := unitsOf(language, reference)
	hyp, hypTexts := unitsOf(language, hypothesis)
	edits, ok := scores.Align(refTexts, hypTexts)
	if !ok {
		return out, false
	}
	for _, e := range edits {
		if e.Reference >= 0 && e.Hypothesis >= 0 && refTexts[e.Reference] == hypTexts[e.Hypothesis] {
			out.put(ref[e.Reference], hyp[e.Hypothesis])
		}
	}
	out.Missing = len(ref) - len(out.Starts)
	return out, true
}

func timedTexts(res *otograph.Result) (sentences, words []TimedText) {
	for _, g := range res.Segments {
		sentences = append(sentences, TimedText{Start: g.Start, End: g.End, Text: g.Text})
		for _, w := range g.Words {
			words = append(words, TimedText{Start: w.Start, End: w.End, Text: w.Word})
		}
	}
	return sentences, words
}

// unitsOf returns the compared words and their texts for comparison. A word of
// several units (a hyphen) becomes one: its parts have no times.
func unitsOf(language string, words []TimedText) (units []TimedText, texts []string) {
	for _, w := range words {
		if u := strings.Join(Units(language, w.Text), ""); u != "" {
			units, texts = append(units, w), append(texts, u)
		}
	}
	return units, texts
}
