package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// ErrRTTM marks an invalid line of an RTTM file.
var ErrRTTM = errors.New("not a line of RTTM")

// ReadRTTM reads speaker turns in NIST's RTTM format: lines "SPEAKER file
// channel start duration <NA> <NA> name …", times in seconds. Lines of other
// types, empty lines and comments (";;") are skipped. With a file name, only
// its lines are read; they have "_" for each space of the name. Errors wrap
// ErrRTTM and name the line.
func ReadRTTM(r io.Reader, file string) ([]SpeakerTurn, error) {
	lines, err := readRTTM(r)
	if err != nil || file == "" {
		return turnsOf(lines), err
	}
	return turnsOf(lines, file), nil
}

type rttmLine struct {
	file string
	turn SpeakerTurn
}

// turnsOf returns the turns of recordings with one of the names, if any.
func turnsOf(lines []rttmLine, names ...string) []SpeakerTurn {
	var turns []SpeakerTurn
	for _, l := range lines {
		named := func(name string) bool { return isName(l.file, name) }
		if len(names) == 0 || slices.ContainsFunc(names, named) {
			turns = append(turns, l.turn)
		}
	}
	return turns
}

// isName reports whether a line names a recording, with "_" for spaces.
func isName(field, recording string) bool {
	return field == strings.Join(strings.Fields(recording), "_")
}

func readRTTM(r io.Reader) ([]rttmLine, error) {
	text, err := textfile.ReadFrom(r, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRTTM, err)
	}
	var out []rttmLine
	for n, field := range Rows(text) {
		if field[0] != "SPEAKER" {
			continue
		}
		if len(field) < 8 {
			return nil, fmt.Errorf("%w: line %d has %d fields, expected at least 8", ErrRTTM, n, len(field))
		}
		start, duration, ok := seconds(field[3], field[4])
		if !ok {
			return nil, fmt.Errorf("%w: line %d: expected a start and a duration in seconds, got %q and %q", ErrRTTM, n, field[3], field[4])
		}
		out = append(out, rttmLine{field[1], SpeakerTurn{Start: start, End: start + duration, Speaker: field[7]}})
	}
	return out, nil
}

// seconds parses two times, which are finite and not negative.
func seconds(a, b string) (x, y float64, ok bool) {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return x, y, err1 == nil && err2 == nil && x >= 0 && y >= 0 && !math.IsInf(x+y, 0)
}

// Rows yields the number and the fields of each line of one of NIST's formats,
// without empty lines and comments.
func Rows(text string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		n := 0
		for line := range strings.Lines(text) {
			n++
			if field := strings.Fields(line); len(field) > 0 && !strings.HasPrefix(field[0], ";;") && !yield(n, field) {
				return
			}
		}
	}
}

// errUEM marks an invalid line of a UEM file.
var errUEM = errors.New("not a line of UEM")

// loadUEM reads the evaluated times of one recording in NIST's UEM format:
// lines "file channel start end" in seconds; ";;" begins comments. Lines of the
// recording's name count, or all if they share another name.
func loadUEM(path, recording string) ([][2]float64, error) {
	text, err := textfile.Read(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("uem: %w", err)
	}
	of := map[string][][2]float64{}
	for n, field := range Rows(text) {
		if len(field) != 4 {
			return nil, fmt.Errorf("uem: %s: %w: line %d has %d fields, expected 4", path, errUEM, n, len(field))
		}
		start, end, ok := seconds(field[2], field[3])
		if !ok || end < start {
			return nil, fmt.Errorf("uem: %s: %w: line %d: expected a start and an end in seconds, got %q and %q", path, errUEM, n, field[2], field[3])
		}
		of[field[0]] = append(of[field[0]], [2]float64{start, end})
	}
	base := filepath.Base(filepath.FromSlash(recording))
	var spans, times [][2]float64
	for name, list := range of {
		if len(of) == 1 || isName(name, Stem(recording)) || isName(name, base) {
			spans = append(spans, list...)
		}
	}
	if len(spans) == 0 {
		return nil, fmt.Errorf("uem: %s: expected times of %s, found none", path, base)
	}
	slices.SortFunc(spans, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	for _, s := range spans {
		if n := len(times); n > 0 && s[0] <= times[n-1][1] {
			times[n-1][1] = max(times[n-1][1], s[1])
			continue
		}
		times = append(times, s)
	}
	return times, nil
}
