package whisper

import (
	"context"
	"maps"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// If detection is confident, the window is decoded in that language. Otherwise,
// or if the text is improbable or short, each passage's language is detected
// and the window is split where they differ.
const (
	// doubtfulWindow is the probability of a window's language below which the
	// languages of its passages are detected even if its text is probable.
	doubtfulWindow = 0.9
	// passageSeconds is the longest passage, and surePassage the probability
	// from which its detected language counts.
	passageSeconds = 8
	surePassage    = 0.8
	// unlikelyPassage is the mean log probability per token below which a
	// passage may be in the wrong language. In a wrong language, published
	// models write at -0.5 to -1.1, in the right one mostly above -0.5.
	unlikelyPassage = -0.6
	// passageCut and passageFreeCut make passages end at long pauses.
	passageCut, passageFreeCut = 3.0, 2.0
	// passagesMore is the number of passages of a recording that may be encoded
	// in addition to one per window.
	passagesMore = 4
)

// others returns the languages that a window may be in: the given ones that the
// model supports; nil if they leave no choice.
func (e *Engine) others(given []string) []string {
	if len(given) == 0 || !e.header.Multilingual() {
		return nil
	}
	both := slices.DeleteFunc(slices.Clone(e.languages), func(code string) bool { return !slices.Contains(given, code) })
	if len(both) < 2 {
		return nil
	}
	return both
}

// likeliest returns the language with the greatest probability, or "".
func (h firstPass) likeliest() (language string, p float64) {
	language = likeliest(h.languages, slices.Sorted(maps.Keys(h.languages)))
	return language, h.languages[language]
}

// otherThan returns the language that a window is surely in; "" if that is the
// given language or if no language is sure.
func (h firstPass) otherThan(language string) string {
	if other, p := h.likeliest(); other != language && p >= sureLanguage {
		return other
	}
	return ""
}

// divide detects the languages of the passages of a window whose language is
// unclear, at most left of them, and decodes a window with several languages
// again, each part in one. nil means that the window stays as it is. It counts
// its work in the result of the window or of the first part.
func (e *Engine) divide(ctx context.Context, pcm *audio.PCM, w decode.Window, r *result, left int, t *task) (parts []part, err error) {
	defer e.cpu.forget(pcm, w) // the passages that became parts of longer ones
	for _, passages := range r.unsure {
		if len(passages) > left {
			break
		}
		left -= len(passages)
		r.stats.Asked += len(passages)
		if parts, err = e.parts(ctx, pcm, passages, r.language, t); err != nil {
			return nil, err
		}
		if parts == nil {
			break
		}
	}
	jobs := make([]*job, len(parts))
	for i, p := range parts {
		jobs[i] = e.textJob(pcm, p.window, textPlan{t: t, language: p.language, prompt: t.initial})
	}
	err = e.decode(ctx, jobs, t.opt, func(i int) { parts[i].result = e.conclude(jobs[i], t) })
	failed := slices.ContainsFunc(parts, func(p part) bool { return p.result.attempt.failed() })
	if failed || len(parts) == 0 || err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i].result.echoes = r.echoes
	}
	parts[0].result.stats.Add(r.stats)
	parts[0].result.stats.Windows--
	return parts, nil
}

// unsure returns the passages of a decoded window whose languages divide must
// detect, in rounds: all if the window's language is not sure or half of its
// speech has no text; if the text of a passage is unlikely, first the least
// likely one, and all if it is in another language; nil if there is no doubt.
func (e *Engine) unsure(pcm *audio.PCM, w decode.Window, r *result) (rounds [][]decode.Window) {
	packing := e.packing
	packing.Max, packing.Cut, packing.FreeCut = min(packing.Max, passageSeconds), passageCut, passageFreeCut
	passages := decode.Pack(w.Speech, pcm, packing)
	if len(passages) < 2 {
		return nil
	}
	var silent float64 // seconds of speech without text
	for _, b := range r.bare {
		silent += b.seconds()
	}
	if r.sure < doubtfulWindow || silent > w.SpeechSeconds()/2 {
		return [][]decode.Window{passages}
	}
	least, at := unlikelyPassage, -1
	for i, p := range passages {
		from, _ := p.Speech[0].Seconds()
		_, to := p.Speech[len(p.Speech)-1].Seconds()
		if text := within(r.words, from, to); len(text) > 0 && meanLogProb(text) < least {
			least, at = meanLogProb(text), i
		}
	}
	if at < 0 {
		return nil
	}
	return [][]decode.Window{passages[at : at+1], passages}
}

// part is a part of a window in one language.
type part struct {
	window   decode.Window
	language string
	result   result
}

// parts detects the languages of passages and joins neighbors of one. Each
// passage gets the most likely language among the given one and the languages of
// which some passage is sure. nil means that all passages are in the given language,
// which a pass over passages with little silence after them can show.
func (e *Engine) parts(ctx context.Context, pcm *audio.PCM, passages []decode.Window, language string, t *task) (list []part, err error) {
	sure, _, err := e.spoken(ctx, pcm, passages, language, true, t)
	if err != nil || len(sure) == 1 {
		return nil, err
	}
	sure, answers, err := e.spoken(ctx, pcm, passages, language, false, t)
	if err != nil || len(sure) == 1 {
		return nil, err
	}
	var speech []audio.Span
	for i, h := range answers {
		spoken := likeliest(h.languages, sure)
		speech = append(speech, passages[i].Speech...)
		if i+1 < len(answers) && likeliest(answers[i+1].languages, sure) == spoken {
			continue
		}
		for _, w := range decode.Pack(speech, pcm, e.packing) {
			list = append(list, part{window: w, language: spoken})
		}
		speech = nil
	}
	return list, nil
}

// spoken returns the answers for passages, and the given language and others
// that some passage is sure of.
func (e *Engine) spoken(ctx context.Context, pcm *audio.PCM, passages []decode.Window, language string, brief bool, t *task) (sure []string, answers []firstPass, err error) {
	leave, err := t.opt.Pass(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	if answers, err = e.firstPass(ctx, pcm, passages, brief); err != nil {
		return nil, nil, err
	}
	sure = []string{language}
	for i := range answers {
		answers[i].languages = shares(answers[i].languages, t.others)
		code, p := answers[i].likeliest()
		if p >= surePassage && answers[i].noSpeech <= unsureNoSpeech && !slices.Contains(sure, code) {
			sure = append(sure, code)
		}
	}
	return sure, answers, nil
}
