package subtitle

import (
	"strings"
	"unicode"
)

// atom is a piece of text that is never broken across lines: a word, or one
// wide character with its adjacent punctuation.
type atom struct {
	text       string
	width      int  // columns
	space      bool // preceded by a space
	first      bool // first of its cue
	start, end float64
}

// Characters that forbid a line break on one side, by their classes in
// Unicode's line breaking algorithm (UAX #14).
const (
	// closing characters never begin a line: CL, CP, EX, IS, IN, PO, NS and CJ.
	closing = "，。、；：？！）」』】》〉”’…—·,.;:?!)]}»%" +
		"．］｝〕〗〙〛｠｣､｡･・‥〜‼⁇⁈⁉％‰℃℉°′″¢￠゛゜ゝゞヽヾ々〻ーｰ" +
		"ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿｧｨｩｪｫｬｭｮｯ"
	// opening characters never end a line: OP and PR.
	opening = "（「『【《〈“‘([{«［｛〔〖〘〚｟｢$£¥€＄￡￥№"
)

// atoms cuts a cue into atoms no wider than most columns. Each gets the times
// of its words, or a share of the cue's time by its width. Punctuation between
// spaces, as in French, stays with its word.
func atoms(c Cue, most int) []atom {
	var out []atom
	var at []int // byte offset of each atom in the text
	offset := 0
	words := strings.Split(c.Text, " ")
	for i, word := range words {
		space := i > 0
		for _, piece := range split(word, mayBreak) {
			for _, part := range parts(piece, most) {
				w := columns(part)
				if n := len(out) - 1; space && (only(word, closing) || only(words[i-1], opening)) && out[n].width+1+w <= most {
					out[n].text, out[n].width = out[n].text+" "+part, out[n].width+1+w
				} else {
					out, at = append(out, atom{text: part, width: w, space: space}), append(at, offset)
				}
				offset += len(part)
				space = false
			}
		}
		offset++
	}
	out[0].first = true
	setTimes(out, at, c)
	return out
}

// only reports whether a word consists of the given characters.
func only(word, characters string) bool { return strings.Trim(word, characters) == "" }

// parts cuts a piece that is wider than a line at the least harmful places.
// Scripts of Southeast Asia have no spaces between words, so there every part
// is short and the layout chooses among them.
func parts(piece string, most int) []string {
	if columns(piece) <= most {
		return []string{piece}
	}
	clusters := split(piece, func(a, b rune) bool { return !joined(a, b) })
	if strings.IndexFunc(piece, func(r rune) bool { return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) }) >= 0 {
		return clusters
	}
	var out []string
	used := 0
	for _, c := range clusters {
		w := columns(c)
		if len(out) == 0 || used+w > most {
			out, used = append(out, ""), 0
		}
		out[len(out)-1] += c
		used += w
	}
	return out
}

// split cuts a text between each two characters for which between is true.
func split(text string, between func(a, b rune) bool) []string {
	var out []string
	begin := 0
	var before rune
	for i, r := range text {
		if i > begin && between(before, r) {
			out = append(out, text[begin:i])
			begin = i
		}
		before = r
	}
	return append(out, text[begin:])
}

// zeroWidthSpace marks the end of a word where a script has no spaces.
const zeroWidthSpace = '\u200b'

// mayBreak reports whether a line may end between two characters of a word:
// beside wide ones except Korean, which has spaces between words, unless one is
// punctuation that belongs to the other.
func mayBreak(a, b rune) bool {
	switch {
	case joined(a, b):
		return false
	case a == zeroWidthSpace:
		return true
	}
	open := func(r rune) bool { return wide(r) && !unicode.Is(unicode.Hangul, r) }
	return (open(a) || open(b)) && !strings.ContainsRune(opening, a) && !strings.ContainsRune(closing, b)
}

// joined reports whether two characters form one sign that must not be split: a
// letter and its combining marks and dependent vowels, a leading vowel of Thai
// or Lao and its consonant, stacked consonants, a sequence of emoji.
func joined(a, b rune) bool {
	const (
		zeroWidthJoiner = '\u200d'
		coeng           = '\u17d2' // stacks Khmer consonants
		virama          = '\u1039' // stacks Burmese consonants
	)
	switch {
	case unicode.In(b, unicode.M, unicode.Cf), a == zeroWidthJoiner, a == wordJoiner, a == coeng, a == virama:
		return true
	case b >= 0x0e30 && b <= 0x0e3a, b >= 0x0e45 && b <= 0x0e4e, // Thai
		b >= 0x0eb0 && b <= 0x0ebd, b >= 0x0ec6 && b <= 0x0ece, // Lao
		b == 0x17d7: // the Khmer sign of repetition
		return true
	case a >= 0x0e40 && a <= 0x0e44, a >= 0x0ec0 && a <= 0x0ec4: // leading vowels
		return true
	}
	return b >= 0x1f3fb && b <= 0x1f3ff // colors of skin
}

// setTimes sets the times of each atom. It skips a word that is not the next
// one in the text, so text and words may differ slightly.
func setTimes(atoms []atom, at []int, c Cue) {
	total := float64(max(columns(c.Text), 1))
	passed := 0.0
	for i := range atoms {
		if atoms[i].space {
			passed++
		}
		atoms[i].start = c.Start + (c.End-c.Start)*min(passed/total, 1)
		passed += float64(atoms[i].width)
		atoms[i].end = c.Start + (c.End-c.Start)*min(passed/total, 1)
	}
	cursor, i := 0, 0
	for _, w := range c.Words {
		text := cleanText(w.Word)
		found := strings.Index(c.Text[cursor:], text)
		if text == "" || found < 0 {
			continue
		}
		from := cursor + found
		to := from + len(text)
		cursor = to
		for i < len(atoms) && at[i]+len(atoms[i].text) <= from {
			i++
		}
		share := func(at int) float64 { // the parts of a word follow one another
			return within(w.Start+(w.End-w.Start)*min(float64(at-from)/float64(len(text)), 1), c)
		}
		for k := i; k < len(atoms) && at[k] < to; k++ {
			if at[k] >= from {
				atoms[k].start = share(at[k])
			}
			atoms[k].end = share(at[k] + len(atoms[k].text))
		}
	}
	// Times never run backwards, even if the words' times do.
	now := c.Start
	for i := range atoms {
		atoms[i].start = max(atoms[i].start, now)
		atoms[i].end = max(atoms[i].end, atoms[i].start)
		now = atoms[i].start
	}
}

func within(t float64, c Cue) float64 { return min(max(cleanTime(t), c.Start), c.End) }

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
