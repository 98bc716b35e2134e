package otograph

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// RunOption changes one run.
type RunOption func(*run)

// OnProgress receives the progress of a run.
func OnProgress(f func(Progress)) RunOption {
	return func(r *run) { r.progress.report = f }
}

// OnWaveform receives the recording's waveform when it is decoded, before the other
// stages: audio.PeaksPerSecond bytes a second, see audio.PCM.Peaks.
func OnWaveform(f func(peaks []byte)) RunOption {
	return func(r *run) { r.waveform = f }
}

// OnDecoded receives the recording's exact length in seconds when it is decoded,
// before anything else is done with it. An error of f ends the run as it is.
func OnDecoded(f func(seconds float64) error) RunOption {
	return func(r *run) { r.decoded = f }
}

// Translated asks for the text in English, whatever language is spoken, from the
// standard tier. A model that does not translate is whisper.ErrTranslation.
func Translated() RunOption { return func(r *run) { r.translate = true } }

// OnSegments receives sentences during the run, as soon as no further work
// changes their text, in order and each once; those of the optimized tier, and
// of channels that are split, all together. They are not split by speaker:
// where the speaker changes inside a sentence, the result has two segments.
func OnSegments(f func([]Segment)) RunOption { return func(r *run) { r.told = f } }

// WithVoices names the speakers whose voices are given: Result.Names. A voice
// names one speaker at most, and none if the match is uncertain. An unsuitable
// recording (shorter than 2 s, longer than 10 s, with less than a second of
// speech, or with more than one voice) ends the run before it transcribes.
func WithVoices(voices ...KnownVoice) RunOption {
	return func(r *run) { r.voices = voices }
}

// WithMaxDuration refuses recordings longer than d (audio.ErrTooLong), where the
// pipeline's own limit is not shorter. Decoding stops there, whatever the
// container says. Zero and negative values are ignored.
func WithMaxDuration(d time.Duration) RunOption {
	return func(r *run) { r.longest = d }
}

// WithCheckpoints takes finished stages from c and saves them there. Trouble
// with the checkpoints does not fail the run; it is logged.
func WithCheckpoints(c Checkpoints) RunOption {
	return func(r *run) { r.checkpoints = c }
}

// WithChannels sets how the channels of a recording are treated. Checkpoints do
// not store the split.
func WithChannels(c Channels) RunOption {
	return func(r *run) { r.channels = c }
}

