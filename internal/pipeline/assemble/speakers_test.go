package assemble

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/pipeline/stages"
)

func words(start float64, texts ...string) []asr.Word {
	var out []asr.Word
	for i, t := range texts {
		out = append(out, asr.Word{Text: t, Start: start + float64(i)*0.5, End: start + float64(i)*0.5 + 0.4, Probability: 1})
	}
	return out
}

func TestAssignSpeakers(t *testing.T) {
	turns := []diarize.Turn{{Start: 0, End: 2, Speaker: 0}, {Start: 2, End: 4, Speaker: 1}, {Start: 6, End: 8, Speaker: 0}}
	type want struct {
		start, end float64
		text       string
		speaker    int
	}
	tests := []struct {
		name string
		in   asr.Segment
		want []want
	}{
		{"inside one turn", asr.Segment{Start: 0.1, End: 1.9, Text: "One two."}, []want{{0.1, 1.9, "One two.", 0}}},
		{"the speaker of most of it wins", asr.Segment{Start: 1.5, End: 3.5, Text: "One two."}, []want{{1.5, 3.5, "One two.", 1}}},
		{"nearest turn before", asr.Segment{Start: 4.2, End: 4.5, Text: "Mm."}, []want{{4.2, 4.5, "Mm.", 1}}},
		{"nearest turn after", asr.Segment{Start: 5.5, End: 5.9, Text: "Mm."}, []want{{5.5, 5.9, "Mm.", 0}}},
		{"behind everything", asr.Segment{Start: 9, End: 9.5, Text: "Mm."}, []want{{9, 9.5, "Mm.", 0}}},
		{
			"split at the word border, text unchanged",
			asr.Segment{Start: 1, End: 3, Text: "Hello  there, good morning!", Words: words(1, "Hello", "there,", "good", "morning!")},
			[]want{{1, 1.9, "Hello  there,", 0}, {2, 3, "good morning!", 1}},
		},
		{
			"a single word at the edge does not split",
			asr.Segment{Start: 1.5, End: 3.5, Text: "so good to see", Words: words(1.5, "so", "good", "to", "see")},
			[]want{{1.5, 3.5, "so good to see", 1}},
		},
		{
			"nor do two quick words",
			asr.Segment{Start: 1.5, End: 3.5, Text: "I bought the car", Words: []asr.Word{
				{Text: "I", Start: 1.5, End: 1.6}, {Text: "bought", Start: 1.6, End: 2}, {Text: "the", Start: 2.1, End: 2.2}, {Text: "car", Start: 2.3, End: 3.5},
			}},
			[]want{{1.5, 3.5, "I bought the car", 1}},
		},
		{
			"a one-word sentence does",
			asr.Segment{Start: 1.5, End: 3.5, Text: "Yes. Good to see", Words: words(1.5, "Yes.", "Good", "to", "see")},
			[]want{{1.5, 1.9, "Yes.", 0}, {2, 3.5, "Good to see", 1}},
		},
		{
			"Chinese without spaces",
			asr.Segment{Start: 1, End: 3, Text: "你好早上", Words: words(1, "你", "好", "早", "上")},
			[]want{{1, 1.9, "你好", 0}, {2, 3, "早上", 1}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []want
			for _, s := range assignSpeakers([]asr.Segment{tt.in}, turns) {
				got = append(got, want{s.Start, s.End, s.Text, s.speaker})
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestAssignSpeakersWithoutTurns(t *testing.T) {
	got := assignSpeakers([]asr.Segment{{Start: 1, End: 2, Text: "a"}}, nil)
	assert.Equal(t, 0, got[0].speaker)
}

// TestSliversKeepTheSpeaker: a sliver of a word inside a sentence belongs to
// the speaker before it; a sliver after a sentence is a separate segment.
func TestSliversKeepTheSpeaker(t *testing.T) {
	turns := []diarize.Turn{{Start: 0, End: 2, Speaker: 0}, {Start: 3.4, End: 6, Speaker: 1}}
	for text, want := range map[string]int{"You do keep doing": 0, "You do.": 1} {
		rest := asr.Segment{Start: 3.5, End: 3.52, Text: "That.", Words: []asr.Word{{Text: "That.", Start: 3.5, End: 3.52}}}
		got := assignSpeakers([]asr.Segment{{Start: 0.5, End: 1.9, Text: text}, rest}, turns)
		assert.Equal(t, want, got[1].speaker, text)
	}
}

// TestOneWordKeepsTheSpeaker: one word in lower case after a pause inside a clause
// belongs to the speaker before it; an answer does not.
func TestOneWordKeepsTheSpeaker(t *testing.T) {
	turns := []diarize.Turn{{Start: 0, End: 2, Speaker: 0}, {Start: 2.9, End: 6, Speaker: 1}}
	at := func(start, end float64, text string) asr.Segment {
		s := asr.Segment{Start: start, End: end, Text: text}
		for _, w := range strings.Fields(text) {
			s.Words = append(s.Words, asr.Word{Text: w, Start: start, End: end})
		}
		return s
	}
	for _, c := range []struct {
		before string
		next   asr.Segment
		want   int
	}{
		{"we offer with", at(3, 3.8, "the"), 0},
		{"we offer with", at(3, 3.8, "Right."), 1},
		{"we offer with", at(3, 3.8, "the car."), 1},
		{"we offer it.", at(3, 3.8, "Right."), 1},
		{"we offer with", at(3.6, 3.9, "the"), 1},
	} {
		got := assignSpeakers([]asr.Segment{at(0.5, 2, c.before), c.next}, turns)
		assert.Equal(t, c.want, got[len(got)-1].speaker, c.next.Text)
	}
}

// TestTurnIndexFindsLongTurns: a word after shorter turns belongs to a long turn
// that began before them and continues.
func TestTurnIndexFindsLongTurns(t *testing.T) {
	x := newTurnIndex([]diarize.Turn{{Start: 0, End: 10, Speaker: 1}, {Start: 1, End: 2, Speaker: 0}, {Start: 3, End: 4, Speaker: 0}})
	assert.Equal(t, 1, x.speaker(5, 6))
	assert.Equal(t, 1, x.speaker(11, 12), "the nearest turn is the one with the latest end")
	assert.Equal(t, 1, x.speaker(1, 2), "a tie goes to the earlier turn")
}

// TestWordsInOverlappingSpeech: a word is overlapped if two speakers talk
// during half of it.
func TestWordsInOverlappingSpeech(t *testing.T) {
	turns := []diarize.Turn{{Start: 0, End: 5, Speaker: 0}, {Start: 2, End: 3, Speaker: 1}, {Start: 2.5, End: 4, Speaker: 2}, {Start: 5, End: 8, Speaker: 1}, {Start: 7, End: 9, Speaker: 0}}
	both := newCrowd(turns)
	assert.Equal(t, crowd{{2, 4}, {7, 8}}, both)
	for _, c := range []struct {
		start, end float64
		want       bool
	}{{0, 1, false}, {1.5, 2, false}, {1.5, 2.5, true}, {1.4, 2.4, false}, {3, 3.5, true}, {4, 4.5, false}, {4.9, 5.1, false}, {7.5, 8.5, true}, {2.5, 2.5, false}, {9, 10, false}} {
		assert.Equal(t, c.want, both.covers(c.start, c.end), "%g to %g", c.start, c.end)
	}
	assert.False(t, newCrowd(nil).covers(0, 1))

	said := []asr.Segment{{Start: 1.5, End: 3, Text: "a b c", Words: words(1.5, "a", "b", "c")}} // at 1.5, 2 and 2.5
	f := &stages.Findings{Transcription: &stages.Transcription{Transcript: &asr.Transcript{Segments: said}}, Speakers: &diarize.Result{Turns: turns, Exclusive: turns[:1]}}
	var marked []bool
	for _, w := range Segments(f, clock(100))[0].Words {
		marked = append(marked, w.Overlapped)
	}
	assert.Equal(t, []bool{false, true, true}, marked)
}

// A voice without a number yet, as in live sessions, has no name, also where it
// shares a stretch with others.
func TestVoiceWithoutANumber(t *testing.T) {
	turns := []diarize.Turn{{Start: 0, End: 3, Speaker: 0}, {Start: 2.5, End: 6, Speaker: -1}}
	f := &stages.Findings{Transcription: &stages.Transcription{Transcript: &asr.Transcript{}}, Speakers: &diarize.Result{Turns: turns, Exclusive: turns}}
	f.Transcription.Transcript.Segments = []asr.Segment{{Start: 0, End: 2.8}, {Start: 2.8, End: 4}, {Start: 7, End: 8}}
	var got []string
	for _, s := range Segments(f, clock(10)) {
		got = append(got, s.Speaker)
	}
	assert.Equal(t, []string{"SPEAKER_0", "", ""}, got)
}
