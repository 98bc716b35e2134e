package systems

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
)

// document is a JSON transcript with the keys of programs that shapes lacks: OpenAI's
// interface, faster-whisper, WhisperX, whisper.cpp, sherpa-onnx, NeMo's manifests,
// the Open ASR Leaderboard, SegLST, AssemblyAI and Otograph.
type document struct {
	Text          *string                   `json:"text"`
	PredText      *string                   `json:"pred_text"` // NeMo, leaderboard; text is then the reference
	Path          string                    `json:"audio_filepath"`
	Offset        float64                   `json:"offset"`
	Duration      float64                   `json:"duration"`
	Time          float64                   `json:"time"`
	Language      string                    `json:"language"`
	Lang          string                    `json:"lang"`
	LanguageCode  string                    `json:"language_code"`
	Segments      []segment                 `json:"segments"`
	Words         json.RawMessage           `json:"words"`
	Turns         []otograph.Turn           `json:"diarize_segments"`
	Result        struct{ Language string } `json:"result"`
	Transcription []struct {
		Offsets struct{ From, To float64 } // milliseconds
		Text    string
	} `json:"transcription"`
	Tokens     []string        `json:"tokens"`
	Timestamps json.RawMessage `json:"timestamps"`
	Error      json.RawMessage `json:"error"`
	AudioURL   *string         `json:"audio_url"`  // AssemblyAI, whose times are milliseconds
	Utterances []segment       `json:"utterances"` // AssemblyAI, if it told the speakers apart

	name    string          // of the recording
	raw     json.RawMessage // all of it
	Session string          `json:"session_id"`
	Speaker string          `json:"speaker"`
	Start   *float64        `json:"start_time"`
	End     *float64        `json:"end_time"`
}

type segment struct {
	Start   float64    `json:"start"`
	End     float64    `json:"end"`
	Text    string     `json:"text"`
	Speaker string     `json:"speaker"`
	Words   []jsonWord `json:"words"`
}

// jsonWord is a word in JSON; aligners omit the times of some words.
type jsonWord struct {
	Word        string   `json:"word"`
	Text        string   `json:"text"`
	Start       *float64 `json:"start"`
	End         *float64 `json:"end"`
	Probability float64  `json:"probability"`
}

// parseJSON reads the transcript of a recording from JSON: a document, a list
// of segments, or a row for each of several recordings.
func parseJSON(data []byte, recording string) (*otograph.Result, error) {
	rows, err := documents(data)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return finish(&otograph.Result{}), nil
	}
	if first := rows[0]; first.Session != "" || first.Start != nil {
		return segLST(rows, recording)
	}
	if named := func(r document) bool { return r.Path != "" || r.PredText != nil }; len(rows) > 1 && !slices.ContainsFunc(rows, named) { // one after another, as Vosk writes them
		for _, r := range rows[1:] {
			rows[0].Segments = append(append(rows[0].Segments, segment{Text: *cmp.Or(r.Text, new(""))}), r.Segments...)
		}
		rows[0].Segments = slices.Insert(rows[0].Segments, 0, segment{Text: *cmp.Or(rows[0].Text, new(""))})
		rows = rows[:1]
	}
	if len(rows) > 1 || rows[0].PredText != nil {
		i := slices.IndexFunc(rows, func(r document) bool { return r.Path != "" && datasets.Stem(r.Path) == datasets.Stem(recording) })
		if i < 0 {
			return nil, fmt.Errorf("%w: it has %d rows, and none for %s", errOutput, len(rows), recording)
		}
		rows = rows[i : i+1]
	}
	return rows[0].result()
}

// documents returns the objects of a text: one, a list, or concatenated.
func documents(data []byte) ([]document, error) {
	var rows []document
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w: incomplete JSON: %w", errOutput, err)
		}
		if bytes.HasPrefix(raw, []byte("[")) {
			list, err := documentsOfList(raw)
			if err != nil {
				return nil, err
			}
			rows = append(rows, list...)
			continue
		}
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, fmt.Errorf("%w: %w", errOutput, err)
		}
		rows = append(rows, d)
	}
}

// UnmarshalJSON also keeps the object, and accepts keys that are not essential and
// that other programs give another meaning.
func (d *document) UnmarshalJSON(raw []byte) error {
	type plain document
	err := json.Unmarshal(raw, (*plain)(d))
	d.raw = slices.Clone(raw)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && slices.Contains([]string{"duration", "result", "tokens", "transcription"}, kind.Field) {
		return nil
	}
	return datasets.PlainError(err)
}

// documentsOfList reads a list: rows, or the segments of one document.
func documentsOfList(raw json.RawMessage) ([]document, error) {
	var rows []document
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, fmt.Errorf("%w: %w", errOutput, err)
	}
	if len(rows) == 0 || rows[0].Session != "" || rows[0].Start != nil || rows[0].PredText != nil || rows[0].fileName() != "" {
		return rows, nil
	}
	one := document{raw: raw}
	if err := json.Unmarshal(raw, &one.Segments); err != nil {
		return nil, fmt.Errorf("%w: %w", errOutput, datasets.PlainError(err))
	}
	return []document{one}, nil
}

