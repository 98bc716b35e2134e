package whisper

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// Text is discarded if the no-speech probability exceeds the threshold, however
// likely the text is, at any temperature.
func TestNoSpeechThreshold(t *testing.T) {
	const noSpeechToken = 50362
	const least = 1e-300
	silent := say(0.0, " Alpha", " beta", ".", 1.0)
	silent[1] = noSpeechToken // the token after "start of transcript"
	pcm := audio.FromSamples(make([]float32, 2*second))
	speech, silence := open(t, testModel(), Options{}), open(t, buildModel(testHeader, silent), Options{})
	unsure := open(t, buildModelAs(testHeader, silent, 1), Options{})
	for name, test := range map[string]struct {
		e         *Engine
		threshold float64
		kept      bool
	}{
		"speech, the least threshold":      {speech, least, false},
		"speech, the default":              {speech, 0, true},
		"speech, without a threshold":      {speech, -1, true},
		"speech, the greatest threshold":   {speech, 1, true},
		"no speech, the least threshold":   {silence, least, false},
		"no speech, the default":           {silence, 0, false},
		"no speech, without a threshold":   {silence, -1, true},
		"no speech, the greatest":          {silence, 1, true},
		"no speech, unsure of both":        {unsure, 1, true},
		"no speech, unsure, the least one": {unsure, least, false},
	} {
		for _, temperature := range few(1, 0, 0.4) {
			t.Run(fmt.Sprintf("%s, temperature %g", name, temperature), func(t *testing.T) {
				o := asr.DefaultOptions()
				o.Language, o.NoSpeechThreshold, o.Temperature = "en", test.threshold, temperature
				tr, err := test.e.Transcribe(context.Background(), pcm, spans(0, 1.2), o)
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

// A window that is probably but not surely silent is decoded: a likely text is
// kept.
func TestUnsureSilence(t *testing.T) {
	for _, c := range []struct {
		threshold, noSpeech, mean float64
		quiet                     float64
		discarded                 bool
	}{
		{0.6, 0.7, -0.7, 0.9, false},
		{0.6, 0.7, -1.2, 0.9, true},
		{0.6, 0.95, -0.1, 0.9, true},
		{0.95, 0.93, -0.1, 0.95, false},
		{0.3, 0.4, -0.1, 0.3, true},
		{1, 0.99, -0.1, 1, false},
	} {
		k := &task{opt: asr.Options{NoSpeechThreshold: c.threshold}}
		assert.Equal(t, c.quiet, k.request("en", nil).quiet)
		e := open(t, testModel(), Options{})
		r := result{noSpeech: c.noSpeech, attempt: attempt{
			tokens: []token{{id: zeroMark}, {id: int32(wordToken(" Alpha"))}, {id: zeroMark + 50}}, text: " Alpha", avgLogProb: c.mean,
		}}
		pcm := audio.FromSamples(make([]float32, 2*second))
		e.settle(&r, k, decode.Pack(spans(0, 1.2), pcm, decode.PackOptions{})[0])
		assert.Equal(t, c.discarded, r.stats.Discarded == 1, "%+v", c)
		assert.Equal(t, c.discarded, len(r.words) == 0, "%+v", c)
	}
}
