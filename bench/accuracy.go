package bench

import (
	"slices"
)

// Accuracy summarizes the scores of recordings; figures without any data are
// nil. All rates weight recordings by their length (errors of all over units of
// all).
type Accuracy struct {
	Words    WordErrors `json:"words"`     // sums
	WordRate *Estimate  `json:"word_rate"` // WER, for languages written with spaces
	// Verbatim is the WER of the original texts, with case and punctuation;
	// Compounds, with a normalizer, is the WER that ignores word splits.
	Verbatim  *Estimate `json:"verbatim"`
	Compounds *Estimate `json:"compounds"`
	CharRate  *Estimate `json:"char_rate"` // CER, for the others (Chinese, Japanese, Thai …)
	// WordRateAll and CharRateAll also count text written for recordings
	// without speech, as jiwer and sclite do; nil without such a recording.
	WordRateAll *Estimate `json:"word_rate_all"`
	CharRateAll *Estimate `json:"char_rate_all"`
	Invented    *Estimate `json:"invented"`  // share of the recordings without speech that got a text
	Turns       *DER      `json:"turns"`     // sums
	TurnRate    *Estimate `json:"turn_rate"` // DER
	// TurnRates holds DER and JER for the other ways of scoring, such as
	// "der_no_collar".
	TurnRates map[string]*Estimate `json:"turn_rates,omitempty"`
	// Meeting holds the rates of words by speakers: cpwer, tcpwer, orcwer,
	// greedy_orcwer, dicpwer, wder.
	Meeting map[string]*Estimate `json:"meeting,omitempty"`
	// Keywords sums the counts; KeywordF1 is their F1.
	Keywords  *KeywordScore `json:"keywords,omitempty"`
	KeywordF1 *Estimate     `json:"keyword_f1,omitempty"`
	Speakers  *Estimate     `json:"speakers"` // share with the correct number of speakers
	// SpeakersExpected is the mean probability stated for these numbers, and
	// SpeakersSure the share of correct ones where it is at least 0.8; nil
	// without such a recording.
	SpeakersExpected *Estimate `json:"speakers_expected,omitempty"`
	SpeakersSure     *Estimate `json:"speakers_sure,omitempty"`
	Language         *Estimate `json:"language"`   // share with the correct language
	EventF1          *Estimate `json:"event_f1"`   // see EventScore
	EventMAP         *Estimate `json:"event_map"`  // see meanAveragePrecision
	Precision        *float64  `json:"precision"`  // of events
	Recall           *float64  `json:"recall"`     // of events
	Sentences        *TimeStat `json:"sentences"`  // times of sentences
	WordTimes        *TimeStat `json:"word_times"` // times of words
}

// TimeStat summarizes TimeErrors, in seconds.
type TimeStat struct {
	MeanStart   float64 `json:"mean_start"`
	Within50    float64 `json:"start_within_50ms"`  // share of the matched, 0 to 1
	Within100   float64 `json:"start_within_100ms"` // share of the matched, 0 to 1
	Within200   float64 `json:"start_within_200ms"` // share of the matched, 0 to 1
	MedianStart float64 `json:"median_start"`
	P95Start    float64 `json:"p95_start"`
	MedianEnd   float64 `json:"median_end"`
	P95End      float64 `json:"p95_end"`
	Matched     float64 `json:"matched"` // share of the reference, 0 to 1
}

// Scored is a score with the language that defines the units of the text.
type Scored struct {
	Score
	Characters bool // scored by characters
}

// summarize summarizes scores; seed is the seed of the bootstrap.
func summarize(list []Scored, seed uint64) Accuracy {
	var a Accuracy
	for _, w := range present(list, func(s Scored) *WordErrors { return s.Words }) {
		a.Words.Add(w)
	}
	words := speech(list, false)
	a.WordRate, a.WordRateAll = unitRates(list, words, seed)
	a.CharRate, a.CharRateAll = unitRates(list, speech(list, true), seed)
	a.Verbatim = rate(present(words, func(s Scored) *WordErrors { return s.Verbatim }), seed)
	a.Compounds = rate(present(words, func(s Scored) *WordErrors { return s.Compounds }), seed)
	a.Invented = proportion(list, seed, func(s Scored) *bool {
		if s.Words == nil || s.Words.Reference > 0 {
			return nil
		}
		return new(s.Words.Insertions > 0)
	})
	a.TurnRates, a.Meeting = turnRates(list, seed), meetingSummary(list, seed)
	a.Turns, a.TurnRate = summed(list, seed, func(s Scored) *DER { return s.Turns }, DER.Add, DER.Rate)
	a.Keywords, a.KeywordF1 = summed(list, seed, func(s Scored) *KeywordScore { return s.Keywords }, KeywordScore.Add, KeywordScore.F1)
	a.Speakers = proportion(list, seed, func(s Scored) *bool { return s.Speakers.right() })
	a.SpeakersExpected, a.SpeakersSure = certainty(list, seed)
	a.Language = proportion(list, seed, func(s Scored) *bool {
		if s.Language == nil {
			return nil
		}
		return new(s.Language.Reference == s.Language.Found)
	})
	a.events(present(list, func(s Scored) *EventScore { return s.Events }), seed)
	a.Sentences = timeStat(present(list, func(s Scored) *TimeErrors { return s.Sentences }))
	a.WordTimes = timeStat(present(list, func(s Scored) *TimeErrors { return s.WordTimes }))
	return a
}

