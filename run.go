package otograph

import (
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// RunOption changes one run.
type RunOption func(*run)

// OnProgress receives the progress of a run.
func OnProgress(f func(Progress)) RunOption {
	return func(r *run) { r.progress.report = f }
}

// Run processes one recording. Options that break a rule are an *OptionError
// and nothing is read. Bad input is an error of package audio (audio.Permanent
// tells it from trouble with the machine). When a stage fails after decoding, the error
// is a *StageError (several are joined) and the Result holds what the other
// stages found. A cancelled context ends the run within one window.
func (p *Pipeline) Run(ctx context.Context, src Source, options Options, runOptions ...RunOption) (*Result, error) {
	opt, err := options.Effective()
	if err != nil {
		return nil, err
	}
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.alive, func() { cancel(ErrClosed) })()

	r := &run{p: p, opt: opt, result: &Result{Stats: Stats{StageSeconds: map[Stage]float64{}}}}
	for _, o := range runOptions {
		o(r)
	}
	res, err := r.do(ctx, src)
	if err != nil && ctx.Err() != nil {
		// Every stage reports the cancellation in its own words: say it once.
		return res, context.Cause(ctx)
	}
	return res, err
}

// run is the state of one Run.
type run struct {
	p        *Pipeline
	opt      EffectiveOptions
	progress progress
	result   *Result

	checkpoints Checkpoints // nil: none

	pcm         *audio.PCM
	speech      []audio.Span
	language    string
	probability float64
	tier        Tier
	transcript  *asr.Transcript
	embedded    *diarize.Embeddings
	diarized    *diarize.Result
	heard       []events.Event
}

func (r *run) do(ctx context.Context, src Source) (*Result, error) {
	if err := r.checkModels(); err != nil {
		return nil, err
	}
	r.progress.plan(r.opt)
	r.preload()
	if err := r.stage(ctx, StageDecode, func(ctx context.Context) (err error) {
		r.pcm, err = audio.Open(ctx, src, r.p.audio)
		return err
	}); err != nil {
		return nil, unstage(err) // nothing to keep: the plain error of package audio says it best
	}
	defer r.pcm.Close()
	info := r.pcm.Info()
	r.result.AudioDuration, r.result.AudioMD5 = centi(r.pcm.Duration()), info.MD5
	r.result.Stats.NonFinite, r.result.Stats.Truncated = int(info.NonFinite), info.Truncated
	r.progress.duration(r.pcm.Duration())

	var errs []error
	if *r.opt.EnableASR {
		if err := r.stage(ctx, StageVAD, r.speechStage); err != nil {
			errs = append(errs, err)
			*r.opt.EnableASR, *r.opt.EnableDiarize = false, false
			if !*r.opt.EnableAudioEvents {
				return r.result, err
			}
		}
	}
	errs = append(errs, r.middle(ctx)...)
	if *r.opt.EnableDiarize && r.embedded != nil {
		if err := r.stage(ctx, StageDiarize, r.cluster); err != nil {
			errs = append(errs, err)
		}
	}
	r.fill()
	if err := errors.Join(errs...); err != nil {
		if len(errs) == 1 {
			return r.result, errs[0]
		}
		return r.result, err
	}
	return r.result, nil
}

// preload opens the models that come after the voice activity detector while the
// recording is still being decoded and searched for speech: what tells the language
// and, where it is known which, the recogniser. The run does not wait for it, and
// trouble is left to the stage that needs the model.
func (r *run) preload() {
	if !*r.opt.EnableASR {
		return
	}
	done, err := r.p.enter()
	if err != nil { // Close has begun
		return
	}
	e := &r.p.engines
	go func() {
		defer done()
		switch {
		case r.opt.ASRLanguage != nil:
			language, _ := spec.NormalizeLanguage(*r.opt.ASRLanguage)
			_, _ = e.recogniser(spec.Route(language, Options(r.opt), e.available), language)
		case e.available.Standard:
			_, _ = e.loadStandard()
			fallthrough
		default:
			only := e.set.All(models.RoleOptimized)
			if len(only) == 1 && (r.opt.Optimize == nil || *r.opt.Optimize) && slices.ContainsFunc(only[0].Languages, func(l string) bool { return slices.Contains(e.available.Optimized, l) }) {
				_, _ = e.loadOptimized("")
			}
		}
	}()
}

