package subtitle

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/spec"
)

// parsed is a cue read back: times in milliseconds.
type parsed struct {
	start, end int64
	speaker    string
	lines      []string
}

var timing = regexp.MustCompile(`^(\d{2,}):(\d\d):(\d\d)[,.](\d{3}) --> (\d{2,}):(\d\d):(\d\d)[,.](\d{3})$`)

// parse reads SRT (numbered) or VTT like a strict player: blocks separated by
// blank lines, a timing line, at least one line of text.
func parse(text string, numbered bool) ([]parsed, error) {
	if !numbered {
		var ok bool
		if text, ok = strings.CutPrefix(text, "WEBVTT\n\n"); !ok {
			return nil, fmt.Errorf("no WEBVTT header")
		}
	}
	var out []parsed
	if text == "" {
		return nil, nil
	}
	if !strings.HasSuffix(text, "\n\n") {
		return nil, fmt.Errorf("the last block is open")
	}
	for i, block := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		lines := strings.Split(block, "\n")
		if numbered {
			if lines[0] != strconv.Itoa(i+1) {
				return nil, fmt.Errorf("block %d is numbered %q", i+1, lines[0])
			}
			lines = lines[1:]
		}
		if len(lines) < 2 {
			return nil, fmt.Errorf("block %d has no text: %q", i+1, block)
		}
		m := timing.FindStringSubmatch(lines[0])
		if m == nil {
			return nil, fmt.Errorf("block %d: timing %q", i+1, lines[0])
		}
		var p parsed
		for k, into := range []*int64{&p.start, &p.end} {
			var v [4]int64
			for j := range v {
				v[j], _ = strconv.ParseInt(m[1+4*k+j], 10, 64)
			}
			if v[1] > 59 || v[2] > 59 {
				return nil, fmt.Errorf("block %d: clock %q", i+1, lines[0])
			}
			*into = ((v[0]*60+v[1])*60+v[2])*1000 + v[3]
		}
		for _, line := range lines[1:] {
			if strings.TrimSpace(line) == "" || strings.Contains(line, "-->") {
				return nil, fmt.Errorf("block %d: line %q", i+1, line)
			}
		}
		p.lines = lines[1:]
		if numbered {
			for i := range p.lines {
				p.lines[i] = strings.NewReplacer(string(wordJoiner), "", "\u2067", "", "\u2069", "").Replace(p.lines[i])
			}
			if len(out) > 0 {
				p.speaker = out[len(out)-1].speaker // named where it changes
			}
			if rest, ok := strings.CutPrefix(p.lines[0], "[S"); ok {
				if name, text, ok := strings.Cut(rest, "] "); ok {
					p.speaker, p.lines[0] = "S"+name, text
				}
			}
		} else {
			if rest, ok := strings.CutPrefix(p.lines[0], "<v "); ok {
				name, text, ok := strings.Cut(rest, ">")
				if !ok {
					return nil, fmt.Errorf("block %d: open voice span", i+1)
				}
				p.speaker, p.lines[0] = html.UnescapeString(name), text
			}
			for i, line := range p.lines {
				if strings.ContainsAny(line, "<>") {
					return nil, fmt.Errorf("block %d: raw markup in %q", i+1, line)
				}
				p.lines[i] = html.UnescapeString(line)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// letters drops spaces, so that texts compare independently of line breaks.
func letters(s string) string { return strings.Join(strings.Fields(s), "") }

// check writes cues in both formats and parses them again.
func check(t require.TestingT, cues []Cue, o Options) {
	full := o.withDefaults()
	kept := clean(cues)
	for _, numbered := range []bool{true, false} {
		var b bytes.Buffer
		if numbered {
			require.NoError(t, SRT(&b, cues, o))
		} else {
			require.NoError(t, VTT(&b, cues, o))
		}
		require.True(t, utf8.Valid(b.Bytes()))
		got, err := parse(b.String(), numbered)
		require.NoError(t, err, b.String())
		var before int64
		text := map[rune]int{}
		for _, p := range got {
			assert.GreaterOrEqual(t, p.start, before, "no cue lies over another")
			assert.Greater(t, p.end, p.start)
			before = p.end
			assert.LessOrEqual(t, len(p.lines), full.MaxLines)
			for _, line := range p.lines {
				for _, r := range letters(line) {
					text[r]++
				}
				if columns(line) > full.MaxColumns && utf8.RuneCountInString(line) > 1 {
					t.Errorf("a line of %d columns, %d allowed: %q", columns(line), full.MaxColumns, line)
				}
			}
		}
		for _, c := range kept {
			if !c.Event {
				for _, r := range letters(c.Text) {
					text[r]--
				}
			}
		}
		for r, n := range text {
			if r != wordJoiner {
				assert.GreaterOrEqual(t, n, 0, "%q is lost", r)
			}
		}
	}
	var b bytes.Buffer
	require.NoError(t, writeTSV(&b, cues))
	assert.Equal(t, len(kept)+2, len(strings.Split(b.String(), "\n")))
	for _, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		assert.Equal(t, 3, strings.Count(line, "\t"))
	}
}

func TestSubtitlesParseBack(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"a", "the", "word,", "end.", "什么", "今天。", "“好”", "--> x", "<b>", "{\\an8}", "&amp;", "e\u0301te", "\x00", "\xff", "123",
		"Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen", "（中）", "한국어", "\n", "\u2028",
	})
	times := rapid.OneOf(rapid.Float64Range(0, 100), rapid.Float64Range(359990, 400000),
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300}))
	cue := rapid.Custom(func(t *rapid.T) Cue {
		c := Cue{
			Start: times.Draw(t, "start"), End: times.Draw(t, "end"), Event: rapid.Bool().Draw(t, "event"),
			Speaker: rapid.SampledFrom([]string{"", "S0", "S1 & <x>"}).Draw(t, "speaker"),
		}
		parts := rapid.SliceOfN(words, 0, 40).Draw(t, "words")
		c.Text = strings.Join(parts, " ")
		if rapid.Bool().Draw(t, "timed") {
			for _, p := range parts {
				c.Words = append(c.Words, spec.Word{Word: " " + p, Start: times.Draw(t, "ws"), End: times.Draw(t, "we")})
			}
		}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.SliceOfN(cue, 0, 6).Draw(t, "cues"), Options{
			MaxColumns: rapid.IntRange(-1, 60).Draw(t, "columns"),
			MaxLines:   rapid.IntRange(0, 3).Draw(t, "lines"),
			MaxSeconds: rapid.Float64Range(-1, 10).Draw(t, "seconds"),
			NoSpeakers: true,
		})
	})
}