// present returns the scores of one kind, of the recordings that have one.
func present[T any](list []Scored, of func(Scored) *T) (out []T) {
	for _, s := range list {
		if v := of(s); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// speech returns the recordings with speech that are scored by characters, or
// by words.
func speech(list []Scored, characters bool) (out []Scored) {
	for _, s := range list {
		if s.Words != nil && s.Words.Reference > 0 && s.Characters == characters {
			out = append(out, s)
		}
	}
	return out
}

// unitRates returns the error rate of the recordings with speech, all of the
// same units, and the rate that also counts the others with these units.
func unitRates(list, speech []Scored, seed uint64) (rated, all *Estimate) {
	if len(speech) == 0 {
		return nil, nil
	}
	of := func(s Scored) *WordErrors { return s.Words }
	same := present(slices.DeleteFunc(slices.Clone(list), func(s Scored) bool { return s.Characters != speech[0].Characters }), of)
	if len(same) > len(speech) {
		all = rate(same, seed)
	}
	return rate(present(speech, of), seed), all
}

// summed returns the sum of the scores of one kind, and a figure of it; nil if
// no recording has one.
func summed[T any](list []Scored, seed uint64, of func(Scored) *T, add func(a, b T) T, figure func(T) float64) (sum *T, e *Estimate) {
	scores := present(list, of)
	if len(scores) == 0 {
		return nil, nil
	}
	return new(sumOf(scores, all(len(scores)), add)), estimateSum(scores, seed, add, figure)
}

func (a *Accuracy) events(list []EventScore, seed uint64) {
	if len(list) == 0 {
		return
	}
	sum := sumOf(list, all(len(list)), addEvents)
	a.Precision, a.Recall = new(sum.Precision()), new(sum.Recall())
	a.EventF1 = estimateSum(list, seed, addEvents, EventScore.F1)
	a.EventMAP = Bootstrap(len(list), seed, func(sample []int) float64 {
		drawn := make([]EventScore, len(sample))
		for i, k := range sample {
			drawn[i] = list[k]
		}
		return meanAveragePrecision(drawn)
	})
}

// surely is the probability from which a number of speakers counts as sure.
const surely = 0.8

// certainty compares the probabilities stated for numbers of speakers with the
// share of correct ones.
func certainty(list []Scored, seed uint64) (expected, sure *Estimate) {
	stated := present(list, func(s Scored) *float64 {
		if s.Speakers == nil {
			return nil
		}
		return s.Speakers.Probability
	})
	sure = proportion(list, seed, func(s Scored) *bool {
		if c := s.Speakers; c == nil || c.Probability == nil || *c.Probability < surely {
			return nil
		}
		return s.Speakers.right()
	})
	return mean(stated, seed), sure
}

// right reports whether the number is as expected; nil if there is none.
func (c *Count) right() *bool {
	if c == nil {
		return nil
	}
	return new(c.Reference == c.Found)
}

func timeStat(list []TimeErrors) *TimeStat {
	var e TimeErrors
	for _, o := range list {
		e.Add(o)
	}
	if len(e.Starts)+e.Missing == 0 {
		return nil
	}
	s := &TimeStat{Matched: e.Matched()}
	if len(e.Starts) > 0 {
		s.MeanStart, s.Within50, s.Within100, s.Within200 = e.MeanStart(), e.Within(0.05), e.Within(0.1), e.Within(0.2)
		s.MedianStart, s.MedianEnd = Median(e.Starts), Median(e.Ends)
		s.P95Start, s.P95End = percentileOf(e.Starts, 95), percentileOf(e.Ends, 95)
	}
	return s
}

func rate(list []WordErrors, seed uint64) *Estimate {
	return estimateSum(list, seed, addErrors, WordErrors.Rate)
}

func addErrors(a, b WordErrors) WordErrors {
	a.Add(b)
	return a
}

// addEvents adds the counts; classes and confidences are dropped.
func addEvents(a, b EventScore) EventScore { return EventScore{Found: a.Add(b.Found)} }

// turnRates estimates the error rates of turns for the other ways of scoring.
func turnRates(list []Scored, seed uint64) map[string]*Estimate {
	var out map[string]*Estimate
	for _, v := range turnVariants {
		turns := present(list, func(s Scored) *DER {
			if d, ok := s.TurnsBy[v.key]; ok {
				return &d
			}
			return nil
		})
		if len(turns) == 0 {
			continue
		}
		if out == nil {
			out = map[string]*Estimate{}
		}
		out["der_"+v.key], out["jer_"+v.key] = estimateSum(turns, seed, DER.Add, DER.Rate), estimateSum(turns, seed, DER.Add, DER.JER)
	}
	return out
}

// proportion returns the share of the recordings for which of is true, of those
// for which it is not nil.
func proportion(list []Scored, seed uint64, of func(Scored) *bool) *Estimate {
	var ones []float64
	for _, right := range present(list, of) {
		if right {
			ones = append(ones, 1)
		} else {
			ones = append(ones, 0)
		}
	}
	return mean(ones, seed)
}

func mean(list []float64, seed uint64) *Estimate {
	return Bootstrap(len(list), seed, func(sample []int) float64 {
		sum := 0.0
		for _, i := range sample {
			sum += list[i]
		}
		return sum / float64(len(sample))
	})
}
