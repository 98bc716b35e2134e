package assemble

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
)

// clock returns the clock of a recording with a length in seconds.
func clock(seconds float64) stages.Clock {
	return stages.ClockOf(audio.FromSamples(make([]float32, int(math.Round(seconds*audio.SampleRate)))))
}

func TestTimesAndConfidencesAreRounded(t *testing.T) {
	assert.Equal(t, 1.23, clock(5).Start(1.2349999))
	assert.Equal(t, 60.0, clock(60.004).Start(60.004))
	assert.Equal(t, 60.0, clock(60.008).Start(60.008), "60.01 is beyond the end")
	assert.Equal(t, 60.01, clock(60.01).Start(60.01))
	assert.Equal(t, 0.29, clock(0.29).Start(0.29))
	assert.Equal(t, 0.9999, stages.Round4(0.99987))
	assert.Equal(t, 1.0, stages.Round4(1.2))
	assert.Equal(t, 0.0, stages.Round4(-0.1))
	assert.Equal(t, 0.9123, *rounded(new(0.91234)))
	assert.Nil(t, rounded(nil))
}

func TestLanguagesOfSegments(t *testing.T) {
	languages := func(codes ...string) (got []string) {
		f := &stages.Findings{Transcription: &stages.Transcription{Transcript: &asr.Transcript{}}}
		for _, code := range codes {
			f.Transcription.Transcript.Segments = append(f.Transcription.Transcript.Segments, asr.Segment{Language: code})
		}
		for _, s := range Segments(f, clock(10)) {
			got = append(got, s.Language)
		}
		return got
	}
	assert.Equal(t, []string{"en", "de", "en"}, languages("en", "de", "en"))
	assert.Equal(t, []string{"", ""}, languages("en", "en"), "the recording's language suffices")
	assert.Empty(t, languages())
}
