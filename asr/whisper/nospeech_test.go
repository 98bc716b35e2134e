package whisper

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// What the decoder says goes if it is surer than the threshold that nobody speaks,
// however sure it is of the text, at any temperature.
func TestNoSpeechThreshold(t *testing.T) {
	const noSpeechToken = 50362
	const least = 1e-300
	silent := say(0.0, " Alpha", " beta", ".", 1.0)
	silent[1] = noSpeechToken // what stands behind "start of transcript"
	pcm := audio.FromSamples(make([]float32, 2*second))
	for name, test := range map[string]struct {
		model     []byte
		threshold float64
		kept      bool
	}{
		"speech, the least threshold":      {testModel(), least, false},
		"speech, the default":              {testModel(), 0, true},
		"speech, without a threshold":      {testModel(), -1, true},
		"speech, the greatest threshold":   {testModel(), 1, true},
		"no speech, the least threshold":   {buildModel(testHeader, silent), least, false},
		"no speech, the default":           {buildModel(testHeader, silent), 0, false},
		"no speech, without a threshold":   {buildModel(testHeader, silent), -1, true},
		"no speech, the greatest":          {buildModel(testHeader, silent), 1, true},
		"no speech, unsure of both":        {buildModelAs(testHeader, silent, 1), 1, true},
		"no speech, unsure, the least one": {buildModelAs(testHeader, silent, 1), least, false},
	} {
		e := open(t, test.model, Options{})
		for _, temperature := range few(1, 0, 0.4) {
			t.Run(fmt.Sprintf("%s, temperature %g", name, temperature), func(t *testing.T) {
				o := asr.DefaultOptions()
				o.Language, o.NoSpeechThreshold, o.Temperature = "en", test.threshold, temperature
				tr, err := e.Transcribe(context.Background(), pcm, spans(0, 1.2), o)
				require.NoError(t, err)
				if test.kept {
					assert.NotEmpty(t, tr.Segments)
					assert.Zero(t, tr.Stats.Discarded)
				} else {
					assert.Empty(t, tr.Segments)
					assert.Positive(t, tr.Stats.Discarded)
				}
			})
		}
	}
}
