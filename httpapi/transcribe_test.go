package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// form builds a multipart body: pairs of names and values, "file" last or first.
func form(t testing.TB, filename string, fileFirst bool, pairs ...string) (io.Reader, http.Header) {
	t.Helper()
	var buf bytes.Buffer
	mw := multipart.NewWriter(&buf)
	file := func() {
		if filename == "" {
			return
		}
		part, err := mw.CreateFormFile("file", filename)
		require.NoError(t, err)
		_, _ = part.Write(wav(2))
	}
	if fileFirst {
		file()
	}
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(t, mw.WriteField(pairs[i], pairs[i+1]))
	}
	if !fileFirst {
		file()
	}
	require.NoError(t, mw.Close())
	return &buf, with("Content-Type", mw.FormDataContentType())
}

// TestTranscriptions walks through what OpenAI's clients send and expect.
func TestTranscriptions(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(pairs ...string) answer {
		body, header := form(t, "talk.wav", len(pairs)%4 == 0, pairs...)
		return w.do("POST", "/audio/transcriptions", body, header, noKey, with("Authorization", "Bearer "+w.key))
	}
	const text = "Hello there. Good <b>day</b> & bye."

	a := post("model", "whisper-1")
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, map[string]any{"text": text}, a.object(t))
	id := a.header.Get("X-Task-Id")
	task := w.task(id)
	assert.Equal(t, "done", task["status"])
	assert.Equal(t, "talk.wav", task["audio_filename"])
	o := task["options"].(map[string]any)
	assert.Equal(t, []any{true, false, false, "segment"}, []any{o["enable_asr"], o["enable_diarize"], o["enable_audio_events"], o["timestamp_level"]})
	assert.Contains(t, string(w.do("GET", "/billing/transactions", nil).body), id, "charged like any task")

	a = post("model", "whisper-1", "response_format", "text")
	assert.Equal(t, text+"\n", string(a.body))
	assert.Contains(t, a.header.Get("Content-Type"), "text/plain")

	a = post("response_format", "srt")
	assert.Contains(t, string(a.body), "1\n00:00:00,500 --> 00:00:01,750\nHello there.")
	a = post("response_format", "vtt", "model", "x")
	assert.True(t, strings.HasPrefix(string(a.body), "WEBVTT"))

	a = post("response_format", "verbose_json")
	m := a.object(t)
	assert.Equal(t, []any{"transcribe", "en", 61.5, text}, []any{m["task"], m["language"], m["duration"], m["text"]})
	assert.Len(t, m["segments"], 2)
	assert.NotContains(t, m, "words")

	a = post("response_format", "verbose_json", "timestamp_granularities[]", "word")
	m = a.object(t)
	assert.NotContains(t, m, "segments")
	assert.Equal(t, map[string]any{"word": "Hello", "start": 0.5, "end": 1.0}, m["words"].([]any)[0])

	a = post("response_format", "verbose_json", "timestamp_granularities[]", "word", "timestamp_granularities[]", "segment")
	m = a.object(t)
	assert.Len(t, m["segments"], 2)
	assert.Len(t, m["words"], 3)

	a = post("language", "de", "prompt", "Otograph", "temperature", "0.2", "model", "", "user", "someone")
	require.Equal(t, 200, a.status, "%s", a.body)
	o = w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)
	assert.Equal(t, []any{"de", "Otograph", 0.2}, []any{o["asr_language"], o["initial_prompt"], o["asr_temperature"]})

	for _, bad := range [][]string{
		{"response_format", "xml"}, {"language", "klingon"}, {"temperature", "hot"}, {"temperature", "2"}, {"timestamp_granularities[]", "word"}, {"response_format", "verbose_json", "timestamp_granularities[]", "char"},
		{"stream", "true"}, {"prompt", strings.Repeat("x", 1001)}, {"prompt", strings.Repeat("x", 20_000)}, {"language", "a\x00"}, {"model", "a", "model", "b"}, {"temperature", "NaN"},
	} {
		a := post(bad...)
		assert.Equal(t, 400, a.status, "%q: %.200s", bad, a.body)
		assert.Contains(t, a.object(t)["error"], bad[len(bad)-2])
	}
}