// Run processes one recording. Options that break a rule are an *OptionError
// and nothing is read. Bad input is an error of package audio (spec.IsPermanent
// tells it from trouble with the machine). When a stage fails after decoding, the error
// is a *StageError (several are joined) and the Result holds what the other
// stages found. A canceled context ends the run within one window.
func (p *Pipeline) Run(ctx context.Context, src Source, options Options, runOptions ...RunOption) (*Result, error) {
	opt, err := options.Effective()
	if err != nil {
		return nil, err
	}
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	r := &run{p: p, given: options, stages: p.stages(opt)}
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

// run is one Run: its stages and what watches over them.
type run struct {
	stages
	p           *Pipeline
	given       Options // as the caller set them
	progress    progress
	checkpoints Checkpoints                 // nil: none
	waveform    func([]byte)                // nil: nobody asks
	decoded     func(seconds float64) error // nil: nobody asks
	longest     time.Duration               // of the recording; 0: the pipeline's limit
	voices      []KnownVoice                // by which speakers are named
	channels    Channels                    // "": mix
	told        func([]Segment)             // nil: nobody asks
}

// do decodes the recording, runs the stages and assembles what they found.
func (r *run) do(ctx context.Context, src Source) (*Result, error) {
	if err := errors.Join(r.channels.check(), r.checkModels()); err != nil {
		return nil, err
	}
	r.progress.plan(r.opt)
	r.preload()
	pcm, err := stage(ctx, r, StageDecode, func(ctx context.Context) (*audio.PCM, error) {
		return audio.Open(ctx, src, r.audio())
	})
	if err != nil {
		return nil, unstage(err) // nothing to keep: the plain error of package audio says it best
	}
	defer pcm.Close()
	if r.decoded != nil {
		if err := r.decoded(pcm.Duration()); err != nil {
			return nil, err
		}
	}
	r.progress.duration(pcm.Duration())
	if r.waveform != nil {
		r.waveform(pcm.Peaks())
	}
	var known []KnownVoice
	if *r.opt.EnableDiarize {
		known = r.voices
	}
	register, err := r.p.learn(ctx, known)
	if err != nil {
		return nil, err
	}
	find := func() (findings, []error) { return r.find(ctx, pcm) }
	if list := r.channels.split(pcm); *r.opt.EnableASR && len(list) > 0 {
		find = func() (findings, []error) { return r.findApart(ctx, pcm, list) }
	}
	found, errs := find()
	res := assemble(pcm, found, maps.Clone(r.progress.seconds))
	res.Demo = r.engines.demonstrates(res)
	if res.Names, err = r.p.names(register, found); err != nil {
		errs = append(errs, err)
	}
	r.p.hideConfidences(res.Segments)
	res.Warnings = warnings(r.given, r.opt, found.transcription, r.optimizedWords)
	res.Warnings = append(res.Warnings, r.channels.warnings(r.given, r.opt, found)...)
	if t := found.transcription; t != nil && t.Uncorrected != "" {
		res.Warnings = append(res.Warnings, spec.Warning{Option: "cascade", Reason: "the text is that of the optimized tier alone: " + t.Uncorrected})
	}
	if note := r.engines.deviceNote(); note != "" && r.needsStandard(found.transcription) {
		res.Warnings = append(res.Warnings, spec.Warning{Option: "device", Reason: note})
	}
	if len(errs) == 1 {
		return res, errs[0]
	}
	return res, errors.Join(errs...)
}

// audio returns the pipeline's limits, with the run's own length if it is shorter.
func (r *run) audio() audio.Options {
	o := r.p.audio
	o.KeepChannels = r.channels == ChannelsSplit || r.channels == ChannelsAuto
	limit := o.MaxDuration
	if limit == 0 {
		limit = audio.DefaultMaxDuration
	}
	if r.longest > 0 && (limit < 0 || r.longest < limit) {
		o.MaxDuration = r.longest
	}
	return o
}

// find runs the stages after decoding. A failure of one does not end those that
// can do without it.
func (r *run) find(ctx context.Context, pcm *audio.PCM) (f findings, errs []error) {
	failed := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err != nil
	}
	if *r.opt.EnableASR {
		var err error
		f.speech, err = keptStage(ctx, r, StageVAD, func(ctx context.Context) (*speech, error) {
			return r.detectSpeech(ctx, pcm)
		})
		if failed(err) {
			f.speech = nil
		}
	}
	for _, err := range r.transcribeAndTag(ctx, pcm, &f) {
		failed(err)
	}
	if voices := f.voices; voices != nil {
		f.voices, f.voiceWindows = nil, len(voices.Windows) // the vectors of hours are not needed twice
		var err error
		f.speakers, err = stage(ctx, r, StageDiarize, func(ctx context.Context) (*diarize.Result, error) {
			return r.cluster(ctx, voices, f.transcription)
		})
		failed(err)
	}
	return f, errs
}

// transcribeAndTag runs transcription in parallel with voices and sound events,
// and enters their results in f. f.speech is where speech was detected; nil if
// that is not known.
func (r *run) transcribeAndTag(ctx context.Context, pcm *audio.PCM, f *findings) []error {
	var asrErr, embedErr, eventErr error
	var g errgroup.Group
	heard := f.speech
	if heard != nil {
		g.Go(func() error {
			f.transcription, asrErr = r.languageAndText(ctx, pcm, heard)
			return nil
		})
	}
	g.Go(func() error { // one core beside the transcription
		if heard != nil && *r.opt.EnableDiarize {
			f.voices, embedErr = stage(ctx, r, StageEmbed, func(ctx context.Context) (*diarize.Embeddings, error) {
				return r.embed(ctx, pcm, heard.Spans)
			})
		}
		if *r.opt.EnableAudioEvents {
			f.sounds, eventErr = keptStage(ctx, r, StageEvents, func(ctx context.Context) (*sounds, error) {
				return r.detectSounds(ctx, pcm)
			})
		}
		return nil
	})
	_ = g.Wait() // the functions keep their errors apart
	return slices.DeleteFunc([]error{asrErr, embedErr, eventErr}, func(err error) bool { return err == nil })
}

