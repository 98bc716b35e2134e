package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph"
)

// optionFlags are the specification's options as flags, named after them.
type optionFlags struct {
	EnableASR         *bool `name:"enable-asr" group:"What to do" help:"Transcribe (default: true)."`
	EnableDiarize     *bool `name:"enable-diarize" group:"What to do" help:"Tell speakers apart (default: true with transcription)."`
	EnableAudioEvents *bool `name:"enable-audio-events" group:"What to do" help:"Detect sound events (default: true)."`

	Optimize       string   `name:"optimize" enum:"true,false,auto" default:"auto" placeholder:"auto" group:"Transcription" help:"Tier: true = fast optimized models, false = standard (Whisper), auto = by language."`
	TimestampLevel *string  `name:"timestamp-level" group:"Transcription" placeholder:"word" help:"word or segment."`
	ASRLanguage    *string  `name:"asr-language" short:"l" group:"Transcription" placeholder:"CODE" help:"Language of the speech (en, zh, deu, …); detected when left out."`
	BeamSize       *int     `name:"asr-beam-size" group:"Transcription" placeholder:"5" help:"Beam width, 1 to 20 (at most 8 are kept); 1 is fastest."`
	Temperature    *float64 `name:"asr-temperature" group:"Transcription" placeholder:"0" help:"Decoding temperature, 0 to 1; above 0 samples."`
	BestOf         *int     `name:"asr-best-of" group:"Transcription" placeholder:"N" help:"Sampled candidates, 1 to 20, at temperatures above 0."`
	Hotwords       []string `name:"hotwords" group:"Transcription" placeholder:"WORD" help:"Words to prefer: names, brands."`
	InitialPrompt  *string  `name:"initial-prompt" group:"Transcription" placeholder:"TEXT" help:"Text that steers the style."`
	NoSpeech       *float64 `name:"no-speech-threshold" group:"Transcription" placeholder:"0.6" help:"Drop segments with a no-speech probability above this."`

	VADThreshold  *float64 `name:"vad-threshold" group:"Speech detection" placeholder:"0.35" help:"Speech probability from which a window is speech."`
	VADMinSpeech  *int     `name:"vad-min-speech-ms" group:"Speech detection" placeholder:"250" help:"Ignore shorter speech (milliseconds)."`
	VADMinSilence *int     `name:"vad-min-silence-ms" group:"Speech detection" placeholder:"100" help:"Shorter silence does not cut (milliseconds)."`
	VADPad        *int     `name:"vad-speech-pad-ms" group:"Speech detection" placeholder:"30" help:"Padding around speech (milliseconds)."`

	NumSpeakers     *int     `name:"num-speakers" group:"Speakers" placeholder:"N" help:"Number of speakers, when it is known."`
	MinSpeakers     *int     `name:"min-speakers" group:"Speakers" placeholder:"1" help:"Least number of speakers."`
	MaxSpeakers     *int     `name:"max-speakers" group:"Speakers" placeholder:"10" help:"Greatest number of speakers."`
	MinSegment      *float64 `name:"diarize-min-segment-sec" group:"Speakers" placeholder:"0.5" help:"Shortest segment that yields a voice (seconds)."`
	SingleThreshold *float64 `name:"diarize-single-speaker-threshold" group:"Speakers" placeholder:"0.05" help:"Silhouette below which there is one speaker."`

	EventsThreshold *float64 `name:"audio-events-threshold" group:"Sound events" placeholder:"0.3" help:"Least confidence of an event."`
	EventsClasses   []string `name:"audio-events-classes" aliases:"audio-events-class" group:"Sound events" sep:"none" placeholder:"NAME" help:"Listen for this class only (repeat for more; names contain commas)."`
}

// options turns the flags into the options object. Speakers are told apart by
// default only where there is a transcription.
func (f *optionFlags) options() (otograph.Options, error) {
	o := otograph.Options{
		EnableASR: f.EnableASR, EnableDiarize: f.EnableDiarize, EnableAudioEvents: f.EnableAudioEvents,
		ASRLanguage: f.ASRLanguage, ASRBeamSize: f.BeamSize, ASRTemperature: f.Temperature, ASRBestOf: f.BestOf,
		Hotwords: f.Hotwords, InitialPrompt: f.InitialPrompt, NoSpeechThreshold: f.NoSpeech,
		VADThreshold: f.VADThreshold, VADMinSpeechMS: f.VADMinSpeech, VADMinSilenceMS: f.VADMinSilence, VADSpeechPadMS: f.VADPad,
		NumSpeakers: f.NumSpeakers, MinSpeakers: f.MinSpeakers, MaxSpeakers: f.MaxSpeakers,
		DiarizeMinSegmentSec: f.MinSegment, DiarizeSingleSpeakerThreshold: f.SingleThreshold,
		AudioEventsThreshold: f.EventsThreshold, AudioEventsClasses: f.EventsClasses,
	}
	if f.TimestampLevel != nil {
		o.TimestampLevel = new(otograph.TimestampLevel(*f.TimestampLevel))
	}
	if f.Optimize != "auto" {
		o.Optimize = new(f.Optimize == "true")
	}
	if o.EnableASR != nil && !*o.EnableASR && o.EnableDiarize == nil {
		o.EnableDiarize = new(false)
	}
	_, err := o.Effective()
	if bad := (*otograph.OptionError)(nil); errors.As(err, &bad) {
		return o, &usageError{fmt.Errorf("--%s: %s", strings.ReplaceAll(bad.Field, "_", "-"), bad.Reason)}
	}
	return o, err
}
