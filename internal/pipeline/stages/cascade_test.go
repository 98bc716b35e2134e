package stages

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
)

// sentence returns a segment with a confidence, or without one if it is
// negative.
func sentence(start, end float64, text string, confidence float64) asr.Segment {
	s := asr.Segment{Start: start, End: end, Text: text}
	if confidence >= 0 {
		s.Confidence = &confidence
	}
	return s
}

func span(start, end float64) audio.Span {
	return audio.Span{Start: int(start * audio.SampleRate), End: int(end * audio.SampleRate)}
}

var demoLanguages = []string{"en", "es", "fr", "pt", "de", "zh"}

func TestDoubtfulSegments(t *testing.T) {
	speech := []audio.Span{span(0, 2), span(2.5, 6), span(7, 9), span(20, 22)}
	segments := []asr.Segment{
		sentence(0, 2, "I am fine, thank you very much.", 0.95),
		sentence(2.6, 4, "We will meat at the off is.", 0.4),
		sentence(4.2, 5.8, "On Mondays or on Friday.", 0.5),
		sentence(7, 9, "Wo kann ich eine Fahrkarte für den Zug kaufen?", 0.97),
		sentence(10, 11, "Where nobody speaks.", 0.1),
	}
	list := doubts(segments, speech, "en", demoLanguages, 0.8)
	require.Len(t, list, 2)
	assert.Equal(t, doubt{1, 3, []audio.Span{span(2.5, 6)}, ""}, list[0], "two neighbors form one run, without the music at 20 s")
	assert.Equal(t, doubt{3, 4, []audio.Span{span(7, 9)}, "de"}, list[1])

	list = doubts(segments, speech, "de", demoLanguages, 0)
	require.Len(t, list, 1, "without a threshold only the language counts")
	assert.Equal(t, "en", list[0].Language)

	segments[1].Confidence, segments[2].Confidence = nil, nil
	assert.Len(t, doubts(segments, speech, "en", demoLanguages, 1), 2, "a text without a confidence is not doubtful")
}

// TestDoubtStaysInItsSpeech checks that a run's speech ends in the middle of
// the gap to a confident neighbor.
func TestDoubtStaysInItsSpeech(t *testing.T) {
	segments := []asr.Segment{sentence(0, 2, "one", 0.9), sentence(2.2, 3, "two", 0.1), sentence(3.2, 5, "three", 0.9)}
	list := doubts(segments, []audio.Span{span(0, 5)}, "en", nil, 0.5)
	require.Len(t, list, 1)
	require.Len(t, list[0].Speech, 1)
	start, end := list[0].Speech[0].Seconds()
	assert.InDelta(t, 2.1, start, 1e-3)
	assert.InDelta(t, 3.1, end, 1e-3)
}

func TestReplace(t *testing.T) {
	old := []asr.Segment{
		sentence(0, 2, "sure", 0.9), sentence(3, 4, "guess", 0.4), sentence(5, 6, "another guess", 0.5), sentence(8, 9, "deutsch", 0.9),
		sentence(10, 11, "lost", 0.1),
	}
	list := []doubt{
		{1, 3, []audio.Span{span(3, 6)}, ""}, {3, 4, []audio.Span{span(8, 9)}, "de"}, {4, 5, []audio.Span{span(10, 11)}, ""},
	}
	texts := func(segments []asr.Segment) (out []string) {
		for _, s := range segments {
			out = append(out, s.Text)
		}
		return out
	}
	for _, test := range []struct {
		what  string
		again []asr.Segment
		want  []string
		n     int
	}{
		{"nothing heard", nil, []string{"sure", "guess", "another guess", "deutsch", "lost"}, 0},
		{"better", []asr.Segment{sentence(3, 6, "right", 0.8)}, []string{"sure", "right", "deutsch", "lost"}, 1},
		{"worse", []asr.Segment{sentence(3, 6, "wrong", 0.3)}, []string{"sure", "guess", "another guess", "deutsch", "lost"}, 0},
		{"not calibrated", []asr.Segment{sentence(3, 6, "new", -1)}, []string{"sure", "new", "deutsch", "lost"}, 1},
		{
			"the language counts more than the confidence",
			[]asr.Segment{sentence(3, 4, "right", 0.8), sentence(5, 6, "and more", 0.8), sentence(8, 9, "English", 0.2)},
			[]string{"sure", "right", "and more", "English", "lost"},
			2,
		},
		{"only the last", []asr.Segment{sentence(10, 11, "found", 0.6)}, []string{"sure", "guess", "another guess", "deutsch", "found"}, 1},
	} {
		got, n := replace(old, list, test.again, "en", demoLanguages)
		assert.Equal(t, test.want, texts(got), test.what)
		assert.Equal(t, test.n, n, test.what)
	}
}

