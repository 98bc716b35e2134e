package main

import (
	"fmt"
	"os"
	"strings"
)

// The table of a page is between these markers.
const (
	begin = "<!-- bench-report: written by `make bench-report` -->\n"
	end   = "<!-- end of bench-report -->\n"
)

func wall(c cost) float64       { return c.Wall }
func processing(c cost) float64 { return c.Processor }

// table renders a report as Markdown.
func (r report) table(rounds int) string {
	var b strings.Builder
	times := "rounds"
	if rounds == 1 {
		times = "round"
	}
	fmt.Fprintf(&b, "%s, source %s, on %s; %d %s a row, medians. ", r.Date, r.Version, r.Machine, rounds, times)
	switch most, known := r.taken(); {
	case !known:
		b.WriteString("The system does not say what other programs took")
	case most > 0.1:
		fmt.Fprintf(&b, "Other programs took up to %.1f cores during a round: of the two ratios **only processor time counts**", most)
	default:
		fmt.Fprintf(&b, "Other programs took at most %.2f of a core during a round", most)
	}
	b.WriteString(".\n\n| what | against | processor time | ratio | by the clock | ratio | wanted |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.Rows {
		against, want := row.Against, ""
		if against == "" {
			against = "–"
		}
		if row.Want > 0 {
			want = fmt.Sprintf("%.2f ×", row.Want)
		}
		fmt.Fprintf(&b, "| %s | %s |%s|%s| %s |\n", row.What, against, cells(row, processing), cells(row, wall), want)
	}
	return b.String()
}

// taken returns the largest share of the cores that other programs used in a
// round; false if it is unknown for a round.
func (r report) taken() (most float64, known bool) {
	for _, row := range r.Rows {
		for _, cores := range row.Others {
			if cores < 0 {
				return 0, false
			}
			most = max(most, cores)
		}
	}
	return most, true
}

// cells returns the figures of both sides and their ratio.
func cells(row result, of func(cost) float64) string {
	ours := median(row.Ours, of)
	if len(row.Reference) == 0 {
		return fmt.Sprintf(" %.2f s | ", ours)
	}
	theirs := median(row.Reference, of)
	return fmt.Sprintf(" %.2f against %.2f s | %.2f × ", ours, theirs, theirs/ours)
}

// write replaces the table between the markers of a page. The existing other
// rows follow it, each below the description of its run, unless keep is false.
func write(page, table string, rows []result, keep bool) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has not both of the lines %q and %q", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	if keep {
		table += others(old, rows)
	}
	return os.WriteFile(page, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644)
}

// others returns the tables of an earlier text, each with the lines above it.
// It leaves out the given rows and tables that become empty.
func others(text string, rows []result) string {
	var out, part strings.Builder
	lines := 0 // lines of the part's table; the first two are its head
	finish := func() {
		if lines > 2 {
			out.WriteString("\n" + part.String())
		}
		part.Reset()
		lines = 0
	}
	for line := range strings.Lines(text) {
		what, isRow := strings.CutPrefix(line, "| ")
		what, _, _ = strings.Cut(what, " | ")
		switch {
		case strings.TrimSpace(line) == "" || isRow && has(rows, what):
			continue
		case isRow && lines == 0:
			part.WriteString("\n")
		case !isRow && lines > 0:
			finish()
		}
		if isRow {
			lines++
		}
		part.WriteString(line)
	}
	finish()
	return out.String()
}