// findApart is find for channels of one speaker each.
func (r *run) findApart(ctx context.Context, pcm *audio.PCM, list []*audio.PCM) (f findings, errs []error) {
	f.apart = &apart{}
	failed := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err != nil
	}
	sides, err := stage(ctx, r, StageVAD, func(ctx context.Context) ([]side, error) { return r.sides(ctx, list) })
	if !failed(err) {
		f.speech = together(sides)
		if !failed(r.transcribeApart(ctx, pcm, sides, &f)) {
			sides = saying(sides, f.apart.said)
		}
		if *r.opt.EnableDiarize {
			f.speakers, err = stage(ctx, r, StageEmbed, func(ctx context.Context) (*diarize.Result, error) { return r.voicesApart(ctx, sides) })
			failed(err)
			r.progress.ended(StageDiarize, 0, err == nil)
		}
		for _, s := range sides {
			f.apart.channels = append(f.apart.channels, s.channel)
			f.voiceWindows += len(s.heard.Spans)
		}
	}
	if *r.opt.EnableAudioEvents {
		f.sounds, err = stage(ctx, r, StageEvents, func(ctx context.Context) (*sounds, error) { return r.detectSounds(ctx, pcm) })
		failed(err)
	}
	return f, errs
}

// transcribeApart finds the language of all and what is said in each channel.
func (r *run) transcribeApart(ctx context.Context, pcm *audio.PCM, sides []side, f *findings) error {
	l, err := stage(ctx, r, StageLanguage, func(ctx context.Context) (language, error) {
		return r.findLanguage(ctx, pcm, f.speech.Spans)
	})
	if err != nil {
		return err
	}
	r.progress.tier(r.tier(l))
	f.transcription, err = stage(ctx, r, StageTranscribe, func(ctx context.Context) (*transcription, error) {
		all := &transcription{Language: l, Tier: r.tier(l), Transcript: &asr.Transcript{Language: l.Code}}
		for i, s := range sides {
			found, err := r.transcribe(ctx, s.pcm, s.heard, l, func(done, total float64) {
				r.progress.part(StageTranscribe, float64(i)+done/max(total, 1e-9), float64(len(sides)))
			})
			if err != nil {
				return nil, err
			}
			all.Transcript.Stats.Add(found.Transcript.Stats)
			if found.Abilities != nil {
				all.Abilities = found.Abilities // with these hotwords the same in every channel
				all.Transcript.Powerless, all.Transcript.Unspelled = found.Transcript.Powerless, found.Transcript.Unspelled
			}
			all.Again = cmp.Or(all.Again, found.Again)
			all.Cascade.Add(found.Cascade)
			all.Uncorrected = cmp.Or(all.Uncorrected, found.Uncorrected)
			for _, segment := range found.Transcript.Segments {
				f.apart.said = append(f.apart.said, spokenSegment{segment, i})
			}
		}
		slices.SortStableFunc(f.apart.said, func(a, b spokenSegment) int { return cmp.Compare(a.Start, b.Start) })
		for _, s := range f.apart.said {
			all.Transcript.Segments = append(all.Transcript.Segments, s.Segment)
		}
		return all, nil
	})
	if err == nil && r.told != nil && len(f.apart.said) > 0 {
		r.tell(pcm, f.transcription.Transcript.Segments, 0)
	}
	return err
}

// tell hands sentences to who asked for them, numbered from first.
func (r *run) tell(pcm *audio.PCM, sentences []asr.Segment, first int) {
	out := segments(findings{transcription: &transcription{Transcript: &asr.Transcript{Segments: sentences}}}, clock(pcm.Duration()))
	for i := range out {
		out[i].ID, out[i].Words = first+i, nil
	}
	r.p.hideConfidences(out)
	r.told(out)
}

// hideConfidences takes the confidences away where the pipeline is to give none.
func (p *Pipeline) hideConfidences(list []Segment) {
	if !p.noConfidences {
		return
	}
	for i := range list {
		list[i].Confidence = nil
	}
}

