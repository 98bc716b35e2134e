package otograph

import (
	"math"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/spec"
)

// assemble makes the Result of what the stages found, rounded as the
// specification promises.
func assemble(pcm *audio.PCM, f findings, stageSeconds map[Stage]float64) *Result {
	info := pcm.Info()
	res := &Result{AudioDuration: math.Round(pcm.Duration()*1e4) / 1e4, AudioMD5: info.MD5}
	res.Stats = Stats{NonFinite: int(info.NonFinite), Truncated: info.Truncated, StageSeconds: stageSeconds, EmbeddingWindows: f.voiceWindows}
	if f.speech != nil {
		res.Stats.VADWindows = f.speech.Windows
	}
	if f.transcription != nil {
		res.Ran.ASR = true
		res.Tier = f.transcription.Tier
		res.Stats.ASR = f.transcription.Transcript.Stats
		res.Language = f.transcription.Language.Code
		res.LanguageProbability = round4(f.transcription.Language.Probability)
		res.VADSegments = intervals(f.speech.Spans)
		res.Segments = segments(f.transcription.Transcript.Segments, f.speakers)
	}
	if f.speakers != nil {
		res.Ran.Diarize = true
		res.NumSpeakers = len(f.speakers.Speakers)
		res.SpeakerEmbeddings, res.DiarizeSegments = embeddings(f.speakers.Speakers), turns(f.speakers.Turns)
	}
	if f.sounds != nil {
		res.Ran.AudioEvents = true
		res.Stats.EventFrames = f.sounds.Frames
		res.AudioEvents = make([]AudioEvent, len(f.sounds.Events))
		for i, e := range f.sounds.Events {
			res.AudioEvents[i] = AudioEvent{Start: centi(e.Start), End: centi(e.End), Class: e.Class.DisplayName, Confidence: round4(e.Confidence)}
		}
	}
	return res
}

// segments returns the sentences with their speakers, where these are known.
func segments(said []asr.Segment, speakers *diarize.Result) []Segment {
	var spoken []spokenSegment
	if speakers != nil {
		spoken = assignSpeakers(said, speakers.Turns)
	} else {
		for _, s := range said {
			spoken = append(spoken, spokenSegment{Segment: s})
		}
	}
	out := make([]Segment, len(spoken))
	for i, s := range spoken {
		out[i] = Segment{ID: i, Start: centi(s.Start), End: centi(s.End), Text: s.Text}
		if speakers != nil {
			out[i].Speaker = spec.SpeakerName(s.speaker)
		}
		if s.Words == nil {
			continue
		}
		out[i].Words = make([]Word, len(s.Words))
		for j, w := range s.Words {
			out[i].Words[j] = Word{Word: w.Text, Start: centi(w.Start), End: centi(w.End), Probability: round4(w.Probability)}
		}
	}
	return out
}

func intervals(spans []audio.Span) []Interval {
	out := make([]Interval, len(spans))
	for i, s := range spans {
		start, end := s.Seconds()
		out[i] = Interval{Start: centi(start), End: centi(end)}
	}
	return out
}

func embeddings(speakers []diarize.Speaker) []SpeakerEmbedding {
	out := make([]SpeakerEmbedding, len(speakers))
	for i, s := range speakers {
		out[i] = SpeakerEmbedding{SpeakerID: spec.SpeakerName(i), Embedding: s.Embedding, SegmentCount: s.Segments}
	}
	return out
}

func turns(found []diarize.Turn) []Turn {
	out := make([]Turn, len(found))
	for i, t := range found {
		out[i] = Turn{Start: centi(t.Start), End: centi(t.End), Speaker: spec.SpeakerName(t.Speaker)}
	}
	return out
}

// centi rounds seconds to the 10 ms that the specification promises.
func centi(seconds float64) float64 { return math.Round(seconds*100) / 100 }

// round4 rounds a probability to four digits, inside 0 to 1.
func round4(p float64) float64 { return min(1, max(0, math.Round(p*1e4)/1e4)) }
