package align

import (
	"math"
	"slices"

	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
)

// The costs of the lattice, as logarithms of probabilities.
const (
	// skipCost is the cost of a word that is not spoken, and strayCost of each
	// row of speech outside of words. A word is left out if that costs less
	// than tokens that the model considers impossible.
	skipCost  = 7.0
	strayCost = 3.0
	// gapCost is the greatest cost of consecutive words that are not spoken. It
	// keeps the words of a short recording together in a long text.
	gapCost = 4 * skipCost
	// outsideCost replaces strayCost before the first and after the last word,
	// so that the words of a text that ends early stay together.
	outsideCost = 2.7
	// wildCost is the cost of each row of speech in a word that the tokens
	// cannot spell. It is higher than outsideCost, or such a word would absorb
	// all speech outside of the text, and lower than strayCost.
	wildCost = 2.8
)

// lattice holds the token sequences that can write a stretch of text. There is
// a node before each letter and at the end. Tokens connect nodes in every way
// in which the vocabulary can write the letters. A number may be any speech.
type lattice struct {
	vocab  *ctc.Vocabulary
	states []ctc.State
	nodes  int
	begins []int // the node before each word, and the last node
	// into and out list the states that end and begin at a node, with loops.
	into, out [][]int32
}

func newLattice(words []word, v *ctc.Vocabulary) *lattice {
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
		l.add(ctc.State{Kind: ctc.StateBlank, ID: -1, From: n, To: n})
		if next < len(l.begins) && l.begins[next] == n {
			l.add(ctc.State{Kind: ctc.StateStray, ID: -1, From: n, To: n})
			if len(v.Marks) > 0 {
				l.add(ctc.State{Kind: ctc.StateMark, ID: -1, From: n, To: n})
			}
			next++
		}
	}
	for i, w := range words {
		from := l.begins[i]
		for k := range w.letters {
			v.Each(w.letters[k:], func(n int, ids []int) {
				for _, id := range ids {
					l.add(ctc.State{Kind: ctc.StateToken, ID: id, From: from + k, To: from + k + n})
				}
			})
		}
		if w.wild {
			wild := len(l.states)
			l.add(ctc.State{Kind: ctc.StateWild, ID: -1, From: from, To: l.begins[i+1]})
			l.states = append(l.states, ctc.State{Kind: ctc.StateRest, ID: -1, From: wild, To: wild})
		}
	}
	return l
}

func (l *lattice) add(s ctc.State) {
	n := int32(len(l.states))
	l.states = append(l.states, s)
	l.into[s.To] = append(l.into[s.To], n)
	l.out[s.From] = append(l.out[s.From], n)
}

// skip offers e the paths to the node before words, minus the cost of leaving
// them out. At the start of the frames, a path may have no state yet.
func skip(e *ctc.Entry, before ctc.Entry, cost float64, start bool, states []ctc.State) {
	if score := before.Score - cost; before.State >= 0 {
		e.Offer(score, before.State, states)
	} else if start && score > e.Score {
		e.Score, e.State = score, -1
	}
	if before.Alt >= 0 {
		e.Offer(before.Other-cost, before.Alt, states)
	}
}

// frame is one row of one window.
type frame struct {
	rows *Rows
	at   int
}

// The ways in which a state is reached.
const (
	backSelf  = iota // from itself
	backBest         // from the best state that leads to its node
	backOther        // from the best state with another token
	backWild         // of ctc.StateRest and ctc.StateWild: from the other of the two
)

// tables holds the memory of the method path, reused for the next section.
type tables struct {
	back []uint8
	from []int32
}

// row holds a frame's cost for each kind of state, as log probabilities.
type row struct {
	tokens              []float64 // by id
	blank, spoken, mark float64
}

func newRow(v *ctc.Vocabulary) *row { return &row{tokens: slices.Repeat([]float64{floor}, v.Size)} }

// read loads a frame's scores; forget removes them.
func (r *row) read(f frame, marks []int) {
	rows := f.rows
	for i := rows.from[f.at]; i < rows.from[f.at+1]; i++ {
		r.tokens[rows.ids[i]] = float64(rows.logs[i])
	}
	r.blank, r.spoken, r.mark = float64(rows.blanks[f.at]), rows.spoken(f.at), math.Inf(-1)
	for _, id := range marks {
		r.mark = max(r.mark, r.tokens[id])
	}
}

func (r *row) forget(f frame) {
	for _, id := range f.rows.ids[f.rows.from[f.at]:f.rows.from[f.at+1]] {
		r.tokens[id] = floor
	}
}

