package subtitle

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Options say how subtitles are laid out. The zero value is the default.
type Options struct {
	// MaxColumns is the width of a line in columns, a Chinese character being
	// two; 0 means 42, the usual limit of broadcasters.
	MaxColumns int
	// MaxLines is the number of lines of a cue; 0 means 2.
	MaxLines int
	// MaxSeconds is the longest a cue of several words stays; 0 means 7.
	MaxSeconds float64
	// NoSpeakers leaves the speakers' names out.
	NoSpeakers bool
	// Note is a comment before the first cue. Only VTT has comments.
	Note string
}

// withDefaults fills in what is zero or out of use: a line narrower than eight
// columns breaks every word.
func (o Options) withDefaults() Options {
	if o.MaxColumns <= 0 {
		o.MaxColumns = 42
	}
	o.MaxColumns = max(o.MaxColumns, 8)
	if o.MaxLines <= 0 {
		o.MaxLines = 2
	}
	if !(o.MaxSeconds > 0) {
		o.MaxSeconds = 7
	}
	return o
}

// longPause (seconds) between two words ends a cue: a text that stands through
// a silence gives away what comes.
const longPause = 2

// page is one cue as it will be shown.
type page struct {
	Cue
	lines []string
}

// layout splits cues into pages that fit the options. indent is the number of
// columns that the format writes before the first line of a cue.
func layout(cues []Cue, o Options, indent func(Cue) int) []page {
	o = o.withDefaults()
	var out []page
	for _, c := range clean(cues) {
		if o.NoSpeakers {
			c.Speaker = ""
		}
		// A name may not leave less than half of the first line.
		lead := min(indent(c), o.MaxColumns/2)
		all := atoms(c, o.MaxColumns-lead)
		for done := 0; done < len(all); {
			n := cut(all[done:], o, lead)
			p := page{Cue: c, lines: wrap(all[done:done+n], o, lead)}
			if done > 0 {
				p.Start = all[done].start
			}
			if done += n; done < len(all) {
				p.End = all[done-1].end
				// Stay until the next page where the pause is short.
				if next := all[done].start; next-p.End < longPause {
					p.End = next
				}
			}
			out = append(out, p)
		}
	}
	// The pages of one cue may reach past the start of another's (a sound under
	// speech), and players want them in order.
	slices.SortStableFunc(out, func(a, b page) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// cut returns how many atoms fit on the next page, reduced to the last end of a
// sentence or clause if that does not leave the page too short.
func cut(atoms []atom, o Options, lead int) int {
	n := 1
	for n < len(atoms) && fits(atoms[:n+1], o, lead) &&
		atoms[n].end-atoms[0].start <= o.MaxSeconds && atoms[n].start-atoms[n-1].end < longPause {
		n++
	}
	if n == len(atoms) {
		return n
	}
	for _, marks := range []string{".?!。？！…", ",;:，；：、"} {
		for k := n; k > n/2; k-- {
			last, _ := utf8.DecodeLastRuneInString(atoms[k-1].text)
			if strings.ContainsRune(marks, last) {
				return k
			}
		}
	}
	return n
}

// fits reports whether atoms fit on a page.
func fits(atoms []atom, o Options, lead int) bool {
	_, ok := fill(atoms, o.MaxColumns, o.MaxLines, lead)
	return ok
}

// fill sets atoms into lines as full as they go; false when there are more than
// lines of them.
func fill(atoms []atom, width, lines, lead int) ([]string, bool) {
	var out []string
	begin, used := 0, lead
	for i, a := range atoms {
		w := columns(a.text)
		if a.space && i > begin {
			w++
		}
		if used+w > width && i > begin {
			out = append(out, join(atoms[begin:i]))
			begin, used, w = i, 0, columns(a.text)
		}
		used += w
	}
	out = append(out, join(atoms[begin:]))
	return out, len(out) <= lines
}

// wrap sets a page into its lines, as even as they go: the narrowest width that
// needs no more lines.
func wrap(atoms []atom, o Options, lead int) []string {
	best, _ := fill(atoms, o.MaxColumns, o.MaxLines, lead)
	if len(best) == 1 {
		return best
	}
	for width := o.MaxColumns - 1; width > lead; width-- {
		lines, _ := fill(atoms, width, o.MaxLines, lead)
		if len(lines) > len(best) || tooWide(lines, width, lead) {
			break
		}
		best = lines
	}
	return best
}

func tooWide(lines []string, width, lead int) bool {
	for i, line := range lines {
		if i > 0 {
			lead = 0
		}
		if lead+columns(line) > width {
			return true
		}
	}
	return false
}
