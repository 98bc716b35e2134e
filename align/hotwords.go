package align

import (
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/engine/ctc"
)

// lateToken is the mean delay (s) of a word's first token after its start.
const lateToken = 0.1

// putSpotted inserts the spotted hotwords into the transcript in place of its
// words. Segments keep their times.
func putSpotted(t *asr.Transcript, windows []Recognition) {
	for _, h := range windows {
		for _, s := range h.Spotted {
			from := h.time(float64(s.First)*h.Rows.Shift) - lateToken
			to := h.time(float64(s.Last+1) * h.Rows.Shift)
			for i := range t.Segments {
				if seg := &t.Segments[i]; len(seg.Words) > 0 && seg.Start <= (from+to)/2 && (from+to)/2 < seg.End {
					putHotword(seg, asr.Word{Text: s.Text, Start: max(from, seg.Start), End: min(to, seg.End), Probability: math.Exp(s.LogProb)})
					break
				}
			}
		}
	}
}

// putHotword inserts a word into a segment. It replaces the words that lie
// mostly within its time, or the word that it lies in.
func putHotword(s *asr.Segment, w asr.Word) {
	first, end := len(s.Words), 0
	for i, old := range s.Words {
		over := min(old.End, w.End) - max(old.Start, w.Start)
		if over > 0 && (2*over >= old.End-old.Start || 2*over >= w.End-w.Start) {
			first, end = min(first, i), i+1
		}
	}
	if first >= end {
		return
	}
	key, joined := keyOf(w.Text), ""
	for _, old := range s.Words[first:end] {
		joined += keyOf(old.Text)
	}
	for _, near := range s.Words[max(first-1, 0):min(end+1, len(s.Words))] {
		if joined == strings.ReplaceAll(key, " ", "") || keyOf(near.Text) == key {
			return // the transcript already has the hotword
		}
	}
	from, to, ok := place(s, first, end)
	if !ok {
		return
	}
	last := s.Words[end-1]
	behind := last.Text[len(strings.TrimRightFunc(last.Text, func(r rune) bool { return !ctc.IsSolid(r) })):]
	s.Text = s.Text[:from] + w.Text + behind + s.Text[to:]
	w.Text, w.Start, w.End = w.Text+behind, s.Words[first].Start, last.End
	for _, old := range s.Words[first:end] {
		w.Tokens += old.Tokens
	}
	s.Words = slices.Replace(s.Words, first, end, w)
}

// place returns the bytes of a segment's words from first to end in its text.
func place(s *asr.Segment, first, end int) (from, to int, ok bool) {
	at := 0
	for i, w := range s.Words[:end] {
		n := strings.Index(s.Text[at:], w.Text)
		if n < 0 {
			return 0, 0, false
		}
		if i == first {
			from = at + n
		}
		at += n + len(w.Text)
	}
	return from, at, true
}
