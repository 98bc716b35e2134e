package onnx

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// detectSeconds is the length of each of the three windows (beginning, middle
// and end of the speech) used for language detection.
const detectSeconds = 20.0

// DetectLanguage returns the language of up to three windows of speech
// (beginning, middle, end), or of the first 30 s without speech. A model
// without a language head returns asr.ErrNoLanguage.
func (e *Engine) DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Detection) (string, float64, error) {
	if _, ok := e.net.(*senseVoice); !ok {
		return "", 0, fmt.Errorf("%s: %w", e.name, asr.ErrNoLanguage)
	}
	windows := decode.Sample(speech, pcm, decode.PackOptions{Max: min(e.window, detectSeconds), Lead: utterancePad, Tail: utterancePad})
	hyps, err := e.decode(ctx, pcm, windows, request{}, asr.Options{Parallel: 1}, nil)
	if err != nil {
		return "", 0, err
	}
	mean := map[string]float64{}
	for _, h := range hyps {
		for l, p := range h.languages {
			mean[l] += p / float64(len(hyps))
		}
	}
	best, p := "", -1.0
	for _, l := range asr.Among(e.known, opt.Among) {
		if mean[l] > p {
			best, p = l, mean[l]
		}
	}
	return best, max(p, 0), nil
}
