package whisper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// DetectLanguage decides for a language whose probability reaches sureLanguage.
// Without one, it decodes the speech in each plausible language and adds the
// text's mean log probability times textWeight, about the number of tokens of a
// short sentence.
const (
	sureLanguage      = 0.95
	plausibleLanguage = 0.03
	textWeight        = 8
)

// Up to this many seconds, a brief detection pads with one second of silence
// instead of up to 30 s; beyond, that saves little.
const mostBrief = 20

// DetectLanguage implements asr.LanguageDetector. It encodes the first window
// of speech, the middle one (in long recordings its beginning, briefly) and, if
// in doubt, the last one. A following transcription of the same speech uses the
// same passes. If each window is surely in one language, the answer is the
// language of most speech. If doubt remains, the answer is the language in
// which the decoded text is most likely. The answer is one of Languages and, if
// the model knows some of the given languages, one of these; an English-only
// model answers "en" with probability 1.
//
// A brief detection encodes short windows with little silence after them, which
// costs a tenth for a few seconds of speech, but serves no transcription. If
// its answer is not sure, the windows are encoded again in full.
func (e *Engine) DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Detection) (language string, probability float64, err error) {
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	if !e.header.Multilingual() {
		return "en", 1, nil
	}
	windows := e.listen(pcm, speech)
	early := e.packing.Opening > 0 && decode.Window{Speech: speech}.SpeechSeconds() > 4*e.packing.Max
	if early { // the first sentence cannot be decoded before the answer
		from, _ := windows[1].Speech[0].Seconds()
		windows[1] = windows[1].Part(from, from+passageSeconds)
	}
	first := windows[:min(len(windows), 2)]
	briefly := opt.Brief && !slices.ContainsFunc(first, func(w decode.Window) bool { return w.Len() > mostBrief*audio.SampleRate })
	if briefly {
		answers, err := e.firstPass(ctx, pcm, first, true)
		if err != nil {
			return "", 0, err
		}
		mean := e.mean(first, answers, opt.Among)
		if language = likeliest(mean, e.languages); mean[language] >= sureLanguage {
			return language, min(mean[language], 1), nil
		}
	}
	var answers []firstPass
	var mean map[string]float64
	for i, part := range [][]decode.Window{first[:1], first[1:], windows[len(first):]} {
		if len(part) == 0 {
			continue
		}
		more, err := e.firstPass(ctx, pcm, part, i == 1 && early)
		if err != nil {
			return "", 0, err
		}
		answers = append(answers, more...)
		mean = e.mean(windows, answers, opt.Among)
		if language = likeliest(mean, e.languages); i > 0 && mean[language] >= sureLanguage {
			break
		}
	}
	if language == "" {
		return "", 0, fmt.Errorf("whisper: the model returned no probability for any of %d languages: %w", len(e.languages), ErrDecode)
	}
	unsure := func(h firstPass) bool { _, p := h.likeliest(); return p < sureLanguage }
	if len(speech) > 0 && mean[language] < sureLanguage && slices.ContainsFunc(answers, unsure) {
		if mean, err = e.readLanguage(ctx, pcm, windows[:len(answers)], mean); err != nil {
			return "", 0, err
		}
		language = likeliest(mean, e.languages)
	}
	return language, min(mean[language], 1), nil
}

// mean returns the mean answer of windows, as shares of given languages.
func (e *Engine) mean(windows []decode.Window, answers []firstPass, among []string) map[string]float64 {
	mean := average(windows, answers)
	if len(among) > 0 {
		mean = shares(mean, asr.Among(e.languages, among))
	}
	return mean
}

// listen returns the windows to detect the language in, in order: first, middle
// and last. Without speech it returns the recording's beginning.
func (e *Engine) listen(pcm *audio.PCM, speech []audio.Span) []decode.Window {
	windows := decode.Sample(speech, pcm, e.packing)
	if len(speech) == 0 {
		return append(windows, decode.Window{})[:1] // the recording may have no samples: silence
	}
	return windows
}

// average returns the mean of the windows' answers, weighted by their speech.
func average(windows []decode.Window, answers []firstPass) map[string]float64 {
	mean := make(map[string]float64)
	var all float64
	for i, h := range answers {
		weight := (windows[i].SpeechSeconds() + 0.1) * (1.01 - h.noSpeech)
		all += weight
		for code, p := range h.languages {
			mean[code] += weight * p
		}
	}
	for code := range mean {
		mean[code] /= all
	}
	return mean
}

// shares returns the probabilities of the languages, as shares of their sum.
func shares(mean map[string]float64, among []string) map[string]float64 {
	var all float64
	for _, code := range among {
		all += mean[code]
	}
	out := make(map[string]float64)
	for _, code := range among {
		out[code] = mean[code] / max(all, math.SmallestNonzeroFloat64)
	}
	return out
}

// likeliest returns the first language of the greatest value; "" for none.
func likeliest(values map[string]float64, among []string) string {
	best := ""
	for _, code := range among {
		if v, ok := values[code]; ok && (best == "" || v > values[best]) {
			best = code
		}
	}
	return best
}

// readLanguage transcribes windows in each plausible language and weights the
// languages' probabilities by the texts' probabilities: the decoder finds a
// text in a wrong language less likely.
func (e *Engine) readLanguage(ctx context.Context, pcm *audio.PCM, windows []decode.Window, detected map[string]float64) (map[string]float64, error) {
	plausible := slices.DeleteFunc(slices.Clone(e.languages), func(code string) bool { return !(detected[code] >= plausibleLanguage) })
	if len(plausible) < 2 {
		return detected, nil
	}
	var jobs []*job
	for _, w := range windows {
		jobs = append(jobs, &job{pcm: pcm, window: w, rows: maxBeams, keep: true, plan: &languagePlan{languages: plausible}})
	}
	if err := e.decode(ctx, jobs, asr.Options{Parallel: e.threads}, func(int) {}); err != nil {
		return nil, err
	}
	eot, _ := e.cpu.ends()
	read := make(map[string]float64)
	var all float64
	for i, code := range plausible {
		var sum float64
		var tokens int
		for _, j := range jobs {
			for _, t := range j.plan.(*languagePlan).texts[i].tokens {
				if t.id < eot {
					sum, tokens = sum+float64(t.logp), tokens+1
				}
			}
		}
		if tokens > 0 {
			read[code] = detected[code] * math.Exp(textWeight*sum/float64(tokens))
			all += read[code]
		}
	}
	if all == 0 { // no text in any language
		return detected, nil
	}
	return shares(read, plausible), nil
}
