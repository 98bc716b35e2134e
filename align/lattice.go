package align

import (
	"math"
	"slices"
)

// What the lattice charges for, as logarithms of probabilities.
const (
	// skipCost is the price of a word that is not in the sound, strayCost that of
	// each row that speaks but belongs to no word: rather than by tokens that the
	// model holds for impossible a word is left out when that is cheaper.
	skipCost  = 7.0
	strayCost = 3.0
	// outsideCost takes its place before the first and behind the last word, so that
	// the words of a text that ends early stay together.
	outsideCost = 2.7
	// wildCost is the price of each row that speaks in a word that the tokens
	// cannot spell: dearer than speech outside of the text, or such a word would
	// take all of it, and cheaper than speech between words.
	wildCost = 2.8
)

// state is one state of the lattice: a token on the way from one node to
// another, or one of the loops at a node.
type state struct {
	kind     stateKind
	id       int // of the token
	from, to int // nodes
}

type stateKind uint8

const (
	stateToken stateKind = iota
	stateBlank           // at a node
	stateStray           // at a node between words: sound that is in no word
	stateMark            // at a node between words: punctuation
	stateWild            // any token, over a whole word
	stateRest            // blanks inside of a wild word; from is the index of its stateWild
)

// lattice is what a stretch of text may look like as tokens. Nodes stand before
// each letter and at the end; tokens lead from node to node in every way in
// which the vocabulary can write the letters. A number has a way for each of its
// readings: their inner nodes stand between its own and the next word's.
type lattice struct {
	vocab  *Vocabulary
	states []state
	nodes  int
	begins []int // node before each word, and the last node
	// into and out list the states that end at a node and begin at it, loops in
	// both.
	into, out [][]int32
}

func newLattice(words []word, v *Vocabulary) *lattice {
	l := &lattice{vocab: v}
	for _, w := range words {
		l.begins = append(l.begins, l.nodes)
		l.nodes += w.nodes()
	}
	l.begins = append(l.begins, l.nodes)
	l.nodes++
	l.into, l.out = make([][]int32, l.nodes), make([][]int32, l.nodes)
	next := 0
	for n := range l.nodes {
		l.add(state{stateBlank, v.blank, n, n})
		if next < len(l.begins) && l.begins[next] == n {
			l.add(state{stateStray, -1, n, n})
			if len(v.marks) > 0 {
				l.add(state{stateMark, -1, n, n})
			}
			next++
		}
	}
	for i, w := range words {
		from := l.begins[i]
		l.spell(w.letters, from, from+1, l.begins[i+1])
		inner := from + max(len(w.letters), 1)
		for _, r := range w.readings {
			l.spell(r, from, inner, l.begins[i+1])
			inner += len(r) - 1
		}
		if w.wild {
			wild := len(l.states)
			l.add(state{stateWild, -1, from, l.begins[i+1]})
			l.states = append(l.states, state{stateRest, v.blank, wild, wild})
		}
	}
	return l
}

// spell adds every way in which tokens write the letters, from a node over those
// that begin with inner to another one.
func (l *lattice) spell(letters []rune, from, inner, to int) {
	at := func(k int) int {
		switch k {
		case 0:
			return from
		case len(letters):
			return to
		}
		return inner + k - 1
	}
	for k := range letters {
		l.vocab.each(letters[k:], func(n int, ids []int) {
			for _, id := range ids {
				l.add(state{stateToken, id, at(k), at(k + n)})
			}
		})
	}
}

func (l *lattice) add(s state) {
	n := int32(len(l.states))
	l.states = append(l.states, s)
	l.into[s.to] = append(l.into[s.to], n)
	l.out[s.from] = append(l.out[s.from], n)
}

// entry is the best way to reach a node, and the best one by another token: a
// token that is written twice needs a blank between.
type entry struct {
	score, other float64
	state, alt   int32
}

func (e *entry) offer(score float64, s int32, id int, states []state) {
	same := func(k int32) bool { return k >= 0 && id >= 0 && states[k].id == id && states[k].kind == stateToken }
	switch {
	case score > e.score:
		if e.state >= 0 && !same(e.state) {
			e.other, e.alt = e.score, e.state
		}
		e.score, e.state = score, s
	case score > e.other && !same(e.state):
		e.other, e.alt = score, s
	}
}

// frame is one row of one window.
type frame struct {
	rows *Rows
	at   int
}

// back is how a state was reached.
const (
	backSelf  = iota // from itself
	backBest         // from the best state that leads to its node
	backOther        // from the best one with another token
	backWild         // of stateRest and stateWild: from the other of the two
)

