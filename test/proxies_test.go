//go:build clients

package test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBehindProxies runs Caddy and nginx in front of the service, with the
// examples of deploy/examples; only addresses and certificates are changed.
func TestBehindProxies(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, upstream, address, cert, key string) *exec.Cmd{"caddy": caddy, "nginx": nginx} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("%s is not installed", name)
			}
			s := serve(t, t.TempDir(), "--demo", "--trusted-proxies", "127.0.0.1").unlimited()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			address := l.Addr().String()
			require.NoError(t, l.Close())
			cert, key := certificate(t)
			cmd := start(t, strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/v1"), address, cert, key)
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Signal(os.Interrupt)
				_ = cmd.Wait()
			})
			p := *s
			p.url = "https://" + address + "/v1"
			require.Eventually(t, func() bool {
				a, err := p.try("GET", "/tasks", nil)
				return err == nil && a.status == http.StatusOK
			}, patience, 100*time.Millisecond, "%s", &log)
			p.passes(t)
		})
	}
}

// passes checks a large upload, streams and a live session.
func (s *server) passes(t *testing.T) {
	samples, err := conversation()
	require.NoError(t, err)
	long := wav(slices.Repeat(samples, 240*16000/len(samples)+1))
	require.Greater(t, len(long), 7<<20)

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	require.NoError(t, w.WriteField("model", "gpt-4o-transcribe"))
	require.NoError(t, w.WriteField("stream", "true"))
	require.NoError(t, w.WriteField("language", "en"))
	file, err := w.CreateFormFile("file", "long.wav")
	require.NoError(t, err)
	_, _ = file.Write(long)
	require.NoError(t, w.Close())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/audio/transcriptions", &form)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	until(t, res.Body, "transcript.text.delta")
	assert.EqualValues(t, 1, s.do("GET", "/tasks?status=processing", nil).object(t)["total"], "the first sentence comes while the task runs")
	until(t, res.Body, "transcript.text.done")

	id := s.create(upload(long, map[string]any{"asr_language": "en"}))
	req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/tasks/"+id+"/events", nil)
	require.NoError(t, err)
	req.Header.Set("X-API-Key", s.key)
	events, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer events.Body.Close()
	until(t, events.Body, "event: segment")
	assert.Equal(t, "processing", s.task(id)["status"])
	until(t, events.Body, `"final":true`)

	c := s.phone(pushToTalk + `}`)
	c.speak(raw(t, "../testdata/demo/short/en_08.flac"))
	c.send(`{"type":"input_audio_buffer.commit"}`)
	assert.Equal(t, "We want to paint the kitchen purple.", c.until(completed).Transcript)
}

// until reads a stream up to a text.
func until(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var got []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(got, []byte(text)) {
		n, err := r.Read(buffer)
		got = append(got, buffer[:n]...)
		require.True(t, err == nil || bytes.Contains(got, []byte(text)), "until %s: %v after %.300s", text, err, got)
	}
}

// certificate writes a certificate of 127.0.0.1, which the program trusts until
// the end of the test.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	private, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	standard, own := http.DefaultTransport, client.Transport
	trusting := standard.(*http.Transport).Clone()
	trusting.TLSClientConfig = &tls.Config{RootCAs: pool}
	http.DefaultTransport, client.Transport = trusting, trusting
	t.Cleanup(func() {
		http.DefaultTransport, client.Transport = standard, own
		trusting.CloseIdleConnections()
	})
	return cert, key
}

// example writes an example with replacements, each of which must apply.
func example(t *testing.T, name string, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile("../deploy/examples/" + name)
	require.NoError(t, err)
	for i := 0; i < len(changes); i += 2 {
		require.Contains(t, string(text), changes[i], name)
		text = bytes.ReplaceAll(text, []byte(changes[i]), []byte(changes[i+1]))
	}
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

func caddy(t *testing.T, upstream, address, cert, key string) *exec.Cmd {
	file := example(t, "Caddyfile", "127.0.0.1:8080", upstream,
		"otograph.example.com {", fmt.Sprintf("{\n\tadmin off\n\tauto_https disable_redirects\n}\nhttps://%s {\n\ttls %s %s", address, cert, key))
	cmd := exec.Command("caddy", "run", "--config", file, "--adapter", "caddyfile")
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return cmd
}

func nginx(t *testing.T, upstream, address, cert, key string) *exec.Cmd {
	live := "/etc/letsencrypt/live/otograph.example.com/"
	site := example(t, "nginx.conf", "127.0.0.1:8080", upstream, "listen 443", "listen "+address,
		"server_name otograph.example.com", "server_name 127.0.0.1", live+"fullchain.pem", cert, live+"privkey.pem", key)
	dir := t.TempDir()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	main := filepath.Join(dir, "main.conf")
	require.NoError(t, os.WriteFile(main, []byte(user+fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	include %[2]s;
}
`, dir, site)), 0o600))
	return exec.Command("nginx", "-e", "stderr", "-p", dir, "-c", main)
}
