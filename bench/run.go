package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/normalize"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// System is one of the compared systems: models with options.
type System struct {
	Name    string // name in reports; unique in a run
	Set     *models.Set
	Options otograph.Options
	// KnownLanguage takes each recording's language from the manifest instead
	// of detecting it.
	KnownLanguage bool
	// Cascade is the threshold of otograph.WithCascade.
	Cascade float64
	// Engine, if set, is another recognizer, used instead of the models.
	Engine Engine
	// Parallel is how many recordings an Engine processes simultaneously (0
	// means 1).
	Parallel int
}

// Engine is a recognizer other than Otograph's.
type Engine interface {
	// Transcribe returns a recording's result and its cost; the result's Ran
	// states which fields are filled. An error is a failure of the recognizer,
	// not of the run.
	Transcribe(ctx context.Context, item Item) (*otograph.Result, Cost, error)
	// Identity identifies the recognizer, so that an interrupted run only
	// continues with the same one.
	Identity() string
}

// Config configures a run.
type Config struct {
	Items   []Item
	Systems []System // the others are compared with the first one
	// Repeat is how often each recording is measured (0 means 1); the median
	// counts.
	Repeat int
	// Warmup is how many times each system runs the first recording before
	// measuring, so that models are loaded, memory is allocated and caches are
	// filled.
	Warmup int
	// Stages runs every recording once more, stage by stage, to measure the
	// processor time of each.
	Stages bool
	// DER configures the scoring of turns.
	DER DEROptions
	// Normalizer converts texts to a common form before they are compared; see
	// ScoreOptions.
	Normalizer normalize.Normalizer
	// Keywords are words or phrases to count in every text.
	Keywords []string
	// By lists the manifest keys by which the report groups the recordings.
	By []string
	// Cores limits the number of cores (0 means all).
	Cores int
	// Device is the device for the standard tier's model; see
	// otograph.WithDevice.
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
	// Expect, if set, is called with a system's estimated duration once it is
	// known.
	Expect func(system string, length time.Duration)

	classes []string // of the manifest's events
}

// Step is the next step of a run.
type Step struct {
	System, Item string
	What         string  // "load", "warm-up", "stages", "repeat 2 of 3"
	Done, Total  float64 // audio seconds of all systems
}

func (c Config) repeats() int { return max(1, c.Repeat) }

// eventClasses returns all classes in the manifest, or nil if it has none.
func (c Config) eventClasses() []string {
	var out []string
	for _, it := range c.Items {
		for _, e := range it.Events {
			if !slices.Contains(out, e.Class) {
				out = append(out, e.Class)
			}
		}
	}
	slices.Sort(out)
	return out
}

