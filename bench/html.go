package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

//go:embed report.html
var reportHTML string

// WriteHTML writes the report as one self-contained page without network
// access; its colors follow the reader's light or dark setting. Wrong words are
// links to the recordings, relative to the folder of Config.RunFile. A script
// plays, sorts and filters the recordings; the rest works without it.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(reportHTML)
	if err != nil {
		return err
	}
	page := htmlPage{
		Report: r, Measured: fmt.Sprintf("%s, %s, %s", recordings(r.Recordings), times(r.Repeat), warmups(r.Warmup)),
		Cite: fmt.Sprintf("Measured with otograph bench (github.com/otograph/otograph) on %s: %s. %s Intervals: bootstrap with seed %d.",
			r.Machine.Time.Format(time.DateOnly), recordings(r.Recordings), r.rules(), r.Seed),
		Rules: r.rules(), Findings: r.findings(), Figures: r.figureTable(),
		Against: r.comparisonTable(), Parts: r.slicesTable(), Items: r.itemRows(),
	}
	page.Wrong, page.Silent = r.wrongTexts()
	return t.Execute(w, page)
}

type htmlPage struct {
	*Report
	Measured                string // the measured set and the number of repeats
	Rules, Cite             string
	Findings                []string
	Figures, Against, Parts [][]string // the first row holds the systems' names
	Items                   []htmlRow
	Wrong                   []wrongText
	Silent                  int // recordings in Wrong without a file to play
}

// HasModels reports whether the models of a system are known.
func (p htmlPage) HasModels() bool {
	return slices.ContainsFunc(p.Systems, func(s systemReport) bool { return len(s.Models) > 0 })
}

// htmlRow is a recording with a cell for each system.
type htmlRow struct {
	Label string
	Cells []htmlCell
}

type htmlCell struct {
	Text string
	Sort float64
}

func (r *Report) itemRows() (rows []htmlRow) {
	for i, it := range r.Systems[0].Items {
		row := htmlRow{Label: it.Name}
		for _, s := range r.Systems {
			row.Cells = append(row.Cells, htmlCell{Text: s.Items[i].line(), Sort: s.Items[i].errorKey()})
		}
		rows = append(rows, row)
	}
	return rows
}

// errorKey is the sort key of the page's recordings: wrong words, or else the
// diarization error rate; failures are worst.
func (it itemReport) errorKey() float64 {
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

func (it itemReport) line() string {
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
