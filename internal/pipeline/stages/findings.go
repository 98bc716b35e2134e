package stages

import (
	"fmt"
	"math"
	"sort"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
)

// Findings are the results of a run's stages; nil for a stage that failed or
// did not run.
type Findings struct {
	Speech        *Speech // of all channels
	Transcription *Transcription
	VoiceWindows  int // number of windows given to the embedder
	Speakers      *diarize.Result
	Sounds        *Sounds
	// Channels are the channels of the speakers, by number, if each channel is
	// one speaker; nil if the channels were mixed.
	Channels []int
}

// SpeakerName returns the name of speaker n, which may be a channel's.
func (f *Findings) SpeakerName(n int) string {
	if f.Channels != nil {
		return fmt.Sprintf("CHANNEL_%d", f.Channels[n])
	}
	return spec.SpeakerName(n)
}

// Speech holds the detected speech.
type Speech struct {
	Spans         []audio.Span
	Probabilities []byte       `json:",omitempty"` // of speech in each of the detector's windows, in 1/255
	Windows       int          `json:"-"`          // number of the detector's windows; 0 from a checkpoint
	Repeated      []audio.Span `json:",omitempty"` // speech of split channels that repeats another channel's
}

// coarse returns probabilities as Speech holds them: five hours take 560 KB.
func coarse(probs []float32) []byte {
	out := make([]byte, len(probs))
	for i, p := range probs {
		out[i] = Coarse(p)
	}
	return out
}

// Coarse returns a probability as Speech holds it.
func Coarse(p float32) byte { return byte(math.Round(255 * float64(min(max(p, 0), 1)))) }

// Silence returns the mean probability of no speech between two times
// (seconds); ok is false if the detector's probabilities are not known.
func (s *Speech) Silence(start, end float64) (p float64, ok bool) {
	const seconds = float64(vad.Window) / audio.SampleRate
	from := min(max(int(start/seconds), 0), len(s.Probabilities))
	to := min(max(int(math.Ceil(end/seconds)), from), len(s.Probabilities))
	if from == to {
		return 0, false
	}
	sum := 0
	for _, p := range s.Probabilities[from:to] {
		sum += int(p)
	}
	return 1 - float64(sum)/float64(255*(to-from)), true
}

// Seconds returns the total length of the spans.
func Seconds(spans []audio.Span) float64 { return float64(decode.Total(spans)) / audio.SampleRate }

// hasText reports whether any text was transcribed in a stretch of speech.
// Without text, a detector took music or noise for a speaker.
func hasText(segments []asr.Segment, speech audio.Span) bool {
	const least = 0.05 // seconds in common
	start, end := speech.Seconds()
	i := sort.Search(len(segments), func(i int) bool { return segments[i].End > start })
	for ; i < len(segments) && segments[i].Start < end; i++ {
		if min(end, segments[i].End)-max(start, segments[i].Start) >= min(least, end-start) {
			return true
		}
	}
	return false
}

// A recognizer leaves out speech that it does not understand. So a stretch
// without text also counts as speech if the detector is sure of a second of it;
// in music it is sure of half a second at most. See
// docs/measurements/speakers.md.
const (
	sureSpeech  = 0.8 * 255
	sureWindows = audio.SampleRate / vad.Window
)

// sure reports whether a stretch is certainly speech.
func (s *Speech) sure(stretch audio.Span) bool {
	n := 0
	for i := stretch.Start / vad.Window; i < min(vad.Windows(stretch.End), len(s.Probabilities)); i++ {
		if s.Probabilities[i] >= sureSpeech {
			n++
		}
	}
	return n >= sureWindows
}

// Language is the language of a recording.
type Language struct {
	Code        string
	Probability float64
}

// Transcription is the text of a recording, with the tier that produced it.
type Transcription struct {
	Language   Language
	Tier       spec.Tier
	Transcript *asr.Transcript // never nil
	// Speakers are the numbers of the segments' speakers if each channel is one
	// speaker; nil if the channels were mixed.
	Speakers []int `json:",omitempty"`
	// Abilities are the recognizer's abilities; nil if none ran.
	Abilities *asr.Abilities `json:",omitempty"`
	// Cascade counts the work of the standard tier on doubtful segments.
	Cascade spec.CascadeStats
	// Again lists the options that the standard tier honored in the cascade;
	// nil without one.
	Again *Honored `json:",omitempty"`
	// Uncorrected is the reason why the standard tier could not decode doubtful
	// segments again; "" if it could.
	Uncorrected string `json:",omitempty"`
}

// Honored describes which options of a run a recognizer could honor.
type Honored struct {
	Abilities   asr.Abilities
	Ineffective []string `json:",omitempty"` // hotwords, as in asr.Transcript
	Unspelled   []string `json:",omitempty"`
}

// Sounds are the sound events of a recording.
type Sounds struct {
	Events []events.Event
	Frames int `json:"-"` // number of scored frames; 0 from a checkpoint
}

// Clock converts positions in a recording's samples to the times of results.
type Clock struct {
	length float64 // length of the recording, with its gaps
	line   audio.Timeline
}

// ClockOf returns the clock of a recording.
func ClockOf(pcm *audio.PCM) Clock { return Clock{pcm.Timeline().End(pcm.Duration()), pcm.Timeline()} }

// Duration returns the recording's length rounded to 0.1 ms, as in results.
func (c Clock) Duration() float64 { return math.Round(c.length*1e4) / 1e4 }

// Start and End return the time in the recording of a beginning or an end at a
// position in seconds of samples, rounded to the specification's 10 ms.
func (c Clock) Start(position float64) float64 { return c.centi(c.line.Start(position)) }

// End is described at Start.
func (c Clock) End(position float64) float64 { return c.centi(c.line.End(position)) }

// Parts returns the intervals between two positions, split at gaps.
func (c Clock) Parts(start, end float64) (out []spec.Interval) {
	if len(c.line) == 0 {
		return []spec.Interval{{Start: c.Start(start), End: c.End(end)}}
	}
	whole := audio.Span{Start: int(math.Round(start * audio.SampleRate)), End: int(math.Round(end * audio.SampleRate))}
	for _, part := range c.line.Split([]audio.Span{whole}) {
		from, to := part.Seconds()
		out = append(out, spec.Interval{Start: c.Start(from), End: c.End(to)})
	}
	return out
}

func (c Clock) centi(seconds float64) float64 {
	end := math.Floor(c.length*100+1e-6) / 100
	return max(0, min(math.Round(seconds*100)/100, end))
}

// Round4 rounds a probability to four digits, within 0 to 1.
func Round4(p float64) float64 { return min(1, max(0, math.Round(p*1e4)/1e4)) }
