package subtitle

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/spec"
)

// anyText draws texts of every kind: random ones, the signs of the formats,
// scripts without spaces and scripts from right to left.
var anyText = rapid.OneOf(
	rapid.String(),
	rapid.StringOf(rapid.RuneFrom([]rune("ab1\n\t<>/!-{}[]\\&;:.,\"'*_#`|~$= \ufffe\uffff"))),
	rapid.StringOf(rapid.RuneFrom(nil, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Han, unicode.So)),
	rapid.StringOf(rapid.RuneFrom([]rune("a1 ()."), unicode.Arabic, unicode.Hebrew, unicode.Bidi_Control)),
)

// readers read the texts of cues back from the formats that keep cues whole.
var readers = map[string]struct {
	write func(w io.Writer, cues []Cue) error
	read  func(t require.TestingT, document []byte) []string
}{
	"tsv": {writeTSV, func(t require.TestingT, document []byte) []string {
		return columnOf(t, document, "\t", 3, 4)[1:] // without the header
	}},
	"labels": {writeLabels, func(t require.TestingT, document []byte) []string {
		return columnOf(t, document, "\t", 2, 3)
	}},
	"ctm": {func(w io.Writer, cues []Cue) error { return writeCTM(w, "a b", cues) }, func(t require.TestingT, document []byte) []string {
		return columnOf(t, document, " ", 4, 6)
	}},
	"rttm": {func(w io.Writer, cues []Cue) error {
		var turns []spec.Turn
		for _, c := range clean(cues) {
			turns = append(turns, spec.Turn{Start: c.Start, End: c.End, Speaker: c.Text})
		}
		return writeRTTM(w, "a b", turns)
	}, func(t require.TestingT, document []byte) []string {
		return columnOf(t, document, " ", 7, 10)
	}},
	"md": {func(w io.Writer, cues []Cue) error { return writeMarkdown(w, "", inTurn(cues)) }, func(_ require.TestingT, document []byte) []string {
		var texts []string
		for _, paragraph := range strings.Split(strings.TrimSuffix(string(document), "\n"), "\n\n") {
			_, text, _ := strings.Cut(paragraph, ") ")
			if textfile.RightToLeft(text) { // isolated
				text = strings.TrimSuffix(strings.TrimPrefix(text, "\u2067"), "\u2069")
			}
			texts = append(texts, regexp.MustCompile(`\\(.)`).ReplaceAllString(text, "$1"))
		}
		return texts
	}},
	"docx":     {func(w io.Writer, cues []Cue) error { return writeDOCX(w, "", inTurn(cues)) }, readDOCX},
	"textgrid": {func(w io.Writer, cues []Cue) error { return TextGrid(w, 1, cues) }, readTextGrid},
	"eaf": {func(w io.Writer, cues []Cue) error { return writeEAF(w, "a.wav", time.Unix(0, 0), cues) }, func(t require.TestingT, document []byte) []string {
		var doc eafDocument
		require.NoError(t, xml.Unmarshal(document, &doc))
		var texts []string
		for _, a := range doc.Tiers[0].Annotations {
			texts = append(texts, a.Aligned.Value)
		}
		return texts
	}},
}

// eafDocument is the part of an annotation document that tests read.
type eafDocument struct {
	Slots []struct {
		ID   string `xml:"TIME_SLOT_ID,attr"`
		Time int64  `xml:"TIME_VALUE,attr"`
	} `xml:"TIME_ORDER>TIME_SLOT"`
	Tiers []struct {
		Annotations []struct {
			Aligned struct {
				Start string `xml:"TIME_SLOT_REF1,attr"`
				End   string `xml:"TIME_SLOT_REF2,attr"`
				Value string `xml:"ANNOTATION_VALUE"`
			} `xml:"ALIGNABLE_ANNOTATION"`
		} `xml:"ANNOTATION"`
	} `xml:"TIER"`
}

// columnOf returns a column of a table with a number of columns.
func columnOf(t require.TestingT, document []byte, separator string, at, of int) (cells []string) {
	for _, line := range strings.Split(strings.TrimSuffix(string(document), "\n"), "\n") {
		row := strings.Split(line, separator)
		require.Len(t, row, of, "%q", line)
		cells = append(cells, row[at])
	}
	return cells
}

// inTurn lets two speakers alternate, so that each cue is a paragraph.
func inTurn(cues []Cue) []Cue {
	out := slices.Clone(cues)
	for i := range out {
		out[i].Speaker = string(rune('A' + i%2))
	}
	return out
}

// readTextGrid returns the texts of the first tier.
func readTextGrid(_ require.TestingT, document []byte) (texts []string) {
	tier, _, _ := strings.Cut(string(document), "    item [2]:")
	for line := range strings.Lines(tier) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		if strings.TrimSpace(key) == "text" && value != `""` {
			texts = append(texts, strings.ReplaceAll(value[1:len(value)-1], `""`, `"`))
		}
	}
	return texts
}

// readDOCX returns the text of each paragraph.
func readDOCX(t require.TestingT, document []byte) (texts []string) {
	pack, err := zip.NewReader(bytes.NewReader(document), int64(len(document)))
	require.NoError(t, err)
	f, err := pack.Open("word/document.xml")
	require.NoError(t, err)
	decoder := xml.NewDecoder(f)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "p" {
				texts = append(texts, "")
			}
		case xml.CharData:
			if n := len(texts) - 1; n >= 0 {
				texts[n] += string(token)
			}
		}
	}
	for i := range texts {
		texts[i] = strings.SplitN(texts[i], " ", 3)[2] // behind speaker and time
	}
	return texts
}

// TestAnyTextIsReadBackFromEveryFormat: the formats that keep cues whole give
// back every text, whatever it consists of.
func TestAnyTextIsReadBackFromEveryFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cues []Cue
		var want []string
		for i := range rapid.IntRange(1, 4).Draw(t, "cues") {
			c := Cue{Start: 100 * float64(i), End: 100*float64(i) + 1, Text: anyText.Draw(t, "text")}
			c.Words = []spec.Word{{Word: c.Text, Start: c.Start, End: c.End}}
			if text := cleanText(c.Text); text != "" {
				cues, want = append(cues, c), append(want, text)
			}
		}
		for name, format := range readers {
			if len(cues) == 0 {
				break
			}
			var out bytes.Buffer
			require.NoError(t, format.write(&out, cues), name)
			expected := want
			if name == "ctm" || name == "rttm" {
				expected = nil
				for _, text := range want {
					expected = append(expected, strings.ReplaceAll(text, " ", "_"))
				}
			}
			require.Equal(t, expected, format.read(t, out.Bytes()), "%s: %s", name, &out)
		}
	})
}
