package otograph

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/spec"
)

// Channels selects how the channels of a recording are treated.
type Channels string

// What becomes of the channels.
const (
	// ChannelsMix makes one channel of all; it is the default.
	ChannelsMix Channels = "mix"
	// ChannelsSplit takes each of 2 to 8 channels for one speaker, CHANNEL_0 and so on.
	ChannelsSplit Channels = "split"
	// ChannelsAuto splits where the channels hold different voices, as in a call.
	ChannelsAuto Channels = "auto"
)

// check refuses a value that is none of these; "" is ChannelsMix.
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
	if c == ChannelsAuto && !differ(list) {
		return nil
	}
	return list
}

// side is a channel that contains speech.
type side struct {
	channel int // of the recording
	pcm     *audio.PCM
	heard   *speech
}

// sides finds the speech of each channel that is not another channel's.
func (s *stages) sides(ctx context.Context, list []*audio.PCM) (sides []side, err error) {
	for i, c := range list {
		heard, err := s.detectSpeech(ctx, c)
		if err != nil {
			return nil, err
		}
		if heard.Spans, err = own(ctx, list, i, heard.Spans); err != nil {
			return nil, err
		}
		if len(heard.Spans) > 0 {
			sides = append(sides, side{i, c, heard})
		}
	}
	// Speakers are numbered by their first turn.
	slices.SortStableFunc(sides, func(a, b side) int { return cmp.Compare(a.heard.Spans[0].Start, b.heard.Spans[0].Start) })
	return sides, nil
}

// together is the speech of all channels.
func together(sides []side) *speech {
	out := &speech{}
	var all []audio.Span
	for _, s := range sides {
		all = append(all, s.heard.Spans...)
		out.Windows += s.heard.Windows
	}
	slices.SortFunc(all, func(a, b audio.Span) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range all {
		if n := len(out.Spans); n > 0 && s.Start <= out.Spans[n-1].End {
			out.Spans[n-1].End = max(out.Spans[n-1].End, s.End)
			continue
		}
		out.Spans = append(out.Spans, s)
	}
	return out
}

// saying leaves out the speech in which nothing was transcribed, and channels
// without any text: there a detector took music or noise for speech. The
// segments are renumbered to the remaining sides.
func saying(sides []side, said []spokenSegment) (out []side) {
	for i, s := range sides {
		var text []asr.Segment
		for j := range said {
			if said[j].speaker == i {
				text = append(text, said[j].Segment)
				said[j].speaker = len(out)
			}
		}
		if len(text) == 0 {
			continue
		}
		heard := *s.heard
		heard.Spans = slices.DeleteFunc(slices.Clone(heard.Spans), func(speech audio.Span) bool { return !understood(text, speech) })
		if len(heard.Spans) > 0 { // or the speaker of the text would have no voice
			s.heard = &heard
		}
		out = append(out, s)
	}
	return out
}

// voicesApart makes the turns of the channels' speech, and a voice of each channel.
func (s *stages) voicesApart(ctx context.Context, sides []side) (*diarize.Result, error) {
	out := &diarize.Result{}
	for i, c := range sides {
		found, err := compute(ctx, s.gate, s.engines.loadEmbedder, func(e diarize.Embedder) (*diarize.Result, error) {
			opt := s.diarizeOptions(e)
			opt.NumSpeakers = 1
			return diarize.Diarize(ctx, e, c.pcm, c.heard.Spans, opt)
		})
		if err != nil {
			return nil, err
		}
		out.Speakers = append(out.Speakers, found.Speakers...)
		for _, span := range c.heard.Spans {
			start, end := span.Seconds()
			out.Turns = append(out.Turns, diarize.Turn{Start: start, End: end, Speaker: i})
		}
	}
	slices.SortStableFunc(out.Turns, func(a, b diarize.Turn) int { return cmp.Compare(a.Start, b.Start) })
	return out, nil
}

// warnings returns where a requested treatment of channels, or a number of
// speakers given with it, has no effect.
func (c Channels) warnings(given Options, opt EffectiveOptions, f findings) (list []spec.Warning) {
	if c == ChannelsSplit && f.apart == nil {
		reason := "has no effect: the recording does not have 2 to 8 channels"
		if !*opt.EnableASR {
			reason = "has no effect without transcription (enable_asr)"
		}
		return []spec.Warning{{Option: "channels", Reason: reason}}
	}
	if f.apart == nil {
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
