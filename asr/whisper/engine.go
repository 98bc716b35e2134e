// Package whisper is the standard tier: Whisper models in ggml's format, computed by
// our own network (internal/whispernet) on the processor, or by libwhisper (whisper.cpp
// 1.9), which is opened at run time, on a GPU.
//
// One Engine holds a model's weights once. asr.Options.Parallel workers decode, each
// several windows side by side, so that one pass of the decoder serves all of their beams.
// A window's text depends only on its sound and the options, so the transcript is the same
// for any parallelism, and every time.
//
// The search is that of CTranslate2 (beams, length normalization, patience), with Whisper's
// published rules for time marks and symbols, and bonuses for hotwords. A window in whose
// first pass the model hears no speech is not decoded, and a loop ends its text with the
// third repetition. The windows that DetectLanguage encodes are kept for a minute, so that
// Transcribe needs no second pass of the encoder for them.
//
// Words are timed by the attention of the decoder (internal/wordtimes). A model whose
// alignment heads are known, by its shape or models.Model.AlignmentHeads, writes its text
// without time marks. Words that cannot be timed have asr.Word.Interpolated; on a GPU these
// are all.
//
// The environment variable OTOGRAPH_KERNELS (avx512, avxvnni, avx2, neon, generic) chooses the
// instructions of the processor; the default is the best that it has.
//
// libwhisper is opened where a device is asked for. Why not through the Go bindings that
// whisper.cpp publishes (github.com/ggerganov/whisper.cpp/bindings/go)? They have one state
// per model, lack the abort callback and the logits filter, and are linked, so that a
// program without libwhisper does not start. They serve as an independent check in a test
// (build tag crosscheck).
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
	"github.com/otograph/otograph/audio"
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
	// ErrDecode marks a failure of the computation, mostly because memory ran
	// out.
	ErrDecode = errors.New("decoding failed")
	// ErrLanguage marks a language that is missing, unknown, or not the model's.
	ErrLanguage = spec.Permanent(errors.New("language not supported"))
	// ErrTranslation marks a translation that the model cannot make.
	ErrTranslation = spec.Permanent(errors.New("the model of the standard tier cannot translate"))
	// ErrClosed is returned by an Engine after Close.
	ErrClosed = errors.New("the engine is closed")
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
	// AlignmentHeads are the heads of the decoder, as [layer, head] from 0, that follow the
	// sound best and time the words; nil is the published ones of the model's shape, or for
	// an unknown shape those that a window shows.
	AlignmentHeads [][2]int
	// Languages are the codes (spec.NormalizeLanguage) that the model was trained
	// for; nil is all that its vocabulary has. Detection chooses among them.
	Languages []string
}

// Options sets how an Engine works; the zero value serves.
type Options struct {
	// Logger takes libwhisper's own log as debug records (of all engines of the
	// process: the native log is one); nil is none.
	Logger *slog.Logger
	// Device is what computes the model: "auto" ("" is the same), "cpu", or "vulkan" with
	// or without a number ("vulkan:1"). Where a device is not there, or fails, the CPU
	// takes over, and Engine.Device says so. Texts are nearly the same.
	Device string
	// Threads is how many threads of the CPU answer a language question; 0 is one.
	Threads int
}

// Engine is a loaded model. It is safe for concurrent use. It implements
// asr.Transcriber and asr.LanguageDetector.
type Engine struct {
	model     modelFile
	opt       Options
	header    ggmlfile.Header
	languages []string
	packing   decode.PackOptions // how windows are filled

	life    context.Context // ends with Close
	end     context.CancelCauseFunc
	running sync.WaitGroup
	freed   chan struct{} // closed when Close is done

	mu      sync.Mutex
	backend backend
	place   place  // of the weights
	note    string // why that is not the place that was asked for
	closed  bool
}

var (
	_ asr.Transcriber      = (*Engine)(nil)
	_ asr.LanguageDetector = (*Engine)(nil)
)

