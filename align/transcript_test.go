package align

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
)

func seconds(s ...float64) (spans []audio.Span) {
	for i := 0; i < len(s); i += 2 {
		spans = append(spans, audio.Span{Start: int(s[i] * audio.SampleRate), End: int(s[i+1] * audio.SampleRate)})
	}
	return spans
}

// TestMissingWordsShareTheSound checks that a missing word shares the time of
// the word before it, if that word covers all of the speech, and does not move
// into the pause. Only the missing word's time is interpolated.
func TestMissingWordsShareTheSound(t *testing.T) {
	words := []*asr.Word{
		{Text: "my", Start: 18.4, End: 18.6, Interpolated: true},
		{Text: "husband.", Start: 18.6, End: 19, Interpolated: true},
		{Text: "Turn", Start: 19.6, End: 20, Interpolated: true},
	}
	speech := seconds(17.8, 19.01, 19.58, 21)
	move(words, []Word{{Start: 18.54, End: 19.01}, {Missing: true}, {Start: 19.59, End: 19.95}}, speech)
	assert.InDelta(t, 18.54, words[0].Start, 1e-9)
	assert.Greater(t, words[1].Start, 18.6)
	assert.InDelta(t, 19.01, words[1].End, 1e-6)
	assert.Zero(t, *words[1].Evidence)
	assert.Equal(t, []bool{false, true, false}, []bool{words[0].Interpolated, words[1].Interpolated, words[2].Interpolated})

	words = []*asr.Word{{Text: "my", Start: 18.4, End: 18.6}, {Text: "husband.", Start: 18.6, End: 19}, {Text: "Turn", Start: 19.6, End: 20}}
	move(words, []Word{{Start: 18.54, End: 19.01}, {Missing: true}, {Start: 19.59, End: 19.95}}, speech)
	assert.Equal(t, []bool{false, true, false}, []bool{words[0].Interpolated, words[1].Interpolated, words[2].Interpolated}, "a measured word that was moved to make room")
}

// TestSkippedNumbersAreWild checks that a number that the sound lacks does not
// count as a word that the model contradicts.
func TestSkippedNumbersAreWild(t *testing.T) {
	v := ctc.NewVocabulary([]string{"", "a"}, 0)
	track := newTrack(nil, prepare([]string{"a", "7", "8"}, v), v)
	for i := range track.marks {
		track.marks[i] = mark{first: -1, last: -1}
	}
	a := track.alignment(nil, nil)
	assert.Equal(t, []Word{{Text: "a", Missing: true}, {Text: "7", Missing: true, Wild: true}, {Text: "8", Missing: true, Wild: true}}, a.Words)
	assert.Zero(t, a.Score)
	words := []*asr.Word{{Text: "a", End: 1}, {Text: "7", Start: 1, End: 2}, {Text: "8", Start: 2, End: 3}}
	move(words, a.Words, nil)
	assert.Zero(t, *words[0].Evidence)
	assert.Nil(t, words[1].Evidence)
}
