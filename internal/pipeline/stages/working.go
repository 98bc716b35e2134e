package stages

import (
	"context"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
)

// working calls Working, if it is not nil.
func (s *Stages) working() {
	if s.Working != nil {
		s.Working()
	}
}

// workingEmbedder is an embedder that reports each call.
type workingEmbedder struct {
	diarize.Embedder
	working func()
}

// Embed implements diarize.Embedder.
func (e workingEmbedder) Embed(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([][]float32, error) {
	defer e.working()
	return e.Embedder.Embed(ctx, pcm, windows)
}

// workingSegmenter is a segmenter that reports each call.
type workingSegmenter struct {
	diarize.Segmenter
	working func()
}

// Segment implements diarize.Segmenter.
func (s workingSegmenter) Segment(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([]diarize.Activity, error) {
	defer s.working()
	return s.Segmenter.Segment(ctx, pcm, windows)
}
