package whisper

import (
	"math"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/decode"
)

// The signs of a failed decode and what is tried then, as the Whisper paper has them
// (Radford et al. 2022, section 4.5): too repetitive or too unsure a text is decoded
// again by sampling, at rising temperatures.
const (
	maxCompression = 2.4
	minLogProb     = -1.0
	// unsureNoSpeech is the no-speech probability above which a text less likely
	// than minLogProb is discarded, whatever the caller's threshold.
	unsureNoSpeech  = 0.6
	temperatureStep = 0.2
	// fallbackBestOf is how many samples a fallback draws (as the published
	// implementation does) unless the caller samples as well and sets a number.
	fallbackBestOf = 5
	// maxDecoders is libwhisper's limit of concurrent beams or samples.
	maxDecoders = 8
)

const (
	// positions of the encoder in a second of sound, and in its whole context
	positionsPerSecond, allPositions = 50, 1500
	// contextMargin is added to a window's length, in positions, when the
	// encoder's context is cut to it; the sum is rounded up to a multiple of
	// contextStep. This is required: libwhisper computes flash attention over a
	// multiple of 256 positions without a mask, so with any other number the
	// decoder would see the remains of an earlier window, and the text would
	// depend on them.
	contextMargin, contextStep = 64, 256
	// leastSamples is the shortest sound given to libwhisper, which ignores what is
	// shorter than 0.1 s; silence is appended up to here.
	leastSamples = audio.SampleRate / 2
	// restSeconds is how much speech must be left after the text's last time mark for
	// that rest to be decoded, and restSlack how far before the end of the speech a time
	// mark may stand without that.
	restSeconds, restSlack = 1.0, 0.2
)

// task is what all windows of one transcription share.
type task struct {
	opt      asr.Options
	language string
	speech   []audio.Span // of the whole recording
	initial  []int32      // tokens of the initial prompt
	hot      *hotwords
	once     bool // whether nothing is repaired
}

// attempt is one decode of a window with what is known about it.
type attempt struct {
	tokens      []token
	text        string
	avgLogProb  float64
	compression float64
	looped      bool
	temperature float64
}

func (a attempt) failed() bool {
	return len(a.tokens) > 0 && (a.looped || a.compression > maxCompression || a.avgLogProb < minLogProb)
}

// better reports whether a is preferable to b when both failed.
func (a attempt) better(b attempt) bool {
	if bad, worse := a.looped || a.compression > maxCompression, b.looped || b.compression > maxCompression; bad != worse {
		return !bad
	}
	return a.avgLogProb > b.avgLogProb
}

// result holds what is known about a window after its first pass, and after its
// repair.
type result struct {
	words    []decode.Piece
	text     string // for the prompt of the window after
	stats    asr.Stats
	attempt  attempt
	noSpeech float64 // the probability of no speech
	bare     []bare  // the speech that the text leaves without words
}

// window decodes one window in a single encoder pass with a number of threads;
// samples are its sound and are not modified. previous is the text before it,
// "" without.
func (e *Engine) window(s *state, j *job, t *task, threads int, w decode.Window, samples []float32, previous string) (result, error) {
	var r result
	var err error
	r.attempt, r.noSpeech, err = e.search(s, j, t, threads, samples, previous, &r.stats)
	if err == nil && t.prompted(previous) && !t.once {
		err = e.unprompted(s, j, t, threads, w, samples, &r)
	}
	r.stats.Windows = 1
	r.stats.EncoderPasses, r.stats.DecoderSteps, _ = j.work()
	if err == nil {
		e.settle(&r, t, w)
	}
	return r, err
}

// settle reads the words of a window's decode, unless they are discarded.
func (e *Engine) settle(r *result, t *task, w decode.Window) {
	r.words, r.bare, r.text = nil, nil, ""
	a := r.attempt
	if len(a.tokens) == 0 {
		return
	}
	if r.noSpeech > t.opt.NoSpeechThreshold || r.noSpeech > unsureNoSpeech && a.avgLogProb < minLogProb {
		r.stats.Discarded++
		return
	}
	words, skips, covered, ended := e.read(w, a)
	for i := range words {
		words[i].NoSpeechProb = r.noSpeech
	}
	r.words, r.text = words, a.text
	if a.failed() || r.noSpeech > unsureNoSpeech {
		return // its gaps say nothing
	}
	for _, k := range skips {
		r.bare = append(r.bare, bare{before: k.Before, start: k.Start, end: k.End})
	}
	if after := w.Rest(covered + restSlack); ended && after.SpeechSeconds() >= restSeconds {
		_, end := w.Speech[len(w.Speech)-1].Seconds()
		r.bare = append(r.bare, bare{before: len(words), start: covered, end: end, rest: true})
	}
}

