package otograph

import (
	"math"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// assemble makes the Result of what the stages found, rounded as the
// specification promises.
func assemble(pcm *audio.PCM, f findings, stageSeconds map[Stage]float64) *Result {
	info := pcm.Info()
	at := clock(pcm.Duration())
	res := &Result{AudioDuration: math.Round(pcm.Duration()*1e4) / 1e4, AudioMD5: info.MD5}
	res.Stats = Stats{NonFinite: int(info.NonFinite), Truncated: info.Truncated, StageSeconds: stageSeconds, EmbeddingWindows: f.voiceWindows}
	if f.speech != nil {
		res.Stats.VADWindows = f.speech.Windows
	}
	if f.transcription != nil {
		res.Ran.ASR = true
		res.Tier = f.transcription.Tier
		res.Stats.ASR, res.Stats.Cascade = f.transcription.Transcript.Stats, f.transcription.Cascade
		res.Language = f.transcription.Language.Code
		res.LanguageProbability = round4(f.transcription.Language.Probability)
		res.VADSegments = intervals(f.speech.Spans, at)
		res.Segments = segments(f, at)
	}
	if f.speakers != nil {
		res.Ran.Diarize = true
		res.NumSpeakers = len(f.speakers.Speakers)
		res.SpeakerEmbeddings, res.DiarizeSegments = embeddings(f), turns(f, at)
	}
	if f.sounds != nil {
		res.Ran.AudioEvents = true
		res.Stats.EventFrames = f.sounds.Frames
		res.AudioEvents = make([]AudioEvent, len(f.sounds.Events))
		for i, e := range f.sounds.Events {
			res.AudioEvents[i] = AudioEvent{Start: at.centi(e.Start), End: at.centi(e.End), Class: e.Class.DisplayName, Confidence: round4(e.Confidence)}
		}
	}
	return res
}

// segments returns the sentences with their speakers, where these are known.
func segments(f findings, at clock) []Segment {
	var spoken []spokenSegment
	said, speakers := f.transcription.Transcript.Segments, f.speakers
	switch {
	case f.apart != nil:
		spoken = f.apart.said
	case speakers != nil:
		floor := speakers.Exclusive
		if floor == nil { // from a checkpoint of a version that knew no overlaps
			floor = speakers.Turns
		}
		spoken = assignSpeakers(said, floor)
	default:
		for _, s := range said {
			spoken = append(spoken, spokenSegment{Segment: s})
		}
	}
	var both crowd
	if speakers != nil {
		both = newCrowd(speakers.Turns)
	}
	out := make([]Segment, len(spoken))
	for i, s := range spoken {
		out[i] = Segment{ID: i, Start: at.centi(s.Start), End: at.centi(s.End), Text: s.Text, Confidence: rounded(s.Confidence), Measures: measures(s.Segment, f.transcription.Abilities)}
		if speakers != nil {
			out[i].Speaker = f.speakerName(s.speaker)
		}
		if s.Words == nil {
			continue
		}
		out[i].Words = make([]Word, len(s.Words))
		for j, w := range s.Words {
			out[i].Words[j] = Word{Word: w.Text, Start: at.centi(w.Start), End: at.centi(w.End), Probability: round4(w.Probability), Interpolated: w.Interpolated, Doubtful: w.Doubtful, Overlapped: both.covers(w.Start, w.End)}
		}
	}
	return out
}

// measures returns what was measured of a sentence, nil for one from a checkpoint
// of a version that kept nothing.
func measures(s asr.Segment, can *asr.Abilities) *spec.Measures {
	if s.Tokens == nil || can == nil {
		return nil
	}
	m := &spec.Measures{Seek: s.Seek, Tokens: s.Tokens, AvgLogProb: s.AvgLogProb}
	if can.Temperature {
		m.Temperature = &s.Temperature
	}
	if can.NoSpeech {
		m.NoSpeechProb = &s.NoSpeechProb
	}
	return m
}

func intervals(spans []audio.Span, at clock) []Interval {
	out := make([]Interval, len(spans))
	for i, s := range spans {
		start, end := s.Seconds()
		out[i] = Interval{Start: at.centi(start), End: at.centi(end)}
	}
	return out
}

func embeddings(f findings) []SpeakerEmbedding {
	out := make([]SpeakerEmbedding, len(f.speakers.Speakers))
	for i, s := range f.speakers.Speakers {
		out[i] = SpeakerEmbedding{SpeakerID: f.speakerName(i), Embedding: s.Embedding, SegmentCount: s.Segments}
	}
	return out
}

func turns(f findings, at clock) []Turn {
	out := make([]Turn, len(f.speakers.Turns))
	for i, t := range f.speakers.Turns {
		out[i] = Turn{Start: at.centi(t.Start), End: at.centi(t.End), Speaker: f.speakerName(t.Speaker)}
	}
	return out
}

// clock is the length of a recording in seconds.
type clock float64

// centi rounds a time in the recording to the 10 ms that the specification
// promises, inside the recording.
func (c clock) centi(seconds float64) float64 {
	end := math.Floor(float64(c)*100+1e-6) / 100
	return max(0, min(math.Round(seconds*100)/100, end))
}

// round4 rounds a probability to four digits, inside 0 to 1.
func round4(p float64) float64 { return min(1, max(0, math.Round(p*1e4)/1e4)) }

// rounded is round4 for a probability that may be unknown.
func rounded(p *float64) *float64 {
	if p == nil {
		return nil
	}
	return new(round4(*p))
}
