package ctc

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// letterBonus and signBonus are what each matched letter of a hotword, or each
	// character of a script without spaces, adds to the logarithm of a prefix's
	// probability.
	letterBonus = 0.45
	signBonus   = 1.8
	// maxHotwords and maxHotwordBytes bound the tree.
	maxHotwords     = 1000
	maxHotwordBytes = 200
)

// booster is a tree over the bytes of all hotwords, lower-cased. It works on what
// tokens write, not on tokens, so that any division of a word into pieces
// matches. A word must begin where a word of the text begins and end where one
// ends; a match that breaks off gives its bonus back.
type booster struct {
	nodes []trieNode
	text  [][]byte // what each token writes, lower-cased
	start int      // state at the beginning of a window
}

type trieNode struct {
	next map[byte]int
	// weight is the bonus of the path from the root to here.
	weight float64
	// end marks the last byte of a hotword; sign that its last character needs no
	// space behind it.
	end, sign bool
	// kept is the bonus of the longest hotword that ends on the path to here at a
	// word border.
	kept float64
}

// newBooster builds the tree; nil when there is nothing to boost.
func newBooster(hotwords []string, v *vocabulary) *booster {
	b := &booster{nodes: []trieNode{{}}}
	for i, w := range hotwords {
		w = strings.Join(strings.Fields(strings.ToLower(w)), " ")
		if w == "" || len(w) > maxHotwordBytes || i >= maxHotwords {
			continue
		}
		b.add(w, v.spaced)
	}
	if len(b.nodes) == 1 {
		return nil
	}
	b.text = make([][]byte, len(v.text))
	for id, t := range v.text {
		if b.text[id] = t; utf8.Valid(t) {
			b.text[id] = bytes.ToLower(t)
		}
	}
	if n, ok := b.nodes[0].next[' ']; ok {
		b.start = n // a window begins where a word may begin
	}
	return b
}

func (b *booster) add(word string, spaced bool) {
	first, _ := utf8.DecodeRuneInString(word)
	if spaced && !unspacedRune(first) {
		word = " " + word
	}
	at := 0
	for i, r := range word {
		bonus := 0.0
		switch {
		case unspacedRune(r):
			bonus = signBonus
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			bonus = letterBonus
		}
		n := utf8.RuneLen(r)
		for k, c := range []byte(word[i : i+n]) {
			child, ok := b.nodes[at].next[c]
			if !ok {
				child = len(b.nodes)
				kept := b.nodes[at].kept
				if b.nodes[at].end && (b.nodes[at].sign || border(c)) {
					kept = b.nodes[at].weight
				}
				b.nodes = append(b.nodes, trieNode{weight: b.nodes[at].weight, kept: kept})
				if b.nodes[at].next == nil {
					b.nodes[at].next = map[byte]int{}
				}
				b.nodes[at].next[c] = child
			}
			at = child
			if k == n-1 && !ok {
				b.nodes[at].weight = b.nodes[at].weight + bonus
			}
		}
	}
	last, _ := utf8.DecodeLastRuneInString(word)
	b.nodes[at].end, b.nodes[at].sign = true, unspacedRune(last)
	// Words added before may run on from here.
	b.mark(at)
}

// mark hands the bonus of an end to the nodes behind it.
func (b *booster) mark(at int) {
	w := b.nodes[at].weight
	var walk func(n int)
	walk = func(n int) {
		b.nodes[n].kept = max(b.nodes[n].kept, w)
		for _, c := range b.nodes[n].next {
			walk(c)
		}
	}
	for c, n := range b.nodes[at].next {
		if b.nodes[at].sign || border(c) {
			walk(n)
		}
	}
}

// border tells that a byte cannot continue a word written with spaces: anything
// in ASCII but letters and digits, or the lead byte of an Asian script.
func border(c byte) bool {
	if c >= 0xe3 {
		return true
	}
	return c < 0x80 && (c < '0' || c > '9') && (c < 'a' || c > 'z')
}

// place is where in the tree a prefix of text stands.
type place struct {
	node   int
	earned float64 // bonus of words that are complete
}

// score is the bonus that the prefix has now, unfinished words included.
func (b *booster) score(c place) float64 { return c.earned + b.nodes[c.node].weight }

// step moves the place over what a token writes.
func (b *booster) step(c place, id int) place {
	if id >= len(b.text) {
		return c
	}
	for _, ch := range b.text[id] {
		n := &b.nodes[c.node]
		if next, ok := n.next[ch]; ok {
			c.node = next
			continue
		}
		// The match ends here: keep what is complete, give back the rest, and see
		// whether another word begins.
		if n.end && (n.sign || border(ch)) {
			c.earned += n.weight
		} else {
			c.earned += n.kept
		}
		c.node = b.nodes[0].next[ch] // 0, the root, where none begins
	}
	return c
}

// finish gives the bonus of a whole text: an unfinished word has none.
func (b *booster) finish(c place) float64 {
	if n := b.nodes[c.node]; n.end {
		return c.earned + n.weight
	}
	return c.earned + b.nodes[c.node].kept
}
