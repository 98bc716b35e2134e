package ctc

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/texts"
	"github.com/otograph/otograph/spec"
)

// The conditions under which a Spotter accepts a word, in logarithms of
// probabilities. They were tuned on made-up names in voices and sentences that
// no test uses (docs/measurements/hotwords.md).
const (
	// lossPerLetter is the permitted loss per letter: the difference between
	// the model's best tokens and the word's.
	lossPerLetter = 3.0
	// evidenceCost is added to the loss where the model is confident: it is a
	// factor of the log ratio between its best tokens and the blank.
	evidenceCost = 0.5
	// editCost is added for each letter by which the word differs.
	editCost = 1.0
	// leastEvidence keeps words out of silence. leastRows, per letter, keeps
	// them out of sounds that are too short.
	leastEvidence = 0.5
	leastRows     = 0.4
	// leastLetters is the minimum number of letters in a word; shorter words
	// have too many false alarms.
	leastLetters = 4
	// signLetters is how many letters an unspaced character counts as.
	signLetters = 3
)

// Spotter searches for words in the posteriors of a CTC model, including words
// that the model itself considers unlikely (A. Andrusenko and others 2024, Fast
// context-biasing for CTC and transducer ASR models with CTC-based word
// spotter). It compares the likeliest way to write a word in a range of rows
// with the likeliest tokens of these rows. It is safe for concurrent use.
type Spotter struct {
	vocab  *Vocabulary
	words  []spotWord
	ends   []int // per node: the word that ends there, or -1
	states []State
	into   [][]int32 // per node: the states that lead to it
	most   float64   // the maximum loss of any word
}

type spotWord struct {
	text    string
	letters []rune
	weight  float64 // letters, by signLetters
}

func (w spotWord) allowed() float64 { return lossPerLetter * w.weight }

// Spotted is a word that a Spotter found.
type Spotted struct {
	Text string // as passed to NewSpotter
	// First and Last are the rows of its first and last token.
	First, Last int
	// LogProb is the log ratio of the word's to the best posteriors a letter.
	LogProb float64
	cost    float64 // of a letter
}

// NewSpotter returns a Spotter for words. It returns nil if no word is long
// enough and can be spelled by the vocabulary.
func NewSpotter(words []string, v *Vocabulary) *Spotter {
	s := &Spotter{vocab: v, ends: []int{-1}, into: make([][]int32, 1)}
	t := spotTree{Spotter: s, tree: tree{}, known: map[State]bool{}}
	for _, text := range words {
		if w, ok := newSpotWord(text, v); ok {
			t.add(w)
			s.most = max(s.most, w.allowed())
		}
	}
	if len(s.words) == 0 {
		return nil
	}
	for n := 1; n < len(s.ends); n++ {
		s.lead(State{StateBlank, -1, n, n})
	}
	return s
}

// Spottable reports whether a Spotter searches for the word: the vocabulary can
// spell it, and it is long enough.
func Spottable(word string, v *Vocabulary) bool {
	_, ok := newSpotWord(word, v)
	return ok
}

func newSpotWord(text string, v *Vocabulary) (w spotWord, ok bool) {
	text = strings.Join(strings.Fields(text), " ")
	letters, ok := v.Spell(Fold(text))
	w = spotWord{text, letters, weight(letters)}
	return w, ok && len(letters) <= LongestWord && w.weight >= leastLetters
}

// weight counts the letters of a word.
func weight(letters []rune) (n float64) {
	for _, r := range letters {
		switch {
		case spec.Unspaced(r):
			n += signLetters
		case IsSolid(r):
			n++
		}
	}
	return n
}

// spotTree is a Spotter under construction.
type spotTree struct {
	*Spotter
	tree  tree
	known map[State]bool // the known states of tokens
}

func (t *spotTree) add(w spotWord) {
	path := []int{0}
	for _, r := range w.letters {
		n := t.tree.child(path[len(path)-1], r)
		if n == len(t.ends) {
			t.ends, t.into = append(t.ends, -1), append(t.into, nil)
		}
		path = append(path, n)
	}
	if end := &t.ends[path[len(w.letters)]]; *end < 0 {
		*end = len(t.words)
		t.words = append(t.words, w)
	}
	for k := range w.letters {
		t.vocab.Each(w.letters[k:], func(n int, ids []int) {
			for _, id := range ids {
				if e := (State{StateToken, id, path[k], path[k+n]}); !t.known[e] {
					t.known[e] = true
					t.lead(e)
				}
			}
		})
	}
}

func (s *Spotter) lead(e State) {
	s.into[e.To] = append(s.into[e.To], int32(len(s.states)))
	s.states = append(s.states, e)
}

