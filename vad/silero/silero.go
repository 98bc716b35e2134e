// Package silero runs Silero's voice activity network, and others with the same
// inputs and outputs, through ONNX Runtime.
//
// It supports the published forms at 16 kHz: v5 and v6 (with or without the
// input sr, free or fixed batch), v4 (both exports) and the sequence graph of
// v6. The form is recognized by the names of inputs and outputs.
//
// Silero v5 and v6 and the demo network are unrolled on opening: the layers
// that see only one window are computed for many windows in one call, and only
// the LSTM cell runs window by window. The values match the published code's
// within 2e-6, for any length, and are computed six times faster. Every other
// network takes one call per window, and a recording of up to fifteen minutes
// is computed in one piece. A longer one is cut at its quietest places into
// stretches that are computed as the rows of a batch, each with a minute of
// run-in. Every joint is either in silence or at a point where both sides have
// the same probability within 1e-3. After a joint, values may differ slightly
// for a while, because these networks have a memory of minutes.
// Options.Sequential avoids that.
package silero

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/engine/ort/modelfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/vad"
)

var (
	// ErrContract is returned for a file that is not a Silero network.
	ErrContract = ort.ErrContract
	// ErrInvalid is returned for a file that is not a valid ONNX model.
	ErrInvalid = ort.ErrInvalid
	// ErrClosed is returned by a Model after Close.
	ErrClosed = ort.ErrClosed
)

// Options configures a Model.
type Options struct {
	// Threads is the number of cores that one call of Probabilities uses; 0
	// means one. It does not change the result.
	Threads int
	// Sequential computes every recording in one piece, regardless of its
	// length, even with networks that can't be unrolled. The values are exactly
	// the file's, in up to twice the time.
	Sequential bool
	// Logger receives warnings; nil discards them.
	Logger *slog.Logger
}

// Model is an open network. It is safe for concurrent use.
type Model struct {
	source   ort.Source
	session  *ort.Session // nil if the network was unrolled
	unrolled *sequence
	layout   layout
	opt      Options
	whole    int // number of windows up to which a recording is computed in one piece

	mu      sync.RWMutex // read-locked while computing
	closing atomic.Bool
}

// Open opens a voice activity network, as returned by library.OpenFile,
// library.OpenDir and demo.Models. If it is not a Silero network, the error
// names the file, the expected and the found contract.
func Open(model *models.Model, opt Options) (*Model, error) {
	src, err := modelfile.Source(model, model.Main())
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
// default options of packages audio and vad; use audio.Open and vad.Detect for
// other options.
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
	m, err := openFile(model, contract, opt)
	if err == nil {
		m.unroll(model)
	}
	return m, err
}

