package bench

import (
	"fmt"
	"math"
	"slices"
)

// plot is an SVG drawing, 720 wide.
type plot struct {
	Title, Note string
	Height      int
	Boxes       []box
	Lines       []line
	Texts       []label
	Dots        []dot
	Legend      []label
}

type box struct {
	X, Y, W, H float64
	Colour     int
	Tip        string
}
type line struct {
	X1, Y1, X2, Y2 float64
	Faint          bool
}
type label struct {
	X, Y   float64
	Anchor string
	Text   string
	Colour int
}
type dot struct {
	X, Y   float64
	Colour int
	Tip    string
}

const (
	plotWidth = 720.0
	plotLeft  = 190.0 // space for the systems' names
	plotRight = 110.0 // room for values
	barHeight = 22.0
	colours   = 7 // number of colors in the page's palette
)

func (r *Report) plots() []plot {
	var out []plot
	find := map[string]figure{}
	for _, f := range r.rows() {
		find[f.key] = f
	}
	for _, p := range []struct{ key, title string }{
		{"wer", "Word error rate"}, {"cer", "Character error rate"}, {"der", "Diarization error rate"}, {"event_f1", "Events, F1"}, {"speed", "Speed"},
	} {
		if f, ok := find[p.key]; ok {
			out = append(out, r.bars(p.title, f))
		}
	}
	speed, timed := find["speed"]
	for _, e := range []struct{ key, title string }{{"wer", "Word error rate"}, {"cer", "Character error rate"}} {
		if rate, ok := find[e.key]; ok && timed {
			if p, ok := r.tradeoff(e.title, rate, speed); ok {
				out = append(out, p)
			}
		}
	}
	if p, ok := r.stagePlot(); ok {
		out = append(out, p)
	}
	if p, ok := r.strip(); ok {
		out = append(out, p)
	}
	return out
}

// bars draws one figure with intervals for each system.
func (r *Report) bars(title string, f figure) plot {
	p := plot{Title: title + ", " + f.unit, Note: "Whiskers: 95 % interval.", Height: int(barHeight*1.5)*len(r.Systems) + 34}
	if f.lower {
		p.Note = "Less is better. " + p.Note
	}
	top := 0.0
	for _, s := range r.Systems {
		if e := f.of(s); e != nil {
			top = max(top, e.High*f.scale)
		}
	}
	scale := p.axis(top)
	for i, s := range r.Systems {
		y := p.barRow(i, s.Name)
		e := f.of(s)
		if e == nil {
			continue
		}
		x := scale(e.Value * f.scale)
		p.Boxes = append(p.Boxes, box{plotLeft, y, max(1, x-plotLeft), barHeight, i % colours, s.Name + ": " + f.show(e) + " " + f.unit})
		end := x
		if e.High > e.Low {
			lo, hi, mid := scale(e.Low*f.scale), scale(e.High*f.scale), y+barHeight/2
			p.Lines = append(p.Lines, line{lo, mid, hi, mid, false}, line{lo, mid - 5, lo, mid + 5, false}, line{hi, mid - 5, hi, mid + 5, false})
			end = max(x, hi)
		}
		p.Texts = append(p.Texts, label{end + 6, y + 15, "start", fmt.Sprintf(f.format, e.Value*f.scale), 0})
	}
	return p
}

// axis draws a horizontal axis from 0 with about five round marks and returns
// its scale.
func (p *plot) axis(top float64) func(float64) float64 {
	step, high := roundSteps(top)
	scale := func(v float64) float64 {
		return plotLeft + v/high*(plotWidth-plotLeft-plotRight)
	}
	bottom := float64(p.Height) - 22
	for v := 0.0; v <= high+step/2; v += step {
		p.Lines = append(p.Lines, line{scale(v), 0, scale(v), bottom, true})
		p.Texts = append(p.Texts, label{scale(v), bottom + 16, "middle", fmt.Sprintf("%.4g", v), 0})
	}
	return scale
}

