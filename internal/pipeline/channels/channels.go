// Package channels treats each channel of a recording as one speaker. It
// decides which speech in a channel is its own and whether the channels hold
// different voices, and joins the channels' transcriptions and voices.
package channels

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/pipeline/findings"
)

// Mix is the Channel of a Side that is the mix of all channels.
const Mix = -1

// Side is a channel that contains speech, or the mix of all.
type Side struct {
	Channel int // of the recording, or Mix
	Heard   *findings.Speech
}

// Recording is a decoded recording.
type Recording struct {
	*audio.PCM              // the mix of the channels
	Split      []*audio.PCM // the channels if each is one speaker; otherwise nil
}

// Of returns the audio of a side.
func (r Recording) Of(s Side) *audio.PCM {
	if s.Channel == Mix {
		return r.PCM
	}
	return r.Split[s.Channel]
}

// Sort orders sides by their first speech, for the speakers' numbers.
func Sort(sides []Side) {
	slices.SortStableFunc(sides, func(a, b Side) int { return cmp.Compare(a.Heard.Spans[0].Start, b.Heard.Spans[0].Start) })
}

// Together returns the speech of all sides.
func Together(sides []Side) *findings.Speech {
	if len(sides) == 1 {
		return sides[0].Heard
	}
	out := &findings.Speech{}
	var all []audio.Span
	for _, s := range sides {
		all = append(all, s.Heard.Spans...)
		out.Windows += s.Heard.Windows
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

// Join joins the transcriptions of sides of the same language and tier, by
// time. Speakers holds the index of each segment's side.
func Join(language findings.Language, list []*findings.Transcription) *findings.Transcription {
	all := &findings.Transcription{Language: language, Transcript: &asr.Transcript{Language: language.Code}, Speakers: []int{}}
	type spoken struct {
		asr.Segment
		side int
	}
	var said []spoken
	for i, t := range list {
		all.Transcript.Stats.Add(t.Transcript.Stats)
		if t.Abilities != nil {
			all.Abilities = t.Abilities // with these hotwords the same on every side
			all.Transcript.Ineffective, all.Transcript.Unspelled = t.Transcript.Ineffective, t.Transcript.Unspelled
		}
		all.Again = cmp.Or(all.Again, t.Again)
		all.Cascade.Add(t.Cascade)
		all.Uncorrected = cmp.Or(all.Uncorrected, t.Uncorrected)
		for _, segment := range t.Transcript.Segments {
			said = append(said, spoken{segment, i})
		}
	}
	slices.SortStableFunc(said, func(a, b spoken) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range said {
		all.Transcript.Segments = append(all.Transcript.Segments, s.Segment)
		all.Speakers = append(all.Speakers, s.side)
	}
	return all
}

// Saying drops speech in which nothing was transcribed, and sides without any
// text: a detector took music or noise for speech there. The transcription's
// Speakers are renumbered to the remaining sides.
func Saying(sides []Side, t *findings.Transcription) (out []Side) {
	speakers := slices.Clone(t.Speakers)
	for i, s := range sides {
		var text []asr.Segment
		for j, side := range t.Speakers {
			if side == i {
				text = append(text, t.Transcript.Segments[j])
				speakers[j] = len(out)
			}
		}
		if len(text) == 0 {
			continue
		}
		heard := *s.Heard
		heard.Spans = slices.DeleteFunc(slices.Clone(heard.Spans), func(speech audio.Span) bool { return !findings.Understood(text, speech) })
		if len(heard.Spans) > 0 { // otherwise the speaker of the text would have no voice
			s.Heard = &heard
		}
		out = append(out, s)
	}
	t.Speakers = speakers
	return out
}

// Voices joins the voices of sides: speaker i speaks in the speech of side i.
func Voices(sides []Side, voices []*diarize.Result) *diarize.Result {
	out := &diarize.Result{}
	for i, s := range sides {
		out.Speakers = append(out.Speakers, voices[i].Speakers...)
		for _, span := range s.Heard.Spans {
			start, end := span.Seconds()
			out.Turns = append(out.Turns, diarize.Turn{Start: start, End: end, Speaker: i})
		}
	}
	slices.SortStableFunc(out.Turns, func(a, b diarize.Turn) int { return cmp.Compare(a.Start, b.Start) })
	return out
}
