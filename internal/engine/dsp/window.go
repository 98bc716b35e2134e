package dsp

import "math"

// Window names an analysis window.
type Window int

// The windows of the recipes: symmetric windows divide by N-1, others by N.
const (
	WindowPovey           Window = iota // Kaldi's (0.5-0.5cos)^0.85, symmetric
	WindowHamming                       // 0.54-0.46cos, symmetric
	WindowHammingPeriodic               // 0.54-0.46cos, periodic (torch's default)
	WindowHann                          // 0.5-0.5cos, symmetric
	WindowHannPeriodic                  // 0.5-0.5cos, periodic
)

func (w Window) coefficients(n int) []float32 {
	c := make([]float32, n)
	d := float64(n - 1)
	if w == WindowHammingPeriodic || w == WindowHannPeriodic {
		d = float64(n)
	}
	for i := range c {
		x := math.Cos(2 * math.Pi * float64(i) / d)
		switch w {
		case WindowHamming, WindowHammingPeriodic:
			c[i] = float32(0.54 - 0.46*x)
		case WindowHann, WindowHannPeriodic:
			c[i] = float32(0.5 - 0.5*x)
		default:
			c[i] = float32(math.Pow(0.5-0.5*x, 0.85))
		}
	}
	return c
}
