package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
	"github.com/otograph/otograph/tasks"
)

// Formats of POST /audio/transcriptions.
const (
	formatJSON    = "json"
	formatVerbose = "verbose_json"
	formatText    = "text"
	formatSRT     = "srt"
	formatVTT     = "vtt"
)

const (
	maxFormField  = 16 << 10 // bytes of a field other than the file
	maxFormFields = 64
)

// transcription is what a client of POST /audio/transcriptions asks for.
type transcription struct {
	filename string
	format   string
	words    bool // word times
	segments bool // segments in verbose_json
	options  spec.Options
}

// transcribe is POST /audio/transcriptions, as OpenAI's clients call it: the
// upload becomes an ordinary task, and the answer waits until it is done.
func (s *Server) transcribe(w http.ResponseWriter, r *request) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return unsupportedType("multipart/form-data with a boundary")
	}
	body, err := s.body(w, r.Request, MaxUploadBody)
	if err != nil {
		return err
	}
	leave, err := s.admit(r, MaxUploadBody)
	if err != nil {
		return err
	}
	defer leave()
	var audio *blob.Writer
	defer func() {
		if audio != nil {
			audio.Abort()
		}
	}()
	form, err := readForm(multipart.NewReader(body, params["boundary"]), func(filename string, from io.Reader) error {
		if audio, err = s.cfg.Tasks.NewAudio(r.Context(), filename); err != nil {
			return err
		}
		n, err := copyAudio(audio, from)
		s.metrics.upload.Add(float64(n))
		return err
	})
	if err != nil {
		return err
	}
	// A client that goes away while its task is worked on is noticed only when
	// nothing of its body is left.
	if _, err := io.Copy(io.Discard, io.LimitReader(body, maxFormField)); err != nil {
		return formError(err)
	}
	leave()
	options, err := effective(form.options)
	if err != nil {
		return err
	}
	req := tasks.Request{Account: r.who.Account, Filename: form.filename, Options: options}
	if err := s.commitAudio(r, audio, &req); err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Message = strings.Replace(e.Message, "audio_base64", "file", 1)
		}
		return err
	}
	t, _, err := s.cfg.Tasks.Create(r.Context(), req, tasks.Idempotency{})
	if err != nil {
		return err
	}
	w.Header().Set("X-Task-Id", t.ID)
	return s.answerTranscription(w, r, t.ID, form)
}

func (s *Server) answerTranscription(w http.ResponseWriter, r *request, id string, form *transcription) error {
	s.metrics.waiting.Inc()
	defer s.metrics.waiting.Dec()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	t, err := s.cfg.Tasks.Wait(ctx, r.who.Account, id)
	if err != nil {
		if r.Context().Err() == nil && ctx.Err() != nil {
			out := unavailable(err)
			out.Message = "the service is stopping; the task goes on: GET /tasks/" + id
			return out
		}
		return err
	}
	if t.Status != tasks.StatusDone {
		reason := "unknown reason"
		if t.ErrorMessage != nil {
			reason = *t.ErrorMessage
		}
		return &Error{Status: http.StatusUnprocessableEntity, Code: CodeInvalidRequest, Message: "the audio could not be transcribed: " + reason}
	}
	stored, err := s.cfg.Tasks.Result(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	defer stored.Close()
	var buf bytes.Buffer
	if _, err := stored.WriteTo(&buf); err != nil {
		return err
	}
	var result spec.Result
	if err := json.Unmarshal(buf.Bytes(), &result); err != nil {
		return err
	}
	return writeTranscription(w, form, result)
}

// readForm reads the form; file takes the audio as it comes.
func readForm(mr *multipart.Reader, file func(filename string, from io.Reader) error) (*transcription, error) {
	f := &transcription{format: formatJSON}
	granularities := []string{}
	seen := map[string]bool{}
	for n := 0; ; n++ {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, formError(err)
		}
		if n >= maxFormFields {
			return nil, invalid("the form has more than %d fields", maxFormFields)
		}
		name := part.FormName()
		if name != "timestamp_granularities[]" && name != "timestamp_granularities" && seen[name] {
			return nil, invalid("%s: is given twice", spec.Shorten(name))
		}
		seen[name] = true
		if name == "file" {
			if f.filename = part.FileName(); f.filename == "" {
				return nil, invalid("file: must be a file with a name, to determine the extension")
			}
			if err := checkText("file", f.filename, maxFilename); err != nil {
				return nil, err
			}
			if !utf8.ValidString(f.filename) {
				return nil, invalid("file: the name is not valid UTF-8")
			}
			if err := file(f.filename, formReader{part}); err != nil {
				return nil, err
			}
			continue
		}
		raw, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
		if err != nil {
			return nil, formError(err)
		}
		text := string(raw)
		switch {
		case len(raw) > maxFormField:
			return nil, invalid("%s: is longer than %d bytes", spec.Shorten(name), maxFormField)
		case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
			return nil, invalid("%s: not valid text", spec.Shorten(name))
		}
		switch name {
		case "response_format":
			f.format = text
		case "language":
			if text != "" {
				f.options.ASRLanguage = &text
			}
		case "prompt":
			if text != "" {
				f.options.InitialPrompt = &text
			}
		case "temperature":
			t, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, invalid("temperature: must be a number from 0 to 1, not %q", spec.Shorten(text))
			}
			f.options.ASRTemperature = &t
		case "timestamp_granularities[]", "timestamp_granularities":
			granularities = append(granularities, text)
		case "stream":
			if text == "true" || text == "1" {
				return nil, invalid("stream: answers are not streamed here")
			}
		}
	}
	return f, f.finish(seen, granularities)
}

