package httpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
)

// The clients below send a file as a body and print "STATUS BODY".

const urllibClient = `
import sys, urllib.request, urllib.error
url, key, path = sys.argv[1:]
request = urllib.request.Request(url, data=open(path, "rb").read(), method="POST", headers={"X-API-Key": key, "Content-Type": "application/json"})
try:
    answer = urllib.request.urlopen(request, timeout=120)
except urllib.error.HTTPError as e:
    answer = e
print(answer.status, answer.read().decode())
`

const requestsClient = `
import sys, requests
url, key, path = sys.argv[1:]
answer = requests.post(url, data=open(path, "rb"), headers={"X-API-Key": key, "Content-Type": "application/json"}, timeout=120)
print(answer.status_code, answer.text)
`

const nodeClient = `
const [url, key, path] = process.argv.slice(1);
const body = require("fs").readFileSync(path);
const request = require("http").request(url, {method: "POST", headers: {"X-API-Key": key, "Content-Type": "application/json", "Content-Length": body.length}}, answer => {
  let text = "";
  answer.on("data", d => text += d);
  answer.on("end", () => { console.log(answer.statusCode + " " + text); process.exit(0); });
});
request.on("error", e => { console.log("error " + e); process.exit(1); });
request.end(body);
`

const nodeFetchClient = `
const [url, key, path] = process.argv.slice(1);
(async () => {
  const answer = await fetch(url, {method: "POST", headers: {"X-API-Key": key, "Content-Type": "application/json"}, body: require("fs").readFileSync(path)});
  console.log(answer.status + " " + await answer.text());
  process.exit(0);
})().catch(e => { console.log("error " + e + " " + e.cause); process.exit(1); });
`

// realClients returns programs that customers use, by name; programs that are
// not installed are skipped.
func realClients(t *testing.T) map[string]func(url, key, path string) (string, error) {
	t.Helper()
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "http_proxy=", "HTTP_PROXY=", "all_proxy=")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			return out.String(), fmt.Errorf("%w: %s%s", err, out.String(), errs.String())
		}
		return out.String(), nil
	}
	clients := map[string]func(url, key, path string) (string, error){
		"Go": func(url, key, path string) (string, error) {
			f, err := os.Open(path)
			if err != nil {
				return "", err
			}
			defer f.Close()
			req, err := http.NewRequest("POST", url, f)
			if err != nil {
				return "", err
			}
			info, _ := f.Stat()
			req.ContentLength = info.Size()
			req.Header.Set("X-API-Key", key)
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return fmt.Sprint(resp.StatusCode, " ", string(body)), err
		},
	}
	installed := func(name string, args ...string) bool {
		if _, err := run(name, args...); err != nil {
			if os.Getenv("CI") != "" { // .ci/run has installed all of these programs
				t.Errorf("not installed: %s %v", name, args)
			}
			t.Logf("left out: %s %v", name, args)
			return false
		}
		return true
	}
	python := cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3") // the system's, for which Debian has requests
	if installed("curl", "--version") {
		for name, more := range map[string][]string{"curl": nil, "curl without Expect": {"-H", "Expect:"}} {
			clients[name] = func(url, key, path string) (string, error) {
				args := append([]string{"-sS", "-H", "X-API-Key: " + key, "-H", "Content-Type: application/json", "--data-binary", "@" + path, "-o", "-", "-w", "\n%{http_code}"}, more...)
				out, err := run("curl", append(args, url)...)
				at := strings.LastIndexByte(out, '\n')
				if at < 0 {
					return out, err
				}
				return out[at+1:] + " " + out[:at], err
			}
		}
	}
	if installed(python, "-c", "import urllib.request") {
		clients["Python urllib"] = func(url, key, path string) (string, error) { return run(python, "-c", urllibClient, url, key, path) }
	}
	if installed(python, "-c", "import requests") {
		clients["Python requests"] = func(url, key, path string) (string, error) {
			return run(python, "-c", requestsClient, url, key, path)
		}
	}
	if installed("node", "--version") {
		clients["Node http"] = func(url, key, path string) (string, error) { return run("node", "-e", nodeClient, url, key, path) }
		clients["Node fetch"] = func(url, key, path string) (string, error) { return run("node", "-e", nodeFetchClient, url, key, path) }
	}
	return clients
}

