package stages

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/asr"
)

// TestDoubtNeedsBothModels checks that a word is doubtful only if both models
// contradict it.
func TestDoubtNeedsBothModels(t *testing.T) {
	probs := make([]float32, 64) // one second of 0.1, one of 0.3
	for i := range probs {
		probs[i] = []float32{0.1, 0.3}[i/32]
	}
	speech := &Speech{Probabilities: coarse(probs)}
	for _, test := range []struct {
		name       string
		speech     *Speech
		start, end float64
		evidence   *float64
		want       bool
	}{
		{"neither hears it", speech, 0.1, 0.6, new(0.01), true},
		{"not spoken at all", speech, 0.1, 0.6, new(0.0), true},
		{"the detector hears speech", speech, 1.1, 1.6, new(0.0), false},
		{"the model finds the word", speech, 0.1, 0.6, new(0.03), false},
		{"it can't be spelled", speech, 0.1, 0.6, nil, false},
		{"after the detector's last window", speech, 3, 4, new(0.0), false},
		{"no probabilities of the detector", &Speech{}, 0.1, 0.6, new(0.0), false},
	} {
		text := &asr.Transcript{Segments: []asr.Segment{{Words: []asr.Word{{Start: test.start, End: test.end, Evidence: test.evidence}}}}}
		markDoubtful(test.speech, text)
		assert.Equal(t, test.want, text.Segments[0].Words[0].Doubtful, test.name)
	}
}
