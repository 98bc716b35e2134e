package ctc

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Vocabulary holds a CTC model's tokens' texts, for concurrent use.
type Vocabulary struct {
	// Blank is the number of the blank, Size the number of tokens.
	Blank, Size int
	// Marks are the tokens between words: punctuation and the bare space.
	Marks []int
	// Solid holds the letters and digits of each token, folded.
	Solid [][]rune

	// tree has the tokens' folded characters; ids lists the tokens that end at
	// each of its nodes.
	tree tree
	ids  map[int][]int
	// letters are the characters that at least one token writes.
	letters map[rune]bool
}

// tree is a tree of letters: the number of each node but the root, which is 0.
type tree map[edge]int

type edge struct {
	from   int // node
	letter rune
}

// child returns the node after a letter, and adds it if necessary.
func (t tree) child(from int, letter rune) int {
	e := edge{from, letter}
	if t[e] == 0 {
		t[e] = len(t) + 1
	}
	return t[e]
}

// LongestWord is the most letters that are aligned for one word. Sections are
// not cut inside of a word: a longer one would make the lattice large.
const LongestWord = 200

// NewVocabulary returns a Vocabulary for the text of each token: a space where
// a word begins, "" for the blank and other tokens without text. It ignores
// case and the difference between composed and decomposed characters.
func NewVocabulary(texts []string, blank int) *Vocabulary {
	v := &Vocabulary{Blank: blank, Size: len(texts), tree: tree{}, ids: map[int][]int{}, letters: map[rune]bool{}, Solid: make([][]rune, len(texts))}
	for id, text := range texts {
		if id == blank || text == "" || !utf8.ValidString(text) {
			continue
		}
		letters := []rune(Fold(strings.TrimSpace(text)))
		for _, r := range letters {
			if IsSolid(r) {
				v.Solid[id] = append(v.Solid[id], r)
			}
		}
		if v.Solid[id] == nil {
			v.Marks = append(v.Marks, id)
			if string(letters) != "'" { // an apostrophe also occurs inside words: o'clock
				continue
			}
		}
		at := 0
		for _, r := range letters {
			v.letters[r] = true
			at = v.tree.child(at, r)
		}
		v.ids[at] = append(v.ids[at], id)
	}
	return v
}

// Fold returns text in the form used for comparisons.
func Fold(s string) string {
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

// IsSolid reports whether r is a letter or a digit.
func IsSolid(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// Spell returns the characters of a folded word that tokens can write, some
// without accents. ok is false if a letter is left that none writes.
func (v *Vocabulary) Spell(word string) (letters []rune, ok bool) {
	for _, r := range strings.Trim(word, "'") { // there they are quotation marks
		switch {
		case v.letters[r]:
			letters = append(letters, r)
		case !IsSolid(r): // punctuation, marks
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
	letters = slices.DeleteFunc(letters, func(r rune) bool { return !IsSolid(r) }) // no token writes it there
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
		v.Each(letters[i:], func(n int, _ []int) { reached[i+n] = true })
	}
	return reached[len(letters)]
}

// Each calls f for every number of letters that tokens write, with the tokens.
func (v *Vocabulary) Each(letters []rune, f func(n int, ids []int)) {
	at := 0
	for n, r := range letters {
		if at = v.tree[edge{at, r}]; at == 0 {
			return
		}
		if ids := v.ids[at]; ids != nil {
			f(n+1, ids)
		}
	}
}
