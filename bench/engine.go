package bench

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// engine measures the remaining recordings on another recognizer.
func (c Config) engine(ctx context.Context, file *runFile, index int, open []Item, step func(it Item, what string, done int)) error {
	first := 0
	if c.Expect != nil && len(open) > 1 {
		step(open[0], "transcribe", 0)
		start := time.Now()
		if err := c.ask(ctx, file, index, open[0]); err != nil {
			return err
		}
		first = 1
		c.expect(ctx, c.Systems[index], open, time.Since(start))
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(max(1, c.Systems[index].Parallel))
	for i, it := range open[first:] {
		step(it, "transcribe", first+i)
		group.Go(func() error {
			if each.Err() != nil { // canceled while waiting for its turn
				return each.Err()
			}
			return c.ask(each, file, index, it)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// expect tells how long another recognizer will take for all but the first
// recording, which took the given time with all its repeats. Nothing is told
// about recordings of unknown length.
func (c Config) expect(ctx context.Context, s System, open []Item, took time.Duration) {
	seconds := c.seconds(ctx, open[0])
	if seconds == 0 {
		return
	}
	c.Stages = false // measured of our models alone
	pace := took.Seconds() / float64(c.repeats()) / seconds / float64(max(1, s.Parallel))
	c.Expect(s.Name, c.expected(ctx, open[1:], pace))
}

// ask measures the remaining repeats of a recording.
func (c Config) ask(ctx context.Context, file *runFile, index int, it Item) error {
	s := c.Systems[index]
	for repeat := len(file.find(index, it.Name)) + 1; repeat <= c.repeats(); repeat++ {
		res, cost, err := s.Engine.Transcribe(ctx, it)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return file.put(record{System: index, Item: it.Name, Error: err.Error()})
		}
		if cost.Audio == 0 && cost.Wall > 0 {
			if cost.Audio = res.AudioDuration; cost.Audio == 0 {
				cost.Audio = c.seconds(ctx, it)
			}
		}
		rec := record{System: index, Item: it.Name, Repeat: repeat, Cost: &cost}
		if repeat == 1 {
			rec.Found = c.found(it, res, false)
		}
		if err := file.put(rec); err != nil {
			return err
		}
	}
	return nil
}

// seconds returns a recording's length, 0 if unknown.
func (c Config) seconds(ctx context.Context, it Item) float64 {
	info, err := audio.Probe(ctx, otograph.File(it.Path), c.Audio)
	if err != nil {
		return 0
	}
	return info.Duration
}

// mostProbed limits the number of recordings that are probed to estimate the
// total length.
const mostProbed = 50

// expected estimates the processing time of recordings from the lengths of some
// of them and pace, the seconds for a second of audio.
func (c Config) expected(ctx context.Context, items []Item, pace float64) time.Duration {
	sum, n := 0.0, 0
	for i := 0; i < len(items); i += max(1, len(items)/mostProbed) {
		if seconds := c.seconds(ctx, items[i]); seconds > 0 {
			sum += seconds
			n++
		}
	}
	passes := float64(c.repeats())
	if c.Stages {
		passes++
	}
	return time.Duration(sum / float64(max(n, 1)) * float64(len(items)) * passes * pace * float64(time.Second))
}

// found returns the part of a result that the report needs. told is set if the
// recognizer was given the language.
func (c Config) found(it Item, res *otograph.Result, told bool) *found {
	return &found{Tier: res.Tier, Language: res.Language, Text: text(res), Spans: spans(res), Warnings: spec.OfAudio(res.Warnings), Score: ScoreResult(it, res, ScoreOptions{
		DER: c.DER, Normalizer: c.Normalizer, Keywords: c.Keywords, EventClasses: c.classes, LanguageGiven: told || res.Language == "",
	})}
}
