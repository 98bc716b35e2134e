// Package tag runs published sound taggers through ONNX Runtime: YAMNet (from
// the waveform or from log-mel patches), PANNs CNN14 and its relatives at 32 or
// 16 kHz, CED and icefall's Zipformer. Networks trained on AudioSet's 527
// classes are mapped to the 521 by AudioSet's identifiers.
package tag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Options configures a Model.
type Options struct {
	// Threads is the number of cores that one call of Scores uses; 0 means one.
	// It does not change the result.
	Threads int
}

// config is Options with the model set's facts about the file.
type config struct {
	Threads  int
	Contract string // one of the models.Contract constants; "" means detect it
	// SampleRate in Hz of the waveform of a PANNs network, because nothing in
	// the graph states it. 0 means the rate in the file's metadata, or else
	// 32000. The other contracts use 16000.
	SampleRate int
}

// Model is an open tagger. It is safe for concurrent use.
type Model struct {
	session *ort.Session
	layout  layout
	plan    plan
	threads int
	logits  bool // the network has no sigmoid at its end
}

var _ events.Tagger = (*Model)(nil)

// defaultRate is the rate of PANNs in Hz.
const defaultRate = 32000

// Open opens a tagger, as library.OpenFile, library.OpenDir and demo.Models
// return it. Errors name file, role, the expected value and the actual one.
func Open(model *models.Model, opt Options) (*Model, error) {
	src, err := ort.SourceOf(model, model.Main())
	if err != nil {
		return nil, err
	}
	return openSource(src, config{Threads: opt.Threads, Contract: model.Contract, SampleRate: model.SampleRate})
}

// openSource opens a tagger from a file or from memory.
func openSource(model ort.Source, opt config) (*Model, error) {
	graph, contract, err := ort.InspectModel(model, models.RoleTagger, opt.Contract)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(graph, contract)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	rate, err := l.sampleRate(opt.SampleRate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	session, err := ort.Open(model, ort.Options{Outputs: []string{l.output}})
	if err != nil {
		return nil, err
	}
	m := &Model{session: session, layout: l, plan: newPlan(l, rate), threads: max(opt.Threads, 1)}
	if err := m.tryOut(); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return m, nil
}

// sampleRate returns a network's rate in Hz; stated is the file's or 0.
func (l layout) sampleRate(stated int) (int, error) {
	rate := audio.SampleRate
	if l.contract == models.ContractPANNs {
		rate = cmp.Or(l.rate, defaultRate)
	}
	if stated != 0 {
		if rate = stated; l.contract != models.ContractPANNs && rate != audio.SampleRate {
			return 0, fmt.Errorf("%w: contract %s works at %d Hz, got a sample rate of %d", ort.ErrContract, l.contract, audio.SampleRate, rate)
		}
	}
	if rate < 4000 || rate > 192000 {
		return 0, fmt.Errorf("%w: expected a sample rate between 4000 and 192000 Hz, found %d", ort.ErrContract, rate)
	}
	return rate, nil
}

// tryOut runs the network on noise, to find out whether it takes its contract's
// input, and whether it lacks a final sigmoid: then some of its hundreds of
// scores are outside [0,1].
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
	r, err := newReader(pcm, m.plan.rate)
	if err != nil {
		return fmt.Errorf("%s: %w", m.session.Source(), err)
	}
	units := m.plan.units(r.total)
	type piece struct {
		samples []float32
		units   int
		rows    [][]float32
		room    room
	}
	pieces := make([]piece, m.threads) // computed in parallel
	for i := range pieces {
		pieces[i].samples = make([]float32, m.plan.samples(min(m.plan.batch, units)))
	}
	pool := ort.NewWorkerPool(m.threads)
	defer pool.Close()
	frame := 0
	for unit := 0; unit < units; {
		first := unit
		used := 0
		for ; used < len(pieces) && unit < units; used++ {
			p := &pieces[used]
			p.units = min(m.plan.batch, units-unit)
			p.samples = p.samples[:m.plan.samples(p.units)]
			r.window(p.samples, unit*m.plan.hop)
			unit += p.units
		}
		err := pool.Do(ctx, used, func(i int) (err error) {
			pieces[i].rows, err = m.run(ctx, pieces[i].samples, pieces[i].units, &pieces[i].room)
			return err
		})
		if err != nil {
			return err
		}
		at := first
		for _, p := range pieces[:used] {
			for _, rows := range m.frames(p.rows, at, p.units, units, r.total) {
				if err := yield(frame, rows); err != nil {
					return err
				}
				frame++
			}
			at += p.units
		}
	}
	return nil
}