// head identifies the measured configuration, so that other measurements are
// never reused. It excludes the number of repeats, so that a finished run can
// be extended.
func (c Config) head(sums fingerprints) (string, error) {
	type model struct {
		Role  models.Role
		Name  string
		Files []string
	}
	type system struct {
		Name    string
		Options otograph.Options
		Known   bool
		Cascade float64
		Models  []model
		Engine  string `json:",omitempty"`
	}
	var systems []system
	for _, s := range c.Systems {
		k := system{Name: s.Name, Options: s.Options, Known: s.KnownLanguage, Cascade: s.Cascade}
		if s.Engine != nil {
			k.Engine = s.Engine.Identity()
		}
		for _, m := range s.models() {
			var files []string
			for _, f := range m.Files {
				files = append(files, f.Name+" "+sums.of(f))
			}
			k.Models = append(k.Models, model{m.Role, m.Name, files})
		}
		systems = append(systems, k)
	}
	data, err := json.Marshal(struct {
		Items      []Item
		Systems    []system
		DER        DEROptions
		Cores      int
		Device     string   `json:",omitempty"`
		Normalizer string   `json:",omitempty"`
		Keywords   []string `json:",omitempty"`
	}{c.Items, systems, c.DER, c.Cores, c.Device, c.Normalizer.Name, c.Keywords})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Run measures every system on every recording and returns a report. A
// recording that can't be processed is named in the report and excluded from
// the figures. If ctx is canceled, it returns the context's error; the
// measurements so far are in the run file.
func Run(ctx context.Context, c Config) (*Report, error) {
	if len(c.Items) == 0 || len(c.Systems) == 0 {
		return nil, errors.New("nothing to run: at least one recording and one system are required")
	}
	c.classes = c.eventClasses()
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
	for i := range c.Systems {
		if err := c.system(ctx, file, i); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	report := c.report(file, machine, sums)
	return report, file.Close()
}

// system measures the remaining recordings on one system.
func (c Config) system(ctx context.Context, file *runFile, index int) error {
	s := c.Systems[index]
	var open []Item
	for _, it := range c.Items {
		if !c.finished(s, file.find(index, it.Name)) {
			open = append(open, it)
		}
	}
	if len(open) == 0 {
		return ctx.Err()
	}
	step := func(it Item, what string, done int) {
		if c.Progress != nil {
			n := len(c.Items)
			c.Progress(Step{System: s.Name, Item: it.Name, What: what, Done: float64(index*n + n - len(open) + done), Total: float64(len(c.Systems) * n)})
		}
	}
	if s.Engine != nil {
		return c.engine(ctx, file, index, open, step)
	}
	debug.FreeOSMemory() // memory left by the previous system must not count for this one
	step(Item{}, "load", 0)
	p, err := otograph.Open(s.Set, otograph.WithCores(c.Cores), otograph.WithDevice(c.Device), otograph.WithOptimizedWords(true), otograph.WithCascade(s.Cascade), otograph.WithAudio(c.Audio))
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	defer p.Close()
	start := time.Now()
	if err := p.Load(ctx, s.roles()...); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := file.put(record{System: index, Load: new(time.Since(start).Seconds())}); err != nil {
		return err
	}
	for range c.Warmup {
		step(open[0], "warm-up", 0)
		start := time.Now()
		// A failing recording is reported later, when it is measured.
		if res, err := p.Run(ctx, otograph.File(open[0].Path), s.options(open[0])); err == nil && c.Expect != nil {
			c.Expect(s.Name, c.expected(ctx, open, time.Since(start).Seconds()/res.AudioDuration))
		}
	}
	for i, it := range open {
		if err := c.item(ctx, file, p, index, it, func(what string) { step(it, what, i) }); err != nil {
			return err
		}
	}
	return nil
}

// models returns the system's models; an Engine's are unknown.
func (s System) models() []models.Model {
	if s.Set == nil {
		return nil
	}
	return s.Set.Models
}

// finished reports whether nothing is left to measure.
func (c Config) finished(s System, kept []record) bool {
	repeats, stages := 0, false
	for _, r := range kept {
		if r.Error != "" {
			return true
		}
		if r.Cost != nil {
			repeats++
		}
		stages = stages || r.Stages != nil
	}
	return repeats >= c.repeats() && (stages || !c.Stages || s.Engine != nil)
}

func (c Config) item(ctx context.Context, file *runFile, p *otograph.Pipeline, index int, it Item, step func(string)) error {
	s := c.Systems[index]
	kept := file.find(index, it.Name)
	repeats, stages := 0, false
	for _, r := range kept {
		if r.Cost != nil {
			repeats++
		}
		stages = stages || r.Stages != nil
	}
	fail := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return file.put(record{System: index, Item: it.Name, Error: err.Error()})
	}
	opt := s.options(it)
	for ; repeats < c.repeats(); repeats++ {
		step(fmt.Sprintf("repeat %d of %d", repeats+1, c.repeats()))
		res, cost, err := measure(ctx, p, otograph.File(it.Path), opt)
		if err != nil {
			return fail(err)
		}
		if i := slices.IndexFunc(res.Warnings, func(w spec.Warning) bool { return w.Option == "cascade" }); i >= 0 {
			return fail(errors.New("cascade: " + res.Warnings[i].Reason)) // it would count as a cascade without effect
		}
		rec := record{System: index, Item: it.Name, Repeat: repeats + 1, Cost: &cost}
		if repeats == 0 {
			rec.Found = c.found(it, res, opt.ASRLanguage != nil)
		}
		if err := file.put(rec); err != nil {
			return err
		}
	}
	if c.Stages && !stages {
		step("stages")
		cost, err := stageCPU(ctx, p, otograph.File(it.Path), opt)
		if err != nil {
			return fail(err)
		}
		return file.put(record{System: index, Item: it.Name, Stages: cost})
	}
	return nil
}

// text returns a result's text with a line for each segment.
func text(res *otograph.Result) string {
	var lines []string
	for _, s := range res.Segments {
		lines = append(lines, strings.ReplaceAll(s.Text, "\n", " "))
	}
	return strings.Join(lines, "\n")
}

// spans returns the start and the end of each line of text, nil without times.
func spans(res *otograph.Result) (out [][2]float64) {
	for _, s := range res.Segments {
		out = append(out, [2]float64{s.Start, s.End})
	}
	if !slices.ContainsFunc(out, func(s [2]float64) bool { return s[1] > s[0] }) {
		return nil
	}
	return out
}

// options returns the system's options for a recording.
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

// characters reports whether a recording's text is scored by characters.
func characters(it Item, f *found) bool {
	language := it.Language
	if language == "" {
		language = f.Language
	}
	return language != "" && !spec.Spaced(language)
}