// tables are the memory of path, which is used again for the next section.
type tables struct {
	back []uint8
	from []int32
}

// sized returns a slice of a length, in the memory of another if that is enough.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// path finds the most likely way through the lattice (Viterbi): the state of
// each frame and its log probability. ok is false without any way, which
// happens only without frames.
func (l *lattice) path(frames []frame, mem *tables) (states []int32, ok bool) {
	n, none := len(l.states), math.Inf(-1)
	if len(frames) == 0 {
		return nil, false
	}
	now, last := make([]float64, n), slices.Repeat([]float64{none}, n)
	mem.back, mem.from = sized(mem.back, len(frames)*n), sized(mem.from, 2*len(frames)*l.nodes)
	back, from := mem.back, mem.from // every cell is written before it is read
	entries := make([]entry, l.nodes)
	token := slices.Repeat([]float64{floor}, l.vocab.tokens)
	for t, f := range frames {
		l.enter(entries, last, t == 0)
		for k, e := range entries {
			from[2*(t*l.nodes+k)], from[2*(t*l.nodes+k)+1] = e.state, e.alt
		}
		row := f.rows
		for i := row.from[f.at]; i < row.from[f.at+1]; i++ {
			token[row.ids[i]] = float64(row.logs[i])
		}
		blank, spoken, mark := float64(row.blanks[f.at]), row.spoken(f.at), none
		for _, id := range l.vocab.marks {
			mark = max(mark, token[id])
		}
		for s, st := range l.states {
			best, way := last[s], uint8(backSelf)
			if st.kind == stateRest {
				if last[st.from] > best {
					best, way = last[st.from], backWild
				}
				now[s], back[t*n+s] = best+blank, way
				continue
			}
			e := &entries[st.from]
			switch {
			case st.kind == stateToken && e.state >= 0 && l.states[e.state].kind == stateToken && l.states[e.state].id == st.id:
				if e.other > best {
					best, way = e.other, backOther
				}
			case e.score > best:
				best, way = e.score, backBest
			}
			switch st.kind {
			case stateBlank:
				best += blank
			case stateToken:
				best += token[st.id]
			case stateMark:
				best += mark
			case stateStray:
				if st.from == 0 || st.from == l.nodes-1 {
					best += spoken - outsideCost
				} else {
					best += spoken - strayCost
				}
			case stateWild:
				if last[s+1] > best {
					best, way = last[s+1], backWild
				}
				best += spoken - wildCost
			case stateRest: // decided above
			}
			now[s], back[t*n+s] = best, way
		}
		for i := row.from[f.at]; i < row.from[f.at+1]; i++ {
			token[row.ids[i]] = floor
		}
		now, last = last, now
	}
	l.enter(entries, last, false)
	s := entries[l.nodes-1].state
	if s < 0 {
		return nil, false
	}
	states = make([]int32, len(frames))
	for t := len(frames) - 1; t >= 0; t-- {
		states[t] = s
		st := l.states[s]
		switch back[t*n+int(s)] {
		case backBest:
			s = from[2*(t*l.nodes+st.from)]
		case backOther:
			s = from[2*(t*l.nodes+st.from)+1]
		case backWild:
			if st.kind == stateRest {
				s = int32(st.from)
			} else {
				s++
			}
		}
	}
	return states, true
}

// enter computes the best ways to each node after a frame, words that are left
// out included.
func (l *lattice) enter(entries []entry, last []float64, start bool) {
	none := math.Inf(-1)
	next := 0
	for k := range entries {
		e := &entries[k]
		*e = entry{none, none, -1, -1}
		if start && k == 0 {
			e.score = 0
		}
		for _, s := range l.into[k] {
			if last[s] == none {
				continue
			}
			id := -1
			if l.states[s].kind == stateToken {
				id = l.states[s].id
			}
			e.offer(last[s], s, id, l.states)
		}
		if next < len(l.begins) && l.begins[next] == k {
			if next > 0 {
				p := entries[l.begins[next-1]]
				for _, w := range [2]struct {
					score float64
					state int32
				}{{p.score, p.state}, {p.other, p.alt}} {
					score := w.score - skipCost
					if start && w.state < 0 && score > e.score {
						e.score, e.state = score, -1
					}
					if w.state < 0 || score == none {
						continue
					}
					id := -1
					if l.states[w.state].kind == stateToken {
						id = l.states[w.state].id
					}
					e.offer(score, w.state, id, l.states)
				}
			}
			next++
		}
	}
}
