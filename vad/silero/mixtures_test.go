package silero

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestSpeechAmongNoiseAndMusic checks that the detector distinguishes speech
// from silence, noise, events and music in eight recordings of 10 s. A window
// of 32 ms counts as speech if more than half of it is speech.
func TestSpeechAmongNoiseAndMusic(t *testing.T) {
	shared := os.Getenv("OTOGRAPH_SHARED")
	if shared == "" {
		t.Skip("OTOGRAPH_SHARED is not set: the mixtures are not here")
	}
	dir := filepath.Join(shared, "testdata", "vad")
	data, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	require.NoError(t, err)
	var truth []struct {
		File   string
		Speech []struct{ Start, End float64 }
	}
	require.NoError(t, json.Unmarshal(data, &truth))
	require.Len(t, truth, 8)
	m := open(t, embedded(t), Options{})
	const window = 512.0 / audio.SampleRate
	for _, threshold := range []float32{0.35, 0.5} {
		var right, found, spoken int
		for _, c := range truth {
			probs, err := m.Probabilities(context.Background(), decode(t, filepath.Join(dir, c.File)))
			require.NoError(t, err)
			for i, p := range probs {
				var said float64
				for _, s := range c.Speech {
					said += max(0, min(s.End, float64(i+1)*window)-max(s.Start, float64(i)*window))
				}
				speech, heard := said > window/2, p >= threshold
				if speech {
					spoken++
				}
				if heard {
					found++
				}
				if speech && heard {
					right++
				}
			}
		}
		f1 := 2 * float64(right) / float64(found+spoken)
		t.Logf("threshold %.2f: frame F1 %.3f", threshold, f1)
		assert.GreaterOrEqual(t, f1, 0.95)
	}
}
