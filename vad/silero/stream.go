package silero

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/vad"
)

// stream computes the windows of a growing sound one by one.
type stream struct {
	model *Model
	reel  *reel
	state state
	tail  [contextSamples]float32 // the end of the last window
}

// Stream implements vad.Streamer.
func (m *Model) Stream() (vad.WindowModel, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.check(context.Background()); err != nil {
		return nil, err
	}
	s := &stream{model: m, state: newState()}
	var err error
	if s.reel, err = m.network.newReel(1, s.state); err != nil {
		return nil, fmt.Errorf("%s: %w", m.source, err)
	}
	return s, nil
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
	if err := s.reel.front.Run(); err != nil {
		return 0, err
	}
	if err := s.reel.cell.Run(); err != nil {
		return 0, err
	}
	s.state.next()
	err := bound(s.reel.probs)
	return s.reel.probs[0], err
}

// Close implements vad.WindowModel.
func (s *stream) Close() error { return s.reel.close() }