// request is what every decode of a task asks for.
func (e *Engine) request(t *task, threads int, previous string) request {
	return request{
		language: t.language, prompt: e.prompt(t, previous), threads: threads,
		beam: min(max(t.opt.BeamSize, 1), maxDecoders), bestOf: 1, temperature: t.opt.Temperature, translate: t.opt.Translate,
	}
}

// audible returns samples, followed by silence if they are too short for
// libwhisper.
func audible(samples []float32) []float32 {
	if len(samples) >= leastSamples {
		return samples
	}
	return append(append(make([]float32, 0, leastSamples), samples...), make([]float32, leastSamples-len(samples))...)
}

// search decodes once, and returns the no-speech probability too. Only a task that is
// never repaired decodes a second time, with the whole context, if the first fails.
func (e *Engine) search(s *state, j *job, t *task, threads int, samples []float32, previous string, stats *asr.Stats) (attempt, float64, error) {
	req, samples := e.request(t, threads, previous), audible(samples)
	if e.opt.Context == ContextShort {
		req.audioContext = shortContext(len(samples))
	}
	first := func() (attempt, float64, error) {
		if req.temperature != 0 {
			return e.sample(j, &req, t.opt.BestOf, samples, stats)
		}
		if req.audioContext == 0 && s.shortened {
			// 1500 is not a multiple of 256 either: only a state that never had
			// a shorter context has nothing there
			full, err := e.weights.newState()
			if err != nil {
				return attempt{}, 0, err
			}
			defer full.free()
			return e.judged(full, j, req, samples, stats)
		}
		return e.judged(s, j, req, samples, stats)
	}
	a, noSpeech, err := first()
	if err != nil {
		return a, 0, err
	}
	if t.once && req.audioContext != 0 && a.failed() {
		req.audioContext = 0
		stats.Retries++
		return first()
	}
	return a, noSpeech, nil
}

// judged is attempt with the window's no-speech probability, 0 without a text.
func (e *Engine) judged(s *state, j *job, req request, samples []float32, stats *asr.Stats) (attempt, float64, error) {
	a, err := e.attempt(s, j, req, samples, stats)
	if err != nil || len(a.tokens) == 0 {
		return a, 0, err
	}
	noSpeech, err := s.noSpeech(1)
	return a, noSpeech, err
}

// again decodes a window whose text failed by sampling, at rising temperatures until a
// text serves, in one encoder pass. A model whose context was cut searches with the
// whole of it first.
func (e *Engine) again(j *job, t *task, threads int, samples []float32, previous string, stats *asr.Stats) (attempt, error) {
	req := e.request(t, threads, previous)
	req.temperatureStep = temperatureStep
	req.bestOf = fallbackBestOf
	if t.opt.Temperature > 0 && t.opt.BestOf > 0 {
		req.bestOf = min(t.opt.BestOf, maxDecoders)
	}
	searched := e.opt.Context == ContextShort
	if !searched {
		req.temperature += temperatureStep
	}
	// a new state: libwhisper's random numbers depend on what a state did before
	s, err := e.weights.newState()
	if err != nil {
		return attempt{}, err
	}
	defer s.free()
	_, _, before := j.work()
	a, err := e.attempt(s, j, req, audible(samples), stats)
	_, _, after := j.work()
	stats.Fallbacks += after - before
	a.temperature = req.temperature + req.temperatureStep*float64(max(after-before-1, 0))
	if searched && after > before {
		stats.Fallbacks--
		stats.Retries++
	}
	return a, err
}

// attempt decodes and assesses the text.
func (e *Engine) attempt(s *state, j *job, req request, samples []float32, stats *asr.Stats) (attempt, error) {
	tokens, err := s.decode(j, req, samples)
	if err != nil {
		return attempt{}, err
	}
	a := e.assess(tokens)
	a.temperature = req.temperature
	if a.looped {
		stats.Loops++
	}
	return a, nil
}

