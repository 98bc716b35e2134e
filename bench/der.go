package bench

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// SpeakerTurn is a stretch of speech of one speaker, in a reference or in a
// hypothesis. Turns of one list may overlap (people talk simultaneously).
type SpeakerTurn struct {
	Start, End float64 // seconds
	Speaker    string
}

// DEROptions configures the scoring of turns.
type DEROptions struct {
	// Collar is the number of seconds that are not scored on both sides of
	// every reference border (0.25 is usual).
	Collar float64
	// SkipOverlap excludes stretches in which the reference has more than one
	// speaker.
	SkipOverlap bool
}

// DER holds the parts of a diarization error, all in seconds of speaker time:
// where two people talk simultaneously, a second counts twice.
type DER struct {
	Scored     float64           // scored reference speech
	Missed     float64           // reference speakers missing from the hypothesis
	FalseAlarm float64           // hypothesis speakers missing from the reference
	Confusion  float64           // speech assigned to the wrong speaker
	Mapping    map[string]string // hypothesis speaker → reference speaker, one to one
}

// Rate returns the diarization error rate: (missed + false alarm + confusion) /
// scored. It can exceed 1. Without scored speech it is 0, or +Inf if the
// hypothesis has speech.
func (d DER) Rate() float64 {
	wrong := d.Missed + d.FalseAlarm + d.Confusion
	if d.Scored == 0 {
		if wrong == 0 {
			return 0
		}
		return math.Inf(1)
	}
	return wrong / d.Scored
}

// Add sums the seconds of two recordings, so that Rate weights them by length.
// The mapping is dropped.
func (d DER) Add(o DER) DER {
	return DER{Scored: d.Scored + o.Scored, Missed: d.Missed + o.Missed, FalseAlarm: d.FalseAlarm + o.FalseAlarm, Confusion: d.Confusion + o.Confusion}
}

// ScoreTurns compares a hypothesis with a reference as defined by NIST's
// md-eval: speakers are mapped one to one so that the time on which both agree
// is largest; then, at every instant, the larger number of speakers minus the
// number of correct ones is an error. It works on the exact borders, not on
// frames. Turns without length are ignored.
func ScoreTurns(reference, hypothesis []SpeakerTurn, opt DEROptions) DER {
	ref, refNames := bySpeaker(reference)
	hyp, hypNames := bySpeaker(hypothesis)

	// Between two neighboring borders nothing changes.
	var borders []float64
	var collars []span
	for _, list := range [][][]span{ref, hyp} {
		for _, spans := range list {
			for _, s := range spans {
				borders = append(borders, s.start, s.end)
			}
		}
	}
	for _, spans := range ref {
		for _, s := range spans {
			for _, b := range []float64{s.start, s.end} {
				if opt.Collar > 0 {
					collars = append(collars, span{b - opt.Collar, b + opt.Collar})
					borders = append(borders, b-opt.Collar, b+opt.Collar)
				}
			}
		}
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	collars = union(collars)

	type stretch struct {
		seconds  float64
		ref, hyp []int
	}
	var stretches []stretch
	together := make([][]float64, len(ref))
	for r := range together {
		together[r] = make([]float64, len(hyp))
	}
	refAt, hypAt, collarAt := newSweep(ref), newSweep(hyp), newSweep([][]span{collars})
	for i := 1; i < len(borders); i++ {
		middle, seconds := (borders[i-1]+borders[i])/2, borders[i]-borders[i-1]
		r, h := refAt.speaking(middle), hypAt.speaking(middle)
		if len(collarAt.speaking(middle)) > 0 || opt.SkipOverlap && len(r) > 1 || len(r)+len(h) == 0 {
			continue
		}
		stretches = append(stretches, stretch{seconds, r, h})
		for _, a := range r {
			for _, b := range h {
				together[a][b] += seconds
			}
		}
	}

	d := DER{Mapping: make(map[string]string)}
	mapped := assign(together, len(hyp)) // per reference speaker
	for r, h := range mapped {
		if h >= 0 && together[r][h] > 0 {
			d.Mapping[hypNames[h]] = refNames[r]
		}
	}
	for _, s := range stretches {
		correct := 0
		for _, r := range s.ref {
			if slices.Contains(s.hyp, mapped[r]) {
				correct++
			}
		}
		nr, nh := len(s.ref), len(s.hyp)
		d.Scored += s.seconds * float64(nr)
		d.Missed += s.seconds * float64(max(nr-nh, 0))
		d.FalseAlarm += s.seconds * float64(max(nh-nr, 0))
		d.Confusion += s.seconds * float64(min(nr, nh)-correct)
	}
	return d
}

// span is a stretch of time in seconds.
type span struct{ start, end float64 }

// bySpeaker collects the turns of each speaker and joins overlaps of one
// speaker. Speakers are sorted by name.
func bySpeaker(turns []SpeakerTurn) (spans [][]span, names []string) {
	of := make(map[string][]span)
	for _, t := range turns {
		if t.End > t.Start {
			of[t.Speaker] = append(of[t.Speaker], span{t.Start, t.End})
		}
	}
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		spans = append(spans, union(of[name]))
	}
	return spans, names
}

