package subtitle

import (
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/spec"
)

const (
	// slight is how long (seconds) two speakers must overlap to share a page.
	slight = 0.5
	// dash is written before the text of each speaker of a shared page.
	dash = "- "
	// least is a page's minimum duration (seconds), even among many pages.
	least = 0.002
)

// together returns pages of speech in order, without overlap: simultaneous
// speakers share a page, and a page that is too short is joined with the
// speaker's next one.
func (t typesetter) together(pages []page) []page {
	slices.SortStableFunc(pages, byStart)
	if t.MaxLines > 1 {
		pages = t.thin(pages)
	}
	var out []page
	for i, p := range pages {
		if len(out) == 0 {
			out = append(out, p)
			continue
		}
		last := &out[len(out)-1]
		next := math.Inf(1)
		if i+1 < len(pages) {
			next = pages[i+1].start
		}
		switch {
		case overlap(*last, p) > slight && t.share(last, p):
		case min(p.start-last.start, next-p.start) < shortest && t.join(last, p):
		default:
			last.end = min(last.end, p.start)
			out = append(out, p)
		}
	}
	return out
}

// overlap returns the seconds that two pages share; a starts first.
func overlap(a, b page) float64 { return min(a.end, b.end) - b.start }

// thin divides the pages of simultaneous speakers, so that two fit into one.
func (t typesetter) thin(pages []page) []page {
	crowded := make([]bool, len(pages))
	var open []int // pages that may overlap the next
	for i, p := range pages {
		open = slices.DeleteFunc(open, func(k int) bool { return pages[k].end <= p.start })
		for _, k := range open {
			if overlap(pages[k], p) > slight && !pages[k].has(p.voices[0].speaker) {
				crowded[i], crowded[k] = true, true
			}
		}
		open = append(open, i)
	}
	var out []page
	for i, p := range pages {
		if crowded[i] {
			out = append(out, t.pages(p.start, p.end, p.voices[0], t.MaxLines/2, len(dash))...)
		} else {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, byStart)
	return out
}

// share adds the voices of another page if there is room for them.
func (t typesetter) share(p *page, other page) bool {
	if p.has(other.voices[0].speaker) || p.lines()+other.lines() > t.MaxLines {
		return false
	}
	for _, v := range slices.Concat(p.voices, other.voices) {
		if t.name(v.speaker)+len(dash)+columns(v.lines[0]) > t.MaxColumns {
			return false
		}
	}
	p.voices = append(p.voices, other.voices...)
	p.end = max(p.end, other.end)
	return true
}

// join appends the same speaker's next page if there is room for it.
func (t typesetter) join(p *page, next page) bool {
	v, w := p.voices[0], next.voices[0]
	if len(p.voices) > 1 || v.speaker != w.speaker || next.start-p.end >= longPause || next.end-p.start > t.MaxSeconds {
		return false
	}
	all := slices.Concat(v.atoms, w.atoms)
	if seam := &all[len(v.atoms)]; seam.first {
		seam.space = strings.HasPrefix(spec.Separated(all[len(v.atoms)-1].text, seam.text), " ")
	}
	lines := t.wrap(all, t.lead(v.speaker, 0))
	if len(lines) > t.MaxLines {
		return false
	}
	*p = page{start: p.start, end: next.end, voices: []voice{{v.speaker, all, lines}}}
	return true
}

// withSounds adds a page for each sound in the first gap of speech in which the
// sound occurs; the page ends when speech or another sound begins. A sound
// that is only audible during speech gets none.
func (t typesetter) withSounds(speech []page, sounds []Cue) []page {
	var captions []page
	next := 0 // the first page of speech that has not ended
	for _, s := range sounds {
		at := s.Start
		if n := len(captions); n > 0 {
			at = max(at, captions[n-1].start+shortest)
		}
		for next < len(speech) && speech[next].end <= s.Start {
			next++
		}
		until := math.Inf(1) // the next speech
		for _, p := range speech[next:] {
			if p.start-at >= shortest {
				until = p.start
				break
			}
			at = max(at, p.end)
		}
		if at > s.End+shortest {
			continue
		}
		if n := len(captions); n > 0 {
			captions[n-1].end = min(captions[n-1].end, at)
		}
		all := atoms(s, t.MaxColumns)
		caption := t.pages(at, min(max(s.End, at), until), voice{atoms: all}, t.MaxLines, 0)[0]
		caption.event = true
		captions = append(captions, caption)
	}
	out := slices.Concat(speech, captions)
	slices.SortStableFunc(out, byStart)
	return out
}

// timed returns pages with readable times if gaps allow: a page is shown for a
// minimum time, which may delay the next one, and until it can be read.
func (t typesetter) timed(pages []page) []page {
	after := func(i int) float64 {
		if i < len(pages) {
			return pages[i].start
		}
		return math.Inf(1)
	}
	now := 0.0
	for i := range pages {
		p := &pages[i]
		p.start = max(p.start, now)
		next := after(i + 1)
		if short := p.start + shortest - next; short > 0 {
			wait := min(short, shortest, max(after(i+2)-shortest-next, 0))
			if next+wait < p.start+least { // no room at all: share it
				wait = p.start - next + max(min(shortest, (after(i+2)-p.start)/2), least)
			}
			next += wait
		}
		p.end = min(max(p.end, p.start+max(shortest, float64(p.width())/t.MaxCPS)), next)
		now = p.end
	}
	return pages
}
