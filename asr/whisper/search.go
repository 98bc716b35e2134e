package whisper

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/whispernet"
)

// search finds the text of a window, one token at a time: columns lists the
// decoder's next inputs, and advance continues from its logits, until over is
// set. Several searches share a pass of the decoder; they are independent.
//
// At temperature 0 it is CTranslate2's beam search: of twice as many candidates
// as beams, the best end or continue; once as many texts have ended as there
// are beams, the greatest mean log probability is taken (patience and length
// penalty 1). At other temperatures it samples the requested number of texts.
type search struct {
	rules  *rules
	window *whispernet.Window
	names  []name // that the text may spell wrong
	prompt []int32
	sot    int // index of "start of transcript" in the prompt
	// draft is a likely text: the first pass has its tokens, and takes its
	// first ones as long as the search would choose the same.
	draft  []int32
	silent int32
	// quiet is the no-speech probability above which nothing is decoded.
	quiet float64
	// listen returns the language probabilities of the first answer, and the
	// language to decode in instead; nil disables detection.
	listen      func(first []float32) (languages map[string]float64, other string)
	temperature float64
	width       int // beams or samples
	most        int // the limit of a text's tokens
	random      *rand.Rand

	noSpeech    float64
	languages   map[string]float64
	other       string
	beams       []beam
	ended       []hypothesis
	steps       int
	begun, over bool

	logits     [][]float32 // one for each column that needs them
	candidates []candidate
	top        []whispernet.Candidate
}

// beam is an unfinished text.
type beam struct {
	tokens []token
	path   []uint8 // the decoder's rows, by position
	sum    float64 // of log probabilities
}

// hypothesis is a text that has ended.
type hypothesis struct {
	tokens []token
	sum    float64 // includes the end
	looped bool    // ended because of a loop
}

// mean is the score by which texts of different lengths are compared.
func (h hypothesis) mean() float64 { return h.sum / float64(max(len(h.tokens), 1)) }

// candidate is a token that may follow a beam.
type candidate struct {
	beam  int
	token token
	sum   float64
}

// buffers returns n buffers for logits; the search reuses them.
func (s *search) buffers(n, size int) [][]float32 {
	for len(s.logits) < n {
		s.logits = append(s.logits, make([]float32, size))
	}
	return s.logits[:n]
}

// columns appends the decoder's inputs for the next advance.
func (s *search) columns(list []whispernet.Column, vocabulary int) []whispernet.Column {
	if !s.begun {
		logits := s.buffers(2+len(s.draft), vocabulary)
		for i, t := range s.prompt {
			c := whispernet.Column{Window: s.window, Position: i, Token: t}
			switch i {
			case len(s.prompt) - 1:
				c.Logits = logits[1]
			case s.sot:
				c.Logits = logits[0]
			}
			list = append(list, c)
		}
		for i, t := range s.draft {
			list = append(list, whispernet.Column{Window: s.window, Position: len(s.prompt) + i, Token: t, Logits: logits[2+i]})
		}
		return list
	}
	logits := s.buffers(len(s.beams), vocabulary)
	for i, b := range s.beams {
		at := len(s.prompt) + len(b.tokens) - 1
		list = append(list, whispernet.Column{
			Window: s.window, Row: i, Position: at, Token: b.tokens[len(b.tokens)-1].id, Path: b.path[:at], Logits: logits[i],
		})
	}
	return list
}

// advance continues from the logits of the columns.
func (s *search) advance() {
	s.steps++
	if !s.begun {
		s.begin()
		if s.over {
			return
		}
	}
	s.extend()
	for i, t := range s.draft {
		if s.over || s.beams[0].tokens[i].id != t {
			break
		}
		copy(s.logits[0], s.logits[2+i])
		s.extend()
	}
	s.draft = nil
}

// extend extends the texts by a token, by the logits after them.
func (s *search) extend() {
	for i, b := range s.beams { // turns the logits into log probabilities
		text := make([]int32, len(b.tokens))
		for k, t := range b.tokens {
			text[k] = t.id
		}
		s.rules.forbid(s.logits[i], text)
		s.rules.settle(s.logits[i])
	}
	if s.temperature > 0 {
		s.sample()
	} else {
		s.choose()
	}
}

// begin reads the answers to the prompt: the no-speech probability, the
// language, and the first beam.
func (s *search) begin() {
	s.begun = true
	last := len(s.prompt) - 1
	first := s.logits[0]
	if s.sot == last { // one column yields language and no-speech probability
		copy(first, s.logits[1])
	}
	whispernet.Normalize(first, s.rules.begin)
	s.noSpeech = math.Exp(float64(first[s.silent]))
	if s.over = s.noSpeech > s.quiet; s.over {
		return
	}
	if s.listen != nil {
		s.languages, s.other = s.listen(first)
		if s.over = s.other != ""; s.over {
			return
		}
	}
	copy(first, s.logits[1])
	s.beams = append(s.beams, beam{path: make([]uint8, len(s.prompt))})
	if s.temperature > 0 {
		for i := 1; i < s.width; i++ {
			s.beams = append(s.beams, beam{path: make([]uint8, len(s.prompt))})
		}
		for _, logits := range s.buffers(s.width, len(first))[1:] {
			copy(logits, first)
		}
	}
}

