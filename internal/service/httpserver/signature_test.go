package httpserver

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/safehttp"
)

// verify implements a receiver's check in Go: HMAC-SHA256 over the raw body,
// compared in constant time.
func verify(secret string, r *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return nil, false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return body, hmac.Equal([]byte(want), []byte(r.Header.Get("X-Signature")))
}

// TestSignatureIsVerifiable delivers a callback to receivers in Go and in
// Python, which accept it; both refuse the same callback with one byte changed.
// It covers T11 of test/README.md.
func TestSignatureIsVerifiable(t *testing.T) {
	const secret = "whsec-är$%"
	goVerdicts := make(chan bool, 10)
	var captured *http.Request
	var raw []byte
	goReceiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := verify(secret, r)
		if captured == nil {
			captured, raw = r, body
		}
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
		}
		goVerdicts <- ok
	}))
	defer goReceiver.Close()

	receivers := map[string]string{"go": goReceiver.URL}
	var python *bufio.Scanner
	if path, err := exec.LookPath("python3"); err == nil {
		cmd := exec.Command(path, "testdata/receiver.py", secret)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		python = bufio.NewScanner(out)
		require.True(t, python.Scan(), "the receiver prints its port")
		receivers["python"] = "http://127.0.0.1:" + python.Text()
	} else {
		t.Log("python3 is not installed: only the receiver in Go is tested")
	}
	outbound, err := safehttp.New(safehttp.Config{Allow: []string{"127.0.0.1"}})
	require.NoError(t, err)
	w := newWorld(t, func(c *Config) { c.CheckURL = outbound.CheckURL })
	w.media.address = "127.0.0.1" // allows the notifier all ports of the loopback address
	w.work()
	for name, url := range receivers {
		m := upload(nil)
		m["callback_url"], m["callback_secret"] = url+"/hook", secret
		id := w.create(m)
		w.final(id)
		switch name {
		case "go":
			select {
			case ok := <-goVerdicts:
				assert.True(t, ok)
			case <-time.After(20 * time.Second):
				t.Fatal("no callback")
			}
		case "python":
			require.True(t, python.Scan())
			assert.Equal(t, id+" done", python.Text())
		}
	}
	refused := 0
	for name, url := range receivers {
		for i := 0; i < len(raw); i += 7 {
			changed := bytes.Clone(raw)
			changed[i] ^= 1
			req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(changed))
			require.NoError(t, err)
			req.Header = captured.Header.Clone()
			resp, err := client.Do(req)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, 401, resp.StatusCode, "%s, byte %d", name, i)
			refused++
			if name == "go" {
				<-goVerdicts
			}
		}
	}
	t.Logf("T11: %d receivers verified, %d changed bodies refused", len(receivers), refused)
}
