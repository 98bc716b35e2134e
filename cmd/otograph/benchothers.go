package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/otograph/otograph/bench"
)

// otherSystems holds the flags of bench for recognizers other than Otograph's.
type otherSystems struct {
	System  []string      `placeholder:"NAME=URL" sep:"none" group:"Other recognizers" help:"Also measure a server with OpenAI's transcription endpoint, such as http://localhost:8000/v1?model=base (repeat for more). Its key is read from NAME_API_KEY."`
	Cmd     []string      `placeholder:"NAME=COMMAND" sep:"none" group:"Other recognizers" help:"Also measure a program, such as 'cpp=whisper-cli -m base.bin -f {file}'; it prints text, JSON, subtitles, CTM or RTTM, or writes them into {out} (repeat for more)."`
	Hyp     []string      `placeholder:"NAME=PATH" sep:"none" group:"Other recognizers" help:"Also score transcripts in a folder (one for each recording), or in a file (JSON lines with audio_filepath and pred_text, SegLST, STM, CTM, RTTM, or a line for each recording; repeat for more)."`
	Own     bool          `default:"true" negatable:"" group:"Other recognizers" help:"Measure Otograph's models."`
	AtOnce  int           `default:"1" placeholder:"N" group:"Other recognizers" help:"Recordings that a server or program gets at the same time."`
	PerMin  int           `name:"per-minute" placeholder:"N" group:"Other recognizers" help:"Largest number of requests to a server in a minute."`
	Timeout time.Duration `default:"10m" placeholder:"TIME" group:"Other recognizers" help:"Longest time for an answer of a server or program."`
}

// others returns the systems in the order of the flags.
func (o *otherSystems) others(items []bench.Item) ([]bench.System, error) {
	if o.AtOnce < 1 || o.PerMin < 0 || o.Timeout <= 0 {
		return nil, &usageError{fmt.Errorf("--at-once must be at least 1, --per-minute at least 0, --timeout positive")}
	}
	var out []bench.System
	for _, kind := range []struct {
		flag   string
		values []string
		open   func(name, value string) (bench.Engine, error)
	}{
		{"system", o.System, func(name, address string) (bench.Engine, error) {
			return bench.Server(address, os.Getenv(keyName(name)), o.Timeout, o.PerMin)
		}},
		{"cmd", o.Cmd, func(_, line string) (bench.Engine, error) { return bench.Command(line, o.Timeout) }},
		{"hyp", o.Hyp, func(_, path string) (bench.Engine, error) { return bench.Files(filepath.Clean(path), items) }},
	} {
		for _, value := range kind.values {
			name, rest, ok := strings.Cut(value, "=")
			if !ok || name == "" || rest == "" {
				return nil, &usageError{fmt.Errorf("--%s: expected NAME=…, got %q", kind.flag, value)}
			}
			if slices.ContainsFunc(out, func(s bench.System) bool { return s.Name == name }) {
				return nil, &usageError{fmt.Errorf("--%s: there are two systems with the name %s", kind.flag, name)}
			}
			engine, err := kind.open(name, rest)
			if err != nil {
				return nil, fmt.Errorf("--%s %s: %w", kind.flag, name, err)
			}
			out = append(out, bench.System{Name: name, Engine: engine, Parallel: o.AtOnce})
		}
	}
	return out, nil
}

// keyName returns the name of the environment variable with a system's key.
func keyName(system string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, system) + "_API_KEY"
}
