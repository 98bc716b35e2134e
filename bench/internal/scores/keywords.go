package scores

import "slices"

// Counts holds numbers of occurrences, such as of keywords or sounds.
type Counts struct {
	Hits        int `json:"hits"`         // in both
	Misses      int `json:"misses"`       // in the reference only
	FalseAlarms int `json:"false_alarms"` // in the hypothesis only
}

// Add returns the sum of the counts.
func (f Counts) Add(o Counts) Counts {
	return Counts{f.Hits + o.Hits, f.Misses + o.Misses, f.FalseAlarms + o.FalseAlarms}
}

// Precision returns the correct share of spotted occurrences; 1 without any.
func (f Counts) Precision() float64 { return Share(f.Hits, f.Hits+f.FalseAlarms) }

// Recall returns the spotted share of the reference's; 1 without any.
func (f Counts) Recall() float64 { return Share(f.Hits, f.Hits+f.Misses) }

// F1 returns the harmonic mean of precision and recall; 1 without occurrences.
func (f Counts) F1() float64 { return Share(2*f.Hits, 2*f.Hits+f.Misses+f.FalseAlarms) }

// Share returns part / whole, 1 if whole is 0.
func Share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// Keywords counts the occurrences of words or phrases in both texts. An
// occurrence in both texts is a hit, regardless of its position.
func Keywords(reference, hypothesis []string, keywords [][]string) Counts {
	var f Counts
	for _, k := range keywords {
		r, h := occurrences(reference, k), occurrences(hypothesis, k)
		f = f.Add(Counts{min(r, h), max(r-h, 0), max(h-r, 0)})
	}
	return f
}

// occurrences counts a phrase in a text; occurrences do not overlap.
func occurrences(text, phrase []string) int {
	n := 0
	for i := 0; len(phrase) > 0 && i+len(phrase) <= len(text); {
		if slices.Equal(text[i:i+len(phrase)], phrase) {
			n++
			i += len(phrase)
		} else {
			i++
		}
	}
	return n
}
