package otograph

import (
	"context"
	"errors"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
)

// alignWords gives the words of the standard tier the times at which a CTC model
// of their language hears them. Without such a model, and where the model hears
// something else, they keep the times that they have.
func (s *stages) alignWords(ctx context.Context, pcm *audio.PCM, speech []audio.Span, t *asr.Transcript) error {
	m, ok := s.engines.set.OptimizedFor(t.Language)
	if standard, has := s.engines.set.Role(models.RoleStandard); !ok || (m.Demo && has && !standard.Demo) {
		return nil // a demonstration does not time the words of a real model
	}
	model, err := s.engines.loadOptimized(t.Language)
	if err != nil {
		s.log.WarnContext(ctx, "words keep the times of the standard tier", "error", err)
		return nil
	}
	listener, ok := model.(align.Model)
	if !ok {
		return nil
	}
	err = align.Transcript(ctx, listener, pcm, speech, t, align.Options{Parallel: s.cores, Gate: s.gate})
	if errors.Is(err, onnx.ErrNoRows) {
		return nil
	}
	return err
}