// languageAndText finds the language, then what was said in it.
func (r *run) languageAndText(ctx context.Context, pcm *audio.PCM, heard *speech) (*transcription, error) {
	l, err := keptStage(ctx, r, StageLanguage, func(ctx context.Context) (language, error) {
		return r.findLanguage(ctx, pcm, heard.Spans)
	})
	if err != nil {
		return nil, err
	}
	r.progress.tier(r.tier(l))
	said := 0
	tell := func(sentences []asr.Segment) {
		r.tell(pcm, sentences, said)
		said += len(sentences)
	}
	if r.told != nil {
		r.settled = tell
	}
	found, err := keptStage(ctx, r, StageTranscribe, func(ctx context.Context) (*transcription, error) {
		return r.transcribe(ctx, pcm, heard, l, func(done, total float64) { r.progress.part(StageTranscribe, done, total) })
	})
	if err == nil && r.told != nil && said < len(found.Transcript.Segments) {
		tell(found.Transcript.Segments[said:])
	}
	return found, err
}

// checkModels finds a missing model before any work is done. Which recognizer is
// needed shows only with the language; here it is enough that there is one.
func (r *run) checkModels() error {
	set := r.engines.set
	var errs []error
	need := func(role models.Role) {
		_, err := set.Need(role)
		errs = append(errs, err)
	}
	if *r.opt.EnableASR {
		need(models.RoleVAD)
		if r.translate || len(set.All(models.RoleOptimized)) == 0 {
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

// needsStandard reports whether a run's transcription takes the standard tier's model:
// for the text or some of it, or to tell the language.
func (r *run) needsStandard(said *transcription) bool {
	return said != nil && (said.Tier == TierStandard || said.Cascade.Doubtful+said.Cascade.Hearings > 0 || r.opt.ASRLanguage == nil && r.engines.available.Standard)
}

// preload opens the run's models while the recording is still being decoded and
// searched for speech, two at a time, first what the text needs: the voice activity
// detector and, beside it, what tells the language and, where it is known which, the
// recognizer. The run does not wait for it, and trouble is left to the stage that
// needs the model.
func (r *run) preload() {
	e := r.engines
	var lanes [2][]func()
	if *r.opt.EnableASR {
		lanes[0] = append(lanes[0], func() { _, _ = e.loadVAD() })
		lanes[1] = append(lanes[1], r.preloadRecognizer)
		if *r.opt.EnableDiarize {
			lanes[0] = append(lanes[0], func() { _, _ = e.loadEmbedder() }, func() { _, _ = e.loadSegmenter() })
		}
	}
	if *r.opt.EnableAudioEvents {
		lanes[1] = append(lanes[1], func() { _, _ = e.loadTagger() })
	}
	for _, lane := range lanes {
		done, err := r.p.enter()
		if err != nil { // Close has begun
			return
		}
		go func() {
			defer done()
			for _, load := range lane {
				load()
			}
		}()
	}
}

// preloadRecognizer opens what tells the language and, where it is known which, the
// recognizer.
func (r *run) preloadRecognizer() {
	e := r.engines
	if r.opt.ASRLanguage != nil {
		code, _ := spec.NormalizeLanguage(*r.opt.ASRLanguage)
		_, _ = e.recognizer(r.tier(language{Code: code}), code)
		return
	}
	if e.available.Standard {
		_, _ = e.loadStandard()
	}
	only := e.set.All(models.RoleOptimized)
	if len(only) == 1 && (r.opt.Optimize == nil || *r.opt.Optimize) && slices.ContainsFunc(only[0].Languages, func(l string) bool { return slices.Contains(e.available.Optimized, l) }) {
		_, _ = e.loadOptimized("")
	}
}

// stage runs one stage, measures it, reports its end and names it in its error.
// The zero value comes with an error.
func stage[T any](ctx context.Context, r *run, s Stage, work func(context.Context) (T, error)) (T, error) {
	start := time.Now()
	found, err := work(ctx)
	r.progress.ended(s, time.Since(start), err == nil)
	if err == nil {
		return found, nil
	}
	r.p.log.DebugContext(ctx, "stage failed", "stage", s, "error", err)
	var none T
	return none, &StageError{Stage: s, Err: err}
}

// keptStage is stage for work that the run's checkpoints keep.
func keptStage[T any](ctx context.Context, r *run, s Stage, work func(context.Context) (T, error)) (T, error) {
	return stage(ctx, r, s, checkpoint(r.checkpoints, r.p.log, s, work))
}

// unstage takes the stage's name off an error.
func unstage(err error) error {
	if s := (*StageError)(nil); errors.As(err, &s) {
		return s.Err
	}
	return err
}
