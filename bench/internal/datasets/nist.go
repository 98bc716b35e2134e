package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// ErrRTTM marks an invalid line of an RTTM file.
var ErrRTTM = errors.New("not a line of RTTM")

// ReadRTTM reads speaker turns in NIST's RTTM format. Errors wrap ErrRTTM and
// name the line.
func ReadRTTM(r io.Reader) ([]SpeakerTurn, error) {
	text, err := textfile.ReadFrom(r, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRTTM, err)
	}
	return Turns(Rows(text))
}

// Turns returns the turns of RTTM's lines "SPEAKER file channel start duration
// <NA> <NA> name …", times in seconds. It skips lines of other types.
func Turns(rows []Row) (turns []SpeakerTurn, err error) {
	for _, r := range rows {
		if r.Fields[0] != "SPEAKER" {
			continue
		}
		if len(r.Fields) < 8 {
			return nil, fmt.Errorf("%w: line %d has %d fields, expected at least 8", ErrRTTM, r.Line, len(r.Fields))
		}
		start, duration, ok := Seconds(r.Fields[3], r.Fields[4])
		if !ok {
			return nil, fmt.Errorf("%w: line %d: expected a start and a duration in seconds, got %q and %q", ErrRTTM, r.Line, r.Fields[3], r.Fields[4])
		}
		turns = append(turns, SpeakerTurn{Start: start, End: start + duration, Speaker: r.Fields[7]})
	}
	return turns, nil
}

// loadRTTM reads the turns of one recording.
func loadRTTM(path, recording string) ([]SpeakerTurn, error) {
	turns, err := loadRows("rttm", path, recording, 1, Turns)
	return append([]SpeakerTurn{}, turns...), err // not nil: no speakers, as opposed to unknown speakers
}

// loadRows reads one recording's lines of a file in the given format; column
// has the recordings' names.
func loadRows[T any](format, path, recording string, column int, read func([]Row) ([]T, error)) ([]T, error) {
	text, err := textfile.Read(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", format, err)
	}
	rows := Rows(text)
	if _, err := read(rows); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", format, path, err)
	}
	return read(ByName(rows, column).Of(recording, true))
}

// Seconds parses two times, which are up to MaxSeconds and not negative.
func Seconds(a, b string) (x, y float64, ok bool) {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return x, y, err1 == nil && err2 == nil && x >= 0 && y >= 0 && max(x, y) <= MaxSeconds
}

// Row is a line of one of NIST's formats: its number and its fields.
type Row struct {
	Line   int
	Fields []string
}

// Rows returns the lines of a text, without empty ones and comments (";;").
func Rows(text string) (rows []Row) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], ";;") {
			rows = append(rows, Row{n, fields})
		}
	}
	return rows
}

// Named holds the lines of a file by the recordings' names in it.
type Named map[string][]Row

// ByName returns the lines by the names in a column.
func ByName(rows []Row, column int) Named {
	n := Named{}
	for _, r := range rows {
		if len(r.Fields) > column {
			n[r.Fields[column]] = append(n[r.Fields[column]], r)
		}
	}
	return n
}

// Of returns the lines of a recording. If the manifest has no other recording,
// lines that share any one name are its lines.
func (n Named) Of(recording string, alone bool) (rows []Row) {
	for _, name := range NamesOf(recording) {
		rows = append(rows, n[name]...)
	}
	if rows == nil && alone && len(n) == 1 {
		for _, rows = range n {
			break
		}
	}
	return rows
}

// NamesOf returns the names that a recording may have in a transcript: with or
// without its folders and extension, with "_" for each space.
func NamesOf(recording string) []string {
	names := []string{recording, filepath.Base(filepath.FromSlash(recording)), Stem(recording)}
	for _, name := range names[:3] {
		names = append(names, strings.Join(strings.Fields(name), "_"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// errUEM marks an invalid line of a UEM file.
var errUEM = errors.New("not a line of UEM")

// loadUEM reads the evaluated times of one recording in NIST's UEM format:
// lines "file channel start end" in seconds.
func loadUEM(path, recording string) ([][2]float64, error) {
	times, err := loadRows("uem", path, recording, 0, evaluated)
	if err == nil && len(times) == 0 {
		err = fmt.Errorf("uem: %s: expected times of %s, found none", path, filepath.Base(filepath.FromSlash(recording)))
	}
	return times, err
}

// evaluated returns the times of lines of UEM in order, without overlap.
func evaluated(rows []Row) ([][2]float64, error) {
	var spans [][2]float64
	for _, r := range rows {
		if len(r.Fields) != 4 {
			return nil, fmt.Errorf("%w: line %d has %d fields, expected 4", errUEM, r.Line, len(r.Fields))
		}
		start, end, ok := Seconds(r.Fields[2], r.Fields[3])
		if !ok || end < start {
			return nil, fmt.Errorf("%w: line %d: expected a start and an end in seconds, got %q and %q", errUEM, r.Line, r.Fields[2], r.Fields[3])
		}
		spans = append(spans, [2]float64{start, end})
	}
	return Union(spans), nil
}

// Union merges periods (start and end) that overlap or touch, and sorts them.
func Union(spans [][2]float64) (out [][2]float64) {
	slices.SortFunc(spans, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	for _, s := range spans {
		if n := len(out); n > 0 && s[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], s[1])
			continue
		}
		out = append(out, s)
	}
	return out
}
