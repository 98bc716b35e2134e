package httpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/spec"
)

// TestUnusualJSONBodiesAreAccepted: a byte order mark, null for a missing
// field, a data URL and another spelling of UTF-8 are accepted.
func TestUnusualJSONBodiesAreAccepted(t *testing.T) {
	w := newWorld(t)
	audio := base64.StdEncoding.EncodeToString(wav(2))
	body, err := json.Marshal(map[string]any{
		"audio_base64": "data:audio/webm;codecs=opus;base64," + audio, "audio_filename": "a.webm", "audio_url": nil,
		"callback_url": nil, "callback_secret": nil, "options": nil, "batch_mode": nil, "allow_training": nil,
	})
	require.NoError(t, err)
	assert.Equal(t, 201, w.do("POST", "/tasks", string(body)).status)
	a := w.do("POST", "/tasks", bytes.NewReader([]byte("\ufeff"+string(body))), with("Content-Type", "application/json; charset=utf8"))
	assert.Equal(t, 201, a.status, "%s", a.body)
	a = w.do("POST", "/tasks", bytes.NewReader(body), with("Content-Type", "application/json; charset=latin1"))
	assert.Equal(t, 415, a.status)
}

// TestCompressedBodiesAreNamed: a compressed form is refused because it is
// compressed, not for a missing field.
func TestCompressedBodiesAreNamed(t *testing.T) {
	w := newWorld(t)
	body, header := form(t, "talk.wav", true)
	header.Set("Content-Encoding", "gzip")
	a := w.do("POST", "/audio/transcriptions", body, header)
	message, _ := openAIFailure(t, a)
	assert.Equal(t, 415, a.status)
	assert.Contains(t, message, "compressed request bodies are not supported: omit Content-Encoding: gzip")
}

