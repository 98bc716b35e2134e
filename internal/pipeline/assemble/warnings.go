package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

// circumstances determine whether an option has an effect.
type circumstances struct {
	given          spec.Options
	opt            spec.EffectiveOptions
	tier           spec.Tier
	language       string
	stages.Honored                 // by the recognizer
	ran            bool            // whether the recognizer ran: otherwise tier and Honored have no meaning
	again          *stages.Honored // by the standard tier in the cascade
	segments       []asr.Segment
	words          bool // whether words are requested of the optimized tier
}

// part is a part of a run, without which some options have no effect.
type part struct {
	name, option string
	on           func(o spec.EffectiveOptions) *bool
}

var (
	transcription = part{"transcription", "enable_asr", func(o spec.EffectiveOptions) *bool { return o.EnableASR }}
	diarization   = part{"speaker diarization", "enable_diarize", func(o spec.EffectiveOptions) *bool { return o.EnableDiarize }}
	soundEvents   = part{"sound events", "enable_audio_events", func(o spec.EffectiveOptions) *bool { return o.EnableAudioEvents }}
)

// missing returns why an option of a part that is off has no effect, or "".
func (p part) missing(o spec.EffectiveOptions) string {
	if p.on == nil || *p.on(o) {
		return ""
	}
	return fmt.Sprintf("has no effect without %s (%s)", p.name, p.option)
}

// effects maps each option to a function that returns the part of the run that
// it needs and the reason why it has no effect, "" if it has an effect; nil
// means that it always has.
var effects = map[string]struct {
	needs  part
	effect func(c circumstances) string
}{
	"optimize":            {transcription, unoptimized},
	"optimize_zh":         {transcription, unoptimized},
	"timestamp_level":     {transcription, timestampEffect},
	"asr_language":        {transcription, nil},
	"asr_beam_size":       {transcription, ofRecognizer(beamEffect)},
	"asr_temperature":     {transcription, ofRecognizer(temperatureEffect)},
	"asr_best_of":         {transcription, ofRecognizer(bestOfEffect)},
	"hotwords":            {transcription, ofRecognizer(hotwordsEffect)},
	"initial_prompt":      {transcription, ofRecognizer(promptEffect)},
	"vad_threshold":       {transcription, nil},
	"vad_min_speech_ms":   {transcription, nil},
	"vad_min_silence_ms":  {transcription, nil},
	"vad_speech_pad_ms":   {transcription, nil},
	"no_speech_threshold": {transcription, nil},
	"num_speakers":        {diarization, nil},
	"min_speakers":        {diarization, boundEffect},
	"max_speakers":        {diarization, boundEffect},
	"voices":              {part{}, voicesEffect},

	"diarize_min_segment_sec":          {diarization, nil},
	"diarize_single_speaker_threshold": {diarization, singleSpeakerEffect},
	"audio_events_threshold":           {soundEvents, nil},
	"audio_events_classes":             {soundEvents, nil},
}

// reason returns the reason why an option has no effect, "" if it has one.
func (c circumstances) reason(name string) string {
	e, ok := effects[name]
	if !ok {
		return ""
	}
	if reason := e.needs.missing(c.opt); reason != "" || e.effect == nil {
		return reason
	}
	return e.effect(c)
}

// mostTracks is the largest number of other audio tracks in a warning.
const mostTracks = 10

// AudioWarnings returns the warnings about a recording.
func AudioWarnings(info audio.Info) (list []spec.Warning) {
	warn := func(format string, args ...any) {
		list = append(list, spec.Warning{Option: spec.WarnAudio, Reason: fmt.Sprintf(format, args...)})
	}
	if info.Truncated {
		warn("the recording is cut or damaged: the result covers the %.1f s that could be read", info.Duration)
	}
	if info.NonFinite > 0 {
		warn("%d of the recording's samples are not finite numbers: they count as silence", info.NonFinite)
	}
	if info.BadTimes {
		warn("the recording's time stamps claim gaps of more than five hours in all: the times of the result leave some of them out")
	}
	if len(info.Tracks) > 1 {
		others := info.Tracks[1:]
		if n := len(others) - mostTracks; n > 0 {
			others = append(slices.Clone(others[:mostTracks]), fmt.Sprintf("%d more", n))
		}
		warn("the recording has %d audio tracks: the result is that of track %s, without %s", len(info.Tracks), info.Tracks[0], strings.Join(others, ", "))
	}
	return list
}

// Warnings returns the given options that had no effect; words reports whether
// words are requested of the optimized tier. An option with its default value
// causes no warning, except if requested words are missing.
func Warnings(given spec.Options, opt spec.EffectiveOptions, t *stages.Transcription, words bool) (list []spec.Warning) {
	c := circumstances{given: given, opt: opt, words: words}
	if t != nil && t.Abilities != nil {
		c.ran, c.tier, c.language, c.segments = true, t.Tier, t.Language.Code, t.Transcript.Segments
		c.Honored = stages.Honored{Abilities: *t.Abilities, Ineffective: t.Transcript.Ineffective, Unspelled: t.Transcript.Unspelled}
		c.again = t.Again
	}
	changed := given.Changed()
	for _, name := range given.Given() {
		if !slices.Contains(changed, name) && name != "timestamp_level" {
			continue
		}
		if reason := c.reason(name); reason != "" {
			list = append(list, spec.Warning{Option: name, Reason: reason})
		}
	}
	return list
}

