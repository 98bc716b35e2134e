package bench

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/spec"
)

// eventScore compares the detected sounds of one recording with the actual
// ones.
//
// The F1 score is segment-based, as defined by the DCASE challenges: time is
// divided into seconds, and in each of them a class that is active in both
// lists is a hit, and one that is active in only one list is a miss or a false
// alarm. Average precision ranks recordings, as in AudioSet's evaluation, by
// the highest confidence that a class reached in each.
type eventScore struct {
	scores.Found                    // classes and seconds
	Present      []string           `json:"present"`    // classes in the reference
	Confidence   map[string]float64 `json:"confidence"` // highest confidence of each reported class
}

// scoreEvents compares hypothesis with reference. If classes are given, only
// those count, because a reference usually names some sounds and says nothing
// about others (for example speech, or the parent class of a sound).
func scoreEvents(reference, hypothesis []spec.AudioEvent, classes []string) eventScore {
	type cell struct {
		second int
		class  string
	}
	active := func(list []spec.AudioEvent) map[cell]bool {
		on := map[cell]bool{}
		for _, e := range list {
			if classes != nil && !slices.Contains(classes, e.Class) {
				continue
			}
			for s := int(math.Floor(e.Start)); float64(s) < e.End; s++ {
				on[cell{s, e.Class}] = true
			}
		}
		return on
	}
	ref, hyp := active(reference), active(hypothesis)
	out := eventScore{Confidence: map[string]float64{}}
	for c := range hyp {
		if ref[c] {
			out.Hits++
		} else {
			out.FalseAlarms++
		}
	}
	out.Misses = len(ref) - out.Hits
	present := map[string]bool{}
	for _, e := range reference {
		present[e.Class] = true
	}
	out.Present = slices.Sorted(maps.Keys(present))
	for _, e := range hypothesis {
		if classes == nil || slices.Contains(classes, e.Class) {
			out.Confidence[e.Class] = max(out.Confidence[e.Class], e.Confidence)
		}
	}
	return out
}

// meanAveragePrecision returns the mean of averagePrecision over the classes
// that occur in at least one recording; NaN if none does. A class that a
// recording's result does not report ranks with confidence 0 there, so a low
// reporting threshold makes the figure more precise.
func meanAveragePrecision(scores []eventScore) (mean float64) {
	classes := map[string]bool{}
	for _, s := range scores {
		for _, c := range s.Present {
			classes[c] = true
		}
	}
	if len(classes) == 0 {
		return math.NaN()
	}
	for _, c := range slices.Sorted(maps.Keys(classes)) { // in order, to make the sum reproducible to its last digit
		present, confidence := make([]bool, len(scores)), make([]float64, len(scores))
		for i, s := range scores {
			present[i], confidence[i] = slices.Contains(s.Present, c), s.Confidence[c]
		}
		mean += averagePrecision(present, confidence) / float64(len(classes))
	}
	return mean
}

// averagePrecision returns Σ (Rₙ − Rₙ₋₁)·Pₙ over the thresholds of the
// confidences, from the highest down; recordings of equal confidence count
// together. It returns NaN without a positive.
func averagePrecision(present []bool, confidence []float64) float64 {
	order := all(len(present))
	positives := 0
	for _, p := range present {
		if p {
			positives++
		}
	}
	if positives == 0 {
		return math.NaN()
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(confidence[b], confidence[a]) })
	var ap float64
	hits, before := 0, 0
	for i, k := range order {
		if present[k] {
			hits++
		}
		if i+1 < len(order) && confidence[order[i+1]] == confidence[k] {
			continue
		}
		ap += float64(hits-before) / float64(positives) * float64(hits) / float64(i+1)
		before = hits
	}
	return ap
}
