// Command report measures Otograph and other programs in turn, and writes the
// table into docs/measurements/standard-tier.md:
//
//	go run -C tools ./report [-rounds 3] [-only EXPRESSION] [-doc docs/measurements/standard-tier.md] [-o results.json]
//
// Both sides of a row run one after the other, round by round, on the same
// cores and the same file; the table shows the medians. With -only, the other
// rows keep the figures of an earlier run and name its machine. Run it after
// `make setup`. Processor time is meaningful even on a busy machine; wall-clock
// time is not.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/tools/internal/checkout"
)

// cost is the cost of one run of a program.
type cost struct {
	Wall      float64 `json:"wall_s"`
	Processor float64 `json:"processor_s"`
}

// result is a row with its measurements.
type result struct {
	What      string    `json:"what"`
	Against   string    `json:"against,omitempty"`
	Want      float64   `json:"want,omitempty"` // ratio
	Reference []cost    `json:"reference,omitempty"`
	Ours      []cost    `json:"ours"`
	Command   string    `json:"command"` // ours
	Others    []float64 `json:"others"`  // cores that other programs took, for each round; -1 if unknown
}

// report holds the measurements of one session.
type report struct {
	Machine string   `json:"machine"`
	Version string   `json:"version"` // of the source
	Date    string   `json:"date"`
	Rows    []result `json:"rows"`
}

func main() {
	rounds := flag.Int("rounds", 3, "how often each row is measured")
	only := flag.String("only", "", "only the rows whose name matches this regular expression")
	doc := flag.String("doc", "docs/measurements/standard-tier.md", "the page that gets the table; empty: none")
	out := flag.String("o", "bin/bench-report/results.json", "where the measurements go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := measureAll(ctx, *rounds, *only, *doc, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func measureAll(ctx context.Context, rounds int, only, doc, out string) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds: expected 1 or more, found %d", rounds)
	}
	if err := checkout.Enter(); err != nil {
		return err
	}
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir := filepath.Dir(out)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	var earlier []report
	if only != "" {
		if earlier, err = load(out); err != nil {
			return err
		}
	}
	version, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	machine := bench.ThisMachine()
	r := report{
		Machine: fmt.Sprintf("%d cores of %s, %s", machine.Cores, cmp.Or(machine.CPU, "an unknown processor"), machine.OS),
		Version: strings.TrimSpace(string(version)), Date: time.Now().UTC().Format("2 January 2006"),
	}
	rows, err := b.choose(ctx, chosen)
	if err != nil {
		return err
	}
	for _, row := range rows {
		fmt.Fprintln(os.Stderr, "report:", row.what)
		measured, err := b.measure(ctx, row, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", row.what, err)
		}
		r.Rows = append(r.Rows, measured)
		if err := r.save(out, earlier); err != nil { // the next row may be interrupted
			return err
		}
	}
	if len(r.Rows) == 0 {
		return fmt.Errorf("-only: no row to measure matches %q", only)
	}
	table := r.table(rounds)
	fmt.Print(table)
	if doc == "" {
		return nil
	}
	return write(doc, table, r.Rows, only != "")
}

// choose returns the rows with matching names, the comparisons with
// faster-whisper first. If its packages or weights are unavailable, these are
// left out with a message.
func (b *setup) choose(ctx context.Context, chosen *regexp.Regexp) ([]row, error) {
	rows, err := b.peer.rows(b.otograph)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(append(rows, b.rows()...), func(r row) bool { return !chosen.MatchString(r.what) })
	besides := func(r row) bool { return r.peer }
	if slices.ContainsFunc(rows, besides) {
		if err := b.peer.prepare(ctx, b.otograph); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			fmt.Fprintln(os.Stderr, "report: the rows beside faster-whisper are left out:", err)
			rows = slices.DeleteFunc(rows, besides)
		}
	}
	return rows, nil
}

// load returns the results of earlier runs in a file.
func load(file string) (list []report, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// save writes the measurements to a file, and the other rows of earlier runs.
func (r report) save(file string, earlier []report) error {
	all := []report{r}
	for _, e := range earlier {
		e.Rows = slices.DeleteFunc(slices.Clone(e.Rows), func(row result) bool { return has(r.Rows, row.What) })
		if len(e.Rows) > 0 {
			all = append(all, e)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// has reports whether rows contain a row with the name.
func has(rows []result, name string) bool {
	return slices.ContainsFunc(rows, func(r result) bool { return r.What == name })
}

// measure runs both sides of a row in turn.
func (b *setup) measure(ctx context.Context, row row, rounds int) (result, error) {
	r := result{What: row.what, Against: row.against, Want: row.want, Command: strings.Join(row.ours, " ")}
	if err := b.model(ctx, row.models...); err != nil {
		return r, err
	}
	for range rounds {
		before, known := busySeconds()
		begun, used := time.Now(), 0.0
		if len(row.reference) > 0 {
			c, output, err := once(ctx, row.reference)
			if err != nil {
				return r, err
			}
			used += c.Processor
			if row.warm {
				if c, err = warmCost(output); err != nil {
					return r, err
				}
			}
			r.Reference = append(r.Reference, c)
		}
		c, _, err := once(ctx, row.ours)
		if err != nil {
			return r, err
		}
		r.Ours = append(r.Ours, c)
		used += c.Processor
		others := -1.0
		if after, _ := busySeconds(); known {
			others = max(0, after-before-used) / time.Since(begun).Seconds()
		}
		r.Others = append(r.Others, others)
	}
	return r, nil
}

// once runs a program to completion and returns its cost and output.
func once(ctx context.Context, args []string) (cost, string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	begun := time.Now()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return cost{}, "", fmt.Errorf("%s: %w: %.300s", strings.Join(args, " "), err, said)
	}
	s := cmd.ProcessState
	return cost{time.Since(begun).Seconds(), (s.UserTime() + s.SystemTime()).Seconds()}, string(said), nil
}

// median returns the median of one figure.
func median(costs []cost, of func(cost) float64) float64 {
	var all []float64
	for _, c := range costs {
		all = append(all, of(c))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
