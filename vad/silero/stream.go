package silero

import (
	"context"

	"github.com/otograph/otograph/vad"
)

// stream computes the windows of a growing sound one by one.
type stream struct {
	model *Model
	reel  *reel
	tail  [contextSamples]float32 // the end of the last window
}

// Stream implements vad.Streamer.
func (m *Model) Stream() (vad.WindowModel, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.check(context.Background()); err != nil {
		return nil, err
	}
	return &stream{model: m, reel: m.network.newReel(1, newState())}, nil
}

// Next implements vad.WindowModel.
func (s *stream) Next(window []float32) (float32, error) {
	s.model.mu.RLock()
	defer s.model.mu.RUnlock()
	if err := s.model.check(context.Background()); err != nil {
		return 0, err
	}
	n := copy(s.reel.input, s.tail[:])
	clear(s.reel.input[n+copy(s.reel.input[n:], window):])
	copy(s.tail[:], s.reel.input[rowWidth-contextSamples:])
	if err := s.reel.runFront(); err != nil {
		return 0, err
	}
	err := s.reel.runCell()
	return s.reel.probs[0], err
}

// Close implements vad.WindowModel.
func (*stream) Close() error { return nil }
