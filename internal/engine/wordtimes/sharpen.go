package wordtimes

import (
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
)

// leastWord is the least length of a word, in frames.
const leastWord = 2

// Attention leaves a word early by the share ahead of its usual duration. The
// rest of the delay from this jump to the start of the next word depends on the
// model, and is measured in each window from the audible starts of its words:
// the lag. A word may start within reach frames of the expected place; early
// and late are the deviations, and tail limits the cost of great ones. hearing
// is the weight of the border network relative to the distance: below 1,
// because neighboring frames carry the same information. How these numbers were
// chosen is in docs/measurements/word-times.md.
const (
	ahead       = 0.17
	reach       = 30
	places      = 2*reach + 1
	early, late = 6.5, 7.5
	tail        = 3.0
	hearing     = 0.9
)

// distances is the cost of a word's places.
var distances = func() (cost [places]float64) {
	for j := range cost {
		off := float64(j-reach) / late
		if j < reach {
			off = float64(j-reach) / early
		}
		cost[j] = tail * math.Log1p(off*off/2/tail)
	}
	return cost
}()

// The lag is searched up to mostLag frames on both sides, in steps of lagStep;
// lagSpread is its expected deviation from 0, for windows of few words.
const (
	mostLag, lagStep = 24, 2
	lagSpread        = 12.0
)

const (
	// A word usually lasts as long as its letters at the window's mean pace, and
	// finalLetters more before a pause; the deviation is paceSpread times the
	// square root of the letters.
	paceCost, paceSpread, finalLetters = 2.2, 0.9, 4.0
	// leastLetters counts shorter words, digitLetters each digit and each
	// character of a script without spaces.
	leastLetters, digitLetters = 2.0, 4.0
	// skipCost limits the cost of speech between a pause and the next word;
	// skipFrames of such speech cost half.
	skipCost, skipFrames = 10.0, 10.0
	// apartCost is the cost of a pause of apartFrames right before the last
	// word of a sentence, if the next sentence follows without a pause.
	apartCost, apartFrames = 6.0, 50
	// tooShort is the cost of a word below leastWord: a last resort.
	tooShort = 100.0
	// hold is how long a word may outlast the jump to the next token (frames).
	hold = 60
)

// sharpener finds the most likely starts of all words together.
type sharpener struct {
	in      Input
	clock   *clock
	sound   *BorderSound
	letters []Letters // around the start of each word
	count   []float64 // of each word's letters
	final   []bool    // of words that end a sentence, with no punctuation before them
	pace    float64   // frames a letter
	lag     int       // from the jump to the start of a word, in frames
	middle  []int     // of the range of places where a word may start, by the clock
	cells   []cell    // places of the first word, of the second …
}

// cell is a place where a word may start.
type cell struct {
	score float64 // of the best path to this place
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
	s.letters, s.count = make([]Letters, n), make([]float64, n)
	s.middle, s.cells, s.final = make([]int, n), make([]cell, n*places), make([]bool, n)
	before, total := "", 0.0
	for i, w := range in.Words {
		s.letters[i] = Borders().Letters(before, w.Text)
		s.count[i] = countLetters(w.Text)
		if i > 0 && i+1 < n {
			last, _ := utf8.DecodeLastRuneInString(before)
			s.final[i] = !unicode.IsPunct(last) && decode.EndsSentence(w.Text, in.Words[i+1].Text)
		}
		before, total = w.Text, total+s.count[i]
	}
	s.pace = float64(len(s.clock.frames)) / total
	return s
}

// countLetters returns the number of letters that a word's duration counts for.
func countLetters(text string) (n float64) {
	for _, r := range solids(text) {
		if n++; unicode.IsNumber(r) || spec.Unspaced(r) {
			n += digitLetters - 1
		}
	}
	return max(n, leastLetters)
}

// jump returns the clock's time at which, by the attention and without the lag,
// the word before token t ends. The token follows word i-1 or is the first of
// word i.
func (s *sharpener) jump(begins []int, i, t int) int {
	at := s.clock.at[min(begins[t]*positionFrames, len(s.clock.at)-1)]
	if i > 0 && s.in.Words[i-1].Last+1 == t {
		at += int(math.Round(ahead * s.pace * s.count[i-1]))
	}
	return at
}

// listen sets the lag at which the words' starts near their jumps score best. The
// first word does not count: attention has nothing to jump from.
func (s *sharpener) listen(begins []int) {
	const side = mostLag + reach
	net := Borders()
	var acoustic [2*side + 1]float64
	var fit [2*mostLag/lagStep + 1]float64
	for i := 1; i < len(s.in.Words); i++ {
		jump := s.jump(begins, i, s.in.Words[i].First)
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
		s.middle[i] = max(s.jump(begins, i, w.First)+s.lag, first)
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
	n := len(s.in.Words)
	starts, times := make([]int, n+1), make([]Time, n)
	starts[n] = len(s.clock.frames)
	_, j := s.best(n-1, starts[n])
	for i := n - 1; i >= 0; i-- {
		starts[i] = s.middle[i] - reach + j
		j = s.cells[i*places+j].from
	}
	for i, w := range s.in.Words {
		k := starts[i]
		longest := s.jump(begins, i+1, w.Last+1) + s.lag + hold
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
		if c.score -= s.strain(i, k, until); c.score > score {
			score, from = c.score, j
		}
	}
	return score, from
}

// strain returns the cost of the duration of word i from k until the next word,
// of speech between a pause and the next word, and of a pause inside a sentence.
func (s *sharpener) strain(i, k, until int) float64 {
	end, usual := s.clock.ends[k], s.count[i]
	if until >= end {
		usual += finalLetters
	}
	length := min(until, end) - k
	off := (float64(length)/s.pace - usual) / paceSpread
	cost := paceCost * (math.Sqrt(1+off*off/s.count[i]) - 1)
	if length < leastWord {
		cost += tooShort
	}
	if begin := s.clock.begins[k]; s.final[i] && until < end && k-begin < skipFrames && s.clock.pause(begin) >= apartFrames {
		cost += apartCost
	}
	if until > end && until < len(s.clock.frames) {
		skipped := float64(until - s.clock.begins[until])
		cost += skipCost * skipped / (skipFrames + skipped)
	}
	return cost
}
