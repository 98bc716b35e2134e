package otograph

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/internal/pipeline/channels"
	"github.com/otograph/otograph/internal/pipeline/findings"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// RunOption configures one run.
type RunOption func(*run)

// OnProgress sets a function that receives the progress of a run.
func OnProgress(f func(Progress)) RunOption {
	return func(r *run) { r.Report = f }
}

// OnWorking sets a function that is called after each pass of a model, possibly
// concurrently: if neither it nor OnProgress's is called for minutes, a call of
// native code hangs.
func OnWorking(f func()) RunOption { return func(r *run) { r.Working = f } }

// OnWaveform sets a function that receives the recording's waveform after
// decoding, before the other stages: audio.PeaksPerSecond bytes per second, see
// audio.PCM.Peaks.
func OnWaveform(f func(peaks []byte)) RunOption {
	return func(r *run) { r.waveform = f }
}

// OnDecoded sets a function that receives the recording's exact length in
// seconds after decoding, before any other stage. An error of f ends the run
// and is returned unchanged.
func OnDecoded(f func(seconds float64) error) RunOption {
	return func(r *run) { r.decoded = f }
}

// Translated requests the standard tier's text in English, for any spoken
// language. A model that cannot translate causes whisper.ErrTranslation.
func Translated() RunOption { return func(r *run) { r.Translate = true } }

// WithLanguages names the languages (ISO 639-1) from which detection chooses if
// Options.ASRLanguage is empty; without any it chooses from all.
func WithLanguages(codes ...string) RunOption { return func(r *run) { r.Among = codes } }

// WithModel selects the run's recognizer by name (see WithChoice); "" selects
// the set's. An unknown name is an *OptionError. A standard model transcribes
// in the standard tier, an optimized one in the optimized tier, in the
// languages that the model supports.
func WithModel(name string) RunOption { return func(r *run) { r.model = name } }

// OnSegments sets a function that receives sentences during the run, in order
// and each once, as soon as their text is final. The sentences of the optimized
// tier, and of split channels, arrive together. They are not split by
// speaker: if the speaker changes inside a sentence, the result has two
// segments.
func OnSegments(f func([]Segment)) RunOption { return func(r *run) { r.told = f } }

// WithVoices names the speakers with the given voices in Result.Names. A voice
// names at most one speaker, and none if the match is uncertain. An unsuitable
// recording (shorter than 2 s, longer than 10 s, with less than a second of
// speech, or with more than one voice) ends the run before transcription.
func WithVoices(voices ...KnownVoice) RunOption {
	return func(r *run) { r.voices = voices }
}

// WithMaxSeconds refuses longer recordings (audio.ErrTooLong), unless the
// pipeline's own limit is shorter. Decoding stops at the limit, even if the
// container states a shorter length. Zero and negative values are ignored.
func WithMaxSeconds(seconds float64) RunOption {
	return func(r *run) { r.longest = seconds }
}

// Checkpoints stores finished stages of a run, so that an interrupted run
// continues where it stopped. They must belong to one recording, one set of
// options and one set of models.
type Checkpoints interface {
	// Load returns the saved data of a stage, nil if there is none.
	Load(ctx context.Context, stage string) ([]byte, error)
	// Save stores a stage's data and replaces earlier data.
	Save(ctx context.Context, stage string, data []byte) error
}

// WithCheckpoints loads finished stages from c and saves them there. Errors of
// c do not fail the run; they are logged.
func WithCheckpoints(c Checkpoints) RunOption {
	return func(r *run) { r.Checkpoints = c }
}

// Channels selects the treatment of a recording's channels.
type Channels string

// The values of Channels.
const (
	// ChannelsMix mixes all channels into one; it is the default.
	ChannelsMix Channels = "mix"
	// ChannelsSplit treats each of 2 to 8 channels as one speaker, CHANNEL_0
	// and so on.
	ChannelsSplit Channels = "split"
	// ChannelsAuto splits if the channels hold different voices, as in a call.
	ChannelsAuto Channels = "auto"
)

// WithChannels sets the treatment of a recording's channels.
func WithChannels(c Channels) RunOption {
	return func(r *run) { r.channels = c }
}

// check refuses unknown values; "" is ChannelsMix.
func (c Channels) check() error {
	switch c {
	case "", ChannelsMix, ChannelsSplit, ChannelsAuto:
		return nil
	}
	return &OptionError{Field: "channels", Reason: fmt.Sprintf("must be mix, split or auto, got %q", spec.Shorten(string(c)))}
}

// split returns the channels to treat separately; none means the mix.
func (c Channels) split(pcm *audio.PCM) []*audio.PCM {
	list := pcm.Channels()
	if c == ChannelsAuto && !channels.Differ(list) {
		return nil
	}
	return list
}

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
func (p *Pipeline) Check(options Options, runOptions ...RunOption) error {
	opt, err := effective(options)
	if err != nil {
		return err
	}
	return p.newRun(options, opt, runOptions).check()
}

