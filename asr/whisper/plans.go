package whisper

import (
	"slices"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

const (
	temperatureStep = 0.2
	// fallbackSamples is the texts drawn at each temperature, as published,
	// unless the caller samples and sets a number.
	fallbackSamples = 5
	// maxBeams is the largest beam size.
	maxBeams = 8
	// encoderSteps is the cost of an encoder pass, in decoder steps.
	encoderSteps = 128
)

// task holds the values that all windows of one transcription share.
type task struct {
	opt      asr.Options
	language string
	others   []string     // other languages that a window may be in
	speech   []audio.Span // of the whole recording
	initial  []int32      // tokens of the initial prompt
	names    []name       // among the hotwords
}

// request returns the first search of a window in the given language.
func (t *task) request(language string, prompt []int32) *request {
	return &request{
		language: language, prompt: prompt, translate: t.opt.Translate, beam: min(max(t.opt.BeamSize, 1), maxBeams),
		temperature: t.opt.Temperature, samples: t.opt.BestOf, quiet: t.quiet(), names: t.names,
	}
}

// quiet returns the no-speech probability above which a window is not decoded.
// At the published threshold or more, a window that is probably but not surely
// silent is decoded, as Whisper does; unlikely text is then discarded.
func (t *task) quiet() float64 {
	if t.opt.NoSpeechThreshold < unsureNoSpeech {
		return t.opt.NoSpeechThreshold
	}
	return max(t.opt.NoSpeechThreshold, sureNoSpeech)
}

// textPlan decodes a window in its language, or in another permitted and sure
// one, and again without a prompt that may have harmed the text.
type textPlan struct {
	v        vocabulary
	t        *task
	job      *job
	language string
	others   []string
	prompt   []int32

	best       *outcome
	thin       *textPlan // the decode with a part of the silence, if its text was doubtful
	spoken     string    // the language of the text
	sure       float64   // the probability that the window is in that language; 1 if detection is off
	unprompted int
}

func (p *textPlan) next(f *outcome) *request {
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
		if len(p.prompt) > 0 && doubtful(p.v, p.job.window, f.attempt) {
			p.unprompted++
			return p.t.request(p.spoken, nil)
		}
	case promptHarms(p.t.opt.InitialPrompt, p.best.attempt, f.attempt):
		p.best = f
	}
	return nil
}

func (p *textPlan) text() *outcome { return p.best }

// risingPlan samples texts at rising temperatures until one is not degenerate.
type risingPlan struct {
	t        *task
	language string
	prompt   []int32
	steps    int // decoder steps that are left

	temperature float64
	left        int
	best        *outcome
	tries       int
}

func (p *risingPlan) next(f *outcome) *request {
	if f == nil {
		p.best, p.tries, p.left, p.temperature = nil, 0, p.steps, p.t.opt.Temperature
	} else {
		p.tries++
		p.left -= f.steps
		if p.best == nil || len(p.best.tokens) == 0 || len(f.tokens) > 0 && f.better(p.best.attempt) {
			p.best = f
		}
		if !f.degenerate() || p.temperature+temperatureStep > 1+1e-9 || p.left <= 0 {
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

func (p *risingPlan) text() *outcome { return p.best }

// languagePlan decodes the beginning of a window in each language in turn.
type languagePlan struct {
	languages []string
	texts     []attempt
}

// languageTokens is the length of a text that shows its language.
const languageTokens = 64

func (p *languagePlan) next(f *outcome) *request {
	if f == nil {
		p.texts = nil
	} else {
		p.texts = append(p.texts, f.attempt)
	}
	if len(p.texts) == len(p.languages) {
		return nil
	}
	return &request{language: p.languages[len(p.texts)], beam: 1, quiet: unsureNoSpeech, most: languageTokens}
}

func (p *languagePlan) text() *outcome { return nil }

// A prompt steers the style of a text; no text may be lost by it. After an
// unexpected prompt, some models write nothing, a loop, or a few words. Such a
// window is decoded again without the prompt, and the better text is kept.
const (
	// doubtLogProb is the mean log probability below which a prompted text is
	// compared with an unprompted one.
	doubtLogProb = -0.25
	// fewerLetters is a prompted text's least share of unprompted letters.
	fewerLetters = 0.8
)

// prompt returns the initial prompt's last tokens, as many as have room.
func (e *Engine) prompt(t *task) []int32 {
	room := int(e.header.TextContext)/2 - 1
	return t.initial[max(0, len(t.initial)-room):]
}

// doubtful reports whether a prompt may have harmed a window's text: it is
// empty, failed or unlikely, or leaves speech without words.
func doubtful(v vocabulary, w decode.Window, a attempt) bool {
	if len(a.tokens) == 0 || a.failed() || a.avgLogProb < doubtLogProb {
		return true
	}
	words, skips, covered, _ := readText(v, w, a)
	after := w.Rest(covered + restSlack)
	return len(skips) > 0 || after.SpeechSeconds() >= restSeconds || !decode.Brisk(words, w.SpeechSeconds())
}

// promptHarms reports whether a window's text is worse with the prompt than
// without: empty, failed, much shorter, less likely, or words of the prompt in
// sound that has no likely text without it, such as music.
func promptHarms(prompt string, prompted, plain attempt) bool {
	if len(plain.tokens) == 0 || plain.failed() {
		foreign := func(word string) bool { return !strings.Contains(string(lettersOf(prompt)), string(lettersOf(word))) }
		repeated := prompted.avgLogProb < doubtLogProb && !slices.ContainsFunc(strings.Fields(prompted.text), foreign)
		return repeated || len(prompted.tokens) == 0 && len(plain.tokens) > 0
	}
	shorter := float64(len(lettersOf(prompted.text))) < fewerLetters*float64(len(lettersOf(plain.text)))
	return len(prompted.tokens) == 0 || prompted.failed() || shorter || plain.avgLogProb > prompted.avgLogProb
}
