package whisper

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// joined returns clips as one recording, and the spans of their speech.
func joined(t *testing.T, list ...clip) (*audio.PCM, []audio.Span) {
	t.Helper()
	var samples []float32
	var speech []audio.Span
	for _, c := range list {
		heard := read(t, c.name)
		for _, s := range c.speech() {
			speech = append(speech, audio.Span{Start: len(samples) + s.Start, End: len(samples) + s.End})
		}
		samples = append(samples, heard.Samples(0, heard.Len())...)
	}
	return audio.FromSamples(samples), speech
}

func TestWindowsInTheirLanguages(t *testing.T) {
	e := openDemo(t)
	list := []clip{clips[1], clips[2], clips[4], clips[4]}
	pcm, speech := joined(t, list...)
	o := greedy()
	o.Languages = []string{"en", "es", "fr", "de"}
	tr, err := e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	require.Len(t, tr.Segments, len(list))
	for i, s := range tr.Segments {
		assert.Equal(t, []string{list[i].language, list[i].text}, []string{s.Language, s.Text})
	}

	o.Languages = nil
	tr, err = e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	for _, s := range tr.Segments {
		assert.Equal(t, "en", s.Language, "a given language is kept")
	}
	assert.Zero(t, tr.Stats.Asked)
}

func TestWindowIsDividedByLanguage(t *testing.T) {
	e := openDemo(t)
	pcm, speech := joined(t, clips[2], clips[7])
	windows := decode.Pack(speech, pcm, e.packing)
	require.Len(t, windows, 1)
	passages := []decode.Window{decode.Pack(speech[:1], pcm, e.packing)[0], decode.Pack(speech[1:], pcm, e.packing)[0]}
	o := greedy()
	o.NoSpeechThreshold = 0.6
	gate := &countedGate{t: t}
	o.Gate = gate
	task := &task{opt: o, language: "en", others: []string{"en", "es", "de"}, speech: speech}
	first := result{language: "en", sure: 0.5, unsure: [][]decode.Window{passages}}
	parts, err := e.divide(t.Context(), pcm, windows[0], &first, 3, task)
	require.NoError(t, err)
	require.Len(t, parts, 2)
	assert.Equal(t, []string{"en", "de"}, []string{parts[0].language, parts[1].language})
	assert.Equal(t, []string{clips[2].text, clips[7].text}, []string{strings.TrimSpace(parts[0].result.attempt.text), strings.TrimSpace(parts[1].result.attempt.text)})
	assert.Equal(t, speech, []audio.Span{parts[0].window.Speech[0], parts[1].window.Speech[0]})
	assert.Equal(t, 2, parts[0].result.stats.Asked)

	assert.GreaterOrEqual(t, gate.passed.Load(), int64(2), "for the detection, and for the text")
	assert.Zero(t, gate.inside.Load())

	gate.passed.Store(0)
	first.unsure, first.stats.Asked = [][]decode.Window{passages[:1], passages}, 0
	parts, err = e.divide(t.Context(), pcm, windows[0], &first, 3, task)
	require.NoError(t, err)
	assert.Nil(t, parts, "the passage is in the window's language: no further detection")
	assert.Equal(t, int64(1), gate.passed.Load(), "for the detection")
	for _, k := range e.cpu.stored { // other tests share the engine
		assert.NotEqual(t, pcm, k.pcm.Value(), "no window stays encoded")
	}
	assert.Equal(t, 1, first.stats.Asked)

	first.stats.Asked = 0
	parts, err = e.divide(t.Context(), pcm, windows[0], &first, 0, task)
	require.NoError(t, err)
	assert.Nil(t, parts)
	assert.Zero(t, first.stats.Asked, "no detection is left")
}

// All passages are checked if the window's language is not sure, one if its
// text is unlikely.
func TestPassagesOfUnclearLanguage(t *testing.T) {
	e := openWindows(t, buildModel(testHeader, say(0.0, " Alpha", 1.0)), 30, Options{})
	pcm, speech := far(1, 0, 6, 8, 14, 17, 23)
	w := decode.Pack(speech, pcm, e.packing)[0]
	said := func(logProbs ...float64) *result {
		r := &result{sure: 0.99}
		for i, p := range logProbs {
			at, _ := speech[i].Seconds()
			r.words = append(r.words, decode.Word{Word: asr.Word{Start: at + 1, End: at + 2, Tokens: 1}, LogProb: p})
		}
		return r
	}
	assert.Empty(t, e.unsure(pcm, w, said(-0.2, -0.4, -0.3)))
	rounds := e.unsure(pcm, w, said(-0.2, -0.9, -0.7))
	require.Len(t, rounds, 2)
	require.Len(t, rounds[0], 1)
	assert.Equal(t, speech[1], rounds[0][0].Speech[0])
	assert.Len(t, rounds[1], 3)
	r := said(-0.2, -0.4, -0.3)
	r.sure = 0.94
	assert.Empty(t, e.unsure(pcm, w, r), "a likely text in a likely language")
	r.sure = 0.85
	assert.Len(t, e.unsure(pcm, w, r), 1)
	r = said(-0.2)
	r.bare = []bare{{start: 8, end: 23}}
	assert.Len(t, e.unsure(pcm, w, r), 1)
	w.Speech = w.Speech[:1]
	assert.Empty(t, e.unsure(pcm, w, r), "one passage is the window")
}

func TestLanguagesOfMixedWindows(t *testing.T) {
	h := firstPass{languages: map[string]float64{"en": 0.02, "de": 0.96, "fr": 0.02}}
	assert.Equal(t, "de", h.otherThan("en"))
	assert.Empty(t, h.otherThan("de"))
	assert.Equal(t, "en", likeliest(h.languages, []string{"en", "fr"}))
	h.languages["de"] = 0.9
	assert.Empty(t, h.otherThan("en"), "not sure")

	e := openDemo(t)
	assert.Nil(t, e.others(nil))
	assert.Nil(t, e.others([]string{"en", "tlh"}), "one is no choice")
	assert.Equal(t, []string{"en", "es"}, e.others([]string{"es", "en", "tlh"}))
}

// A window that is surely in another language takes two searches: one that ends
// immediately and one in that language.
func TestPlanChangesTheLanguage(t *testing.T) {
	task := &task{opt: asr.DefaultOptions(), language: "en", others: []string{"de", "en"}}
	p := &textPlan{t: task, language: "en", others: task.others}
	r := p.next(nil)
	assert.Equal(t, []any{"en", task.others}, []any{r.language, r.others})
	r = p.next(&outcome{other: "de", languages: map[string]float64{"de": 0.99, "en": 0.01}})
	assert.Equal(t, "de", r.language)
	assert.Empty(t, r.others, "it is not asked again")
	assert.Nil(t, p.next(&outcome{attempt: attempt{text: "Guten Tag"}}))
	assert.Equal(t, []any{"de", 1.0, "Guten Tag"}, []any{p.spoken, p.sure, p.best.text})

	assert.NotNil(t, p.next(nil))
	assert.Nil(t, p.next(&outcome{languages: map[string]float64{"de": 0.4, "en": 0.6}}))
	assert.Equal(t, []any{"en", 0.6}, []any{p.spoken, p.sure})
}
