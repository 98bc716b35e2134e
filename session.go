package otograph

import (
	"context"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

func init() {
	stages.OpenSession = func(ctx context.Context, pipeline any, options spec.Options, more any) (*stages.Session, context.Context, error) {
		return pipeline.(*Pipeline).session(ctx, options, more.(RunOptions))
	}
}

// session returns the session of package live.
func (p *Pipeline) session(ctx context.Context, options Options, more RunOptions) (_ *stages.Session, _ context.Context, err error) {
	opt, err := effective(options)
	if err != nil {
		return nil, nil, err
	}
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := p.newRun(options, opt, more)
	s := &stages.Session{Stages: r.Stages, End: func() {
		r.Engines.End()
		leave()
	}}
	s.Segments = func(f *stages.Findings, pcm *audio.PCM) []Segment {
		out := assemble.Segments(f, stages.ClockOf(pcm))
		p.hideConfidences(out)
		return out
	}
	s.Result = func(pcm *audio.PCM, f *stages.Findings) *Result {
		r.sound.PCM = pcm
		if t := f.Transcription; t.Tier == TierOptimized && *p.config.Cascade > 0 && r.Engines.Model(TierStandard, t.Language.Code) != nil {
			t.Uncorrected = "a live session decodes no segment again"
		}
		return r.result(f, s.Known)
	}
	defer func() {
		if err != nil {
			s.End()
		}
	}()
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	var known []KnownVoice
	if *opt.EnableDiarize {
		known = r.Voices
	}
	if s.Known, err = p.learn(ctx, known); err != nil {
		return nil, nil, err
	}
	r.Watch.Plan(opt)
	r.Stages.Cascade = 0 // it needs the sound of the whole recording
	r.Preload(ctx, p.enter)
	return s, ctx, nil
}
