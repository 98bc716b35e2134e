package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the figures as a table for a terminal, 95 % intervals in
// parentheses.
func (r *Report) WriteTable(w io.Writer) error {
	table := [][]string{{""}}
	for _, s := range r.Systems {
		table[0] = append(table[0], s.Name)
	}
	for _, f := range r.rows() {
		row := []string{f.label()}
		for _, s := range r.Systems {
			row = append(row, f.show(f.of(s)))
		}
		table = append(table, row)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s; %s\nText normalizer: %s\n\n", recordings(r.Recordings), times(r.Repeat), r.Machine, r.Normalizer)
	align(&b, table)
	if len(r.Comparisons) > 0 {
		table = [][]string{{"against " + r.Systems[0].Name}}
		for _, c := range r.Comparisons {
			table[0] = append(table[0], c.System)
		}
		for _, f := range comparisonFigures() {
			row, any := []string{f.label()}, false
			for _, c := range r.Comparisons {
				e := f.of(c)
				any = any || e != nil
				row = append(row, f.show(e))
			}
			if any {
				table = append(table, row)
			}
		}
		b.WriteByte('\n')
		align(&b, table)
	}
	for _, s := range r.Systems {
		for _, it := range s.Items {
			if it.Error != "" {
				fmt.Fprintf(&b, "\n%s failed on %s: %s", s.Name, it.Name, it.Error)
			}
			for _, warning := range it.Warnings {
				fmt.Fprintf(&b, "\n%s: %s", it.Name, warning.Reason)
			}
		}
	}
	if !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func recordings(n int) string {
	if n == 1 {
		return "1 recording"
	}
	return fmt.Sprintf("%d recordings", n)
}

func times(n int) string {
	if n == 1 {
		return "measured once"
	}
	return fmt.Sprintf("measured %d times each", n)
}

func warmups(n int) string {
	switch n {
	case 0:
		return "no warm-up"
	case 1:
		return "one warm-up run"
	}
	return fmt.Sprintf("%d warm-up runs", n)
}

// comparisonFigure is a row of the comparisons.
type comparisonFigure struct {
	figure
	of func(Comparison) *Estimate
}

func comparisonFigures() []comparisonFigure {
	return []comparisonFigure{
		{figure{name: "error rate of words and characters, difference", unit: "points", format: "%+.2f", scale: 100}, func(c Comparison) *Estimate { return c.WordRate }},
		{figure{name: "diarization error rate, difference", unit: "points", format: "%+.2f", scale: 100}, func(c Comparison) *Estimate { return c.TurnRate }},
		{figure{name: "events F1, difference", unit: "points", format: "%+.2f", scale: 100}, func(c Comparison) *Estimate { return c.EventF1 }},
		{figure{name: "speed, ratio", unit: "×", format: "%.2f", scale: 1}, func(c Comparison) *Estimate { return c.Speed }},
		{figure{name: "processor time, ratio", unit: "×", format: "%.2f", scale: 1}, func(c Comparison) *Estimate { return c.CPU }},
	}
}

// align formats a table with columns of equal width, all but the first
// right-aligned.
func align(b *strings.Builder, table [][]string) {
	width := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range table {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line += cell + pad
			} else {
				line += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// WriteJSON writes the complete report.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteCSV writes one line for each figure of each system: system, figure,
// value, the bounds of its 95 % interval, unit. Rates are fractions.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"system", "figure", "value", "low", "high", "unit"}) // Error below tells
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for _, s := range r.Systems {
		for _, f := range r.rows() {
			e := f.of(s)
			if e == nil {
				continue
			}
			unit := f.unit
			switch unit {
			case "%":
				unit = "fraction"
			case "MiB":
				unit = "bytes"
			}
			_ = out.Write([]string{s.Name, f.key, number(e.Value), number(e.Low), number(e.High), unit})
		}
	}
	out.Flush()
	return out.Error()
}
