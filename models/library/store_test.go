package library

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
)

func TestMain(m *testing.M) { outside.Main(m) }

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// publisher is a server that serves one file and misbehaves as
// configured.
type publisher struct {
	mu   sync.Mutex
	data []byte
	etag string
	// cut lists, by response, the number of bytes after which it is cut; 0
	// means never.
	cut []int
	// noRange ignores ranges. weak sends a weak validator. chunked sends no
	// length. lie is the error of the declared length in bytes. blindRange
	// serves a range regardless of If-Range, with the changed validator.
	noRange, weak, chunked, blindRange bool
	status                             []int         // statuses to answer with first
	slow                               time.Duration // before every kilobyte
	onRequest                          func(n int, h *publisher)

	requests []*http.Request
	sent     int64
}

// asked returns the requests so far; total returns the number of sent bytes.
func (h *publisher) asked() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func (h *publisher) total() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent
}

func (h *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	n := len(h.requests)
	h.requests = append(h.requests, r)
	if h.onRequest != nil {
		h.onRequest(n, h)
	}
	data, etag, cut := h.data, h.etag, 0
	if n < len(h.cut) {
		cut = h.cut[n]
	}
	status := 0
	if n < len(h.status) {
		status = h.status[n]
	}
	h.mu.Unlock()

	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	if etag != "" {
		if h.weak {
			etag = "W/" + etag
		}
		w.Header().Set("ETag", etag)
	}
	from, code := 0, http.StatusOK
	if spec, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !h.noRange {
		if h.blindRange || r.Header.Get("If-Range") == etag {
			from, _ = strconv.Atoi(strings.TrimSuffix(spec, "-"))
			code = http.StatusPartialContent
			if from >= len(data) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(data)))
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
		}
	}
	body := data[from:]
	if !h.chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(code)
	if h.chunked {
		w.(http.Flusher).Flush()
	}
	if cut > 0 && cut < len(body) {
		body = body[:cut]
	}
	for len(body) > 0 {
		piece := body[:min(1024, len(body))]
		body = body[len(piece):]
		select {
		case <-r.Context().Done():
			return
		case <-time.After(h.slow):
		}
		k, err := w.Write(piece)
		h.mu.Lock()
		h.sent += int64(k)
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
	if cut > 0 {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler) // the connection breaks
	}
}

// serve starts a publisher for a synthetic detector of about 200 kB, and returns the
// catalog entry and a store for it.
func serve(t *testing.T, change func(h *publisher, e *Entry)) (*publisher, Entry, *Store) {
	t.Helper()
	data := append(modeltest.SileroV5().Bytes(), onnxPadding(200_000)...)
	h := &publisher{data: data, etag: `"v1"`}
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	e := Entry{Role: models.RoleVAD, Model: models.Model{Name: "made-up-vad", Contract: models.ContractSileroV5, License: "MIT"}, Files: []Asset{
		{Part: models.PartModel, Download: Download{Name: "vad.onnx", URL: server.URL + "/models/vad.onnx", Size: int64(len(data)), SHA256: hexSum(data)}},
	}}
	client := server.Client()
	client.Transport.(*http.Transport).DisableCompression = true
	s := &Store{Dir: filepath.Join(t.TempDir(), "models"), Client: client, stall: 5 * time.Second, pause: time.Millisecond}
	if change != nil {
		change(h, &e)
	}
	return h, e, s
}

// otherContent returns a file of the same length with entirely different
// content.
func otherContent(data []byte) []byte {
	out := bytes.Clone(data)
	for i := range out {
		out[i] ^= 0x20
	}
	return out
}

// onnxPadding returns a metadata entry of the given number of varied bytes,
// which makes a model longer but keeps it valid.
func onnxPadding(n int) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = byte('a' + i*i%23)
	}
	field := func(number int, body []byte) []byte {
		out := []byte{byte(number<<3 | 2)}
		for l := len(body); ; l >>= 7 {
			if l < 0x80 {
				out = append(out, byte(l))
				break
			}
			out = append(out, byte(l)|0x80)
		}
		return append(out, body...)
	}
	return field(14, append(field(1, []byte("padding")), field(2, value)...))
}