func (r *Report) stagePlot() (plot, bool) {
	p := plot{Title: "Processor seconds for an hour of sound, by stage", Note: "Each stage run by itself.", Height: int(barHeight*1.5)*len(r.Systems) + 34}
	top := 0.0
	for _, s := range r.Systems {
		sum := 0.0
		for _, v := range s.Cost.StageCPUPerHour {
			sum += v
		}
		top = max(top, sum)
	}
	if top == 0 {
		return p, false
	}
	scale := p.axis(top)
	for i, s := range r.Systems {
		y, at := p.barRow(i, s.Name), 0.0
		for k, st := range stages() {
			v := s.Cost.StageCPUPerHour[st]
			if v > 0 {
				p.Boxes = append(p.Boxes, box{scale(at), y, scale(at+v) - scale(at), barHeight, k, fmt.Sprintf("%s, %s: %.1f s", s.Name, st, v)})
			}
			at += v
		}
		p.Texts = append(p.Texts, label{scale(at) + 6, y + 15, "start", fmt.Sprintf("%.0f s", at), 0})
	}
	for k, st := range stages() {
		if slices.ContainsFunc(r.Systems, func(s systemReport) bool { return s.Cost.StageCPUPerHour[st] > 0 }) {
			p.Legend = append(p.Legend, label{Text: string(st), Colour: k})
		}
	}
	return p, true
}

func (r *Report) strip() (plot, bool) {
	p := plot{Title: "Speed by length of the recording", Note: "Horizontal: seconds of sound; vertical: times real time; both logarithmic. One dot for each recording.", Height: 280}
	x0, x1, y0, y1 := math.Inf(1), 0.0, math.Inf(1), 0.0
	for i, s := range r.Systems {
		for _, it := range s.Items {
			if c := it.Cost; it.Error == "" && c.Audio > 0 && c.Wall > 0 {
				speed := c.Audio / c.Wall
				x0, x1, y0, y1 = min(x0, c.Audio), max(x1, c.Audio), min(y0, speed), max(y1, speed)
				p.Dots = append(p.Dots, dot{c.Audio, speed, i % colours, fmt.Sprintf("%s, %s: %.1f s of sound, %.1f × real time", s.Name, it.Name, c.Audio, speed)})
			}
		}
		p.Legend = append(p.Legend, label{Text: s.Name, Colour: i % colours})
	}
	if len(p.Dots) < 3 {
		return p, false
	}
	sx := logAxis(x0, x1, scatterLeft, scatterRight, func(at, v float64) { p.column(at, fmt.Sprintf("%.4g s", v)) })
	sy := logAxis(y0, y1, scatterBottom, scatterTop, func(at, v float64) { p.row(at, fmt.Sprintf("%.4g ×", v)) })
	for i, d := range p.Dots {
		p.Dots[i].X, p.Dots[i].Y = sx(d.X), sy(d.Y)
	}
	return p, true
}

// The borders of a plot with dots.
const (
	scatterLeft, scatterRight = 60.0, plotWidth - 20
	scatterTop, scatterBottom = 10.0, 250.0
)

// column draws a vertical line with a text below it.
func (p *plot) column(x float64, text string) {
	p.Lines = append(p.Lines, line{x, scatterTop, x, scatterBottom, true})
	p.Texts = append(p.Texts, label{x, scatterBottom + 16, "middle", text, 0})
}

// row draws a horizontal line with a text to its left.
func (p *plot) row(y float64, text string) {
	p.Lines = append(p.Lines, line{scatterLeft, y, scatterRight, y, true})
	p.Texts = append(p.Texts, label{scatterLeft - 6, y + 4, "end", text, 0})
}

// logAxis returns the scale of a logarithmic axis between two places, for the
// values from lo to hi. mark is called with the place of each round value.
func logAxis(lo, hi, from, to float64, mark func(at, value float64)) func(value float64) float64 {
	lo, hi = math.Floor(math.Log10(lo)*3)/3, math.Ceil(math.Log10(hi)*3)/3
	if hi <= lo {
		hi = lo + 1.0/3
	}
	scale := func(v float64) float64 { return from + (math.Log10(v)-lo)/(hi-lo)*(to-from) }
	for e := math.Floor(lo); e <= hi; e++ {
		for _, m := range []float64{1, 2, 5} {
			if at := e + math.Log10(m); at >= lo-1e-9 && at <= hi+1e-9 {
				v := m * math.Pow(10, e)
				mark(scale(v), v)
			}
		}
	}
	return scale
}

// barRow names the bar of the i-th system and returns its place.
func (p *plot) barRow(i int, name string) (y float64) {
	if r := []rune(name); len(r) > 26 {
		name = string(r[:25]) + "…"
	}
	y = 6 + float64(i)*barHeight*1.5
	p.Texts = append(p.Texts, label{plotLeft - 8, y + 15, "end", name, 0})
	return y
}
