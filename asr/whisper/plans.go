package whisper

import (
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/decode"
)

const (
	temperatureStep = 0.2
	// fallbackSamples is how many texts are drawn at each temperature (as in the published
	// implementation), unless the caller samples as well and sets a number.
	fallbackSamples = 5
	// maxBeams is the widest beam that can be asked for.
	maxBeams = 8
	// encoderSteps is what an encoder pass costs, in steps of the decoder.
	encoderSteps = 128
)

// task is what all windows of one transcription share.
type task struct {
	opt      asr.Options
	language string
	others   []string     // languages that a window may be in instead
	speech   []audio.Span // of the whole recording
	initial  []int32      // tokens of the initial prompt
	hot      *hotwords
}

// request is the first search of every window of a task in a language.
func (t *task) request(language string, prompt []int32) *request {
	return &request{
		language: language, prompt: prompt, translate: t.opt.Translate, beam: min(max(t.opt.BeamSize, 1), maxBeams),
		temperature: t.opt.Temperature, samples: t.opt.BestOf, quiet: t.quiet(), hot: t.hot,
	}
}

// quiet returns the no-speech probability above which a window is not decoded. Where the
// caller asks for the published threshold or more, a window that the decoder takes for
// silence, but not surely, is decoded, as Whisper does; unsure text is discarded then.
func (t *task) quiet() float64 {
	if t.opt.NoSpeechThreshold < unsureNoSpeech {
		return t.opt.NoSpeechThreshold
	}
	return max(t.opt.NoSpeechThreshold, sureNoSpeech)
}

// textPlan decodes a window in its language, or in another of those it may be in if the
// model is sure of that one, and without its prompt again where that may have spoiled the
// text.
type textPlan struct {
	v        vocabulary
	t        *task
	window   decode.Window
	language string
	others   []string
	prompt   []int32

	best       *found
	spoken     string  // the language that the text is in
	sure       float64 // the probability that the window is in it; 1 where nobody asks
	unprompted int
}

func (p *textPlan) next(f *found) *request {
	switch {
	case f == nil:
		p.best, p.unprompted, p.spoken, p.sure = nil, 0, p.language, 1
		r := p.t.request(p.language, p.prompt)
		r.others = p.others
		return r
	case f.other != "":
		p.spoken = f.other
		return p.t.request(p.spoken, p.prompt)
	case p.best == nil:
		p.best = f
		if p.spoken == p.language && f.languages != nil {
			p.sure = f.languages[p.language]
		}
		if len(p.prompt) > 0 && doubtful(p.v, p.window, f.attempt) {
			p.unprompted++
			return p.t.request(p.spoken, nil)
		}
	case spoiled(p.best.attempt, f.attempt):
		p.best = f
	}
	return nil
}

func (p *textPlan) text() *found { return p.best }

// risingPlan samples texts at rising temperatures until one is not hopeless.
type risingPlan struct {
	t        *task
	language string
	prompt   []int32
	steps    int // of the decoder that it may take

	temperature float64
	left        int
	best        *found
	tries       int
}

func (p *risingPlan) next(f *found) *request {
	if f == nil {
		p.best, p.tries, p.left, p.temperature = nil, 0, p.steps, p.t.opt.Temperature
	} else {
		p.tries++
		p.left -= f.steps
		if p.best == nil || len(p.best.tokens) == 0 || len(f.tokens) > 0 && f.better(p.best.attempt) {
			p.best = f
		}
		if !f.hopeless() || p.temperature+temperatureStep > 1+1e-9 || p.left <= 0 {
			return nil
		}
	}
	p.temperature += temperatureStep
	r := p.t.request(p.language, p.prompt)
	r.temperature, r.samples = p.temperature, fallbackSamples
	if p.t.opt.Temperature > 0 && p.t.opt.BestOf > 0 {
		r.samples = p.t.opt.BestOf
	}
	return r
}

func (p *risingPlan) text() *found { return p.best }

// languagePlan writes the beginning of a window in one language after the other.
type languagePlan struct {
	languages []string
	said      []attempt
}

// languageTokens is the length of a text that shows whether its language is right.
const languageTokens = 64

func (p *languagePlan) next(f *found) *request {
	if f == nil {
		p.said = nil
	} else {
		p.said = append(p.said, f.attempt)
	}
	if len(p.said) == len(p.languages) {
		return nil
	}
	return &request{language: p.languages[len(p.said)], beam: 1, quiet: unsureNoSpeech, most: languageTokens}
}

func (p *languagePlan) text() *found { return nil }
