package bench

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/bench/internal/scores"
)

// audit shows whether the order of the systems depends on the scoring rules, and
// the reason for their largest difference.
type audit struct {
	Rankings []ranking `json:"rankings,omitempty"`
	Reason   string    `json:"reason,omitempty"` // of texts
}

// ranking is the order of the systems by one rule, the best first.
type ranking struct {
	Rule    string    `json:"rule"`
	Systems []string  `json:"systems"`
	Rates   []float64 `json:"rates"`
	// Ties are ranges of ranks (from 1) without a significant difference: the
	// paired interval between the first system and each other contains 0.
	Ties [][2]int `json:"ties,omitempty"`
	// normalizer is the normalizer of a rule for texts.
	normalizer scores.Normalizer
}

// String describes the ranking on one line.
func (r ranking) String() string {
	var list []string
	for i, s := range r.Systems {
		list = append(list, fmt.Sprintf("%s %.2f %%", s, 100*r.Rates[i]))
	}
	out := strings.Join(list, ", ")
	for _, t := range r.Ties {
		joint := "to"
		if t[1] == t[0]+1 {
			joint = "and"
		}
		out += fmt.Sprintf("; places %d %s %d cannot be told apart", t[0], joint, t[1])
	}
	return out
}

// ratio is a part of a whole, such as errors of the units of a recording.
type ratio struct{ part, whole float64 }

func (r ratio) add(o ratio) ratio { return ratio{r.part + o.part, r.whole + o.whole} }

func (r ratio) rate() float64 { return r.part / max(r.whole, 1e-9) }

// rank orders systems by their errors on the recordings that all of them have.
func rank(rule string, names []string, errors [][]ratio, seed uint64) ranking {
	rate := func(system int, sample []int) float64 { return sumOf(errors[system], sample, ratio.add).rate() }
	rates := make([]float64, len(names))
	for s, list := range errors {
		rates[s] = rate(s, all(len(list)))
	}
	order := all(len(names))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rates[a], rates[b]) })
	r := ranking{Rule: rule}
	for _, s := range order {
		r.Systems, r.Rates = append(r.Systems, names[s]), append(r.Rates, rates[s])
	}
	same := func(a, b int) bool {
		e := bootstrap(len(errors[a]), seed, func(sample []int) float64 { return rate(b, sample) - rate(a, sample) })
		return e == nil || e.Low <= 0 && e.High >= 0
	}
	for first := 0; first < len(order); {
		last := first
		for last+1 < len(order) && same(order[first], order[last+1]) {
			last++
		}
		if last > first {
			r.Ties = append(r.Ties, [2]int{first + 1, last + 1})
		}
		first = last + 1
	}
	return r
}

func (c Config) audit(r *Report) *audit {
	if len(r.Systems) < 2 {
		return nil
	}
	texts := c.textRankings(r)
	list := append(texts, c.turnRankings(r)...)
	if len(list) == 0 {
		return nil
	}
	return &audit{list, c.reason(r, texts)}
}

// common returns the recordings that every system has and wanted accepts.
func common(r *Report, wanted func(itemReport) bool) (at []int) {
	for i := range r.Systems[0].Items {
		if !slices.ContainsFunc(r.Systems, func(s systemReport) bool { return s.Items[i].Error != "" || !wanted(s.Items[i]) }) {
			at = append(at, i)
		}
	}
	return at
}

func systemNames(r *Report) (names []string) {
	for _, s := range r.Systems {
		names = append(names, s.Name)
	}
	return names
}

