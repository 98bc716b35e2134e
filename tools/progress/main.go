// Command progress reads the events of `go test -json` and prints one line for
// each package when its tests end, the output of tests that fail, once a minute
// what is still running, and at the end which tests were skipped. It fails if a
// test or a build failed.
//
//	go test -json ./... | go run -C tools ./progress
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	p := newPrinter(os.Stdout)
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	minute := time.NewTicker(time.Minute)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				p.summary()
				if p.failed {
					os.Exit(1)
				}
				return
			}
			p.line(line)
		case <-minute.C:
			p.running()
		}
	}
}

// event is an event of `go test -json` (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Elapsed    float64 // in seconds
	Output     string
}

// printer prints events.
type printer struct {
	out     io.Writer
	open    map[string]map[string]string // output by package and test, of what has not ended
	last    map[string]string            // the test that began last, by package
	skipped map[string]int               // number of tests by reason
	failed  bool
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, open: map[string]map[string]string{}, last: map[string]string{}, skipped: map[string]int{}}
}

// module is the prefix that names of packages are printed without.
const module = "github.com/otograph/otograph"

// dataRace is in the output of the race detector, which may report a race during
// a test that passes.
const dataRace = "WARNING: DATA RACE"

func short(name string) string {
	return "." + strings.TrimPrefix(name, module)
}

func (p *printer) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(p.out, "%s", line) // of the go command itself
		return
	}
	tests := p.open[e.Package]
	switch e.Action {
	case "build-output":
		fmt.Fprint(p.out, e.Output)
	case "build-fail":
		p.failed = true
	case "start":
		p.open[e.Package] = map[string]string{}
	case "run":
		p.last[e.Package] = e.Test
	case "output":
		if tests != nil {
			tests[e.Test] += e.Output
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			p.end(e)
			return
		}
		switch {
		case e.Action == "fail" || strings.Contains(tests[e.Test], dataRace):
			fmt.Fprintf(p.out, "%s: %s", short(e.Package), tests[e.Test])
		case e.Action == "skip":
			p.skipped[reason(tests[e.Test])]++
		}
		delete(tests, e.Test)
	}
}

// end prints the line of a package whose tests have ended and, if it failed,
// the output that belongs to no ended test.
func (p *printer) end(e event) {
	switch e.Action {
	case "fail":
		p.failed = true
		for _, test := range slices.Sorted(maps.Keys(p.open[e.Package])) {
			fmt.Fprint(p.out, p.open[e.Package][test])
		}
		fmt.Fprintf(p.out, "FAIL %s %.1f s\n", short(e.Package), e.Elapsed)
	case "pass":
		fmt.Fprintf(p.out, "ok   %s %.1f s\n", short(e.Package), e.Elapsed)
	}
	delete(p.open, e.Package)
}

// running prints the packages whose tests run.
func (p *printer) running() {
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		fmt.Fprintf(p.out, "...  %s %s\n", short(name), p.last[name])
	}
}

// inFile matches the place of a skip in its output.
var inFile = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: `)

// reason returns the reason of a skip from the test's output.
func reason(output string) string {
	at := inFile.FindStringIndex(output)
	if at == nil {
		return "no reason"
	}
	line, _, _ := strings.Cut(output[at[1]:], "\n")
	return line
}

// summary prints the number of skipped tests by reason.
func (p *printer) summary() {
	for _, why := range slices.Sorted(maps.Keys(p.skipped)) {
		fmt.Fprintf(p.out, "skipped %d: %s\n", p.skipped[why], why)
	}
}
