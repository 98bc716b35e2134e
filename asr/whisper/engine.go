// Package whisper is the standard tier: Whisper models in ggml's format,
// computed by our own network (internal/engine/whispernet) on the processor, or by
// libwhisper (whisper.cpp 1.9), which is opened at run time, on a GPU.
//
// One Engine holds a model's weights once. asr.Options.Parallel workers decode,
// each several windows side by side, so that one pass of the decoder serves all
// of their beams. A window's text depends only on its sound and the options, so
// the transcript is reproducible at any parallelism.
//
// The search is CTranslate2's (beams, length normalization, patience), with
// Whisper's published rules for time marks and symbols. A window is not decoded if the model hears no speech in its first
// pass, and a loop ends the text at its third repetition. The windows that
// DetectLanguage encodes are kept for a minute, so that Transcribe does not
// encode them again.
//
// Words are timed by the attention of the decoder (internal/engine/wordtimes). A model
// whose alignment heads are known, by its shape or models.Model.AlignmentHeads,
// writes its text without time marks. asr.Word.Interpolated marks words that
// cannot be timed; on a GPU these are all words.
//
// The environment variable OTOGRAPH_KERNELS (avx512, avxvnni, avx2, neon,
// generic) selects the CPU's instruction set; the default is the best one that
// it supports.
//
// libwhisper is opened only for a device, and not through whisper.cpp's Go
// bindings (github.com/ggerganov/whisper.cpp/bindings/go): they have one state
// per model, lack the abort callback and the logits filter, and are linked, so
// that a program would not start without libwhisper. They serve as an
// independent check in a test (build tag crosscheck).
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
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Errors that callers can match; they are wrapped with details.
var (
	// ErrModel marks a damaged file, or one that holds no Whisper model.
	ErrModel = ggmlfile.ErrNotWhisper
	// ErrLibrary marks a libwhisper that does not fit this program.
	// (native.ErrMissing marks a missing one.)
	ErrLibrary = errors.New("libwhisper does not fit")
	// ErrDecode marks a failed computation, mostly because memory ran out.
	ErrDecode = errors.New("decoding failed")
	// ErrLanguage marks a missing or unknown language, or one that the model
	// does not support.
	ErrLanguage = spec.Permanent(errors.New("language not supported"))
	// ErrTranslation marks a translation that the model cannot make.
	ErrTranslation = spec.Permanent(errors.New("the model of the standard tier cannot translate"))
	// ErrClosed is returned by an Engine after Close.
	ErrClosed = errors.New("the engine is closed")
)

// modelFile is a model to open. Its Name is the file's, for errors.
type modelFile struct {
	models.Model
	// Path is the file. Alternatively, Data is its content, which must not
	// change until Open returns (the weights are copied), or, on a device,
	// until Close.
	Path string
	Data []byte
}

// Options configures an Engine; the zero value is valid.
type Options struct {
	// Logger receives libwhisper's own log as debug records (for all engines of
	// the process: the native log is shared); nil discards it.
	Logger *slog.Logger
	// Device selects the device that computes the model: "auto" ("" is the
	// same), "cpu", or "vulkan" with or without a number ("vulkan:1"). If the
	// device is missing or fails, the CPU takes over, and Engine.Device reports
	// it. Texts are nearly the same.
	Device string
	// Threads is the number of CPU threads for language detection; 0 is one.
	Threads int
}

// Engine is a loaded model. It is safe for concurrent use. It implements
// asr.Transcriber and asr.LanguageDetector.
type Engine struct {
	model     modelFile
	opt       Options
	header    ggmlfile.Header
	languages []string
	packing   decode.PackOptions // how windows are packed

	life    context.Context // canceled by Close
	end     context.CancelCauseFunc
	running sync.WaitGroup
	freed   chan struct{} // closed when Close is done

	mu      sync.Mutex
	backend backend
	place   place  // of the weights
	note    string // why the place is not the requested one
	closed  bool
}

var (
	_ asr.Transcriber      = (*Engine)(nil)
	_ asr.LanguageDetector = (*Engine)(nil)
)

func init() {
	recognizers.Register(func(m *models.Model, o recognizers.Options) (*Engine, error) {
		e, err := Open(m, Options{Device: o.Device, Threads: o.Threads})
		if err != nil {
			return nil, err
		}
		name, note := e.Device()
		o.Logger.Debug("standard tier", "device", name)
		if note != "" {
			o.Logger.Warn("the standard tier runs without the requested device", "reason", note)
		}
		return e, nil
	}, models.ContractWhisper)
}

// Open checks and loads a Whisper model, as returned by library.OpenFile,
// library.OpenDir and demo.Models. Errors name the file and its role; they wrap
// ErrModel if the file is no usable model, and fs.ErrNotExist and the like if
// it cannot be read. The CPU needs no library; a device needs libwhisper.
func Open(model *models.Model, opt Options) (*Engine, error) {
	f := model.Main()
	m := modelFile{Model: *model, Path: f.Path}
	m.Name = f.Name
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
	e := newEngine(m, opt, header, b, known)
	e.place, e.note = at, note
	return e, nil
}

// The sound before a window's first word and the longest pause in a window, in
// seconds: with less, the model loses first words and their capitals. They are
// faster-whisper's.
const windowLead, windowGap = 0.4, 0.8

// packing returns how windows are packed. Published models use windows of 30 s;
// shorter windows, which only our own models have, are packed as in their
// training.
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

// languages returns the codes of the languages that the model supports.
func (m modelFile) languages(h ggmlfile.Header) ([]string, error) {
	if !h.Multilingual() {
		return []string{"en"}, nil
	}
	spoken := int(h.Vocabulary - 51766) // one token per language
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
	for i, l := range spec.Languages() {
		if len(m.Languages) == 0 && i < spoken {
			known = append(known, l.Code)
		}
	}
	return known, nil
}

// languageNumber returns the index of a language in Whisper's table, or a
// negative number.
func languageNumber(code string) int {
	return slices.IndexFunc(spec.Languages(), func(l spec.Language) bool { return l.Code == code })
}

// Languages lists the codes that asr.Options.Language may have.
func (e *Engine) Languages() []string { return slices.Clone(e.languages) }

// Abilities implements asr.Transcriber.
func (e *Engine) Abilities() asr.Abilities {
	return asr.Abilities{Beam: maxBeams, Temperature: true, Hotwords: e.onCPU(), InitialPrompt: !e.model.NoPrompts, NoSpeech: true, Translate: e.header.Multilingual() && !e.model.NoTranslation}
}

// language checks the language of a transcription.
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

// enter starts work that Close stops and waits for. The context of the work
// ends with the caller's and with the engine's; in the second case its error is
// ErrClosed.
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

// now returns the current backend.
func (e *Engine) now() backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.backend
}

// decode decodes jobs, on the CPU if a device fails.
func (e *Engine) decode(ctx context.Context, jobs []*job, opt asr.Options, done func(i int)) error {
	left := make([]int, len(jobs)) // jobs that are not done
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

// hear runs the decoder's first pass over windows, on the CPU if a device
// fails.
func (e *Engine) hear(ctx context.Context, pcm *audio.PCM, windows []decode.Window, briefly bool) (list []heard, err error) {
	err = e.compute(ctx, func(b backend) error {
		list, err = b.hear(ctx, pcm, windows, briefly)
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
// frees the model. It may be called more than once; every call waits for all
// work to end.
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
