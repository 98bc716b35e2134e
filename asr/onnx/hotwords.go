package onnx

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

const (
	// letterBonus and signBonus are added to a prefix's log probability for
	// each matched letter of a hotword, or unspaced character.
	letterBonus = 0.45
	signBonus   = 1.5
	// tokenBonus is the maximum bonus of one token.
	tokenBonus = 1.5
	// maxHotwords and maxHotwordBytes bound the tree.
	maxHotwords     = 1000
	maxHotwordBytes = 200
)

// booster is a tree over the lower-cased bytes of all hotwords, with failure
// links (A. Aho and M. Corasick 1975, Efficient string matching). It matches
// the text of tokens rather than tokens, so that any division of a word into
// pieces matches. A word must begin at the beginning of a word in the text and
// end at the end of one. A match that breaks off loses its bonus.
type booster struct {
	nodes []trieNode
	text  [][]byte // the lower-cased text of each token
	start int      // state at the beginning of a window
}

type trieNode struct {
	next map[byte]int
	// bonus is the bonus of the byte that leads to this node if the byte ends a
	// character. sum is the bonus of all bytes from the root to this node.
	bonus, sum float64
	// end marks a hotword's last byte; sign, that no space need follow.
	end, sign bool
	// fail is the node of the longest proper suffix of this node's bytes that
	// is in the tree; 0, the root, is the empty one. word is the longest suffix
	// that is a hotword, or 0.
	fail, word int
}

// boosted returns a hotword's form in the tree.
func boosted(hotword string) string {
	return strings.Join(strings.Fields(strings.ToLower(hotword)), " ")
}

// newBooster builds the tree for tokens with the given texts. It returns nil if
// there is nothing to boost. spaced reports whether spaces separate words.
func newBooster(hotwords []string, texts [][]byte, spaced bool) *booster {
	b := &booster{nodes: []trieNode{{}}}
	for i, w := range hotwords {
		if w = boosted(w); w != "" && len(w) <= maxHotwordBytes && i < maxHotwords {
			b.add(w, spaced)
		}
	}
	if len(b.nodes) == 1 {
		return nil
	}
	b.link()
	b.text = make([][]byte, len(texts))
	for id, t := range texts {
		b.text[id] = lowered(t)
	}
	b.start = b.nodes[0].next[' '] // a word may begin at the beginning of a window
	return b
}

// lowered lower-cases the text of a token, which need not be whole characters.
func lowered(text []byte) []byte {
	if utf8.Valid(text) {
		return bytes.ToLower(text)
	}
	return text
}

// speller indexes the lower-cased texts of tokens by their first byte.
type speller struct {
	texts  [256][][]byte
	spaced bool
}

func newSpeller(texts [][]byte, spaced bool) *speller {
	s := &speller{spaced: spaced}
	for _, t := range texts {
		if t = lowered(t); len(t) > 0 {
			s.texts[t[0]] = append(s.texts[t[0]], t)
		}
	}
	return s
}

