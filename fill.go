package otograph

import (
	"maps"
	"math"

	"github.com/otograph/otograph/spec"
)

// fill turns what the stages found into the Result, rounded as the
// specification promises.
func (r *run) fill() {
	res := r.result
	res.Stats.StageSeconds = maps.Clone(r.progress.seconds)
	if r.transcript != nil {
		r.fillTranscript()
	}
	if r.diarized != nil {
		res.Ran.Diarize = true
		res.NumSpeakers = len(r.diarized.Speakers)
		res.SpeakerEmbeddings, res.DiarizeSegments = []SpeakerEmbedding{}, []Turn{}
		for i, s := range r.diarized.Speakers {
			res.SpeakerEmbeddings = append(res.SpeakerEmbeddings,
				SpeakerEmbedding{SpeakerID: spec.SpeakerName(i), Embedding: s.Embedding, SegmentCount: s.Segments})
		}
		for _, t := range r.diarized.Turns {
			res.DiarizeSegments = append(res.DiarizeSegments, Turn{Start: centi(t.Start), End: centi(t.End), Speaker: spec.SpeakerName(t.Speaker)})
		}
	}
	if r.heard != nil {
		res.Ran.AudioEvents = true
		res.AudioEvents = []AudioEvent{}
		for _, e := range r.heard {
			res.AudioEvents = append(res.AudioEvents,
				AudioEvent{Start: centi(e.Start), End: centi(e.End), Class: e.Class.DisplayName, Confidence: round4(e.Confidence)})
		}
	}
}

func (r *run) fillTranscript() {
	res := r.result
	res.Ran.ASR = true
	res.Tier = r.tier
	res.Stats.ASR = r.transcript.Stats
	res.Language, res.LanguageProbability = r.language, round4(r.probability)
	res.VADSegments = make([]Interval, len(r.speech))
	for i, s := range r.speech {
		start, end := s.Seconds()
		res.VADSegments[i] = Interval{Start: centi(start), End: centi(end)}
	}
	res.Segments = []Segment{}
	words := r.tier == TierStandard && *r.opt.TimestampLevel == TimestampWord
	spoken := make([]spokenSegment, 0, len(r.transcript.Segments))
	if r.diarized != nil {
		spoken = assignSpeakers(r.transcript.Segments, r.diarized.Turns)
	} else {
		for _, s := range r.transcript.Segments {
			spoken = append(spoken, spokenSegment{Segment: s})
		}
	}
	for i, s := range spoken {
		seg := Segment{ID: i, Start: centi(s.Start), End: centi(s.End), Text: s.Text}
		if r.diarized != nil {
			seg.Speaker = spec.SpeakerName(s.speaker)
		}
		if words {
			seg.Words = make([]Word, len(s.Words))
			for j, w := range s.Words {
				seg.Words[j] = Word{Word: w.Text, Start: centi(w.Start), End: centi(w.End), Probability: round4(w.Probability)}
			}
		}
		res.Segments = append(res.Segments, seg)
	}
}

// centi rounds seconds to the 10 ms that the specification promises.
func centi(seconds float64) float64 { return math.Round(seconds*100) / 100 }

// round4 rounds a probability to four digits, inside 0 to 1.
func round4(p float64) float64 { return min(1, max(0, math.Round(p*1e4)/1e4)) }
