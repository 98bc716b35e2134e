package bench

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
)

//go:embed report.html
var reportHTML string

// WriteHTML writes the report as one self-contained page without network
// access; its colors follow the reader's light or dark setting. A script sorts
// and filters the recordings; the rest works without it.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(reportHTML)
	if err != nil {
		return err
	}
	page := htmlPage{Report: r, Plots: r.plots(), Measured: fmt.Sprintf("%s, %s, %s", recordings(r.Recordings), times(r.Repeat), warmups(r.Warmup))}
	for _, f := range r.rows() {
		row, best := htmlRow{Label: f.label()}, f.best(r.Systems)
		for i, s := range r.Systems {
			row.Cells = append(row.Cells, htmlCell{Text: f.show(f.of(s)), Best: i == best})
		}
		page.Rows = append(page.Rows, row)
	}
	for _, f := range comparisonFigures() {
		row, any := htmlRow{Label: f.label()}, false
		for _, c := range r.Comparisons {
			e := f.of(c)
			any = any || e != nil
			row.Cells = append(row.Cells, htmlCell{Text: f.show(e)})
		}
		if any {
			page.Comparisons = append(page.Comparisons, row)
		}
	}
	for i, it := range r.Systems[0].Items {
		row := htmlRow{Label: it.Name}
		for _, s := range r.Systems {
			row.Cells = append(row.Cells, htmlCell{Text: s.Items[i].line(), Sort: s.Items[i].badness()})
		}
		page.Items = append(page.Items, row)
	}
	for _, row := range r.sliceTable() {
		cells := htmlRow{Label: row[0]}
		for _, text := range row[1:] {
			cells.Cells = append(cells.Cells, htmlCell{Text: text})
		}
		page.SliceRows = append(page.SliceRows, cells)
	}
	page.Remarks, page.Cite, page.Wrong = r.remarks(), r.cite(), r.wrongTexts()
	return t.Execute(w, page)
}

// best returns the index of the system whose value is better than every other
// one. It returns −1 if there is none, if another system's interval overlaps
// the best one's, or if neither direction of the figure is better.
func (f figure) best(systems []SystemReport) int {
	if f.key == "reference_units" || f.key == "recordings" {
		return -1
	}
	best, others := -1, 0
	better := func(a, b *Estimate) bool { return f.lower && a.High < b.Low || !f.lower && a.Low > b.High }
	for i, s := range systems {
		e := f.of(s)
		if e == nil {
			continue
		}
		others++
		if !slices.ContainsFunc(systems, func(o SystemReport) bool {
			x := f.of(o)
			return o.Name != s.Name && x != nil && !better(e, x)
		}) {
			best = i
		}
	}
	if others < 2 {
		return -1
	}
	return best
}

type htmlPage struct {
	*Report
	Measured                 string // the measured set and the number of repeats
	Plots                    []plot
	Rows, Comparisons, Items []htmlRow
	SliceRows                []htmlRow
	Wrong                    []wrongText
	Remarks                  []string
	Cite                     string
}

// wrongText is a recording with the texts of all systems and their errors
// marked.
type wrongText struct {
	Name    string
	Systems []wrongLine
}

type wrongLine struct {
	Name, Error string
	Tokens      []token
}

const (
	// mostWrong limits the recordings that the page shows with their texts.
	mostWrong = 200
	// aroundWrong is the number of correct words shown on each side of an
	// error.
	aroundWrong = 6
)

// wrongTexts returns the recordings with the most wrong words, the worst first.
func (r *Report) wrongTexts() (list []wrongText) {
	wrong := make([]int, len(r.Systems[0].Items))
	var order []int
	for i := range wrong {
		for _, s := range r.Systems {
			wrong[i] += len(s.Items[i].WrongWords)
		}
		if wrong[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wrong[b], wrong[a]) })
	for _, i := range order[:min(mostWrong, len(order))] {
		text := wrongText{Name: r.Systems[0].Items[i].Name}
		for _, s := range r.Systems {
			line := wrongLine{Name: s.Name, Error: s.Items[i].Error}
			if r.texts != nil {
				line.Tokens = nearErrors(r.texts(&s.Items[i], i))
			}
			text.Systems = append(text.Systems, line)
		}
		list = append(list, text)
	}
	return list
}

// nearErrors returns the words around errors, with "…" for the words between.
func nearErrors(tokens []token) (out []token) {
	last := -1
	for i, t := range tokens {
		near := false
		for k := max(0, i-aroundWrong); k <= min(len(tokens)-1, i+aroundWrong); k++ {
			near = near || tokens[k].Class != ""
		}
		if !near {
			continue
		}
		if i > last+1 {
			out = append(out, token{Text: "…"})
		}
		out, last = append(out, t), i
	}
	if last >= 0 && last < len(tokens)-1 {
		out = append(out, token{Text: "…"})
	}
	return out
}

// badness is the sort key of the page's recordings: wrong words, or else the
// diarization error rate; failures are worst.
func (it ItemReport) badness() float64 {
	switch {
	case it.Error != "":
		return 1e9
	case it.Score.Words != nil:
		return float64(it.Score.Words.Errors())
	case it.Score.Turns != nil:
		return it.Score.Turns.Rate()
	}
	return 0
}

