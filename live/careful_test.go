package live

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// bare returns a session without models.
func bare(opt Options) *Session {
	s := &Session{opt: opt}
	s.more = sync.NewCond(&s.mu)
	return s
}

// A careful session shows words when three successive recognitions agree on
// them, other sessions when two do.
func TestCarefulSessionsNeedThreeAgreements(t *testing.T) {
	for careful, want := range map[bool][]string{false: {"we", "we are", "we are here to"}, true: {"we", "we are"}} {
		s, u := bare(Options{Careful: careful}), &utterance{}
		for i, text := range []string{"we", "we arc", "we are hear", "we are here to", "we are here to stay"} {
			s.show(u, text, audio.Span{End: i * sketchEvery}, false)
		}
		var shown []string
		for _, e := range s.events {
			shown = append(shown, e.Text)
		}
		assert.Equal(t, want, shown, careful)
	}
}

// If a shown word is revised, the text continues to grow; in a pause one
// recognition is enough.
func TestTextGrowsAfterARevision(t *testing.T) {
	s, u := bare(Options{}), &utterance{}
	for i, text := range []string{"I scream", "I scream at", "Ice cream at the", "Ice cream at the beach.", "Ice cream at the beach today."} {
		s.show(u, text, audio.Span{End: i * sketchEvery}, i == 4)
	}
	var shown []string
	for _, e := range s.events {
		shown = append(shown, e.Text)
	}
	assert.Equal(t, []string{"I scream", "I scream at the", "I scream at the beach today"}, shown)
}

// The last word of a text needs a third recognition if two have nearly the same
// sound; and a text that loops is not shown.
func TestLastWordsAndLoops(t *testing.T) {
	s, u := bare(Options{}), &utterance{}
	idle := sketchIdle[spec.TierOptimized]
	assert.Less(t, idle, sameSound)
	assert.GreaterOrEqual(t, sketchIdle[spec.TierStandard], sameSound)
	for i, text := range []string{
		"dig trench", "dig trench", "dig trenches", "dig trenches", "dig trenches", "dig trenches in", "dig trenches in the",
		"dig" + strings.Repeat(" no", 12), "dig" + strings.Repeat(" no", 14), "dig trenches in the field",
	} {
		s.show(u, text, audio.Span{End: i * idle}, false)
	}
	var shown []string
	for _, e := range s.events {
		shown = append(shown, e.Text)
	}
	assert.Equal(t, []string{"dig", "dig trenches", "dig trenches in", "dig trenches in the"}, shown)
}

// A pause is recognized once, however long it is, and drops nothing.
func TestPauseIsRecognizedOnce(t *testing.T) {
	s, u := bare(Options{}), &utterance{}
	s.work = &client{s: &scheduler{}} // without workers
	recognized := func(seconds float64, resting bool) bool {
		s.at = int(seconds * audio.SampleRate)
		s.sketchNext(u, resting, sketchIdle[spec.TierStandard])
		n := len(s.work.queues[partials])
		s.work.queues[partials] = nil
		return n > 0
	}
	assert.False(t, recognized(0.3, true))
	assert.True(t, recognized(0.6, false))
	assert.False(t, recognized(0.7, false))
	assert.True(t, recognized(0.8, true), "a pause begins")
	assert.False(t, recognized(9, true))
	assert.False(t, recognized(9.25, false))
	assert.True(t, recognized(9.31, false), "the machine is idle")
	s.work.s.running = 1
	assert.False(t, recognized(9.65, false))
	assert.True(t, recognized(9.72, false))
	assert.Zero(t, s.dropped.Load())
}

// Partials that were due but not made are counted once, also in an utterance
// without any Partial.
func TestSkippedPartialsAreCounted(t *testing.T) {
	s, u := bare(Options{}), &utterance{start: 1000}
	for seconds, want := range map[float64]int{0.4: 0, 0.5: 1, 0.89: 1, 0.91: 2, 2.11: 5} {
		s.at = u.start + int(seconds*audio.SampleRate)
		assert.Equal(t, want, s.due(u, sketchEvery), seconds)
	}
	u.sketched = s.at
	assert.Zero(t, s.due(u, sketchEvery))
	s.dropped.Add(3)
	for _, kind := range []spec.LiveKind{spec.LiveSound, spec.LivePartial, spec.LiveFinal} {
		s.emit(Event{Kind: kind})
	}
	assert.Equal(t, []int{0, 3, 0}, []int{s.events[0].Dropped, s.events[1].Dropped, s.events[2].Dropped})
}
