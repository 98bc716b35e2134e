package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// Verdict is a server's treatment of a parameter or format.
type Verdict string

// The verdicts.
const (
	Works    Verdict = "works"
	Refused  Verdict = "refused clearly"
	Ignored  Verdict = "ignored silently"
	Wrong    Verdict = "wrong shape"
	NoAnswer Verdict = "no answer"
)

// Fault reports whether a program that relies on the case fails silently.
func (v Verdict) Fault() bool { return v != Works && v != Refused }

// Row is the verdict on a case.
type Row struct {
	Case    string  `json:"case"`
	Verdict Verdict `json:"verdict"`
	Note    string  `json:"note,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Server is the server to check.
type Server struct {
	Base    string // "http://127.0.0.1:8080/v1"
	Key     string // API key, "" for none
	Model   string // for the cases that need no other model; "" means whisper-1
	Timeout time.Duration
	Client  *http.Client
}

// maxSilent is the number of consecutive cases without an answer after which
// the check ends.
const maxSilent = 3

// maxAnswer limits an answer, in bytes.
const maxAnswer = 8 << 20

// Check runs all cases, one after the other, and passes each verdict to tell.
// It ends early, with an error, if the server does not answer.
func (s Server) Check(ctx context.Context, tell func(Row)) error {
	silent := 0
	for _, c := range cases() {
		start := time.Now()
		verdict, note := s.try(ctx, c)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		tell(Row{c.name, verdict, note, time.Since(start).Seconds()})
		if silent++; verdict != NoAnswer {
			silent = 0
		}
		if silent == maxSilent {
			return fmt.Errorf("%s: %d requests in a row had no answer", s.Base, silent)
		}
	}
	return nil
}

// try sends the request of a case and judges its answer.
func (s Server) try(ctx context.Context, c testCase) (Verdict, string) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	request, err := s.request(ctx, c)
	if err != nil {
		return NoAnswer, err.Error()
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return NoAnswer, s.silence(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return NoAnswer, s.silence(err)
	}
	a := answer{status: response.StatusCode, body: body}
	a.kind, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if a.status >= 400 {
		return a.refusal(c)
	}
	if c.invalid {
		return Ignored, "accepted, as if it were right"
	}
	return c.judge(a)
}

func (s Server) silence(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("none within %s", s.Timeout)
	}
	return clip(err.Error())
}

// request returns the request of a case.
func (s Server) request(ctx context.Context, c testCase) (*http.Request, error) {
	method, kind := http.MethodGet, ""
	var body bytes.Buffer
	if c.path == transcriptions || c.path == translations {
		method = http.MethodPost
		mw := multipart.NewWriter(&body)
		kind = mw.FormDataContentType()
		hasModel := false
		for _, f := range c.fields {
			hasModel = hasModel || f[0] == "model"
			_ = mw.WriteField(f[0], f[1]) // a bytes.Buffer takes everything
		}
		if !hasModel {
			_ = mw.WriteField("model", s.Model)
		}
		part, _ := mw.CreateFormFile("file", "recording.mp3")
		_, _ = part.Write(recording)
		_ = mw.Close()
	}
	path := strings.ReplaceAll(c.path, "{model}", s.Model)
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.Base, "/")+path, &body)
	if err != nil {
		return nil, err
	}
	key := s.Key
	if c.stranger {
		key = "sk-nobody"
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	return request, nil
}

// answer is a server's answer.
type answer struct {
	status int
	kind   string // media type
	body   []byte
}

// refusal judges an error.
func (a answer) refusal(c testCase) (Verdict, string) {
	note := fmt.Sprintf("%d: %s", a.status, clip(string(a.body)))
	var body any
	if json.Unmarshal(a.body, &body) != nil {
		return Wrong, "the error is no JSON: " + note
	}
	if err := conforms("error", body); err != nil {
		return Wrong, fmt.Sprintf("%v: %s", err, note)
	}
	e := body.(map[string]any)["error"].(map[string]any)
	message := fmt.Sprint(e["message"])
	note = fmt.Sprintf("%d: %s", a.status, clip(message))
	field := strings.TrimSuffix(c.field, "[]")
	switch {
	case a.status >= 500:
		return NoAnswer, note
	case a.status == http.StatusUnauthorized && !c.stranger, a.status == http.StatusTooManyRequests, a.status == http.StatusPaymentRequired:
		return NoAnswer, note
	case field != "" && !strings.Contains(fmt.Sprint(e["param"], " ", message), field):
		return Wrong, "the refusal does not name " + field + ": " + note
	}
	return Refused, note
}

// maxNote limits a note, in characters.
const maxNote = 160

// clip returns a text on one line, shortened if it is long.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if r := []rune(text); len(r) > maxNote {
		return string(r[:maxNote]) + "…"
	}
	return text
}
