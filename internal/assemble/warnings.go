package assemble

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/found"
	"github.com/otograph/otograph/spec"
)

// circumstances determine whether an option has an effect.
type circumstances struct {
	given         spec.Options
	opt           spec.EffectiveOptions
	tier          spec.Tier
	language      string
	found.Honored                // by the recognizer
	heard         bool           // whether the recognizer ran: otherwise tier and Honored have no meaning
	again         *found.Honored // by the standard tier in the cascade
	segments      []asr.Segment
	words         bool // whether words are requested of the optimized tier
}

// effects maps each option to the reason why it has no effect, "" if it has
// one. Options that are not in the table always have an effect.
var effects = map[string]func(c circumstances) string{
	"optimize":            ofASR(unoptimized),
	"optimize_zh":         ofASR(unoptimized),
	"timestamp_level":     ofASR(timestampEffect),
	"asr_language":        ofASR(nil),
	"asr_beam_size":       ofRecognizer(beamEffect),
	"asr_temperature":     ofRecognizer(temperatureEffect),
	"asr_best_of":         ofRecognizer(bestOfEffect),
	"hotwords":            ofRecognizer(hotwordsEffect),
	"initial_prompt":      ofRecognizer(promptEffect),
	"vad_threshold":       ofASR(nil),
	"vad_min_speech_ms":   ofASR(nil),
	"vad_min_silence_ms":  ofASR(nil),
	"vad_speech_pad_ms":   ofASR(nil),
	"no_speech_threshold": ofASR(nil),
	"num_speakers":        ofDiarization(nil),
	"min_speakers":        ofDiarization(boundEffect),
	"max_speakers":        ofDiarization(boundEffect),
	"voices":              voicesEffect,

	"diarize_min_segment_sec":          ofDiarization(nil),
	"diarize_single_speaker_threshold": ofDiarization(singleSpeakerEffect),
	"audio_events_threshold":           ofSounds(nil),
	"audio_events_classes":             ofSounds(nil),
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
func Warnings(given spec.Options, opt spec.EffectiveOptions, said *found.Transcription, words bool) (list []spec.Warning) {
	c := circumstances{given: given, opt: opt, words: words}
	if said != nil && said.Abilities != nil {
		c.heard, c.tier, c.language, c.segments = true, said.Tier, said.Language.Code, said.Transcript.Segments
		c.Honored = found.Honored{Abilities: *said.Abilities, Ineffective: said.Transcript.Ineffective, Unspelled: said.Transcript.Unspelled}
		c.again = said.Again
	}
	changed := given.Changed()
	for _, name := range given.Given() {
		effect := effects[name]
		if effect == nil || !slices.Contains(changed, name) && name != "timestamp_level" {
			continue
		}
		if reason := effect(c); reason != "" {
			list = append(list, spec.Warning{Option: name, Reason: reason})
		}
	}
	return list
}

// unless returns the effect of an option that depends on another one: reason if
// that is off, else effect's, if not nil.
func unless(on func(o spec.EffectiveOptions) *bool, reason string, effect func(c circumstances) string) func(c circumstances) string {
	return func(c circumstances) string {
		switch {
		case !*on(c.opt):
			return "has no effect without " + reason
		case effect == nil:
			return ""
		}
		return effect(c)
	}
}

func ofASR(effect func(c circumstances) string) func(c circumstances) string {
	return unless(func(o spec.EffectiveOptions) *bool { return o.EnableASR }, "transcription (enable_asr)", effect)
}

// ofRecognizer is ofASR for an effect that the recognizer decides, if it ran.
func ofRecognizer(effect func(c circumstances) string) func(c circumstances) string {
	return ofASR(func(c circumstances) string {
		if !c.heard {
			return ""
		}
		return beside(c, effect)
	})
}

func ofDiarization(effect func(c circumstances) string) func(c circumstances) string {
	return unless(func(o spec.EffectiveOptions) *bool { return o.EnableDiarize }, "speaker diarization (enable_diarize)", effect)
}

func ofSounds(effect func(c circumstances) string) func(c circumstances) string {
	return unless(func(o spec.EffectiveOptions) *bool { return o.EnableAudioEvents }, "sound events (enable_audio_events)", effect)
}

// beside returns an effect that depends on the recognizer. Its reason also says
// if the option had an effect in the passages of the cascade.
func beside(c circumstances, effect func(c circumstances) string) string {
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

func unoptimized(c circumstances) string {
	if c.heard && c.tier == spec.TierStandard && (isTrue(c.given.Optimize) || isTrue(c.given.OptimizeZh)) {
		return fmt.Sprintf("the standard tier ran: the optimized tier does not support the language %q here", c.language)
	}
	return ""
}

func isTrue(p *bool) bool { return p != nil && *p }

func timestampEffect(c circumstances) string {
	switch {
	case !c.heard || *c.opt.TimestampLevel != spec.TimestampWord || c.tier == spec.TierStandard:
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
	switch {
	case !c.Abilities.Temperature:
		return "has no effect: the model does not sample"
	case *c.opt.ASRTemperature == 0:
		return "has no effect at an asr_temperature of 0"
	}
	return ""
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
		reasons = append(reasons, "have hardly any effect on "+named(c.Ineffective)+
			": the standard tier's model does not write them in one or two tokens, and no CTC model looked for them")
	}
	return strings.Join(reasons, "; ")
}

// named returns the first hotwords of a list, and the number of further ones.
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
	switch {
	case c.opt.NumSpeakers != nil:
		return "has no effect with num_speakers"
	case *c.opt.MinSpeakers > 1:
		return "has no effect with min_speakers above 1"
	}
	return ""
}

func voicesEffect(c circumstances) string {
	if !isTrue(c.given.Voices) {
		return ""
	}
	return "has no effect outside the service, where accounts have known voices: see WithVoices and transcribe --voices"
}

// ChannelWarnings warns if the requested split of the channels (split) had no
// effect, or if a number of speakers was given although the channels were split
// (apart).
func ChannelWarnings(given spec.Options, opt spec.EffectiveOptions, split, apart bool) (list []spec.Warning) {
	if split && !apart {
		reason := "has no effect: the recording does not have 2 to 8 channels"
		if !*opt.EnableASR {
			reason = "has no effect without transcription (enable_asr)"
		}
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
	return list
}