func TestTranscriptionRefusals(t *testing.T) {
	w := newWorld(t)
	w.work()
	body, header := form(t, "", true, "model", "whisper-1")
	a := w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, 400, a.status)
	assert.Contains(t, a.object(t)["error"], "file: is required")
	for name, kind := range map[string]string{"json": "application/json", "no boundary": "multipart/form-data", "none": "x", "mixed": "multipart/mixed; boundary=x"} {
		assert.Equal(t, 415, w.do("POST", "/audio/transcriptions", "{}", with("Content-Type", kind)).status, name)
	}
	for name, raw := range map[string]string{
		"empty": "", "no parts": "--x--\r\n", "cut": "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF", "no name": "--x\r\n\r\nRIFF\r\n--x--\r\n",
		"file without name": "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nRIFF\r\n--x--\r\n", "empty file": "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n\r\n--x--\r\n",
		"many": strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n", 100) + "--x--\r\n", "long header": "--x\r\nA: " + strings.Repeat("a", 20<<20),
		"two files": strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n", 2) + "--x--\r\n",
	} {
		a := w.do("POST", "/audio/transcriptions", raw, with("Content-Type", "multipart/form-data; boundary=x"))
		assert.Equal(t, 400, a.status, "%s: %s", name, a.body)
	}
	assert.Empty(t, blobKeys(t, w), "no upload is left")

	body, header = form(t, "broken.wav", true)
	a = w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, 422, a.status)
	assert.Contains(t, a.object(t)["error"], "longer than 5 hours")
	_, broke := w.newAccount("broke", "0")
	body, header = form(t, "talk.wav", true)
	a = w.do("POST", "/audio/transcriptions", body, header, with("X-Api-Key", broke))
	assert.Equal(t, 402, a.status)
}

// TestDrainEndsWaits: a server that is about to stop doesn't hang on a task.
func TestDrainEndsWaits(t *testing.T) {
	w := newWorld(t) // no worker: the task never ends
	body, header := form(t, "talk.wav", true)
	got := make(chan answer)
	go func() { got <- w.do("POST", "/audio/transcriptions", body, header) }()
	require.Eventually(t, func() bool {
		return w.do("GET", "/account", nil).object(t)["active_tasks"] == 1.0
	}, 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, 200, w.send("GET", "/readyz", nil, nil).status)
	w.api.Drain()
	w.api.Drain()
	a := <-got
	assert.Equal(t, 503, a.status)
	assert.Contains(t, a.object(t)["error"], "GET /tasks/")
	assert.Equal(t, 503, w.send("GET", "/readyz", nil, nil).status)
	assert.Equal(t, 200, w.send("GET", "/healthz", nil, nil).status)
}

// TestClientGoesAway: the task of a client that hangs up goes on.
func TestClientGoesAway(t *testing.T) {
	w := newWorld(t)
	body, header := form(t, "talk.wav", true)
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/audio/transcriptions", body)
	require.NoError(t, err)
	req.Header = header
	req.Header.Set("X-API-Key", w.key)
	done := make(chan error, 1)
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	require.Eventually(t, func() bool {
		return w.do("GET", "/account", nil).object(t)["active_tasks"] == 1.0
	}, 10*time.Second, 10*time.Millisecond)
	cancel()
	assert.Error(t, <-done)
	require.Eventually(t, func() bool { return strings.Contains(w.log.String(), `"status":499`) }, 10*time.Second, 10*time.Millisecond)
	list := w.do("GET", "/tasks?status=processing", nil).object(t)
	assert.EqualValues(t, 1, list["total"])
}

func TestJoinTexts(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{nil, ""}, {[]string{"a", "", "b"}, "a b"}, {[]string{"你好。", "再见。"}, "你好。再见。"}, {[]string{"你好", "Bob"}, "你好 Bob"}, {[]string{"안녕", "하세요"}, "안녕 하세요"},
	} {
		assert.Equal(t, tt.want, joinTexts(tt.in))
	}
}

// FuzzForm: whatever comes as a form is read or refused.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=\"temperature\"\r\n\r\n0.5\r\n--x--\r\n", "--x--",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readForm(multipart.NewReader(bytes.NewReader(body), "x"), func(_ string, r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, 400, e.Status)
			return
		}
		require.NotEmpty(t, got.filename)
		_, err = json.Marshal(got.options)
		require.NoError(t, err)
	})
}
