package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
	s := scores.Counts{Hits: 3, FalseAlarms: 2, Misses: 6}
	assert.InDelta(t, 6.0/14, s.F1(), 1e-12)
	assert.InDelta(t, 0.6, s.Precision(), 1e-12)
	assert.InDelta(t, 1.0/3, s.Recall(), 1e-12)
	assert.Equal(t, 1.0, scores.Counts{}.F1())
	assert.Equal(t, 0.0, scores.Counts{Misses: 1}.F1())
}