// choose takes the best continuations of all beams.
func (s *search) choose() {
	s.candidates = s.candidates[:0]
	for i, b := range s.beams {
		s.top = whispernet.Top(s.logits[i], 2*s.width, s.top)
		for _, c := range s.top {
			if c.LogProb == forbidden {
				break
			}
			s.candidates = append(s.candidates, candidate{i, token{c.Token, c.LogProb}, b.sum + float64(c.LogProb)})
		}
	}
	slices.SortStableFunc(s.candidates, func(a, b candidate) int { return cmp.Compare(b.sum, a.sum) })
	all := s.candidates[:min(len(s.candidates), 2*s.width)]
	first := all[:min(len(all), s.width)]
	rest := all[len(first):]
	next := make([]beam, 0, s.width)
	for _, c := range first {
		if !s.ends(c) {
			next = append(next, s.extended(c))
			continue
		}
		for len(rest) > 0 { // the next candidate takes the place of an ended one
			c, rest = rest[0], rest[1:]
			if b := s.extended(c); c.token.id != s.rules.eot && len(b.tokens) < s.most && s.period(b.tokens) == 0 {
				next = append(next, b)
				break
			}
		}
	}
	s.beams = next
	s.over = len(next) == 0 || len(s.ended) >= s.width
}

// ends reports whether a candidate ends its text, and keeps the text if so.
func (s *search) ends(c candidate) bool {
	b := s.beams[c.beam]
	if c.token.id == s.rules.eot {
		s.ended = append(s.ended, hypothesis{tokens: b.tokens, sum: c.sum})
		return true
	}
	tokens := append(b.tokens[:len(b.tokens):len(b.tokens)], c.token)
	looped := s.period(tokens) > 0
	if !looped && len(tokens) < s.most {
		return false
	}
	s.ended = append(s.ended, hypothesis{tokens: tokens, sum: c.sum, looped: looped})
	return true
}

// period returns the length of the loop at the tokens' end, 0 for none.
func (s *search) period(tokens []token) int {
	if tokens[len(tokens)-1].id >= s.rules.begin {
		return 0
	}
	var latest []int32
	for i := len(tokens) - 1; i >= 0 && len(latest) < decode.LoopReach; i-- {
		if tokens[i].id < s.rules.begin {
			latest = append(latest, tokens[i].id)
		}
	}
	return decode.Looping(latest)
}

// extended returns the beam of a candidate: its row is its parent's.
func (s *search) extended(c candidate) beam {
	b := s.beams[c.beam]
	next := beam{tokens: make([]token, 0, len(b.tokens)+1), path: b.path, sum: c.sum}
	next.tokens = append(append(next.tokens, b.tokens...), c.token)
	if len(b.tokens) > 0 { // the prompt's rows are all 0
		next.path = append(append(make([]uint8, 0, len(b.path)+1), b.path...), uint8(c.beam))
	}
	return next
}

// sample draws the next token of each text.
func (s *search) sample() {
	next := s.beams[:0:0]
	for i := range s.beams {
		at := draw(s.random, s.logits[i], s.temperature)
		c := candidate{i, token{at, s.logits[i][at]}, s.beams[i].sum + float64(s.logits[i][at])}
		if !s.ends(c) {
			next = append(next, s.extended(c))
		}
	}
	s.beams = next
	s.over = len(next) == 0
}

// draw picks a random token by the probabilities at a temperature.
func draw(random *rand.Rand, logProbs []float32, temperature float64) int32 {
	const least = -30 // of the exponent: smaller ones have no effect
	top := slices.Max(logProbs)
	weight := func(l float32) float64 {
		if e := float64(l-top) / temperature; e > least {
			return math.Exp(e)
		}
		return 0
	}
	var sum float64
	for _, l := range logProbs {
		sum += weight(l)
	}
	left := random.Float64() * sum
	for i, l := range logProbs {
		if w := weight(l); w > 0 {
			if left -= w; left < 0 {
				return int32(i)
			}
		}
	}
	return int32(max(slices.Index(logProbs, top), 0)) // rounding errors, or NaN
}

// rank orders texts, the lowest first: likely ones, loops, all others.
func (h hypothesis) rank() int {
	switch {
	case h.looped:
		return 1
	case h.mean() < minLogProb:
		return 2
	}
	return 0
}

// best returns the text of lowest rank, then greatest mean, without its loop.
func (s *search) best() hypothesis {
	if len(s.ended) == 0 {
		return hypothesis{}
	}
	h := slices.MinFunc(s.ended, func(a, b hypothesis) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.mean(), a.mean()))
	})
	if h.looped {
		h.tokens = unloop(h.tokens, s.rules.begin)
	}
	return h
}

// unloop cuts a text that ended in a loop after the loop's first round.
func unloop(tokens []token, begin int32) []token {
	var latest []int32
	var place []int // in tokens
	for i := len(tokens) - 1; i >= 0; i-- {
		if tokens[i].id < begin {
			latest, place = append(latest, tokens[i].id), append(place, i)
		}
	}
	period := decode.Looping(latest)
	if period == 0 {
		return tokens
	}
	last := 0
	for last < len(latest)-period && latest[last] == latest[last+period] {
		last++
	}
	return tokens[:place[last]+1]
}
