package whisper

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How hotwords are favored, in natural logarithms (logits). The first token of
// a hotword of at most hotParts tokens gets a small bonus; that of a longer one
// gets none, because it begins many other words (docs/performance.md#hotwords).
// Each further token gets a larger bonus, so that a hotword, once begun, is
// spelled to its end. Only tokens within reach of the best one get a bonus.
const (
	hotStart = 2.0
	hotNext  = 5.0
	hotReach = 7.0
	hotParts = 2
)

// hotwords is the tree of the hotwords' tokens; nodes[0] is the root.
type hotwords struct {
	nodes []node
	reach float32
	names []name
}

// node is a token in the tree of hotwords. Its children are consecutive nodes.
// Its layout is og_node's.
type node struct {
	token, first, count int32
	bonus               float32 // added to the token's logit
}

// favor raises the logits of the tokens that continue a hotword after a text. A
// token is raised only if it is within reach of the best one anyway, and never
// above it by more than half its bonus: nothing changes where the model is
// sure, or where the end or a time mark is best (silence).
func (h *hotwords) favor(logits []float32, text []int32, eot int32) {
	const depth = 32
	top := slices.Max(logits[:eot])
	if slices.Max(logits[eot:]) > top || math.IsInf(float64(top), -1) {
		return
	}
	// Every suffix of the text that begins a hotword, longest first, then the
	// root: a token keeps the bonus of the longest match.
	var lifted []int32
	for back := min(len(text), depth); back >= 0; back-- {
		for _, c := range h.children(h.find(text[len(text)-back:])) {
			if l := logits[c.token]; c.bonus != 0 && l >= top-h.reach && l <= top && !slices.Contains(lifted, c.token) {
				lifted = append(lifted, c.token)
				logits[c.token] = min(l+c.bonus, top+c.bonus/2)
			}
		}
	}
}

// find follows tokens from the root; it returns nil if no hotword begins with
// them.
func (h *hotwords) find(tokens []int32) *node {
	at := &h.nodes[0]
	for _, t := range tokens {
		children := h.children(at)
		i := slices.IndexFunc(children, func(n node) bool { return n.token == t })
		if i < 0 {
			return nil
		}
		at = &children[i]
	}
	return at
}

// children returns the tokens that follow a node; none follow nil.
func (h *hotwords) children(of *node) []node {
	if of == nil {
		return nil
	}
	return h.nodes[of.first : of.first+of.count]
}

// spellings returns a word as given, in lower case, capitalized and in
// capitals.
func spellings(word string) []string {
	list := []string{word, strings.ToLower(word), strings.ToUpper(word)}
	for _, w := range list[:2] {
		first, size := utf8.DecodeRuneInString(w)
		list = append(list, string(unicode.ToUpper(first))+w[size:])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// newHotwords builds the tree from each word's spellings, each with and without
// a space before it. spell returns nil for a text that the vocabulary cannot
// spell. weak lists the words without a bonus for the first token of any
// spelling, unspelled the words without any spelling.
func newHotwords(words []string, spell func(string) []int32) (h *hotwords, weak, unspelled []string) {
	type branch struct {
		token    int32
		bonus    float32
		children []*branch
	}
	root := &branch{}
	add := func(tokens []int32) (spelled, begins bool) {
		at := root
		for k, t := range tokens {
			i := slices.IndexFunc(at.children, func(b *branch) bool { return b.token == t })
			if i < 0 {
				at.children = append(at.children, &branch{token: t})
				i = len(at.children) - 1
			}
			at = at.children[i]
			switch {
			case k > 0:
				at.bonus = hotNext
			case len(tokens) <= hotParts:
				at.bonus, begins = hotStart, true
			}
		}
		return len(tokens) > 0, begins
	}
	for _, word := range words {
		w := strings.Join(strings.Fields(word), " ")
		if w == "" {
			continue
		}
		spelled, begins := false, false
		for _, s := range spellings(w) {
			for _, text := range []string{s, " " + s} {
				writes, lifts := add(spell(text))
				spelled, begins = spelled || writes, begins || lifts
			}
		}
		switch {
		case !spelled:
			unspelled = append(unspelled, word)
		case !begins:
			weak = append(weak, word)
		}
	}
	if len(root.children) == 0 {
		return nil, weak, unspelled
	}
	h = &hotwords{nodes: []node{{}}, reach: hotReach, names: namesOf(words)}
	level := []*branch{root}
	for at := 0; len(level) > 0; at++ { // breadth first: children are consecutive
		b := level[0]
		level = level[1:]
		h.nodes[at].first, h.nodes[at].count = int32(len(h.nodes)), int32(len(b.children))
		for _, c := range b.children {
			h.nodes = append(h.nodes, node{token: c.token, bonus: c.bonus})
		}
		level = append(level, b.children...)
	}
	return h, weak, unspelled
}
