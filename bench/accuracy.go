package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otograph/otograph/bench/internal/scores"
)

// accuracy summarizes the scores of recordings; figures without data are nil. A
// rate is the errors in all recordings divided by the units of all recordings,
// so that long recordings count more.
type accuracy struct {
	Words    WordErrors `json:"words"`     // sums
	WordRate *estimate  `json:"word_rate"` // WER, for languages written with spaces
	// Verbatim is the WER of the original texts, with case and punctuation.
	Verbatim *estimate `json:"verbatim"`
	CharRate *estimate `json:"char_rate"` // CER, for all other languages (Chinese, Japanese, Thai …)
	// WordRateAll and CharRateAll also count text written for recordings
	// without speech, as jiwer and sclite do; nil without such a recording.
	WordRateAll *estimate `json:"word_rate_all"`
	CharRateAll *estimate `json:"char_rate_all"`
	Invented    *estimate `json:"invented"`  // share of the recordings without speech that got a text
	Turns       *DER      `json:"turns"`     // sums
	TurnRate    *estimate `json:"turn_rate"` // DER
	// TurnRates holds DER and JER under other rules, such as "der_no_collar".
	TurnRates map[string]*estimate `json:"turn_rates,omitempty"`
	// Meeting holds the rates of words by speakers: cpwer, tcpwer, wder.
	Meeting map[string]*estimate `json:"meeting,omitempty"`
	// Keywords sums the counts; KeywordF1 is their F1.
	Keywords  *scores.Counts `json:"keywords,omitempty"`
	KeywordF1 *estimate      `json:"keyword_f1,omitempty"`
	Speakers  *estimate      `json:"speakers"` // share with the correct number of speakers
	// SpeakersExpected is the mean probability stated for the numbers of
	// speakers, and SpeakersSure the correct share of the numbers with 0.8 or
	// more; both may be nil.
	SpeakersExpected *estimate    `json:"speakers_expected,omitempty"`
	SpeakersSure     *estimate    `json:"speakers_sure,omitempty"`
	Language         *estimate    `json:"language"`   // share with the correct language
	EventF1          *estimate    `json:"event_f1"`   // see scoreEvents
	Precision        *float64     `json:"precision"`  // of events
	Recall           *float64     `json:"recall"`     // of events
	Sentences        *timeSummary `json:"sentences"`  // times of sentences
	WordTimes        *timeSummary `json:"word_times"` // times of words
}

// timeSummary summarizes TimeErrors, in seconds.
type timeSummary struct {
	MeanStart   float64 `json:"mean_start"`
	Within50    float64 `json:"start_within_50ms"`  // share of the matched words, 0 to 1
	Within100   float64 `json:"start_within_100ms"` // share of the matched words, 0 to 1
	Within200   float64 `json:"start_within_200ms"` // share of the matched words, 0 to 1
	MedianStart float64 `json:"median_start"`
	P95Start    float64 `json:"p95_start"`
	MedianEnd   float64 `json:"median_end"`
	P95End      float64 `json:"p95_end"`
	Matched     float64 `json:"matched"` // share of the reference, 0 to 1
}

// summarize summarizes the scores of the recordings that did not fail; seed is
// the seed of the bootstrap.
func summarize(items []itemReport, seed uint64) accuracy {
	list := slices.DeleteFunc(slices.Clone(items), func(it itemReport) bool { return it.Error != "" })
	var a accuracy
	for _, w := range present(list, func(it itemReport) *WordErrors { return it.Score.Words }) {
		a.Words = a.Words.Add(w)
	}
	words := speech(list, false)
	a.WordRate, a.WordRateAll = unitRates(list, words, seed)
	a.CharRate, a.CharRateAll = unitRates(list, speech(list, true), seed)
	a.Verbatim = rate(present(words, func(it itemReport) *WordErrors { return it.Score.Verbatim }), seed)
	a.Invented = proportion(list, seed, func(it itemReport) *bool {
		if it.Score.Words == nil || it.Score.Words.Reference > 0 {
			return nil
		}
		return new(it.Score.Words.Insertions > 0)
	})
	a.TurnRates, a.Meeting = turnRates(list, seed), meetingSummary(list, seed)
	a.Turns, a.TurnRate = summed(list, seed, func(it itemReport) *DER { return it.Score.Turns }, DER.add, DER.Rate)
	a.Keywords, a.KeywordF1 = summed(list, seed, func(it itemReport) *scores.Counts { return it.Score.Keywords }, scores.Counts.Add, scores.Counts.F1)
	a.Speakers = proportion(list, seed, func(it itemReport) *bool { return it.Score.Speakers.right() })
	a.SpeakersExpected, a.SpeakersSure = certainty(list, seed)
	a.Language = proportion(list, seed, func(it itemReport) *bool {
		if it.Score.Language == nil {
			return nil
		}
		return new(it.Score.Language.Reference == it.Score.Language.Hypothesis)
	})
	var events *scores.Counts
	events, a.EventF1 = summed(list, seed, func(it itemReport) *scores.Counts { return it.Score.Events }, scores.Counts.Add, scores.Counts.F1)
	if events != nil {
		a.Precision, a.Recall = new(events.Precision()), new(events.Recall())
	}
	a.Sentences = timeStat(present(list, func(it itemReport) *TimeErrors { return it.Score.Sentences }))
	a.WordTimes = timeStat(present(list, func(it itemReport) *TimeErrors { return it.Score.WordTimes }))
	return a
}

