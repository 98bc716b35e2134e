// Package engines keeps the loaded models of one pipeline.
package engines

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/otograph/otograph/asr"
	_ "github.com/otograph/otograph/asr/onnx"    // registers its contracts
	_ "github.com/otograph/otograph/asr/whisper" // registers its contract
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/events/tag"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// engine is a model that is loaded on first use; failures are not cached.
type engine[T io.Closer] struct {
	mu     sync.Mutex
	value  T
	loaded bool
}

// get returns the engine and loads it with open if necessary.
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

// detector opens the model of a role, unless it is loaded already.
func detector[T io.Closer](e *Engines, d *engine[T], role models.Role, open func(*models.Model) (T, error)) (T, error) {
	return d.get(func() (none T, err error) {
		m, err := e.Set.Need(role)
		if err != nil {
			return none, err
		}
		return open(m)
	})
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

// Options configures Engines.
type Options struct {
	Cores  int
	Logger *slog.Logger
	Device string // for the standard tier's model, as in otograph.Config
	// Languages limits the optimized tier's languages; empty means all.
	Languages []string
	// Choice are further recognizers, which Lease selects by name.
	Choice []models.Model
	// Keep limits the time and the memory for which recognizers stay loaded.
	Keep Keeping
}

// Engines are the models of one pipeline, each loaded once at a time.
type Engines struct {
	Set       *models.Set
	Available spec.Available // tiers and languages of Set, and the names in Options.Choice
	opt       Options
	*detectors
	recognizers *pool
	lease       *lease // the lease of a run, or nil
}

// detectors are small models that stay loaded.
type detectors struct {
	vad       engine[*silero.Model]
	embedder  engine[*networks.Embedder]
	segmenter engine[*networks.Segmenter]
	tagger    engine[*tag.Model]
	opening   chan struct{} // full while a recognizer or the embedder is opened, which needs much more memory than it keeps
}

// New returns the engines of a set, none of them loaded.
func New(set *models.Set, opt Options) *Engines {
	opt.Logger = cmp.Or(opt.Logger, slog.New(slog.DiscardHandler))
	e := &Engines{Set: set, Available: set.Available(opt.Languages...), opt: opt, detectors: &detectors{opening: make(chan struct{}, 1)}, recognizers: newPool(opt.Keep, opt.Logger)}
	for _, m := range slices.Concat(set.Models, opt.Choice) {
		if known := slices.ContainsFunc(e.Available.Models, func(n spec.NamedModel) bool { return n.Name == m.Name }); known || !recognizes(m) {
			continue
		}
		if n := size(&m); opt.Keep.Memory > 0 && n > opt.Keep.Memory {
			opt.Logger.Warn("a model of the folder is left out: it needs more memory than models may have", "model", m.Name, "bytes", n, "bound", opt.Keep.Memory)
			continue
		}
		e.Available.Models = append(e.Available.Models, named(m, e.Available, opt.Languages))
	}
	return e
}

// recognizes reports whether a model transcribes.
func recognizes(m models.Model) bool {
	return m.Role == models.RoleStandard || m.Role == models.RoleOptimized
}

// named describes a recognizer that requests can select by name.
func named(m models.Model, a spec.Available, optimized []string) spec.NamedModel {
	alone := (&models.Set{Models: []models.Model{m}}).Available(optimized...)
	n := spec.NamedModel{Name: m.Name, Tier: spec.TierStandard, Languages: alone.StandardLanguages, Translates: alone.Translates}
	if m.Role == models.RoleOptimized {
		n.Tier, n.Languages, n.Translates = spec.TierOptimized, alone.Optimized, a.Translates
	}
	return n
}

// Lease returns the engines of a run, with the recognizer called name in place
// of the set's recognizer; "" keeps the latter. The recognizers of the run stay
// loaded until End. An unknown name is a *spec.OptionError.
func (e *Engines) Lease(name string) (*Engines, error) {
	run := *e
	run.lease = &lease{slots: map[*slot]bool{}}
	if name == "" {
		return &run, nil
	}
	var known bool
	if run.Available, known = e.Available.Only(name); !known {
		return nil, &spec.OptionError{Field: "model", Reason: "is not in the model folder: " + spec.Shorten(name)}
	}
	all := slices.Concat(e.Set.Models, e.opt.Choice)
	m := all[slices.IndexFunc(all, func(m models.Model) bool { return recognizes(m) && m.Name == name })]
	// Optimized models next to a standard model time its words.
	others := slices.DeleteFunc(slices.Clone(e.Set.Models), func(other models.Model) bool { return other.Role == m.Role })
	run.Set = &models.Set{Name: e.Set.Name, Models: append([]models.Model{m}, others...)}
	return &run, nil
}

// End ends the lease of a run.
func (e *Engines) End() {
	if e.lease != nil {
		e.recognizers.end(e.lease)
	}
}

// VAD opens the voice activity detector.
func (e *Engines) VAD() (vad.Model, error) {
	return detector(e, &e.vad, models.RoleVAD, func(m *models.Model) (*silero.Model, error) {
		return silero.Open(m, silero.Options{Threads: e.opt.Cores})
	})
}

// Embedder opens the speaker embedding network.
func (e *Engines) Embedder() (diarize.Embedder, error) {
	return detector(e, &e.embedder, models.RoleEmbedder, func(m *models.Model) (*networks.Embedder, error) {
		e.opening <- struct{}{}
		defer func() { <-e.opening }()
		defer debug.FreeOSMemory() // of an embedded file's bytes, which the network has copied
		return networks.OpenEmbedder(m, networks.Options{})
	})
}

// Segmenter opens the speaker segmentation network, nil if the set has none.
func (e *Engines) Segmenter() (diarize.Segmenter, error) {
	m, ok := e.Set.Role(models.RoleSegmenter)
	if !ok {
		return nil, nil
	}
	return e.segmenter.get(func() (*networks.Segmenter, error) { return networks.OpenSegmenter(m, networks.Options{}) })
}

// Tagger opens the sound event network.
func (e *Engines) Tagger() (events.Tagger, error) {
	return detector(e, &e.tagger, models.RoleTagger, func(m *models.Model) (*tag.Model, error) {
		return tag.Open(m, tag.Options{})
	})
}

// large is the size in bytes from which loading a model ends in a collection.
const large = 200 << 20

// Open opens a recognizer until the lease of the run ends; see pool.get.
func (e *Engines) Open(ctx context.Context, m *models.Model) (asr.Transcriber, error) {
	return e.recognizers.get(ctx, e.lease, m, func() (asr.Transcriber, error) {
		select {
		case e.opening <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		defer func() { <-e.opening }()
		defer ort.TrimHeap()
		if size(m) >= large {
			defer debug.FreeOSMemory() // now rather than when the garbage is 64 MB
		}
		return recognizers.Open(m, recognizers.Options{Device: e.opt.Device, Threads: e.opt.Cores, Logger: e.opt.Logger})
	})
}

// Recognizer opens a tier's model for a language; without a language, the
// tier's first model.
func (e *Engines) Recognizer(ctx context.Context, tier spec.Tier, language string) (asr.Transcriber, error) {
	role := models.RoleStandard
	if tier == spec.TierOptimized {
		role = models.RoleOptimized
		if m, ok := e.Set.OptimizedFor(language); ok && language != "" {
			return e.Open(ctx, m)
		}
	}
	m, err := e.Set.Need(role)
	if err != nil {
		return nil, err
	}
	return e.Open(ctx, m)
}

// DeviceNote returns the reason why the loaded standard model does not run on
// the requested device, otherwise "".
func (e *Engines) DeviceNote() string {
	if m, ok := e.Set.Role(models.RoleStandard); ok {
		if t, ok := e.recognizers.loaded(m).(interface{ Device() (name, note string) }); ok {
			_, note := t.Device()
			return note
		}
	}
	return ""
}

// Model returns the model of a tier that transcribes the language, or nil.
func (e *Engines) Model(tier spec.Tier, language string) *models.Model {
	m, ok := e.Set.Role(models.RoleStandard)
	if tier == spec.TierOptimized {
		m, _ = e.Set.OptimizedFor(language)
	} else if ok && len(m.Languages) > 0 && !slices.Contains(m.Languages, language) {
		return nil
	}
	return m
}

// Load opens the models of the roles; for the optimized role, every model of it.
func (e *Engines) Load(ctx context.Context, roles []models.Role) error {
	for _, role := range roles {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch role {
		case models.RoleStandard:
			_, err = e.Recognizer(ctx, spec.TierStandard, "")
		case models.RoleVAD:
			_, err = e.VAD()
		case models.RoleEmbedder:
			_, err = e.Embedder()
		case models.RoleSegmenter:
			_, err = e.Segmenter()
		case models.RoleTagger:
			_, err = e.Tagger()
		case models.RoleOptimized:
			_, err = e.Set.Need(role)
			for _, m := range e.Set.All(role) {
				if err == nil {
					_, err = e.Open(ctx, m)
				}
			}
		default:
			_, err = models.ParseRole(string(role))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close frees the loaded models.
func (e *Engines) Close() error {
	err := errors.Join(e.recognizers.Close(), e.vad.Close(), e.embedder.Close(), e.segmenter.Close(), e.tagger.Close())
	ort.TrimHeap()
	return err
}
