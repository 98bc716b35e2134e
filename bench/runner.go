package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// runner measures one system.
type runner struct {
	Config
	system   System
	index    int
	file     *runFile
	open     []Item             // recordings with missing measurements
	pipeline *otograph.Pipeline // nil for an Engine
}

// run measures the recordings that lack measurements: models recognize one
// recording after the other.
func (r *runner) run(ctx context.Context) error {
	r.open = slices.DeleteFunc(slices.Clone(r.Items), func(it Item) bool { return r.missing(it) > r.repeats() })
	if len(r.open) == 0 {
		return ctx.Err()
	}
	if r.system.Engine != nil {
		return r.runEngine(ctx)
	}
	s := r.system
	debug.FreeOSMemory() // memory of the previous system must not count for this system
	r.announce(Item{}, "load", 0)
	p, err := otograph.Open(s.Set, otograph.Config{Cores: r.Cores, Device: r.Device, OptimizedWords: true, Cascade: &s.Cascade, Audio: r.Audio})
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	defer p.Close()
	r.pipeline = p
	start := time.Now()
	if err := p.Load(ctx, s.roles()...); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := r.file.put(record{System: r.index, Load: new(time.Since(start).Seconds())}); err != nil {
		return err
	}
	first := r.open[0]
	for range r.Warmup {
		r.announce(first, "warm-up", 0)
		_, _ = p.Run(ctx, otograph.File(first.Path), s.options(first)) // a failure is reported when the recording is measured
	}
	for i, it := range r.open {
		if err := r.measureItem(ctx, it, func(what string) { r.announce(it, what, i) }); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the first repeat of a recording that is not measured. A
// recording that failed counts as measured.
func (r *runner) missing(it Item) (repeat int) {
	repeat = 1
	for _, rec := range r.file.find(r.index, it.Name) {
		switch {
		case rec.Error != "":
			return r.repeats() + 1
		case rec.Cost != nil:
			repeat++
		}
	}
	return repeat
}

func (r *runner) announce(it Item, what string, done int) {
	if r.Progress != nil {
		n := len(r.Items)
		r.Progress(Step{System: r.system.Name, Item: it.Name, What: what, Done: float64(r.index*n + n - len(r.open) + done), Total: float64(len(r.Systems) * n)})
	}
}

// runEngine measures the recordings on another recognizer.
func (r *runner) runEngine(ctx context.Context) error {
	if c, ok := r.system.Engine.(interface{ Start(context.Context) *Cost }); ok && len(r.file.find(r.index, "")) == 0 {
		r.announce(Item{}, "start", 0)
		if cost := c.Start(ctx); cost != nil {
			if err := r.file.put(record{System: r.index, Start: cost}); err != nil {
				return err
			}
		}
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(max(1, r.system.Parallel))
	for i, it := range r.open {
		r.announce(it, "transcribe", i)
		group.Go(func() error {
			if each.Err() != nil { // canceled while waiting for its turn
				return each.Err()
			}
			return r.measureItem(each, it, func(string) {})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// measureItem adds a recording's missing measurements, each announced.
func (r *runner) measureItem(ctx context.Context, it Item, announce func(what string)) error {
	for repeat := r.missing(it); repeat <= r.repeats(); repeat++ {
		announce(fmt.Sprintf("repeat %d of %d", repeat, r.repeats()))
		res, cost, err := r.transcribe(ctx, it)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return r.file.put(record{System: r.index, Item: it.Name, Error: err.Error()})
		}
		rec := record{System: r.index, Item: it.Name, Repeat: repeat, Cost: &cost}
		if repeat == 1 {
			rec.Outcome = r.outcome(it, res)
		}
		if err := r.file.put(rec); err != nil {
			return err
		}
	}
	return nil
}

// transcribe runs a recording once.
func (r *runner) transcribe(ctx context.Context, it Item) (*otograph.Result, Cost, error) {
	if r.system.Engine == nil {
		res, cost, err := measure(ctx, r.pipeline, otograph.File(it.Path), r.system.options(it))
		if err == nil {
			if i := slices.IndexFunc(res.Warnings, func(w spec.Warning) bool { return w.Option == "cascade" }); i >= 0 {
				err = errors.New("cascade: " + res.Warnings[i].Reason) // not a cascade without effect
			}
		}
		return res, cost, err
	}
	res, cost, err := r.system.Engine.Transcribe(ctx, it)
	if err == nil && cost.Audio == 0 && cost.Wall > 0 {
		if cost.Audio = res.AudioDuration; cost.Audio == 0 {
			if info, err := audio.Probe(ctx, otograph.File(it.Path), r.Audio); err == nil {
				cost.Audio = info.Duration
			}
		}
	}
	return res, cost, err
}

// outcome returns the part of a result that the report needs.
func (r *runner) outcome(it Item, res *otograph.Result) *outcome {
	res = withoutIgnored(it, res)
	given := res.Language == "" || r.system.Engine == nil && r.system.options(it).ASRLanguage != nil
	f := &outcome{Tier: res.Tier, Language: res.Language, Warnings: spec.OfAudio(res.Warnings), Score: scoreResult(it, res, scoreOptions{
		DER: r.DER, Normalizer: r.rules, Keywords: r.Keywords, EventClasses: r.classes, LanguageGiven: given,
	})}
	for _, step := range []struct {
		name string
		on   bool
	}{{"text", res.Ran.ASR}, {"speakers", res.Ran.Diarize}, {"sounds", res.Ran.AudioEvents}} {
		if step.on {
			f.Steps = append(f.Steps, step.name)
		}
	}
	var lines []string
	timed := false
	for _, s := range res.Segments {
		lines = append(lines, strings.ReplaceAll(s.Text, "\n", " "))
		f.Spans = append(f.Spans, [2]float64{s.Start, s.End})
		timed = timed || s.End > s.Start
	}
	if f.Text = strings.Join(lines, "\n"); !timed {
		f.Spans = nil
	}
	return f
}