// middle runs transcription beside events and embeddings. A failure of one does
// not end the others.
func (r *run) middle(ctx context.Context) []error {
	var asrErr, embedErr, eventErr error
	var g errgroup.Group
	if *r.opt.EnableASR {
		g.Go(func() error {
			if asrErr = r.stage(ctx, StageLanguage, r.languageStage); asrErr == nil {
				asrErr = r.stage(ctx, StageTranscribe, r.transcribeStage)
			}
			return nil
		})
	}
	g.Go(func() error { // one core beside the transcription
		if *r.opt.EnableDiarize {
			embedErr = r.stage(ctx, StageEmbed, r.embed)
		}
		if *r.opt.EnableAudioEvents {
			eventErr = r.stage(ctx, StageEvents, r.eventsStage)
		}
		return nil
	})
	_ = g.Wait() // the functions keep their errors apart
	var errs []error
	for _, err := range []error{asrErr, embedErr, eventErr} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// checkModels finds a missing model before any work is done. Which recogniser is
// needed shows only with the language; here it is enough that there is one.
func (r *run) checkModels() error {
	set := r.p.engines.set
	var errs []error
	need := func(role models.Role) {
		_, err := set.Need(role)
		errs = append(errs, err)
	}
	if *r.opt.EnableASR {
		need(models.RoleVAD)
		if len(set.All(models.RoleOptimized)) == 0 {
			need(models.RoleStandard)
		}
	}
	if *r.opt.EnableDiarize {
		need(models.RoleEmbedder)
	}
	if *r.opt.EnableAudioEvents {
		need(models.RoleTagger)
	}
	return errors.Join(errs...)
}

// stage runs one stage, measures it, reports its end and names it in its error.
func (r *run) stage(ctx context.Context, s Stage, f func(context.Context) error) error {
	start := time.Now()
	err := f(ctx)
	r.progress.ended(s, time.Since(start), err == nil)
	if err == nil {
		return nil
	}
	r.p.log.DebugContext(ctx, "stage failed", "stage", s, "error", err)
	return &StageError{Stage: s, Err: err}
}

// computing loads a model, waits for one of the pipeline's cores and works on it
// with the model.
func computing[E any](ctx context.Context, r *run, load func() (E, error), work func(E) error) error {
	engine, err := load()
	if err != nil {
		return err
	}
	if err := r.p.gate.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.p.gate.Release(1)
	return work(engine)
}

func (r *run) detectSpeech(ctx context.Context) error {
	return computing(ctx, r, r.p.engines.loadVAD, func(m vad.Model) error {
		opt := vad.DefaultOptions()
		opt.Threshold = *r.opt.VADThreshold
		opt.MinSpeech = time.Duration(*r.opt.VADMinSpeechMS) * time.Millisecond
		opt.MinSilence = time.Duration(*r.opt.VADMinSilenceMS) * time.Millisecond
		opt.SpeechPad = time.Duration(*r.opt.VADSpeechPadMS) * time.Millisecond
		var err error
		r.speech, err = vad.Detect(ctx, m, r.pcm, opt)
		r.result.Stats.VADWindows = (r.pcm.Len() + 511) / 512
		return err
	})
}

// findLanguage takes the caller's language, or asks the standard model, or, if
// there is none, the optimized model.
func (r *run) findLanguage(ctx context.Context) error {
	if r.opt.ASRLanguage != nil {
		r.language, _ = spec.NormalizeLanguage(*r.opt.ASRLanguage) // validated before
		r.probability = 1
		return nil
	}
	load := func() (asr.LanguageDetector, error) {
		if r.p.engines.available.Standard {
			return r.p.engines.loadStandard()
		}
		return r.p.engines.loadOptimized("")
	}
	return computing(ctx, r, load, func(d asr.LanguageDetector) (err error) {
		r.language, r.probability, err = d.DetectLanguage(ctx, r.pcm, r.speech)
		if errors.Is(err, onnx.ErrNoLanguage) {
			return &OptionError{Field: "asr_language", Reason: "must be given: none of the loaded models can tell the language"}
		}
		return err
	})
}

func (r *run) transcribe(ctx context.Context) error {
	r.tier = spec.Route(r.language, Options(r.opt), r.p.engines.available)
	r.progress.tier(r.tier)
	if len(r.speech) == 0 {
		r.transcript = &asr.Transcript{Language: r.language}
		return nil
	}
	t, err := r.p.engines.recogniser(r.tier, r.language)
	if err != nil {
		return err
	}
	opt := asr.DefaultOptions()
	opt.Language = r.language
	opt.BeamSize = *r.opt.ASRBeamSize
	opt.Temperature = *r.opt.ASRTemperature
	opt.BestOf = or(r.opt.ASRBestOf, 0)
	opt.Hotwords = r.opt.Hotwords
	opt.InitialPrompt = or(r.opt.InitialPrompt, "")
	opt.NoSpeechThreshold = *r.opt.NoSpeechThreshold
	opt.WordTimestamps = *r.opt.TimestampLevel == TimestampWord
	opt.Parallel = r.p.cores
	opt.Gate = r.p.gate
	opt.Progress = func(done, total float64) { r.progress.part(StageTranscribe, done, total) }
	r.transcript, err = t.Transcribe(ctx, r.pcm, r.speech, opt)
	return err
}

// exactWindows is the number of voice windows up to which all are clustered:
// 38 minutes of speech in 18 MB. Of more, a sample of as many is.
const exactWindows = 3000

func (r *run) diarizeOptions(e diarize.Embedder) diarize.Options {
	opt := diarize.DefaultOptions()
	opt.NumSpeakers = or(r.opt.NumSpeakers, 0)
	opt.MinSpeakers, opt.MaxSpeakers = *r.opt.MinSpeakers, *r.opt.MaxSpeakers
	opt.MinSegment = *r.opt.DiarizeMinSegmentSec
	opt.SingleSpeakerThreshold = *r.opt.DiarizeSingleSpeakerThreshold
	opt.SameSpeakerCosine = e.SameSpeaker()
	opt.ExactWindows = exactWindows
	return opt
}

func (r *run) embed(ctx context.Context) error {
	return computing(ctx, r, r.p.engines.loadEmbedder, func(e diarize.Embedder) error {
		var err error
		r.embedded, err = diarize.Embed(ctx, e, r.pcm, r.speech, r.diarizeOptions(e))
		if err == nil {
			r.result.Stats.EmbeddingWindows = len(r.embedded.Windows)
		}
		return err
	})
}

func (r *run) cluster(ctx context.Context) error {
	return computing(ctx, r, r.p.engines.loadEmbedder, func(e diarize.Embedder) error {
		embedded := r.embedded
		r.embedded = nil // the vectors of hours are not needed twice
		if r.transcript != nil {
			embedded = embedded.Only(r.understood)
		}
		var err error
		r.diarized, err = diarize.Cluster(ctx, embedded, r.diarizeOptions(e))
		return err
	})
}

// understood tells whether anything was transcribed in a stretch of speech.
// Where nothing was, a detector took music or noise for speech: it must not
// become a speaker.
func (r *run) understood(speech audio.Span) bool {
	const least = 0.05 // seconds of common ground
	start, end := speech.Seconds()
	segments := r.transcript.Segments
	i := sort.Search(len(segments), func(i int) bool { return segments[i].End > start })
	for ; i < len(segments) && segments[i].Start < end; i++ {
		if min(end, segments[i].End)-max(start, segments[i].Start) >= min(least, end-start) {
			return true
		}
	}
	return false
}

func (r *run) listen(ctx context.Context) error {
	return computing(ctx, r, r.p.engines.loadTagger, func(t events.Tagger) error {
		opt := events.DefaultOptions()
		opt.Threshold, opt.Classes = *r.opt.AudioEventsThreshold, r.opt.AudioEventsClasses
		counted := countedTagger{t, &r.result.Stats.EventFrames}
		var err error
		if r.heard, err = events.Detect(ctx, counted, r.pcm, opt); err == nil && r.heard == nil {
			r.heard = []events.Event{} // heard nothing, as against did not listen
		}
		return err
	})
}

// countedTagger counts the frames that a tagger yields.
type countedTagger struct {
	events.Tagger
	frames *int
}

// Scores implements events.Tagger.
func (t countedTagger) Scores(ctx context.Context, pcm *audio.PCM, yield func(frame int, scores []float32) error) error {
	return t.Tagger.Scores(ctx, pcm, func(frame int, scores []float32) error {
		*t.frames++
		return yield(frame, scores)
	})
}

// unstage takes the stage's name off an error.
func unstage(err error) error {
	if s := (*StageError)(nil); errors.As(err, &s) {
		return s.Err
	}
	return err
}

// or returns what p points to, or def when it is nil.
func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}
