package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
)

// A text by speakers is scored by each of the rules, turns by every variant.
func TestMeetingIsScoredByEveryRule(t *testing.T) {
	item := Item{
		Text: new("Good morning Ann. Hello Ben. Goodbye."), Language: "en",
		Sentences:        []TimedText{{Start: 0, End: 2, Text: "Good morning Ann."}, {Start: 2, End: 3, Text: "Hello Ben."}, {Start: 30, End: 31, Text: "Goodbye."}},
		SentenceSpeakers: []string{"ben", "ann", "ben"}, Turns: []SpeakerTurn{talk(0, 2, "ben"), talk(2, 3, "ann"), talk(30, 31, "ben")},
	}
	res := &otograph.Result{
		Segments: []otograph.Segment{
			{Start: 0, End: 2, Text: "good morning Ann", Speaker: "S0"},
			{Start: 2, End: 3, Text: "hello Ben", Speaker: "S1"},
			{Start: 10, End: 11, Text: "goodbye", Speaker: "S1"},
		},
		DiarizeSegments: []otograph.Turn{{Start: 0, End: 2, Speaker: "S0"}, {Start: 2, End: 3, Speaker: "S1"}},
	}
	res.Ran.ASR, res.Ran.Diarize = true, true
	s := scoreResult(item, res, scoreOptions{DER: DEROptions{Collar: 0.25}, Keywords: []string{"good morning", "Ben", "Eve"}})
	require.NotNil(t, s.Meeting)
	moved := WordErrors{Deletions: 1, Insertions: 1, Reference: 6}
	assert.Equal(t, &meetingScore{
		CP: moved, TCP: moved, WrongSpeaker: 1, Aligned: 6,
	}, s.Meeting)
	assert.Equal(t, &scores.Counts{Hits: 2}, s.Keywords)
	assert.Len(t, s.TurnsBy, 3)
	assert.InDelta(t, 0.25, s.TurnsBy["no_collar"].Rate(), 1e-12, "the last turn is missed")

	a := summarize([]itemReport{{Score: s}, {Score: itemScore{}}}, 1)
	assert.InDelta(t, 2.0/6, a.Meeting["cpwer"].Value, 1e-12)
	assert.InDelta(t, 1.0/6, a.Meeting["wder"].Value, 1e-12)
	assert.InDelta(t, 0.25, a.TurnRates["der_no_collar"].Value, 1e-12)
	assert.InDelta(t, 1, a.KeywordF1.Value, 1e-12)

	res.Ran.Diarize = false
	assert.Nil(t, scoreResult(item, res, scoreOptions{}).Meeting, "the result has no speakers")
}
