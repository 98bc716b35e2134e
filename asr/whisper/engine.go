// Package whisper is the standard tier: Whisper models in ggml's format,
// decoded by libwhisper (whisper.cpp 1.9), which is opened at run time.
//
// A program that imports this package builds with a C compiler alone and starts
// where libwhisper is absent; Open then says what is missing and what to do.
//
// One Engine holds a model's weights once, and a pool of decoding states:
// asr.Options.Parallel windows are decoded concurrently, each on one thread,
// except those at the end that would leave threads idle. A window's text
// depends only on its sound and the options, so the transcript is the same for
// any parallelism, and every time. (One exception: a single window without
// beams. Its probabilities depend on the number of threads in the third digit.)
//
// OpenBLAS computes the encoder's matrix products where that is faster on this
// machine (see [InspectBLAS]). Texts are the same up to the rounding of sums.
//
// Why not the Go bindings that whisper.cpp publishes
// (github.com/ggerganov/whisper.cpp/bindings/go)? They have one state per
// model, so two concurrent decodes crash, and they load models from files only.
// They lack the abort callback and the logits filter, which cancellation and
// hotwords need, as well as best-of, thresholds and log redirection; their
// high-level interface cannot enable beam search. They are linked, so a program
// without libwhisper does not start. They serve as an independent check in a
// test (build tag crosscheck).
package whisper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/decode"
	"github.com/otograph/otograph/internal/ggmlfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Errors that a caller can tell apart; they come wrapped with what and where.
var (
	// ErrModel marks a model file that is damaged or no Whisper model.
	ErrModel = ggmlfile.ErrNotWhisper
	// ErrLibrary marks a libwhisper that does not fit this program. (One that is
	// missing is native.ErrMissing.)
	ErrLibrary = errors.New("libwhisper does not fit")
	// ErrDecode marks a failure inside libwhisper, mostly because memory ran
	// out.
	ErrDecode = errors.New("decoding failed")
	// ErrLanguage marks a language that is missing, unknown, or not the model's.
	ErrLanguage = spec.Permanent(errors.New("language not supported"))
	// ErrTranslation marks a translation that the model cannot make.
	ErrTranslation = spec.Permanent(errors.New("the model of the standard tier cannot translate"))
	// ErrClosed is returned by an Engine after Close.
	ErrClosed = errors.New("whisper: the engine is closed")

	errAborted = errors.New("whisper: decode aborted")
)

// modelFile names the model to open.
type modelFile struct {
	// Path is the file; or Data is its content, which must not change until Open
	// returns (the weights are copied), or, where a device computes, until Close.
	Path string
	Data []byte
	// Name names the model in errors; the path when empty.
	Name string
	// WindowSeconds is the longest window the model should get, 30 at most; 0 is 30.
	WindowSeconds float64
	// NoPrompts reports that the model was not trained with prompts: initial
	// prompts are ignored.
	NoPrompts bool
	// NoTranslation reports that the model was not trained to translate into
	// English.
	NoTranslation bool
	// Languages are the codes (spec.NormalizeLanguage) that the model was trained
	// for; nil is all that its vocabulary has. Detection chooses among them.
	Languages []string
}

// Context selects how much of the encoder's 30 s a shorter window gets.
type Context int

const (
	// ContextAuto is ContextShort for models whose windows are to be short
	// (models.Model.WindowSeconds below 30), and ContextFull for the others.
	ContextAuto Context = iota
	// ContextFull uses the whole 30 s for every window, padded with silence, as
	// Whisper models are trained.
	ContextFull
	// ContextShort cuts the encoder to the window's length and a margin: it then costs
	// in proportion to the sound. A decode that shows a sign of failure is repeated
	// with the whole context.
	ContextShort
)

// Options sets how an Engine works; the zero value serves.
type Options struct {
	// Logger takes libwhisper's own log as debug records (of all engines of the
	// process: the native log is one); nil is none.
	Logger *slog.Logger
	// AlignmentHeads names the published model whose alignment heads give word times
	// by dynamic time warping: tiny, base, small, medium (each also with .en),
	// large-v1, large-v2, large-v3, large-v3-turbo. The encoder then costs 1.2 to 1.6
	// times as much, for segment-level output as well. Empty: word times come from
	// the decoder's time marks and the speech's pauses.
	AlignmentHeads string
	// Context selects how much of the encoder's context short windows get.
	Context Context
	// Device is what computes the model: "auto" ("" is the same), "cpu", or "vulkan" with
	// or without a number ("vulkan:1"). Where a device is not there, or fails, the CPU
	// takes over, and Engine.Device says so. Texts are the same up to rounding.
	Device string
	// Idle is the number of unused decoding states kept for the next
	// transcription; 0 keeps the largest number used concurrently so far;
	// negative keeps none.
	Idle int
}

