package corrections

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// Apply applies the effective changes of a log to a result, whose speakers keep
// their original names; see Rename. A segment that is cut off has a new id: the
// largest original one plus the version of the cut. The number of speakers and
// the list of embeddings change with them, but no embedding is computed anew.
// Errors wrap ErrChange.
func Apply(r *spec.Result, log []Entry) error {
	e := editor{result: r, recognized: map[int]spec.Segment{}}
	r.Segments = slices.Clone(r.Segments)
	for _, s := range r.Segments {
		e.largest = max(e.largest, s.ID)
	}
	moved := false
	for _, entry := range Effective(log) {
		if err := e.apply(entry); err != nil {
			return err
		}
		moved = moved || entry.Op == Assign || entry.Op == Join
	}
	if moved && r.Ran.Diarize {
		e.countSpeakers()
	}
	return nil
}

// Fits returns an error that wraps ErrChange if the texts or names of a change
// are of segments or speakers that a result does not have: they would be lost.
func (c Change) Fits(r *spec.Result) error {
	has := map[string]bool{}
	for _, s := range r.Segments {
		has[strconv.Itoa(s.ID)], has[s.Speaker] = true, true
	}
	for _, t := range r.DiarizeSegments {
		has[t.Speaker] = true
	}
	for field, entries := range map[string]map[string]*string{"texts": c.Texts, "speakers": c.Speakers} {
		for key, value := range entries {
			if value != nil && !has[key] {
				return refuse("%s: there is no segment or speaker %s", field, spec.Shorten(key))
			}
		}
	}
	return nil
}

// Rename replaces a result's speakers by their names.
func Rename(r *spec.Result, names map[string]string) {
	rename := func(speaker *string) {
		if name, ok := names[*speaker]; ok {
			*speaker = name
		}
	}
	for i := range r.Segments {
		rename(&r.Segments[i].Speaker)
	}
	for i := range r.DiarizeSegments {
		rename(&r.DiarizeSegments[i].Speaker)
	}
}

// editor applies changes to a result.
type editor struct {
	result  *spec.Result
	largest int // id
	// recognized holds segments as they were before their text was changed, by
	// id. A cut or joined segment counts as recognized.
	recognized map[int]spec.Segment
}

func (e *editor) apply(c Entry) error {
	if c.Op == Annotate {
		e.setTexts(c.Texts)
		return nil
	}
	i := slices.IndexFunc(e.result.Segments, func(s spec.Segment) bool { return s.ID == *c.Segment })
	if i < 0 {
		return refuse("segment: there is no segment %d", *c.Segment)
	}
	switch c.Op {
	case Assign:
		e.assign(i, c.Speaker)
		return nil
	case Split:
		return e.split(i, c.At, e.largest+int(c.Version))
	default:
		return e.join(i)
	}
}

// setTexts sets texts by segment ids; nil restores the recognized one. A
// segment keeps the words that its text still contains, in their order.
func (e *editor) setTexts(texts map[string]*string) {
	if len(texts) == 0 {
		return
	}
	for i := range e.result.Segments {
		s := &e.result.Segments[i]
		text, ok := texts[strconv.Itoa(s.ID)]
		if !ok {
			continue
		}
		recognized, changed := e.recognized[s.ID]
		if !changed {
			recognized = *s
			e.recognized[s.ID] = recognized
		}
		s.Text, s.Words = recognized.Text, recognized.Words
		if text == nil || *text == s.Text {
			continue
		}
		s.Text = *text
		places := placesOf(s.Text, recognized.Words)
		if s.Words != nil {
			s.Words = []spec.Word{}
		}
		for k, w := range recognized.Words {
			if places[k] >= 0 {
				s.Words = append(s.Words, w)
			}
		}
	}
}

// placesOf returns the byte offsets of words in a text, in their order; −1 for
// a word that the text does not contain.
func placesOf(text string, words []spec.Word) []int {
	places, at := make([]int, len(words)), 0
	for k, w := range words {
		word := strings.TrimSpace(w.Word)
		places[k] = strings.Index(text[at:], word)
		if word == "" {
			places[k] = -1
		}
		if places[k] >= 0 {
			places[k] += at
			at = places[k] + len(word)
		}
	}
	return places
}

// assign changes the speaker of segment i, and of the turns during it.
func (e *editor) assign(i int, speaker string) {
	s := &e.result.Segments[i]
	old := s.Speaker
	s.Speaker = speaker
	if old != speaker && e.result.Ran.Diarize {
		e.moveTurns(*s, old)
	}
}

// moveTurns takes the time of a segment from a speaker's turns and gives it to
// the segment's speaker. It also moves the rest of a turn in which the former
// speaker has no other segment.
func (e *editor) moveTurns(s spec.Segment, old string) {
	moved := spec.Turn{Start: s.Start, End: s.End, Speaker: s.Speaker}
	var turns []spec.Turn
	for _, t := range e.result.DiarizeSegments {
		if t.Speaker != old || t.End <= s.Start || t.Start >= s.End {
			turns = append(turns, t)
			continue
		}
		for _, rest := range []spec.Turn{{Start: t.Start, End: s.Start, Speaker: old}, {Start: s.End, End: t.End, Speaker: old}} {
			switch {
			case rest.End <= rest.Start:
			case e.speaks(rest):
				turns = append(turns, rest)
			default:
				moved.Start, moved.End = min(moved.Start, rest.Start), max(moved.End, rest.End)
			}
		}
	}
	turns = slices.DeleteFunc(turns, func(t spec.Turn) bool { // touching turns become one turn
		touches := t.Speaker == moved.Speaker && t.Start <= moved.End && t.End >= moved.Start
		if touches {
			moved.Start, moved.End = min(moved.Start, t.Start), max(moved.End, t.End)
		}
		return touches
	})
	at := slices.IndexFunc(turns, func(t spec.Turn) bool { return t.Start > moved.Start })
	if at < 0 {
		at = len(turns)
	}
	e.result.DiarizeSegments = slices.Insert(turns, at, moved)
}

