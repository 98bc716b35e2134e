// Package whisper is the standard tier: Whisper models in ggml's format,
// computed by our own network (internal/engine/whispernet) on the processor.
// asr/whispercpp computes the same models on a GPU.
//
// One Engine holds a model's weights once. asr.Options.Parallel workers decode,
// each several windows side by side, so that one pass of the decoder serves all
// of their beams. A window's text depends only on its sound and the options, so
// the transcript is reproducible at any parallelism.
//
// The search is CTranslate2's (beams, length normalization, patience), with
// Whisper's published rules for time marks and symbols. A window is not decoded
// if the no-speech probability after its first pass is high, and a loop ends
// the text at its fourth repetition. The windows that DetectLanguage encodes
// are stored for a minute, so that Transcribe does not encode them again.
//
// Words are timed by the decoder's attention (internal/engine/wordtimes). A
// model with known alignment heads, by its shape or models.Model, writes text
// without time marks. asr.Word.Interpolated marks other words.
//
// OTOGRAPH_KERNELS in the environment (avx512, avxvnni, avx2, neon, generic)
// selects the CPU's instruction set; the default is the best.
package whisper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Errors that callers can match; they are wrapped with details.
var (
	// ErrModel marks a damaged file, or one that holds no Whisper model.
	ErrModel = ggmlfile.ErrNotWhisper
	// ErrDecode marks a failed computation, mostly because memory ran out.
	ErrDecode = errors.New("decoding failed")
	// ErrTranslation marks a translation that the model cannot make.
	ErrTranslation = spec.Permanent(errors.New("the model of the standard tier cannot translate"))
	// ErrClosed is returned by an Engine after Close.
	ErrClosed = errors.New("the engine is closed")
)

// Options configures an Engine; the zero value is valid.
type Options struct {
	// Threads is the number of CPU threads for language detection; 0 is one.
	Threads int
}

// Engine is a loaded model. It is safe for concurrent use. It implements
// asr.Transcriber and asr.LanguageDetector.
type Engine struct {
	name      string // of the file, for errors
	model     models.Model
	threads   int // for language detection
	header    ggmlfile.Header
	languages []string
	packing   decode.PackOptions // how windows are packed
	cpu       *cpu

	life    context.Context // canceled by Close
	end     context.CancelCauseFunc
	running sync.WaitGroup
	freed   chan struct{} // closed when Close is done

	mu     sync.Mutex
	closed bool
}

var (
	_ asr.Transcriber      = (*Engine)(nil)
	_ asr.LanguageDetector = (*Engine)(nil)
	_ asr.Sketcher         = (*Engine)(nil)
)

func init() {
	recognizers.Register(func(m *models.Model, o recognizers.Options) (asr.Transcriber, error) {
		e, err := Open(m, Options{Threads: o.Threads})
		if err != nil || o.Device == "" || o.Device == recognizers.DeviceAuto || o.Device == recognizers.DeviceCPU {
			return e, err
		}
		d := deviceless{e, o.Device + " is not used: this program was built without asr/whispercpp; the CPU computes"}
		o.Logger.Warn("the standard tier runs without the requested device", "reason", d.note)
		return d, nil
	}, models.ContractWhisper)
}

// deviceless is an engine that lacks the requested device; note says why.
type deviceless struct {
	*Engine
	note string
}

// Device returns the computing device, and why it is not the requested one.
func (d deviceless) Device() (name, note string) { return recognizers.DeviceCPU, d.note }

// Open checks and loads a Whisper model, as library.OpenFile, library.OpenDir
// and demo.Models return it. Errors name file and role; they wrap ErrModel if
// the file is no usable model, or the error of reading it.
func Open(model *models.Model, opt Options) (*Engine, error) {
	f, err := whispernet.OpenFile(model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	thin := f.Packing.Max == 30 && f.Header.AudioLayers <= thinLayers
	if thin {
		f.Packing.Opening = openingSeconds
	}
	c, err := openCPU(f, model.AlignmentHeads, thin, opt.Threads)
	if err != nil {
		return nil, fmt.Errorf("whisper: %s (standard recognizer): %w", f.Name, err)
	}
	e := &Engine{
		name: f.Name, model: *model, threads: opt.Threads, header: f.Header, languages: f.Languages, packing: f.Packing,
		cpu: c, freed: make(chan struct{}),
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Languages lists the codes that asr.Options.Language may have.
func (e *Engine) Languages() []string { return slices.Clone(e.languages) }

// Abilities implements asr.Transcriber.
func (e *Engine) Abilities() asr.Abilities {
	return asr.Abilities{Beam: maxBeams, Temperature: true, Hotwords: true, InitialPrompt: !e.model.NoPrompts, NoSpeech: true, Translate: e.header.Multilingual() && !e.model.NoTranslation}
}

// enter starts work that Close stops and waits for. Its context ends with the
// caller's and with the engine's, then with the error ErrClosed.
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

// decode decodes jobs on as many cores as the options allow, behind their gate,
// and calls done with the index of each finished job, possibly concurrently and
// without a core. It starts no further job after an error.
func (e *Engine) decode(ctx context.Context, jobs []*job, opt asr.Options, done func(i int)) error {
	return ended(ctx, e.cpu.decode(ctx, jobs, opt, done))
}

// firstPass returns the decoder's first pass over each window, as cpu's.
func (e *Engine) firstPass(ctx context.Context, pcm *audio.PCM, windows []decode.Window, brief bool) ([]firstPass, error) {
	list, err := e.cpu.firstPass(ctx, pcm, windows, brief)
	return list, ended(ctx, err)
}

// ended returns the cause of ctx's end instead of the resulting error.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close stops the work in flight, whose callers get ErrClosed, waits for it and
// frees the model. It may be called again; every call waits.
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
	e.cpu.free()
	close(e.freed)
	return nil
}