// present returns the scores of one kind, of the recordings that have one.
func present[T any](list []itemReport, of func(itemReport) *T) (out []T) {
	for _, it := range list {
		if v := of(it); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// speech returns the recordings with speech scored by characters, or words.
func speech(list []itemReport, characters bool) []itemReport {
	return slices.DeleteFunc(slices.Clone(list), func(it itemReport) bool {
		return it.Score.Words == nil || it.Score.Words.Reference <= 0 || it.character != characters
	})
}

// unitRates returns the error rate of the recordings with speech, which are
// scored in the same units, and the rate that includes recordings without
// speech that are scored in these units.
func unitRates(list, speech []itemReport, seed uint64) (rated, all *estimate) {
	if len(speech) == 0 {
		return nil, nil
	}
	of := func(it itemReport) *WordErrors { return it.Score.Words }
	same := present(slices.DeleteFunc(slices.Clone(list), func(it itemReport) bool { return it.character != speech[0].character }), of)
	if len(same) > len(speech) {
		all = rate(same, seed)
	}
	return rate(present(speech, of), seed), all
}

// summed returns the sum of one kind of scores and a figure of this sum. Both
// are nil if no recording has such a score.
func summed[T any](list []itemReport, seed uint64, of func(itemReport) *T, add func(a, b T) T, figure func(T) float64) (sum *T, e *estimate) {
	scores := present(list, of)
	if len(scores) == 0 {
		return nil, nil
	}
	return new(sumOf(scores, all(len(scores)), add)), estimateSum(scores, seed, add, figure)
}

// surely is the probability from which a number of speakers counts as sure.
const surely = 0.8

// certainty returns the mean probability that is stated for numbers of
// speakers, and the correct share of the numbers stated as sure.
func certainty(list []itemReport, seed uint64) (expected, sure *estimate) {
	stated := present(list, func(it itemReport) *float64 {
		if it.Score.Speakers == nil {
			return nil
		}
		return it.Score.Speakers.Probability
	})
	sure = proportion(list, seed, func(it itemReport) *bool {
		if c := it.Score.Speakers; c == nil || c.Probability == nil || *c.Probability < surely {
			return nil
		}
		return it.Score.Speakers.right()
	})
	return mean(stated, seed), sure
}

// right reports whether the number is as expected; nil if there is none.
func (c *speakerCount) right() *bool {
	if c == nil {
		return nil
	}
	return new(c.Reference == c.Hypothesis)
}

func timeStat(list []TimeErrors) *timeSummary {
	var e TimeErrors
	for _, o := range list {
		e.Add(o)
	}
	if len(e.Starts)+e.Missing == 0 {
		return nil
	}
	s := &timeSummary{Matched: e.Matched()}
	if len(e.Starts) > 0 {
		s.MeanStart, s.Within50, s.Within100, s.Within200 = e.MeanStart(), e.Within(0.05), e.Within(0.1), e.Within(0.2)
		s.MedianStart, s.MedianEnd = median(e.Starts), median(e.Ends)
		s.P95Start, s.P95End = percentileOf(e.Starts, 95), percentileOf(e.Ends, 95)
	}
	return s
}

func rate(list []WordErrors, seed uint64) *estimate {
	return estimateSum(list, seed, WordErrors.Add, WordErrors.Rate)
}

// turnRates estimates the error rates of turns for the other ways of scoring.
func turnRates(list []itemReport, seed uint64) map[string]*estimate {
	rates := map[string]*estimate{}
	for _, v := range turnVariants {
		turns := present(list, func(it itemReport) *DER { return it.Score.TurnsBy[v.key] })
		if len(turns) > 0 {
			rates["der_"+v.key], rates["jer_"+v.key] = estimateSum(turns, seed, DER.add, DER.Rate), estimateSum(turns, seed, DER.add, DER.jer)
		}
	}
	return rates
}

// proportion returns the share of recordings for which of returns true, without
// those for which it returns nil.
func proportion(list []itemReport, seed uint64, of func(itemReport) *bool) *estimate {
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

func mean(list []float64, seed uint64) *estimate {
	return estimateSum(list, seed, plus, func(sum float64) float64 { return sum / float64(len(list)) })
}

func plus(a, b float64) float64 { return a + b }

// slice is a group of recordings: all with one value of a manifest key.
type slice struct {
	Key        string               `json:"key"`
	Value      string               `json:"value"`
	Recordings int                  `json:"recordings"`
	Accuracy   map[string]*accuracy `json:"accuracy"` // by system name
}

func (s slice) String() string { return fmt.Sprintf("%s %s (%d)", s.Key, s.Value, s.Recordings) }

// checkKeys returns an error if no item has a key of By.
func (c Config) checkKeys() error {
	known := []string{"language"}
	for _, it := range c.Items {
		known = slices.AppendSeq(known, maps.Keys(it.Keys))
	}
	slices.Sort(known)
	for _, key := range c.By {
		if !slices.Contains(known, key) {
			return fmt.Errorf("no recording has the key %q, expected one of %s", key, strings.Join(slices.Compact(known), ", "))
		}
	}
	return nil
}

// valueOf returns an item's value of a key, "–" without one.
func valueOf(it Item, key string) string {
	value := it.Keys[key]
	if key == "language" {
		value = it.Language
	}
	return cmp.Or(value, "–")
}

// slices groups the recordings by the keys of By.
func (c Config) slices(r *Report) (list []slice) {
	for _, key := range c.By {
		at := map[string][]int{}
		for i, it := range c.Items {
			at[valueOf(it, key)] = append(at[valueOf(it, key)], i)
		}
		for _, value := range slices.Sorted(maps.Keys(at)) {
			part := slice{Key: key, Value: value, Recordings: len(at[value]), Accuracy: map[string]*accuracy{}}
			for _, s := range r.Systems {
				var items []itemReport
				for _, i := range at[value] {
					items = append(items, s.Items[i])
				}
				part.Accuracy[s.Name] = new(summarize(items, c.Seed))
			}
			list = append(list, part)
		}
	}
	return list
}
