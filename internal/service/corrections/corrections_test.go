package corrections_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/spec"
)

// call is a conversation: Chinese and English, and a segment without words.
func call() *spec.Result {
	word := func(w string, start, end float64) spec.Word {
		return spec.Word{Word: w, Start: start, End: end, Probability: 1}
	}
	return &spec.Result{
		Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 2,
		SpeakerEmbeddings: []spec.SpeakerEmbedding{{SpeakerID: "SPEAKER_0"}, {SpeakerID: "SPEAKER_1"}},
		Segments: []spec.Segment{
			{ID: 0, Start: 1, End: 2, Text: "I bought the car", Speaker: "SPEAKER_0", Words: []spec.Word{word(" I", 1, 1.1), word(" bought", 1.1, 1.4), word(" the", 1.4, 1.6), word(" car", 1.6, 2)}},
			{ID: 1, Start: 2, End: 3, Text: "last season.", Speaker: "SPEAKER_1", Words: []spec.Word{word(" last", 2, 2.4), word(" season.", 2.5, 3)}},
			{ID: 2, Start: 4, End: 5, Text: "你好吗", Speaker: "SPEAKER_1", Words: []spec.Word{word("你", 4, 4.2), word("好", 4.3, 4.6), word("吗", 4.6, 5)}},
			{ID: 3, Start: 6, End: 8, Text: "no words here", Speaker: "SPEAKER_0"},
		},
		DiarizeSegments: []spec.Turn{{Start: 0.9, End: 2.1, Speaker: "SPEAKER_0"}, {Start: 2, End: 5.2, Speaker: "SPEAKER_1"}, {Start: 6, End: 8, Speaker: "SPEAKER_0"}},
	}
}

// logOf numbers changes.
func logOf(changes ...corrections.Change) (log []corrections.Entry) {
	for i, c := range changes {
		log = append(log, corrections.Entry{Version: int64(i + 1), Change: c})
	}
	return log
}

func assign(segment int, speaker string) corrections.Change {
	return corrections.Change{Op: corrections.Assign, Segment: &segment, Speaker: speaker}
}

func split(segment, at int) corrections.Change {
	return corrections.Change{Op: corrections.Split, Segment: &segment, At: at}
}

func join(segment int) corrections.Change {
	return corrections.Change{Op: corrections.Join, Segment: &segment}
}

func texts(pairs ...string) corrections.Change {
	c := corrections.Change{Op: corrections.Annotate, Texts: map[string]*string{}}
	for i := 0; i < len(pairs); i += 2 {
		c.Texts[pairs[i]] = &pairs[i+1]
	}
	return c
}

var undo = corrections.Change{Op: corrections.Undo}

// shown describes the segments of a result.
func shown(r *spec.Result) (lines []string) {
	for _, s := range r.Segments {
		words := ""
		for _, w := range s.Words {
			words += strings.TrimSpace(w.Word) + "|"
		}
		lines = append(lines, fmt.Sprintf("%d %g-%g %s %q %s", s.ID, s.Start, s.End, s.Speaker, s.Text, words))
	}
	return lines
}

func TestApply(t *testing.T) {
	turn := func(start, end float64, speaker int) spec.Turn {
		return spec.Turn{Start: start, End: end, Speaker: spec.SpeakerName(speaker)}
	}
	for name, c := range map[string]struct {
		log   []corrections.Change
		lines []string // of the segments that differ
		turns []spec.Turn
		count int
	}{
		"a sentence cut by the diarizer is joined": {
			[]corrections.Change{join(0)},
			[]string{`0 1-3 SPEAKER_0 "I bought the car last season." I|bought|the|car|last|season.|`},
			[]spec.Turn{turn(0.9, 3, 0), turn(3, 5.2, 1), turn(6, 8, 0)},
			2,
		},
		"a sentence of two is split, and its end given to a third": {
			[]corrections.Change{split(0, 9), assign(4, "SPEAKER_2")},
			[]string{`0 1-1.4 SPEAKER_0 "I bought" I|bought|`, `4 1.4-2 SPEAKER_2 "the car" the|car|`},
			[]spec.Turn{turn(0.9, 1.4, 0), turn(1.4, 2.1, 2), turn(2, 5.2, 1), turn(6, 8, 0)},
			3,
		},
		"a speaker who has no sentence left is gone": {
			[]corrections.Change{assign(1, "SPEAKER_0"), assign(2, "SPEAKER_0")},
			[]string{`1 2-3 SPEAKER_0 "last season." last|season.|`, `2 4-5 SPEAKER_0 "你好吗" 你|好|吗|`},
			[]spec.Turn{turn(0.9, 5.2, 0), turn(6, 8, 0)},
			1,
		},
		"Chinese is cut without a space, and a text without words by its letters": {
			[]corrections.Change{split(2, 1), split(3, 3)},
			[]string{`2 4-4.2 SPEAKER_1 "你" 你|`, `4 4.3-5 SPEAKER_1 "好吗" 好|吗|`, `3 6-6.33 SPEAKER_0 "no" `, `5 6.33-8 SPEAKER_0 "words here" `},
			nil, 2,
		},
		"a cut is joined as it was, Chinese without a space": {
			[]corrections.Change{split(2, 1), join(2), split(0, 9), join(0)}, []string{}, nil, 2,
		},
		"a corrected text is cut where it has the words": {
			[]corrections.Change{texts("0", "I sold the red car"), split(0, 7)},
			[]string{`0 1-1.1 SPEAKER_0 "I sold" I|`, `5 1.4-2 SPEAKER_0 "the red car" the|car|`},
			nil, 2,
		},
		"the last text counts, and its words are all there": {
			[]corrections.Change{texts("0", "gone"), texts("0", "I bought a car")},
			[]string{`0 1-2 SPEAKER_0 "I bought a car" I|bought|car|`},
			nil, 2,
		},
		"undo reverts one change after the other": {
			[]corrections.Change{texts("0", "gone"), split(3, 3), join(0), undo, undo}, []string{`0 1-2 SPEAKER_0 "gone" `}, nil, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := call()
			require.NoError(t, corrections.Apply(r, logOf(c.log...)))
			before := shown(call())
			assert.Equal(t, c.lines, slices.DeleteFunc(shown(r), func(line string) bool { return slices.Contains(before, line) }))
			if c.turns == nil {
				c.turns = call().DiarizeSegments
			}
			assert.Equal(t, c.turns, r.DiarizeSegments)
			assert.Equal(t, c.count, r.NumSpeakers)
			assert.LessOrEqual(t, len(r.SpeakerEmbeddings), c.count)
		})
	}
}

