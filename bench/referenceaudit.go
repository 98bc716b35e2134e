package bench

import (
	"strings"

	"github.com/otograph/otograph/bench/internal/scores"
)

// referenceErrors counts how often a system follows wrong references, at places
// where its text equals either the reference or its correction. A rate far
// above other systems' suggests training on the test set.
type referenceErrors struct {
	System   string    `json:"system"`
	Followed int       `json:"followed"` // agrees with the wrong reference
	Counted  int       `json:"counted"`  // agrees with either side
	Rate     *estimate `json:"rate"`
}

const (
	// leastMatch is the share of the reference that a text must repeat to be
	// counted.
	leastMatch = 0.5
	// longestText limits a text's length, as a multiple of the reference's.
	longestText = 3
	// leastDifference is the minimum letter edit rate between an error and its
	// correction: smaller differences are matters of spelling.
	leastDifference = 0.3
)

func (c Config) referenceErrors(r *Report) (list []referenceErrors) {
	for _, s := range r.Systems {
		var errors []ratio
		e := referenceErrors{System: s.Name}
		for i, it := range c.Items {
			if it.Corrected == nil || it.Text == nil || s.Items[i].Error != "" {
				continue
			}
			f, n := followedErrors(
				normalizedUnits(c.rules, it.Language, *it.Text), normalizedUnits(c.rules, it.Language, *it.Corrected),
				normalizedUnits(c.rules, it.Language, s.Items[i].Text))
			if n > 0 {
				errors = append(errors, ratio{float64(f), float64(n)})
				e.Followed, e.Counted = e.Followed+f, e.Counted+n
			}
		}
		if e.Rate = estimateSum(errors, c.Seed, ratio.add, ratio.rate); e.Rate == nil {
			continue
		}
		list = append(list, e)
	}
	return list
}

// followedErrors compares a text with a reference's errors. all is the number
// of errors at which the text equals the reference or the correction; followed
// is how many of those equal the reference.
func followedErrors(reference, corrected, text []string) (followed, all int) {
	right, ok1 := alignedTo(reference, corrected)
	hypothesis, ok2 := alignedTo(reference, text)
	if !ok1 || !ok2 || len(text) > longestText*len(reference) || same(reference, right) < leastMatch || same(reference, hypothesis) < leastMatch {
		return 0, 0
	}
	for i := 0; i < len(reference); {
		if right[i] == reference[i] {
			i++
			continue
		}
		j := i
		for j < len(reference) && right[j] != reference[j] {
			j++
		}
		wrong, correction := strings.Join(reference[i:j], " "), joined(right[i:j])
		if difference(wrong, correction) >= leastDifference {
			switch joined(hypothesis[i:j]) {
			case wrong:
				followed++
				all++
			case correction:
				all++
			}
		}
		i = j
	}
	return followed, all
}

// alignedTo returns, for each word of a reference, the aligned words of a
// text; inserted words belong to the preceding word.
func alignedTo(reference, text []string) (out []string, ok bool) {
	edits, ok := scores.Align(reference, text)
	out = make([]string, len(reference))
	last := 0
	for _, e := range edits {
		if e.Reference >= 0 {
			last = e.Reference
		}
		if e.Hypothesis >= 0 && len(out) > 0 {
			out[last] = strings.TrimSpace(out[last] + " " + text[e.Hypothesis])
		}
	}
	return out, ok
}

func joined(words []string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// same returns the share of a reference's words that the aligned text repeats.
func same(reference, standing []string) float64 {
	n := 0
	for i, w := range reference {
		if standing[i] == w {
			n++
		}
	}
	return scores.Share(n, len(reference))
}

// difference returns two texts' letter edits over the first one's letters.
func difference(a, b string) float64 {
	letters := func(s string) []string { return strings.Split(strings.ReplaceAll(s, " ", ""), "") }
	e := scores.CompareWords(letters(a), letters(b))
	return scores.Share(e.Errors(), max(e.Reference, 1))
}