func TestSpeakersParseBack(t *testing.T) {
	for _, numbered := range []bool{true, false} {
		var b bytes.Buffer
		cues := []Cue{{Start: 1, End: 2, Speaker: "S1 & <x>", Text: "Hello"}, {Start: 2, End: 3, Speaker: "S2", Text: "Hi"}, {Start: 3, End: 4, Speaker: "S2", Text: "there"}}
		if numbered {
			require.NoError(t, SRT(&b, cues, Options{}))
		} else {
			require.NoError(t, VTT(&b, cues, Options{}))
		}
		got, err := parse(b.String(), numbered)
		require.NoError(t, err)
		assert.Equal(t, []parsed{{1000, 2000, "S1 & <x>", []string{"Hello"}}, {2000, 3000, "S2", []string{"Hi"}}, {3000, 4000, "S2", []string{"there"}}}, got)
		assert.Equal(t, map[bool]int{true: 1, false: 2}[numbered], strings.Count(b.String(), "S2"), "SubRip names a speaker at a change")
	}
}

func TestLongSegmentsSplitAtWordTimes(t *testing.T) {
	var c Cue
	for i := range 60 {
		w := fmt.Sprintf("word%02d", i)
		c.Text += " " + w
		// Words begin at irregular times, so that interpolated times differ.
		start := 0.5*float64(i) + 0.1*float64(i%3)
		c.Words = append(c.Words, spec.Word{Word: w, Start: start, End: start + 0.2})
	}
	c.End = 30.5
	pages := layout([]Cue{c}, Options{}, nameColumns)
	require.Greater(t, len(pages), 4)
	for _, p := range pages {
		var first, last int
		lines := p.voices[0].lines
		_, err := fmt.Sscanf(lines[0], "word%d", &first)
		require.NoError(t, err)
		tail := lines[len(lines)-1]
		_, err = fmt.Sscanf(tail[strings.LastIndex(tail, " ")+1:], "word%d", &last)
		require.NoError(t, err)
		assert.InDelta(t, c.Words[first].Start, p.start, 1e-9)
		assert.GreaterOrEqual(t, p.end, c.Words[last].End-1e-9)
		assert.LessOrEqual(t, c.Words[last].End-p.start, 7.0)
	}
}

func TestAPauseEndsACue(t *testing.T) {
	c := Cue{Start: 0, End: 10, Text: "one two", Words: []spec.Word{{Word: "one", End: 1}, {Word: "two", Start: 9, End: 10}}}
	pages := layout([]Cue{c}, Options{MaxSeconds: 60}, nameColumns)
	require.Len(t, pages, 2)
	assert.Equal(t, 1.0, pages[0].end, "the first text is not shown during the silence")
	assert.Equal(t, 9.0, pages[1].start)
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "中文": 4, "e\u0301": 1, "ｱ": 1, "Ａ": 2, "한": 2, "é": 1, "a\u200bb": 2} {
		assert.Equal(t, want, columns(text), "%q", text)
	}
}

func FuzzSubtitles(f *testing.F) {
	f.Add("Hello <b>world</b> --> 中文，好。", "S 0", 1.5, 2.5, 42, 2)
	f.Add("\xff\x00\r\n\r\nx", "]", math.Inf(1), -3.0, 9, 1)
	f.Add("0", "\u035d0000000000", math.Inf(1), -3.0, 9, 1) // a piece begins with a combining mark
	f.Fuzz(func(t *testing.T, text, speaker string, start, end float64, width, lines int) {
		o := Options{MaxColumns: min(width, 1000), MaxLines: min(lines, 10), NoSpeakers: true}
		words := []spec.Word{}
		for i, w := range strings.Fields(text) {
			words = append(words, spec.Word{Word: w, Start: start + float64(i), End: end})
		}
		check(t, []Cue{{Start: start, End: end, Speaker: speaker, Text: text, Words: words}, {Start: 1, End: 2, Text: speaker}}, o)
		var b bytes.Buffer
		if err := VTT(&b, []Cue{{Start: start, End: end, Speaker: speaker, Text: text}}, Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := parse(b.String(), false); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := writeRTTM(&b, text, []spec.Turn{{Start: start, End: end, Speaker: speaker}}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := len(strings.Fields(line)); n != 10 {
				t.Fatalf("%d fields in %q", n, line)
			}
		}
	})
}