// spells reports whether tokens can write the hotword as a booster matches it.
// The first token may begin with a space, and the last may continue with
// characters that are not part of a word.
func (s *speller) spells(hotword string) bool {
	word := []byte(boosted(hotword))
	if len(word) == 0 || len(word) > maxHotwordBytes {
		return false
	}
	reached := make([]bool, len(word)+2)
	if first, _ := utf8.DecodeRune(word); s.spaced && !spec.Unspaced(first) {
		word = append([]byte{' '}, word...)
		reached[1] = true // a word may begin at the beginning of a window
	}
	reached[0] = true
	for at, first := range word {
		if !reached[at] {
			continue
		}
		for _, t := range s.texts[first] {
			rest := word[at:]
			switch {
			case bytes.HasPrefix(rest, t):
				reached[at+len(t)] = true
			case bytes.HasPrefix(t, rest) && border(t[len(rest)]):
				return true
			}
		}
	}
	return reached[len(word)]
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
		case solid(r):
			bonus = letterBonus
		}
		n := utf8.RuneLen(r)
		for k, c := range []byte(word[i : i+n]) {
			child, ok := b.nodes[at].next[c]
			if !ok {
				child = len(b.nodes)
				b.nodes = append(b.nodes, trieNode{})
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

// link finds the failure links, from the root outward.
func (b *booster) link() {
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		parent := queue[0]
		for c, child := range b.nodes[parent].next {
			queue = append(queue, child)
			n := &b.nodes[child]
			n.sum = b.nodes[parent].sum + n.bonus
			if parent != 0 {
				n.fail = b.follow(b.nodes[parent].fail, c)
			}
			if n.word = n.fail; !b.nodes[n.fail].end {
				n.word = b.nodes[n.fail].word
			}
		}
	}
}

// follow returns the node that a byte leads to from a node or from the longest
// suffix that the byte continues, 0 if there is none.
func (b *booster) follow(node int, c byte) int {
	for {
		if next, ok := b.nodes[node].next[c]; ok || node == 0 {
			return next
		}
		node = b.nodes[node].fail
	}
}

// border reports whether a byte cannot continue a spaced word: ASCII other than
// letters and digits, or the lead byte of an Asian script.
func border(c byte) bool {
	return c >= 0xe3 || c < 0x80 && (c < '0' || c > '9') && (c < 'a' || c > 'z')
}

// place is a text's position in the tree.
type place struct {
	node int
	// earned is the bonus of complete words and pending the bonus of the
	// running match. kept is the part of pending that remains if the match
	// breaks off (a shorter hotword).
	earned, pending, kept float64
}

// begin returns the place before a text.
func (b *booster) begin() place {
	if b == nil {
		return place{}
	}
	return place{node: b.start}
}

// score returns the present bonus, unfinished words included.
func (b *booster) score(p place) float64 { return p.earned + p.pending }

// step returns the place after a token's text. A token adds at most tokenBonus,
// and nothing if it only repeats the token before, so that a network that
// hesitates within a word does not get the bonus twice.
func (b *booster) step(p place, id int, repeats bool) place {
	if b == nil || id >= len(b.text) {
		return p
	}
	gain := 0.0
	for _, ch := range b.text[id] {
		p = b.settle(p, func(n *trieNode) bool { return n.sign || border(ch) })
		next, ok := b.nodes[p.node].next[ch]
		for !ok && p.node != 0 {
			// The match ends here: keep the completed part, take back the rest,
			// and continue with the longest suffix that may become another
			// word. The completed part's bonus is not added again.
			fail := &b.nodes[b.nodes[p.node].fail]
			p.earned, p.pending, p.kept, p.node = p.earned+p.kept, min(p.pending-p.kept, fail.sum), 0, b.nodes[p.node].fail
			gain = min(gain, p.pending)
			next, ok = fail.next[ch]
		}
		p.node = next // 0, the root, if no hotword continues
		if next != 0 && !repeats {
			g := min(b.nodes[next].bonus, max(tokenBonus-gain, 0))
			gain += g
			p.pending += g
		}
	}
	return p
}

// settle keeps the bonus of the longest hotword that ends here and may accepts.
func (b *booster) settle(p place, may func(n *trieNode) bool) place {
	for at := p.node; at != 0; at = b.nodes[at].word {
		if n := &b.nodes[at]; n.end && may(n) {
			p.kept = max(p.kept, min(p.pending, n.sum))
			break
		}
	}
	return p
}

// finish returns the bonus of a complete text. An unfinished hotword has none.
func (b *booster) finish(p place) float64 {
	if b == nil {
		return 0
	}
	p = b.settle(p, func(*trieNode) bool { return true })
	return p.earned + p.kept
}

// fusion adds hotwords and a language model to a search over tokens (shallow
// fusion). All families' searches share it. The zero value adds nothing.
type fusion struct {
	vocab *vocabulary
	boost *booster    // nil: no hotwords
	lm    *wordScorer // nil without a language model
	space int         // the id after the vocabulary's last, which writes a space
}

// newFusion prepares a recognizer's search for hotwords; lm may be nil.
func newFusion(hotwords []string, v *vocabulary, lm *wordScorer) fusion {
	texts := v.texts()
	return fusion{vocab: v, boost: newBooster(hotwords, texts, v.spaced), lm: lm.sparing(hotwords), space: len(texts) - 1}
}

// none reports whether there is nothing to add.
func (f *fusion) none() bool { return f.boost == nil && f.lm == nil }

// standing is a partial text's state in hotwords and language model.
type standing struct {
	at    place
	words wordPlace
	last  int // the last token with text, -1 without one
	// bonus is the text's part of the logarithm of its probability.
	bonus float64
}

func (f *fusion) begin() standing {
	return f.scored(standing{at: f.boost.begin(), words: f.lm.begin(), last: -1})
}

func (f *fusion) scored(s standing) standing {
	s.bonus = f.boost.score(s.at) + f.lm.score(s.words)
	return s
}

// step returns the match state after another token. A token that only repeats
// the token before, as in a CTC output, adds no bonus.
func (f *fusion) step(s standing, id int, repeats bool) standing {
	if f.none() {
		return s
	}
	if f.vocab.spaceBetween(s.last, id) {
		s.at, s.words = f.boost.step(s.at, f.space, false), f.lm.step(s.words, f.space)
	}
	s.at, s.words = f.boost.step(s.at, id, repeats), f.lm.step(s.words, id)
	if f.vocab.writes(id) {
		s.last = id
	}
	return f.scored(s)
}

// finish returns the bonus of a text that ends here.
func (f *fusion) finish(s standing) float64 { return f.boost.finish(s.at) + f.lm.finish(s.words) }
