package align

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Vocabulary is what the tokens of a CTC model write. It is safe for concurrent
// use.
type Vocabulary struct {
	blank  int
	tokens int
	nodes  []trieNode
	// marks are the tokens between words: punctuation and the bare space.
	marks []int
	// letters are the characters that some token writes.
	letters map[rune]bool
	// solid are the letters and digits that each token writes, folded.
	solid [][]rune
}

// trieNode is a node of the tree of all tokens, by folded characters.
type trieNode struct {
	next map[rune]int
	ids  []int // of tokens that end here
}

// NewVocabulary returns a Vocabulary for the text of each token: a space where
// a word begins, nothing for the blank and other tokens without text. It
// ignores case and the difference between composed and decomposed characters.
func NewVocabulary(texts []string, blank int) *Vocabulary {
	v := &Vocabulary{blank: blank, tokens: len(texts), nodes: make([]trieNode, 1), letters: map[rune]bool{}, solid: make([][]rune, len(texts))}
	for id, text := range texts {
		if id == blank || text == "" || !utf8.ValidString(text) {
			continue
		}
		letters := []rune(fold(strings.TrimSpace(text)))
		for _, r := range letters {
			if isSolid(r) {
				v.solid[id] = append(v.solid[id], r)
			}
		}
		if v.solid[id] == nil {
			v.marks = append(v.marks, id)
			if string(letters) != "'" { // it also occurs inside words: o'clock
				continue
			}
		}
		at := 0
		for _, r := range letters {
			v.letters[r] = true
			next, ok := v.nodes[at].next[r]
			if !ok {
				next = len(v.nodes)
				v.nodes = append(v.nodes, trieNode{})
				if v.nodes[at].next == nil {
					v.nodes[at].next = map[rune]int{}
				}
				v.nodes[at].next[r] = next
			}
			at = next
		}
		v.nodes[at].ids = append(v.nodes[at].ids, id)
	}
	return v
}

// fold brings text to the form in which it is compared.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '’', 'ʼ', '`':
			return '\''
		case '‐', '‑':
			return '-'
		}
		return r
	}, strings.ToLower(norm.NFKC.String(s)))
}

func isSolid(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// spell returns the characters of a folded word that tokens can write; a letter
// without a token loses its accents. ok is false where a letter is left that
// none writes.
func (v *Vocabulary) spell(word string) (letters []rune, ok bool) {
	for _, r := range strings.Trim(word, "'") { // there they are quotation marks
		switch {
		case v.letters[r]:
			letters = append(letters, r)
		case !isSolid(r): // punctuation, marks
		default:
			found := false
			for _, base := range norm.NFD.String(string(r)) {
				if v.letters[base] {
					letters, found = append(letters, base), true
				}
			}
			if !found {
				return nil, false
			}
		}
	}
	if v.reaches(letters) {
		return letters, true
	}
	letters = slices.DeleteFunc(letters, func(r rune) bool { return !isSolid(r) }) // no token writes it there
	return letters, v.reaches(letters)
}

// reaches reports whether tokens can write the letters one after the other.
func (v *Vocabulary) reaches(letters []rune) bool {
	if len(letters) == 0 {
		return false
	}
	reached := make([]bool, len(letters)+1)
	reached[0] = true
	for i := range letters {
		if !reached[i] {
			continue
		}
		v.each(letters[i:], func(n int, _ []int) { reached[i+n] = true })
	}
	return reached[len(letters)]
}

// each calls f for every number of letters that tokens write, with the tokens.
func (v *Vocabulary) each(letters []rune, f func(n int, ids []int)) {
	at := 0
	for n, r := range letters {
		next, ok := v.nodes[at].next[r]
		if !ok {
			return
		}
		if at = next; len(v.nodes[at].ids) > 0 {
			f(n+1, v.nodes[at].ids)
		}
	}
}