func TestPull(t *testing.T) {
	h, e, s := serve(t, nil)
	var last Progress
	s.Progress = func(p Progress) {
		assert.GreaterOrEqual(t, p.Done, last.Done)
		last = p
	}
	done, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.False(t, done[0].Already)
	assert.Empty(t, done[0].Trusted)
	assert.Equal(t, Progress{Model: "made-up-vad", File: "vad.onnx", Done: int64(len(h.data)), Total: int64(len(h.data))}, last)
	got, err := os.ReadFile(done[0].Files[0].Path)
	require.NoError(t, err)
	assert.Equal(t, hexSum(h.data), hexSum(got))

	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, err := set.Need(models.RoleVAD)
	require.NoError(t, err)
	assert.Equal(t, "made-up-vad", m.Name)
	assert.Equal(t, "MIT", m.License)
	assert.Equal(t, hexSum(h.data), m.Files[0].SHA256)
	left, err := os.ReadDir(filepath.Join(s.Dir, partials))
	require.NoError(t, err)
	assert.Len(t, left, 1, "only the lock stays: %v", left)

	// The second pull downloads nothing.
	done, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.True(t, done[0].Already)
	assert.Len(t, h.asked(), 1)
}

// TestPullNamesModelsAfterAFailure: the error of a profile's model names the
// models that were not tried.
func TestPullNamesModelsAfterAFailure(t *testing.T) {
	_, e, s := serve(t, func(h *publisher, _ *Entry) { h.status = slices.Repeat([]int{404}, 9) })
	second, third := e, e
	second.Name, third.Name = "second", "third"
	done, err := s.pull(t.Context(), []Entry{e, second, third})
	require.ErrorContains(t, err, "model made-up-vad, before second, third: ")
	assert.Empty(t, done)
}

// The faults of a publisher, and the expected outcome.
func TestPullSurvivesHostFaults(t *testing.T) {
	whole := func(h *publisher) int64 { return int64(len(h.data)) }
	cases := map[string]struct {
		change func(h *publisher, e *Entry)
		// sent limits the bytes that the publisher has to send, as a share of the
		// file.
		sent     float64
		requests int
	}{
		"cuts twice and resumes": {func(h *publisher, e *Entry) { h.cut = []int{50_000, 60_000} }, 1, 3},
		"cuts, ignores ranges":   {func(h *publisher, e *Entry) { h.cut = []int{50_000}; h.noRange = true }, 1.3, 2},
		"cuts, weak validator":   {func(h *publisher, e *Entry) { h.cut = []int{50_000}; h.weak = true }, 1.3, 2},
		"cuts, no validator":     {func(h *publisher, e *Entry) { h.cut = []int{50_000}; h.etag = "" }, 1.3, 2},
		"cuts, sends no length":  {func(h *publisher, e *Entry) { h.cut = []int{50_000}; h.chunked = true }, 1, 2},
		"fails for a while":      {func(h *publisher, e *Entry) { h.status = []int{503, 429, 502} }, 1, 4},
		"is slow":                {func(h *publisher, e *Entry) { h.slow = 100 * time.Microsecond }, 1, 1},
		"changes between": {func(h *publisher, e *Entry) {
			// The first half comes from an older file, the hash from the newer
			// one.
			newer, older := h.data, otherContent(h.data)
			h.data, h.etag, h.cut = older, `"old"`, []int{100_000}
			h.onRequest = func(n int, h *publisher) {
				if n == 1 {
					h.data, h.etag = newer, `"new"`
				}
			}
		}, 1.6, 2},
		"changes in between but still serves the range": {func(h *publisher, e *Entry) {
			newer, older := h.data, otherContent(h.data)
			h.data, h.etag, h.cut, h.blindRange = older, `"old"`, []int{100_000}, true
			h.onRequest = func(n int, h *publisher) {
				if n == 1 {
					h.data, h.etag = newer, `"new"`
				}
			}
		}, 2.1, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, e, s := serve(t, c.change)
			done, err := s.pull(t.Context(), []Entry{e})
			require.NoError(t, err)
			sum, _, err := fetch.HashFile(done[0].Files[0].Path)
			require.NoError(t, err)
			assert.Equal(t, e.Files[0].SHA256, sum)
			assert.Len(t, h.asked(), c.requests)
			assert.LessOrEqual(t, float64(h.total()), c.sent*float64(whole(h))+1)
		})
	}
}

