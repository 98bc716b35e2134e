package otograph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/embed"
	"github.com/otograph/otograph/diarize/segment"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/events/tag"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// engine is a model that is loaded when it is first needed and kept until the
// pipeline closes. A failure to load is not kept: the next run tries again.
type engine[T io.Closer] struct {
	mu     sync.Mutex
	value  T
	loaded bool
}

// get returns the engine, loading it with open if need be.
func (e *engine[T]) get(open func() (T, error)) (T, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loaded {
		return e.value, nil
	}
	v, err := open()
	if err != nil {
		var zero T
		return zero, err
	}
	e.value, e.loaded = v, true
	return v, nil
}

func (e *engine[T]) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.loaded {
		return nil
	}
	e.loaded = false
	return e.value.Close()
}

// optimizedEngine is a recognizer of the optimized tier; some can also detect
// the language.
type optimizedEngine interface {
	asr.Transcriber
	asr.LanguageDetector
}

// engines are the models of one pipeline, each loaded at most once.
type engines struct {
	set       *models.Set
	available spec.Available // what set can transcribe
	cores     int
	log       *slog.Logger
	device    string // of the standard tier; see WithDevice
	standard  engine[*whisper.Engine]
	vad       engine[*silero.Model]
	embedder  engine[*embed.Model]
	segmenter engine[*segment.Model]
	tagger    engine[*tag.Model]
	mu        sync.Mutex
	optimized map[string]*engine[*onnx.Engine] // by model name
}

func (e *engines) loadVAD() (vad.Model, error) {
	return e.vad.get(func() (*silero.Model, error) {
		m, err := e.set.Need(models.RoleVAD)
		if err != nil {
			return nil, err
		}
		return silero.Open(m, silero.Options{Threads: e.cores, Logger: e.log})
	})
}

func (e *engines) loadEmbedder() (diarize.Embedder, error) {
	return e.embedder.get(func() (*embed.Model, error) {
		m, err := e.set.Need(models.RoleEmbedder)
		if err != nil {
			return nil, err
		}
		return embed.Open(m, embed.Options{})
	})
}

// loadSegmenter opens the speaker segmentation network, nil if the set has
// none. A demonstration is not used with the voices of a real embedder.
func (e *engines) loadSegmenter() (diarize.Segmenter, error) {
	m, ok := e.set.Role(models.RoleSegmenter)
	if voices, has := e.set.Role(models.RoleEmbedder); !ok || m.Demo && has && !voices.Demo {
		return nil, nil
	}
	return e.segmenter.get(func() (*segment.Model, error) { return segment.Open(m, segment.Options{}) })
}

// demonstrates reports whether a result's words, or without words all of it, come
// from demonstration models.
func (e *engines) demonstrates(r *Result) bool {
	if r.Ran.ASR {
		m := e.model(r.Tier, r.Language)
		return m != nil && m.Demo
	}
	demo := func(role models.Role) bool {
		m, ok := e.set.Role(role)
		return ok && m.Demo
	}
	return (r.Ran.Diarize || r.Ran.AudioEvents) && (!r.Ran.Diarize || demo(models.RoleEmbedder)) && (!r.Ran.AudioEvents || demo(models.RoleTagger))
}

func (e *engines) loadTagger() (events.Tagger, error) {
	return e.tagger.get(func() (*tag.Model, error) {
		m, err := e.set.Need(models.RoleTagger)
		if err != nil {
			return nil, err
		}
		return tag.Open(m, tag.Options{})
	})
}

func (e *engines) loadStandard() (*whisper.Engine, error) {
	return e.standard.get(func() (*whisper.Engine, error) {
		m, err := e.set.Need(models.RoleStandard)
		if err != nil {
			return nil, err
		}
		f := m.Main()
		wm := whisper.Model{Path: f.Path, Name: f.Name, WindowSeconds: m.WindowSeconds, Languages: m.Languages, NoPrompts: m.NoPrompts, NoTranslation: m.NoTranslation}
		if f.Data != nil {
			if wm.Data, err = f.Data(); err != nil {
				return nil, fmt.Errorf("%s model %s: %w", m.Role, m.Name, err)
			}
			wm.Path = ""
		}
		w, err := whisper.Open(wm, whisper.Options{Device: e.device, Threads: e.cores})
		if err != nil {
			return nil, err
		}
		name, note := w.Device()
		e.log.Debug("standard tier", "device", name)
		if note != "" {
			e.log.Warn("the standard tier runs without the requested device", "reason", note)
		}
		return w, nil
	})
}

// deviceNote returns why the standard tier's model is not on the requested
// device; "" if it is, or if the model has not been loaded.
func (e *engines) deviceNote() string {
	e.standard.mu.Lock()
	defer e.standard.mu.Unlock()
	if !e.standard.loaded {
		return ""
	}
	_, note := e.standard.value.Device()
	return note
}

// loadOptimized opens the optimized model for a language; without a language,
// the first one.
func (e *engines) loadOptimized(language string) (optimizedEngine, error) {
	m, ok := e.set.OptimizedFor(language)
	if language == "" {
		m, ok = e.set.Role(models.RoleOptimized)
	}
	if !ok {
		_, err := e.set.Need(models.RoleOptimized)
		return nil, err
	}
	return e.openOptimized(m)
}

// openOptimized opens one of the set's optimized models.
func (e *engines) openOptimized(m *models.Model) (*onnx.Engine, error) {
	e.mu.Lock()
	if e.optimized == nil {
		e.optimized = map[string]*engine[*onnx.Engine]{}
	}
	slot := e.optimized[m.Name]
	if slot == nil {
		slot = &engine[*onnx.Engine]{}
		e.optimized[m.Name] = slot
	}
	e.mu.Unlock()
	return slot.get(func() (*onnx.Engine, error) { return onnx.Open(m, onnx.Options{}) })
}

// recognizer opens the model of a tier for a language.
func (e *engines) recognizer(tier Tier, language string) (asr.Transcriber, error) {
	if tier == TierOptimized {
		return e.loadOptimized(language)
	}
	return e.loadStandard()
}

// model returns the model of a tier that transcribes the language, nil without one.
func (e *engines) model(tier Tier, language string) *models.Model {
	m, ok := e.set.Role(models.RoleStandard)
	if tier == TierOptimized {
		m, ok = e.set.OptimizedFor(language)
	} else if ok && len(m.Languages) > 0 && !slices.Contains(m.Languages, language) {
		return nil
	}
	if !ok {
		return nil
	}
	return m
}

// load opens what the roles name; for the optimized role, every model of it.
func (e *engines) load(ctx context.Context, roles []models.Role) error {
	for _, role := range roles {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch role {
		case models.RoleStandard:
			_, err = e.loadStandard()
		case models.RoleVAD:
			_, err = e.loadVAD()
		case models.RoleEmbedder:
			_, err = e.loadEmbedder()
		case models.RoleSegmenter:
			_, err = e.loadSegmenter()
		case models.RoleTagger:
			_, err = e.loadTagger()
		case models.RoleOptimized:
			for _, m := range e.set.All(role) {
				for _, language := range m.Languages {
					if _, err = e.loadOptimized(language); err != nil {
						return err
					}
				}
			}
			_, err = e.loadOptimized("")
		default:
			_, err = models.ParseRole(string(role))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *engines) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := []error{e.standard.Close(), e.vad.Close(), e.embedder.Close(), e.segmenter.Close(), e.tagger.Close()}
	for _, o := range e.optimized {
		errs = append(errs, o.Close())
	}
	ort.TrimHeap()
	return errors.Join(errs...)
}