// union joins stretches that overlap or touch, and sorts them.
func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// sweep finds who speaks at increasing times.
type sweep struct {
	spans [][]span
	at    []int
}

func newSweep(spans [][]span) *sweep { return &sweep{spans, make([]int, len(spans))} }

func (s *sweep) speaking(time float64) (who []int) {
	for i, spans := range s.spans {
		for s.at[i] < len(spans) && spans[s.at[i]].end <= time {
			s.at[i]++
		}
		if s.at[i] < len(spans) && spans[s.at[i]].start <= time {
			who = append(who, i)
		}
	}
	return who
}

// assign matches rows with columns one to one so that the sum of the matched
// gains is largest (the Hungarian algorithm, O(n³)). It returns the column of
// each row, −1 for a row without one.
func assign(gain [][]float64, columns int) []int {
	n := max(len(gain), columns)
	cost := func(r, c int) float64 { // square, padded with zeros
		if r < len(gain) && c < columns {
			return -gain[r][c]
		}
		return 0
	}
	// Potentials u, v and the row matched with each column, counted from 1; 0
	// is the row being placed.
	u, v := make([]float64, n+1), make([]float64, n+1)
	row, way := make([]int, n+1), make([]int, n+1)
	for r := 1; r <= n; r++ {
		row[0] = r
		least := make([]float64, n+1)
		used := make([]bool, n+1)
		for c := range least {
			least[c] = math.Inf(1)
		}
		c0 := 0
		for row[c0] != 0 {
			used[c0] = true
			delta, c1 := math.Inf(1), 0
			for c := 1; c <= n; c++ {
				if used[c] {
					continue
				}
				if d := cost(row[c0]-1, c-1) - u[row[c0]] - v[c]; d < least[c] {
					least[c], way[c] = d, c0
				}
				if least[c] < delta {
					delta, c1 = least[c], c
				}
			}
			for c := 0; c <= n; c++ {
				if used[c] {
					u[row[c]] += delta
					v[c] -= delta
				} else {
					least[c] -= delta
				}
			}
			c0 = c1
		}
		for c0 != 0 {
			row[c0], c0 = row[way[c0]], way[c0]
		}
	}
	out := make([]int, len(gain))
	for r := range out {
		out[r] = -1
	}
	for c := 1; c <= columns; c++ {
		if r := row[c] - 1; r >= 0 && r < len(gain) {
			out[r] = c - 1
		}
	}
	return out
}

// ErrRTTM marks an invalid line of an RTTM file.
var ErrRTTM = errors.New("not a line of RTTM")

// ReadRTTM reads speaker turns in NIST's RTTM format: lines "SPEAKER file
// channel start duration <NA> <NA> name …", times in seconds. Lines of other
// types, empty lines and comments (";;") are skipped. With a file name, only
// its lines are read. Errors wrap ErrRTTM and name the line.
func ReadRTTM(r io.Reader, file string) ([]SpeakerTurn, error) {
	var turns []SpeakerTurn
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		field := strings.Fields(lines.Text())
		if len(field) == 0 || strings.HasPrefix(field[0], ";;") || field[0] != "SPEAKER" {
			continue
		}
		if len(field) < 8 {
			return nil, fmt.Errorf("%w: line %d has %d fields, expected at least 8", ErrRTTM, n, len(field))
		}
		if file != "" && field[1] != file {
			continue
		}
		start, err1 := strconv.ParseFloat(field[3], 64)
		duration, err2 := strconv.ParseFloat(field[4], 64)
		if err := errors.Join(err1, err2); err != nil || !(start >= 0) || !(duration >= 0) || math.IsInf(start+duration, 0) {
			return nil, fmt.Errorf("%w: line %d: expected a start and a duration in seconds, got %q and %q", ErrRTTM, n, field[3], field[4])
		}
		turns = append(turns, SpeakerTurn{Start: start, End: start + duration, Speaker: field[7]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRTTM, err)
	}
	return turns, nil
}
