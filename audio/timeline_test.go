package audio

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTimeStamps adds frames of a tenth of a second with various time stamps.
func TestTimeStamps(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		times   []float64
		want    []stampMark
		end     float64
		dropped bool
	}{
		"in a row":               {times: []float64{0, 0.1, 0.2}, end: 0.3},
		"rounded":                {times: []float64{0.001, 0.11, 0.19, 0.3}, end: 0.4},
		"late":                   {times: []float64{5, 5.1}, want: []stampMark{{0, 5}}, end: 5.2},
		"a gap":                  {times: []float64{0, 0.1, 3, 3.1}, want: []stampMark{{0.2, 3}}, end: 3.2},
		"a lost packet":          {times: []float64{0, 0.1, 0.25}, want: []stampMark{{0.2, 0.25}}, end: 0.35},
		"without times":          {times: []float64{nan, nan, 0.2, nan}, end: 0.4},
		"before the beginning":   {times: []float64{-0.5, -0.4, -0.3}, end: 0.3},
		"another recording":      {times: []float64{0, 5, 0, 0.1}, want: []stampMark{{0.1, 5}}, end: 5.3},
		"a slow clock":           {times: []float64{0, 1, 1.05, 1.1}, want: []stampMark{{0.1, 1}}, end: 1.3},
		"jitter":                 {times: []float64{0, 0.2, 0.2, 0.4, 0.4}, want: []stampMark{{0.1, 0.2}}, end: 0.6},
		"an absurd gap":          {times: []float64{0, 0.1, 1e6, 1e6 + 0.1, 1e6 + 2}, want: []stampMark{{0.4, 2.2}}, end: 2.3, dropped: true},
		"gaps too long together": {times: []float64{0, 10000, 19000}, want: []stampMark{{0.1, 10000}}, end: 10000.2, dropped: true},
	} {
		t.Run(name, func(t *testing.T) {
			var s stamps
			for _, at := range c.times {
				s.frame(at, 0.1)
			}
			assert.InDeltaSlice(t, flat(c.want), flat(s.marks), 1e-6)
			assert.InDelta(t, c.end, s.played+s.latest, 1e-6)
			assert.Equal(t, c.dropped, s.dropped)
		})
	}
}

func flat(marks []stampMark) []float64 {
	out := []float64{}
	for _, m := range marks {
		out = append(out, m.played, m.time)
	}
	return out
}

// TestTimelineKeepsOrder: for any time stamps, later samples are not heard
// earlier, no end is after the next start, spans lose only margins, and the
// time without samples is bounded.
func TestTimelineKeepsOrder(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		var s stamps
		for now := 0.0; s.frames < 300; now += 0.02 {
			switch random.IntN(20) {
			case 0:
				now += random.ExpFloat64() * 10
			case 1:
				now -= random.ExpFloat64()
			case 2:
				now += 1e5 * random.Float64()
			}
			s.frame(now+random.NormFloat64()*0.01, 0.02)
		}
		line, length := s.timeline(), s.played
		assert.LessOrEqual(t, s.latest, float64(longestGap))
		before := 0.0
		for position := 0.0; position <= length; position += 0.001 {
			end, start := line.End(position), line.Start(position)
			if before > end+1e-9 || end > start+1e-9 {
				t.Fatalf("seed %d, position %g: an end at %g after the start %g, both after %g: %v", seed, position, end, start, before, line)
			}
			before = start
		}
		whole := Span{0, int(length * SampleRate)}
		parts := line.Split([]Span{whole})
		assert.True(t, slices.IsSortedFunc(parts, func(a, b Span) int { return a.End - b.Start - 1 }))
		for _, p := range parts {
			from, to := p.Seconds()
			assert.InDelta(t, to-from, line.End(to)-line.Start(from), splitGap*float64(1+len(line)), "no gap inside")
		}
	}
	assert.Equal(t, []Span{{3, 9}}, Timeline(nil).Split([]Span{{3, 9}}))
	second := int(SampleRate)
	gap := Timeline{{second, 5}}
	assert.Equal(t, []Span{{0, second}, {second, 2 * second}}, gap.Split([]Span{{0, 2 * second}}))
	assert.Equal(t, []Span{{0, second}}, gap.Split([]Span{{0, second + 300}}), "the margin is left out")
	assert.Equal(t, []Span{{10, 20}}, gap.Split([]Span{{10, 20}}), "a short span elsewhere is kept")
	assert.Equal(t, []float64{1, 5}, []float64{gap.End(1), gap.Start(1)})
}

// TestPeaksHaveGaps: the waveform includes the recording's gaps.
func TestPeaksHaveGaps(t *testing.T) {
	samples := make([]float32, 2*SampleRate)
	for i := range samples {
		samples[i] = 0.5
	}
	pcm := FromSamples(samples)
	pcm.timeline = Timeline{{SampleRate, 3}}
	peaks := pcm.Peaks()
	assert.Len(t, peaks, 4*peaksPerSecond)
	for i, p := range peaks {
		assert.Equal(t, i < peaksPerSecond || i >= 3*peaksPerSecond, p == 255, "%d", i)
	}
}