// frames converts the rows of units from at on to frames of 521 scores.
func (m *Model) frames(rows [][]float32, at, n, units, total int) [][]float32 {
	var out [][]float32
	add := func(row []float32) {
		scores := make([]float32, spec.NumEventClasses)
		pick(scores, row)
		out = append(out, scores)
	}
	per := len(rows) / n
	if m.plan.cells == 0 {
		for i := range n {
			add(highest(rows[i*per : (i+1)*per]))
		}
		return out
	}
	seconds := (total + m.plan.rate - 1) / m.plan.rate
	for i := range n {
		unit := at + i
		offset := unit * m.plan.hop / m.plan.rate // second at which the unit begins
		from, to := frameMargin, m.plan.cells-frameMargin
		if unit == 0 {
			from = 0
		}
		if unit == units-1 {
			to = min(m.plan.cells, max(seconds-offset, 1))
		}
		for c := from; c < to; c++ {
			add(highest(rows[i*per+per*c/m.plan.cells : i*per+max(per*(c+1)/m.plan.cells, per*c/m.plan.cells+1)]))
		}
	}
	return out
}

// highest returns the maximum per class, as these networks pool frames.
func highest(rows [][]float32) []float32 {
	if len(rows) == 1 {
		return rows[0]
	}
	out := slices.Clone(rows[0])
	for _, row := range rows[1:] {
		for i, v := range row {
			out[i] = max(out[i], v)
		}
	}
	return out
}

// run returns the rows of class scores of n units: one or more per unit, mapped
// to [0,1]. It applies the sigmoid if the network leaves it out, clamps rounding
// errors and replaces NaN with zero.
func (m *Model) run(ctx context.Context, x []float32, n int, room *room) ([][]float32, error) {
	rows, err := m.compute(ctx, x, n, room)
	for _, row := range rows {
		for i, v := range row {
			switch {
			case v != v:
				row[i] = 0
			case m.logits:
				row[i] = float32(1 / (1 + math.Exp(-float64(v))))
			default:
				row[i] = min(max(v, 0), 1)
			}
		}
	}
	return rows, err
}

// compute is run without mapping the scores to [0,1].
func (m *Model) compute(ctx context.Context, x []float32, n int, room *room) ([][]float32, error) {
	out, err := m.session.Run(ctx, m.plan.feed(x, n, room), m.layout.output)
	if err != nil {
		return nil, err
	}
	flat, shape := out[0].Float32(), out[0].Shape()
	classes := m.layout.classes
	count := len(flat) / classes
	if len(shape) == 0 || shape[len(shape)-1] != int64(classes) || count < n || m.layout.contract != models.ContractYAMNet && count%n != 0 ||
		!m.layout.framewise && m.layout.contract != models.ContractYAMNet && count != n {
		return nil, fmt.Errorf("%s: %w: expected output %s as [%d,%d]; found %v", m.session.Source(), ort.ErrContract, m.layout.output, n, classes, shape)
	}
	if m.layout.contract == models.ContractYAMNet {
		flat, count = flat[:n*classes], n // a graph may pad its end further than necessary
	}
	rows := make([][]float32, count)
	for i := range rows {
		rows[i] = flat[i*classes : (i+1)*classes]
	}
	return rows, nil
}
