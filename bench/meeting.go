package bench

import (
	"slices"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
)

// meetingCollar is how far (seconds) a word may be from its reference time in
// the time-constrained rate, as MeetEval recommends.
const meetingCollar = 5

// meetingScore holds the errors of a text by speakers, under several rules for
// matching the speakers' words; MeetEval defines them.
type meetingScore struct {
	CP  WordErrors `json:"cp"`  // speakers matched, with all words of each concatenated
	TCP WordErrors `json:"tcp"` // the same, but words only match within 5 s of their time
	// WrongSpeaker is how many of the Aligned words have another speaker; their
	// quotient is the word diarization error rate.
	WrongSpeaker int `json:"wrong_speaker"`
	Aligned      int `json:"aligned"`
}

// scoreMeeting compares texts by speakers; nil if one side has no speakers.
func scoreMeeting(item Item, res *otograph.Result, language string, n scores.Normalizer) *meetingScore {
	if item.SentenceSpeakers == nil || !res.Ran.Diarize {
		return nil
	}
	var ref, hyp []scores.Segment
	for i, s := range item.Sentences {
		ref = append(ref, scores.Segment{Speaker: item.SentenceSpeakers[i], Start: s.Start, End: s.End, Words: normalizedUnits(n, language, s.Text)})
	}
	for _, s := range res.Segments {
		hyp = append(hyp, scores.Segment{Speaker: s.Speaker, Start: s.Start, End: s.End, Words: normalizedUnits(n, language, s.Text)})
	}
	m := &meetingScore{CP: scores.CP(ref, hyp), TCP: scores.TCP(ref, hyp, meetingCollar)}
	if w, ok := scores.SpeakersOfWords(ref, hyp); ok {
		m.WrongSpeaker, m.Aligned = w.Wrong, w.Words
	}
	return m
}

// meetingRates holds the rates of a meetingScore with their names in reports.
var meetingRates = []struct {
	key, name string
	of        func(meetingScore) WordErrors
}{
	{"cpwer", "cpWER (words and speakers)", func(m meetingScore) WordErrors { return m.CP }},
	{"tcpwer", "· tcpWER, words near their time (5 s)", func(m meetingScore) WordErrors { return m.TCP }},
	{"wder", "· WDER, words with another speaker", func(m meetingScore) WordErrors {
		return WordErrors{Substitutions: m.WrongSpeaker, Reference: m.Aligned}
	}},
}

// meetingSummary estimates each rate that some recording has, by its key.
func meetingSummary(list []itemReport, seed uint64) (rates map[string]*estimate) {
	for _, r := range meetingRates {
		errors := present(list, func(it itemReport) *WordErrors {
			if it.Score.Meeting == nil {
				return nil
			}
			return new(r.of(*it.Score.Meeting))
		})
		errors = slices.DeleteFunc(errors, func(e WordErrors) bool { return e.Reference == 0 })
		if e := rate(errors, seed); e != nil {
			if rates == nil { // as a report that is read again has it
				rates = map[string]*estimate{}
			}
			rates[r.key] = e
		}
	}
	return rates
}