func (p *Pipeline) newRun(given Options, opt EffectiveOptions, runOptions []RunOption) *run {
	r := &run{p: p, given: given, Stages: p.stages(opt, p.engines), Watch: stages.Watch{Log: p.log}}
	for _, o := range runOptions {
		o(r)
	}
	if lease, err := p.engines.Lease(r.model); err != nil {
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
	return errors.Join(r.channels.check(), r.Missing())
}

// Run processes one recording. Invalid options cause an *OptionError before
// anything is read. If EnableASR is false and EnableDiarize is not set,
// speakers are not requested either. Bad input causes an error of package audio
// (spec.IsPermanent distinguishes it from failures of the machine). If a stage
// fails after decoding, the error is a *StageError (several are joined) and the
// Result holds the other stages' findings. A canceled context ends the run
// within one window.
func (p *Pipeline) Run(ctx context.Context, src Source, options Options, runOptions ...RunOption) (*Result, error) {
	opt, err := effective(options)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	r := p.newRun(options, opt, runOptions)
	defer r.Engines.End()
	res, err := r.do(ctx, src)
	if err != nil && ctx.Err() != nil {
		// Every stage reports the cancellation differently.
		return res, context.Cause(ctx)
	}
	return res, err
}

// run is one Run.
type run struct {
	*stages.Stages
	stages.Watch
	p        *Pipeline
	given    Options                     // as the caller set them
	waveform func([]byte)                // nil: nobody asks
	decoded  func(seconds float64) error // nil: nobody asks
	longest  float64                     // seconds of the recording; 0 means the pipeline's limit
	voices   []KnownVoice                // known voices that name speakers
	channels Channels                    // "": mix
	told     func([]Segment)             // nil: nobody asks
	sound    channels.Recording
	speech   []channels.Side // found by StageVAD
	model    string          // the recognizer's name, "" for the set's
	failed   error           // of the name
}

// do decodes the recording, runs the stages and assembles the result.
func (r *run) do(ctx context.Context, src Source) (*Result, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	r.Progress.Plan(r.Options)
	r.Preload(ctx, r.p.enter)
	pcm, err := stages.Do(ctx, &r.Watch, StageDecode, func(ctx context.Context) (*audio.PCM, error) {
		return audio.Open(ctx, src, r.audio())
	})
	if err != nil {
		return nil, stages.Cause(err) // no findings to keep, so return package audio's error alone
	}
	defer pcm.Close()
	if r.decoded != nil {
		if err := r.decoded(pcm.Duration()); err != nil {
			return nil, err
		}
	}
	r.Progress.Duration(pcm.Duration())
	if r.waveform != nil {
		r.waveform(pcm.Peaks())
	}
	var known []KnownVoice
	if *r.Options.EnableDiarize {
		known = r.voices
	}
	register, err := r.p.learn(ctx, known)
	if err != nil {
		return nil, err
	}
	r.sound.PCM = pcm
	if *r.Options.EnableASR {
		r.sound.Split = r.channels.split(pcm)
		r.Split = r.sound.Split != nil
	}
	finds, errs := r.find(ctx)
	res, err := r.result(finds, register)
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return res, errs[0]
	}
	return res, errors.Join(errs...)
}

// result assembles the result; an error concerns only the speakers' names.
func (r *run) result(f *findings.Findings, register *voices.Register) (*Result, error) {
	res := assemble.Result(r.sound.PCM, f, r.Progress.Seconds())
	r.p.hideConfidences(res.Segments)
	res.Warnings = assemble.AudioWarnings(r.sound.Info())
	res.Warnings = append(res.Warnings, assemble.Warnings(r.given, r.Options, f.Transcription, r.OptimizedWords)...)
	res.Warnings = append(res.Warnings, assemble.ChannelWarnings(r.given, r.Options, r.channels == ChannelsSplit, r.sound.Split != nil)...)
	if t := f.Transcription; t != nil && t.Uncorrected != "" {
		res.Warnings = append(res.Warnings, spec.Warning{Option: "cascade", Reason: "the text is that of the optimized tier alone: " + t.Uncorrected})
	}
	if note := r.Engines.DeviceNote(); note != "" && r.NeedsStandard(f.Transcription) {
		res.Warnings = append(res.Warnings, spec.Warning{Option: "device", Reason: note})
	}
	var err error
	res.Names, err = r.Names(register, f)
	return res, err
}

