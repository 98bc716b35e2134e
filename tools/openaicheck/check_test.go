package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fault is an error of a made-up server.
type fault string

// Faults that each show in one case.
const (
	nullNumber       fault = "response_format=verbose_json"
	alwaysJSON       fault = "response_format=srt"
	everyModel       fault = "wrong model"
	foreignError     fault = "a wrong key"
	everyTemperature fault = "wrong temperature"
	noStream         fault = "stream"
	noWords          fault = "timestamp_granularities[]=word"
	noSpeaker        fault = "response_format=diarized_json"
)

var eight = []fault{nullNumber, alwaysJSON, everyModel, foreignError, everyTemperature, noStream, noWords, noSpeaker}

// madeUp is a server that answers correctly, except for its faults.
type madeUp struct{ faults []fault }

func (m madeUp) has(f fault) bool { return slices.Contains(m.faults, f) }

func (m madeUp) refuse(w http.ResponseWriter, status int, param string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"message": "bad %s", "type": "invalid_request_error", "param": %q, "code": null}}`, param, param)
}

func (m madeUp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const model = `{"id": "whisper-1", "object": "model", "created": 1, "owned_by": "made-up"}`
	switch _, path, _ := strings.Cut(r.URL.Path, "/v1"); {
	case r.Header.Get("Authorization") != "Bearer key" && m.has(foreignError):
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"detail": "Not authenticated"}`)
	case r.Header.Get("Authorization") != "Bearer key":
		m.refuse(w, http.StatusUnauthorized, "")
	case path == "/models":
		fmt.Fprint(w, `{"object": "list", "data": [`+model+`]}`)
	case path == "/models/whisper-1":
		fmt.Fprint(w, model)
	case strings.HasPrefix(path, "/models/"):
		m.refuse(w, http.StatusNotFound, "model")
	default:
		m.transcribe(w, r)
	}
}

// wrong returns the field of a form with a wrong value, "" for none.
func (m madeUp) wrong(r *http.Request) string {
	is := r.FormValue
	right := map[string]bool{
		"model":           is("model") != "no-such-model" || m.has(everyModel),
		"response_format": is("response_format") != "xml", "temperature": is("temperature") != "9" || m.has(everyTemperature),
		"stream": is("stream") != "maybe", "keywords[]": is("keywords[]") != "<b>", "include[]": is("include[]") != "everything",
		"chunking_strategy": is("chunking_strategy") != "nonsense", "timestamp_granularities[]": is("timestamp_granularities[]") != "letter",
		"language": is("language") != "klingon", "languages[]": is("languages[]") != "klingon",
		"known_speaker_names[]": is("known_speaker_names[]") == "" || is("known_speaker_references[]") != "",
	}
	for name, ok := range right {
		if !ok {
			return name
		}
	}
	return ""
}

func (m madeUp) transcribe(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseMultipartForm(1 << 20)
	if field := m.wrong(r); field != "" {
		m.refuse(w, http.StatusBadRequest, field)
		return
	}
	format, plain := r.FormValue("response_format"), r.FormValue("language")+r.FormValue("timestamp_granularities[]")+r.FormValue("stream")+r.FormValue("known_speaker_names[]") == ""
	if strings.HasSuffix(r.URL.Path, "translations") || !plain {
		m.faults = slices.DeleteFunc(slices.Clone(m.faults), func(f fault) bool { return f == nullNumber || f == alwaysJSON || f == noSpeaker })
	}
	diarized := `{"type": "transcript.text.segment", "id": "seg_0", "start": 0, "end": 1.5, "text": "Hi.", "speaker": "Ann"}`
	if m.has(noSpeaker) {
		diarized = `{"type": "transcript.text.segment", "id": "seg_0", "start": 0, "end": 1.5, "text": "Hi."}`
	}
	if r.FormValue("stream") == "true" && !(m.has(noStream) && format == "") {
		w.Header().Set("Content-Type", "text/event-stream")
		if format == "diarized_json" {
			fmt.Fprint(w, "data: "+diarized+"\n\n")
		}
		fmt.Fprint(w, "data: {\"type\": \"transcript.text.delta\", \"delta\": \"Hi.\"}\n\n: still here\n\ndata: {\"type\": \"transcript.text.done\", \"text\": \"Hi.\"}\n\ndata: [DONE]\n\n")
		return
	}
	if m.has(alwaysJSON) && format == "srt" {
		format = ""
	}
	temperature := "0"
	if m.has(nullNumber) {
		temperature = "null"
	}
	words := `, "words": [{"word": "Hi.", "start": 0, "end": 1.5}]`
	if m.has(noWords) {
		words = ""
	}
	switch format {
	case "text":
		fmt.Fprint(w, "Hi.\n")
	case "srt":
		fmt.Fprint(w, "1\n00:00:00,000 --> 00:00:01,500\nHi.\n")
	case "vtt":
		fmt.Fprint(w, "WEBVTT\n\n00:00.000 --> 00:01.500\nHi.\n")
	case "verbose_json":
		fmt.Fprint(w, `{"task": "transcribe", "language": "english", "duration": 1.5, "text": "Hi.", "segments": [{"id": 0, "seek": 0, "start": 0, "end": 1.5, "text": "Hi.",
			"tokens": [1], "temperature": `+temperature+`, "avg_logprob": -0.1, "compression_ratio": 1, "no_speech_prob": 0}]`+words+`}`)
	case "diarized_json":
		fmt.Fprint(w, `{"task": "transcribe", "duration": 1.5, "text": "Hi.", "segments": [`+diarized+`]}`)
	default:
		fmt.Fprint(w, `{"text": "Hi.", "logprobs": [{"token": "Hi.", "logprob": -0.1, "bytes": [72]}], "usage": {"type": "duration", "seconds": 2}}`)
	}
}