func (f *transcription) finish(seen map[string]bool, granularities []string) error {
	if !seen["file"] {
		return invalid("file: is required")
	}
	if !slices.Contains([]string{formatJSON, formatVerbose, formatText, formatSRT, formatVTT}, f.format) {
		return invalid("response_format: must be json, verbose_json, text, srt or vtt, not %q", spec.Shorten(f.format))
	}
	for _, g := range granularities {
		switch g {
		case "word":
			f.words = true
		case "segment":
			f.segments = true
		default:
			return invalid("timestamp_granularities[]: must be word or segment, not %q", spec.Shorten(g))
		}
	}
	if len(granularities) > 0 && f.format != formatVerbose {
		return invalid("timestamp_granularities[]: needs response_format verbose_json")
	}
	f.segments = f.segments || !f.words
	no := false
	f.options.EnableDiarize, f.options.EnableAudioEvents = &no, &no
	level := spec.TimestampSegment
	// Subtitles split long lines where the words are, and word times exist in
	// the standard tier alone.
	if f.words || f.format == formatSRT || f.format == formatVTT {
		level = spec.TimestampWord
	}
	if f.words {
		f.options.Optimize = &no
	}
	f.options.TimestampLevel = &level
	if _, err := f.options.Effective(); err != nil {
		e := optionsError(err)
		for option, field := range map[string]string{"asr_language": "language", "initial_prompt": "prompt", "asr_temperature": "temperature"} {
			e.Message = strings.Replace(e.Message, "options."+option, field, 1)
		}
		return e
	}
	return nil
}

// formReader gives the errors of a form's part as a client may see them.
type formReader struct{ r io.Reader }

func (f formReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = formError(err)
	}
	return n, err
}

func formError(err error) error {
	var e *Error
	if errors.As(readError(err), &e) && e.Status != http.StatusBadRequest {
		return e
	}
	out := invalid("the form cannot be read: it is cut off or not multipart/form-data")
	out.cause = err
	return out
}

func writeTranscription(w http.ResponseWriter, form *transcription, result spec.Result) error {
	texts := make([]string, 0, len(result.Segments))
	for _, seg := range result.Segments {
		texts = append(texts, strings.TrimSpace(seg.Text))
	}
	text := joinTexts(texts)
	var buf bytes.Buffer
	switch form.format {
	case formatText:
		writeBody(w, http.StatusOK, "text/plain; charset=utf-8", []byte(text+"\n"))
	case formatSRT:
		if err := subtitle.SRT(&buf, subtitle.Cues(&result, false), subtitle.Options{}); err != nil {
			return err
		}
		writeBody(w, http.StatusOK, "application/x-subrip; charset=utf-8", buf.Bytes())
	case formatVTT:
		if err := subtitle.VTT(&buf, subtitle.Cues(&result, false), subtitle.Options{}); err != nil {
			return err
		}
		writeBody(w, http.StatusOK, "text/vtt; charset=utf-8", buf.Bytes())
	case formatVerbose:
		return writeJSON(w, http.StatusOK, verbose(form, result, text))
	default:
		return writeJSON(w, http.StatusOK, struct {
			Text string `json:"text"`
		}{text})
	}
	return nil
}

// joinTexts puts sentences behind one another, with a space between them where
// the script uses spaces.
func joinTexts(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if last, _ := utf8.DecodeLastRuneInString(b.String()); b.Len() > 0 {
			first, _ := utf8.DecodeRuneInString(t)
			if !unspaced(last) || !unspaced(first) {
				b.WriteByte(' ')
			}
		}
		b.WriteString(t)
	}
	return b.String()
}

// unspaced reports a character of a script that puts no spaces between
// sentences: Chinese and Japanese with their punctuation. Korean has spaces.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

type verboseSegment struct {
	ID    int     `json:"id"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Text  string  `json:"text"`
}

type verboseWord struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

type verboseJSON struct {
	Task     string           `json:"task"`
	Language string           `json:"language"`
	Duration float64          `json:"duration"`
	Text     string           `json:"text"`
	Segments []verboseSegment `json:"segments,omitzero"`
	Words    []verboseWord    `json:"words,omitzero"`
}

func verbose(form *transcription, result spec.Result, text string) verboseJSON {
	v := verboseJSON{Task: "transcribe", Language: result.Language, Duration: result.AudioDuration, Text: text}
	if form.segments {
		v.Segments = []verboseSegment{}
	}
	if form.words {
		v.Words = []verboseWord{}
	}
	for _, seg := range result.Segments {
		if form.segments {
			v.Segments = append(v.Segments, verboseSegment{seg.ID, seg.Start, seg.End, seg.Text})
		}
		if form.words {
			for _, word := range seg.Words {
				v.Words = append(v.Words, verboseWord{strings.TrimSpace(word.Word), word.Start, word.End})
			}
		}
	}
	return v
}
