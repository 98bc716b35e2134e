package subtitle

import (
	"math"
	"strings"
	"unicode/utf8"
)

const (
	// longPause (seconds) between two words ends a cue, because a text
	// displayed during a silence reveals the following words too early.
	longPause = 2
	// shortest is the minimum duration of a cue (seconds).
	shortest = 0.8
)

// The costs of a division into pages.
const (
	costPage     = 0.5 // of each page
	costSlack    = 1   // of an empty page, multiplied by the square of its empty share
	costClause   = 0.3 // of a page that ends at a clause instead of a sentence
	costBreak    = 4   // of a page that ends inside a clause
	costBrief    = 4   // for each missing second of a page that is too short
	worthOfPause = 4   // for each second of a pause after a page, up to one
)

// pages divides a voice's text from start to end into pages of at most lines
// lines, at the lowest cost, with free columns before the first line.
func (t typesetter) pages(start, end float64, v voice, lines, further int) []page {
	lead := t.lead(v.speaker, further)
	all := v.atoms
	var out []page
	for from := 0; from < len(all); {
		to := from
		for to++; to < len(all) && all[to].start-all[to-1].end < longPause; {
			to++
		}
		for _, n := range t.divide(all[from:to], lines, lead) {
			part := all[from : from+n]
			p := page{start: part[0].start, end: part[n-1].end, voices: []voice{{v.speaker, part, t.wrap(part, lead)}}}
			if from == 0 {
				p.start = start
			}
			from += n
			if from == len(all) {
				p.end = end
			} else if from < to { // stay until the next page
				p.end = all[from].start
			}
			out = append(out, p)
		}
	}
	return out
}

// divide returns the number of atoms of each page of the cheapest division.
func (t typesetter) divide(atoms []atom, lines, lead int) []int {
	least := make([]float64, len(atoms)+1) // the lowest cost of the pages from an atom on
	size := make([]int, len(atoms))
	for i := len(atoms) - 1; i >= 0; i-- {
		least[i] = math.Inf(1)
		line := liner{width: t.MaxColumns, used: lead, lines: 1}
		columns := 0
		for j := i + 1; j <= len(atoms); j++ {
			last := atoms[j-1]
			line.add(last)
			columns += last.width
			if last.space && j > i+1 {
				columns++
			}
			if j > i+1 && (line.lines > lines || last.end-atoms[i].start > t.MaxSeconds) {
				break
			}
			slack := max(0, 1-float64(columns)/float64(t.MaxColumns*lines-lead))
			cost := least[j] + costPage + costSlack*slack*slack
			if j < len(atoms) {
				cost += breakCost(last, atoms[j]) + costBrief*max(0, shortest-(atoms[j].start-atoms[i].start))
			}
			if cost < least[i] {
				least[i], size[i] = cost, j-i
			}
		}
	}
	var out []int
	for i := 0; i < len(atoms); i += size[i] {
		out = append(out, size[i])
	}
	return out
}

// breakCost returns the cost of a new page between two atoms.
func breakCost(a, b atom) float64 {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(a.text, `"'”’»)]）」』】`))
	switch {
	case strings.ContainsRune(".?!。？！…．｡", last):
		return 0
	case strings.ContainsRune(",;:，；：、､—–", last):
		return costClause
	}
	return costBreak - worthOfPause*min(max(b.start-a.end, 0), 1)
}

// liner fills lines with atoms greedily.
type liner struct {
	width, used, lines int
	begun              bool // the line has an atom
}

// add places the next atom and reports whether it begins a line.
func (l *liner) add(a atom) bool {
	w := a.width
	if a.space && l.begun {
		w++
	}
	breaks := l.begun && l.used+w > l.width
	if breaks {
		l.lines++
		l.used, w = 0, a.width
	}
	l.used += w
	l.begun = true
	return breaks
}

// fill fills lines with atoms greedily and reports whether all fit.
func fill(atoms []atom, width, lead int) (lines []string, fits bool) {
	line := liner{width: width, used: lead, lines: 1}
	begin, fits := 0, true
	for i, a := range atoms {
		if line.add(a) {
			lines, begin = append(lines, join(atoms[begin:i])), i
		}
		fits = fits && line.used <= width
	}
	return append(lines, join(atoms[begin:])), fits
}

// wrap divides a page into its lines as evenly as possible: at the smallest
// width that needs no additional line.
func (t typesetter) wrap(atoms []atom, lead int) []string {
	best, _ := fill(atoms, t.MaxColumns, lead)
	if len(best) == 1 {
		return best
	}
	for width := t.MaxColumns - 1; width > lead; width-- {
		narrower, fits := fill(atoms, width, lead)
		if len(narrower) > len(best) || !fits {
			break
		}
		best = narrower
	}
	return best
}

func total(atoms []atom) int {
	n := 0
	for i, a := range atoms {
		n += a.width
		if a.space && i > 0 {
			n++
		}
	}
	return n
}
