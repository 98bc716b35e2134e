package bench

import (
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
	TCP WordErrors `json:"tcp"` // the same, but words only match near their time (5 s)
	// ORC assigns each sentence of the reference to the speaker with the fewest
	// errors; nil if that is too expensive to compute.
	ORC       *WordErrors `json:"orc,omitempty"`
	GreedyORC WordErrors  `json:"greedy_orc"` // an upper bound of ORC
	DICP      WordErrors  `json:"di_cp"`      // each sentence of the hypothesis assigned by a greedy search
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
	m := &meetingScore{
		CP: scores.CP(ref, hyp), TCP: scores.TCP(ref, hyp, meetingCollar),
		GreedyORC: scores.GreedyORC(ref, hyp), DICP: scores.GreedyDICP(ref, hyp),
	}
	if c, ok := scores.ORC(ref, hyp); ok {
		m.ORC = &c
	}
	if w, ok := scores.SpeakersOfWords(ref, hyp); ok {
		m.WrongSpeaker, m.Aligned = w.Wrong, w.Words
	}
	return m
}

// meetingRates holds the rates of a meetingScore with their names in reports.
// Each returns the errors and the units of one recording.
var meetingRates = []struct {
	key, name string
	of        func(meetingScore) (errors, units int)
}{
	{"cpwer", "cpWER (words and speakers)", func(m meetingScore) (int, int) { return m.CP.Errors(), m.CP.Reference }},
	{"tcpwer", "· tcpWER, words near their time (5 s)", func(m meetingScore) (int, int) { return m.TCP.Errors(), m.TCP.Reference }},
	{"orcwer", "· ORC-WER, exact", func(m meetingScore) (int, int) {
		if m.ORC == nil {
			return 0, 0
		}
		return m.ORC.Errors(), m.ORC.Reference
	}},
	{"greedy_orcwer", "· ORC-WER, greedy", func(m meetingScore) (int, int) { return m.GreedyORC.Errors(), m.GreedyORC.Reference }},
	{"dicpwer", "· DI-cpWER, greedy", func(m meetingScore) (int, int) { return m.DICP.Errors(), m.DICP.Reference }},
	{"wder", "· WDER, words with another speaker", func(m meetingScore) (int, int) { return m.WrongSpeaker, m.Aligned }},
}

// meetingSummary estimates each rate that at least one recording has, by its
// key.
func meetingSummary(list []itemReport, seed uint64) map[string]*estimate {
	meetings := present(list, func(it itemReport) *meetingScore { return it.Score.Meeting })
	if len(meetings) == 0 {
		return nil
	}
	out := map[string]*estimate{}
	for _, r := range meetingRates {
		var rates []ratio
		for _, m := range meetings {
			if e, u := r.of(m); u > 0 {
				rates = append(rates, ratio{float64(e), float64(u)})
			}
		}
		if e := estimateSum(rates, seed, ratio.add, ratio.rate); e != nil {
			out[r.key] = e
		}
	}
	return out
}
