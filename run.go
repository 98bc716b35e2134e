package otograph

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// effective fills in the defaults of options. Without EnableASR, EnableDiarize
// defaults to false, so that one switch suffices for sounds alone.
func effective(o Options) (EffectiveOptions, error) {
	if o.EnableASR != nil && !*o.EnableASR && o.EnableDiarize == nil {
		o.EnableDiarize = new(false)
	}
	return o.Effective()
}

// Check returns the error with which Run would refuse these options before
// reading anything: an *OptionError, or an error that wraps models.ErrMissing
// and names the roles without a model.
func (p *Pipeline) Check(options Options, more ...RunOptions) error {
	opt, err := effective(options)
	if err != nil {
		return err
	}
	return p.newRun(options, opt, last(more)).check()
}

// newRun returns a run with the engines that it leases.
func (p *Pipeline) newRun(given Options, opt EffectiveOptions, more RunOptions) *run {
	r := &run{RunOptions: more, Stages: p.stages(opt, p.engines), Watch: stages.Watch{Log: p.config.Logger, Checkpoints: more.Checkpoints}, p: p, given: given}
	r.Watch.Report, r.Stages.Translate, r.Among = more.Progress, more.Translate, more.Languages
	r.Stages.Working = more.Working
	r.Embedded = func(share float64) { r.Watch.Part(StageEmbed, share, 1) }
	if lease, err := p.engines.Lease(more.Model); err != nil {
		r.failed = err
	} else {
		r.Engines = lease
	}
	return r
}

func (r *run) check() error {
	if r.failed != nil {
		return r.failed
	}
	return errors.Join(r.Channels.check(), r.Missing())
}

// Run processes one recording. Invalid options cause an *OptionError before
// anything is read. If EnableASR is false and EnableDiarize is not set,
// speakers are not requested either. Bad input causes an error of package audio
// (spec.IsPermanent distinguishes it from failures of the machine). If a stage
// fails after decoding, the error is a *StageError (several are joined) and the
// Result holds the other stages' findings. A canceled context ends the run
// within one window. At most one RunOptions is used.
func (p *Pipeline) Run(ctx context.Context, src Source, options Options, more ...RunOptions) (*Result, error) {
	opt, err := effective(options)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	r := p.newRun(options, opt, last(more))
	defer r.Engines.End()
	res, err := r.do(ctx, src)
	if err != nil && ctx.Err() != nil {
		// Every stage reports the cancellation differently.
		return res, context.Cause(ctx)
	}
	return res, err
}

// Segments processes a recording as Run does and yields its sentences, in order
// and each once, as soon as their text is final: window by window, except those
// of split channels and of the cascade, which arrive together. They have no
// speaker and are not split by speaker: if the speaker changes inside a
// sentence, the result has two segments. The error of the run comes last. A
// caller that stops reading ends the run; a slow one delays it.
func (p *Pipeline) Segments(ctx context.Context, src Source, options Options, more ...RunOptions) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		ready := make(chan []Segment)
		var err error
		go func() {
			defer close(ready)
			o := last(more)
			also := o.Segments
			o.Segments = func(list []Segment) {
				if also != nil {
					also(list)
				}
				select {
				case ready <- list:
				case <-ctx.Done():
				}
			}
			_, err = p.Run(ctx, src, options, o)
		}()
		defer func() { // the run has ended when the loop has
			cancel()
			for range ready {
			}
		}()
		for list := range ready {
			for _, s := range list {
				if !yield(s, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Segment{}, err)
		}
	}
}

type run struct {
	RunOptions
	*stages.Stages
	stages.Watch
	p      *Pipeline
	given  Options // as the caller set them
	sound  stages.Recording
	speech []stages.Side // of StageVAD
	failed error         // of the recognizer's name
}

