package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/spec"
)

// Each Commit and Discard has its event, in the order of the calls. A discarded
// utterance has no text; in a pause there is no utterance.
func TestCommitAndDiscardHaveEvents(t *testing.T) {
	p := demoPipeline(t)
	pcm := decoded(t, "../testdata/demo/short/en_00.flac")
	opt := Options{Options: otograph.Options{Optimize: new(true), EnableDiarize: new(false), EnableAudioEvents: new(false)}, Manual: true}
	s, err := Open(t.Context(), p, opt)
	require.NoError(t, err)
	speak := func() {
		require.NoError(t, s.Write(pcm.Samples(0, pcm.Len())))
		require.NoError(t, s.Write(make([]float32, 16000)))
	}
	speak()
	require.NoError(t, s.Commit())
	require.NoError(t, s.Commit())
	speak()
	require.NoError(t, s.Discard())
	opt.ASRLanguage = new("en")
	require.NoError(t, s.Change(opt))
	speak()
	require.NoError(t, s.Commit())
	res, err := s.Close()
	require.NoError(t, err)
	var marks []spec.LiveEvent
	texts := map[int]string{}
	var events []spec.LiveEvent
	for more := true; more; { // a loop that ends early loses no event
		more = false
		for e, err := range s.Events() {
			require.NoError(t, err)
			events, more = append(events, e), true
			break
		}
	}
	for _, e := range events {
		if e.Kind == spec.LiveCommitted || e.Kind == spec.LiveCleared {
			marks = append(marks, spec.LiveEvent{Kind: e.Kind, Utterance: e.Utterance})
		}
		if e.Kind == spec.LiveFinal {
			texts[e.Utterance] = e.Text
		}
	}
	assert.Equal(t, []spec.LiveEvent{{Kind: spec.LiveCommitted}, {Kind: spec.LiveCommitted, Utterance: -1}, {Kind: spec.LiveCleared, Utterance: 1}, {Kind: spec.LiveCommitted, Utterance: 2}}, marks)
	assert.Len(t, texts, 2)
	assert.NotEmpty(t, texts[0])
	assert.Equal(t, texts[0], texts[2])
	assert.Equal(t, "en", res.Language)
	require.ErrorIs(t, s.Change(opt), ErrClosed)
	opt.Silence = 20
	require.ErrorAs(t, s.Change(opt), new(*spec.OptionError))
}