func (l *lattice) emit(st *ctc.State, r *row) float64 {
	switch st.Kind {
	case ctc.StateToken:
		return r.tokens[st.ID]
	case ctc.StateMark:
		return r.mark
	case ctc.StateStray:
		if st.From == 0 || st.From == l.nodes-1 {
			return r.spoken - outsideCost
		}
		return r.spoken - strayCost
	case ctc.StateWild:
		return r.spoken - wildCost
	case ctc.StateBlank, ctc.StateRest:
	}
	return r.blank
}

// reach returns the score of the best path to state s and how it gets there.
func (l *lattice) reach(s int, entries []ctc.Entry, last []float64) (best float64, way uint8) {
	st := &l.states[s]
	best, way = last[s], backSelf
	if st.Kind != ctc.StateRest { // a StateRest begins at no node
		e := &entries[st.From]
		score, from := e.Score, uint8(backBest)
		if st.ID >= 0 && e.State >= 0 && l.states[e.State].ID == st.ID {
			score, from = e.Other, backOther
		}
		if score > best {
			best, way = score, from
		}
	}
	if st.Kind == ctc.StateRest || st.Kind == ctc.StateWild {
		if score := last[l.partner(s)]; score > best {
			best, way = score, backWild
		}
	}
	return best, way
}

// partner returns the ctc.StateRest of a ctc.StateWild, and the reverse.
func (l *lattice) partner(s int) int {
	if l.states[s].Kind == ctc.StateRest {
		return l.states[s].From
	}
	return s + 1
}

// path finds the most likely path through the lattice (Viterbi): each frame's
// state and its log probability. ok is false only without frames.
func (l *lattice) path(frames []frame, mem *tables) (states []int32, ok bool) {
	if len(frames) == 0 {
		return nil, false
	}
	n := len(l.states)
	now, last := make([]float64, n), slices.Repeat([]float64{math.Inf(-1)}, n)
	mem.back, mem.from = decode.Sized(mem.back, len(frames)*n), decode.Sized(mem.from, 2*len(frames)*l.nodes)
	entries, row := make([]ctc.Entry, l.nodes), newRow(l.vocab)
	for t, f := range frames { // every cell of mem is written before it is read
		l.enter(entries, last, t == 0)
		for k, e := range entries {
			mem.from[2*(t*l.nodes+k)], mem.from[2*(t*l.nodes+k)+1] = e.State, e.Alt
		}
		row.read(f, l.vocab.Marks)
		back := mem.back[t*n:][:n]
		for s := range l.states {
			best, way := l.reach(s, entries, last)
			now[s], back[s] = best+l.emit(&l.states[s], row), way
		}
		row.forget(f)
		now, last = last, now
	}
	l.enter(entries, last, false)
	end := entries[l.nodes-1].State
	if end < 0 {
		return nil, false
	}
	return l.trace(end, len(frames), mem), true
}

// trace follows the path in mem back from the last frame's state.
func (l *lattice) trace(s int32, frames int, mem *tables) []int32 {
	states := make([]int32, frames)
	for t := frames - 1; t >= 0; t-- {
		states[t] = s
		entry := 2 * (t*l.nodes + l.states[s].From) // the entry of a state that begins at a node
		switch mem.back[t*len(l.states)+int(s)] {
		case backBest:
			s = mem.from[entry]
		case backOther:
			s = mem.from[entry+1]
		case backWild:
			s = int32(l.partner(int(s)))
		}
	}
	return states
}

// enter computes the best paths to each node, including paths that omit words.
func (l *lattice) enter(entries []ctc.Entry, last []float64, start bool) {
	none := math.Inf(-1)
	word := 0                                         // the word that begins at the next of l.begins
	far := ctc.Entry{Score: none, State: -1, Alt: -1} // the best entry of the words before
	for k := range entries {
		e := &entries[k]
		*e = ctc.Entry{Score: none, Other: none, State: -1, Alt: -1}
		if start && k == 0 {
			e.Score = 0
		}
		for _, s := range l.into[k] {
			if last[s] != none {
				e.Offer(last[s], s, l.states)
			}
		}
		if word < len(l.begins) && l.begins[word] == k {
			if word > 0 {
				skip(e, entries[l.begins[word-1]], skipCost, start, l.states)
				skip(e, far, gapCost, start, l.states)
			}
			if e.Score > far.Score {
				far = *e
			}
			word++
		}
	}
}
