package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func about(value, low, high float64) *estimate { return &estimate{Value: value, Low: low, High: high} }

func system(name string, wer, speed *estimate) systemReport {
	return systemReport{Name: name, Accuracy: accuracy{WordRate: wer}, Cost: costSummary{Speed: speed}}
}

// The faster system is to the right of the slower one, and the better one below
// the worse. Whiskers reach from one end of an interval to the other.
func TestTradeoff(t *testing.T) {
	r := &Report{Systems: []systemReport{
		system("careful", about(0.04, 0.03, 0.06), about(10, 9, 11)),
		system("silent", nil, about(50, 50, 50)),
		system("quick", about(0.08, 0.07, 0.10), about(40, 38, 42)),
	}}
	list := r.plots()
	i := -1
	for k, p := range list {
		if strings.HasPrefix(p.Title, "Word error rate by speed") {
			i = k
		}
	}
	require.GreaterOrEqual(t, i, 0, "a plot of error by speed")
	p := list[i]
	require.Len(t, p.Dots, 2, "a system without texts has no dot")
	careful, quick := p.Dots[0], p.Dots[1]
	assert.Less(t, careful.X, quick.X)
	assert.Greater(t, careful.Y, quick.Y, "less is lower")
	assert.Equal(t, "quick: 8.00 (7.00 – 10.00) % at 40.0 (38.0 – 42.0) × real time", quick.Tip)
	assert.Equal(t, 2, quick.Colour, "the same color as in the other plots")

	var whiskers []line
	for _, l := range p.Lines {
		if !l.Faint {
			whiskers = append(whiskers, l)
		}
	}
	require.Len(t, whiskers, 4)
	across, up := whiskers[2], whiskers[3]
	assert.True(t, across.X1 < quick.X && quick.X < across.X2 && across.Y1 == quick.Y)
	assert.True(t, up.Y1 > quick.Y && quick.Y > up.Y2 && up.X1 == quick.X)
	for _, d := range p.Dots {
		assert.True(t, d.X >= 60 && d.X <= plotWidth && d.Y >= 0 && d.Y <= 250, d)
	}

	for name, alone := range map[string][]systemReport{
		"one system":       r.Systems[:2],
		"no speed at all":  {system("a", about(0.1, 0.1, 0.1), nil), system("b", about(0.2, 0.2, 0.2), nil)},
		"a speed of zero":  {system("a", about(0.1, 0.1, 0.1), about(1, 0, 2)), r.Systems[0]},
		"no system has it": {system("a", nil, about(1, 1, 1)), system("b", nil, about(2, 2, 2))},
	} {
		for _, p := range (&Report{Systems: alone}).plots() {
			assert.NotContains(t, p.Title, "by speed", name)
		}
	}
}

func TestRoundSteps(t *testing.T) {
	for top, want := range map[float64][2]float64{
		0: {0.2, 1}, 1: {0.2, 1}, 3.7: {1, 4}, 9.9: {2, 10}, 60: {20, 60}, 0.04: {0.01, 0.04},
	} {
		step, high := roundSteps(top)
		assert.InDelta(t, want[0], step, 1e-12, "step up to %g", top)
		assert.InDelta(t, want[1], high, 1e-12, "end of %g", top)
		assert.LessOrEqual(t, high/step, 5.0+1e-9)
	}
}