// Open checks and loads a Whisper model, as returned by library.OpenFile,
// library.OpenDir and demo.Models. Errors name the file and its role; they wrap ErrModel
// for a file that is no usable model, and fs.ErrNotExist and the like for one that cannot
// be read. On the CPU no library is needed; a device needs libwhisper.
func Open(model *models.Model, opt Options) (*Engine, error) {
	f := model.Main()
	m := modelFile{
		Path: f.Path, Name: f.Name, WindowSeconds: model.WindowSeconds, Languages: model.Languages,
		NoPrompts: model.NoPrompts, NoTranslation: model.NoTranslation, AlignmentHeads: model.AlignmentHeads,
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
	known, err := m.languages(header)
	if err != nil {
		return fail(err)
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	b, at, note, err := m.load(opt)
	if err != nil {
		return fail(err)
	}
	if at == onCPU {
		m.Data = nil
	}
	if m.WindowSeconds <= 0 || m.WindowSeconds > 30 {
		m.WindowSeconds = 30
	}
	return newEngine(m, opt, header, b, known).put(at, note), nil
}

// How much sound a window has before the first word, and of a pause at most, in seconds:
// with less the model loses first words and their capitals. They are faster-whisper's.
const windowLead, windowGap = 0.4, 0.8

// packing is how windows are filled: those of 30 s as published models know them, shorter
// ones, which only models of our own have, as these were trained.
func (m modelFile) packing() decode.PackOptions {
	if m.WindowSeconds < 30 {
		return decode.PackOptions{Max: m.WindowSeconds}
	}
	return decode.PackOptions{Max: m.WindowSeconds, Lead: windowLead, MaxGap: windowGap}
}

// newEngine returns an engine of a backend.
func newEngine(m modelFile, opt Options, header ggmlfile.Header, b backend, languages []string) *Engine {
	e := &Engine{
		model: m, opt: opt, header: header, languages: languages, backend: b, place: onCPU,
		packing: m.packing(), freed: make(chan struct{}),
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e
}

// put records where the weights of a new engine are.
func (e *Engine) put(at place, note string) *Engine {
	e.place, e.note = at, note
	return e
}

// languages returns the codes the model can be asked for.
func (m modelFile) languages(h ggmlfile.Header) ([]string, error) {
	if !h.Multilingual() {
		return []string{"en"}, nil
	}
	spoken := int(h.Vocabulary - 51766) // the vocabulary grows by one token a language
	if len(m.Languages) > 0 {
		var known []string
		for _, l := range m.Languages {
			code, ok := spec.NormalizeLanguage(l)
			if !ok {
				return nil, fmt.Errorf("languages: expected ISO 639 codes, found %q", l)
			}
			if languageNumber(code) >= spoken {
				return nil, fmt.Errorf("languages: expected some of the first %d, whose tokens the model has, found %q", spoken, l)
			}
			known = append(known, code)
		}
		return known, nil
	}
	var known []string
	for i, l := range spec.Languages() {
		if i < spoken {
			known = append(known, l.Code)
		}
	}
	return known, nil
}

// languageNumber is the place of a language in Whisper's table, negative without one.
func languageNumber(code string) int {
	return slices.IndexFunc(spec.Languages(), func(l spec.Language) bool { return l.Code == code })
}

// Languages lists the codes that asr.Options.Language may have.
func (e *Engine) Languages() []string { return slices.Clone(e.languages) }

// Abilities implements asr.Transcriber.
func (e *Engine) Abilities() asr.Abilities {
	return asr.Abilities{Beam: maxBeams, Temperature: true, Hotwords: true, InitialPrompt: !e.model.NoPrompts, NoSpeech: true, Translate: e.header.Multilingual() && !e.model.NoTranslation}
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

// enter begins work that Close stops and waits for. The context of the work ends with that
// of the caller, and with the engine, whose error is then ErrClosed.
func (e *Engine) enter(ctx context.Context) (work context.Context, leave func(), err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, ErrClosed
	}
	e.running.Add(1)
	work, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return work, func() {
		stop()
		cancel(nil)
		e.running.Done()
	}, nil
}

// now is the backend that computes at present.
func (e *Engine) now() backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.backend
}

// decode decodes jobs, on the CPU where a device fails.
func (e *Engine) decode(ctx context.Context, jobs []*job, opt asr.Options, done func(i int)) error {
	left := make([]int, len(jobs)) // those that are not done
	for i := range left {
		left[i] = i
	}
	return e.compute(ctx, func(b backend) error {
		var some []*job
		these := slices.Clone(left)
		for _, i := range these {
			some = append(some, jobs[i])
		}
		return b.decode(ctx, some, opt, func(k int) {
			left = slices.DeleteFunc(left, func(i int) bool { return i == these[k] })
			done(these[k])
		})
	})
}

// hear asks what the first pass of the decoder knows, the CPU where a device fails.
func (e *Engine) hear(ctx context.Context, pcm *audio.PCM, windows []decode.Window) (list []heard, err error) {
	err = e.compute(ctx, func(b backend) error {
		list, err = b.hear(ctx, pcm, windows)
		return err
	})
	return list, err
}

// compute does work, again on the CPU if a device fails in it.
func (e *Engine) compute(ctx context.Context, work func(backend) error) error {
	b := e.now()
	err := work(b)
	if errors.Is(err, ErrDevice) && ctx.Err() == nil {
		if b, err = e.leaveDevice(b, err); err == nil {
			err = work(b)
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close stops the work in flight, whose callers get ErrClosed, waits for it and
// frees the model. It may be called more than once; every call returns when all is done.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.freed
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.end(ErrClosed)
	e.running.Wait()
	e.backend.free()
	close(e.freed)
	return nil
}
