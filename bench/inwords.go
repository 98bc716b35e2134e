package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// findings returns the systems' work, the comparisons and the orders in words.
func (r *Report) findings() (lines []string) {
	if load, err := strconv.ParseFloat(r.Machine.LoadAverage[0], 64); err == nil && load > float64(r.Machine.Cores) {
		lines = append(lines, fmt.Sprintf("The machine was busy: load average %.2f on %d cores at the start. Times are upper bounds.", load, r.Machine.Cores))
	}
	lines = append(lines, r.work()...)
	first := r.Systems[0]
	for i, c := range r.Comparisons {
		if c.WordRate != nil {
			lines = append(lines, c.String())
		}
		if s := r.Systems[i+1]; slices.Equal(s.Steps, first.Steps) {
			lines = append(lines, costsInWords(s, first)...)
		}
	}
	for _, order := range r.Orders {
		lines = append(lines, order.String())
	}
	if r.Reason != "" {
		lines = append(lines, r.Reason)
	}
	return lines
}

// work states which steps each of several systems ran, and whether its times
// include its start.
func (r *Report) work() (lines []string) {
	if len(r.Systems) < 2 {
		return nil
	}
	for _, s := range r.Systems {
		start := "; its models were loaded before"
		switch {
		case s.Start != nil:
			start = fmt.Sprintf("; it was started for each recording: %.2f s with %.2f s of processor time for a second of silence, left out in the rows “without starts”", s.Start.Wall, s.Start.CPU)
		case s.Other && s.Cost.Audio == 0:
			start = "; its transcripts were there"
		case s.Other:
			start = "; its start is not measured"
		case s.Load > 0:
			start = fmt.Sprintf("; its models were loaded once in %.2f s, which its times leave out", s.Load)
		}
		lines = append(lines, fmt.Sprintf("Work of %s: %s%s.", s.Name, strings.Join(s.Steps, ", "), start))
	}
	if slices.ContainsFunc(r.Systems, func(s systemReport) bool { return !slices.Equal(s.Steps, r.Systems[0].Steps) }) {
		lines = append(lines, "The systems did not do the same work: their times and their memory cannot be compared.")
	}
	return lines
}

// costsInWords compares speed, processor time and memory, where they are known,
// with the costs of the first system.
func costsInWords(s, first systemReport) []string {
	var parts []string
	ratio := func(form string, a, b float64) {
		if a > 0 && b > 0 {
			parts = append(parts, fmt.Sprintf(form, a/b))
		}
	}
	ratio("is %.2f times as fast as "+first.Name, s.netSpeed(), first.netSpeed())
	ratio("takes %.2f times its processor time", s.netCPU(), first.netCPU())
	if a, b := s.Cost.PeakRSS, first.Cost.PeakRSS; a > 0 && b > 0 {
		parts = append(parts, fmt.Sprintf("needs up to %d MiB of memory against %d MiB", a>>20, b>>20))
	}
	if parts == nil {
		return nil
	}
	line := s.Name + " " + strings.Join(parts, ", ") + "."
	if s.Start != nil || first.Start != nil {
		line = "Without starts, " + line
	}
	return []string{line}
}

// String states whether a system makes more or fewer errors than the first one.
func (c comparison) String() string {
	switch e := c.WordRate; {
	case e.Low > 0:
		return fmt.Sprintf("%s makes more word errors than %s: by %.2f points, 95 %% interval %.2f to %.2f.", c.System, c.Against, 100*e.Value, 100*e.Low, 100*e.High)
	case e.High < 0:
		return fmt.Sprintf("%s makes fewer word errors than %s: by %.2f points, 95 %% interval %.2f to %.2f.", c.System, c.Against, -100*e.Value, -100*e.High, -100*e.Low)
	}
	return fmt.Sprintf("%s and %s cannot be told apart by their word errors on these recordings.", c.System, c.Against)
}
