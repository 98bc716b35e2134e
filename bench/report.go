package bench

import (
	"cmp"
	"slices"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// Report is the result of a run.
type Report struct {
	Machine     Machine        `json:"machine"`
	Recordings  int            `json:"recordings"`
	Repeat      int            `json:"repeat"`
	Warmup      int            `json:"warmup"`
	Collar      float64        `json:"collar"`
	Seed        uint64         `json:"seed"`
	Normalizer  string         `json:"normalizer"` // for texts, with its version
	Systems     []systemReport `json:"systems"`
	Comparisons []comparison   `json:"comparisons,omitempty"`
	Slices      []slice        `json:"slices,omitempty"` // groups of recordings
	Orders      []ranking      `json:"orders,omitempty"` // of several systems
	Reason      string         `json:"reason,omitempty"` // for the difference of the best and the worst text
	config      Config         // without items in a report that was read from JSON
}

type systemReport struct {
	Name     string                `json:"name"`
	Other    bool                  `json:"other,omitempty"` // a recognizer other than Otograph's
	Models   []modelReport         `json:"models"`
	Load     float64               `json:"load_seconds"`
	Start    *Cost                 `json:"start,omitempty"` // of a program that is started for each recording
	Steps    []string              `json:"steps"`           // text, speakers, sounds
	Tiers    map[otograph.Tier]int `json:"tiers"`           // recordings by the tier that transcribed them
	Failed   int                   `json:"failed"`
	Accuracy accuracy              `json:"accuracy"`
	Cost     costSummary           `json:"cost"`
	Items    []itemReport          `json:"items"`
}

type modelReport struct {
	Role   models.Role `json:"role"`
	Name   string      `json:"name"`
	Demo   bool        `json:"demo"`
	SHA256 string      `json:"sha256"` // of its main file
}

// itemReport is the result of one recording.
type itemReport struct {
	Name     string         `json:"name"`
	Language string         `json:"language,omitempty"`
	Tier     otograph.Tier  `json:"tier,omitempty"`
	Text     string         `json:"text,omitempty"`
	Spans    [][2]float64   `json:"spans,omitempty"` // start and end of each line of Text, in seconds
	Score    itemScore      `json:"score"`
	Cost     Cost           `json:"cost"` // the repeat with the median wall time
	Error    string         `json:"error,omitempty"`
	Warnings []spec.Warning `json:"warnings,omitempty"` // about the recording
	// WrongWords lists the differences between text and reference: "a → b" for
	// a substitution, "−a" for a deletion, "+b" for an insertion.
	WrongWords []string `json:"wrong_words,omitempty"`
	steps      []string
	character  bool   // scored by characters
	repeats    []Cost // none if the recording failed
}

// comparison compares a system with the first one, over the recordings that
// both have processed. A difference is the system's figure minus the first
// one's; if its interval does not contain 0, it is significant.
type comparison struct {
	System   string    `json:"system"`
	Against  string    `json:"against"`
	WordRate *estimate `json:"word_rate"` // difference of the error rates, words and characters together
	TurnRate *estimate `json:"turn_rate"`
	EventF1  *estimate `json:"event_f1"`
	Speed    *estimate `json:"speed"` // ratio: 2 is twice as fast
	CPU      *estimate `json:"cpu"`   // ratio of processor time: 0.5 is half
}

// defaultNormalizer names the rules of Units in reports.
const defaultNormalizer = "words (NFKC, lower case, no punctuation)"

func (c Config) report(file *runFile, machine Machine, sums fingerprints) *Report {
	r := &Report{Machine: machine, Recordings: len(c.Items), Repeat: c.repeats(), Warmup: c.Warmup, Collar: c.DER.Collar, Seed: c.Seed, Normalizer: defaultNormalizer, config: c}
	if c.rules.Name != "" {
		r.Normalizer = c.rules.String()
	}
	for i, s := range c.Systems {
		sr := systemReport{Name: s.Name, Other: s.Engine != nil, Tiers: map[otograph.Tier]int{}}
		for _, m := range s.models() {
			sr.Models = append(sr.Models, modelReport{m.Role, m.Name, m.Demo, sums.of(m.Main())})
		}
		for _, rec := range file.find(i, "") {
			if rec.Load != nil && sr.Load == 0 { // only the first load, because later ones find the files cached
				sr.Load = *rec.Load
			}
			if rec.Start != nil {
				sr.Start = rec.Start
			}
		}
		for _, it := range c.Items {
			item := c.reportOf(it, file.find(i, it.Name))
			if len(item.repeats) == 0 {
				sr.Failed++
			} else {
				sr.Tiers[item.Tier]++
			}
			sr.Items = append(sr.Items, item)
			for _, step := range item.steps {
				if !slices.Contains(sr.Steps, step) {
					sr.Steps = append(sr.Steps, step)
				}
			}
		}
		sr.Accuracy, sr.Cost = summarize(sr.Items, c.Seed), summarizeCosts(sr.Items, c.Seed)
		r.Systems = append(r.Systems, sr)
	}
	for _, s := range r.Systems[1:] {
		r.Comparisons = append(r.Comparisons, compare(r.Systems[0], s, c.Seed))
	}
	r.Slices = c.slices(r)
	r.Orders, r.Reason = rankings(r.Systems, c.Seed)
	return r
}

// reportOf joins the measurements of a recording on one system.
func (c Config) reportOf(it Item, records []record) itemReport {
	item := itemReport{Name: it.Name}
	for _, rec := range records {
		switch {
		case rec.Error != "":
			item.Error = rec.Error
		case rec.Cost != nil:
			item.repeats = append(item.repeats, *rec.Cost)
		}
		if f := rec.Outcome; f != nil {
			item.Language, item.Tier, item.Text, item.Spans, item.Score, item.Warnings = f.Language, f.Tier, f.Text, f.Spans, f.Score, f.Warnings
			language := cmp.Or(it.Language, f.Language)
			item.character, item.steps = !spacedLanguage(language), f.Steps
			if it.Text != nil && f.Score.Words != nil {
				reference := referenceOf(it, c.rules, language, f.Text)
				item.WrongWords = wrongWords(tokensOf(normalizedUnits(c.rules, language, reference), normalizedUnits(c.rules, language, f.Text)))
			}
		}
	}
	if item.Error != "" {
		item.repeats = nil
	} else if len(item.repeats) > 0 {
		item.Cost = typical(item.repeats)
	}
	return item
}

// compare draws the same recordings for both systems, so that difficult
// recordings do not hide the difference.
func compare(a, b systemReport, seed uint64) comparison {
	cost := func(of func(Cost) float64) func(itemReport) *float64 {
		return func(i itemReport) *float64 {
			if c := i.Cost; c.Audio > 0 && c.Wall > 0 && of(c) != 0 { // a server's processor time is unknown
				return new(of(c))
			}
			return nil
		}
	}
	return comparison{
		System: b.Name, Against: a.Name,
		WordRate: over(a, b, seed, func(i itemReport) *WordErrors { return i.Score.Words }, WordErrors.Add,
			func(x, y WordErrors) float64 { return y.Rate() - x.Rate() }),
		TurnRate: over(a, b, seed, func(i itemReport) *DER { return i.Score.Turns }, DER.add,
			func(x, y DER) float64 { return y.Rate() - x.Rate() }),
		EventF1: over(a, b, seed, func(i itemReport) *scores.Counts { return i.Score.Events }, scores.Counts.Add,
			func(x, y scores.Counts) float64 { return y.F1() - x.F1() }),
		Speed: over(a, b, seed, cost(func(c Cost) float64 { return c.Wall }), plus, func(x, y float64) float64 { return x / y }),
		CPU:   over(a, b, seed, cost(func(c Cost) float64 { return c.CPU }), plus, func(x, y float64) float64 { return y / x }),
	}
}

// over estimates a figure from the sums of a score over the recordings for
// which both systems have one.
func over[T any](a, b systemReport, seed uint64, of func(itemReport) *T, add func(x, y T) T, figure func(x, y T) float64) *estimate {
	var left, right []T
	for i := range a.Items {
		x, y := of(a.Items[i]), of(b.Items[i])
		if a.Items[i].Error == "" && b.Items[i].Error == "" && x != nil && y != nil {
			left, right = append(left, *x), append(right, *y)
		}
	}
	return bootstrap(len(left), seed, func(sample []int) float64 {
		return figure(sumOf(left, sample, add), sumOf(right, sample, add))
	})
}
