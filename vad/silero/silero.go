// Package silero runs Silero's voice activity network, version 5 or 6.
//
// Opening rebuilds the network from its weights: the layers that see only one
// window are computed for many windows in one call, and only the LSTM cell runs
// window by window. The values match the published code's within 2e-6, for any
// length, and are computed six times faster than one window at a time.
package silero

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/vad"
)

// Options configures a Model.
type Options struct {
	// Threads is the number of cores that one call of Probabilities uses; 0
	// means one. It does not change the result.
	Threads int
}

// Model is an open network. It is safe for concurrent use.
type Model struct {
	source  ort.Source
	network *network
	threads int

	mu      sync.RWMutex // read-locked while computing
	closing atomic.Bool
}

// Open opens a voice activity network, as returned by library.OpenFile,
// library.OpenDir and published.Models. The error for any other network names the
// file, what was expected and what was found.
func Open(model *models.Model, opt Options) (*Model, error) {
	src, err := ort.SourceOf(model, model.Main())
	if err != nil {
		return nil, err
	}
	return openSource(src, model.Contract, opt)
}

// OpenFile is Open for a file, with the default options.
func OpenFile(path string) (*Model, error) {
	name := filepath.Base(path)
	return Open(&models.Model{Role: models.RoleVAD, Name: name, Files: []models.File{{Part: models.PartModel, Name: name, Path: path}}}, Options{})
}

// Detect returns the stretches of speech in a recording of any format, with the
// defaults of audio and vad; use audio.Open and vad.Detect for options.
func (m *Model) Detect(ctx context.Context, src audio.Source) ([]vad.Segment, error) {
	pcm, err := audio.Open(ctx, src, audio.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = pcm.Close() }()
	return vad.Detect(ctx, m, pcm, vad.DefaultOptions())
}

// openSource opens a network from a file or from memory; contract may be empty.
func openSource(model ort.Source, contract string, opt Options) (*Model, error) {
	original, err := openOriginal(model, contract)
	if err != nil {
		return nil, err
	}
	defer func() { _ = original.Close() }()
	n, err := openNetwork(model)
	if err != nil {
		return nil, err
	}
	if err := n.compare(original); err != nil {
		_ = n.close()
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	return &Model{source: original.Source(), network: n, threads: max(opt.Threads, 1)}, nil
}

var _ vad.Streamer = (*Model)(nil)

// Probabilities returns the probability of speech for each window of 512
// samples; the last is padded with zeros. It returns within one block of
// windows after ctx is done. Besides the result, memory does not grow.
func (m *Model) Probabilities(ctx context.Context, pcm *audio.PCM) ([]float32, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	probs := make([]float32, vad.Windows(pcm.Len()))
	if len(probs) == 0 {
		return probs, ctx.Err()
	}
	window := func(dst []float32, w int) { fillWindow(dst, pcm, w) }
	if err := m.network.run(ctx, m.check, window, newState(), probs, m.threads); err != nil {
		return nil, fmt.Errorf("%s: %w", m.source, err)
	}
	return probs, nil
}

// check returns an error if computing must stop.
func (m *Model) check(ctx context.Context) error {
	if m.closing.Load() {
		return ort.ErrClosed
	}
	return ctx.Err()
}

// Close stops running calls, waits and frees the model; it may be repeated.
func (m *Model) Close() error {
	m.closing.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.network.close()
}
