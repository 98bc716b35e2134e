package assemble

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/engine/decode"
)

// spokenSegment is a transcript segment with the number of its speaker.
type spokenSegment struct {
	asr.Segment
	speaker int
}

// assignSpeakers assigns each segment the speaker who covers most of it. If the
// segment has words and the speaker changes inside it, it is split at a word
// border. A segment outside all turns gets the nearest turn's speaker.
func assignSpeakers(segments []asr.Segment, turns []diarize.Turn) []spokenSegment {
	index := newTurnIndex(turns)
	out := make([]spokenSegment, 0, len(segments))
	for i, s := range segments {
		switch n := len(out); {
		case n > 0 && (s.End-s.Start < sliver || continues(segments[i-1], s)) && !decode.EndsSentence(segments[i-1].Text, s.Text):
			out = append(out, spokenSegment{s, out[n-1].speaker})
		case len(s.Words) == 0:
			out = append(out, spokenSegment{s, index.speaker(s.Start, s.End)})
		default:
			out = append(out, splitBySpeaker(s, index)...)
		}
	}
	return out
}

// A part of a sentence with another speaker has at least minSplitWords words
// and minSplitSeconds, unless it is a complete sentence: shorter parts are the
// blurred edge of a turn, and too short to recognize a voice.
const (
	minSplitWords   = 2
	minSplitSeconds = 0.6
	// sliver is the least length of a segment inside a sentence that may have
	// another speaker than the text before it.
	sliver = 0.1
	// samePause is the greatest pause before such a segment of one word.
	samePause = 1.5
)

// continues reports whether a segment is one word in lower case that follows the
// text before it closely: a part of its clause that is too short to tell a voice.
func continues(before, s asr.Segment) bool {
	first, _ := utf8.DecodeRuneInString(s.Text)
	return len(s.Words) == 1 && unicode.IsLower(first) && s.Start-before.End < samePause
}

func splitBySpeaker(s asr.Segment, index *turnIndex) []spokenSegment {
	speakers := make([]int, len(s.Words))
	for i, w := range s.Words {
		speakers[i] = index.speaker(w.Start, w.End)
	}
	smooth(speakers, s.Words, index.speaker(s.Start, s.End))
	var out []spokenSegment
	for from := 0; from < len(speakers); {
		to := runEnd(speakers, from)
		part := s
		if from > 0 || to < len(speakers) {
			part.Words = s.Words[from:to]
			part.Tokens = tokensOf(s, from, to)
			part.Text = joinWords(s, from, to)
			if from > 0 {
				part.Start = s.Words[from].Start
			}
			if to < len(s.Words) {
				part.End = s.Words[to-1].End
			}
		}
		out = append(out, spokenSegment{part, speakers[from]})
		from = to
	}
	return out
}

func tokensOf(s asr.Segment, from, to int) []int32 {
	first, last := 0, 0
	for i, w := range s.Words[:to] {
		if last += w.Tokens; i < from {
			first = last
		}
	}
	if last > len(s.Tokens) {
		return nil
	}
	return s.Tokens[first:last]
}

// smooth assigns runs shorter than minSplitWords or minSplitSeconds, unless
// delimited by sentence ends, to the speaker before them (a first run: after
// it).
func smooth(speakers []int, words []asr.Word, whole int) {
	for from := 0; from < len(speakers); {
		to := runEnd(speakers, from)
		sentence := endsSentence(words, to-1) && (from == 0 || endsSentence(words, from-1))
		short := to-from < minSplitWords || words[to-1].End-words[from].Start < minSplitSeconds
		if short && !sentence {
			s := whole
			if from > 0 {
				s = speakers[from-1]
			} else if to < len(speakers) {
				s = speakers[to]
			}
			for i := from; i < to; i++ {
				speakers[i] = s
			}
		}
		from = to
	}
}

// runEnd returns the end of the run of words with the same speaker that begins
// at word start.
func runEnd(speakers []int, from int) int {
	to := from + 1
	for to < len(speakers) && speakers[to] == speakers[from] {
		to++
	}
	return to
}