// speaks reports whether the speaker of a turn has a segment during it.
func (e *editor) speaks(t spec.Turn) bool {
	return slices.ContainsFunc(e.result.Segments, func(s spec.Segment) bool {
		return s.Speaker == t.Speaker && s.Start < t.End && s.End > t.Start
	})
}

// split cuts segment i after at characters; the rest becomes segment id.
func (e *editor) split(i, at, id int) error {
	left := e.result.Segments[i]
	cut := 0 // bytes
	for range at {
		_, size := utf8.DecodeRuneInString(left.Text[cut:])
		cut += size
	}
	whole, right := left.Text, left
	right.ID = id
	left.Text, right.Text = strings.TrimSpace(whole[:cut]), strings.TrimSpace(whole[cut:])
	if left.Text == "" || right.Text == "" {
		return refuse("at: segment %d has no text on both sides of character %d", left.ID, at)
	}
	first, inside := len(left.Words), insideWord(whole, cut) // first of the right side
	for k, place := range placesOf(whole, left.Words) {
		inside = inside || place >= 0 && place < cut && place+len(strings.TrimSpace(left.Words[k].Word)) > cut
		if place >= cut {
			first = k
			break
		}
	}
	if inside {
		return refuse("at: character %d of segment %d is inside a word", at, left.ID)
	}
	if left.Words != nil {
		left.Words, right.Words = slices.Clone(left.Words[:first]), slices.Clone(right.Words[first:])
	}
	left.End, right.Start = cutTimes(left, right)
	delete(e.recognized, left.ID)
	e.result.Segments[i] = left
	next := i + 1
	for next < len(e.result.Segments) && e.result.Segments[next].Start < right.Start {
		next++
	}
	e.result.Segments = slices.Insert(e.result.Segments, next, right)
	return nil
}

// insideWord reports whether a byte offset of a text is between two letters or
// digits of a word, before a mark, or within an emoji of several characters.
func insideWord(text string, at int) bool {
	in := func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) && !spec.Unspaced(r) }
	const joiner = '\u200d'
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return in(before) && in(after) || before == joiner || after == joiner || unicode.Is(unicode.M, after) || after >= '🏻' && after <= '🏿'
}

// cutTimes returns the end of the left and the start of the right part of a
// segment: the times of the words at the cut, or else times interpolated by
// letters. Both parts still have the times of the whole segment.
func cutTimes(left, right spec.Segment) (end, start float64) {
	l, r := len(left.Words), len(right.Words)
	switch {
	case l > 0 && r > 0:
		return left.Words[l-1].End, right.Words[0].Start
	case l > 0:
		return left.Words[l-1].End, left.Words[l-1].End
	case r > 0:
		return right.Words[0].Start, right.Words[0].Start
	}
	before, after := utf8.RuneCountInString(left.Text), utf8.RuneCountInString(right.Text)
	at := left.Start + (left.End-left.Start)*float64(before)/float64(before+after)
	at = math.Round(at*100) / 100 // as results have times
	at = min(max(at, left.Start), left.End)
	return at, at
}

// join joins segment i and the next one. The speaker is the first one's.
func (e *editor) join(i int) error {
	if i+1 == len(e.result.Segments) {
		return refuse("segment: no segment follows %d", e.result.Segments[i].ID)
	}
	left, right := e.result.Segments[i], e.result.Segments[i+1]
	if l := len(left.Words); l > 0 && len(right.Words) > 0 && right.Words[0].Start < left.Words[l-1].Start {
		return refuse("segment: segment %d begins before the last word of %d", right.ID, left.ID)
	}
	if left.Speaker != "" && right.Speaker != left.Speaker {
		e.assign(i+1, left.Speaker)
	}
	before, after := utf8.RuneCountInString(left.Text), utf8.RuneCountInString(right.Text)
	left.Speaker = cmp.Or(left.Speaker, right.Speaker)
	if left.Words != nil || right.Words != nil {
		left.Words = slices.Concat([]spec.Word{}, left.Words, right.Words)
	}
	if left.Confidence != nil && right.Confidence != nil && before+after > 0 {
		left.Confidence = new((*left.Confidence*float64(before) + *right.Confidence*float64(after)) / float64(before+after))
	}
	left.Text += spec.Separated(left.Text, right.Text)
	left.End, left.Measures = max(left.End, right.End), nil
	delete(e.recognized, left.ID)
	e.result.Segments[i] = left
	e.result.Segments = slices.Delete(e.result.Segments, i+1, i+2)
	return nil
}

// countSpeakers leaves out speakers who no longer have a segment or a turn.
func (e *editor) countSpeakers() {
	r := e.result
	speakers := map[string]bool{}
	for _, t := range r.DiarizeSegments {
		speakers[t.Speaker] = true
	}
	for _, s := range r.Segments {
		if s.Speaker != "" {
			speakers[s.Speaker] = true
		}
	}
	r.NumSpeakers, r.NumSpeakersProbability = len(speakers), nil
	r.SpeakerEmbeddings = slices.DeleteFunc(slices.Clone(r.SpeakerEmbeddings), func(s spec.SpeakerEmbedding) bool { return !speakers[s.SpeakerID] })
}