// openFile opens a model without changing it.
func openFile(model ort.Source, contract string, opt Options) (*Model, error) {
	s, err := ort.Open(model, ort.Options{})
	if err != nil {
		return nil, err
	}
	if contract, err = modelfile.Contract(s.Graph(), models.RoleVAD, contract); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	l, err := layoutOf(s.Graph(), contract)
	if err != nil {
		_ = s.Close()
		if errors.Is(err, ort.ErrContract) {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w: %w", model, ort.ErrContract, err)
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	opt.Threads = max(opt.Threads, 1)
	return &Model{source: s.Source(), session: s, layout: l, opt: opt, whole: onePiece}, nil
}

// unroll replaces the session with an unrolled network if the file is a known
// network and both return the same.
func (m *Model) unroll(model ort.Source) {
	if m.layout.sequence || m.layout.context != contextSamples {
		return
	}
	s, err := openSequence(model)
	if s == nil {
		if err != nil {
			m.opt.Logger.Debug("voice activity: computed one window at a time", "model", model.String(), "why", err)
		}
		return
	}
	same, err := s.same(m.session, m.layout)
	if !same {
		m.opt.Logger.Debug("voice activity: computed one window at a time, because the unrolled network differs", "model", model.String(), "error", err)
		_ = s.close()
		return
	}
	_ = m.session.Close()
	m.session, m.unrolled = nil, s
}

var _ vad.Model = (*Model)(nil)

// Probabilities returns the probability of speech for each window of 512
// samples; the last one is padded with zeros. When ctx is done, it returns
// within one call of the network. Apart from the result, memory does not grow
// with the recording.
func (m *Model) Probabilities(ctx context.Context, pcm *audio.PCM) ([]float32, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	probs := make([]float32, vad.Windows(pcm.Len()))
	if len(probs) == 0 {
		return probs, ctx.Err()
	}
	var err error
	switch {
	case m.unrolled != nil:
		err = m.unrolled.run(ctx, m.check, pcm, probs, m.opt.Threads)
	case m.layout.sequence:
		err = m.blocks(ctx, pcm, probs)
	default:
		err = m.stretches(ctx, pcm, probs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.source, err)
	}
	m.warnIfNoSpeech(pcm.Unleveled(), probs)
	return probs, nil
}

// check returns an error if computing must stop.
func (m *Model) check(ctx context.Context) error {
	if m.closing.Load() {
		return ort.ErrClosed
	}
	return ctx.Err()
}

// blockWindows is the number of windows per call of the sequence graph: 16 s.
const blockWindows = 512

// blocks feeds the sequence graph, which takes many windows of one recording.
func (m *Model) blocks(ctx context.Context, pcm *audio.PCM, probs []float32) error {
	rows := int(m.layout.maxRows)
	if rows == 0 {
		rows = min(blockWindows, len(probs))
	}
	ln, err := newLane(m.session, m.layout, rows)
	if err != nil {
		return err
	}
	defer func() { _ = ln.close() }()
	for at := 0; at < len(probs); at += rows {
		if err := m.check(ctx); err != nil {
			return err
		}
		for r := range rows { // after the end of the recording: silence
			ln.fill(r, pcm, at+r)
		}
		if err := ln.step(); err != nil {
			return err
		}
		copy(probs[at:], ln.probs)
	}
	return nil
}

const (
	// agreeWindows and agreeWithin define when a stretch and the continuation
	// of the previous one agree: for two seconds, within that difference.
	agreeWindows = 64
	agreeWithin  = 1e-3
	// silent is the probability that both sides must stay below for a cut in
	// silence, over silentWindows (a quarter of a second).
	silent        = 0.1
	silentWindows = 8
)

// stretches computes a recording in batches, and then checks the joints.
func (m *Model) stretches(ctx context.Context, pcm *audio.PCM, probs []float32) error {
	whole := m.whole
	if m.layout.maxRows > 0 || m.opt.Sequential {
		whole = math.MaxInt
	}
	groups := plan(pcm, whole)
	if len(groups[0]) == 1 {
		_, err := m.group(ctx, pcm, probs, groups[0], nil)
		return err
	}
	warm, err := m.group(ctx, pcm, probs, []stretch{{end: warmUp}}, nil)
	if err != nil {
		return err
	}
	// The first stretch continues where the warm-up ended; the others begin
	// with the state at its end.
	groups[0][0].start = warmUp
	done := make([][]rowResult, len(groups))
	workers, run := errgroup.WithContext(ctx)
	workers.SetLimit(m.opt.Threads)
	for i, g := range groups {
		workers.Go(func() error {
			var err error
			done[i], err = m.group(run, pcm, probs, g, warm[0].state)
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	var rows []rowResult
	for _, d := range done {
		rows = append(rows, d...)
	}
	return m.join(ctx, pcm, probs, rows)
}

// rowResult holds the result of a stretch besides its probabilities.
type rowResult struct {
	stretch
	tail  []float32 // probabilities of the last windows of the run-in
	state []float32 // after the last window
}

// group computes stretches as the rows of one batch. state is the initial state
// of each row; nil means zeros, as at the beginning of a recording.
func (m *Model) group(ctx context.Context, pcm *audio.PCM, probs []float32, list []stretch, state []float32) ([]rowResult, error) {
	ln, err := newLane(m.session, m.layout, len(list))
	if err != nil {
		return nil, err
	}
	defer func() { _ = ln.close() }()
	out := make([]rowResult, len(list))
	steps := 0
	for r, s := range list {
		out[r] = rowResult{stretch: s, tail: make([]float32, min(s.runIn, agreeWindows))}
		steps = max(steps, s.runIn+s.end-s.start)
		if state != nil {
			ln.loadRow(r, state)
		}
	}
	for t := range steps {
		if err := m.check(ctx); err != nil {
			return nil, err
		}
		for r, s := range list {
			if w := s.start - s.runIn + t; w < s.end { // a finished row idles
				ln.fill(r, pcm, w)
			}
		}
		if err := ln.step(); err != nil {
			return nil, err
		}
		for r, s := range list {
			switch w := s.start - s.runIn + t; {
			case w >= s.end:
			case w >= s.start:
				probs[w] = ln.probs[r]
				if w == s.end-1 {
					out[r].state = ln.rowState(out[r].state, r)
				}
			default:
				if i := w - s.start + len(out[r].tail); i >= 0 {
					out[r].tail[i] = ln.probs[r]
				}
			}
		}
	}
	return out, nil
}

// join compares the end of every stretch's run-in with the end of the previous
// stretch. If they neither agree nor are in silence, the earlier stretch is
// continued window by window until they do, and its values replace the later
// one's.
func (m *Model) join(ctx context.Context, pcm *audio.PCM, probs []float32, rows []rowResult) error {
	var ln *lane
	defer func() {
		if ln != nil {
			_ = ln.close()
		}
	}()
	carried := 0 // windows before this one are final
	for k := 1; k < len(rows); k++ {
		r := rows[k]
		var j joint
		for i, p := range r.tail {
			j.add(probs[r.start-len(r.tail)+i], p)
		}
		if r.start < carried || j.fits() {
			continue
		}
		if ln == nil {
			var err error
			if ln, err = newLane(m.session, m.layout, 1); err != nil {
				return err
			}
		}
		ln.loadRow(0, rows[k-1].state)
		w := r.start
		for ; w < len(probs) && !j.fits(); w++ {
			if err := m.check(ctx); err != nil {
				return err
			}
			ln.fill(0, pcm, w)
			if err := ln.step(); err != nil {
				return err
			}
			j.add(probs[w], ln.probs[0])
			probs[w] = ln.probs[0]
		}
		carried = w
	}
	return nil
}

// joint compares two runs over the same windows.
type joint struct{ same, quiet int } // numbers of consecutive windows, up to the last

func (j *joint) add(a, b float32) {
	j.same++
	if math.Abs(float64(a-b)) > agreeWithin {
		j.same = 0
	}
	j.quiet++
	if max(a, b) > silent {
		j.quiet = 0
	}
}

func (j *joint) fits() bool { return j.same >= agreeWindows || j.quiet >= silentWindows }

const (
	loudMinutes  = 2
	noSpeechProb = 0.05 // no window above this …
	loudLevel    = 0.01 // … although this share of the recording has this root mean square (−40 dB)
)

// warnIfNoSpeech logs a warning if minutes of loud audio had no trace of
// speech. Music can be the cause, but so can a network whose input differs from
// its training (the later Silero versions return almost nothing without their
// context).
func (m *Model) warnIfNoSpeech(pcm *audio.PCM, probs []float32) {
	const enough = loudMinutes * 60 * audio.SampleRate / vad.Window
	if len(probs) < enough || slices.Max(probs) > noSpeechProb {
		return
	}
	loud := 0
	for w := range probs {
		sum := 0.0
		part := pcm.Samples(w*vad.Window, (w+1)*vad.Window)
		for _, x := range part {
			sum += float64(x) * float64(x)
		}
		if sum > loudLevel*loudLevel*float64(len(part)) {
			loud++
		}
		if loud >= enough {
			m.opt.Logger.Warn("voice activity: minutes of loud audio without any speech; check that the model is the right one",
				"model", m.source.String(), "form", m.layout.name, "loud_minutes_at_least", loudMinutes, "highest_probability_below", noSpeechProb)
			return
		}
	}
}

// Close stops running calls, waits for them and releases the model. It may be
// called more than once.
func (m *Model) Close() error {
	m.closing.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unrolled != nil {
		return m.unrolled.close()
	}
	return m.session.Close()
}