func TestPullRefusesOtherContent(t *testing.T) {
	cases := map[string]struct {
		change func(h *publisher, e *Entry)
		is     error
		says   []string
	}{
		"other content": {func(h *publisher, e *Entry) { h.data = otherContent(h.data) }, models.ErrBroken, []string{"expected sha256", "found"}},
		"longer":        {func(h *publisher, e *Entry) { h.data = append(h.data, 0) }, models.ErrBroken, []string{"bytes", "offers"}},
		"shorter":       {func(h *publisher, e *Entry) { h.data = h.data[:1000] }, models.ErrBroken, []string{"bytes", "offers 1000"}},
		"longer, no length sent": {func(h *publisher, e *Entry) {
			h.data = append(bytes.Clone(h.data), make([]byte, 1<<20)...)
			h.chunked = true
		}, models.ErrBroken, []string{"sends more"}},
		"shorter, no length sent": {func(h *publisher, e *Entry) { h.data, h.chunked = h.data[:1000], true }, models.ErrBroken, []string{"found 1000"}},
		"gone":                    {func(h *publisher, e *Entry) { h.status = []int{404} }, models.ErrMissing, []string{"404"}},
		"web page with a matching hash": {func(h *publisher, e *Entry) {
			h.data = []byte("<!DOCTYPE html><html>please log in</html>")
			e.Files[0].Size, e.Files[0].SHA256 = int64(len(h.data)), hexSum(h.data)
		}, models.ErrBroken, []string{"web page"}},
		"web page trusted on first use": {func(h *publisher, e *Entry) {
			h.data = []byte("<!DOCTYPE html><html>please log in</html>")
			e.Files[0].Size, e.Files[0].SHA256 = 0, ""
		}, models.ErrBroken, []string{"web page"}},
		"model of another role": {func(h *publisher, e *Entry) {
			h.data = modeltest.YAMNet().Bytes()
			e.Files[0].Size, e.Files[0].SHA256 = int64(len(h.data)), hexSum(h.data)
		}, models.ErrBroken, []string{"role vad", "role tagger"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, e, s := serve(t, c.change)
			_, err := s.pull(t.Context(), []Entry{e})
			require.ErrorIs(t, err, c.is)
			assert.ErrorContains(t, err, "made-up-vad")
			for _, text := range c.says {
				assert.ErrorContains(t, err, text)
			}
			_, err = os.Stat(filepath.Join(s.Dir, e.Name))
			require.ErrorIs(t, err, os.ErrNotExist, "nothing is put in place")
			_, err = os.Stat(filepath.Join(s.Dir, manifestName))
			require.ErrorIs(t, err, os.ErrNotExist)
			assert.Len(t, h.asked(), 1, "permanent errors are not retried")
		})
	}
}

func TestPullResumesInANewProcess(t *testing.T) {
	h, e, s := serve(t, func(h *publisher, e *Entry) { h.slow = 50 * time.Microsecond })
	ctx, cancel := context.WithCancel(t.Context())
	s.Progress = func(p Progress) {
		if p.Done > 80_000 {
			cancel()
		}
	}
	_, err := s.pull(ctx, []Entry{e})
	require.ErrorIs(t, err, context.Canceled)

	var first Progress
	s.Progress = func(p Progress) {
		if first == (Progress{}) {
			first = p
		}
	}
	_, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Greater(t, first.Resumed, int64(80_000))
	assert.Equal(t, first.Resumed, first.Done)
	assert.Equal(t, fmt.Sprintf("bytes=%d-", first.Resumed), h.asked()[1].Header.Get("Range"))
	assert.Equal(t, `"v1"`, h.asked()[1].Header.Get("If-Range"))
}

