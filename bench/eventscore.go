package bench

import (
	"math"
	"slices"

	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/spec"
)

// scoreEvents compares the detected sounds of one recording with the actual
// ones, by segments, as the DCASE challenges define it: time is divided into
// seconds, and in each of them a class that is active in both lists is a hit,
// and one that is active in only one list is a miss or a false alarm.
//
// If classes are given, only those count, because a reference usually names
// some sounds and not others (speech, say, or a sound's parent class).
func scoreEvents(reference, hypothesis []spec.AudioEvent, classes []string) (out scores.Counts) {
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
	for c := range hyp {
		if ref[c] {
			out.Hits++
		} else {
			out.FalseAlarms++
		}
	}
	out.Misses = len(ref) - out.Hits
	return out
}
