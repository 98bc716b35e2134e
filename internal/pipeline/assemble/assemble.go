// Package assemble builds a run's result: it assigns each sentence a speaker,
// rounds as the specification requires, and names options without effect.
package assemble

import (
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

// Result builds the result of a recording from the results of the stages.
func Result(pcm *audio.PCM, f *stages.Findings, stageSeconds map[spec.Stage]float64) *spec.Result {
	info := pcm.Info()
	at := stages.ClockOf(pcm)
	res := &spec.Result{AudioDuration: at.Duration(), AudioMD5: info.MD5}
	res.Stats = spec.Stats{DecodedSeconds: pcm.Duration(), Truncated: info.Truncated, StageSeconds: stageSeconds, EmbeddingWindows: f.VoiceWindows}
	if f.Speech != nil {
		res.Stats.VADWindows = f.Speech.Windows
	}
	if f.Transcription != nil {
		res.Ran.ASR = true
		res.Tier = f.Transcription.Tier
		res.Stats.ASR, res.Stats.Cascade = f.Transcription.Transcript.Stats, f.Transcription.Cascade
		res.Language = f.Transcription.Language.Code
		res.LanguageProbability = stages.Round4(f.Transcription.Language.Probability)
		res.VADSegments = make([]spec.Interval, len(f.Speech.Spans))
		for i, s := range f.Speech.Spans {
			start, end := s.Seconds()
			res.VADSegments[i] = spec.Interval{Start: at.Start(start), End: at.End(end)}
		}
		res.Segments = Segments(f, at)
	}
	if f.Speakers != nil {
		res.Ran.Diarize = true
		res.NumSpeakers, res.NumSpeakersProbability = len(f.Speakers.Speakers), rounded(f.Speakers.Probability)
		res.SpeakerEmbeddings, res.DiarizeSegments = make([]spec.SpeakerEmbedding, len(f.Speakers.Speakers)), []spec.Turn{}
		for i, s := range f.Speakers.Speakers {
			res.SpeakerEmbeddings[i] = spec.SpeakerEmbedding{SpeakerID: f.SpeakerName(i), Embedding: s.Embedding, SegmentCount: s.Segments}
		}
		for _, t := range f.Speakers.Turns {
			for _, part := range at.Parts(t.Start, t.End) {
				res.DiarizeSegments = append(res.DiarizeSegments, spec.Turn{Start: part.Start, End: part.End, Speaker: f.SpeakerName(t.Speaker)})
			}
		}
	}
	if f.Sounds != nil {
		res.Ran.AudioEvents = true
		res.Stats.EventFrames = f.Sounds.Frames
		res.AudioEvents = make([]spec.AudioEvent, len(f.Sounds.Events))
		for i, e := range f.Sounds.Events {
			res.AudioEvents[i] = spec.AudioEvent{Start: at.Start(e.Start), End: at.End(e.End), Class: e.Class.DisplayName, Confidence: stages.Round4(e.Confidence)}
		}
	}
	return res
}

// Segments returns the sentences with their speakers, if these are known.
func Segments(f *stages.Findings, at stages.Clock) []spec.Segment {
	var spoken []spokenSegment
	sentences, speakers := f.Transcription.Transcript.Segments, f.Speakers
	switch {
	case f.Channels != nil:
		for i, s := range sentences {
			spoken = append(spoken, spokenSegment{s, f.Transcription.Speakers[i]})
		}
	case speakers != nil:
		spoken = assignSpeakers(sentences, speakers.Exclusive)
	default:
		for _, s := range sentences {
			spoken = append(spoken, spokenSegment{Segment: s})
		}
	}
	var both crowd
	if speakers != nil {
		both = newCrowd(speakers.Turns)
	}
	mixed := slices.ContainsFunc(sentences, func(s asr.Segment) bool { return s.Language != sentences[0].Language })
	out := make([]spec.Segment, len(spoken))
	for i, s := range spoken {
		out[i] = spec.Segment{ID: i, Start: at.Start(s.Start), End: at.End(s.End), Text: s.Text, Confidence: rounded(s.Confidence), Measures: measures(s.Segment, f.Transcription.Abilities)}
		if mixed {
			out[i].Language = s.Language
		}
		if speakers != nil {
			out[i].Speaker = f.SpeakerName(s.speaker)
		}
		if s.Words == nil {
			continue
		}
		out[i].Words = make([]spec.Word, len(s.Words))
		for j, w := range s.Words {
			out[i].Words[j] = spec.Word{Word: w.Text, Start: at.Start(w.Start), End: at.End(w.End), Probability: stages.Round4(w.Probability), Interpolated: w.Interpolated, Doubtful: w.Doubtful, Overlapped: both.covers(w.Start, w.End)}
		}
	}
	return out
}

// measures returns a sentence's measures, nil if they are not known.
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

// rounded is stages.Round4 for a probability that may be nil.
func rounded(p *float64) *float64 {
	if p == nil {
		return nil
	}
	return new(stages.Round4(*p))
}
