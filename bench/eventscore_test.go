package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/spec"
)

func TestScoreEvents(t *testing.T) {
	ref := []spec.AudioEvent{{Start: 0, End: 5, Class: "Music"}, {Start: 31, End: 34.8, Class: "Bell"}}
	for _, c := range []struct {
		name                 string
		hyp                  []spec.AudioEvent
		classes              []string
		hits, alarms, misses int
	}{
		{"the same", ref, nil, 9, 0, 0},
		{"nothing", nil, nil, 0, 0, 9},
		// Music in seconds 0, 1, 2 of 5; seconds 5 and 6 of the second event
		// are false alarms.
		{"early end and a false alarm", []spec.AudioEvent{{Start: 0.2, End: 2.5, Class: "Music"}, {Start: 5.1, End: 6.9, Class: "Music"}}, nil, 3, 2, 6},
		{"overlapping reports count once", []spec.AudioEvent{{Start: 0, End: 3, Class: "Music"}, {Start: 1, End: 3, Class: "Music"}}, nil, 3, 0, 6},
		{"another class", []spec.AudioEvent{{Start: 0, End: 2, Class: "Speech"}}, nil, 0, 2, 9},
		{"another class that does not count", []spec.AudioEvent{{Start: 0, End: 2, Class: "Speech"}}, []string{"Music", "Bell"}, 0, 0, 9},
		{"an empty stretch", []spec.AudioEvent{{Start: 3, End: 3, Class: "Music"}}, nil, 0, 0, 9},
	} {
		s := scoreEvents(ref, c.hyp, c.classes)
		assert.Equal(t, [3]int{c.hits, c.alarms, c.misses}, [3]int{s.Hits, s.FalseAlarms, s.Misses}, c.name)
	}
	s := eventScore{Found: scores.Found{Hits: 3, FalseAlarms: 2, Misses: 6}}
	assert.InDelta(t, 6.0/14, s.F1(), 1e-12)
	assert.InDelta(t, 0.6, s.Precision(), 1e-12)
	assert.InDelta(t, 1.0/3, s.Recall(), 1e-12)
	assert.Equal(t, 1.0, eventScore{}.F1())
	assert.Equal(t, 0.0, scores.Found{Misses: 1}.F1())
}

// Known answers of average precision: the first is the example in
// scikit-learn's documentation of average_precision_score, the others by hand.
func TestAveragePrecision(t *testing.T) {
	for _, c := range []struct {
		present    []bool
		confidence []float64
		want       float64
	}{
		{[]bool{false, false, true, true}, []float64{0.1, 0.4, 0.35, 0.8}, 0.8333333333333333},
		{[]bool{true, true, false}, []float64{0.9, 0.8, 0.7}, 1},
		{[]bool{false, true}, []float64{0.9, 0.8}, 0.5},
		{[]bool{true, false, false, false}, []float64{0, 0, 0, 0}, 0.25}, // all at once
		{[]bool{true, false, true}, []float64{0.5, 0.5, 0.1}, 0.5*0.5 + 0.5*2.0/3},
	} {
		assert.InDelta(t, c.want, averagePrecision(c.present, c.confidence), 1e-12)
	}
	assert.True(t, math.IsNaN(averagePrecision([]bool{false}, []float64{1})))
	mean := meanAveragePrecision([]eventScore{
		{Present: []string{"Music"}, Confidence: map[string]float64{"Music": 0.9, "Bell": 0.8}},
		{Present: []string{"Bell"}, Confidence: map[string]float64{"Bell": 0.5}},
	})
	assert.InDelta(t, (1+0.5)/2, mean, 1e-12)
	assert.True(t, math.IsNaN(meanAveragePrecision([]eventScore{{}})), "no recording has a sound")
}

// Average precision without ties is the mean, over the positives, of the
// precision at their rank.
func TestAveragePrecisionByRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := 1 + r.IntN(20)
		present, confidence := make([]bool, n), make([]float64, n)
		for i, v := range r.Perm(n) {
			present[i], confidence[i] = r.IntN(2) == 0, float64(v)
		}
		present[0] = true
		var sum float64
		positives := 0
		for i := range n {
			if !present[i] {
				continue
			}
			positives++
			above, right := 0, 0
			for j := range n {
				if confidence[j] >= confidence[i] {
					above++
					if present[j] {
						right++
					}
				}
			}
			sum += float64(right) / float64(above)
		}
		if got, want := averagePrecision(present, confidence), sum/float64(positives); math.Abs(got-want) > 1e-9 {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
