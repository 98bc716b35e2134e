package subtitle

import (
	"cmp"
	"regexp"
	"slices"
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
	// MaxCPS is the reading speed in characters (columns) a second; 0 means 20. A cue
	// stays until it can be read at this speed, if the next one is late enough.
	MaxCPS float64
	// NoSpeakers leaves the speakers' names out.
	NoSpeakers bool
	// LoneSpeaker keeps the number of a speaker who is the only one (SPEAKER_0), which is
	// left out otherwise.
	LoneSpeaker bool
	// NoSounds leaves the sounds out.
	NoSounds bool
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
	if !(o.MaxCPS > 0) {
		o.MaxCPS = 20
	}
	return o
}

// page is one cue as it will be shown.
type page struct {
	start, end float64
	event      bool
	voices     []voice // several where several speak at once
}

// voice is the part of one speaker in a page.
type voice struct {
	speaker string
	atoms   []atom
	lines   []string
}

// width is the number of a page's columns in all its lines.
func (p page) width() int {
	n := 0
	for _, v := range p.voices {
		n += total(v.atoms)
	}
	return n
}

// lines is the number of a page's lines.
func (p page) lines() int {
	n := 0
	for _, v := range p.voices {
		n += len(v.lines)
	}
	return n
}

// said reports whether one of a page's voices is the speaker's.
func (p page) said(speaker string) bool {
	return slices.ContainsFunc(p.voices, func(v voice) bool { return v.speaker == speaker })
}

// typesetter lays cues out in a format's way.
type typesetter struct {
	Options
	// name is the number of columns that the format writes before the first line of a
	// speaker's text.
	name func(speaker string) int
}

// layout splits cues into pages that fit the options, in order of time, none over
// another. name is the number of columns that the format writes before a speaker's text.
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
	if o.NoSpeakers || !o.LoneSpeaker && lone(speech) {
		for i := range speech {
			if speech[i].Speaker != demoSpeaker || o.NoSpeakers {
				speech[i].Speaker = ""
			}
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

// numbered is a name that was made up for a speaker.
var numbered = regexp.MustCompile(`^(SPEAKER|CHANNEL)_\d+$`)

// lone reports whether all that is said is one speaker's, who has a number only; the
// note of a demonstration aside.
func lone(speech []Cue) bool {
	said := slices.DeleteFunc(slices.Clone(speech), func(c Cue) bool { return c.Speaker == demoSpeaker })
	return !slices.ContainsFunc(said, func(c Cue) bool { return c.Speaker != said[0].Speaker || !numbered.MatchString(c.Speaker) })
}

// lead is the number of columns before a speaker's first line: the name, and further
// ones. They may not leave less than half of the line.
func (t typesetter) lead(speaker string, further int) int {
	return min(t.name(speaker)+further, t.MaxColumns/2)
}

func byStart(a, b page) int { return cmp.Compare(a.start, b.start) }
