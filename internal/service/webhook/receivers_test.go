package webhook_test

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// receivers holds the file and the start command of each program in
// docs/callbacks.md.
var receivers = map[string]struct{ file, run string }{
	"go":     {"main.go", `go build -o "$DIR/receiver" "$DIR/main.go" && exec "$DIR/receiver"`}, // run here, where Go finds the module
	"python": {"receiver.py", `exec python3 "$DIR/receiver.py"`},
	"js":     {"receiver.mjs", `exec node "$DIR/receiver.mjs"`},
}

// receiver is a running receiver from the documentation.
type receiver struct {
	url   string
	lines chan string // its output; closed at its end
}

// startReceiver starts the code block of docs/callbacks.md in a language.
func startReceiver(t *testing.T, language, secrets string) receiver {
	t.Helper()
	page, err := os.ReadFile("../../../docs/callbacks.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 1, "one receiver in %s", language)
	how := receivers[language]
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, how.file), blocks[0][1], 0o600))
	cmd := exec.Command("sh", "-c", how.run)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "PORT=0", "SECRETS="+secrets, "DIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r := receiver{lines: make(chan string)}
	stopped := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		close(stopped)
		for range r.lines { // until the pipe is closed
		}
		_ = cmd.Wait()
	})
	go func() {
		defer close(r.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case r.lines <- scanner.Text():
			case <-stopped:
			}
		}
	}()
	address, ok := strings.CutPrefix(r.line(t), "listening on ")
	require.True(t, ok)
	r.url = "http://" + address + "/"
	return r
}

// line returns the next line of the receiver's output.
func (r receiver) line(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-r.lines:
		require.True(t, ok, "the receiver ended")
		return line
	case <-time.After(5 * time.Minute):
		t.Fatal("the receiver prints nothing")
		return ""
	}
}

// send sends a message and returns the response's status.
func (r receiver) send(t *testing.T, header http.Header, body []byte) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header = header
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// TestDocumentedReceivers starts each receiver of docs/callbacks.md and sends
// it a real callback, the same callback again, old and forged callbacks, and a
// callback signed with the secret that is being replaced.
func TestDocumentedReceivers(t *testing.T) {
	const newer, older = "the-new-secret-of-the-customer", "the-secret-before-it"
	programs := map[string]string{"go": "go", "python": "python3", "js": "node"}
	for language := range receivers {
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(programs[language]); err != nil {
				t.Skip(err)
			}
			r := startReceiver(t, language, newer+" "+older)

			f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
			task := finish(f, r.url, newer)
			stop := startNotifier(f, webhook.NotifierConfig{HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
			assert.Equal(t, task.ID+" done", r.line(t), "a real callback")
			stop()

			var id, text string
			require.NoError(t, f.Config.DB.Read().QueryRow("SELECT id, body FROM callbacks").Scan(&id, &text))
			body, now := []byte(text), time.Now()
			assert.Equal(t, 204, r.send(t, webhook.Headers(id, newer, body, now), body), "a repeated delivery is acknowledged, so that it ends")
			assert.Equal(t, 204, r.send(t, webhook.Headers("msg_2", older, body, now), body))
			assert.Equal(t, task.ID+" done", r.line(t), "another message with the old secret; the repeated delivery was not handled again")

			changed := bytes.Replace(body, []byte(`"done"`), []byte(`"gone"`), 1)
			other := func(name, value string) http.Header {
				h := webhook.Headers("msg_3", newer, body, now)
				if h.Set(name, value); value == "" {
					h.Del(name)
				}
				return h
			}
			for name, m := range map[string]struct {
				header http.Header
				body   []byte
			}{
				"an old message":             {webhook.Headers("msg_3", newer, body, now.Add(-time.Hour)), body},
				"a message from the future":  {webhook.Headers("msg_3", newer, body, now.Add(time.Hour)), body},
				"an old one with a new time": {other("Webhook-Signature", webhook.Headers("msg_3", newer, body, now.Add(-time.Hour)).Get("Webhook-Signature")), body},
				"a seen one with a new id":   {other("Webhook-Signature", webhook.Headers(id, newer, body, now).Get("Webhook-Signature")), body},
				"a changed body":             {webhook.Headers("msg_3", newer, body, now), changed},
				"another secret":             {webhook.Headers("msg_3", "a stranger's", body, now), body},
				"no secret":                  {webhook.Headers("msg_3", "", body, now), body},
				"no time":                    {other("Webhook-Timestamp", ""), body},
				"no number":                  {other("Webhook-Timestamp", "now"), body},
				"X-Signature alone":          {other("Webhook-Signature", ""), body},
			} {
				assert.Equal(t, 401, r.send(t, m.header, m.body), name)
			}
			assert.Equal(t, 204, r.send(t, webhook.Headers("msg_4", newer, body, now), body))
			assert.Equal(t, task.ID+" done", r.line(t), "nothing refused was printed")
		})
	}
}
