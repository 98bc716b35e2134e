package httpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deepgramFailure reads an error in Deepgram's form.
func deepgramFailure(t testing.TB, a answer) (code, message string) {
	t.Helper()
	var body struct {
		Code    string `json:"err_code"`
		Message string `json:"err_msg"`
		Request string `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal(a.body, &body), "%s", a.body)
	require.NotEmpty(t, body.Code)
	require.NotEmpty(t, body.Message)
	require.Equal(t, a.header.Get("X-Request-Id"), body.Request)
	return body.Code, body.Message
}

// TestListenFile checks requests and responses of Deepgram's clients for
// recordings.
func TestListenFile(t *testing.T) {
	w := newWorld(t)
	w.work()
	token := with("Authorization", "Token "+w.key)
	post := func(query, kind string, body any) answer {
		return w.do("POST", "/listen"+query, body, noKey, token, with("Content-Type", kind))
	}
	recording := func() *strings.Reader { return strings.NewReader(string(wav(2))) }
	const text = "Hello there. Good <b>day</b> & bye."

	a := post("?model=nova-3&language=en-US&diarize=true&utterances=true&smart_format=true&profanity_filter=true&tag=x&keyterm=Otograph", "audio/wav", recording())
	require.Equal(t, 200, a.status, "%s", a.body)
	m := a.object(t)
	meta := m["metadata"].(map[string]any)
	id := a.header.Get("X-Task-Id")
	assert.Equal(t, []any{id, 61.5, 1.0}, []any{meta["request_id"], meta["duration"], meta["channels"]})
	for _, model := range meta["model_info"].(map[string]any) {
		assert.Equal(t, "otograph-standard", model.(map[string]any)["name"])
	}
	assert.Equal(t, "profanity_filter", meta["warnings"].([]any)[0].(map[string]any)["parameter"], "an option without effect is reported")
	results := m["results"].(map[string]any)
	channel := results["channels"].([]any)[0].(map[string]any)
	assert.NotContains(t, channel, "detected_language")
	best := channel["alternatives"].([]any)[0].(map[string]any)
	assert.Equal(t, text, best["transcript"])
	assert.InDelta(t, 0.8, best["confidence"], 1e-9, "the mean of the words")
	assert.Equal(t, map[string]any{"word": "there", "punctuated_word": "there.", "start": 1.0, "end": 1.75, "confidence": 0.8, "speaker": 0.0}, best["words"].([]any)[1])
	sentence := results["utterances"].([]any)[1].(map[string]any)
	assert.Equal(t, []any{"Good <b>day</b> & bye.", 2.0, 3.0, 0.0}, []any{sentence["transcript"], sentence["start"], sentence["end"], sentence["speaker"]})
	o := w.task(id)["options"].(map[string]any)
	assert.Equal(t, []any{"en-US", true, false, "word", []any{"Otograph"}}, []any{o["asr_language"], o["enable_diarize"], o["enable_audio_events"], o["timestamp_level"], o["hotwords"]})
	assert.Contains(t, string(w.do("GET", "/billing/transactions", nil).body), id, "charged like any task")
	usage := w.do("GET", "/usage?by=key", nil).object(t)["usage"].([]any)
	assert.Len(t, usage[0].(map[string]any)["key"], 36, "the sums of usage name the key")

	a = post("?detect_language=true&model=otograph-optimized", "application/json", `{"url":"`+w.media.url+`/talk.wav"}`)
	require.Equal(t, 200, a.status, "%s", a.body)
	channel = a.object(t)["results"].(map[string]any)["channels"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{"en", 0.98}, []any{channel["detected_language"], channel["language_confidence"]})
	best = channel["alternatives"].([]any)[0].(map[string]any)
	assert.Equal(t, text, best["transcript"])
	words := best["words"].([]any)
	assert.Len(t, words, 6, "without word times, the words of the text")
	assert.Equal(t, map[string]any{"word": "hello", "punctuated_word": "Hello", "start": 0.5, "end": 1.068, "confidence": 0.0}, words[0])
	assert.Equal(t, 3.0, words[5].(map[string]any)["end"])

	for _, bad := range []struct {
		query, kind, body, code, want string
		status                        int
	}{
		{"?redact=pci", "audio/wav", string(wav(2)), "Bad Request", "redact: is not served here", 400},
		{"?callback=https://example.com", "audio/wav", string(wav(2)), "Bad Request", "callback: is not served here", 400},
		{"?language=klingon", "audio/wav", string(wav(2)), "Bad Request", "language: ", 400},
		{"?keyterm=" + strings.Repeat("x", 65), "audio/wav", string(wav(2)), "Bad Request", "keyterm: ", 400},
		{"", "audio/wav", "RIFF", "Bad Request", "body: must decode to at least", 400},
		{"", "application/json", `{"url":"http://10.0.0.1/a.wav"}`, "Bad Request", "url: ", 400},
		{"", "application/json", string(wav(60)), "UNSUPPORTED_MEDIA_TYPE", "the body must be a recording", 415},
		{"", "multipart/form-data; boundary=x", string(wav(2)), "UNSUPPORTED_MEDIA_TYPE", "the body must be a recording", 415},
		{"", "application/json", `{"url":""}`, "Bad Request", "url: is required", 400},
		{"", "application/json", `{"url":"` + w.media.url + `/missing.wav"}`, "Bad Request", "could not be transcribed", 400},
	} {
		a := post(bad.query, bad.kind, strings.NewReader(bad.body))
		assert.Equal(t, bad.status, a.status, "%s", bad.query)
		code, message := deepgramFailure(t, a)
		assert.Equal(t, bad.code, code)
		assert.Contains(t, message, bad.want)
	}
	code, _ := deepgramFailure(t, w.do("POST", "/listen", recording(), noKey, with("Authorization", "Token "+w.key[:40])))
	assert.Equal(t, "INVALID_AUTH", code)
	code, _ = deepgramFailure(t, w.do("PUT", "/listen", nil))
	assert.Equal(t, "METHOD_NOT_ALLOWED", code)
}
