package bench

import (
	"math"

	"github.com/otograph/otograph/internal/scores"
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
	var words, chars, empty, verbatim, compounds []WordErrors
	var allWords, allChars []WordErrors // including the empty ones
	var turns []DER
	var meetings []MeetingScore
	var keywords []scores.Found
	var speakers, language []bool
	var events []EventScore
	var sentences, times TimeErrors
	for _, s := range list {
		if w := s.Words; w != nil {
			a.Words.Add(*w)
			if s.Characters {
				allChars = append(allChars, *w)
			} else {
				allWords = append(allWords, *w)
			}
			switch {
			case w.Reference == 0:
				empty = append(empty, *w)
			case s.Characters:
				chars = append(chars, *w)
			default:
				words = append(words, *w)
				verbatim = appendIf(verbatim, s.Verbatim)
				compounds = appendIf(compounds, s.Compounds)
			}
		}
		if s.Turns != nil {
			turns = append(turns, *s.Turns)
		}
		if s.Meeting != nil {
			meetings = append(meetings, *s.Meeting)
		}
		if s.Keywords != nil {
			keywords = append(keywords, scores.Found(*s.Keywords))
		}
		if c := s.Speakers; c != nil {
			speakers = append(speakers, c.Reference == c.Found)
		}
		if l := s.Language; l != nil {
			language = append(language, l.Reference == l.Found)
		}
		if s.Events != nil {
			events = append(events, *s.Events)
		}
		if s.Sentences != nil {
			sentences.Add(*s.Sentences)
		}
		if s.WordTimes != nil {
			times.Add(*s.WordTimes)
		}
	}
	a.WordRate, a.CharRate = rate(words, seed), rate(chars, seed)
	if len(words) > 0 && len(allWords) > len(words) {
		a.WordRateAll = rate(allWords, seed)
	}
	if len(chars) > 0 && len(allChars) > len(chars) {
		a.CharRateAll = rate(allChars, seed)
	}
	a.TurnRates, a.Meeting = turnRates(list, seed), summarizeMeetings(meetings, seed)
	if len(keywords) > 0 {
		a.Keywords = new(KeywordScore(sumOf(keywords, all(len(keywords)), plusFound)))
		a.KeywordF1 = estimateSum(keywords, seed, plusFound, scores.Found.F1)
	}
	a.Verbatim, a.Compounds = rate(verbatim, seed), rate(compounds, seed)
	invented := make([]bool, len(empty))
	for i, w := range empty {
		invented[i] = w.Insertions > 0
	}
	a.Invented, a.Speakers, a.Language = proportion(invented, seed), proportion(speakers, seed), proportion(language, seed)
	if len(turns) > 0 {
		a.Turns = new(sumOf(turns, all(len(turns)), DER.Add))
		a.TurnRate = estimateSum(turns, seed, DER.Add, DER.Rate)
	}
	if len(events) > 0 {
		sum := sumOf(events, all(len(events)), EventScore.Add)
		a.Precision, a.Recall = new(sum.Precision()), new(sum.Recall())
		a.EventF1 = estimateSum(events, seed, EventScore.Add, EventScore.F1)
		a.EventMAP = Bootstrap(len(events), seed, func(sample []int) float64 {
			drawn := make([]EventScore, len(sample))
			for i, k := range sample {
				drawn[i] = events[k]
			}
			if mean, ok := meanAveragePrecision(drawn); ok {
				return mean
			}
			return math.NaN()
		})
	}
	a.SpeakersExpected, a.SpeakersSure = certainty(list, seed)
	a.Sentences, a.WordTimes = sentences.stat(), times.stat()
	return a
}

// surely is the probability from which a number of speakers counts as sure.
const surely = 0.8

// certainty compares the probabilities stated for numbers of speakers with the
// share of correct ones.
func certainty(list []Scored, seed uint64) (expected, sure *Estimate) {
	var stated []float64
	var right []bool
	for _, s := range list {
		c := s.Speakers
		if c == nil || c.Probability == nil {
			continue
		}
		stated = append(stated, *c.Probability)
		if *c.Probability >= surely {
			right = append(right, c.Reference == c.Found)
		}
	}
	expected = Bootstrap(len(stated), seed, func(sample []int) float64 {
		sum := 0.0
		for _, i := range sample {
			sum += stated[i]
		}
		return sum / float64(len(sample))
	})
	return expected, proportion(right, seed)
}

func (e TimeErrors) stat() *TimeStat {
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

func appendIf(list []WordErrors, e *WordErrors) []WordErrors {
	if e == nil {
		return list
	}
	return append(list, *e)
}

func rate(list []WordErrors, seed uint64) *Estimate {
	return estimateSum(list, seed, func(a, b WordErrors) WordErrors { a.Add(b); return a }, WordErrors.Rate)
}

func plusFound(a, b scores.Found) scores.Found {
	a.Add(b)
	return a
}

// turnRates estimates the error rates of turns for the other ways of scoring.
func turnRates(list []Scored, seed uint64) map[string]*Estimate {
	var out map[string]*Estimate
	for _, v := range turnVariants {
		var turns []DER
		for _, s := range list {
			if d, ok := s.TurnsBy[v.key]; ok {
				turns = append(turns, d)
			}
		}
		for rate, of := range map[string]func(DER) float64{"der_": DER.Rate, "jer_": DER.JER} {
			if e := estimateSum(turns, seed, DER.Add, of); e != nil {
				if out == nil {
					out = map[string]*Estimate{}
				}
				out[rate+v.key] = e
			}
		}
	}
	return out
}

func proportion(right []bool, seed uint64) *Estimate {
	return Bootstrap(len(right), seed, func(sample []int) float64 {
		n := 0
		for _, i := range sample {
			if right[i] {
				n++
			}
		}
		return float64(n) / float64(len(sample))
	})
}
