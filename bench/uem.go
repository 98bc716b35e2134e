package bench

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/otograph/otograph/internal/files/textfile"
)

// errUEM marks an invalid line of a UEM file.
var errUEM = errors.New("not a line of UEM")

// loadUEM reads the evaluated times of one recording in NIST's UEM format: lines
// "file channel start end" in seconds; comments begin with ";;". Only the lines
// with the recording's name count, or all lines if they share another name.
func loadUEM(path, recording string) ([][2]float64, error) {
	text, err := textfile.Read(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("uem: %w", err)
	}
	of := map[string][]span{}
	for n, field := range nistLines(text) {
		if len(field) != 4 {
			return nil, fmt.Errorf("uem: %s: %w: line %d has %d fields, expected 4", path, errUEM, n, len(field))
		}
		start, err1 := strconv.ParseFloat(field[2], 64)
		end, err2 := strconv.ParseFloat(field[3], 64)
		if err := errors.Join(err1, err2); err != nil || !(start >= 0) || !(end >= start) || math.IsInf(end, 0) {
			return nil, fmt.Errorf("uem: %s: %w: line %d: expected a start and an end in seconds, got %q and %q", path, errUEM, n, field[2], field[3])
		}
		of[field[0]] = append(of[field[0]], span{start, end})
	}
	base := filepath.Base(filepath.FromSlash(recording))
	var spans []span
	for name, list := range of {
		if len(of) == 1 || isName(name, stem(recording)) || isName(name, base) {
			spans = append(spans, list...)
		}
	}
	if len(spans) == 0 {
		return nil, fmt.Errorf("uem: %s: expected times of %s, found none", path, base)
	}
	var times [][2]float64
	for _, s := range union(spans) {
		times = append(times, [2]float64{s.start, s.end})
	}
	return times, nil
}

// outside returns the periods before the end of any turn that are not in the
// evaluated times; nil if all times are evaluated.
func outside(evaluated [][2]float64, lists ...[]SpeakerTurn) (gaps []span) {
	if evaluated == nil {
		return nil
	}
	at := 0.0
	for _, e := range evaluated {
		gaps = append(gaps, span{at, e[0]})
		at = e[1]
	}
	end := at
	for _, t := range slices.Concat(lists...) {
		end = max(end, t.End)
	}
	return append(gaps, span{at, end})
}