type htmlRow struct {
	Label string
	Cells []htmlCell
}

type htmlCell struct {
	Text string
	Best bool
	Sort float64
}

// line returns a one-line summary of a recording.
func (it ItemReport) line() string {
	if it.Error != "" {
		return "failed: " + it.Error
	}
	out := ""
	if w := it.Score.Words; w != nil {
		out = fmt.Sprintf("%d of %d wrong", w.Errors(), w.Reference)
	}
	if d := it.Score.Turns; d != nil {
		out += fmt.Sprintf(" DER %.1f %%", d.Rate()*100)
	}
	if it.Cost.Wall > 0 {
		out += fmt.Sprintf(" %.1f ×", it.Cost.Audio/it.Cost.Wall)
	}
	return out
}

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
	for _, e := range []struct{ key, title string }{{"wer", "Word error rate"}, {"cer", "Character error rate"}} {
		if p, ok := r.tradeoff(e.title, find[e.key], find["speed"]); ok {
			out = append(out, p)
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
		y := 6 + float64(i)*barHeight*1.5
		p.Texts = append(p.Texts, label{plotLeft - 8, y + 15, "end", shortName(s.Name), 0})
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

// stagePlot draws the processor time of the stages as stacked bars.
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
		y, at := 6+float64(i)*barHeight*1.5, 0.0
		p.Texts = append(p.Texts, label{plotLeft - 8, y + 15, "end", shortName(s.Name), 0})
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
		if slices.ContainsFunc(r.Systems, func(s SystemReport) bool { return s.Cost.StageCPUPerHour[st] > 0 }) {
			p.Legend = append(p.Legend, label{Text: string(st), Colour: k})
		}
	}
	return p, true
}

// strip plots every recording's speed by its length.
func (r *Report) strip() (plot, bool) {
	p := plot{Title: "Speed by length of the recording", Note: "Horizontal: seconds of sound; vertical: times real time; both logarithmic. One dot for each recording.", Height: 280}
	type point struct {
		x, y   float64
		system int
		tip    string
	}
	var points []point
	for i, s := range r.Systems {
		for _, it := range s.Items {
			if c := it.Cost; it.Error == "" && c.Audio > 0 && c.Wall > 0 {
				points = append(points, point{math.Log10(c.Audio), math.Log10(c.Audio / c.Wall), i % colours, fmt.Sprintf("%s, %s: %.1f s of sound, %.1f × real time", s.Name, it.Name, c.Audio, c.Audio/c.Wall)})
			}
		}
		p.Legend = append(p.Legend, label{Text: s.Name, Colour: i % colours})
	}
	if len(points) < 3 {
		return p, false
	}
	byX := func(a, b point) int { return cmp.Compare(a.x, b.x) }
	byY := func(a, b point) int { return cmp.Compare(a.y, b.y) }
	const left, bottom = 60.0, 250.0
	x0, x1 := logBounds(slices.MinFunc(points, byX).x, slices.MaxFunc(points, byX).x)
	y0, y1 := logBounds(slices.MinFunc(points, byY).y, slices.MaxFunc(points, byY).y)
	sx := func(v float64) float64 { return left + (v-x0)/(x1-x0)*(plotWidth-left-20) }
	sy := func(v float64) float64 { return bottom - (v-y0)/(y1-y0)*(bottom-10) }
	logMarks(x0, x1, func(at, v float64) {
		p.Lines = append(p.Lines, line{sx(at), 10, sx(at), bottom, true})
		p.Texts = append(p.Texts, label{sx(at), bottom + 16, "middle", fmt.Sprintf("%.4g s", v), 0})
	})
	logMarks(y0, y1, func(at, v float64) {
		p.Lines = append(p.Lines, line{left, sy(at), plotWidth - 20, sy(at), true})
		p.Texts = append(p.Texts, label{left - 6, sy(at) + 4, "end", fmt.Sprintf("%.4g ×", v), 0})
	})
	for _, q := range points {
		p.Dots = append(p.Dots, dot{sx(q.x), sy(q.y), q.system, q.tip})
	}
	return p, true
}

// logBounds rounds the logarithms of an axis's limits outwards.
func logBounds(lo, hi float64) (float64, float64) {
	lo, hi = math.Floor(lo*3)/3, math.Ceil(hi*3)/3
	if hi <= lo {
		hi = lo + 1.0/3
	}
	return lo, hi
}

// logMarks calls f with the round values between two logarithms, and their
// logarithms.
func logMarks(lo, hi float64, f func(at, value float64)) {
	for e := math.Floor(lo); e <= hi; e++ {
		for _, m := range []float64{1, 2, 5} {
			if at := e + math.Log10(m); at >= lo-1e-9 && at <= hi+1e-9 {
				f(at, m*math.Pow(10, e))
			}
		}
	}
}

func shortName(s string) string {
	if r := []rune(s); len(r) > 26 {
		return string(r[:25]) + "…"
	}
	return s
}