func TestChangesThatDoNotFit(t *testing.T) {
	for _, c := range []corrections.Change{
		{Op: "move"},
		{Op: corrections.Join},
		{Op: corrections.Undo, Segment: new(1)},
		{Op: corrections.Annotate, At: 1},
		split(0, 0), assign(0, ""), assign(0, " x"), assign(0, "\u200b"),
		{Op: corrections.Annotate, Speakers: map[string]*string{"SPEAKER_0": new("A\nB")}},
		assign(0, strings.Repeat("x", 65)), texts("x", "y"), texts("01", "y"), texts("0", strings.Repeat("x", 10_001)),
	} {
		assert.ErrorIs(t, c.Check(), corrections.ErrChange, "%+v", c)
	}
	for _, text := range []string{"नमस्ते", "re\u0301sume", "ก็", "👩\u200d👧", "👍🏽"} { // one word or character
		for at := 1; at < utf8.RuneCountInString(text); at++ {
			assert.ErrorIs(t, corrections.Apply(call(), logOf(texts("0", text), split(0, at))), corrections.ErrChange, "%s at %d", text, at)
		}
	}
	overlapping := call()
	overlapping.Segments[1].Words[0].Start = 1.5
	for _, c := range []corrections.Change{split(0, 16), split(0, 99), split(0, 4), split(3, 5), join(3), join(9), assign(9, "x"), join(0)} {
		require.NoError(t, c.Check())
		assert.ErrorIs(t, corrections.Apply(overlapping, logOf(c)), corrections.ErrChange, "%+v", c)
	}
}

// TestCorrectionsLoseNoWord: no sequence of changes loses a word or the order
// of times, the stored form replays to the same result, and undoing everything
// restores the original. The original itself never changes.
func TestCorrectionsLoseNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		original := call()
		var log []corrections.Entry
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			r := call()
			require.NoError(t, corrections.Apply(r, log))
			s := rapid.SampledFrom(r.Segments).Draw(t, "segment")
			c := rapid.SampledFrom([]corrections.Change{
				assign(s.ID, spec.SpeakerName(rapid.IntRange(0, 3).Draw(t, "speaker"))), split(s.ID, rapid.IntRange(1, 30).Draw(t, "at")), join(s.ID), undo,
			}).Draw(t, "change")
			next := append(slices.Clip(log), corrections.Entry{Version: corrections.Version(log) + 1, Change: c})
			if corrections.Apply(call(), next) == nil {
				log = next
			}
		}
		r := *original
		require.NoError(t, corrections.Apply(&r, log))
		require.Equal(t, call(), original)
		letters, words := wordsOf(original)
		lettersNow, wordsNow := wordsOf(&r)
		require.Equal(t, letters, lettersNow)
		require.Equal(t, words, wordsNow)
		for i, s := range r.Segments {
			require.LessOrEqual(t, s.Start, s.End)
			require.True(t, i == 0 || r.Segments[i-1].Start <= s.Start)
			for _, at := range []float64{s.Start, s.End} {
				speaks := func(u spec.Turn) bool { return u.Speaker == s.Speaker && u.Start <= at && u.End >= at }
				require.True(t, slices.ContainsFunc(r.DiarizeSegments, speaks), "%v has no turn at %g in %v", s, at, r.DiarizeSegments)
			}
		}
		require.True(t, slices.IsSortedFunc(r.DiarizeSegments, func(a, b spec.Turn) int { return int(math.Copysign(1, a.Start-b.Start)) }))

		stored, err := json.Marshal(log)
		require.NoError(t, err)
		var again []corrections.Entry
		require.NoError(t, json.Unmarshal(stored, &again))
		replayed := call()
		require.NoError(t, corrections.Apply(replayed, again))
		require.Equal(t, &r, replayed)

		for range corrections.Effective(log) {
			log = append(log, corrections.Entry{Version: corrections.Version(log) + 1, Change: undo})
		}
		undone := call()
		require.NoError(t, corrections.Apply(undone, log))
		require.Equal(t, original, undone)
	})
}

// wordsOf returns the letters of a result in order, and its words with times.
func wordsOf(r *spec.Result) (letters string, words []spec.Word) {
	for _, s := range r.Segments {
		letters += strings.ReplaceAll(s.Text, " ", "")
		words = append(words, s.Words...)
	}
	return letters, words
}
