package align

import (
	"math"

	"github.com/otograph/otograph/internal/engine/ctc"
)

// mark holds the frames of a word within a section.
type mark struct {
	// first is the frame in which the word's first token begins, last the last
	// frame of its last token; both are -1 for a word that is not spoken.
	first, last int
	// logProb is the mean over the word's tokens of their highest log
	// posterior; 0 for a wild word.
	logProb float64
	wild    bool // spoken differently from the tokens' spelling
	tokens  int
}

func (m mark) found() bool { return m.first >= 0 }

// stray is a stretch of frames that belong to no word.
type stray struct {
	first, last int
	before      int // the index of the word after the stretch
}

// marks returns the frames of a path's words and the speech outside of words.
func (l *lattice) marks(words []word, path []int32, frames []frame) (marks []mark, strays []stray) {
	marks = make([]mark, len(words))
	for i := range marks {
		marks[i].first, marks[i].last = -1, -1
	}
	wordAt := make([]int, l.nodes) // the word of the letter after each node
	for i := range words {
		for n := l.begins[i]; n < l.begins[i+1]; n++ {
			wordAt[n] = i
		}
	}
	wordAt[l.nodes-1] = len(words)
	for t := 0; t < len(path); {
		s := path[t]
		end, top := t+1, math.Inf(-1)
		st := l.states[s]
		for end < len(path) && path[end] == s {
			end++
		}
		switch st.Kind {
		case ctc.StateToken:
			for k := t; k < end; k++ {
				top = max(top, frames[k].rows.logProb(frames[k].at, st.ID))
			}
			m := &marks[wordAt[st.From]] // no token spans two words
			if m.first < 0 {
				m.first = t
			}
			m.last = end - 1
			m.logProb += top
			m.tokens++
		case ctc.StateWild:
			m := &marks[wordAt[st.From]]
			if m.first < 0 {
				m.first = t
			}
			m.last, m.wild = end-1, true
		case ctc.StateStray:
			if k := len(strays) - 1; k >= 0 && strays[k].before == wordAt[st.From] {
				strays[k].last = end - 1
			} else {
				strays = append(strays, stray{t, end - 1, wordAt[st.From]})
			}
		case ctc.StateBlank, ctc.StateMark, ctc.StateRest: // between the letters of words
		}
		t = end
	}
	for i := range marks {
		if m := &marks[i]; m.tokens > 0 {
			m.logProb /= float64(m.tokens)
		}
	}
	return marks, strays
}

func (r *Rows) logProb(t, id int) float64 {
	for i := r.from[t]; i < r.from[t+1]; i++ {
		if int(r.ids[i]) == id {
			return float64(r.logs[i])
		}
	}
	return floor
}
