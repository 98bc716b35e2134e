package scores

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// meeting is a case of testdata/meetings.py with the figures of MeetEval and
// jiwer: errors, length, substitutions, deletions, insertions, and further
// figures for scores that match speakers.
type meeting struct {
	Reference, Hypothesis []spoken
	Want                  map[string][]int
}

type spoken struct {
	Speaker string
	Start   float64 `json:"start_time"`
	End     float64 `json:"end_time"`
	Words   string
}

func segmentsOf(list []spoken) (out []Segment, text string) {
	for i, s := range list {
		out = append(out, Segment{s.Speaker, s.Start, s.End, strings.Fields(s.Words)})
		if i > 0 {
			text += " "
		}
		text += s.Words
	}
	return out, strings.TrimSpace(text)
}

func counts(e Errors) []int {
	return []int{e.Errors(), e.Reference, e.Substitutions, e.Deletions, e.Insertions}
}

// figures returns our figures of a score.
func (m meeting) figures(score string) []int {
	ref, refText := segmentsOf(m.Reference)
	hyp, hypText := segmentsOf(m.Hypothesis)
	switch score {
	case "cp":
		return counts(CP(ref, hyp))
	case "tcp0.5":
		return counts(TCP(ref, hyp, 0.5))
	case "tcp5":
		return counts(TCP(ref, hyp, 5))
	case "wer":
		return counts(CompareWords(strings.Fields(refText), strings.Fields(hypText)))
	case "cer":
		return counts(CompareWords(strings.Split(refText, ""), strings.Split(hypText, "")))
	}
	return nil
}

// compare compares our figures with the cases' and counts the equal figures by
// score.
func compare(t *testing.T, cases io.Reader) map[string]int {
	t.Helper()
	agree := map[string]int{}
	lines := bufio.NewScanner(cases)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var m meeting
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
		for score, want := range m.Want {
			if assert.Equal(t, want[:5], m.figures(score), "case %d, %s", n, score) {
				agree[score]++
			}
		}
	}
	require.NoError(t, lines.Err())
	return agree
}

// TestRecordedMeetings compares our figures with recorded ones of MeetEval and
// jiwer.
func TestRecordedMeetings(t *testing.T) {
	f, err := os.Open("testdata/meetings.jsonl")
	require.NoError(t, err)
	defer f.Close()
	agree := compare(t, f)
	assert.Len(t, agree, 5, "every score has cases")
}

func TestAlignChoosesFewestEdits(t *testing.T) {
	for _, c := range []struct {
		ref, hyp string
		want     []Edit
	}{
		{"", "", nil},
		{"a b", "", []Edit{{0, -1}, {1, -1}}},
		{"", "a", []Edit{{-1, 0}}},
		{"a b c", "a x c", []Edit{{0, 0}, {1, 1}, {2, 2}}},
		{"a b c d", "a c d e", []Edit{{0, 0}, {1, -1}, {2, 1}, {3, 2}, {-1, 3}}},
	} {
		got, ok := Align(strings.Fields(c.ref), strings.Fields(c.hyp))
		assert.True(t, ok)
		assert.Equal(t, c.want, got, "%q, %q", c.ref, c.hyp)
	}
	long := make([]string, 20_000)
	_, ok := Align(long, long)
	assert.False(t, ok, "too long to trace back")
}

func TestSpeakersOfWords(t *testing.T) {
	ref := []Segment{{"A", 0, 1, []string{"a", "b", "c"}}, {"B", 1, 2, []string{"d", "e"}}}
	hyp := []Segment{{"x", 0, 1, []string{"a", "b"}}, {"y", 1, 2, []string{"c", "q", "e", "f"}}}
	w, ok := SpeakersOfWords(ref, hyp)
	assert.True(t, ok)
	assert.Equal(t, WDER{Wrong: 1, Words: 5}, w, "c went to the other speaker; the replaced d counts, the added f does not")
	w, ok = SpeakersOfWords(ref, nil)
	assert.True(t, ok)
	assert.Zero(t, w)
}

func TestKeywordsCountOccurrences(t *testing.T) {
	f := Keywords(strings.Fields("new york is not new york city"), strings.Fields("york is new york new"), [][]string{{"new", "york"}, {"city"}, {"new"}, nil})
	assert.Equal(t, Counts{Hits: 3, Misses: 2}, f)
	assert.InDelta(t, 1, f.Precision(), 1e-12)
	assert.InDelta(t, 0.6, f.Recall(), 1e-12)
	assert.InDelta(t, 0.75, f.F1(), 1e-12)
	assert.InDelta(t, 1, Counts{}.F1(), 1e-12)
}

// With 20 speakers, speakers are matched by assignment, not by trying every
// order.
func TestTwentySpeakers(t *testing.T) {
	var ref, hyp []Segment
	for i := range 400 {
		k := i % 20
		s := Segment{string(rune('a' + k)), float64(i), float64(i + 1), strings.Fields(strings.Repeat(string(rune('A'+k))+" ", 5))}
		ref = append(ref, s)
		s.Speaker = string(rune('a' + (7*k+3)%20))
		hyp = append(hyp, s)
	}
	assert.Equal(t, Errors{Reference: 2000}, CP(ref, hyp))
	assert.Equal(t, Errors{Reference: 2000}, TCP(ref, hyp, 5))
}