// textRankings ranks the systems by their error rates under every normalizer.
func (c Config) textRankings(r *Report) (list []ranking) {
	scored := common(r, func(it itemReport) bool { return it.Score.Words != nil })
	items := common(r, func(it itemReport) bool { return it.Score.Words != nil && it.Score.Words.Reference > 0 })
	if len(items) == 0 {
		return nil
	}
	where := ""
	if len(items) < len(scored) {
		where = ", where there is speech"
	}
	for _, n := range append([]scores.Normalizer{{}}, scores.Normalizers()...) {
		errors := make([][]ratio, len(r.Systems))
		for s := range errors {
			errors[s] = make([]ratio, len(items))
		}
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for k, i := range items {
			group.Go(func() error {
				for s, system := range r.Systems {
					e := scores.CompareWords(bothUnits(c.Items[i], n, c.Items[i].Language, system.Items[i].Text))
					errors[s][k] = ratio{float64(e.Errors()), float64(e.Reference)}
				}
				return nil
			})
		}
		_ = group.Wait() // the functions return no error
		k := rank("text as "+cmp.Or(n.Name, "words")+where, systemNames(r), errors, c.Seed)
		k.normalizer = n
		list = append(list, k)
	}
	return list
}

// reason explains the largest difference between two systems under the rules
// for texts: the recording with most of it, and the errors that one of them
// makes more often.
func (c Config) reason(r *Report, list []ranking) string {
	if len(list) == 0 {
		return ""
	}
	gap := func(k ranking) float64 { return k.Rates[len(k.Rates)-1] - k.Rates[0] }
	k := slices.MaxFunc(list, func(a, b ranking) int { return cmp.Compare(gap(a), gap(b)) })
	best := slices.Index(systemNames(r), k.Systems[0])
	worst := slices.Index(systemNames(r), k.Systems[len(k.Systems)-1])
	more := map[string]int{}
	all, most, where := 0, 0, ""
	for _, i := range common(r, func(it itemReport) bool { return it.Score.Words != nil && it.Score.Words.Reference > 0 }) {
		wrong := func(system int) []string {
			return wrongWords(tokensOf(bothUnits(c.Items[i], k.normalizer, c.Items[i].Language, r.Systems[system].Items[i].Text)))
		}
		a, b := wrong(worst), wrong(best)
		for _, w := range a {
			more[w]++
		}
		for _, w := range b {
			more[w]--
		}
		d := len(a) - len(b)
		all += d
		if d > most {
			most, where = d, c.Items[i].Name
		}
	}
	if all <= 0 {
		return ""
	}
	var often []string
	for _, w := range slices.SortedFunc(maps.Keys(more), func(a, b string) int { return cmp.Or(cmp.Compare(more[b], more[a]), cmp.Compare(a, b)) }) {
		if len(often) < 5 && more[w] > 0 {
			often = append(often, fmt.Sprintf("“%s” %d", w, more[w]))
		}
	}
	return fmt.Sprintf("The largest difference is that by %s: %s makes %d errors more than %s, %d of them in %s. It makes more often: %s.",
		k.Rule, r.Systems[worst].Name, all, r.Systems[best].Name, most, where, strings.Join(often, ", "))
}

// turnRankings ranks the systems by their diarization error rates under every
// scoring variant.
func (c Config) turnRankings(r *Report) (list []ranking) {
	items := common(r, func(it itemReport) bool { return it.Score.Turns != nil })
	if len(items) == 0 {
		return nil
	}
	add := func(rule string, of func(itemScore) *DER) {
		errors := make([][]ratio, len(r.Systems))
		for s, system := range r.Systems {
			for _, i := range items {
				if d := of(system.Items[i].Score); d != nil {
					errors[s] = append(errors[s], ratio{d.Missed + d.FalseAlarm + d.Confusion, d.Scored})
				}
			}
		}
		if len(errors[0]) == len(items) {
			list = append(list, rank(rule, systemNames(r), errors, c.Seed))
		}
	}
	add(fmt.Sprintf("turns, collar %g s", c.DER.Collar), func(s itemScore) *DER { return s.Turns })
	for _, v := range turnVariants {
		add("turns, "+v.name, func(s itemScore) *DER { return s.TurnsBy[v.key] })
	}
	return list
}
