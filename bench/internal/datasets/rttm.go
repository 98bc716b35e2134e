package datasets

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
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
	for n, field := range nistLines(text) {
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

// nistLines yields the numbers and the fields of the lines of RTTM or UEM,
// without empty lines and comments.
func nistLines(text string) iter.Seq2[int, []string] {
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