// TestEncodedFiles: a file of a form may be Base64, by its header or as a data
// URL.
func TestEncodedFiles(t *testing.T) {
	w := newWorld(t)
	text := base64.StdEncoding.EncodeToString(wav(2))
	for name, tt := range map[string]struct {
		encoding, content string
		status            int
	}{
		"base64":   {"Base64", text[:50] + "\r\n" + text[50:], 201},
		"data URL": {"", "data:audio/wav;base64," + text, 201},
		"binary":   {"binary", string(wav(2)), 201},
		"wrong":    {"base64", "%%%%", 400},
		"no data":  {"", "data:audio/wav," + text, 400},
		"uuencode": {"x-uuencode", text, 400},
	} {
		var buf bytes.Buffer
		mw := multipart.NewWriter(&buf)
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="a.wav"`}}
		if tt.encoding != "" {
			header.Set("Content-Transfer-Encoding", tt.encoding)
		}
		part, err := mw.CreatePart(header)
		require.NoError(t, err)
		_, _ = part.Write([]byte(tt.content))
		require.NoError(t, mw.Close())
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/audio/transcriptions", &buf)
		require.NoError(t, err)
		req.Header = with("X-API-Key", w.key, "Content-Type", mw.FormDataContentType())
		if tt.status == 400 {
			resp, err := client.Do(req)
			require.NoError(t, err)
			assert.Equal(t, 400, resp.StatusCode, name)
			_ = resp.Body.Close()
			cancel()
			continue
		}
		before := w.do("GET", "/tasks", nil).object(t)["total"].(float64)
		go func() { // no worker ends the task
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
		require.Eventually(t, func() bool { return w.do("GET", "/tasks", nil).object(t)["total"].(float64) == before+1 }, 20*time.Second, 25*time.Millisecond, name)
		newest := w.do("GET", "/tasks?page_size=1", nil).object(t)["tasks"].([]any)[0].(map[string]any)["id"].(string)
		assert.Equal(t, float64(len(wav(2))), w.task(newest)["audio_size"], name)
		cancel()
	}
}

// TestUnknownQueryParameters: a mistyped filter is refused with a proposal,
// except where OpenAI ignores it.
func TestUnknownQueryParameters(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		"/tasks?staus=failed":                     `did you mean "status"`,
		"/billing/transactions?form=2030-01-01":   `did you mean "from"`,
		"/billing/transactions?page=1&status=all": "status: there is no such query parameter here",
		"/account?x":                     "x: there is no such query parameter here",
		"/tasks?page=1&page=2":           "page: is given twice",
		"/account?from=1;x":              "invalid semicolon",
		"/models?x=%zz":                  `"%zz"`,
		"/listen?model=%zz":              `"%zz"`,
		"/realtime?model=a;b":            "invalid semicolon",
		"/usage?period=day&period=month": "period: is given twice",
	} {
		a := w.do("GET", path, nil)
		assert.Equal(t, 400, a.status, path)
		assert.Contains(t, strings.ReplaceAll(string(a.body), `\`, ""), want, path)
	}
	assert.Equal(t, 401, w.do("GET", "/tasks?staus=failed", nil, noKey).status)
	assert.Equal(t, 200, w.do("GET", "/models?api-version=2025-04-01", nil).status)
}

// TestListingsByTimeAndAfter: entries can be selected by their time, and a page
// after an entry does not move when others are added.
func TestListingsByTimeAndAfter(t *testing.T) {
	w := newWorld(t)
	ids := func(path, list string, q ...string) (ids []string, total float64) {
		query := url.Values{}
		for i := 0; i < len(q); i += 2 {
			query.Set(q[i], q[i+1])
		}
		a := w.do("GET", path+"?"+query.Encode(), nil)
		require.Equal(t, 200, a.status, "%s", a.body)
		for _, entry := range a.object(t)[list].([]any) {
			ids = append(ids, entry.(map[string]any)["id"].(string))
		}
		return ids, a.object(t)["total"].(float64)
	}
	add := map[string]func(){
		"/tasks": func() { w.create(upload(nil)) },
		"/billing/transactions": func() {
			_, err := w.money.Recharge(t.Context(), w.account.ID, 1, "more")
			require.NoError(t, err)
		},
	}
	for path, list := range map[string]string{"/tasks": "tasks", "/billing/transactions": "transactions"} {
		for range 4 {
			add[path]()
		}
		middle := time.Now()
		time.Sleep(2 * time.Millisecond)
		add[path]()
		all, total := ids(path, list)
		at := middle.UTC().Format(time.RFC3339Nano)
		newer, n := ids(path, list, "from", at)
		assert.Equal(t, all[:1], newer, path)
		assert.Equal(t, 1.0, n, path)
		older, n := ids(path, list, "until", at)
		assert.Equal(t, all[1:], older, path)
		assert.Equal(t, total-1, n, path)
		none, n := ids(path, list, "from", "2099-01-01", "until", "2099-02-01")
		assert.Empty(t, none)
		assert.Zero(t, n)

		first, _ := ids(path, list, "page_size", "2")
		add[path]()
		add[path]()
		rest, _ := ids(path, list, "page_size", "2", "after", first[1])
		assert.Equal(t, all[2:4], rest, path)
		moved, _ := ids(path, list, "page_size", "1", "page", "2", "after", first[1])
		assert.Equal(t, all[3:4], moved, path)
		for _, bad := range []string{"after=x", "after=0190b0a0-0000-7000-8000-000000000000", "from=yesterday", "until="} {
			assert.Equal(t, 400, w.do("GET", path+"?"+bad, nil).status, bad)
		}
		assert.Equal(t, 200, w.do("GET", path+"?from=2026-11-28T09:00:00+01:00", nil).status, "a plus that is not escaped")
	}
	_, other := w.newAccount("other", "10")
	task, _ := ids("/tasks", "tasks")
	assert.Equal(t, 400, w.do("GET", "/tasks?after="+task[0], nil, with("X-API-Key", other)).status)
}

// overHTTP2 returns a client that speaks HTTP/2 without TLS.
func overHTTP2(t *testing.T) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestHTTP2WithoutTLS: a proxy may speak HTTP/2 without TLS, for requests with
// and without a body.
func TestHTTP2WithoutTLS(t *testing.T) {
	w := newWorld(t)
	two, connections := overHTTP2(t), 0
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			connections++
		}
	}})
	for _, c := range []struct {
		method, key, body string
		status            int
	}{{"GET", w.key, "", 200}, {"POST", w.key, `{"audio_url":"https://a.example.com/a.wav"}`, 201}, {"POST", "wrong", strings.Repeat(" ", 1<<20), 401}, {"GET", w.key, "", 200}} {
		req, err := http.NewRequestWithContext(trace, c.method, w.url+"/v1/tasks", strings.NewReader(c.body))
		require.NoError(t, err)
		req.Header = with("X-API-Key", c.key, "Content-Type", "application/json")
		resp, err := two.Do(req)
		require.NoError(t, err)
		assert.Equal(t, []int{2, c.status}, []int{resp.ProtoMajor, resp.StatusCode})
		require.NoError(t, resp.Body.Close())
	}
	assert.Equal(t, 1, connections, "no response ends the connection")
}

// TestPathsOfOpenAI: paths of OpenAI's interface that are not served get an
// error in its form that names the served ones.
func TestPathsOfOpenAI(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/chat/completions", "/audio/speech", "/embeddings", "/files/x"} {
		a := w.do("POST", path, "{}")
		assert.Equal(t, 404, a.status)
		assert.Contains(t, firstOf(openAIFailure(t, a)), "/audio/transcriptions", path)
	}
}

// TestLongPrompts checks that a long prompt keeps its end: clients send the
// text so far as a prompt.
func TestLongPrompts(t *testing.T) {
	w := newWorld(t)
	w.work()
	body, header := form(t, "talk.wav", true, "prompt", strings.Repeat("é", 3000)+" The end.")
	a := w.do("POST", "/audio/transcriptions", body, header)
	require.Equal(t, 200, a.status, "%s", a.body)
	prompt := w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)["initial_prompt"].(string)
	assert.Len(t, []rune(prompt), 1000, "the limit of initial_prompt")
	assert.True(t, strings.HasSuffix(prompt, "é The end."))
}

// TestARequestThatIsSentAgain: OpenAI's clients send a request again by
// themselves when they have waited for too long. It is charged once, unless it
// is another one or its task has failed.
func TestARequestThatIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(count string, fields ...string) (id string) {
		body, header := form(t, "talk.wav", true, fields...)
		header.Set("X-Stainless-Retry-Count", count)
		a := w.do("POST", "/audio/transcriptions", body, header)
		require.Equal(t, 200, a.status, "%s", a.body)
		return a.header.Get("X-Task-Id")
	}
	none, first := post("1"), post("0", "language", "en")
	assert.NotEqual(t, none, first, "another language")
	assert.Equal(t, first, post("2", "language", "en"))
	second := post("0", "language", "en")
	assert.NotEqual(t, first, second, "a person may ask twice")
	_, err := w.db.Exec(t.Context(), "UPDATE tasks SET status = 'failed' WHERE id IN ($1, $2)", first, second)
	require.NoError(t, err)
	third := post("1", "language", "en")
	assert.NotContains(t, []string{first, second}, third)
	_, other := w.newAccount("other", "10")
	w.key = other
	assert.NotEqual(t, third, post("1", "language", "en"), "of another account")
	var made int
	require.NoError(t, w.db.Read().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tasks").Scan(&made))
	assert.Equal(t, 5, made)
}

// TestModelOfTheAnswer: verbose_json names the model.
func TestModelOfTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.work()
	body, header := form(t, "talk.wav", true, "model", "whisper-1", "response_format", "verbose_json")
	assert.Equal(t, "otograph-standard", w.do("POST", "/audio/transcriptions", body, header).object(t)["model"])
}

// TestClientThatGoesAwayEndsItsTask: with cancel_on_disconnect, the task ends,
// and audio up to the last reported sentence is charged; without it, the task
// continues.
func TestClientThatGoesAwayEndsItsTask(t *testing.T) {
	for name, tt := range map[string]struct {
		fields  []string
		reports []spec.Segment
		status  string
		amount  string
	}{
		"nothing done": {[]string{"cancel_on_disconnect", "true"}, nil, "failed", ""},
		"a sentence":   {[]string{"cancel_on_disconnect", "true"}, []spec.Segment{{End: 61, Text: "Hello."}}, "failed", "-0.0067"},
		"streamed":     {[]string{"cancel_on_disconnect", "1", "stream", "true"}, []spec.Segment{{End: 61, Text: "Hello."}}, "failed", "-0.0067"},
		"by default":   {nil, nil, "processing", ""},
	} {
		w := newWorld(t)
		body, header := form(t, "talk.wav", true, tt.fields...)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/audio/transcriptions", body)
		require.NoError(t, err)
		req.Header = header
		req.Header.Set("X-API-Key", w.key)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := client.Do(req); err == nil {
				<-ctx.Done()
				_ = resp.Body.Close()
			}
		}()
		list := func() []any { return w.do("GET", "/tasks", nil).object(t)["tasks"].([]any) }
		require.Eventually(t, func() bool { return len(list()) == 1 }, 20*time.Second, 25*time.Millisecond)
		id := list()[0].(map[string]any)["id"].(string)
		c := w.claim("worker")
		if tt.reports != nil {
			require.NoError(t, w.tasks.Report(t.Context(), c, queue.Progress{Stage: "transcribe", Segments: tt.reports}))
		}
		cancel()
		<-done
		if tt.status == "failed" {
			require.Eventually(t, func() bool { return w.task(id)["finished_at"] != nil }, 20*time.Second, 25*time.Millisecond, name)
			assert.Equal(t, "canceled because its client went away", w.task(id)["error_message"])
		}
		assert.Equal(t, tt.status, w.task(id)["status"], name)
		newest := w.do("GET", "/billing/transactions", nil).object(t)["transactions"].([]any)[0].(map[string]any)
		if tt.amount == "" {
			assert.Equal(t, "recharge", newest["type"], name)
			continue
		}
		assert.Equal(t, []any{"deduction", tt.amount, id}, []any{newest["type"], newest["amount"], newest["task_id"]}, name)
		assert.Equal(t, fmt.Sprint(0), fmt.Sprint(w.do("GET", "/account", nil).object(t)["held_amount"]), name)
	}
}
