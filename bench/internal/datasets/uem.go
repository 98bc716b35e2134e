package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/otograph/otograph/internal/files/textfile"
)

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
	for n, field := range nistLines(text) {
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
