package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// asset is a file of the page, ready to be sent.
type asset struct {
	kind        string // Content-Type
	plain, gzip []byte
	etag        string // weak, because both encodings have it
}

// Placeholders in index.html that are replaced in each response.
const (
	nonceMark    = "{{nonce}}"
	baseMark     = "{{base}}"
	currencyMark = "{{currency}}"
)

// Handler serves the page at / and in the folder of the API, together with its
// script, style and icon. base is the prefix of the API's paths ("/v1",
// "/asr/v1"). All of the page's addresses are relative, so that it works behind
// any prefix. currency is shown next to amounts; "" means none. Other paths get
// the API's response for a path that does not exist. If the page was not built,
// / explains how to build it.
func Handler(base, currency string) (http.Handler, error) {
	h := &handler{assets: map[string]asset{}, base: base, currency: currency, folder: strings.TrimSuffix(path.Dir(base), "/")}
	index, err := built("index.html")
	if err != nil {
		index, err = files.ReadFile("dist-missing.html")
		if err != nil {
			return nil, err
		}
		h.index = string(index)
		return h, nil
	}
	h.index = string(index)
	for name, kind := range map[string]string{
		"page.js": "text/javascript; charset=utf-8", "worklet.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"notices.txt": "text/plain; charset=utf-8",
	} {
		data, err := built(name)
		if err != nil {
			return nil, err
		}
		packed, err := pack(data)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		h.assets["/"+name] = asset{kind: kind, plain: data, gzip: packed, etag: `W/"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return h, nil
}

type handler struct {
	index    string
	assets   map[string]asset
	base     string // of the API's paths
	folder   string // of base, "" for /
	currency string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	inside, base := r.URL.Path, h.base
	if rest, below := strings.CutPrefix(inside, h.folder+"/"); below {
		inside, base = "/"+rest, strings.TrimPrefix(base, h.folder)
	}
	file, ok := h.assets[inside]
	switch {
	case inside != "/" && !ok:
		refuse(w, http.StatusNotFound, "not_found", "unknown path")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "invalid_request", "the method is not allowed here: use GET, HEAD")
	case ok:
		h.asset(w, r, file)
	default:
		h.page(w, r, "."+base)
	}
}

// page sends the page with a policy that only allows its files and forbids
// every inline script. The nonce is for the only style sheet that the waveform
// inserts into its shadow tree. base is the API's, as seen from the page.
func (h *handler) page(w http.ResponseWriter, r *http.Request, base string) {
	nonce := rand.Text()
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store") // the nonce is only valid for this response
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+"'; img-src 'self' blob:; "+
		"connect-src 'self'; media-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Permissions-Policy", "camera=(), microphone=(self), geolocation=()")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	if r.Method == http.MethodGet {
		_, _ = strings.NewReplacer(nonceMark, nonce, baseMark, html.EscapeString(base), currencyMark, html.EscapeString(h.currency)).WriteString(w, h.index)
	}
}

func (h *handler) asset(w http.ResponseWriter, r *http.Request, a asset) {
	header := w.Header()
	header.Set("Content-Type", a.kind)
	header.Set("Cache-Control", "no-cache") // revalidate each time; the response is usually 304
	header.Set("ETag", a.etag)
	header.Set("Vary", "Accept-Encoding")
	data := a.plain
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		data = a.gzip
	}
	header.Set("Content-Length", strconv.Itoa(len(data))) // which ServeContent leaves out of encoded content
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// acceptsGzip parses an Accept-Encoding header.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(q, "q="), "0.") != "" || q == ""
		}
	}
	return false
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+message+`","error_code":"`+code+`"}`+"\n")
}

func pack(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(data)
	err = errors.Join(err, z.Close())
	return buf.Bytes(), err
}