// do decodes the recording, runs the stages and assembles the result.
func (r *run) do(ctx context.Context, src Source) (*Result, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	r.Watch.Plan(r.Options)
	r.Preload(ctx, r.p.enter)
	pcm, err := stages.Do(ctx, &r.Watch, StageDecode, func(ctx context.Context) (*audio.PCM, error) {
		return audio.Open(ctx, src, r.audio())
	})
	if err != nil {
		return nil, stages.Cause(err) // no findings to keep, so return package audio's error alone
	}
	defer pcm.Close()
	if r.Decoded != nil {
		if err := r.Decoded(pcm.Duration()); err != nil {
			return nil, err
		}
	}
	r.Watch.Duration(pcm.Duration())
	var known []KnownVoice
	if *r.Options.EnableDiarize {
		known = r.Voices
	}
	register, err := r.p.learn(ctx, known)
	if err != nil {
		return nil, err
	}
	r.sound.PCM = pcm
	if *r.Options.EnableASR {
		r.sound.Split = r.Channels.split(pcm)
		r.Split = r.sound.Split != nil
	}
	finds, errs := r.find(ctx)
	res := r.result(finds, register)
	if len(errs) == 1 {
		return res, errs[0]
	}
	return res, errors.Join(errs...)
}

func (r *run) result(f *stages.Findings, register *voices.Register) *Result {
	res := assemble.Result(r.sound.PCM, f, r.Watch.Seconds())
	r.p.hideConfidences(res.Segments)
	res.Warnings = assemble.AudioWarnings(r.sound.Info())
	res.Warnings = append(res.Warnings, assemble.Warnings(r.given, r.Options, f.Transcription, r.OptimizedWords)...)
	res.Warnings = append(res.Warnings, assemble.ChannelWarnings(r.given, r.Options, r.Channels == ChannelsSplit, r.sound.Split != nil, f.Speech)...)
	if t := f.Transcription; t != nil && t.Uncorrected != "" {
		res.Warnings = append(res.Warnings, spec.Warning{Option: "cascade", Reason: "the text is that of the optimized tier alone: " + t.Uncorrected})
	}
	if note := r.Engines.DeviceNote(); note != "" && r.NeedsStandard(f.Transcription) {
		res.Warnings = append(res.Warnings, spec.Warning{Option: "device", Reason: note})
	}
	res.Names = r.Names(register, f)
	return res
}

// audio returns the audio options with the run's track and longest length.
func (r *run) audio() audio.Options {
	o := r.p.config.Audio
	o.KeepChannels = r.Channels == ChannelsSplit || r.Channels == ChannelsAuto
	if track := r.Options.AudioTrack; track != nil {
		o.Track = *track
	}
	limit := cmp.Or(o.MaxSeconds, spec.MaxAudioSeconds)
	if r.MaxSeconds > 0 && (limit < 0 || r.MaxSeconds < limit) {
		o.MaxSeconds = r.MaxSeconds
	}
	return o
}

// find runs the stages after decoding, but none that depends on a failed one.
func (r *run) find(ctx context.Context) (f *stages.Findings, errs []error) {
	f = &stages.Findings{}
	failed := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err != nil
	}
	var detected bool
	if *r.Options.EnableASR {
		var err error
		r.speech, err = stages.Keep(ctx, &r.Watch, StageVAD, func(ctx context.Context) ([]stages.Side, error) {
			return r.Sides(ctx, r.sound)
		})
		if detected = !failed(err); detected {
			f.Speech = stages.AllSpeech(r.speech)
		}
	}
	var voices map[int]*diarize.Embeddings // by channel
	var asrErr, embedErr, eventErr error
	var g sync.WaitGroup
	if detected {
		g.Go(func() { f.Transcription, asrErr = r.languageAndText(ctx, f.Speech) })
	}
	g.Go(func() { // one core, in parallel with the transcription
		if r.Waveform != nil {
			r.Waveform(r.sound.PCM.Peaks())
		}
		if detected && *r.Options.EnableDiarize {
			voices, embedErr = stages.Do(ctx, &r.Watch, StageEmbed, func(ctx context.Context) (map[int]*diarize.Embeddings, error) {
				return r.EmbedSides(ctx, r.sound, r.speech)
			})
		}
		if *r.Options.EnableAudioEvents {
			f.Sounds, eventErr = stages.Keep(ctx, &r.Watch, StageEvents, func(ctx context.Context) (*stages.Sounds, error) {
				return r.DetectSounds(ctx, r.sound.PCM)
			})
		}
	})
	g.Wait()
	for _, err := range []error{asrErr, embedErr, eventErr} {
		failed(err)
	}
	r.nameChannels(f)
	if voices != nil {
		for _, v := range voices {
			f.VoiceWindows += len(v.Windows)
		}
		var err error
		f.Speakers, err = stages.Do(ctx, &r.Watch, StageDiarize, func(ctx context.Context) (*diarize.Result, error) {
			return r.ClusterSides(ctx, r.speech, voices, f.Transcription)
		})
		failed(err)
	}
	return f, errs
}

