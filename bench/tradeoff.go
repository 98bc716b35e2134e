package bench

import (
	"fmt"
	"math"
)

// tradeoff plots the error rate against the speed, with a dot for each system
// and the intervals of both. It returns false if fewer than two systems have
// both.
//
// The plots are hand-written because gonum's plot package embeds its fonts and
// the writers of six formats (7.7 MB in a program of 1.6 MB), and because its
// plots would follow neither the page's colors nor its light or dark setting.
func (r *Report) tradeoff(title string, rate, speed figure) (plot, bool) {
	p := plot{
		Title: title + " by speed", Height: 280,
		Note: "Horizontal: times real time, logarithmic; vertical: %, less is better. Whiskers: 95 % intervals. The best are at the lower right.",
	}
	type point struct {
		rate, speed *estimate
		system      int
	}
	var points []point
	x0, x1, top := math.Inf(1), 0.0, 0.0
	for i, s := range r.Systems {
		q := point{rate: rate.of(s), speed: speed.of(s), system: i}
		if q.rate == nil || q.speed == nil || !(q.speed.Low > 0) {
			continue
		}
		points = append(points, q)
		x0, x1 = min(x0, q.speed.Low), max(x1, q.speed.High)
		top = max(top, q.rate.High*rate.scale)
	}
	if len(points) < 2 {
		return p, false
	}
	sx := logAxis(x0, x1, scatterLeft, scatterRight, func(at, v float64) { p.column(at, fmt.Sprintf("%.4g ×", v)) })
	step, high := roundSteps(top)
	sy := func(v float64) float64 { return scatterBottom - v/high*(scatterBottom-scatterTop) }
	for v := 0.0; v <= high+step/2; v += step {
		p.row(sy(v), fmt.Sprintf("%.4g", v))
	}
	for _, q := range points {
		s := r.Systems[q.system]
		x, y := sx(q.speed.Value), sy(q.rate.Value*rate.scale)
		p.Lines = append(
			p.Lines,
			line{sx(q.speed.Low), y, sx(q.speed.High), y, false},
			line{x, sy(q.rate.Low * rate.scale), x, sy(q.rate.High * rate.scale), false},
		)
		tip := fmt.Sprintf("%s: %s %s at %s %s", s.Name, rate.show(q.rate), rate.unit, speed.show(q.speed), speed.unit)
		p.Dots = append(p.Dots, dot{x, y, q.system % colours, tip})
		p.Legend = append(p.Legend, label{Text: s.Name, Colour: q.system % colours})
	}
	return p, true
}

// roundSteps returns the step of about five round marks from 0, and the last
// mark.
func roundSteps(top float64) (step, high float64) {
	if !(top > 0) {
		top = 1
	}
	step = math.Pow(10, math.Floor(math.Log10(top/4)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if top/(step*m) <= 5 {
			step *= m
			break
		}
	}
	return step, math.Ceil(top/step-1e-9) * step
}