// passage is the best path to a state. score is the log ratio of its tokens'
// posteriors to the best posteriors; first is its first row.
type passage struct {
	score float64
	first int
}

// Find returns the words found in a window of rows of v scores (row-major), in
// order and without overlap. norms are subtracted to get log posteriors.
func (s *Spotter) Find(scores []float32, norms []float64, v int) []Spotted {
	if s == nil {
		return nil
	}
	rows := s.listen(scores, norms, v)
	now, last := make([]passage, len(s.states)), make([]passage, len(s.states))
	for i := range last {
		last[i].score = math.Inf(-1)
	}
	entries := make([]Entry, len(s.ends))
	var found []Spotted
	for t, norm := range norms {
		s.enter(entries, last)
		row := scores[t*v : (t+1)*v]
		for i, st := range s.states {
			p := s.reach(i, entries, last, t)
			if p.score > math.Inf(-1) {
				id := st.ID
				if id < 0 {
					id = s.vocab.Blank
				}
				if p.score += float64(row[id]) - norm - rows[t].top; p.score < -s.most {
					p.score = math.Inf(-1)
				}
			}
			now[i] = p
			if w := s.ends[st.To]; w >= 0 && st.ID >= 0 && -p.score <= s.words[w].allowed() {
				found = s.judge(found, w, p, rows, t)
			}
		}
		now, last = last, now
	}
	slices.SortStableFunc(found, func(a, b Spotted) int { return cmp.Compare(a.cost, b.cost) })
	var out []Spotted // the best of overlapping words
	for _, f := range found {
		if !slices.ContainsFunc(out, func(o Spotted) bool { return f.First <= o.Last && o.First <= f.Last }) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Spotted) int { return cmp.Compare(a.First, b.First) })
	return out
}

// rowScore is the model's own decoding of a row.
type rowScore struct {
	id       int // its best token
	top      float64
	evidence float64 // of speech, summed over this row and all before it
}

func (s *Spotter) listen(scores []float32, norms []float64, v int) []rowScore {
	rows := make([]rowScore, len(norms))
	sum := 0.0
	for t, norm := range norms {
		row := scores[t*v : (t+1)*v]
		best := s.vocab.Blank
		for id, x := range row[:s.vocab.Size] {
			if x > row[best] {
				best = id
			}
		}
		sum += float64(row[best] - row[s.vocab.Blank])
		rows[t] = rowScore{best, float64(row[best]) - norm, sum}
	}
	return rows
}

// enter computes the best paths to each node; a word may begin at any row.
func (s *Spotter) enter(entries []Entry, last []passage) {
	for n := range entries {
		entries[n] = Entry{math.Inf(-1), math.Inf(-1), -1, -1}
		for _, st := range s.into[n] {
			if last[st].score > math.Inf(-1) {
				entries[n].Offer(last[st].score, st, s.states)
			}
		}
	}
	entries[0].Score = 0
}

// reach returns the best path to a state by row t.
func (s *Spotter) reach(i int, entries []Entry, last []passage, t int) passage {
	st := &s.states[i]
	e := &entries[st.From]
	score, from := e.Score, e.State
	if st.ID >= 0 && from >= 0 && s.states[from].ID == st.ID {
		score, from = e.Other, e.Alt
	}
	if best := last[i]; best.score >= score {
		return best
	}
	if from < 0 {
		return passage{score, t}
	}
	return passage{score, last[from].first}
}

// judge adds word w, whose last token is in row t, if it is likely enough.
func (s *Spotter) judge(found []Spotted, w int, p passage, rows []rowScore, t int) []Spotted {
	word, first := s.words[w], p.first
	evidence := rows[t].evidence
	if first > 0 {
		evidence -= rows[first-1].evidence
	}
	if evidence < leastEvidence || float64(t-first+1) < leastRows*word.weight {
		return found
	}
	cost := -p.score + evidenceCost*evidence
	if cost <= word.allowed() {
		cost += editCost * float64(texts.EditDistance(word.letters, s.letters(rows[first:t+1])))
	}
	if cost > word.allowed() {
		return found
	}
	return append(found, Spotted{Text: word.text, First: first, Last: t, LogProb: p.score / word.weight, cost: cost / word.weight})
}

// letters returns the letters that the model itself decodes in the rows.
func (s *Spotter) letters(rows []rowScore) (out []rune) {
	last := s.vocab.Blank
	for _, r := range rows {
		if r.id != last && r.id != s.vocab.Blank {
			out = append(out, s.vocab.Solid[r.id]...)
		}
		last = r.id
	}
	return out
}
