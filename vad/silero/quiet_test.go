package silero

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/vad"
)

// lowered returns samples attenuated by the given decibels and rounded as in a
// 16-bit file.
func lowered(samples []float32, by float64) *audio.PCM {
	out := make([]float32, len(samples))
	for i, x := range samples {
		out[i] = float32(math.Round(float64(x)*math.Pow(10, -by/20)*32768) / 32768)
	}
	return audio.FromSamples(out)
}

func TestQuietSpeechIsDetected(t *testing.T) {
	m, speech := open(t, embedded(t), Options{}), jfk(t)
	want, err := vad.Detect(t.Context(), m, lowered(speech, 10), vad.DefaultOptions())
	require.NoError(t, err)
	require.NotEmpty(t, want)
	for _, by := range []float64{20, 30, 40} {
		got, err := vad.Detect(t.Context(), m, lowered(speech, by), vad.DefaultOptions())
		require.NoError(t, err)
		assert.Greater(t, agreement(want, got, len(speech)), 0.97, "%v dB lower", by)
	}
}

// meeting returns the speech that close microphones found in a recording, in
// steps of 10 ms.
func meeting(t *testing.T, rttm string, samples int) []bool {
	t.Helper()
	raw, err := os.ReadFile(rttm)
	require.NoError(t, err)
	spoken := make([]bool, samples*100/audio.SampleRate)
	for line := range strings.Lines(string(raw)) {
		var file string
		var channel int
		var start, length float64
		if n, _ := fmt.Sscanf(line, "SPEAKER %s %d %f %f", &file, &channel, &start, &length); n == 4 {
			for i := int(start * 100); i < min(int((start+length)*100), len(spoken)); i++ {
				spoken[i] = true
			}
		}
	}
	return spoken
}

// TestMissesInMeetings limits the published detector's misses in meetings to 26
// % of the speech at 2 % of false alarms.
func TestMissesInMeetings(t *testing.T) {
	shared := os.Getenv("OTOGRAPH_SHARED")
	if shared == "" {
		t.Skip("OTOGRAPH_SHARED names no folder with the meetings")
	}
	m := open(t, embedded(t), Options{})
	files, err := filepath.Glob(filepath.Join(shared, "testdata/*/ami_*.rttm"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var speech, missed, wrong float64
	for _, rttm := range files {
		pcm := decode(t, strings.TrimSuffix(rttm, ".rttm")+".flac")
		spoken := meeting(t, rttm, pcm.Len())
		found, err := vad.Detect(t.Context(), m, pcm, vad.DefaultOptions())
		require.NoError(t, err)
		heard := make([]bool, len(spoken))
		for _, s := range found {
			for i := s.Start * 100 / audio.SampleRate; i < min(s.End*100/audio.SampleRate, len(heard)); i++ {
				heard[i] = true
			}
		}
		for i := range spoken {
			switch {
			case spoken[i] && !heard[i]:
				missed++
			case heard[i] && !spoken[i]:
				wrong++
			}
			if spoken[i] {
				speech++
			}
		}
	}
	t.Logf("%d recordings, %.0f s of speech: %.1f %% missed, %.1f %% false", len(files), speech/100, 100*missed/speech, 100*wrong/speech)
	assert.LessOrEqual(t, missed/speech, 0.26)
	assert.LessOrEqual(t, wrong/speech, 0.02)
}
