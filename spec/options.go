package spec

import (
	"reflect"
	"slices"
)

// TimestampLevel is the resolution of a transcript's times.
type TimestampLevel string

const (
	// TimestampWord requests the times of every word (standard tier only).
	TimestampWord TimestampLevel = "word"
	// TimestampSegment asks only for sentence-level segments.
	TimestampSegment TimestampLevel = "segment"
)

// Options is the specification's Options object. The zero value means every
// default; set a field to override one. In Go 1.26 and later, new(false) or
// new(3) returns the pointer.
//
// Decoding JSON into it is strict: an unknown name, a name in another case, a
// name given twice, or a value of another type or out of bounds is an
// *OptionError that names the field by its JSON name.
//
// Its tags are the table of options, which Table returns. The strict decoding,
// the defaults, the bounds, the command's flags and the OpenAPI document use
// it. The tags are
//
//   - json: the name
//   - default: the value of an option that is not given, or "null" for an
//     option that then has no value and that may be null. An option without a
//     default is the earlier name of another one, or an addition to the
//     specification. It is accepted, and only echoed if it was given.
//   - min, max: the bounds of a number; for texts and the entries of a list,
//     max is the number of characters
//   - items: the largest number of entries in a list
//   - enum: the allowed values, separated by commas
//   - rule: an additional check: "language" or "event class"
//   - since: the first version of Otograph that has the option
//   - group: the heading for the option in the help
//   - help: one sentence for people
type Options struct {
	// EnableASR enables transcription and voice activity detection.
	EnableASR *bool `json:"enable_asr" default:"true" since:"0.1" group:"What to do" help:"Transcribe speech, cut into segments by voice activity detection."`
	// EnableDiarize enables speaker diarization; it requires EnableASR.
	EnableDiarize *bool `json:"enable_diarize" default:"true" since:"0.1" group:"What to do" help:"Identify speakers; requires enable_asr."`
	// EnableAudioEvents enables sound-event detection (521 classes).
	EnableAudioEvents *bool `json:"enable_audio_events" default:"true" since:"0.1" group:"What to do" help:"Detect sound events of 521 classes."`
	// AudioTrack is the audio track to transcribe, counted from 1; nil selects
	// the default track, or else the first: an addition to the specification.
	AudioTrack *int `json:"audio_track" min:"1" max:"1000" since:"0.1" group:"What to do" help:"Audio track of a film, counted from 1; without it the default track, or else the first; an addition to the specification."`
	// Optimize selects the tier: nil by the detected language, true the
	// optimized tier if it serves the language, false the standard tier.
	Optimize *bool `json:"optimize" default:"null" since:"0.1" group:"Transcription" help:"Tier: true selects the optimized tier if it supports the language, false the standard tier, null chooses by language."`
	// OptimizeZh is the earlier variant of Optimize: true allows the optimized
	// tier only for Chinese, false is the standard tier. It can't be given
	// together with Optimize.
	OptimizeZh *bool `json:"optimize_zh" since:"0.1" group:"Transcription" help:"Earlier form of optimize: true allows the optimized tier for Chinese only, false selects the standard tier."`
	// TimestampLevel is "word" or "segment" (the optimized tier's only one).
	TimestampLevel *TimestampLevel `json:"timestamp_level" default:"word" enum:"word,segment" since:"0.1" group:"Transcription" help:"Timestamp level: word or segment; the optimized tier has segments only."`
	// ASRLanguage is an ISO 639-1 or 639-3 code (names and region tags are also
	// accepted); nil detects the language.
	ASRLanguage *string `json:"asr_language" default:"null" rule:"language" since:"0.1" group:"Transcription" help:"Language of the speech as an ISO 639-1 or 639-3 code (en, zh, deu); detected when not set."`
	// ASRBeamSize is the beam size. The native decoder keeps at most 8 beams;
	// larger values run with 8. Models with a CTC output (optimized tier) keep
	// twice as many prefixes. Transducers and Paraformer use a beam if there
	// are hotwords or a language model.
	ASRBeamSize *int `json:"asr_beam_size" default:"5" min:"1" max:"20" since:"0.1" group:"Transcription" help:"Beam size; higher is slower and slightly more accurate. Above 8 the standard tier runs with 8."`
	// ASRTemperature is the decoding temperature; 0 is greedy or beam search.
	ASRTemperature *float64 `json:"asr_temperature" default:"0" min:"0" max:"1" since:"0.1" group:"Transcription" help:"Decoding temperature; 0 is greedy, above 0 samples."`
	// ASRBestOf is the number of sampled candidates if ASRTemperature > 0; nil
	// disables it.
	ASRBestOf *int `json:"asr_best_of" default:"null" min:"1" max:"20" since:"0.1" group:"Transcription" help:"Sampled candidates; only effective when asr_temperature is above 0."`
	// Hotwords are words whose probability is raised: names, brands.
	Hotwords []string `json:"hotwords" default:"null" items:"200" max:"64" since:"0.1" group:"Transcription" help:"Words to recognize with a higher probability: names, brands."`
	// InitialPrompt is a text that steers the style of the transcript.
	InitialPrompt *string `json:"initial_prompt" default:"null" max:"1000" since:"0.1" group:"Transcription" help:"Text that guides the style of the transcript."`
	// VADThreshold is the probability from which a window counts as speech.
	VADThreshold *float64 `json:"vad_threshold" default:"0.35" min:"0" max:"1" since:"0.1" group:"Speech detection" help:"Speech probability threshold; higher is more conservative."`
	// VADMinSpeechMS drops shorter speech segments, in milliseconds.
	VADMinSpeechMS *int `json:"vad_min_speech_ms" default:"250" min:"0" max:"10000" since:"0.1" group:"Speech detection" help:"Minimum length of a speech segment in milliseconds."`
	// VADMinSilenceMS is the silence that ends a segment, in milliseconds.
	VADMinSilenceMS *int `json:"vad_min_silence_ms" default:"100" min:"0" max:"10000" since:"0.1" group:"Speech detection" help:"Minimum silence between segments in milliseconds."`
	// VADSpeechPadMS widens each segment on both sides, in milliseconds.
	VADSpeechPadMS *int `json:"vad_speech_pad_ms" default:"30" min:"0" max:"2000" since:"0.1" group:"Speech detection" help:"Padding around speech segments in milliseconds."`
	// NoSpeechThreshold discards segments whose no-speech probability is above
	// it. In the standard tier, that is Whisper's probability for the segment's
	// window. In the optimized tier it is the mean of the voice activity
	// detector's value over the segment and the recognizer's blank probability
	// where the tokens fire (only the detector's for Paraformer).
	NoSpeechThreshold *float64 `json:"no_speech_threshold" default:"0.6" min:"0" max:"1" since:"0.1" group:"Transcription" help:"Discard segments with a no-speech probability above this."`
	// NumSpeakers fixes the number of speakers; nil detects it.
	NumSpeakers *int `json:"num_speakers" default:"null" min:"1" max:"50" since:"0.1" group:"Speakers" help:"Fixed number of speakers; detected when not set."`
	// MinSpeakers is the smallest number of speakers to detect.
	MinSpeakers *int `json:"min_speakers" default:"1" min:"1" max:"50" since:"0.1" group:"Speakers" help:"Minimum number of speakers when the number is detected."`
	// MaxSpeakers is the largest number of speakers to detect.
	MaxSpeakers *int `json:"max_speakers" default:"10" min:"1" max:"50" since:"0.1" group:"Speakers" help:"Maximum number of speakers when the number is detected."`
	// DiarizeMinSegmentSec is the shortest segment, in seconds, that yields a
	// voice embedding.
	DiarizeMinSegmentSec *float64 `json:"diarize_min_segment_sec" default:"0.5" min:"0.1" max:"10" since:"0.1" group:"Speakers" help:"Minimum segment length in seconds for a voice embedding."`
	// DiarizeSingleSpeakerThreshold is the silhouette score below which a
	// single speaker is assumed.
	DiarizeSingleSpeakerThreshold *float64 `json:"diarize_single_speaker_threshold" default:"0.05" min:"-1" max:"1" since:"0.1" group:"Speakers" help:"Silhouette score below which there is one speaker."`
	// Voices names speakers whose voices the account knows: an addition to the
	// specification, for the service alone.
	Voices *bool `json:"voices" since:"0.1" group:"Speakers" help:"Name speakers whose voices are known to the account (POST /voices); an addition to the specification."`
	// AudioEventsThreshold is the confidence above which an event is reported.
	AudioEventsThreshold *float64 `json:"audio_events_threshold" default:"0.3" min:"0" max:"1" since:"0.1" group:"Sound events" help:"Return only events with a confidence above this."`
	// AudioEventsClasses are the English class names to listen for; nil is all.
	AudioEventsClasses []string `json:"audio_events_classes" default:"null" rule:"event class" since:"0.1" group:"Sound events" help:"English names of the classes to detect; default: all 521."`
}