// ofRecognizer returns an effect that the recognizer decides, if it ran. The
// reason also states whether the option had an effect in the cascade's
// segments.
func ofRecognizer(effect func(c circumstances) string) func(c circumstances) string {
	return func(c circumstances) string {
		if !c.ran {
			return ""
		}
		reason := effect(c)
		if reason == "" || c.again == nil {
			return reason
		}
		c.tier, c.Honored = spec.TierStandard, *c.again
		if effect(c) != "" {
			return reason
		}
		return reason + "; the standard tier used it for the passages that it decoded again"
	}
}

func unoptimized(c circumstances) string {
	if c.ran && c.tier == spec.TierStandard && (isTrue(c.given.Optimize) || isTrue(c.given.OptimizeZh)) {
		return fmt.Sprintf("the standard tier ran: the optimized tier does not support the language %q here", c.language)
	}
	return ""
}

func isTrue(p *bool) bool { return p != nil && *p }

func timestampEffect(c circumstances) string {
	switch {
	case !c.ran || *c.opt.TimestampLevel != spec.TimestampWord || c.tier == spec.TierStandard:
		return ""
	case !c.words:
		return "the optimized tier returns segments without words"
	case len(c.segments) > 0 && !slices.ContainsFunc(c.segments, func(s asr.Segment) bool { return len(s.Words) > 0 }):
		return "the model does not return word times"
	}
	return ""
}

func beamEffect(c circumstances) string {
	switch {
	case c.Abilities.Beam == 0:
		return "has no effect: the model does not search with a beam"
	case c.Abilities.Temperature && *c.opt.ASRTemperature > 0:
		return "has no effect: an asr_temperature above 0 samples instead"
	case c.Abilities.BeamForHotwords && len(c.opt.Hotwords) == 0:
		return "has no effect: without hotwords the model takes the best token at each step"
	case *c.opt.ASRBeamSize > c.Abilities.Beam:
		return fmt.Sprintf("the decoder ran with its limit of %d beams", c.Abilities.Beam)
	}
	return ""
}

func temperatureEffect(c circumstances) string {
	if !c.Abilities.Temperature {
		return "has no effect: the model does not sample"
	}
	return ""
}

func bestOfEffect(c circumstances) string {
	if c.Abilities.Temperature && *c.opt.ASRTemperature == 0 {
		return "has no effect at an asr_temperature of 0"
	}
	return temperatureEffect(c)
}

// mostNamed is the number of hotwords that a warning names.
const mostNamed = 10

func hotwordsEffect(c circumstances) string {
	if !c.Abilities.Hotwords {
		return "have no effect: the model does not support hotwords"
	}
	var reasons []string
	if len(c.Unspelled) > 0 {
		reasons = append(reasons, "have no effect on "+named(c.Unspelled)+": the model's vocabulary cannot spell them")
	}
	if len(c.Ineffective) > 0 {
		reasons = append(reasons, "have no effect on "+named(c.Ineffective)+
			": the standard tier looks for hotwords of five letters or more, and no CTC model looked for them")
	}
	return strings.Join(reasons, "; ")
}

// named quotes the first hotwords of a list, and counts the others.
func named(words []string) string {
	var list []string
	for _, word := range words[:min(len(words), mostNamed)] {
		list = append(list, strconv.Quote(word))
	}
	out := strings.Join(list, ", ")
	if more := len(words) - mostNamed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

func promptEffect(c circumstances) string {
	if !c.Abilities.InitialPrompt {
		return "is ignored: the model does not support prompts"
	}
	return ""
}

func boundEffect(c circumstances) string {
	if c.opt.NumSpeakers != nil {
		return "has no effect with num_speakers"
	}
	return ""
}

func singleSpeakerEffect(c circumstances) string {
	if c.opt.NumSpeakers == nil && *c.opt.MinSpeakers > 1 {
		return "has no effect with min_speakers above 1"
	}
	return boundEffect(c)
}

func voicesEffect(c circumstances) string {
	if !isTrue(c.given.Voices) {
		return ""
	}
	return "has no effect outside the service, where accounts have known voices: see RunOptions.Voices and transcribe --voices"
}

// ChannelWarnings warns of a requested split of the channels without effect,
// and, for split channels (apart), of given numbers of speakers and of speech in
// which a channel repeats another one.
func ChannelWarnings(given spec.Options, opt spec.EffectiveOptions, split, apart bool, speech *stages.Speech) (list []spec.Warning) {
	if split && !apart {
		reason := cmp.Or(transcription.missing(opt), "has no effect: the recording does not have 2 to 8 channels")
		return []spec.Warning{{Option: "channels", Reason: reason}}
	}
	if !apart {
		return nil
	}
	for _, name := range given.Changed() {
		switch name {
		case "num_speakers", "min_speakers", "max_speakers", "diarize_single_speaker_threshold":
			list = append(list, spec.Warning{Option: name, Reason: "has no effect: each channel is one speaker"})
		}
	}
	if speech != nil && len(speech.Repeated) > 0 {
		list = append(list, spec.Warning{Option: "channels", Reason: fmt.Sprintf("where a channel repeats another one, it is not transcribed: %d times, %.1f s together",
			len(speech.Repeated), stages.Seconds(speech.Repeated))})
	}
	return list
}