// TestRefusalsReachUploadingClients: status and JSON of a refusal reach a
// client that is sending 50 MB, even a client that reads nothing before it has
// sent everything.
func TestRefusalsReachUploadingClients(t *testing.T) {
	w := newWorld(t)
	body := filepath.Join(t.TempDir(), "body.json")
	text := append([]byte(`{"audio_filename":"a.wav","audio_base64":"`), bytes.Repeat([]byte("A"), 50<<20)...)
	require.NoError(t, os.WriteFile(body, append(text, `"}`...), 0o600))
	_, broke := w.newAccount("broke", "0")
	hasty, limited := w.newAccount("hasty", "10")
	one, slow := 1, 0.001
	require.NoError(t, w.accounts.SetLimits(context.Background(), hasty.ID, accounts.Overrides{TPS: &slow, Burst: &one}))
	require.Equal(t, 200, w.do("GET", "/account", nil, with("X-Api-Key", limited)).status, "the only token is taken")
	for name, send := range realClients(t) {
		for _, tt := range []struct {
			status          int
			code, path, key string
		}{
			{401, codeUnauthorized, "/v1/tasks", "asr_" + strings.Repeat("0", 40)},
			{402, codeInsufficientBalance, "/v1/tasks", broke},
			{413, codePayloadTooLarge, "/v1/tasks/batch", w.key},
			{429, codeRateLimited, "/v1/tasks", limited},
		} {
			t.Run(fmt.Sprint(name, " ", tt.status), func(t *testing.T) {
				out, err := send(w.url+tt.path, tt.key, body)
				require.NoError(t, err)
				status, answer, _ := strings.Cut(out, " ")
				assert.Equal(t, fmt.Sprint(tt.status), status)
				var e struct {
					Code string `json:"error_code"`
				}
				require.NoError(t, json.Unmarshal([]byte(answer), &e), "%q", answer)
				assert.Equal(t, tt.code, e.Code)
			})
		}
	}
	assert.Empty(t, blobKeys(t, w), "no part of a refused upload was stored")
}

// TestHeaderLimit: a header above 64 KiB is refused with 431 before it is read
// completely.
func TestHeaderLimit(t *testing.T) {
	w := newWorld(t)
	req, err := http.NewRequest("GET", w.url+"/v1/pricing", nil)
	require.NoError(t, err)
	req.Header.Set("X-Filler", strings.Repeat("a", 60<<10))
	resp, err := client.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, 200, resp.StatusCode, "60 KiB")
	req.Header.Set("X-Filler", strings.Repeat("a", 80<<10))
	resp, err = client.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode, "80 KiB")
}

// TestEarlyAnswersKeepRequestsApart: the rest of a body is never taken
// for the next request, and a small rest leaves the connection usable.
func TestEarlyAnswersKeepRequestsApart(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		body string
		more bool // the connection serves another request
	}{
		"small": {`{"audio_url":"x"}`, true},
		"large": {"GET /v1/pricing HTTP/1.1\r\nHost: a\r\n\r\n" + strings.Repeat(" ", 100_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			require.NoError(t, err)
			defer c.Close()
			_, err = fmt.Fprintf(c, "POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%sGET /v1/pricing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", len(tt.body), tt.body)
			require.NoError(t, err)
			_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
			all, _ := io.ReadAll(c)
			assert.Equal(t, 1, strings.Count(string(all), "HTTP/1.1 401"), "%s", all)
			if tt.more {
				assert.Equal(t, 1, strings.Count(string(all), "HTTP/1.1 200"), "%s", all)
			} else {
				assert.NotContains(t, string(all), "HTTP/1.1 200")
				assert.Contains(t, string(all), "Connection: close")
			}
		})
	}
}

// TestConcurrentUploadsAreLimited: the concurrent uploads of an account are
// limited.
func TestConcurrentUploadsAreLimited(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Uploads = 2 })
	big := func(r io.Reader) answer { return w.do("POST", "/tasks", io.MultiReader(strings.NewReader("{"), r)) }
	hold, release := io.Pipe()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			a := big(hold)
			for a.status == 429 { // a probe of the account's uploads took a place
				a = big(hold)
			}
			assert.Equal(t, 400, a.status)
		})
	}
	require.Eventually(t, func() bool {
		a := big(strings.NewReader("}"))
		return a.status == 429 && a.header.Get("Retry-After") == "1"
	}, 10*time.Second, time.Millisecond)
	assert.Equal(t, 201, w.do("POST", "/tasks", upload(nil)).status, "a small body does not count")
	_, other := w.newAccount("other", "10")
	assert.Equal(t, 400, w.do("POST", "/tasks", io.MultiReader(strings.NewReader("{}")), with("X-Api-Key", other)).status, "nor does another account's body")
	release.Close()
	wg.Wait()
	assert.Equal(t, 400, big(strings.NewReader("}")).status)
}

// TestNoProbeWithoutMoney: no decoder is started for an account that cannot
// pay.
func TestNoProbeWithoutMoney(t *testing.T) {
	probed := 0
	w := newWorld(t, func(c *Config) {
		c.Tasks.Config.Prober = fakeProber(func(string, string) (float64, error) { probed++; return 1, nil })
	})
	_, broke := w.newAccount("broke", "0")
	assert.Equal(t, 402, w.do("POST", "/tasks", upload(nil), with("X-Api-Key", broke)).status)
	assert.Zero(t, probed)
	w.create(upload(nil))
	assert.Equal(t, 1, probed)
}
