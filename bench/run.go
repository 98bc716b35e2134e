package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/bench/internal/systems"
	"github.com/otograph/otograph/models"
)

// System is one of the compared systems: models with options, or an Engine.
type System struct {
	Name    string // name in reports; unique in a run
	Set     *models.Set
	Options otograph.Options
	// KnownLanguage takes the language from the manifest without detection.
	KnownLanguage bool
	// Cascade is the threshold of otograph.Config.
	Cascade float64
	// Engine is another recognizer, instead of the models.
	Engine Engine
	// Parallel is how many recordings an Engine processes in parallel (0: 1).
	Parallel int
	// Stream opens a session of another live recognizer, which Live measures;
	// the models then only measure when words end. For a nil language it
	// detects one.
	Stream func(ctx context.Context, language *string) (LiveStream, error)
}

// Config configures a run.
type Config struct {
	Items   []Item
	Systems []System // the others are compared with the first one
	// Repeat is how often a recording is measured (0: 1); the median counts.
	Repeat int
	// Warmup is how many times each system runs the first recording before
	// measuring, to load models, allocate memory and fill caches.
	Warmup int
	// DER configures the scoring of turns.
	DER DEROptions
	// Normalizer names the rules that convert texts to a common form before
	// they are compared: none, basic, whisper, letters or openasr-2026; ""
	// compares words without case and punctuation.
	Normalizer string
	// Keywords are words or phrases to count in every text.
	Keywords []string
	// By lists the manifest keys by which the report groups the recordings.
	By []string
	// Cores limits the number of cores (0 means all).
	Cores int
	// Device is the standard tier's device; see otograph.Config.
	Device string
	// Seed is the seed of the bootstrap.
	Seed uint64
	// RunFile stores the measurements, from which an interrupted run continues.
	// If it is empty, none are stored.
	RunFile string
	// Audio holds the decoder's options.
	Audio audio.Options
	// Progress, if set, is called before each measurement.
	Progress func(Step)

	classes []string          // of the manifest's events
	rules   scores.Normalizer // of Normalizer
}

// Step is the next step of a run.
type Step struct {
	System, Item string
	What         string  // "load", "warm-up", "repeat 2 of 3"
	Done, Total  float64 // recordings of all systems
}

func (c Config) repeats() int { return max(1, c.Repeat) }

// eventClasses returns all classes in the manifest, or nil if it has none.
func (c Config) eventClasses() []string {
	var out []string
	for _, it := range c.Items {
		for _, e := range it.Events {
			out = append(out, e.Class)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// head identifies the measured configuration, so that the measurements of
// another configuration are not reused. It excludes the number of repeats: a
// finished run can be extended.
func (c Config) head(sums fingerprints) (string, error) {
	hash := sha256.New()
	enc := json.NewEncoder(hash)
	err := enc.Encode([]any{c.Items, c.DER, c.Cores, c.Device, c.Normalizer, c.Keywords})
	for _, s := range c.Systems {
		facts := []any{s.Name, s.Options, s.KnownLanguage, s.Cascade}
		if s.Engine != nil {
			facts = append(facts, s.Engine.Identity())
		}
		for _, m := range s.models() {
			facts = append(facts, m.Role, m.Name)
			for _, f := range m.Files {
				facts = append(facts, f.Name, sums.of(f))
			}
		}
		err = errors.Join(err, enc.Encode(facts))
	}
	return hex.EncodeToString(hash.Sum(nil)), err
}

// Run measures every system on every recording and returns a report. A
// recording that can't be processed is named in the report and excluded from
// the figures. If ctx is canceled, it returns the context's error; the
// measurements so far are in the run file.
func Run(ctx context.Context, c Config) (*Report, error) {
	if len(c.Items) == 0 || len(c.Systems) == 0 {
		return nil, errors.New("nothing to run: at least one recording and one system are required")
	}
	for _, s := range c.Systems {
		if (s.Set == nil) == (s.Engine == nil) {
			return nil, fmt.Errorf("system %q: expected models or an engine, found both or neither", s.Name)
		}
	}
	if err := c.checkKeys(); err != nil {
		return nil, err
	}
	c.Systems = c.withSameSteps(ctx)
	c.classes = c.eventClasses()
	if c.Normalizer != "" {
		var err error
		if c.rules, err = scores.FindNormalizer(c.Normalizer); err != nil {
			return nil, err
		}
	}
	machine := ThisMachine()
	sums, err := newFingerprints(c.Systems)
	if err != nil {
		return nil, err
	}
	head, err := c.head(sums)
	if err != nil {
		return nil, err
	}
	file, err := openRunFile(c.RunFile, head)
	if err != nil {
		return nil, err
	}
	parts, remove, err := c.cutParts(ctx)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	defer remove()
	for i, s := range c.Systems {
		r := runner{Config: c, system: s, index: i, file: file}
		r.Items = parts
		if err := r.run(ctx); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return c.report(file, machine, sums), file.Close()
}

// withSameSteps returns the systems with the models limited to the steps of the
// other recognizers, unless their options say otherwise: transcription, and
// diarization if all others are transcripts with speakers.
func (c Config) withSameSteps(ctx context.Context) []System {
	others, speakers := 0, true
	for _, s := range c.Systems {
		if s.Engine != nil {
			others++
			speakers = speakers && systems.Silent(s.Engine) && slices.ContainsFunc(c.Items, func(it Item) bool {
				res, _, err := s.Engine.Transcribe(ctx, it)
				return err == nil && res.Ran.Diarize
			})
		}
	}
	list := slices.Clone(c.Systems)
	for i := range list {
		if opt := &list[i].Options; others > 0 && list[i].Engine == nil {
			opt.EnableAudioEvents = cmp.Or(opt.EnableAudioEvents, new(false))
			if opt.EnableDiarize == nil && !speakers {
				opt.EnableDiarize = new(false)
			}
		}
	}
	return list
}

// models returns the system's models; an Engine's are unknown.
func (s System) models() []models.Model {
	if s.Set == nil {
		return nil
	}
	return s.Set.Models
}

func (s System) options(it Item) otograph.Options {
	opt := s.Options
	if s.KnownLanguage && it.Language != "" && opt.ASRLanguage == nil {
		opt.ASRLanguage = &it.Language
	}
	return opt
}

// roles returns the roles of the set's models that the system's options need.
func (s System) roles() []models.Role {
	e, err := s.Options.Effective()
	if err != nil {
		return nil // the run itself reports the error
	}
	var roles []models.Role
	want := func(on bool, role models.Role) {
		if _, ok := s.Set.Role(role); on && ok {
			roles = append(roles, role)
		}
	}
	optimized := e.Optimize == nil || *e.Optimize
	want(*e.EnableASR, models.RoleVAD)
	want(*e.EnableASR && optimized, models.RoleOptimized)
	want(*e.EnableASR && (!optimized || e.ASRLanguage == nil && !s.KnownLanguage), models.RoleStandard)
	want(*e.EnableDiarize, models.RoleEmbedder)
	want(*e.EnableAudioEvents, models.RoleTagger)
	return roles
}
