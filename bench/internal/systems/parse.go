package systems

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// maxOutput limits a transcript in bytes.
const maxOutput = 32 << 20

// errOutput marks an output that is not a transcript.
var errOutput = errors.New("not a transcript")

var (
	markedLine = regexp.MustCompile(`^\[(\d+:)?\d+:\d+[.,]\d+ --> (\d+:)?\d+:\d+[.,]\d+\]`)
	unreadForm = regexp.MustCompile(`^(\[\d+:\d\d[.:]\d+\]|File type = "ooTextFile"|Segment\(id=|\(\d+\.\d+, \d+\.\d+, ['"]|` +
		`(?:[^\n:]{1,40}  )?\(?\d+(?::\d\d){1,2}[)\s][^\n]*\n(?:[^\n]*\n)*?(?:[^\n:]{1,40}  )?\(?\d+(?::\d\d){1,2}(?:[)\s]|$))`)
	cueTimes  = regexp.MustCompile(`(?m)^\s*(\d+:)?\d+:\d+[.,]\d+\s*-->\s*(\d+:)?\d+:\d+[.,]\d+`)
	voiceTag  = regexp.MustCompile(`^<v(?:\.\S*)?\s+([^>]+)>`)
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	// The speaker before a text, and marks within it, of Otograph, WhisperX,
	// whisper.cpp, aTrain, noScribe and SenseVoice.
	speakerMark = regexp.MustCompile(`(?m)^[ \t]*(?:\[[^\[\]\n]*\]:|\[?(?:SPEAKER|CHANNEL)_\d+\]?:?(?:\s|$)|\(speaker [\d?]+\)|(?:Speaker|SPEAKER) \w\w?:|S\d\d:)\s*`)
	tokenMark   = regexp.MustCompile(`<\|[^<>|\n]*\|>|\[(?:(?:SPEAKER|CHANNEL)_\w+|_BEG_|_TT_\d+)\]:?`)
)

// Words returns a transcript's words, without the times, speakers and marks
// that programs write beside them; any other text stays unchanged.
func Words(text string) string {
	res, err := parse([]byte(text), "")
	if err != nil {
		return text
	}
	var lines []string
	for _, s := range res.Segments {
		lines = append(lines, s.Text)
	}
	return cmp.Or(strings.TrimSpace(strings.Join(lines, "\n")), text)
}

// parse reads the transcript of a recording in any supported format.
func parse(data []byte, recording string) (*otograph.Result, error) {
	res, _, err := parseMarked(data, recording)
	return res, err
}