// resumable marks a partial file as the beginning of the publisher's file.
func resumable(t *testing.T, part string, h *publisher, e Entry) {
	t.Helper()
	modeltest.Place(t, part+".json", fmt.Appendf(nil, `{"url": %q, "etag": %q, "size": %d}`, e.Files[0].URL, h.etag, len(h.data)))
}

func TestDamagedPartialIsFetchedAgain(t *testing.T) {
	h, e, s := serve(t, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, partials), 0o755))
	part := fetch.PartFile(filepath.Join(s.Dir, partials), e.Files[0].Download)
	modeltest.Place(t, part, make([]byte, 70_000))
	resumable(t, part, h, e)
	_, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Len(t, h.asked(), 2, "resumed once, then complete")
	// The same holds for a complete partial file, beyond which the source has
	// no bytes.
	h, e, s = serve(t, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, partials), 0o755))
	part = fetch.PartFile(filepath.Join(s.Dir, partials), e.Files[0].Download)
	modeltest.Place(t, part, h.data)
	resumable(t, part, h, e)
	_, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Zero(t, h.total())
}

func TestPullGivesUpOnASourceThatAlwaysCuts(t *testing.T) {
	for name, change := range map[string]func(h *publisher, e *Entry){
		"at once": func(h *publisher, e *Entry) { h.status = []int{500, 500, 500, 500, 500, 500, 500} },
		"at the same byte": func(h *publisher, e *Entry) {
			h.noRange = true
			h.cut = []int{9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000}
		},
		"to and fro": func(h *publisher, e *Entry) {
			h.noRange = true
			h.cut = []int{9000, 5000, 9000, 5000, 9000, 5000, 9000, 5000}
		},
		"always a new etag": func(h *publisher, e *Entry) {
			h.cut = []int{9000, 9000, 9000, 9000, 9000, 9000, 9000}
			h.onRequest = func(n int, h *publisher) { h.etag = fmt.Sprintf(`"%d"`, n) }
		},
		"stalls every time": func(h *publisher, e *Entry) { h.slow = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			h, e, s := serve(t, change)
			s.stall = 100 * time.Millisecond
			if name != "stalls every time" {
				s.stall = 5 * time.Second
			}
			_, err := s.pull(t.Context(), []Entry{e})
			require.Error(t, err)
			assert.ErrorContains(t, err, "run the command again")
			assert.LessOrEqual(t, len(h.asked()), fetch.Attempts+1)
		})
	}
}

func TestPullFollowsRedirects(t *testing.T) {
	h, e, s := serve(t, func(h *publisher, e *Entry) { h.cut = []int{50_000} })
	target := e.Files[0].URL
	var hops int
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch hops++; r.URL.Path {
		case "/file":
			http.Redirect(w, r, "/two", http.StatusFound)
		case "/two":
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/passwd":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}
	}))
	defer front.Close()
	e.Files[0].URL = front.URL + "/file"
	_, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Len(t, h.asked(), 2)
	assert.Equal(t, "bytes=50000-", h.asked()[1].Header.Get("Range"), "the range survives the redirects")

	for path, says := range map[string]string{"/loop": "redirect refused", "/passwd": "redirect refused"} {
		_, e, s := serve(t, nil)
		hops = 0
		e.Files[0].URL = front.URL + path
		_, err := s.pull(t.Context(), []Entry{e})
		require.ErrorContains(t, err, says)
		assert.LessOrEqual(t, hops, fetch.MaxRedirects)
	}
}

func TestOfflineErrorSuggestsARemedy(t *testing.T) {
	_, e, s := serve(t, nil)
	closed := httptest.NewServer(nil)
	closed.Close()
	e.Files[0].URL = closed.URL + "/m.onnx"
	_, err := s.pull(t.Context(), []Entry{e})
	require.ErrorIs(t, err, ErrOffline)
	for _, text := range []string{"otograph models import", "HTTPS_PROXY", "--mirror", e.Files[0].URL} {
		assert.ErrorContains(t, err, text)
	}
}

