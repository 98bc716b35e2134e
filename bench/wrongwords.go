package bench

import (
	"html/template"

	"github.com/otograph/otograph/bench/internal/scores"
)

// token is a word of an aligned text as displayed on the page.
type token struct {
	Text, Class, Title string
	// Sound is the recording's address around the word, "" without a file.
	Sound template.URL
	// reference and hypothesis are the word's indices in the two texts, or of
	// the word before it where a text lacks it; −1 before the first word.
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
