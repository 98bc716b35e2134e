package onnx

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

const (
	// letterBonus and signBonus are what each matched letter of a hotword, or each
	// character of a script without spaces, adds to the logarithm of a prefix's
	// probability.
	letterBonus = 0.45
	signBonus   = 1.5
	// tokenBonus is the most that one token earns.
	tokenBonus = 1.5
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
	// bonus is what the byte leading here adds (the last byte of a character).
	bonus float64
	// space tells that this byte is a space.
	space bool
	// end marks the last byte of a hotword; sign that its last character needs no
	// space behind it.
	end, sign bool
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
	if spaced && !spec.Unspaced(first) {
		word = " " + word
	}
	at := 0
	for i, r := range word {
		bonus := 0.0
		switch {
		case spec.Unspaced(r):
			bonus = signBonus
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			bonus = letterBonus
		}
		n := utf8.RuneLen(r)
		for k, c := range []byte(word[i : i+n]) {
			child, ok := b.nodes[at].next[c]
			if !ok {
				child = len(b.nodes)
				b.nodes = append(b.nodes, trieNode{space: c == ' '})
				if b.nodes[at].next == nil {
					b.nodes[at].next = map[byte]int{}
				}
				b.nodes[at].next[c] = child
			}
			at = child
			if k == n-1 {
				b.nodes[at].bonus = bonus
			}
		}
	}
	last, _ := utf8.DecodeLastRuneInString(word)
	b.nodes[at].end, b.nodes[at].sign = true, spec.Unspaced(last)
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
	node int
	// earned is the bonus of words that are complete, pending that of the match
	// under way, and kept what of it stays if it breaks off (a shorter hotword).
	earned, pending, kept float64
}

// score is the bonus that the prefix has now, unfinished words included.
func (b *booster) score(p place) float64 { return p.earned + p.pending }

// step moves the place over what a token writes. One token earns at most
// tokenBonus, and nothing when it only repeats the one before it: a network that
// hesitates within a word must not be paid twice for it.
func (b *booster) step(p place, id int, repeats bool) place {
	if id >= len(b.text) {
		return p
	}
	gain := 0.0
	for _, ch := range b.text[id] {
		n := &b.nodes[p.node]
		if n.end && (n.sign || border(ch)) {
			p.kept = p.pending
		}
		next, ok := n.next[ch]
		if !ok {
			// The match ends here: keep what is complete, give back the rest, and see
			// whether another word begins.
			p.earned, p.pending, p.kept, gain = p.earned+p.kept, 0, 0, 0
			if next = b.nodes[0].next[ch]; next == 0 && n.space {
				next = b.nodes[b.nodes[0].next[' ']].next[ch]
			}
		}
		p.node = next // 0, the root, where none begins
		if next != 0 && !repeats {
			g := min(b.nodes[next].bonus, max(tokenBonus-gain, 0))
			gain += g
			p.pending += g
		}
	}
	return p
}

// finish gives the bonus of a whole text: an unfinished word has none.
func (b *booster) finish(p place) float64 {
	if b.nodes[p.node].end {
		return p.earned + p.pending
	}
	return p.earned + p.kept
}