func TestPullFromAMirror(t *testing.T) {
	h, e, s := serve(t, nil)
	mirror := strings.TrimSuffix(e.Files[0].URL, "/models/vad.onnx")
	e.Files[0].URL = "https://models.example/some%20dir/vad.onnx?download=1"
	for spec, path := range map[string]string{
		mirror:                        "/models.example/some%20dir/vad.onnx",
		mirror + "/copy/":             "/copy/models.example/some%20dir/vad.onnx",
		mirror + "/hf/{path}?k=1":     "/hf/some%20dir/vad.onnx",
		mirror + "/{host}/raw/{path}": "/models.example/raw/some%20dir/vad.onnx",
	} {
		s.Dir, s.Mirror = t.TempDir(), spec
		_, err := s.pull(t.Context(), []Entry{e})
		require.NoError(t, err)
		assert.Equal(t, path, h.asked()[len(h.asked())-1].URL.EscapedPath())
	}
	s.Dir, s.Mirror = t.TempDir(), "ftp://models.example"
	_, err := s.pull(t.Context(), []Entry{e})
	require.ErrorContains(t, err, "expected an http or https address")
}

func TestProxyOfTheEnvironmentIsUsed(t *testing.T) {
	f := (&Store{}).fetcher()
	defer f.Client.CloseIdleConnections()
	assert.NotNil(t, f.Client.Transport.(*http.Transport).Proxy)
}

func TestTrustOnFirstUse(t *testing.T) {
	h, e, s := serve(t, func(h *publisher, e *Entry) { e.Files[0].SHA256, e.Files[0].Size = "", 0 })
	done, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Equal(t, []string{"vad.onnx"}, done[0].Trusted)
	assert.Equal(t, hexSum(h.data), done[0].Files[0].SHA256, "what came is recorded")
	done, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.True(t, done[0].Already)
	assert.Empty(t, done[0].Trusted)

	// If the file is damaged on disk and the source has other content, the
	// recorded hash decides.
	modeltest.Place(t, done[0].Files[0].Path, []byte("junk"))
	h.data, h.etag = modeltest.SileroV5().Meta("x", "y").Bytes(), `"v2"`
	_, err = s.pull(t.Context(), []Entry{e})
	require.ErrorIs(t, err, models.ErrBroken)
	assert.ErrorContains(t, err, "expected sha256")
}

func TestConcurrentPulls(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	_, e, s := serve(t, func(h *publisher, e *Entry) {
		h.onRequest = func(int, *publisher) { close(reached); <-release }
	})
	result := make(chan error, 1)
	go func() { _, err := s.pull(t.Context(), []Entry{e}); result <- err }()
	<-reached
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := (&Store{Dir: s.Dir}).Pull(ended, "small")
	require.ErrorIs(t, err, errLocked)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, s.Dir)
	_, err = (&Store{Dir: s.Dir}).Import(ended, "x.onnx", ImportOptions{})
	require.ErrorIs(t, err, errLocked)
	other := *s
	other.Waiting = sync.OnceFunc(func() { close(release) }) // the first pull ends while the second waits
	stored, err := other.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.True(t, stored[0].Already)
	require.NoError(t, <-result)
}

func TestPulledModelsJoinExistingOnes(t *testing.T) {
	_, e, s := serve(t, nil)
	modeltest.Place(t, filepath.Join(s.Dir, "tagger.onnx"), modeltest.YAMNet().Bytes())
	modeltest.Place(t, filepath.Join(s.Dir, "old-vad.onnx"), modeltest.SileroV5().Bytes())
	_, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	tagger, err := set.Need(models.RoleTagger)
	require.NoError(t, err)
	assert.Equal(t, "tagger", tagger.Name)
	vad, _ := set.Role(models.RoleVAD)
	assert.Equal(t, "made-up-vad", vad.Name, "the pulled model is in use")
	assert.FileExists(t, filepath.Join(s.Dir, "old-vad.onnx"))
}

