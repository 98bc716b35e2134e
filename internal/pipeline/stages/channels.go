package stages

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
)

// Mix is the Channel of a Side that is the mix of all channels.
const Mix = -1

// Side is a channel that contains speech, or the mix of all.
type Side struct {
	Channel int // of the recording, or Mix
	Speech  *Speech
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

// AllSpeech returns the speech of all sides.
func AllSpeech(sides []Side) *Speech {
	if len(sides) == 1 {
		return sides[0].Speech
	}
	out := &Speech{}
	var all []audio.Span
	for _, s := range sides {
		all = append(all, s.Speech.Spans...)
		out.Windows += s.Speech.Windows
		out.Repeated = append(out.Repeated, s.Speech.Repeated...)
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

// JoinTranscriptions joins the transcriptions of sides of the same language and
// tier, by time. Speakers holds the index of each segment's side.
func JoinTranscriptions(language Language, list []*Transcription) *Transcription {
	all := &Transcription{Language: language, Transcript: &asr.Transcript{Language: language.Code}, Speakers: []int{}}
	type spoken struct {
		asr.Segment
		side int
	}
	var sentences []spoken
	for i, t := range list {
		all.Transcript.Stats.Add(t.Transcript.Stats)
		if t.Abilities != nil {
			all.Abilities = t.Abilities // the same for all sides, with these hotwords
			all.Transcript.Ineffective, all.Transcript.Unspelled = t.Transcript.Ineffective, t.Transcript.Unspelled
		}
		all.Again = cmp.Or(all.Again, t.Again)
		all.Cascade.Add(t.Cascade)
		all.Uncorrected = cmp.Or(all.Uncorrected, t.Uncorrected)
		for _, segment := range t.Transcript.Segments {
			sentences = append(sentences, spoken{segment, i})
		}
	}
	slices.SortStableFunc(sentences, func(a, b spoken) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range sentences {
		all.Transcript.Segments = append(all.Transcript.Segments, s.Segment)
		all.Speakers = append(all.Speakers, s.side)
	}
	return all
}

// WithText drops speech in which nothing was transcribed, and sides without any
// text: a detector took music or noise for speech there. The transcription's
// Speakers are renumbered to the remaining sides.
func WithText(sides []Side, t *Transcription) (out []Side) {
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
		speech := *s.Speech
		speech.Spans = slices.DeleteFunc(slices.Clone(speech.Spans), func(span audio.Span) bool { return !hasText(text, span) })
		if len(speech.Spans) > 0 { // otherwise the speaker of the text would have no voice
			s.Speech = &speech
		}
		out = append(out, s)
	}
	t.Speakers = speakers
	return out
}

// sideVoices joins the sides' voices: speaker i speaks on side i.
func sideVoices(sides []Side, voices []*diarize.Result) *diarize.Result {
	out := &diarize.Result{}
	for i, s := range sides {
		out.Speakers = append(out.Speakers, voices[i].Speakers...)
		for _, span := range s.Speech.Spans {
			start, end := span.Seconds()
			out.Turns = append(out.Turns, diarize.Turn{Start: start, End: end, Speaker: i})
		}
	}
	slices.SortStableFunc(out.Turns, func(a, b diarize.Turn) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// Channels hold different voices if in most frames with sound one is much
// louder than every other, and if more than one is the loudest at times.
const (
	differFrame  = audio.SampleRate / 10
	differLouder = 10.0               // times the power: 10 dB
	differMost   = 0.6                // of the frames with sound
	differEach   = 0.05               // of the frames with sound, for each of two channels
	differSilent = 1e-6 * differFrame // energy of a frame without sound: −60 dBFS
)

// ChannelsDiffer reports whether channels hold different voices.
func ChannelsDiffer(list []*audio.PCM) bool {
	if len(list) < 2 {
		return false
	}
	levels, loudest := make([]float64, len(list)), make([]int, len(list)) // energies; frames
	sounding, clear := 0, 0
	for from := 0; from < list[0].Len(); from += differFrame {
		for i, c := range list {
			levels[i] = 0
			for _, x := range c.Samples(from, from+differFrame) {
				levels[i] += float64(x) * float64(x)
			}
		}
		best := slices.Index(levels, slices.Max(levels))
		first := levels[best]
		if first < differSilent {
			continue
		}
		sounding++
		if levels[best] = 0; first >= differLouder*slices.Max(levels) {
			clear++
			loudest[best]++
		}
	}
	voices := 0
	for _, n := range loudest {
		if float64(n) >= differEach*float64(sounding) && n > 0 {
			voices++
		}
	}
	return voices > 1 && float64(clear) >= differMost*float64(sounding)
}
