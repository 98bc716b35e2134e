package ctc

// State is one state of a lattice: a token between nodes, or a node's loop.
type State struct {
	Kind     StateKind
	ID       int // the token's id; -1 for other kinds
	From, To int // nodes
}

// StateKind is the role of a State.
type StateKind uint8

// The kinds of states. A Spotter only has StateToken and StateBlank.
const (
	StateToken StateKind = iota
	StateBlank           // at a node
	StateStray           // at a node between words: sound outside of words
	StateMark            // at a node between words: punctuation
	StateWild            // any token, through a whole word
	StateRest            // blanks within a wild word; From is the index of its StateWild
)

// Entry is the best path to a node, and the best one by another token: a
// repeated token needs a blank between.
type Entry struct {
	Score, Other float64 // logarithms of probabilities
	State, Alt   int32   // indices of the paths' previous states; -1 for none
}

// Offer considers the path of log probability score through state s.
func (e *Entry) Offer(score float64, s int32, states []State) {
	id := states[s].ID
	same := func(k int32) bool { return k >= 0 && id >= 0 && states[k].ID == id }
	switch {
	case score > e.Score:
		if e.State >= 0 && !same(e.State) {
			e.Other, e.Alt = e.Score, e.State
		}
		e.Score, e.State = score, s
	case score > e.Other && !same(e.State):
		e.Other, e.Alt = score, s
	}
}
