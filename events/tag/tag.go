// Package tag runs published sound taggers through ONNX Runtime: YAMNet (from
// the waveform or from log-mel patches), PANNs CNN14 and its relatives at 32 or
// 16 kHz, CED and icefall's Zipformer. Networks trained on AudioSet's 527
// classes are mapped to the 521 by AudioSet's identifiers.
package tag

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

var (
	// ErrContract is returned for a file without the contract of a tagger.
	ErrContract = ort.ErrContract
	// ErrInvalid is returned for a file that is not a valid ONNX model.
	ErrInvalid = ort.ErrInvalid
	// ErrClosed is returned by a Model after Close.
	ErrClosed = ort.ErrClosed
)

// Model is an open tagger. It is safe for concurrent use.
type Model struct {
	session *ort.Session
	layout  layout
	plan    plan
	logits  bool // the network has no sigmoid at its end
}

var _ events.Tagger = (*Model)(nil)

// Open opens a tagger, as library.OpenFile, library.OpenDir and demo.Models
// return it. Errors name file, role, the expected value and the actual one.
func Open(model *models.Model) (*Model, error) {
	src, err := ort.SourceOf(model, model.Main())
	if err != nil {
		return nil, err
	}
	return openSource(src, model.Contract)
}

// openSource opens a tagger from a file or from memory; contract may be empty.
func openSource(model ort.Source, contract string) (*Model, error) {
	graph, contract, err := ort.InspectModel(model, models.RoleTagger, contract)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(graph, contract)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	session, err := ort.Open(model, ort.Options{Outputs: []string{l.output}})
	if err != nil {
		return nil, err
	}
	m := &Model{session: session, layout: l, plan: newPlan(l)}
	if err := m.tryOut(); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return m, nil
}

// tryOut runs the network on noise: it may not take its contract's input, and
// without a final sigmoid some of its hundreds of scores are outside [0,1].
func (m *Model) tryOut() error {
	noise := make([]float32, m.plan.samples(1))
	seed := uint32(1)
	for i := range noise {
		seed = seed*1664525 + 1013904223
		noise[i] = (float32(seed>>8)/(1<<24) - 0.5) * 0.1
	}
	rows, err := m.compute(context.Background(), noise, 1, new(room))
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, v := range row {
			// A tiny excess is due to rounding.
			m.logits = m.logits || v < -1e-3 || v > 1+1e-3
		}
	}
	return nil
}

// Grid returns the times of the frames of Scores.
func (m *Model) Grid() events.Grid { return m.plan.grid }

// Close frees the network after the current calls; it may be repeated.
func (m *Model) Close() error { return m.session.Close() }

// Scores calls yield with the 521 scores of every frame, in order. Memory does
// not grow with the recording.
func (m *Model) Scores(ctx context.Context, pcm *audio.PCM, yield func(frame int, scores []float32) error) error {
	if pcm.Len() == 0 {
		return ctx.Err()
	}
	pool := ort.NewWorkerPool(1)
	defer pool.Close()
	return pool.Do(ctx, 1, func(int) error { return m.scores(ctx, pcm, yield) })
}

func (m *Model) scores(ctx context.Context, pcm *audio.PCM, yield func(frame int, scores []float32) error) error {
	units := m.plan.units(pcm.Len())
	samples := make([]float32, m.plan.samples(min(m.plan.batch, units)))
	var room room
	for unit := 0; unit < units; {
		n := min(m.plan.batch, units-unit)
		x := samples[:m.plan.samples(n)]
		start := unit * m.plan.hop
		clear(x[copy(x, pcm.Samples(start, start+len(x))):])
		rows, err := m.run(ctx, x, n, &room)
		if err != nil {
			return err
		}
		for _, row := range rows {
			scores := make([]float32, spec.NumEventClasses)
			pick(scores, row)
			if err := yield(unit, scores); err != nil {
				return err
			}
			unit++
		}
	}
	return nil
}

// run returns the class scores of n units.
func (m *Model) run(ctx context.Context, x []float32, n int, room *room) ([][]float32, error) {
	rows, err := m.compute(ctx, x, n, room)
	for _, row := range rows {
		m.clean(row)
	}
	return rows, err
}

// compute is run without mapping the scores to [0,1].
func (m *Model) compute(ctx context.Context, x []float32, n int, room *room) ([][]float32, error) {
	out, err := m.session.Run(ctx, map[string]*ort.Tensor{m.layout.input: m.plan.feed(x, n, room)}, m.layout.output)
	if err != nil {
		return nil, err
	}
	flat, shape := out[0].Float32(), out[0].Shape()
	classes := m.layout.classes
	count := len(flat) / classes
	// YAMNet on a waveform may pad its end further than necessary.
	if len(shape) == 0 || shape[len(shape)-1] != int64(classes) || count < n || m.layout.contract != models.ContractYAMNet && count != n {
		return nil, fmt.Errorf("%s: %w: expected output %s as [%d,%d]; found %v", m.session.Source(), ort.ErrContract, m.layout.output, n, classes, shape)
	}
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = flat[i*classes : (i+1)*classes]
	}
	return rows, nil
}

// clean maps scores to [0,1]: it applies the sigmoid if the network leaves it
// out, clamps rounding errors and replaces NaN with zero.
func (m *Model) clean(x []float32) {
	for i, v := range x {
		switch {
		case v != v:
			x[i] = 0
		case m.logits:
			x[i] = float32(1 / (1 + math.Exp(-float64(v))))
		default:
			x[i] = min(max(v, 0), 1)
		}
	}
}