// parseMarked is parse with the marks of NIST's formats.
func parseMarked(data []byte, recording string) (res *otograph.Result, marks Marks, err error) {
	text, err := textfile.ReadFrom(bytes.NewReader(data), maxOutput)
	if err != nil {
		return nil, marks, fmt.Errorf("%w: %w", errOutput, err)
	}
	text = strings.TrimSpace(text)
	head := strings.ToLower(text[:min(len(text), 256)])
	switch {
	case strings.HasPrefix(head, "<!doctype") || strings.HasPrefix(head, "<html") || strings.HasPrefix(head, "<?xml"):
		return nil, marks, fmt.Errorf("%w: it is a page of markup%s", errOutput, titleOf(text))
	case unreadForm.MatchString(text):
		return nil, marks, fmt.Errorf("%w: it is a TextGrid, lyrics (LRC), a print of Python's objects or lines with times, which are not read", errOutput)
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") && !markedLine.MatchString(text):
		if res, err = parseJSON([]byte(text), recording); err == nil || !isRemark(text) {
			return res, marks, err
		}
	case strings.HasPrefix(text, "WEBVTT") || cueTimes.MatchString(text):
		res, err = parseCues(text)
		return res, marks, err
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if named := groupLines(strings.Join(lines, "\n"), true); named != nil {
		return named.of(recording)
	}
	if res := cmp.Or(readMarked(lines), readObjects(lines, recording)); res != nil {
		return res, marks, nil
	}
	text = textfile.LineTimes.ReplaceAllString(text, "[$1]:")
	res = &otograph.Result{}
	from := 0
	for _, mark := range append(speakerMark.FindAllStringIndex(text, -1), []int{len(text)}) {
		if mark[0] > from || text == "" {
			res.Segments = append(res.Segments, otograph.Segment{Text: strings.TrimSpace(text[from:mark[0]])})
		}
		from = mark[0]
	}
	return finish(res), marks, nil
}

// isRemark reports whether a text begins with a remark in brackets such as
// "[music]", rather than with JSON.
func isRemark(text string) bool {
	remark, _, closed := strings.Cut(text, "]")
	return closed && text[0] == '[' && !strings.ContainsAny(remark, `"{`)
}

func titleOf(page string) string {
	if m := pageTitle.FindStringSubmatch(page); m != nil {
		return fmt.Sprintf(" (%.60q)", strings.TrimSpace(m[1]))
	}
	return ""
}

// finish derives the remaining fields from the segments, and removes what
// programs write beside the words.
func finish(res *otograph.Result) *otograph.Result {
	res.Ran.ASR = true
	for i := range res.Segments {
		s := &res.Segments[i]
		if mark := speakerMark.FindStringIndex(s.Text); mark != nil && mark[0] == 0 {
			s.Speaker = cmp.Or(s.Speaker, strings.Trim(s.Text[:mark[1]], "[(]): \t\n"))
			s.Text = s.Text[mark[1]:]
		}
		s.Text = strings.TrimSpace(tokenMark.ReplaceAllString(s.Text, ""))
	}
	speakers := map[string]bool{}
	if len(res.DiarizeSegments) == 0 {
		for _, s := range res.Segments {
			if s.Speaker != "" && s.End > s.Start {
				res.DiarizeSegments = append(res.DiarizeSegments, otograph.Turn{Start: s.Start, End: s.End, Speaker: s.Speaker})
			}
		}
	}
	for _, t := range res.DiarizeSegments {
		speakers[t.Speaker] = true
	}
	res.NumSpeakers, res.Ran.Diarize = len(speakers), len(speakers) > 0
	res.Language, _ = spec.NormalizeLanguage(res.Language)
	return res
}

// parseCues reads SubRip or WebVTT.
func parseCues(text string) (*otograph.Result, error) {
	script, err := subtitle.ParseScript([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOutput, err)
	}
	res := &otograph.Result{}
	last := ""
	for i, c := range script.Cues {
		g := otograph.Segment{Text: script.Text(i)}
		if strings.Contains(text, "><c>") { // YouTube's: a cue begins with the last line of the one before
			g.Text = strings.TrimSpace(strings.TrimPrefix(g.Text, last))
			script.Cues[i].Lines = c.Lines[len(c.Lines)-1:]
			last = script.Text(i)
		}
		g.Start, g.End = span(c.Start, c.End)
		if m := voiceTag.FindStringSubmatch(c.Lines[0]); m != nil {
			g.Speaker = m[1]
		}
		res.Segments = append(res.Segments, g)
	}
	return finish(res), nil
}

// rttmTypes are the types of RTTM's lines (NIST RT-09).
var rttmTypes = strings.Fields("SEGMENT NOSCORE NO_RT_METADATA LEXEME NON-LEX NON-SPEECH FILLER EDIT IP SU CB A/P SPEAKER SPKR-INFO")

// readRTTM reads speaker turns; they contain no words.
func readRTTM(rows []datasets.Row) *otograph.Result {
	if slices.ContainsFunc(rows, func(r datasets.Row) bool { return !slices.Contains(rttmTypes, r.Fields[0]) }) {
		return nil
	}
	turns, err := datasets.Turns(rows)
	if err != nil || len(turns) == 0 {
		return nil
	}
	res := finish(&otograph.Result{DiarizeSegments: turns})
	res.Ran.ASR = false
	return res
}

// readCTM reads NIST's words with times: recording, channel, start, duration,
// word. Alternatives, between lines with <ALT_BEGIN>, <ALT> and <ALT_END>, become
// alternatives of STM; their first words have times. The lines are put in the order
// that sclite requires: channel, time.
func readCTM(rows []datasets.Row) *otograph.Result {
	marks := map[string]string{"<ALT_BEGIN>": "{", "<ALT>": "/", "<ALT_END>": "}"}
	var words []otograph.Word
	var text []string
	other := false // inside the second alternative, or a later one
	for _, row := range inOrder(rows, 2) {
		f := row.Fields
		if len(f) > 8 {
			return nil
		}
		if mark := marks[strings.ToUpper(f[4])]; mark != "" {
			text, other = append(text, mark), mark == "/"
			continue
		}
		start, length, ok := datasets.Seconds(f[2], f[3])
		if !ok {
			return nil
		}
		if text = append(text, f[4]); !other && f[4] != "@" {
			words = append(words, otograph.Word{Word: f[4], Start: start, End: start + length})
		}
	}
	if len(words) == 0 {
		return nil
	}
	start, end := words[0].Start, words[len(words)-1].End
	return finish(&otograph.Result{Segments: []otograph.Segment{{Start: start, End: max(start, end), Text: strings.Join(text, " "), Words: words}}})
}

// inOrder returns lines sorted by the channel, in the second column, and the
// start in another one; alternatives stay together. It returns nil if a line has
// fewer than five fields.
func inOrder(rows []datasets.Row, column int) []datasets.Row {
	var blocks [][]datasets.Row
	open := false // alternatives
	for _, r := range rows {
		if len(r.Fields) < 5 {
			return nil
		}
		if !open {
			blocks = append(blocks, nil)
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], r)
		mark := strings.ToUpper(r.Fields[4])
		open = mark == "<ALT_BEGIN>" || open && mark != "<ALT_END>"
	}
	start := func(block []datasets.Row) float64 { // the mark of alternatives has none
		field := block[min(1, len(block)-1)].Fields[column]
		t, _, _ := datasets.Seconds(field, field)
		return t
	}
	slices.SortStableFunc(blocks, func(a, b []datasets.Row) int {
		return cmp.Or(cmp.Compare(a[0].Fields[1], b[0].Fields[1]), cmp.Compare(start(a), start(b)))
	})
	return slices.Concat(blocks...)
}