// alignment holds, for the models whose alignment heads the library knows, its
// preset number, and the decoder layers and heads of the model: in a model with
// other dimensions the heads would be missing.
var alignment = map[string]struct {
	preset        int
	layers, heads int32
}{
	"tiny.en": {3, 4, 6}, "tiny": {4, 4, 6}, "base.en": {5, 6, 8}, "base": {6, 6, 8},
	"small.en": {7, 12, 12}, "small": {8, 12, 12}, "medium.en": {9, 24, 16}, "medium": {10, 24, 16},
	"large-v1": {11, 32, 20}, "large-v2": {12, 32, 20}, "large-v3": {13, 32, 20}, "large-v3-turbo": {14, 4, 20},
}

// Engine is a loaded model. It is safe for concurrent use. It implements
// asr.Transcriber and asr.LanguageDetector.
type Engine struct {
	model     modelFile
	opt       Options
	header    ggmlfile.Header
	weights   *weights
	preset    int // of alignment heads
	eot, beg  int32
	languages []string
	packing   decode.PackOptions // how windows are filled

	turn chan struct{} // held by the decode that uses a device

	mu      sync.Mutex
	place   place  // of the weights
	note    string // why that is not the place that was asked for
	closed  bool
	freed   chan struct{} // closed when Close is done
	idle    []*state
	jobs    map[*job]struct{} // decodes in flight
	busy    int               // states in use
	peak    int               // most states ever in use
	running sync.WaitGroup
}

var (
	_ asr.Transcriber      = (*Engine)(nil)
	_ asr.LanguageDetector = (*Engine)(nil)
)

// Open checks and loads a Whisper model, as returned by library.OpenFile,
// library.OpenDir and demo.Models. Errors name the file and its role; they wrap
// ErrModel for a file that is no usable model, fs.ErrNotExist and the like for one that
// cannot be read, native.ErrMissing without libwhisper and ErrLibrary where it does not
// fit.
func Open(model *models.Model, opt Options) (*Engine, error) {
	f := model.Main()
	m := modelFile{
		Path: f.Path, Name: f.Name, WindowSeconds: model.WindowSeconds, Languages: model.Languages,
		NoPrompts: model.NoPrompts, NoTranslation: model.NoTranslation,
	}
	if f.Data != nil {
		var err error
		if m.Data, err = f.Data(); err != nil {
			return nil, fmt.Errorf("whisper: %s (%s): %w", f.Name, role, err)
		}
		m.Path = ""
	}
	return openFile(m, opt)
}

// openFile is Open for a file or its content.
func openFile(m modelFile, opt Options) (*Engine, error) {
	if m.Name == "" {
		m.Name = m.Path
	}
	if m.Name == "" {
		m.Name = "model in memory"
	}
	fail := func(err error) (*Engine, error) {
		return nil, fmt.Errorf("whisper: %s (%s): %w", m.Name, role, err)
	}
	header, err := m.check()
	if err != nil {
		return fail(err)
	}
	preset := 0
	if opt.AlignmentHeads != "" {
		p, ok := alignment[opt.AlignmentHeads]
		if !ok {
			return fail(fmt.Errorf("alignment heads: expected the name of a published model such as \"base\", found %q", opt.AlignmentHeads))
		}
		if p.layers != header.TextLayers || p.heads != header.TextHeads {
			return fail(fmt.Errorf("alignment heads of %s: expected a model with %d text layers of %d heads, found %d of %d",
				opt.AlignmentHeads, p.layers, p.heads, header.TextLayers, header.TextHeads))
		}
		preset = p.preset
	}
	known, err := m.languages(header)
	if err != nil {
		return fail(err)
	}
	if err := openLibrary(); err != nil {
		return nil, err
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	setNativeLogger(opt.Logger)
	w, at, note, err := m.load(preset, opt)
	if err != nil {
		return fail(err)
	}
	if at == onCPU {
		if w.blas, err = useBLAS(tensorTypes[header.Type%1000]); err != nil {
			w.free()
			return nil, err
		}
		m.Data = nil
	}
	if m.WindowSeconds <= 0 || m.WindowSeconds > 30 {
		m.WindowSeconds = 30
	}
	if opt.Context == ContextAuto {
		// Measured with the demo model, beam 5: on short recordings an error rate of 7.3 %
		// with either, on long ones in windows of 10 s 7.4 % against 6.6 %, at a third of
		// the encoder's work. With windows near 30 s there is little to gain, and published
		// models could not be measured.
		opt.Context = ContextFull
		if m.WindowSeconds < 30 {
			opt.Context = ContextShort
		}
	}
	return &Engine{
		model: m, opt: opt, header: header, weights: w, preset: preset, eot: w.eot(), beg: w.beg(), languages: known,
		turn: make(chan struct{}, 1), place: at, note: note,
		packing: decode.PackOptions{Max: m.WindowSeconds},
		freed:   make(chan struct{}), jobs: make(map[*job]struct{}),
	}, nil
}

// languages returns the codes the model can be asked for.
func (m modelFile) languages(h ggmlfile.Header) ([]string, error) {
	if !h.Multilingual() {
		return []string{"en"}, nil
	}
	if len(m.Languages) > 0 {
		var known []string
		for _, l := range m.Languages {
			code, ok := spec.NormalizeLanguage(l)
			if !ok {
				return nil, fmt.Errorf("languages: expected ISO 639 codes, found %q", l)
			}
			known = append(known, code)
		}
		return known, nil
	}
	var known []string
	for i, l := range spec.Languages() {
		if int32(i) < h.Vocabulary-51766 { // the vocabulary grows by one token a language
			known = append(known, l.Code)
		}
	}
	return known, nil
}

// Languages lists the codes that asr.Options.Language may have.
func (e *Engine) Languages() []string { return slices.Clone(e.languages) }

// Abilities implements asr.Transcriber.
func (e *Engine) Abilities() asr.Abilities {
	return asr.Abilities{Beam: maxDecoders, Temperature: true, Hotwords: true, InitialPrompt: !e.model.NoPrompts, NoSpeech: true, Translate: e.header.Multilingual() && !e.model.NoTranslation}
}

// language checks the language that a transcription asks for.
func (e *Engine) language(s string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("whisper: language: expected a code, found none: %w", ErrLanguage)
	}
	code, ok := spec.NormalizeLanguage(s)
	if !ok {
		hint := ""
		if near := spec.NearestLanguage(s); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return "", fmt.Errorf("whisper: language: expected an ISO 639 code, found %q%s: %w", s, hint, ErrLanguage)
	}
	if !slices.Contains(e.languages, code) {
		return "", fmt.Errorf("whisper: language: %s supports %s, not %q: %w", e.model.Name, strings.Join(e.languages, ", "), code, ErrLanguage)
	}
	return code, nil
}

