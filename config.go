package otograph

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// CascadeBelow is the confidence below which the cascade decodes a segment of
// the optimized tier again; docs/measurements/confidence.md explains it.
const CascadeBelow = 0.85

// Config configures a Pipeline. The zero value holds the defaults.
type Config struct {
	// Cores limits the cores of the pipeline: each run uses at most so many
	// threads, and at most so many computations of all runs proceed at a time.
	// A computation of a short recording may have several threads, so that runs
	// may have more than Cores together. 0 means all.
	Cores int
	// Logger receives messages of the stages and the native libraries, mostly
	// at debug level; nil discards them.
	Logger *slog.Logger
	// Audio sets the limits and paths of the decoder; the default is the
	// specification's limits: 1 KB to 2 GB, at most 5 hours.
	Audio audio.Options
	// OptimizedWords adds words with their times and probabilities to the
	// segments of the optimized tier when a run requests words. Otherwise that
	// tier only has segments, as in the service's specification.
	OptimizedWords bool
	// NoConfidences removes Confidence from segments. Otherwise segments of
	// calibrated models have one; the service's specification has none.
	NoConfidences bool
	// Cascade is the confidence below which the standard tier decodes a segment
	// of the optimized tier again and the better text is kept; the set must
	// have models of both tiers. nil means CascadeBelow; 0 disables the
	// cascade, even for segments in another language than the recording's.
	// Stats.Cascade counts the work. Without a calibration, segments have no
	// confidence: only segments in another language are decoded again.
	Cascade *float64
	// Device is the device of the standard tier's model: "auto" ("" is the
	// same) is a GPU for which ggml has a plug-in, or else the CPU; "cpu";
	// "vulkan" or "vulkan:N". If the device is missing or fails, the CPU takes
	// over, with an entry in Result.Warnings.
	Device string
	// OptimizedLanguages restricts the optimized tier to the given languages
	// (ISO 639-1). Without any, that tier serves every language that its models
	// list; spec.OptimizedLanguages returns the specification's.
	OptimizedLanguages []string
	// Choice holds recognizers that runs select by name (spec.Extras.Model).
	Choice Choice
}

// Choice configures further recognizers, which runs select by name, and how
// long a pipeline's recognizers stay loaded.
type Choice struct {
	// Models holds the recognizers; library.Recognizers returns a folder's.
	Models []models.Model
	// Keep is how long an unused recognizer stays loaded; 0 means until Close.
	Keep time.Duration
	// Memory limits the total file size of the loaded recognizers in bytes; 0
	// means no limit. A larger model cannot be selected. A run waits for memory
	// that others use; a run that needs two recognizers may exceed the limit.
	Memory int64
}

// withDefaults returns the configuration with its defaults filled in.
func (c Config) withDefaults() Config {
	if c.Cores <= 0 {
		c.Cores = runtime.GOMAXPROCS(0)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Cascade = cmp.Or(c.Cascade, new(CascadeBelow))
	return c
}

// last returns the last of the optional structs of a call, or the zero value.
func last[T any](list []T) (v T) {
	if n := len(list); n > 0 {
		v = list[n-1]
	}
	return v
}

// RunOptions adds to a run's Options; the zero value changes nothing.
type RunOptions struct {
	// Extras are the options that the service has as well.
	spec.Extras
	// Voices are known voices: Result.Names names the speakers with them. A
	// voice names at most one speaker, and none if the match is uncertain. An
	// unsuitable recording (shorter than 2 s, longer than 10 s, with less than
	// a second of speech or several voices) ends the run early.
	Voices []KnownVoice
	// Channels is the treatment of the recording's channels; "" is ChannelsMix.
	Channels Channels
	// MaxSeconds, if positive, refuses longer recordings (audio.ErrTooLong),
	// unless the pipeline's own limit is shorter. Decoding stops at the limit,
	// even if the container states a shorter length.
	MaxSeconds float64
	// Checkpoints, if not nil, keep finished stages; errors are only logged.
	Checkpoints Checkpoints

	// Decoded, if not nil, is called with the recording's exact length in
	// seconds, before other stages. Its error ends the run unchanged.
	Decoded func(seconds float64) error
	// Waveform, if not nil, is called after Decoded with the recording's
	// waveform: bytes as audio.PCM.Peaks returns them.
	Waveform func(peaks []byte)
	// Progress, if not nil, is called with the progress, never concurrently:
	// after each stage and each window of up to 30 s of speech.
	Progress func(Progress)
	// Working, if not nil, is called after each pass of a model, possibly
	// concurrently: minutes without it and Progress mean a hanging call.
	Working func()
	// Segments, if not nil, is called with sentences during the run, as
	// Pipeline.Segments yields them.
	Segments func([]Segment)
}

// Checkpoints stores finished stages of a run, so that an interrupted run
// continues where it stopped. They must belong to one recording, one set of
// options and one set of models. A run calls one method at a time.
type Checkpoints interface {
	// Load returns the saved data of a stage, nil if there is none.
	Load(ctx context.Context, stage string) ([]byte, error)
	// Save stores a stage's data and replaces earlier data.
	Save(ctx context.Context, stage string, data []byte) error
}

// Channels selects the treatment of a recording's channels.
type Channels string

// The values of Channels.
const (
	// ChannelsMix mixes all channels into one; it is the default.
	ChannelsMix Channels = "mix"
	// ChannelsSplit treats each of 2 to 8 channels as a speaker, CHANNEL_n.
	ChannelsSplit Channels = "split"
	// ChannelsAuto splits if the channels hold different voices, as in a call.
	ChannelsAuto Channels = "auto"
)

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
	if c == ChannelsAuto && !stages.ChannelsDiffer(list) {
		return nil
	}
	return list
}