// fileName returns the recording that a row names, also by the keys of manifests.
func (d document) fileName() string {
	file, _ := datasets.FileAndText(d.raw)
	return cmp.Or(d.Path, d.Session, file)
}

// segLST reads segments of several sessions.
func segLST(rows []document, recording string) (*otograph.Result, error) {
	res := &otograph.Result{}
	for _, r := range rows {
		if r.Session != "" && recording != "" && !slices.Contains(datasets.NamesOf(recording), r.Session) {
			continue
		}
		var words string
		if len(r.Words) > 0 {
			if err := json.Unmarshal(r.Words, &words); err != nil {
				return nil, fmt.Errorf("%w: words: %w", errOutput, datasets.PlainError(err))
			}
		}
		g := otograph.Segment{Speaker: r.Speaker, Text: words}
		if r.Start != nil && r.End != nil {
			g.Start, g.End = span(*r.Start, *r.End)
		}
		res.Segments = append(res.Segments, g)
	}
	return finish(res), nil
}

// span returns times that are not negative and in the right order.
func span(start, end float64) (from, to float64) {
	from = min(max(start, 0), datasets.MaxSeconds)
	return from, min(max(end, from), datasets.MaxSeconds)
}

func (d document) result() (*otograph.Result, error) {
	res := &otograph.Result{AudioDuration: max(d.Duration, 0), Language: cmp.Or(d.Language, d.Lang, d.LanguageCode, d.Result.Language)}
	for _, t := range d.Turns {
		start, end := span(t.Start, t.End)
		res.DiarizeSegments = append(res.DiarizeSegments, otograph.Turn{Start: start, End: end, Speaker: t.Speaker})
	}
	for _, s := range slices.Concat(d.Segments, d.Utterances) {
		g := otograph.Segment{Text: strings.TrimSpace(s.Text), Speaker: s.Speaker, Words: d.timed(s.Words)}
		g.Start, g.End = span(s.Start/d.unit(), s.End/d.unit())
		res.Segments = append(res.Segments, g)
	}
	for _, s := range d.Transcription {
		g := otograph.Segment{Text: strings.TrimSpace(s.Text)}
		g.Start, g.End = span(s.Offsets.From/1000, s.Offsets.To/1000)
		res.Segments = append(res.Segments, g)
	}
	text := d.Text
	if d.PredText != nil {
		text = d.PredText
	}
	if text == nil && !slices.ContainsFunc(res.Segments, func(s otograph.Segment) bool { return s.Text != "" }) {
		if found, ok := shaped(d.raw); ok {
			text, res.Segments = &found, nil
		}
	}
	switch {
	case len(res.Segments) > 0:
		d.spreadWords(res)
	case text != nil:
		words := d.looseWords()
		res.Segments = []otograph.Segment{{Text: strings.TrimSpace(*text), Words: words}}
		if n := len(words); n > 0 {
			res.Segments[0].Start, res.Segments[0].End = words[0].Start, words[n-1].End
		}
	case d.Segments == nil && d.Transcription == nil:
		if len(d.Error) > 0 {
			return nil, fmt.Errorf("%w: it reports an error: %.200s", errOutput, d.Error)
		}
		return nil, fmt.Errorf("%w: expected JSON with the key text, segments, transcription or pred_text", errOutput)
	}
	return finish(res), nil
}

// unit returns the times of words and segments for a second.
func (d document) unit() float64 {
	if d.AudioURL != nil {
		return 1000
	}
	return 1
}

func (d document) timed(words []jsonWord) (out []otograph.Word) {
	for _, w := range words {
		if w.Start == nil || w.End == nil {
			continue
		}
		start, end := span(*w.Start/d.unit(), *w.End/d.unit())
		out = append(out, otograph.Word{Word: cmp.Or(w.Word, w.Text), Start: start, End: end, Probability: w.Probability})
	}
	return out
}

// looseWords returns the words outside the segments: words with times, or
// tokens with only a start time.
func (d document) looseWords() []otograph.Word {
	var words []jsonWord
	if json.Unmarshal(d.Words, &words) == nil && len(words) > 0 {
		return d.timed(words)
	}
	var starts []float64
	if json.Unmarshal(d.Timestamps, &starts) != nil || len(starts) != len(d.Tokens) {
		return nil
	}
	var out []otograph.Word
	for i, token := range d.Tokens {
		text := strings.TrimLeft(token, " \u2581")
		start, end := span(starts[i], starts[i])
		if n := len(out); n > 0 {
			out[n-1].End = max(out[n-1].Start, start)
			if text == token {
				out[n-1].Word += text
				continue
			}
		}
		out = append(out, otograph.Word{Word: text, Start: start, End: end})
	}
	return out
}

// spreadWords assigns words outside the segments to segments without any.
func (d document) spreadWords(res *otograph.Result) {
	if slices.ContainsFunc(res.Segments, func(s otograph.Segment) bool { return len(s.Words) > 0 }) {
		return
	}
	i := 0
	for _, w := range d.looseWords() {
		for i+1 < len(res.Segments) && w.Start >= res.Segments[i+1].Start {
			i++
		}
		res.Segments[i].Words = append(res.Segments[i].Words, w)
	}
}