// shortContext returns how many encoder positions a number of samples needs; 0
// is all.
func shortContext(samples int) int {
	positions := (samples*positionsPerSecond/audio.SampleRate + contextMargin + contextStep - 1) / contextStep * contextStep
	if positions >= allPositions {
		return 0
	}
	return positions
}

// sample draws n texts at the request's temperature and returns the most
// likely, with the window's no-speech probability, which does not depend on the
// temperature. The random numbers of libwhisper depend on what a state did
// before, so a new state is taken; it draws 8 texts together, and one at a time
// after that.
func (e *Engine) sample(j *job, req *request, n int, samples []float32, stats *asr.Stats) (attempt, float64, error) {
	s, err := e.weights.newState()
	if err != nil {
		return attempt{}, 0, err
	}
	defer s.free()
	n = max(n, 1)
	var best attempt
	for drawn := 0; drawn < n; {
		req.bestOf = 1
		if drawn == 0 {
			req.bestOf = min(n, maxDecoders)
		}
		a, err := e.attempt(s, j, *req, samples, stats)
		if err != nil {
			return best, 0, err
		}
		if drawn == 0 || (len(a.tokens) > 0 && (len(best.tokens) == 0 || a.better(best))) {
			best = a
		}
		drawn += req.bestOf
	}
	if len(best.tokens) == 0 {
		return best, 0, nil
	}
	noSpeech, err := s.noSpeech(1)
	return best, noSpeech, err
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
	var pieces []decode.Token
	for _, t := range tokens {
		if t.id < e.eot {
			s := e.weights.text(t.id)
			text.WriteString(s)
			pieces = append(pieces, decode.Token{Text: s})
		}
		a.avgLogProb += float64(t.logp)
	}
	a.text = text.String()
	if strings.TrimSpace(a.text) == "" {
		return attempt{}
	}
	a.tokens = tokens
	a.avgLogProb /= float64(len(tokens))
	a.compression = decode.CompressionRatio(a.text)
	_, a.looped = decode.Unloop(decode.Words(pieces))
	return a
}

// section is the text between two time marks, in seconds of the window.
type section struct {
	from, to float64
	tokens   []decode.Token
}

// read turns a decode into words with times of the file. skips is the speech that they
// pass over, covered where in the file the text ends, and ended whether the decoder said
// so by a time mark.
func (e *Engine) read(w decode.Window, a attempt) (words []decode.Piece, skips []decode.Skip, covered float64, ended bool) {
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
			open.tokens = append(open.tokens, decode.Token{
				Text: e.weights.text(t.id), Probability: float64(t.p), LogProb: float64(t.logp), Time: time, Seek: w.Time(0), ID: t.id,
			})
			ended = false
		}
	}
	if len(open.tokens) > 0 {
		open.to = end
		sections = append(sections, open)
	}
	type passage struct {
		said     []decode.Piece
		tokens   []decode.Token
		from, to float64
		passed   []decode.Skip
	}
	var passages []passage
	var jumps int
	var passed float64
	for i, s := range sections {
		said := decode.Words(s.tokens)
		if len(said) == 0 {
			continue
		}
		if s.to-s.from < float64(len(said))*0.04 { // too fast for speech: the mark is wrong
			s.to = end
			if i+1 < len(sections) {
				s.to = max(sections[i+1].from, s.to)
			}
		}
		from, to := w.Time(s.from), w.Time(s.to)
		if silent(w.Speech, from, to) {
			continue // text where there is no speech: invented
		}
		p := passage{said, s.tokens, from, to, decode.Skipped(said, from, to, w.Speech)}
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
		for _, k := range append(p.passed, decode.Skip{Before: len(p.said), Start: p.to}) {
			decode.Align(p.said[first:k.Before], from, k.Start, w.Speech)
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
	for i := range words {
		words[i].Temperature = a.temperature
	}
	return words, skips, covered, ended
}

// warp replaces aligned times by those of the tokens, where they are known.
func warp(words []decode.Piece, tokens []decode.Token, to float64) {
	timed := decode.Words(tokens)
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

// silent reports whether no speech lies within 0.2 s of a stretch of the file.
func silent(speech []audio.Span, from, to float64) bool {
	for _, s := range speech {
		if a, b := s.Seconds(); a < to+0.2 && b > from-0.2 {
			return false
		}
	}
	return true
}
