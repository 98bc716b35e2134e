package bench

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the figures for a terminal, 95 % intervals in parentheses.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s; %s\n%s\n", recordings(r.Recordings), times(r.Repeat), r.Machine, r.rules())
	for _, table := range [][][]string{r.figureTable(), r.comparisonTable(), r.slicesTable()} {
		if len(table) > 1 { // the first row holds the systems' names
			b.WriteByte('\n')
			align(&b, table)
		}
	}
	for _, line := range r.findings() {
		fmt.Fprintf(&b, "\n%s", line)
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

func (r *Report) names() (names []string) {
	for _, s := range r.Systems {
		names = append(names, s.Name)
	}
	return names
}

func (r *Report) figureTable() [][]string {
	table := [][]string{append([]string{""}, r.names()...)}
	for _, f := range figures() {
		table = appendRow(table, f, f.label(), r.Systems, f.of)
	}
	return table
}

// appendRow appends a row with each system's figure, unless none has it.
func appendRow[T any](table [][]string, f figure, label string, list []T, of func(T) *estimate) [][]string {
	row, any := []string{label}, false
	for _, v := range list {
		e := of(v)
		any = any || e != nil
		row = append(row, f.show(e))
	}
	if !any {
		return table
	}
	return append(table, row)
}

// comparisonTable returns the comparisons with the first system, a column for
// each other system.
func (r *Report) comparisonTable() [][]string {
	table := [][]string{{"against " + r.Systems[0].Name}}
	for _, c := range r.Comparisons {
		table[0] = append(table[0], c.System)
	}
	for _, f := range comparisonFigures() {
		table = appendRow(table, f.figure, f.label(), r.Comparisons, f.of)
	}
	return table
}

// slicesTable returns the main rates of the recordings' parts, by system.
func (r *Report) slicesTable() [][]string {
	table := [][]string{append([]string{"by part"}, r.names()...)}
	for _, f := range accuracyFigures() {
		if f.key != "wer" && f.key != "cer" && f.key != "der" {
			continue
		}
		for _, part := range r.Slices {
			table = appendRow(table, f, f.name+", "+part.String(), r.Systems, func(s systemReport) *estimate {
				return f.of(systemReport{Accuracy: *part.Accuracy[s.Name]})
			})
		}
	}
	return table
}

// rules names the rules of scoring.
func (r *Report) rules() string {
	text := "Text normalizer: " + r.Normalizer + "."
	if slices.ContainsFunc(r.Systems, func(s systemReport) bool { return s.Accuracy.Turns != nil }) {
		text += fmt.Sprintf(" Turns: collar %g s on both sides of the reference's borders, overlapping speech counted.", r.Collar)
	}
	return text
}

// number returns the phrase one if n is 1, else the phrase many with n in it.
func number(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

func recordings(n int) string { return number(n, "1 recording", "%d recordings") }

func times(n int) string { return number(n, "measured once", "measured %d times each") }

func warmups(n int) string {
	if n == 0 {
		return "no warm-up"
	}
	return number(n, "one warm-up run", "%d warm-up runs")
}

// comparisonFigure is a row of the comparisons.
type comparisonFigure struct {
	figure
	of func(comparison) *estimate
}

func comparisonFigures() []comparisonFigure {
	return []comparisonFigure{
		{figure{key: "units_difference", name: "error rate of words and characters, difference", unit: "points", format: "%+.2f", scale: 100}, func(c comparison) *estimate { return c.WordRate }},
		{figure{key: "der_difference", name: "diarization error rate, difference", unit: "points", format: "%+.2f", scale: 100}, func(c comparison) *estimate { return c.TurnRate }},
		{figure{key: "event_f1_difference", name: "events F1, difference", unit: "points", format: "%+.2f", scale: 100}, func(c comparison) *estimate { return c.EventF1 }},
		{figure{key: "speed_ratio", name: "speed, ratio", unit: "×", format: "%.2f", scale: 1}, func(c comparison) *estimate { return c.Speed }},
		{figure{key: "cpu_ratio", name: "processor time, ratio", unit: "×", format: "%.2f", scale: 1}, func(c comparison) *estimate { return c.CPU }},
	}
}

// align formats a table of equal columns, all but the first right-aligned.
func align(b *strings.Builder, table [][]string) {
	width := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range table {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", width[i+1], cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// WriteJSON writes the complete report on one line: indented, a report of
// 10,000 recordings would take twice the memory.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteCSV writes one line for each figure of each system: system, figure,
// value, the bounds of its 95 % interval, unit, text normalizer; the key and
// value of a part of the recordings; the other system of a comparison. Rates
// are fractions.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"system", "figure", "value", "low", "high", "unit", "normalizer", "key", "part", "against"}) // out.Error returns the error
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	units := map[string]string{"%": "fraction", "points": "fraction", "MiB": "bytes"}
	put := func(system string, f figure, e *estimate, key, part, against string) {
		if e != nil {
			_ = out.Write([]string{system, f.key, number(e.Value), number(e.Low), number(e.High), cmp.Or(units[f.unit], f.unit), r.Normalizer, key, part, against})
		}
	}
	for _, s := range r.Systems {
		for _, f := range figures() {
			put(s.Name, f, f.of(s), "", "", "")
		}
	}
	for _, part := range r.Slices {
		for _, s := range r.Systems {
			for _, f := range accuracyFigures() {
				put(s.Name, f, f.of(systemReport{Accuracy: *part.Accuracy[s.Name]}), part.Key, part.Value, "")
			}
		}
	}
	for _, c := range r.Comparisons {
		for _, f := range comparisonFigures() {
			put(c.System, f.figure, f.of(c), "", "", c.Against)
		}
	}
	out.Flush()
	return out.Error()
}
