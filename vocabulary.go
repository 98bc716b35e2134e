package otograph

import "github.com/otograph/otograph/spec"

// The types of package spec under the same names, so that a program that embeds
// Otograph imports only one package.
type (
	// Options is the specification's Options object; see spec.Options.
	Options = spec.Options
	// EffectiveOptions are options with every default filled in.
	EffectiveOptions = spec.EffectiveOptions
	// OptionError reports the invalid option and the expected values.
	OptionError = spec.OptionError
	// TimestampLevel is the resolution of a transcript's times.
	TimestampLevel = spec.TimestampLevel
	// Tier is the kind of recognizer that produced a transcript.
	Tier = spec.Tier
	// Stage is a part of a run.
	Stage = spec.Stage
	// Progress is a report from a run; see spec.Progress.
	Progress = spec.Progress
	// StageError reports which stage of a run failed; see spec.StageError.
	StageError = spec.StageError
	// Result is a run's result, in JSON the specification's; see spec.Result.
	Result = spec.Result
	// Capabilities lists the parts that a Result contains; see spec.Capabilities.
	Capabilities = spec.Capabilities
	// Segment is one sentence of the transcript; see spec.Segment.
	Segment = spec.Segment
	// Word is one word with its times in seconds; see spec.Word.
	Word = spec.Word
	// Interval is a period in seconds; see spec.Interval.
	Interval = spec.Interval
	// SpeakerEmbedding is the voice of one speaker; see spec.SpeakerEmbedding.
	SpeakerEmbedding = spec.SpeakerEmbedding
	// Turn is a period, in seconds, in which one speaker speaks; see spec.Turn.
	Turn = spec.Turn
	// AudioEvent is a detected sound; see spec.AudioEvent.
	AudioEvent = spec.AudioEvent
	// Warning reports an option that a run could not honor; see spec.Warning.
	Warning = spec.Warning
	// Stats counts the work of a run; see spec.Stats.
	Stats = spec.Stats
)

// The values of TimestampLevel, Tier and Stage; see package spec.
const (
	TimestampWord    = spec.TimestampWord
	TimestampSegment = spec.TimestampSegment

	TierStandard  = spec.TierStandard
	TierOptimized = spec.TierOptimized

	StageDecode     = spec.StageDecode
	StageVAD        = spec.StageVAD
	StageLanguage   = spec.StageLanguage
	StageTranscribe = spec.StageTranscribe
	StageEmbed      = spec.StageEmbed
	StageEvents     = spec.StageEvents
	StageDiarize    = spec.StageDiarize
)

// ErrOptions marks every error about an Options object, for errors.Is.
var ErrOptions = spec.ErrOptions
