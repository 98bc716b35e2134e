package wordtimes

import (
	"math"

	"github.com/otograph/otograph/audio"
)

// leastWord is the least length of a word, in frames.
const leastWord = 2

// Attention jumps to a word up to 0.1 s before or after its start; the lag
// depends on the model, and is measured in each window from the audible starts
// of its words. A word may start within reach frames of its jump plus that lag;
// early and late are the deviations. hearing weights the border network against
// the distance: below 1, because neighboring frames carry the same information.
// The numbers come from 268 words of 27 English recordings of people (starts by
// pocketsphinx) and 223 of synthesizers, with Whisper base.
const (
	reach       = 25
	places      = 2*reach + 1
	early, late = 6.0, 9.0
	hearing     = 0.9
)

// distances is the cost of a word's places.
var distances = func() (cost [places]float64) {
	for j := range cost {
		off := float64(j-reach) / late
		if j < reach {
			off = float64(j-reach) / early
		}
		cost[j] = off * off / 2
	}
	return cost
}()

// The lag is searched up to mostLag frames on both sides, in steps of lagStep;
// lagSpread is its expected deviation from 0, for windows of few words.
const (
	mostLag, lagStep = 16, 2
	lagSpread        = 8.0
)

const (
	// letterFrames is the least duration per letter of a word, and wordFrames
	// the least of any word; a shorter word costs shortCost per factor of e.
	letterFrames, wordFrames = 2.0, 15.0
	shortCost                = 1.0
	// tooShort is the cost of a word below leastWord: a last resort.
	tooShort = 100.0
	// edge is the greatest distance, in frames, from the start of a stretch of
	// speech to its first word at which the word is moved to the start.
	edge = 15
	// hold is how long a word may outlast the jump to the next token (frames).
	hold = 60
)

// sharpener finds the most likely starts of all words together.
type sharpener struct {
	in      Input
	clock   *clock
	sound   *BorderSound
	letters []Letters // around the start of each word
	least   []float64 // shortest duration of a word without cost, in frames
	lag     int       // from the jump to the start of a word, in frames
	middle  []int     // of the places where a word may start, by the clock
	cells   []cell    // places of the first word, of the second …
}

// cell is a place where a word may start.
type cell struct {
	score float64 // of the best path to it
	from  int     // the place of the previous word on that path
}

// newSharpener returns nil without words, or without room for them.
func newSharpener(in Input) *sharpener {
	n := len(in.Words)
	s := &sharpener{in: in, clock: newClock(in.Samples, in.Speech)}
	if n == 0 || len(s.clock.frames) < n*leastWord {
		return nil
	}
	s.sound = NewBorderSound(audio.FromSamples(in.Samples), 0, len(s.clock.at)-1, in.Speech)
	s.letters, s.least = make([]Letters, n), make([]float64, n)
	s.middle, s.cells = make([]int, n), make([]cell, n*places)
	before := ""
	for i, w := range in.Words {
		s.letters[i] = Borders().Letters(before, w.Text)
		s.least[i] = min(letterFrames*float64(len(solids(w.Text))), wordFrames)
		before = w.Text
	}
	return s
}

// listen sets the lag at which the words' starts near their jumps score best.
func (s *sharpener) listen(begins []int) {
	const side = mostLag + reach
	net := Borders()
	var acoustic [2*side + 1]float64
	var fit [2*mostLag/lagStep + 1]float64
	for i, w := range s.in.Words {
		jump := s.clock.reading(begins[w.First])
		for d := range acoustic {
			if k := jump - side + d; k >= 0 && k < len(s.clock.frames) {
				acoustic[d] = hearing * net.Score(s.sound, s.clock.frames[k], &s.letters[i])
			} else {
				acoustic[d] = math.Inf(-1)
			}
		}
		for l := range fit {
			var sum float64
			for j, h := range acoustic[l*lagStep : l*lagStep+places] {
				sum += math.Exp(h - distances[j])
			}
			if sum > 0 {
				fit[l] += math.Log(sum)
			}
		}
	}
	top := math.Inf(-1)
	for l, f := range fit {
		lag := l*lagStep - mostLag
		if f -= float64(lag*lag) / (2 * lagSpread * lagSpread); f > top {
			top, s.lag = f, lag
		}
	}
}

// place sets the middles so that all words can start there in order.
func (s *sharpener) place(begins []int) {
	s.listen(begins)
	first := 0
	for i, w := range s.in.Words {
		s.middle[i] = max(s.clock.reading(begins[w.First])+s.lag, first)
		first = s.middle[i] + leastWord
	}
	last := len(s.clock.frames)
	for i := len(s.middle) - 1; i >= 0; i-- {
		last = min(s.middle[i], last-leastWord)
		s.middle[i] = last
	}
}

// score computes the cells.
func (s *sharpener) score() {
	net := Borders()
	for i := range s.in.Words {
		for j := range places {
			c := &s.cells[i*places+j]
			*c = cell{}
			k := s.middle[i] - reach + j
			if k < 0 || k >= len(s.clock.frames) {
				c.score = math.Inf(-1)
				continue
			}
			if i > 0 {
				c.score, c.from = s.best(i-1, k)
			}
			if acoustic := net.Score(s.sound, s.clock.frames[k], &s.letters[i]); !math.IsInf(c.score, -1) {
				if math.IsNaN(acoustic) { // the sound contains NaN
					acoustic = 0
				}
				c.score += hearing*acoustic - distances[j]
			}
		}
	}
}

// times returns the times of the words on the best path through the cells.
func (s *sharpener) times(begins []int) []Time {
	starts := append(s.trace(), len(s.clock.frames))
	s.snap(starts)
	times := make([]Time, len(s.in.Words))
	for i, w := range s.in.Words {
		k := starts[i]
		longest := s.clock.reading(begins[w.Last+1]) + s.lag + hold
		end := min(starts[i+1], s.clock.ends[k], max(longest, k+leastWord))
		times[i] = Time{float64(s.clock.frames[k]) / 100, float64(s.clock.frames[end-1]+1) / 100}
	}
	return times
}

// best returns the best place of word i if it ends by until, and its score.
func (s *sharpener) best(i, until int) (score float64, from int) {
	score = math.Inf(-1)
	for j, c := range s.cells[i*places : (i+1)*places] {
		k := s.middle[i] - reach + j
		if k+leastWord > until {
			break
		}
		if c.score <= score {
			continue
		}
		length := min(until, s.clock.ends[k]) - k
		if float64(length) < s.least[i] {
			c.score -= shortCost * math.Log(s.least[i]/float64(length))
		}
		if length < leastWord {
			c.score -= tooShort
		}
		if c.score > score {
			score, from = c.score, j
		}
	}
	return score, from
}

// trace returns the starts of the words.
func (s *sharpener) trace() []int {
	starts := make([]int, len(s.in.Words))
	_, j := s.best(len(starts)-1, len(s.clock.frames))
	for i := len(starts) - 1; i >= 0; i-- {
		starts[i] = s.middle[i] - reach + j
		j = s.cells[i*places+j].from
	}
	return starts
}

// snap moves the first word of each stretch to the start of the stretch.
func (s *sharpener) snap(starts []int) {
	begin := 0 // of the current stretch
	for i, k := range starts[:len(s.in.Words)] {
		for s.clock.ends[begin] <= k {
			begin = s.clock.ends[begin]
		}
		if k-begin <= edge && (i == 0 || starts[i-1] < begin) {
			starts[i] = begin
		}
	}
}
