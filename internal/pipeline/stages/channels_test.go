package stages

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/spec"
)

// A channel whose hold music was detected as speech is not a speaker, and music
// between the sentences of another channel is not assigned to that speaker.
func TestChannelsWithoutText(t *testing.T) {
	second := func(from, to int) audio.Span {
		return audio.Span{Start: from * audio.SampleRate, End: to * audio.SampleRate}
	}
	channel := func(n int, spans ...audio.Span) Side { return Side{n, &Speech{Spans: spans}} }
	said := &Transcription{
		Transcript: &asr.Transcript{Segments: []asr.Segment{{Start: 1.1, End: 2}, {Start: 3, End: 4}, {Start: 7, End: 8}}},
		Speakers:   []int{1, 2, 1},
	}
	sides := []Side{
		channel(1, second(0, 60)),
		channel(0, second(1, 2), second(4, 5), second(7, 8)),
		channel(2, second(6, 7)),
	}
	out := WithText(sides, said)
	assert.Equal(t, []Side{channel(0, second(1, 2), second(7, 8)), channel(2, second(6, 7))}, out)
	assert.Equal(t, []int{0, 1, 0}, said.Speakers, "by their new numbers")
	assert.Len(t, sides[1].Speech.Spans, 3, "the detected speech is unchanged")
	assert.Empty(t, WithText(sides[:1], &Transcription{Transcript: &asr.Transcript{}}))
}

// The segments of all sides are ordered by time, each with its side, and their
// work counts are added.
func TestSidesAreJoinedByTime(t *testing.T) {
	side := func(uncorrected string, windows int, starts ...float64) *Transcription {
		text := &asr.Transcript{Stats: asr.Stats{Windows: windows}}
		for _, s := range starts {
			text.Segments = append(text.Segments, asr.Segment{Start: s, End: s + 1})
		}
		return &Transcription{Transcript: text, Uncorrected: uncorrected, Cascade: spec.CascadeStats{Segments: len(starts)}}
	}
	all := JoinTranscriptions(Language{Code: "en", Probability: 1}, []*Transcription{side("", 2, 0, 4), side("broken", 3, 2, 6)})
	var starts []float64
	for _, s := range all.Transcript.Segments {
		starts = append(starts, s.Start)
	}
	assert.Equal(t, []float64{0, 2, 4, 6}, starts)
	assert.Equal(t, []int{0, 1, 0, 1}, all.Speakers)
	assert.Equal(t, 5, all.Transcript.Stats.Windows)
	assert.Equal(t, 4, all.Cascade.Segments)
	assert.Equal(t, "broken", all.Uncorrected)
	assert.Equal(t, "en", all.Transcript.Language)
	assert.NotNil(t, JoinTranscriptions(Language{}, nil).Speakers, "where nobody speaks")
}

// Each side is one speaker, who speaks in that side's speech.
func TestEachSideIsOneSpeaker(t *testing.T) {
	side := func(channel, from, to int) Side {
		return Side{channel, &Speech{Spans: []audio.Span{{Start: from * audio.SampleRate, End: to * audio.SampleRate}}}}
	}
	voice := func(x float32) *diarize.Result {
		return &diarize.Result{Speakers: []diarize.Speaker{{Embedding: []float32{x}, Segments: 1}}}
	}
	all := sideVoices([]Side{side(1, 3, 5), side(0, 1, 2)}, []*diarize.Result{voice(1), voice(2)})
	assert.Equal(t, []diarize.Turn{{Start: 1, End: 2, Speaker: 1}, {Start: 3, End: 5, Speaker: 0}}, all.Turns)
	assert.Equal(t, []diarize.Speaker{{Embedding: []float32{1}, Segments: 1}, {Embedding: []float32{2}, Segments: 1}}, all.Speakers)
}
