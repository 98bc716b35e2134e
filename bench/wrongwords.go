package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/scores"
)

// token is a word of an aligned text as displayed on the page.
type token struct {
	Text, Class, Title string
}

// tokensOf aligns a text with its reference; nil if both are too long.
func tokensOf(reference, text []string) (tokens []token) {
	edits, _ := scores.Align(reference, text)
	for _, e := range edits {
		t := token{}
		switch {
		case e.Hypothesis < 0:
			t = token{reference[e.Reference], "missing", "missing"}
		case e.Reference < 0:
			t = token{text[e.Hypothesis], "added", "added"}
		case reference[e.Reference] == text[e.Hypothesis]:
			t.Text = text[e.Hypothesis]
		default:
			t = token{text[e.Hypothesis], "replaced", reference[e.Reference]}
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
func (s SystemReport) confusions(most int) []confusion {
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

// confusionLine lists the most frequent differences of a system.
func (s SystemReport) confusionLine(most int) string {
	var list []string
	for _, c := range s.confusions(most) {
		if c.Count > 1 {
			list = append(list, fmt.Sprintf("%s (%d ×)", c.What, c.Count))
		} else {
			list = append(list, c.What)
		}
	}
	return strings.Join(list, ", ")
}

// bothUnits returns the units of a recording's reference and of its transcript.
func (c Config) bothUnits(it Item, f *found) (reference, text []string) {
	language := cmp.Or(it.Language, f.Language)
	return normalizedUnits(c.Normalizer, language, *it.Text), normalizedUnits(c.Normalizer, language, f.Text)
}

// tokens aligns the text of the index-th recording with its reference.
func (c Config) tokens(it *ItemReport, index int) []token {
	if c.Items[index].Text == nil {
		return nil
	}
	return tokensOf(c.bothUnits(c.Items[index], &found{Language: it.Language, Text: it.Text}))
}
