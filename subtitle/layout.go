package subtitle

import (
	"cmp"
	"regexp"
	"slices"
	"unicode"

	"golang.org/x/text/width"
)

// Options configures the layout of subtitles. The zero value is the default.
type Options struct {
	// MaxColumns is the width of a line in columns; a Chinese character takes
	// two. 0 means 42, the usual limit of broadcasters.
	MaxColumns int
	// MaxLines is the number of lines of a cue; 0 means 2.
	MaxLines int
	// MaxSeconds is the longest duration of a cue of several words; 0 means 7.
	MaxSeconds float64
	// MaxCPS is the reading speed in characters (columns) per second; 0 means
	// 20. A cue stays until it can be read at this speed, unless the next one
	// begins earlier.
	MaxCPS float64
	// NoSpeakers omits the speakers' names.
	NoSpeakers bool
	// LoneSpeaker keeps the number (SPEAKER_0) of a recording's only speaker,
	// which is omitted by default.
	LoneSpeaker bool
	// NoSounds omits the sounds.
	NoSounds bool
	// Note is a comment before the first cue. Only VTT has comments.
	Note string
}

// withDefaults replaces zero and unusable values, such as seven columns.
func (o Options) withDefaults() Options {
	o.MaxColumns = max(cmp.Or(max(o.MaxColumns, 0), 42), 8)
	o.MaxLines = cmp.Or(max(o.MaxLines, 0), 2)
	if !(o.MaxSeconds > 0) {
		o.MaxSeconds = 7
	}
	if !(o.MaxCPS > 0) {
		o.MaxCPS = 20
	}
	return o
}

// page is one cue as displayed.
type page struct {
	start, end float64
	event      bool
	voices     []voice // several if people speak simultaneously
}

// voice is one speaker's part of a page.
type voice struct {
	speaker string
	atoms   []atom
	lines   []string
}

// width returns the sum of the columns of a page's lines.
func (p page) width() int {
	n := 0
	for _, v := range p.voices {
		n += total(v.atoms)
	}
	return n
}

// lines returns the number of a page's lines.
func (p page) lines() int {
	n := 0
	for _, v := range p.voices {
		n += len(v.lines)
	}
	return n
}

// has reports whether one of a page's voices is the speaker's.
func (p page) has(speaker string) bool {
	return slices.ContainsFunc(p.voices, func(v voice) bool { return v.speaker == speaker })
}

// typesetter lays out cues for one format.
type typesetter struct {
	Options
	// name returns the number of columns that the format writes before the
	// first line of a speaker's text.
	name func(speaker string) int
}

// layout splits cues into pages that fit the options, in order of time and
// without overlap. name returns the columns before a speaker's text.
func layout(cues []Cue, o Options, name func(speaker string) int) []page {
	t := typesetter{o.withDefaults(), name}
	var speech, sounds []Cue
	for _, c := range clean(cues) {
		if c.Event {
			sounds = append(sounds, c)
		} else {
			speech = append(speech, c)
		}
	}
	several := slices.ContainsFunc(speech, func(c Cue) bool { return c.Speaker != speech[0].Speaker || !numbered.MatchString(c.Speaker) })
	if o.NoSpeakers || !o.LoneSpeaker && !several { // all by one speaker, who only has a number
		for i := range speech {
			speech[i].Speaker = ""
		}
	}
	var pages []page
	for _, c := range speech {
		all := voice{speaker: c.Speaker, atoms: atoms(c, t.MaxColumns-t.lead(c.Speaker, 0))}
		pages = append(pages, t.pages(c.Start, c.End, all, t.MaxLines, 0)...)
	}
	pages = t.together(pages)
	if !o.NoSounds {
		pages = t.withSounds(pages, sounds)
	}
	return t.timed(pages)
}

// numbered matches a generated speaker name.
var numbered = regexp.MustCompile(`^(SPEAKER|CHANNEL)_\d+$`)

// lead returns the number of columns before the text of a speaker's first line:
// the columns of the name and further ones, but at most half of the line.
func (t typesetter) lead(speaker string, further int) int {
	return min(t.name(speaker)+further, t.MaxColumns/2)
}

func byStart(a, b page) int { return cmp.Compare(a.start, b.start) }

// columns returns a text's width on a terminal or in a subtitle's grid: two for
// each wide character (Chinese, Japanese, Korean), none for combining marks.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0x300:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether a character takes two columns (East Asian Width W, F).
func wide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}
