package subtitle

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// atom is a piece of text that is not broken over lines: a word, or one wide
// character with the punctuation that belongs to it.
type atom struct {
	text       string
	space      bool // a space stands before it
	start, end float64
}

// closing punctuation never begins a line, opening punctuation never ends one.
const (
	closing = "，。、；：？！）」』】》〉”’…—·,.;:?!)]}»"
	opening = "（「『【《〈“‘([{«"
)

// atoms cuts a cue into atoms no wider than most columns, each with its times:
// those of the words it lies in, or a share of the cue's time by its width.
func atoms(c Cue, most int) []atom {
	var out []atom
	var at []int // byte offset of each atom in the text
	add := func(text string, offset int, space bool) {
		for columns(text) > most {
			n, w := 0, 0
			for _, r := range text {
				if w += runeColumns(r); w > most && n > 0 {
					break
				}
				n += utf8.RuneLen(r)
			}
			if n >= len(text) {
				break
			}
			out, at = append(out, atom{text: text[:n], space: space}), append(at, offset)
			text, offset, space = text[n:], offset+n, false
		}
		out, at = append(out, atom{text: text, space: space}), append(at, offset)
	}
	offset := 0
	for i, word := range strings.Split(c.Text, " ") {
		space := i > 0
		for _, piece := range pieces(word) {
			add(piece, offset, space)
			offset += len(piece)
			space = false
		}
		offset++
	}
	setTimes(out, at, c)
	return out
}

// pieces cuts a word without spaces where a line may break: around wide
// characters, keeping punctuation on its side.
func pieces(word string) []string {
	var out []string
	begin := 0
	var before rune
	for i, r := range word {
		if i > begin && mayBreak(before, r) {
			out = append(out, word[begin:i])
			begin = i
		}
		before = r
	}
	return append(out, word[begin:])
}

func mayBreak(a, b rune) bool {
	if !wide(a) && !wide(b) {
		return false
	}
	return !strings.ContainsRune(opening, a) && !strings.ContainsRune(closing, b) && !unicode.In(b, unicode.Mn, unicode.Me, unicode.Cf)
}

// setTimes sets the times of each atom. A word that is not found in the text at
// its turn is skipped, so text and words may differ slightly.
func setTimes(atoms []atom, at []int, c Cue) {
	total := float64(max(columns(c.Text), 1))
	passed := 0.0
	for i := range atoms {
		if atoms[i].space {
			passed++
		}
		atoms[i].start = c.Start + (c.End-c.Start)*min(passed/total, 1)
		passed += float64(columns(atoms[i].text))
		atoms[i].end = c.Start + (c.End-c.Start)*min(passed/total, 1)
	}
	cursor, i := 0, 0
	for _, w := range c.Words {
		text := cleanText(w.Word)
		if text == "" {
			continue
		}
		found := strings.Index(c.Text[cursor:], text)
		if found < 0 {
			continue
		}
		from := cursor + found
		to := from + len(text)
		cursor = to
		for i < len(atoms) && at[i]+len(atoms[i].text) <= from {
			i++
		}
		for k := i; k < len(atoms) && at[k] < to; k++ {
			if at[k] >= from {
				atoms[k].start = within(w.Start, c)
			}
			atoms[k].end = within(w.End, c)
		}
	}
	// Times never run backwards, whatever the words said.
	now := c.Start
	for i := range atoms {
		atoms[i].start = max(atoms[i].start, now)
		atoms[i].end = max(atoms[i].end, atoms[i].start)
		now = atoms[i].start
	}
}

func within(t float64, c Cue) float64 { return min(max(cleanTime(t), c.Start), c.End) }

// join writes atoms as one line.
func join(atoms []atom) string {
	var b strings.Builder
	for i, a := range atoms {
		if a.space && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.text)
	}
	return b.String()
}
