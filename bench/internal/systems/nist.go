package systems

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/bench/internal/scores"
)

// Marks holds the content of a transcript in NIST's formats besides its text.
type Marks struct {
	Text    string       // the text with its alternatives and optional words; "" if it has none
	Ignored [][2]float64 // start and end of the times that are not scored
}

// ignored reports whether NIST's text of a segment excludes it from scoring.
func ignored(text string) bool { return strings.EqualFold(text, "IGNORE_TIME_SEGMENT_IN_SCORING") }

// takeMarks removes the marks of NIST's formats from a transcript, and also
// segments that are not scored and all alternatives but the first.
func takeMarks(res *otograph.Result) (marks Marks, err error) {
	var raw []string
	marked := false
	res.Segments = slices.DeleteFunc(res.Segments, func(s otograph.Segment) bool {
		if ignored(s.Text) {
			marks.Ignored = append(marks.Ignored, [2]float64{s.Start, s.End})
			return true
		}
		return false
	})
	for i := range res.Segments {
		text := &res.Segments[i].Text
		raw = append(raw, *text)
		if *text, err = scores.WithoutMarks(*text); err != nil {
			return marks, fmt.Errorf("%w: from %.2f s: %w", errOutput, res.Segments[i].Start, err)
		}
		marked = marked || *text != raw[i]
	}
	if marked {
		marks.Text = strings.Join(raw, "\n")
	}
	return marks, nil
}

// namedLines holds the lines of an RTTM, CTM or STM file by recording.
type namedLines struct {
	read  func(rows []datasets.Row) *otograph.Result
	words bool // the format has words
	alone bool // the file is of one recording, whose name in the file may differ
	rows  datasets.Named
}

// groupLines groups the lines of a file; nil if it has none of the formats.
func groupLines(text string, alone bool) *namedLines {
	rows := datasets.Rows(text)
	switch {
	case readRTTM(rows) != nil:
		return &namedLines{readRTTM, false, alone, datasets.ByName(rows, 1)}
	case readCTM(rows) != nil:
		return &namedLines{readCTM, true, false, datasets.ByName(rows, 0)}
	case readSTM(rows) != nil:
		return &namedLines{readSTM, true, false, datasets.ByName(rows, 0)}
	}
	return nil
}

// trnLine matches a line of NIST's format TRN, or the first cell of a table.
var trnLine = regexp.MustCompile(`(?m)^(?:(.*?)\s*\(([^\s()]+)\)[ \t\r]*$|([^\s,]+),)`)

// groupTexts groups texts by their recordings, which each line names first (Kaldi)
// or last (TRN); nil unless every line names another one, and not its first word.
func groupTexts(text string, items []datasets.Item) *namedLines {
	known, words := map[string]bool{}, 0
	for _, it := range items {
		first, _, _ := strings.Cut(*cmp.Or(it.Text, new("")), " ")
		for _, name := range datasets.NamesOf(it.Name) {
			known[name] = !strings.EqualFold(name, first)
		}
	}
	rows := datasets.Rows(trnLine.ReplaceAllString(text, "$2$3 $1"))
	for _, r := range rows {
		if !known[r.Fields[0]] {
			return nil
		}
		known[r.Fields[0]] = false
		words += len(r.Fields) - 1
	}
	if words == 0 {
		return nil
	}
	read := func(rows []datasets.Row) *otograph.Result {
		res := &otograph.Result{}
		for _, r := range rows {
			res.Segments = append(res.Segments, otograph.Segment{Text: strings.Join(r.Fields[1:], " ")})
		}
		return finish(res)
	}
	return &namedLines{read, true, false, datasets.ByName(rows, 0)}
}

// nistColumns are the first columns of NIST's formats, by the files' extensions.
var nistColumns = map[string]string{
	".rttm": "SPEAKER, recording, channel, start, duration", ".ctm": "recording, channel, start, duration, word", ".stm": "recording, channel, speaker, start, end",
}

// check returns an error if the file names none of the recordings.
func (n *namedLines) check(path string, items []datasets.Item) error {
	if len(items) == 0 || slices.ContainsFunc(items, func(it datasets.Item) bool { return n.rows.Of(it.Name, n.alone) != nil }) {
		return nil
	}
	return fmt.Errorf("%s: expected lines of %s or of another recording of the manifest, found %s", path, items[0].Name, slices.Min(slices.Collect(maps.Keys(n.rows))))
}

// of returns the transcript of a recording, an empty one if no line names it.
func (n *namedLines) of(recording string) (*otograph.Result, Marks, error) {
	res := n.read(n.rows.Of(recording, n.alone))
	if res == nil {
		res = finish(&otograph.Result{})
		res.Ran.ASR = n.words
	}
	marks, err := takeMarks(res)
	return res, marks, err
}
