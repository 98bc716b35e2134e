package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func get(t *testing.T, h http.Handler, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(data)
}

// With or without the built page, / is a page with a strict policy, and other
// paths get the API's responses.
func TestHandler(t *testing.T) {
	h, err := Handler("/v1", "")
	require.NoError(t, err)
	r := get(t, h, "GET", "/")
	page := body(t, r)
	assert.Equal(t, http.StatusOK, r.StatusCode)
	assert.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"))
	policy := r.Header.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'; script-src 'self';")
	assert.NotContains(t, policy, "unsafe")
	assert.Contains(t, r.Header.Get("Permissions-Policy"), "microphone=(self)", "live sessions of the page itself")
	assert.NotContains(t, page, "{{")
	nonce := regexp.MustCompile(`'nonce-([^']+)'`).FindStringSubmatch(policy)
	require.Len(t, nonce, 2)
	assert.Contains(t, page, nonce[1])
	assert.NotEqual(t, policy, get(t, h, "GET", "/").Header.Get("Content-Security-Policy"), "a nonce is used once")
	for _, e := range regexp.MustCompile(`<script[^>]*>`).FindAllString(page, -1) {
		assert.Contains(t, e, "src=")
	}
	if !Built() {
		assert.Contains(t, page, "make build")
	}

	assert.Empty(t, body(t, get(t, h, "HEAD", "/")))
	for _, path := range []string{"/nowhere", "/index.html", "/dist/page.js", "/../web.go", "/view.js", "/page.js/"} {
		r := get(t, h, "GET", path)
		assert.Equal(t, http.StatusNotFound, r.StatusCode, path)
		var answer map[string]string
		require.NoError(t, json.Unmarshal([]byte(body(t, r)), &answer), path)
		assert.Equal(t, "not_found", answer["error_code"])
	}
	r = get(t, h, "POST", "/")
	assert.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
	assert.Equal(t, "GET, HEAD", r.Header.Get("Allow"))
}

// TestHandlerBelowAPrefix: every address of the page is relative, and the page
// is also in the folder of the API.
func TestHandlerBelowAPrefix(t *testing.T) {
	h, err := Handler("/asr/v1", "")
	require.NoError(t, err)
	for path, api := range map[string]string{"/": "./asr/v1", "/asr/": "./v1"} {
		r := get(t, h, "GET", path)
		assert.Equal(t, http.StatusOK, r.StatusCode, path)
		page := body(t, r)
		assert.NotRegexp(t, `(href|src)="/`, page)
		if Built() {
			assert.Contains(t, page, `content="`+api+`"`)
			assert.Equal(t, http.StatusOK, get(t, h, "GET", path+"page.js").StatusCode)
		}
	}
	assert.Equal(t, http.StatusNotFound, get(t, h, "GET", "/asr/nowhere").StatusCode)
}

// TestHandlerEscapesItsTexts: neither the base nor the currency ends the element
// that holds it.
func TestHandlerEscapesItsTexts(t *testing.T) {
	if !Built() {
		t.Skip("the page is not built: make build where npm is installed")
	}
	h, err := Handler(`/"><script>x</script>`, `"><script>x</script>`)
	require.NoError(t, err)
	assert.NotContains(t, body(t, get(t, h, "GET", "/")), "<script>x")
}

func TestAssetsAreCompressedAndRevalidated(t *testing.T) {
	if !Built() {
		t.Skip("the page is not built: make build where npm is installed")
	}
	h, err := Handler("/v1", "")
	require.NoError(t, err)
	total := len(body(t, get(t, h, "GET", "/")))
	for path, kind := range map[string]string{"/page.js": "text/javascript; charset=utf-8", "/worklet.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml", "/notices.txt": "text/plain; charset=utf-8"} {
		plain := get(t, h, "GET", path)
		assert.Equal(t, kind, plain.Header.Get("Content-Type"))
		assert.Empty(t, plain.Header.Get("Content-Encoding"))
		packed := get(t, h, "GET", path, "Accept-Encoding", "br, gzip;q=0.8")
		require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
		raw := body(t, packed)
		if path != "/notices.txt" {
			total += len(raw)
		}
		z, err := gzip.NewReader(strings.NewReader(raw))
		require.NoError(t, err)
		unpacked, err := io.ReadAll(z)
		require.NoError(t, err)
		assert.Equal(t, body(t, plain), string(unpacked), path)
		again := get(t, h, "GET", path, "If-None-Match", plain.Header.Get("ETag"))
		assert.Equal(t, http.StatusNotModified, again.StatusCode)
		rest := get(t, h, "GET", path, "Range", "bytes=9-", "If-Range", plain.Header.Get("ETag"), "Accept-Encoding", "gzip")
		assert.Equal(t, http.StatusOK, rest.StatusCode, "not the rest of another encoding")
	}
	assert.Less(t, total, 300<<10, "first load, compressed")
}

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=0.001": true, "gzip; q=1.0": true, "deflate": false, "xgzip": false,
	} {
		assert.Equal(t, want, acceptsGzip(header), "%q", header)
	}
}

// No name or text can break out of its place in the file.
func TestWriteView(t *testing.T) {
	if !Built() {
		assert.ErrorIs(t, WriteView(io.Discard, View{}), ErrNotBuilt)
		t.Skip("the page is not built: make build where npm is installed")
	}
	hostile := "</script><script>alert(1)</script><!--<script>\u2028&\"'>"
	var out bytes.Buffer
	require.NoError(t, WriteView(&out, View{Name: hostile, Result: map[string]any{"segments": []map[string]any{{"text": hostile}}}, Peaks: []byte{0, 255}, Audio: []byte{1, 2, 3}, AudioType: "audio/ogg"}))
	page := out.String()
	assert.NotContains(t, page, "alert(1)</script>")
	assert.Equal(t, 3, strings.Count(page, "</script>"), "only the data, the audio and the script end")
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(page)
	require.Len(t, data, 2)
	assert.NotContains(t, data[1], "<")
	var got View
	require.NoError(t, json.Unmarshal([]byte(data[1]), &got))
	assert.Equal(t, hostile, got.Name)
	assert.Equal(t, []byte{0, 255}, got.Peaks)
	assert.Equal(t, "audio/ogg", got.AudioType)
	assert.Contains(t, page, `<script type="text/plain" id="audio">AQID</script>`)
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	require.Len(t, policy, 2)
	assert.NotContains(t, policy[1], "unsafe")
	assert.NotContains(t, policy[1], "connect-src")
	script := page[strings.LastIndex(page, "<script>")+len("<script>") : strings.LastIndex(page, "</script>")]
	assert.Contains(t, policy[1], sourceHash([]byte(script)), "the policy names the embedded script")
	assert.NotContains(t, page, "src=\"http")
}
