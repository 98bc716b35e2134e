package otograph

import (
	"context"
	"fmt"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

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