func check(t *testing.T, h http.Handler, timeout time.Duration) (rows []Row, err error) {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	s := Server{Base: srv.URL + "/v1", Key: "key", Model: "whisper-1", Timeout: timeout, Client: srv.Client()}
	err = s.Check(t.Context(), func(r Row) { rows = append(rows, r) })
	return rows, err
}

func faulty(rows []Row) (list []fault) {
	for _, r := range rows {
		if r.Verdict.Fault() {
			list = append(list, fault(r.Case))
		}
	}
	return list
}

// TestFaultsAreDetected: the check finds no fault in a correct server, all
// eight in a server with eight faults, each fault by itself, and a server that
// hangs.
func TestFaultsAreDetected(t *testing.T) {
	rows, err := check(t, madeUp{}, time.Minute)
	require.NoError(t, err)
	assert.Empty(t, faulty(rows))
	assert.Len(t, rows, len(cases()))
	rows, err = check(t, madeUp{eight}, time.Minute)
	require.NoError(t, err)
	assert.ElementsMatch(t, eight, faulty(rows))
	verdicts := map[fault]Verdict{nullNumber: Wrong, foreignError: Wrong, noSpeaker: Wrong}
	for _, r := range rows {
		if r.Verdict.Fault() {
			want, ok := verdicts[fault(r.Case)]
			assert.Equal(t, map[bool]Verdict{true: want, false: Ignored}[ok], r.Verdict, "%s: %s", r.Case, r.Note)
			assert.NotEmpty(t, r.Note)
		}
	}
	for _, one := range eight {
		rows, err := check(t, madeUp{[]fault{one}}, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []fault{one}, faulty(rows))
	}
	rows, err = check(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the disconnection is not noticed
		<-r.Context().Done()
	}), 50*time.Millisecond)
	require.ErrorContains(t, err, "3 requests in a row had no answer")
	assert.Len(t, rows, maxSilent)
	assert.Equal(t, NoAnswer, rows[0].Verdict)
}

// TestSchema: the description is complete: every reference has a target.
func TestSchema(t *testing.T) {
	date, source := Published()
	assert.Regexp(t, `^\d{4}-\d{2}-\d{2}$`, date)
	assert.NotEmpty(t, source)
	for _, bad := range []string{
		`{"text": 1}`, `{}`, `[]`, `{"text": "", "usage": {"type": "duration"}}`, `{"text": "", "languages": ["en"]}`, `{"text": "", "usage": 3}`,
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(bad), &value))
		assert.Error(t, conforms("json", value), bad)
	}
	var value any
	require.NoError(t, json.Unmarshal([]byte(`{"text": "", "languages": [{"code": "en"}], "usage": {"type": "tokens", "input_tokens": 1, "output_tokens": 1, "total_tokens": 2}, "own": 1}`), &value))
	assert.NoError(t, conforms("json", value))
}
