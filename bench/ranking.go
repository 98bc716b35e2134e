package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ranking is the order of the systems by a rate, the best first, on the
// recordings for which all have it.
type ranking struct {
	Rule    string    `json:"rule"`
	Systems []string  `json:"systems"`
	Rates   []float64 `json:"rates"`
	// Ties are ranges of ranks (from 1) without a significant difference: the
	// paired interval between the first system and each other contains 0.
	Ties [][2]int `json:"ties,omitempty"`
}

// String describes the ranking in a sentence.
func (r ranking) String() string {
	var list []string
	for i, s := range r.Systems {
		list = append(list, fmt.Sprintf("%s %.2f %%", s, 100*r.Rates[i]))
	}
	out := "Order by " + r.Rule + ": " + strings.Join(list, ", ")
	for _, t := range r.Ties {
		joint := "to"
		if t[1] == t[0]+1 {
			joint = "and"
		}
		out += fmt.Sprintf("; places %d %s %d cannot be told apart", t[0], joint, t[1])
	}
	return out + "."
}

// rankings returns the orders of several systems by texts and by turns, if
// there are such scores, and the reason for the difference of the texts.
func rankings(systems []systemReport, seed uint64) (list []ranking, why string) {
	if len(systems) < 2 {
		return nil, ""
	}
	texts, sorted := rank("text", systems, seed, func(it itemReport) *WordErrors {
		if it.Score.Words == nil || it.Score.Words.Reference == 0 { // without speech
			return nil
		}
		return it.Score.Words
	}, WordErrors.Add, WordErrors.Rate)
	turns, _ := rank("turns", systems, seed, func(it itemReport) *DER { return it.Score.Turns }, DER.add, DER.Rate)
	if len(texts) > 0 {
		why = reason(sorted[0], sorted[len(sorted)-1])
	}
	return append(texts, turns...), why
}

// rank orders the systems by the rate of the sum of a score. It also returns
// them in this order, with the recordings for which all have the score. The
// list is empty if there are none.
func rank[T any](rule string, systems []systemReport, seed uint64, of func(itemReport) *T, add func(a, b T) T, rate func(T) float64) (list []ranking, sorted []systemReport) {
	sorted = slices.Clone(systems)
	for s := range sorted {
		sorted[s].Items = nil
	}
	for i := range systems[0].Items {
		if slices.ContainsFunc(systems, func(s systemReport) bool { return s.Items[i].Error != "" || of(s.Items[i]) == nil }) {
			continue
		}
		for s := range sorted {
			sorted[s].Items = append(sorted[s].Items, systems[s].Items[i])
		}
	}
	if len(sorted[0].Items) == 0 {
		return nil, nil
	}
	rateOf := func(s systemReport) float64 {
		values := present(s.Items, of)
		return rate(sumOf(values, all(len(values)), add))
	}
	slices.SortStableFunc(sorted, func(a, b systemReport) int { return cmp.Compare(rateOf(a), rateOf(b)) })
	r := ranking{Rule: rule}
	for _, s := range sorted {
		r.Systems, r.Rates = append(r.Systems, s.Name), append(r.Rates, rateOf(s))
	}
	same := func(a, b systemReport) bool {
		e := over(a, b, seed, of, add, func(x, y T) float64 { return rate(y) - rate(x) })
		return e == nil || e.Low <= 0 && e.High >= 0
	}
	for first := 0; first < len(sorted); {
		last := first
		for last+1 < len(sorted) && same(sorted[first], sorted[last+1]) {
			last++
		}
		if last > first {
			r.Ties = append(r.Ties, [2]int{first + 1, last + 1})
		}
		first = last + 1
	}
	return []ranking{r}, sorted
}

// reason explains the difference of the texts of two systems: the recording
// with the largest part of the difference, and the errors that the worse system
// makes more often. It is empty without a difference.
func reason(best, worst systemReport) string {
	more := map[string]int{}
	all, most, where := 0, 0, ""
	for i, a := range worst.Items {
		b := best.Items[i]
		for _, w := range a.WrongWords {
			more[w]++
		}
		for _, w := range b.WrongWords {
			more[w]--
		}
		d := len(a.WrongWords) - len(b.WrongWords)
		all += d
		if d > most {
			most, where = d, a.Name
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
	return fmt.Sprintf("%s makes %d errors more than %s, %d of them in %s. It makes more often: %s.",
		worst.Name, all, best.Name, most, where, strings.Join(often, ", "))
}