// audio returns the audio options with the run's track and longest length.
func (r *run) audio() audio.Options {
	o := r.p.audio
	o.KeepChannels = r.channels == ChannelsSplit || r.channels == ChannelsAuto
	if track := r.Options.AudioTrack; track != nil {
		o.Track = *track
	}
	limit := o.MaxSeconds
	if limit == 0 {
		limit = spec.MaxAudioSeconds
	}
	if r.longest > 0 && (limit < 0 || r.longest < limit) {
		o.MaxSeconds = r.longest
	}
	return o
}

// find runs the stages after decoding, but none that depends on a failed one.
func (r *run) find(ctx context.Context) (f *findings.Findings, errs []error) {
	f = &findings.Findings{}
	failed := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err != nil
	}
	var heard bool
	if *r.Options.EnableASR {
		var err error
		r.speech, err = stages.Keep(ctx, &r.Watch, StageVAD, func(ctx context.Context) ([]channels.Side, error) {
			return r.Sides(ctx, r.sound)
		})
		if heard = !failed(err); heard {
			f.Speech = channels.Together(r.speech)
		}
	}
	var voices map[int]*diarize.Embeddings // by channel
	var asrErr, embedErr, eventErr error
	var g sync.WaitGroup
	if heard {
		g.Go(func() { f.Transcription, asrErr = r.languageAndText(ctx, f.Speech) })
	}
	g.Go(func() { // one core, in parallel with the transcription
		if heard && *r.Options.EnableDiarize {
			voices, embedErr = stages.Do(ctx, &r.Watch, StageEmbed, func(ctx context.Context) (map[int]*diarize.Embeddings, error) {
				return r.EmbedSides(ctx, r.sound, r.speech)
			})
		}
		if *r.Options.EnableAudioEvents {
			f.Sounds, eventErr = stages.Keep(ctx, &r.Watch, StageEvents, func(ctx context.Context) (*findings.Sounds, error) {
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

// nameChannels omits channels without text if each channel is one speaker, and
// numbers the speakers.
func (r *run) nameChannels(f *findings.Findings) {
	if r.sound.Split == nil {
		return
	}
	if f.Transcription != nil {
		r.speech = channels.Saying(r.speech, f.Transcription)
	}
	f.Channels = []int{}
	for _, s := range r.speech {
		f.Channels = append(f.Channels, s.Channel)
	}
}

// languageAndText detects the language and transcribes each side in it.
func (r *run) languageAndText(ctx context.Context, heard *findings.Speech) (*findings.Transcription, error) {
	language, err := stages.Keep(ctx, &r.Watch, StageLanguage, func(ctx context.Context) (findings.Language, error) {
		return r.FindLanguage(ctx, r.sound.PCM, heard.Spans)
	})
	if err != nil {
		return nil, err
	}
	r.Progress.Tier(r.Tier(language))
	said := 0
	var tell func([]asr.Segment)
	if r.told != nil {
		tell = func(sentences []asr.Segment) {
			r.tell(sentences, said)
			said += len(sentences)
		}
	}
	text, err := stages.Keep(ctx, &r.Watch, StageTranscribe, func(ctx context.Context) (*findings.Transcription, error) {
		if r.sound.Split == nil {
			return r.transcribe(ctx, 0, language, tell)
		}
		var list []*findings.Transcription
		for i := range r.speech {
			side, err := r.transcribe(ctx, i, language, nil)
			if err != nil {
				return nil, err
			}
			list = append(list, side)
		}
		all := channels.Join(language, list)
		all.Tier = r.Tier(language)
		return all, nil
	})
	if err == nil && tell != nil && said < len(text.Transcript.Segments) {
		tell(text.Transcript.Segments[said:])
	}
	return text, err
}

// transcribe returns the transcription of side i.
func (r *run) transcribe(ctx context.Context, i int, language findings.Language, settled func([]asr.Segment)) (*findings.Transcription, error) {
	side, all := r.speech[i], float64(len(r.speech))
	return r.Transcribe(ctx, r.sound.Of(side), side.Heard, language, stages.Reports{Settled: settled, Progress: func(done, total float64) {
		r.Progress.Part(StageTranscribe, float64(i)+done/max(total, 1e-9), all)
	}})
}

// tell passes sentences, numbered from first, to OnSegments.
func (r *run) tell(sentences []asr.Segment, first int) {
	f := &findings.Findings{Transcription: &findings.Transcription{Transcript: &asr.Transcript{Segments: sentences}}}
	out := assemble.Segments(f, findings.ClockOf(r.sound.PCM))
	for i := range out {
		out[i].ID, out[i].Words = first+i, nil
	}
	r.p.hideConfidences(out)
	r.told(out)
}

// hideConfidences removes the confidences from a pipeline without them.
func (p *Pipeline) hideConfidences(list []Segment) {
	if !p.noConfidences {
		return
	}
	for i := range list {
		list[i].Confidence = nil
	}
}
