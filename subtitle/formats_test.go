package subtitle

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/spec"
)

// strangeCues draws cues with overlapping sounds, markup and decreasing times.
var strangeCues = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Cue {
	c := Cue{
		Start: rapid.Float64Range(-1, 60).Draw(t, "start"), End: rapid.Float64Range(-1, 60).Draw(t, "end"),
		Event:   rapid.Bool().Draw(t, "event"),
		Speaker: rapid.SampledFrom([]string{"", "S0", `S "1" & <x>`}).Draw(t, "speaker"),
		Text:    rapid.SampledFrom([]string{"a b", `say "x" <&> ]]>`, "你好。", "\x01\n", "*_#`|"}).Draw(t, "text"),
	}
	for _, w := range strings.Fields(c.Text) {
		c.Words = append(c.Words, spec.Word{Word: w, Start: rapid.Float64Range(-1, 60).Draw(t, "ws"), End: rapid.Float64Range(-1, 60).Draw(t, "we")})
	}
	return c
}), 0, 12)

func TestTiersNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := map[string]bool{}
		for _, row := range tiers(strangeCues.Draw(t, "cues")) {
			require.False(t, names[row.Name], "tier %s twice", row.Name)
			names[row.Name] = true
			if row.Parent != "" {
				require.True(t, names[row.Parent], "%s comes after its parent", row.Name)
			}
			var now int64
			for _, s := range row.Spans {
				require.GreaterOrEqual(t, s.Start, now)
				require.Greater(t, s.End, s.Start)
				now = s.End
			}
		}
	})
}

func TestTextGridHasNoGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		require.NoError(t, TextGrid(&b, 30, strangeCues.Draw(t, "cues")))
		last, length := "", ""
		for line := range strings.Lines(b.String()) {
			depth := len(line) - len(strings.TrimLeft(line, " "))
			key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
			switch {
			case depth == 0 && key == "xmax":
				length = value
			case depth == 8 && key == "name" && last != "":
				require.Equal(t, length, last, "a tier ends with the grid")
				last = ""
			case depth == 12 && key == "xmin" && last != "":
				require.Equal(t, last, value, "an interval begins at the previous one's end")
			case depth == 12 && key == "xmax":
				last = value
			case key == "text":
				inner := strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)
				require.Zero(t, strings.Count(inner, `"`)%2, "quotes are doubled: %s", value)
			}
		}
		require.Equal(t, length, last)
	})
}

// TestEAFOfSilence: the schema requires the list of times, also without any.
func TestEAFOfSilence(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeEAF(&b, "a.wav", time.Unix(0, 0), nil))
	var doc struct {
		Times []struct{} `xml:"TIME_ORDER"`
	}
	require.NoError(t, xml.Unmarshal(b.Bytes(), &doc))
	assert.Len(t, doc.Times, 1)
}

// TestEAFNamesTheRecording: both addresses lead to the file, whatever its name.
func TestEAFNamesTheRecording(t *testing.T) {
	check := func(t require.TestingT, name string) {
		var b bytes.Buffer
		require.NoError(t, writeEAF(&b, name, time.Unix(0, 0), nil))
		var doc struct {
			Media struct {
				URL      string `xml:"MEDIA_URL,attr"`
				Relative string `xml:"RELATIVE_MEDIA_URL,attr"`
			} `xml:"HEADER>MEDIA_DESCRIPTOR"`
		}
		require.NoError(t, xml.Unmarshal(b.Bytes(), &doc))
		for _, address := range []string{doc.Media.URL, doc.Media.Relative} {
			u, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, url.URL{Path: "./" + name, RawPath: u.RawPath}, *u)
		}
	}
	check(t, `a "b" & c#1 %20?.wav`)
	check(t, "Mu\xf1oz: 1;2\n.wav")
	rapid.Check(t, func(t *rapid.T) { check(t, strings.ReplaceAll(rapid.String().Draw(t, "name"), "/", "")) })
}

func TestEAFReferencesResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		require.NoError(t, writeEAF(&b, "a.wav", time.Unix(0, 0), strangeCues.Draw(t, "cues")))
		var doc eafDocument
		require.NoError(t, xml.Unmarshal(b.Bytes(), &doc))
		at := map[string]int64{}
		var now int64 = -1
		for _, s := range doc.Slots {
			require.Greater(t, s.Time, now, "slots are in order of time")
			at[s.ID], now = s.Time, s.Time
		}
		for _, row := range doc.Tiers {
			for _, a := range row.Annotations {
				start, ok := at[a.Aligned.Start]
				require.True(t, ok)
				require.Greater(t, at[a.Aligned.End], start)
			}
		}
	})
}

func TestDOCXContainsTheText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeDOCX(&b, "Minutes & <notes>", conversation))
	pack, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	var all strings.Builder
	for _, f := range pack.File {
		r, err := f.Open()
		require.NoError(t, err)
		decoder := xml.NewDecoder(r)
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, f.Name)
			if text, ok := token.(xml.CharData); ok && f.Name == "word/document.xml" {
				all.Write(text)
			}
		}
	}
	assert.True(t, strings.HasPrefix(strings.TrimSpace(all.String()), "Minutes & <notes>0:00 [Music]SPEAKER_0 0:00 Good morning, and welcome."), "%.100s", all.String())
	assert.Contains(t, all.String(), `R&D <lab> 0:30 If a < b && b > c --> then <i>stop</i> {\an8}here.`)
}

func TestCTMRequiresWordTimes(t *testing.T) {
	err := writeCTM(io.Discard, "f", []Cue{{Start: 1.5, End: 2, Text: "no words"}})
	require.ErrorIs(t, err, ErrNoWordTimes)
	assert.ErrorContains(t, err, "1.500 s")
}

func TestParagraphsFollowTheTurns(t *testing.T) {
	cues := []Cue{
		{Start: 0, End: 1, Speaker: "A", Text: "One."},
		{Start: 1, End: 2, Speaker: "A", Text: "Two."},
		{Start: 2, End: 3, Speaker: "B", Text: "三。"},
		{Start: 3, End: 4, Speaker: "B", Text: "四。"},
		{Start: 3.5, End: 4, Event: true, Text: "Bell"},
		{Start: 5, End: 6, Speaker: "B", Text: "Five."},
	}
	assert.Equal(t, []paragraph{{0, "A", "One. Two.", false}, {2000, "B", "三。四。", false}, {3500, "", "[Bell]", true}, {5000, "B", "Five.", false}}, paragraphs(cues))
	long := make([]Cue, 400)
	for i := range long {
		long[i] = Cue{Start: float64(i), End: float64(i + 1), Speaker: "A", Text: fmt.Sprintf("Sentence %d.", i)}
	}
	assert.Greater(t, len(paragraphs(long)), 3, "a monologue is cut")
}