// TestReplaceKeepsRunsApart checks that no word is duplicated and none covers a
// segment between runs. The standard tier decodes all runs together, so its
// sentences may continue from one run to the next.
func TestReplaceKeepsRunsApart(t *testing.T) {
	old := []asr.Segment{
		sentence(0, 1, "guess", 0.4), sentence(1.2, 1.8, "sure", 0.95), sentence(2, 3, "another guess", 0.4), sentence(5, 6, "a third", 0.4),
	}
	list := []doubt{
		{0, 1, []audio.Span{span(0, 1.1)}, ""}, {2, 3, []audio.Span{span(1.9, 3)}, ""}, {3, 4, []audio.Span{span(5, 6)}, ""},
	}
	got, n := replace(old, list, []asr.Segment{sentence(0, 2.9, "one long sentence", 0.9), sentence(5, 6, "the third", 0.9)}, "en", demoLanguages)
	assert.Equal(t, append(old[:3:3], sentence(5, 6, "the third", 0.9)), got)
	assert.Equal(t, 1, n)

	got, n = replace(old, list, []asr.Segment{
		sentence(0, 0.5, "A whole one.", 0.9), sentence(0.5, 2.4, "One that goes on.", 0.9), sentence(2.4, 3, "Its end.", 0.9),
	}, "en", demoLanguages)
	assert.Equal(t, old, got, "a run is replaced as a whole or not at all")
	assert.Zero(t, n)
}

// TestReplaceByAnotherLanguage checks that confidences decide if the new text
// is also detected as another language.
func TestReplaceByAnotherLanguage(t *testing.T) {
	const said = "Wo kann ich eine Fahrkarte für den Zug nach London kaufen?"
	old := []asr.Segment{sentence(0, 3, said, 0.9)}
	list := []doubt{{0, 1, []audio.Span{span(0, 3)}, "de"}}
	for confidence, want := range map[float64]int{0.8: 0, 0.95: 1} {
		_, n := replace(old, list, []asr.Segment{sentence(0, 3, said, confidence)}, "en", demoLanguages)
		assert.Equal(t, want, n, "%g", confidence)
	}
}

// hears is a detector whose answer depends on the start of the speech.
type hears map[int]string

func (h hears) DetectLanguage(_ context.Context, _ *audio.PCM, speech []audio.Span, _ asr.Detection) (string, float64, error) {
	return h[speech[0].Start/audio.SampleRate], 1, nil
}

// TestSpokenOtherwise checks that a text stays if its sound is in the same
// language.
func TestSpokenOtherwise(t *testing.T) {
	list := []doubt{
		{0, 1, []audio.Span{span(0, 1)}, ""},
		{1, 2, []audio.Span{span(1, 2)}, "de"},
		{2, 3, []audio.Span{span(2, 3)}, "de"},
		{3, 4, []audio.Span{span(3, 4)}, "und"},
	}
	sound := hears{0: "fr", 1: "de", 2: "en", 3: "und"}
	kept, asked, err := spokenOtherwise(t.Context(), sound, nil, list, 3)
	require.NoError(t, err)
	assert.Equal(t, []doubt{list[0], list[2], list[3]}, kept)
	assert.Equal(t, 2, asked)

	kept, asked, err = spokenOtherwise(t.Context(), sound, nil, list, 1)
	require.NoError(t, err)
	assert.Equal(t, []doubt{list[0], list[3]}, kept, "runs beyond the limit keep their text")
	assert.Equal(t, 1, asked)
	assert.Equal(t, 1, languageChecks([]audio.Span{span(0, 60), span(100, 159)}))
	assert.Equal(t, 3, languageChecks([]audio.Span{span(0, 240)}))
}

// TestCalibrate checks that a model without a calibration has no confidence,
// rather than one without meaning.
func TestCalibrate(t *testing.T) {
	tr := &asr.Transcript{Segments: []asr.Segment{{AvgLogProb: -0.1}, {AvgLogProb: -2}}}
	calibrate(tr, &models.Model{})
	calibrate(tr, nil)
	assert.Nil(t, tr.Segments[0].Confidence)
	calibrate(tr, &models.Model{Calibration: &models.Calibration{Slope: 2, Offset: 3}})
	assert.InDelta(t, 0.9994, *tr.Segments[0].Confidence, 1e-3)
	assert.InDelta(t, 0.3298, *tr.Segments[1].Confidence, 1e-3)
}
