package bench

import (
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/scores"
)

// referenceErrors tells how often a system follows references where they are wrong.
// Only places count at which it says either what the reference says or what its
// correction says. A rate far above that of other systems is a sign of training on the
// test set.
type referenceErrors struct {
	System   string    `json:"system"`
	Followed int       `json:"followed"` // as the wrong reference
	Counted  int       `json:"counted"`  // places that support either side
	Rate     *Estimate `json:"rate"`
}

const (
	// leastMatch is the share of the reference that a text must repeat to count at all.
	leastMatch = 0.5
	// longestText is how many times longer than the reference a text may be.
	longestText = 3
	// leastDifference is how far, by letters, a correction must be from what it corrects:
	// smaller differences are matters of spelling.
	leastDifference = 0.3
)

// referenceErrors examines the recordings with a correction.
func (c Config) referenceErrors(r *Report) (list []referenceErrors) {
	for _, s := range r.Systems {
		var followed, all []int
		for i, it := range c.Items {
			if it.Corrected == nil || it.Text == nil || s.Items[i].Error != "" {
				continue
			}
			f, n := followedErrors(
				normalizedUnits(c.Normalizer, it.Language, *it.Text), normalizedUnits(c.Normalizer, it.Language, *it.Corrected),
				normalizedUnits(c.Normalizer, it.Language, s.Items[i].Text))
			if n > 0 {
				followed, all = append(followed, f), append(all, n)
			}
		}
		if len(all) == 0 {
			continue
		}
		e := referenceErrors{System: s.Name}
		for i := range all {
			e.Followed, e.Counted = e.Followed+followed[i], e.Counted+all[i]
		}
		e.Rate = Bootstrap(len(all), c.Seed, func(sample []int) float64 {
			f, n := 0, 0
			for _, i := range sample {
				f, n = f+followed[i], n+all[i]
			}
			return float64(f) / float64(n)
		})
		list = append(list, e)
	}
	return list
}

// followedErrors returns at how many of the places where a reference is wrong a text
// says the same, of those at which it says the same or the correction.
func followedErrors(reference, corrected, text []string) (followed, all int) {
	right, ok1 := standingFor(reference, corrected)
	said, ok2 := standingFor(reference, text)
	if !ok1 || !ok2 || len(text) > longestText*len(reference) || same(reference, right) < leastMatch || same(reference, said) < leastMatch {
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
			switch joined(said[i:j]) {
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

// standingFor returns, for each word of a reference, the words of a text that stand in
// its place; words that are added stand with the one before.
func standingFor(reference, text []string) (out []string, ok bool) {
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
	return strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), " ")
}

// same returns the share of a reference's words that stand in their place.
func same(reference, standing []string) float64 {
	n := 0
	for i, w := range reference {
		if standing[i] == w {
			n++
		}
	}
	return share(n, len(reference))
}

// difference returns the edits between two texts over the letters of the first.
func difference(a, b string) float64 {
	letters := func(s string) []string { return strings.Split(strings.ReplaceAll(s, " ", ""), "") }
	e := scores.CompareWords(letters(a), letters(b))
	return share(e.Errors(), max(e.Reference, 1))
}