// EffectiveOptions is an Options object with every default filled in, as tasks
// return it. All fields are present in JSON; a field without a value is null.
// Effective sets every field whose option has a default.
type EffectiveOptions Options

// Effective validates the options and fills in the defaults of the table. It
// returns an *OptionError for a violated rule. The result shares no memory with
// o.
func (o Options) Effective() (EffectiveOptions, error) {
	e := EffectiveOptions(o)
	v := reflect.ValueOf(&e).Elem()
	for i := range options {
		row, field := &options[i], v.Field(options[i].index)
		switch {
		case !field.IsNil() && row.Kind == KindStrings:
			field.Set(reflect.ValueOf(slices.Clone(field.Interface().([]string))))
		case !field.IsNil():
			setPointer(field, field.Elem())
		case row.Default != nil:
			setPointer(field, reflect.ValueOf(row.Default))
		}
	}
	// If the caller set only one of the bounds, the default of the other gives
	// way to it.
	if o.MinSpeakers != nil && o.MaxSpeakers == nil && *e.MinSpeakers > *e.MaxSpeakers {
		*e.MaxSpeakers = *e.MinSpeakers
	}
	if n := o.NumSpeakers; n != nil && (o.MinSpeakers != nil && *n < *o.MinSpeakers || o.MaxSpeakers != nil && *n > *o.MaxSpeakers) {
		return e, optionError("num_speakers", "is %d, which min_speakers or max_speakers excludes: use only one of the two", *n)
	}
	return e, e.validate()
}

// setPointer sets the pointer field to the address of a copy of v.
func setPointer(field, v reflect.Value) {
	p := reflect.New(field.Type().Elem())
	p.Elem().Set(v.Convert(field.Type().Elem()))
	field.Set(p)
}

// Extras are the options outside the specification, as stored with tasks.
type Extras struct {
	// Translate requests the standard tier's text in English, for any spoken
	// language. A model that cannot translate causes whisper.ErrTranslation.
	Translate bool `json:"translate,omitempty"`
	// Measures requests the recognizer's measures in the service's results; the
	// library's always have them.
	Measures bool `json:"measures,omitempty"`
	// Languages are the codes (ISO 639-1) from which detection chooses if
	// Options.ASRLanguage is empty; without any it chooses from all.
	Languages []string `json:"languages,omitempty"`
	// Model is the name of the run's recognizer; "" is the set's. An unknown
	// name is an *OptionError. A standard model transcribes in the standard
	// tier, an optimized one in the optimized tier's languages.
	Model string `json:"model,omitempty"`
}
