package bench

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/otograph/otograph/bench/internal/scores"
)

// token is a word of an aligned text as displayed on the page.
type token struct {
	Text, Class, Title string
	// Sound is the recording's address around the word, "" without a file.
	Sound template.URL
	// reference is the index of the reference word at its place, and
	// hypothesis the index of the word in its text; −1 before the first.
	reference, hypothesis int
}

// tokensOf aligns a text with its reference; nil if both are too long.
func tokensOf(reference, text []string) (tokens []token) {
	edits, _ := scores.Align(reference, text)
	ref, hyp := -1, -1
	for _, e := range edits {
		ref, hyp = max(ref, e.Reference), max(hyp, e.Hypothesis)
		t := token{reference: ref, hypothesis: hyp}
		switch {
		case e.Hypothesis < 0:
			t.Text, t.Class, t.Title = reference[e.Reference], "missing", "missing"
		case e.Reference < 0:
			t.Text, t.Class, t.Title = text[e.Hypothesis], "added", "added"
		case reference[e.Reference] == text[e.Hypothesis]:
			t.Text = text[e.Hypothesis]
		default:
			t.Text, t.Class, t.Title = text[e.Hypothesis], "replaced", reference[e.Reference]
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// wrongWords lists the differences between a text and its reference: "a → b"
// for a substitution, "−a" for a deletion, "+b" for an insertion.
func wrongWords(tokens []token) (list []string) {
	for _, t := range tokens {
		switch t.Class {
		case "missing":
			list = append(list, "−"+t.Text)
		case "added":
			list = append(list, "+"+t.Text)
		case "replaced":
			list = append(list, t.Title+" → "+t.Text)
		}
	}
	return list
}

// confusion is a difference with the number of its occurrences.
type confusion struct {
	What  string
	Count int
}

// confusions returns the most frequent differences of a system.
func (s systemReport) confusions(most int) []confusion {
	count := map[string]int{}
	for _, it := range s.Items {
		for _, w := range it.WrongWords {
			count[w]++
		}
	}
	var list []confusion
	for what, n := range count {
		list = append(list, confusion{what, n})
	}
	slices.SortFunc(list, func(a, b confusion) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What))
	})
	return list[:min(most, len(list))]
}

// mostFrequent limits the rows of the table of wrong words.
const mostFrequent = 12

// frequentTable returns each system's most frequent differences.
func (r *Report) frequentTable() [][]string {
	table := [][]string{append([]string{""}, systemNames(r)...)}
	for i, s := range r.Systems {
		for k, c := range s.confusions(mostFrequent) {
			if k+1 == len(table) {
				table = append(table, append([]string{fmt.Sprint(k + 1)}, make([]string, len(r.Systems))...))
			}
			table[k+1][i+1] = c.String()
		}
	}
	return table
}

// String shows a difference with its number if it occurs more than once.
func (c confusion) String() string {
	if c.Count > 1 {
		return fmt.Sprintf("%s (%d ×)", c.What, c.Count)
	}
	return c.What
}

// confusionLine lists the most frequent differences of a system.
func (s systemReport) confusionLine(most int) string {
	var list []string
	for _, c := range s.confusions(most) {
		list = append(list, c.String())
	}
	return strings.Join(list, ", ")
}

// bothUnits returns the units of a recording's reference and of a transcript.
func bothUnits(it Item, n scores.Normalizer, language, text string) (reference, transcript []string) {
	return normalizedUnits(n, language, referenceOf(it, n, language, text)), normalizedUnits(n, language, text)
}