// TestPullHidesNoCopiedModels: a new manifest next to several copied models of
// one role would hide these models.
func TestPullHidesNoCopiedModels(t *testing.T) {
	_, e, s := serve(t, nil)
	modeltest.Place(t, filepath.Join(s.Dir, "a.bin"), modeltest.Whisper(51865))
	modeltest.Place(t, filepath.Join(s.Dir, "b.bin"), modeltest.Whisper(51865))
	_, err := s.pull(t.Context(), []Entry{e})
	require.ErrorIs(t, err, ErrAmbiguous)
	require.ErrorContains(t, err, "a.bin, b.bin")
	assert.NoFileExists(t, filepath.Join(s.Dir, manifestName))
}

// tarball writes an archive; a header without a name is a file of that size.
func tarball(t *testing.T, add func(w *tar.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add(w)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func addFile(t *testing.T, w *tar.Writer, name string, data []byte) {
	t.Helper()
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}))
	_, err := w.Write(data)
	require.NoError(t, err)
}

// bzip compresses with the bzip2 command, as the standard library only reads
// it.
func bzip(t *testing.T, data []byte) []byte {
	t.Helper()
	if _, err := exec.LookPath("bzip2"); err != nil {
		t.Skip("no bzip2 command to make an archive with")
	}
	cmd := exec.Command("bzip2", "-c")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

func TestPullArchive(t *testing.T) {
	model, tokens := modeltest.NeMoCTC().Bytes(), []byte("<blk> 1024\n")
	packed := bzip(t, tarball(t, func(w *tar.Writer) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "sherpa-x/", Typeflag: tar.TypeDir, Mode: 0o755}))
		addFile(t, w, "sherpa-x/test_wavs/0.wav", make([]byte, 5000))
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "sherpa-x/model.onnx", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
		addFile(t, w, "sherpa-x/model.int8.onnx", model)
		addFile(t, w, "sherpa-x/tokens.txt", tokens)
	}))
	h, _, s := serve(t, func(h *publisher, e *Entry) { h.data, h.cut = packed, []int{400} })
	e := Entry{
		Role: models.RoleOptimized, Model: models.Model{Name: "x-ctc", Contract: models.ContractNeMoCTC, Languages: []string{"es"}},
		Archive: &Download{Name: "x.tar.bz2", URL: "http://models.example/x.tar.bz2", Size: int64(len(packed)), SHA256: hexSum(packed)},
		Files:   []Asset{{models.PartModel, Download{Name: "model.int8.onnx", SHA256: hexSum(model)}}, {models.PartTokens, Download{Name: "tokens.txt"}}},
	}
	s.Mirror = "http://" + h.address(t, s)
	done, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Empty(t, done[0].Trusted)
	names, err := list(done[0].Dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"model.int8.onnx", "tokens.txt"}, names, "only the requested files are unpacked")
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, ok := set.OptimizedFor("es")
	require.True(t, ok)
	assert.Equal(t, "x-ctc", m.Name)
	requests := len(h.asked())
	_, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Len(t, h.asked(), requests, "nothing is fetched again")

	wrong := e
	wrong.Name = "y-ctc"
	wrong.Files = []Asset{{models.PartModel, Download{Name: "model.fp32.onnx"}}, {models.PartTokens, Download{Name: "tokens.txt"}}}
	_, err = s.pull(t.Context(), []Entry{wrong})
	require.ErrorIs(t, err, models.ErrBroken)
	assert.ErrorContains(t, err, "model.fp32.onnx")
	wrong.Files = []Asset{{models.PartModel, Download{Name: "model.int8.onnx", SHA256: hexSum(tokens)}}}
	_, err = s.pull(t.Context(), []Entry{wrong})
	require.ErrorIs(t, err, models.ErrBroken)
}

// address returns the publisher's address, for use as a mirror.
func (h *publisher) address(t *testing.T, s *Store) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, errors.Join(err, w.Close()))
	return b.Bytes()
}
