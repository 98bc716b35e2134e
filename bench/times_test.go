package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestScoreSentenceTimes(t *testing.T) {
	ref := []TimedText{{Start: 1, End: 3, Text: "a"}, {Start: 4, End: 6, Text: "b"}, {Start: 7, End: 9, Text: "c"}}
	for _, c := range []struct {
		name string
		hyp  []TimedText
		want TimeErrors
	}{
		{"equal", ref, TimeErrors{[]float64{0, 0, 0}, []float64{0, 0, 0}, 0}},
		{"off", []TimedText{{Start: 1.1, End: 2.8, Text: ""}, {Start: 4.2, End: 6.3, Text: ""}}, TimeErrors{[]float64{0.1, 0.2}, []float64{0.2, 0.3}, 1}},
		{"in two parts", []TimedText{{Start: 1, End: 2, Text: ""}, {Start: 2.1, End: 3.2, Text: ""}}, TimeErrors{[]float64{0}, []float64{0.2}, 2}},
		{"in another order", []TimedText{{Start: 4.2, End: 6.3, Text: ""}, {Start: 1.1, End: 2.8, Text: ""}}, TimeErrors{[]float64{0.1, 0.2}, []float64{0.2, 0.3}, 1}},
		{"one over two", []TimedText{{Start: 1, End: 6, Text: ""}}, TimeErrors{nil, nil, 3}},
		{"one that reaches into the next", []TimedText{{Start: 1, End: 4.5, Text: ""}}, TimeErrors{[]float64{0}, []float64{1.5}, 2}},
		{"nothing", nil, TimeErrors{nil, nil, 3}},
	} {
		assert.Equal(t, c.want, scoreSentenceTimes(ref, c.hyp), c.name)
		assert.Equal(t, c.want, scoreSentenceTimes([]TimedText{ref[2], ref[0], ref[1]}, c.hyp), "%s, the reference in another order", c.name)
	}
	starts := TimeErrors{Starts: []float64{0, 0.05, 0.1, 0.25}}
	assert.InDelta(t, 0.1, starts.MeanStart(), 1e-12)
	assert.InDelta(t, 0.5, starts.Within(0.05), 1e-12)
	assert.InDelta(t, 0.75, starts.Within(0.1), 1e-12)
	assert.Zero(t, TimeErrors{}.MeanStart())
	assert.InDelta(t, 2.0/3, TimeErrors{Starts: []float64{1, 2}, Missing: 1}.Matched(), 1e-12)
}

func TestScoreWordTimes(t *testing.T) {
	ref := []TimedText{{Start: 0, End: 0.3, Text: "Good"}, {Start: 0.3, End: 0.8, Text: "morning,"}, {Start: 1, End: 1.2, Text: "Ann."}}
	hyp := []TimedText{{Start: 0.1, End: 0.3, Text: " good"}, {Start: 0.4, End: 0.6, Text: "the"}, {Start: 0.5, End: 0.9, Text: "Morning"}, {Start: 1, End: 1.2, Text: "Anne"}}
	got, ok := ScoreWordTimes("en", ref, hyp)
	assert.True(t, ok)
	assert.Equal(t, TimeErrors{[]float64{0.1, 0.2}, []float64{0, 0.1}, 1}, got)
	got, ok = ScoreWordTimes("zh", []TimedText{{Start: 0, End: 1, Text: "你"}, {Start: 1, End: 2, Text: "好"}, {Start: 2, End: 2, Text: "。"}}, []TimedText{{Start: 0, End: 1, Text: "好"}})
	assert.True(t, ok)
	assert.Equal(t, TimeErrors{[]float64{1}, []float64{1}, 1}, got)
	long := make([]TimedText, 20_000)
	for i := range long {
		long[i].Text = "x"
	}
	_, ok = ScoreWordTimes("en", long, long)
	assert.False(t, ok, "too long to trace back")
}

// The traced alignment has the cost that CompareWords counts: unchanged words
// plus errors add up to both sides. The times of the words are their indices,
// and so are the differences.
func TestWordTimesAgreeWithCompareWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12)
		ref, hyp := words.Draw(t, "ref"), words.Draw(t, "hyp")
		var reference, hypothesis []TimedText
		for i, w := range ref {
			reference = append(reference, TimedText{Start: float64(i), Text: w})
		}
		for i, w := range hyp {
			hypothesis = append(hypothesis, TimedText{End: float64(i), Text: w})
		}
		times, ok := ScoreWordTimes("en", reference, hypothesis)
		e := CompareWords(ref, hyp)
		if !ok || len(times.Starts) != len(ref)-e.Substitutions-e.Deletions {
			t.Fatalf("%d equal words, but %+v", len(times.Starts), e)
		}
		last := [2]int{-1, -1}
		for i := range times.Starts {
			p := [2]int{int(times.Starts[i]), int(times.Ends[i])}
			if ref[p[0]] != hyp[p[1]] || p[0] <= last[0] || p[1] <= last[1] {
				t.Fatalf("pair %v after %v", p, last)
			}
			last = p
		}
	})
}