// readSTM reads NIST's segments: recording, channel, speaker, start, end, an
// optional label in angle brackets, text. The lines are put in order of channel and time.
func readSTM(rows []datasets.Row) *otograph.Result {
	res := &otograph.Result{}
	for _, row := range inOrder(rows, 3) {
		f := row.Fields
		start, end, ok := datasets.Seconds(f[3], f[4])
		if !ok || end < start {
			return nil
		}
		text := f[5:]
		if len(text) > 0 && strings.HasPrefix(text[0], "<") && strings.HasSuffix(text[0], ">") {
			text = text[1:]
		}
		g := otograph.Segment{Start: start, End: end, Speaker: f[2], Text: strings.Join(text, " ")}
		if ignored(g.Text) {
			g.Speaker = ""
		}
		res.Segments = append(res.Segments, g)
	}
	if len(res.Segments) == 0 {
		return nil
	}
	return finish(res)
}

// readMarked reads lines that begin with times in brackets, as whisper.cpp and
// OpenAI's program print them.
func readMarked(lines []string) *otograph.Result {
	var cues []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if mark := markedLine.FindString(l); mark != "" {
			cues = append(cues, strings.Trim(mark, "[]"), l[len(mark):], "")
		}
	}
	res, err := parseCues(strings.Join(cues, "\n"))
	if err != nil {
		return nil
	}
	return res
}

// readObjects reads JSON objects between other lines, as sherpa-onnx prints.
func readObjects(lines []string, recording string) *otograph.Result {
	var objects []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "{") && strings.HasSuffix(l, "}") && strings.Contains(l, `"text"`) {
			objects = append(objects, l)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	res, err := parseJSON([]byte(strings.Join(objects, "\n")), recording)
	if err != nil {
		return nil
	}
	return res
}
