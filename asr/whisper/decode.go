package whisper

import (
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// The signs of a failed decode and what is tried then, as the Whisper paper has them
// (Radford et al. 2022, section 4.5): too repetitive or too unsure a text is decoded
// again by sampling, at rising temperatures.
const (
	maxCompression  = 2.4
	minLogProb      = -1.0
	temperatureStep = 0.2
	// fallbackBestOf is how many samples a fallback draws (as the published
	// implementation does) when the caller asks for no number.
	fallbackBestOf = 5
	// maxDecoders is libwhisper's limit of beams or samples at once.
	maxDecoders = 8
)

const (
	// positions of the encoder in a second of sound, and in its whole context
	positionsPerSecond, allPositions = 50, 1500
	// contextMargin is added to a window's length, in positions, when the encoder's
	// context is cut to it; the sum is rounded up to a multiple of contextStep. That is
	// no matter of taste: libwhisper computes flash attention over a multiple of 256
	// positions without a mask, so that with any other number the decoder would look at
	// what an earlier window left behind, and the text would depend on it.
	contextMargin, contextStep = 64, 256
	// leastSamples is the shortest sound given to libwhisper, which ignores what is
	// shorter than 0.1 s; silence is appended up to here.
	leastSamples = audio.SampleRate / 2
	// restSeconds is how much speech must be left after the text's last time mark for
	// the rest of the window to be decoded again, and restSlack how far before the
	// end of the speech a time mark may stand without that.
	restSeconds, restSlack = 1.0, 0.2
	// maxRests bounds how often a window is decoded again for its rest.
	maxRests = 6
)

// task is what all windows of one transcription share.
type task struct {
	opt      asr.Options
	language string
	initial  []int32 // tokens of the initial prompt
	hot      *hotwords
	once     bool // whether a decode that fails is left at that
}

// attempt is one decode of a window with what is known about it.
type attempt struct {
	tokens      []token
	text        string
	avgLogProb  float64
	compression float64
	looped      bool
}

func (a attempt) failed() bool {
	return len(a.tokens) > 0 && (a.looped || a.compression > maxCompression || a.avgLogProb < minLogProb)
}

// better tells whether a is to be preferred to b when both failed.
func (a attempt) better(b attempt) bool {
	if bad, worse := a.looped || a.compression > maxCompression, b.looped || b.compression > maxCompression; bad != worse {
		return !bad
	}
	return a.avgLogProb > b.avgLogProb
}

// result is a window's text.
type result struct {
	words []asr.Piece
	text  string // for the prompt of the window after
	stats asr.Stats
}

// window decodes one window by so many threads; samples are its sound, which stays
// untouched. previous is the text before it, "" without.
func (e *Engine) window(s *state, j *job, t *task, threads int, w asr.Window, samples []float32, previous string) (result, error) {
	r, err := e.look(s, j, t, threads, w, samples, previous)
	r.stats.Windows = 1
	r.stats.EncoderPasses, r.stats.DecoderSteps, _ = j.work()
	return r, err
}

// look decodes a window, and its rest where the text ends before the speech does.
func (e *Engine) look(s *state, j *job, t *task, threads int, w asr.Window, samples []float32, previous string) (result, error) {
	var r result
	for rest := 0; ; rest++ {
		a, noSpeech, err := e.attempts(s, j, t, threads, samples, previous, &r.stats)
		if err != nil {
			return r, err
		}
		if len(a.tokens) > 0 && noSpeech > t.opt.NoSpeechThreshold && a.avgLogProb < minLogProb {
			r.stats.Discarded++
			break
		}
		words, skips, covered, ended := e.read(w, a)
		for i := range words {
			words[i].NoSpeechProb = noSpeech
		}
		if words, err = e.fill(s, j, t, threads, w, samples, words, skips, &r.stats); err != nil {
			return r, err
		}
		words, _ = asr.Unloop(words)
		r.words = append(r.words, words...)
		r.text += a.text
		if !ended || rest == maxRests {
			break
		}
		// the text ended before the speech did: the rest is a window of its own
		left := w.Rest(covered)
		if after := w.Rest(covered + restSlack); after.SpeechSeconds() < restSeconds || left.Len() > w.Len()-audio.SampleRate/2 {
			break
		}
		w, samples = left, samples[len(samples)-left.Len():]
		r.stats.Continued++
	}
	return r, nil
}

// fillLead and fillTail are how much of the sound around speech that a text passed over
// is decoded with it, in seconds, as far as that is no speech.
const fillLead, fillTail = 0.05, 0.3

// fill decodes the speech that the text of a window has passed over, each stretch as a
// window of its own, and returns the words with what was found: no unsure text, and none
// too short for its stretch, which is what a decoder invents for a noise.
func (e *Engine) fill(s *state, j *job, t *task, threads int, w asr.Window, samples []float32, words []asr.Piece, skips []asr.Skip, stats *asr.Stats) ([]asr.Piece, error) {
	alone := *t
	alone.once = true
	for _, skip := range slices.Backward(skips) {
		from, to := skip.Start-fillLead, skip.End+fillTail
		for _, sp := range w.Speech {
			a, b := sp.Seconds()
			if b <= skip.Start {
				from = max(from, b)
			}
			if a >= skip.End {
				to = min(to, a)
			}
		}
		part, at := w.Part(from, to)
		stats.Skipped++
		a, noSpeech, err := e.attempts(s, j, &alone, threads, samples[at:at+part.Len()], "", stats)
		if err != nil {
			return nil, err
		}
		if len(a.tokens) == 0 || a.failed() || noSpeech > t.opt.NoSpeechThreshold {
			continue
		}
		found, _, _, _ := e.read(part, a)
		if !asr.Fills(found, skip.End-skip.Start) {
			continue
		}
		for i := range found {
			found[i].NoSpeechProb = noSpeech
		}
		words = slices.Insert(words, skip.Before, found...)
	}
	return words, nil
}

// attempts decodes once, and again as long as the decode fails and something is left to
// try. It also returns the no-speech probability.
func (e *Engine) attempts(s *state, j *job, t *task, threads int, samples []float32, previous string, stats *asr.Stats) (attempt, float64, error) {
	req := request{
		language: t.language, prompt: e.prompt(t, previous), threads: threads,
		beam: min(max(t.opt.BeamSize, 1), maxDecoders), bestOf: 1, temperature: t.opt.Temperature,
	}
	if len(samples) < leastSamples {
		samples = append(append(make([]float32, 0, leastSamples), samples...), make([]float32, leastSamples-len(samples))...)
	}
	if e.opt.Context == ContextShort {
		req.audioContext = shortContext(len(samples))
	}
	decode := func(s *state) (attempt, error) {
		tokens, err := s.decode(j, req, samples)
		if err != nil {
			return attempt{}, err
		}
		a := e.assess(tokens)
		if a.looped {
			stats.Loops++
		}
		return a, nil
	}
	first := func() (attempt, error) {
		if req.temperature != 0 {
			return e.sample(j, &req, t.opt.BestOf, decode)
		}
		if req.audioContext == 0 && s.shortened {
			// 1500 is no multiple of 256 either: only a state that never had a shorter
			// context has nothing there
			full, err := e.weights.newState()
			if err != nil {
				return attempt{}, err
			}
			defer full.free()
			return decode(full)
		}
		return decode(s)
	}
	a, err := first()
	if err != nil {
		return a, 0, err
	}
	if req.audioContext != 0 && a.failed() {
		req.audioContext = 0
		stats.Retries++
		if a, err = first(); err != nil {
			return a, 0, err
		}
	}
	if len(a.tokens) == 0 {
		return a, 0, nil
	}
	var noSpeech float64
	if t.opt.Temperature == 0 { // otherwise s has decoded nothing
		if noSpeech, err = s.noSpeech(1); err != nil {
			return a, 0, err
		}
	}
	if !a.failed() || t.once || (noSpeech > t.opt.NoSpeechThreshold && a.avgLogProb < minLogProb) {
		return a, noSpeech, nil
	}
	bestOf := t.opt.BestOf
	if bestOf == 0 {
		bestOf = fallbackBestOf
	}
	for k := 1; a.failed() && req.temperature+temperatureStep <= 1+1e-6; k++ {
		req.temperature = t.opt.Temperature + float64(k)*temperatureStep
		stats.Fallbacks++
		b, err := e.sample(j, &req, bestOf, decode)
		if err != nil {
			return a, 0, err
		}
		if len(b.tokens) > 0 && (!b.failed() || b.better(a)) {
			a = b
		}
	}
	return a, noSpeech, nil
}

// shortContext is how many encoder positions a sound of so many samples needs; 0 is all.
func shortContext(samples int) int {
	positions := (samples*positionsPerSecond/audio.SampleRate + contextMargin + contextStep - 1) / contextStep * contextStep
	if positions >= allPositions {
		return 0
	}
	return positions
}

// sample draws n texts at the request's temperature and returns the most likely. The
// random numbers of libwhisper depend on what a state did before, so a new state is
// taken; it draws 8 texts at once, and one at a time after that.
func (e *Engine) sample(j *job, req *request, n int, decode func(*state) (attempt, error)) (attempt, error) {
	s, err := e.weights.newState()
	if err != nil {
		return attempt{}, err
	}
	defer s.free()
	n = max(n, 1)
	var best attempt
	for drawn := 0; drawn < n; {
		req.bestOf = 1
		if drawn == 0 {
			req.bestOf = min(n, maxDecoders)
		}
		a, err := decode(s)
		if err != nil {
			return best, err
		}
		if drawn == 0 || (len(a.tokens) > 0 && (len(best.tokens) == 0 || a.better(best))) {
			best = a
		}
		drawn += req.bestOf
	}
	return best, nil
}

// prompt puts the initial prompt and the text before the window together, as many of
// their last tokens as the model has room for.
func (e *Engine) prompt(t *task, previous string) []int32 {
	room := int(e.header.TextContext)/2 - 1
	initial := t.initial[max(0, len(t.initial)-room):]
	if previous == "" {
		return initial
	}
	before := e.weights.tokenize(previous)
	before = before[max(0, len(before)-(room-len(initial))):]
	return append(append(make([]int32, 0, len(initial)+len(before)), initial...), before...)
}

// assess joins a decode's text and measures the signs of failure.
func (e *Engine) assess(tokens []token) attempt {
	a := attempt{}
	var text strings.Builder
	var pieces []asr.Token
	for _, t := range tokens {
		if t.id < e.eot {
			s := e.weights.text(t.id)
			text.WriteString(s)
			pieces = append(pieces, asr.Token{Text: s})
		}
		a.avgLogProb += float64(t.logp)
	}
	a.text = text.String()
	if strings.TrimSpace(a.text) == "" {
		return attempt{}
	}
	a.tokens = tokens
	a.avgLogProb /= float64(len(tokens))
	a.compression = asr.CompressionRatio(a.text)
	_, a.looped = asr.Unloop(asr.Words(pieces))
	return a
}

// section is the text between two time marks, in seconds of the window.
type section struct {
	from, to float64
	tokens   []asr.Token
}

// read turns a decode into words with times of the file. skips is the speech that they
// pass over, covered where in the file the text ends, and ended whether the decoder said
// so by a time mark.
func (e *Engine) read(w asr.Window, a attempt) (words []asr.Piece, skips []asr.Skip, covered float64, ended bool) {
	var sections []section
	end := float64(w.Len()) / audio.SampleRate
	open := section{}
	for _, t := range a.tokens {
		switch {
		case t.id >= e.beg:
			at := min(float64(t.id-e.beg)*0.02, end)
			if len(open.tokens) > 0 {
				open.to = at
				sections = append(sections, open)
				ended = true
			}
			open = section{from: at}
		case t.id < e.eot:
			time := math.NaN()
			if t.dtw >= 0 && e.opt.AlignmentHeads != "" {
				time = w.Time(float64(t.dtw) * 0.01)
			}
			open.tokens = append(open.tokens, asr.Token{
				Text: e.weights.text(t.id), Probability: float64(t.p), LogProb: float64(t.logp), Time: time,
			})
			ended = false
		}
	}
	if len(open.tokens) > 0 {
		open.to = end
		sections = append(sections, open)
	}
	type passage struct {
		said     []asr.Piece
		tokens   []asr.Token
		from, to float64
		passed   []asr.Skip
	}
	var passages []passage
	var jumps int
	var passed float64
	for i, s := range sections {
		said := asr.Words(s.tokens)
		if len(said) == 0 {
			continue
		}
		if s.to-s.from < float64(len(said))*0.04 { // nobody speaks so fast: the mark is wrong
			s.to = end
			if i+1 < len(sections) {
				s.to = max(sections[i+1].from, s.to)
			}
		}
		from, to := w.Time(s.from), w.Time(s.to)
		if silent(w.Speech, from, to) {
			continue // said where nobody speaks: invented
		}
		p := passage{said, s.tokens, from, to, asr.Skipped(said, from, to, w.Speech)}
		for _, k := range p.passed {
			passed += k.End - k.Start
			jumps++
		}
		passages = append(passages, p)
	}
	for _, p := range passages {
		if jumps > 1 && passed > w.SpeechSeconds()/2 {
			p.passed = nil // not a text that jumped over sentences, but a sound with few words
		}
		first, from := 0, p.from
		for _, k := range append(p.passed, asr.Skip{Before: len(p.said), Start: p.to}) {
			asr.Align(p.said[first:k.Before], from, k.Start, w.Speech)
			first, from = k.Before, k.End
		}
		if e.opt.AlignmentHeads != "" && len(p.passed) == 0 {
			warp(p.said, p.tokens, p.to)
		}
		for _, k := range p.passed {
			k.Before += len(words)
			skips = append(skips, k)
		}
		words = append(words, p.said...)
		covered = p.to
	}
	return words, skips, covered, ended
}

// warp replaces aligned times by those of the tokens, where they are known.
func warp(words []asr.Piece, tokens []asr.Token, to float64) {
	timed := asr.Words(tokens)
	for i := range words {
		if math.IsNaN(timed[i].Start) {
			return
		}
	}
	for i := range words {
		words[i].Start, words[i].End = timed[i].Start, to
		if i > 0 {
			words[i-1].End = words[i].Start
		}
	}
}

// silent tells whether no speech lies within 0.2 s of a stretch of the file.
func silent(speech []audio.Span, from, to float64) bool {
	for _, s := range speech {
		if a, b := s.Seconds(); a < to+0.2 && b > from-0.2 {
			return false
		}
	}
	return true
}
