package onnx

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/spec"
)

// newSpotter returns a spotter of hotwords in a CTC output. It returns nil
// without hotwords and for other networks.
func (e *Engine) newSpotter(hotwords []string) *ctc.Spotter {
	if len(hotwords) == 0 || e.net.ctc() == nil {
		return nil
	}
	return ctc.NewSpotter(hotwords[:min(len(hotwords), maxHotwords)], e.writing())
}

// unspelled returns the hotwords that neither a search nor a Spotter can find: the
// tokens do not spell them, or they are not among the first maxHotwords.
func (e *Engine) unspelled(hotwords []string) (list []string) {
	if len(hotwords) == 0 {
		return nil
	}
	tokens := e.spell()
	v := e.writing() // nil if there is no spotter
	for i, word := range hotwords {
		if strings.TrimSpace(word) != "" && !(i < maxHotwords && (tokens.spells(word) || v != nil && ctc.Spottable(word, v))) {
			list = append(list, word)
		}
	}
	return list
}

// decodedWord is a word among the emissions, from first to end, with the times
// of its first and last letters.
type decodedWord struct {
	first, end int
	from, to   float64
}

// decodedWords groups emissions to words that have letters or digits.
func (v *vocabulary) decodedWords(emissions []emission) (words []decodedWord) {
	open, before := decodedWord{first: -1}, rune(0)
	flush := func() {
		if open.first >= 0 && open.to > open.from {
			words = append(words, open)
		}
	}
	for i, e := range emissions {
		text := v.writtenBy(e)
		if text == "" {
			continue
		}
		first, _ := utf8.DecodeRuneInString(text)
		if open.first < 0 || first == ' ' || spec.Unspaced(first) || spec.Unspaced(before) && solid(first) {
			flush()
			open = decodedWord{first: i}
		}
		open.end = i + 1
		if strings.IndexFunc(text, solid) >= 0 {
			if open.to == 0 {
				open.from = e.start
			}
			open.to = e.end
		}
		before, _ = utf8.DecodeLastRuneInString(text)
	}
	flush()
	return words
}

func solid(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// writtenBy returns an emission's text.
func (v *vocabulary) writtenBy(e emission) string {
	if e.text != "" || !v.writes(e.id) {
		return e.text
	}
	return string(v.text[e.id])
}

// put replaces decoded words by the hotwords that a Spotter found there. A
// hotword that was decoded already stays as it is.
func (h *head) put(emissions []emission, spotted []ctc.Spotted) []emission {
	var out []emission
	at := 0
	words := h.vocab.decodedWords(emissions)
	for _, s := range spotted {
		e := emission{text: s.Text, start: float64(s.First) * h.shift, end: float64(s.Last+1) * h.shift, logProb: s.LogProb, id: h.blank}
		if first, _ := utf8.DecodeRuneInString(s.Text); h.vocab.spaced && !spec.Unspaced(first) {
			e.text = " " + e.text
		}
		first, end, ok := covered(words, e.start, e.end)
		if !ok || first < at || end > first && h.vocab.same(emissions[first:end], s.Text) {
			continue
		}
		out = append(append(out, emissions[at:first]...), e)
		at = end
		for i := end - 1; i >= first; i-- { // punctuation stays
			if text := h.vocab.writtenBy(emissions[i]); strings.TrimSpace(text) == "" || strings.IndexFunc(text, solid) >= 0 {
				break
			}
			at = i
		}
	}
	return append(out, emissions[at:]...)
}

// covered returns the emissions of the words that lie mostly between two times,
// or of the word that mostly contains the times; between words, an empty range.
// ok is false if words only partly lie between the times.
func covered(words []decodedWord, from, to float64) (first, end int, ok bool) {
	touched := false
	for _, w := range words {
		if w.to <= from {
			first, end = w.end, w.end
			continue
		}
		if w.from >= to {
			break
		}
		over := min(w.to, to) - max(w.from, from)
		if 2*over < w.to-w.from && 2*over < to-from {
			if touched = true; !ok && (w.from+w.to)/2 < (from+to)/2 {
				first, end = w.end, w.end
			}
			continue
		}
		if !ok {
			first, ok = w.first, true
		}
		end = w.end
	}
	return first, end, ok || !touched
}

// same reports whether emissions write the letters of a text.
func (v *vocabulary) same(emissions []emission, text string) bool {
	var b strings.Builder
	for _, e := range emissions {
		b.WriteString(v.writtenBy(e))
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if !solid(r) {
				return -1
			}
			return unicode.ToLower(r)
		}, s)
	}
	return letters(b.String()) == letters(text)
}