func endsSentence(words []asr.Word, i int) bool {
	next := ""
	if i+1 < len(words) {
		next = words[i+1].Text
	}
	return decode.EndsSentence(words[i].Text, next)
}

// joinWords returns words from … to−1 as in the segment's own text.
func joinWords(s asr.Segment, from, to int) string {
	start, end, at := 0, len(s.Text), 0
	for i, w := range s.Words {
		j := strings.Index(s.Text[at:], strings.TrimSpace(w.Text))
		if j < 0 { // words and text disagree: join the words themselves
			var texts []string
			for _, w := range s.Words[from:to] {
				texts = append(texts, strings.TrimSpace(w.Text))
			}
			if strings.Contains(strings.TrimSpace(s.Text), " ") {
				return strings.Join(texts, " ")
			}
			return strings.Join(texts, "")
		}
		if i == from {
			start = at + j
		}
		if i == to {
			end = at + j
			break
		}
		at += j + len(strings.TrimSpace(w.Text))
	}
	return strings.TrimSpace(s.Text[start:end])
}

// turnIndex finds the turns that overlap a stretch of time.
type turnIndex struct {
	turns  []diarize.Turn // by start
	latest []diarize.Turn // the turn with the latest end up to this index
}

func newTurnIndex(turns []diarize.Turn) *turnIndex {
	x := &turnIndex{turns: slices.Clone(turns), latest: make([]diarize.Turn, len(turns))}
	slices.SortStableFunc(x.turns, func(a, b diarize.Turn) int { return cmp.Compare(a.Start, b.Start) })
	for i, t := range x.turns {
		if x.latest[i] = t; i > 0 && x.latest[i-1].End >= t.End {
			x.latest[i] = x.latest[i-1]
		}
	}
	return x
}

// speaker returns the speaker who covers most of start … end (of two, the
// earlier one), otherwise the speaker of the nearest turn, otherwise 0.
func (x *turnIndex) speaker(start, end float64) int {
	first := sort.Search(len(x.turns), func(i int) bool { return x.latest[i].End > start })
	best, most, last := 0, 0.0, first
	cover := map[int]float64{} // by speaker
	for ; last < len(x.turns) && x.turns[last].Start < end; last++ {
		t := x.turns[last]
		cover[t.Speaker] += max(0, min(end, t.End)-max(start, t.Start))
	}
	for _, t := range x.turns[first:last] {
		if c := cover[t.Speaker]; c > most+1e-9 {
			best, most = t.Speaker, c
		}
	}
	if most > 0 {
		return best
	}
	// No turn overlaps the stretch: the one before it is latest[first-1], the
	// next one begins at last.
	switch {
	case last < len(x.turns) && (first == 0 || x.turns[last].Start-end < start-x.latest[first-1].End):
		return x.turns[last].Speaker
	case first == 0:
		return 0
	}
	return x.latest[first-1].Speaker
}

// crowd holds the stretches in which several speakers talk, by time.
type crowd [][2]float64

// newCrowd returns the stretches in which turns, ordered by time, overlap.
func newCrowd(turns []diarize.Turn) (c crowd) {
	reach := 0.0
	for _, t := range turns {
		if end := min(reach, t.End); t.Start < end {
			if n := len(c); n > 0 && t.Start <= c[n-1][1] {
				c[n-1][1] = max(c[n-1][1], end)
			} else {
				c = append(c, [2]float64{t.Start, end})
			}
		}
		reach = max(reach, t.End)
	}
	return c
}

// covers reports whether at least half of start … end lies in the stretches.
func (c crowd) covers(start, end float64) bool {
	i := sort.Search(len(c), func(i int) bool { return c[i][1] > start })
	inside := 0.0
	for ; i < len(c) && c[i][0] < end; i++ {
		inside += min(end, c[i][1]) - max(start, c[i][0])
	}
	return inside > 0 && inside >= (end-start)/2
}