// run does native work on a state of the pool (or on a new one, which then
// joins the pool) in a separate goroutine. When ctx ends it tells the decode to
// stop and returns immediately; the work ends in the background, and only then
// are the state and everything that work uses released. Close does the same to
// all.
func (e *Engine) run(ctx context.Context, h *hotwords, fresh bool, work func(*state, *job) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	leave, err := e.takeTurn(ctx)
	if err != nil {
		return err
	}
	s, j, err := e.begin(h, fresh)
	if err != nil {
		leave()
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer e.running.Done()
		defer leave()
		err := e.try(s, j, work)
		if errors.Is(err, ErrDevice) && ctx.Err() == nil {
			err = e.elsewhere(ctx, h, err, work)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if errors.Is(err, errAborted) { // by Close; or by ctx, an instant ago
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return ErrClosed
		}
		return err
	case <-ctx.Done():
		e.abort(j)
		return context.Cause(ctx)
	}
}

// begin takes a state out of the pool and registers the work on it; the state
// is nil if the pool is empty or the state must be fresh.
func (e *Engine) begin(h *hotwords, fresh bool) (s *state, j *job, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, ErrClosed
	}
	if j, err = e.weights.newJob(h); err != nil {
		return nil, nil, err
	}
	if n := len(e.idle); n > 0 && !fresh {
		s, e.idle = e.idle[n-1], e.idle[:n-1]
	}
	e.jobs[j] = struct{}{}
	e.busy++
	e.peak = max(e.peak, e.busy)
	e.running.Add(1)
	return s, j, nil
}

// try does the work, on a new state without one.
func (e *Engine) try(s *state, j *job, work func(*state, *job) error) (err error) {
	if s == nil {
		s, err = e.weights.newState()
	}
	if err == nil {
		err = work(s, j)
	}
	e.release(s, j)
	return err
}

// release returns a state to the pool and frees the job.
func (e *Engine) release(s *state, j *job) {
	e.mu.Lock()
	delete(e.jobs, j)
	e.busy--
	keep := e.opt.Idle
	if keep == 0 {
		keep = e.peak
	}
	if s != nil && !e.closed && len(e.idle) < keep && !s.w.lost {
		e.idle = append(e.idle, s)
		s = nil
	}
	e.mu.Unlock()
	j.free()
	if s != nil {
		s.free()
	}
}

// Close stops the decodes in flight, whose callers get ErrClosed, waits for them and
// frees the model. It may be called more than once; every call returns when all is done.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.freed
		return nil
	}
	e.closed = true
	for j := range e.jobs {
		j.abort()
	}
	idle := e.idle
	e.idle = nil
	e.mu.Unlock()
	e.running.Wait()
	for _, s := range idle {
		s.free()
	}
	e.weights.free()
	close(e.freed)
	return nil
}
