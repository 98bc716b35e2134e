// Package whispercpp is the standard tier on GPUs: Whisper models in ggml's
// format, computed by libwhisper (whisper.cpp 1.9), which is opened at run
// time. A program that imports it, as the command does, uses a GPU for the
// standard tier if there is one:
//
//	import _ "github.com/otograph/otograph/asr/whispercpp"
//
// The search is whisper.cpp's own, at rising temperatures if a text fails.
// Words have no measured times (asr.Word.Interpolated), no names are looked for,
// and every passage is decoded in the same language. Without a device, and
// after one has failed, asr/whisper computes the model on the CPU.
//
// libwhisper is not used through whisper.cpp's Go bindings
// (github.com/ggerganov/whisper.cpp/bindings/go): they have one state per
// model, lack the abort callback, and are linked: a program would not start
// without it. They are an independent check in a test (build tag crosscheck).
package whispercpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/models"
)

// engine is a loaded model. It is safe for concurrent use. It implements
// asr.Transcriber and asr.LanguageDetector.
type engine struct {
	model models.Model
	opt   recognizers.Options // its Threads are for language detection

	mu     sync.RWMutex
	device *onDevice       // nil once the CPU computes
	cpu    *whisper.Engine // nil until the CPU computes
	name   string          // of the device
	note   string          // why it is not the requested one
	closed bool
}

var (
	_ asr.Transcriber      = (*engine)(nil)
	_ asr.LanguageDetector = (*engine)(nil)
)

func init() { recognizers.Register(open, models.ContractWhisper) }

// open checks and loads a Whisper model on the requested device, which needs
// libwhisper, or on the CPU, if the device is missing or does not take it. It
// fails as whisper.Open does. libwhisper's log becomes debug records, for all
// engines of the process. Texts of devices are nearly the same.
func open(model *models.Model, opt recognizers.Options) (*engine, error) {
	opt.Logger = cmp.Or(opt.Logger, slog.New(slog.DiscardHandler))
	e := &engine{model: *model, opt: opt}
	number, name, note, err := choose(opt.Device)
	if err != nil {
		return nil, fmt.Errorf("whispercpp: %w", err)
	}
	e.name, e.note = name, note
	if number >= 0 {
		e.device, err = openDevice(model, number, opt.Logger)
		if err != nil && !errors.Is(err, errDevice) {
			return nil, err
		}
		if err != nil {
			e.name, e.note = recognizers.DeviceCPU, fmt.Sprintf("%s does not take the model (%v); the CPU computes", name, err)
		}
	}
	if e.device == nil {
		if e.cpu, err = whisper.Open(model, whisper.Options{Threads: opt.Threads}); err != nil {
			return nil, err
		}
	}
	opt.Logger.Debug("standard tier", "device", e.name)
	if e.note != "" {
		opt.Logger.Warn("the standard tier runs without the requested device", "reason", e.note)
	}
	return e, nil
}

// Device returns the name of the computing device, "cpu" or one of Devices.
// note says why it is not the requested one. It changes when a device fails.
func (e *engine) Device() (name, note string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.name, e.note
}

// now returns the device, or the engine of the CPU.
func (e *engine) now() (*onDevice, *whisper.Engine) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.device, e.cpu
}

// leaveDevice moves the model from a failed device to the CPU. The device's
// memory is never freed: the failed call may still hold the driver's locks.
func (e *engine) leaveDevice(from *onDevice, why error) (*whisper.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, whisper.ErrClosed
	case e.device != from:
		return e.cpu, nil // another goroutine has already moved it
	}
	cpu, err := whisper.Open(&e.model, whisper.Options{Threads: e.opt.Threads})
	if err != nil {
		return nil, fmt.Errorf("%w; and on the CPU: %w", why, err)
	}
	e.note = fmt.Sprintf("%s failed (%v); the CPU computes", e.name, why)
	e.opt.Logger.Warn("whisper: device failed, continuing on the CPU", "device", e.name, "error", why)
	e.device, e.cpu, e.name = nil, cpu, recognizers.DeviceCPU
	return cpu, nil
}

// Languages lists the codes that asr.Options.Language may have.
func (e *engine) Languages() []string {
	d, cpu := e.now()
	if d == nil {
		return cpu.Languages()
	}
	return slices.Clone(d.file.Languages)
}

// Abilities implements asr.Transcriber.
func (e *engine) Abilities() asr.Abilities {
	d, cpu := e.now()
	if d == nil {
		return cpu.Abilities()
	}
	return asr.Abilities{Beam: mostDecoders, Temperature: true, InitialPrompt: !e.model.NoPrompts, NoSpeech: true, Translate: d.translates}
}

// Transcribe implements asr.Transcriber. A device decodes one window at a time.
// If it fails, the CPU transcribes the rest of the recording.
//
// It returns when ctx ends, with its cause; a device's computation then ends in
// the background. After Close it returns whisper.ErrClosed.
func (e *engine) Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	d, cpu := e.now()
	if d == nil {
		return cpu.Transcribe(ctx, pcm, speech, opt)
	}
	t, rest, err := d.transcribe(ctx, pcm, speech, opt)
	if !errors.Is(err, errDevice) || ctx.Err() != nil {
		return t, err
	}
	if cpu, err = e.leaveDevice(d, err); err != nil {
		return nil, err
	}
	more, err := cpu.Transcribe(ctx, pcm, rest, opt)
	if err != nil {
		return nil, err
	}
	more.Segments = append(t.Segments, more.Segments...)
	more.Stats.Add(t.Stats)
	return more, nil
}

// DetectLanguage implements asr.LanguageDetector. A device decides by the mean
// of the first window of speech, the middle one and the last one.
func (e *engine) DetectLanguage(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Detection) (language string, probability float64, err error) {
	d, cpu := e.now()
	if d != nil {
		language, probability, err = d.detect(ctx, pcm, speech, opt)
		if !errors.Is(err, errDevice) || ctx.Err() != nil {
			return language, probability, err
		}
		if cpu, err = e.leaveDevice(d, err); err != nil {
			return "", 0, err
		}
	}
	return cpu.DetectLanguage(ctx, pcm, speech, opt)
}

// Close stops the work in flight, whose callers get whisper.ErrClosed, waits
// for it and frees the model. It may be called more than once.
func (e *engine) Close() error {
	e.mu.Lock()
	e.closed = true
	d, cpu := e.device, e.cpu
	e.mu.Unlock()
	if d != nil {
		d.close()
	}
	if cpu != nil {
		return cpu.Close()
	}
	return nil
}