// nameChannels numbers the channels with text if each is one speaker.
func (r *run) nameChannels(f *stages.Findings) {
	if r.sound.Split == nil {
		return
	}
	if f.Transcription != nil {
		r.speech = stages.WithText(r.speech, f.Transcription)
	}
	f.Channels = []int{}
	for _, s := range r.speech {
		f.Channels = append(f.Channels, s.Channel)
	}
}

// languageAndText detects the language and transcribes each side in it.
func (r *run) languageAndText(ctx context.Context, speech *stages.Speech) (*stages.Transcription, error) {
	language, err := stages.Keep(ctx, &r.Watch, StageLanguage, func(ctx context.Context) (stages.Language, error) {
		return r.FindLanguage(ctx, r.sound.PCM, speech.Spans)
	})
	if err != nil {
		return nil, err
	}
	r.Watch.Tier(r.Tier(language))
	reported := 0
	var tell func([]asr.Segment)
	if r.RunOptions.Segments != nil {
		tell = func(sentences []asr.Segment) {
			r.tell(sentences, reported)
			reported += len(sentences)
		}
	}
	text, err := stages.Keep(ctx, &r.Watch, StageTranscribe, func(ctx context.Context) (*stages.Transcription, error) {
		if r.sound.Split == nil {
			return r.transcribe(ctx, 0, language, tell)
		}
		var list []*stages.Transcription
		for i := range r.speech {
			side, err := r.transcribe(ctx, i, language, nil)
			if err != nil {
				return nil, err
			}
			list = append(list, side)
		}
		all := stages.JoinTranscriptions(language, list)
		all.Tier = r.Tier(language)
		return all, nil
	})
	if err == nil && tell != nil && reported < len(text.Transcript.Segments) {
		tell(text.Transcript.Segments[reported:])
	}
	return text, err
}

// transcribe returns the transcription of side i.
func (r *run) transcribe(ctx context.Context, i int, language stages.Language, settled func([]asr.Segment)) (*stages.Transcription, error) {
	side, all := r.speech[i], float64(len(r.speech))
	return r.Transcribe(ctx, r.sound.Of(side), side.Speech, language, stages.Reports{Settled: settled, Progress: func(done, total float64) {
		r.Watch.Part(StageTranscribe, float64(i)+done/max(total, 1e-9), all)
	}})
}

// tell passes sentences, numbered from first, to RunOptions.Segments.
func (r *run) tell(sentences []asr.Segment, first int) {
	f := &stages.Findings{Transcription: &stages.Transcription{Transcript: &asr.Transcript{Segments: sentences}}}
	out := assemble.Segments(f, stages.ClockOf(r.sound.PCM))
	for i := range out {
		out[i].ID, out[i].Words = first+i, nil
	}
	r.p.hideConfidences(out)
	r.RunOptions.Segments(out)
}

// hideConfidences removes the confidences from a pipeline without them.
func (p *Pipeline) hideConfidences(list []Segment) {
	if !p.config.NoConfidences {
		return
	}
	for i := range list {
		list[i].Confidence = nil
	}
}
