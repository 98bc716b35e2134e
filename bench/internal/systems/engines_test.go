package systems

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench/internal/datasets"
)

// recording returns an item whose file has some bytes.
func recording(t *testing.T) datasets.Item {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.wav")
	require.NoError(t, os.WriteFile(path, []byte("RIFF"), 0o600))
	return datasets.Item{Name: "a.wav", Path: path}
}

// serve starts a server with a handler and returns its Engine.
func serve(t *testing.T, limit time.Duration, query string, h http.HandlerFunc) Engine {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
	})
	s, err := Server(srv.URL+"/v1"+query, "secret", limit, 0)
	require.NoError(t, err)
	return s
}

func TestServer(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, time.Minute, "?model=base&language=en", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		assert.Equal(t, "/v1/audio/transcriptions", r.URL.Path)
		assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		file, _, err := r.FormFile("file")
		if assert.NoError(t, err) {
			data, err := io.ReadAll(file)
			assert.NoError(t, err)
			assert.Equal(t, "RIFF", string(data))
		}
		assert.Equal(t, "base", r.FormValue("model"))
		assert.Equal(t, "en", r.FormValue("language"))
		if r.FormValue("response_format") != "json" {
			http.Error(w, `{"error":{"message":"response_format verbose_json is not supported"}}`, http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"text":"Hello."}`)
	})
	res, cost, err := s.Transcribe(t.Context(), recording(t))
	require.NoError(t, err)
	assert.Equal(t, "Hello.", text(res))
	assert.Positive(t, cost.Wall)
	assert.Equal(t, int32(3), asked.Load(), "busy, without times, as text")
	assert.NotContains(t, s.Identity(), "secret")
}

func TestServerFaultsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason string
	}{
		"error": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			http.Error(w, `{"error":{"message":"out of memory"}}`, http.StatusInternalServerError)
		}, "500 Internal Server Error: \"{\\\"message\\\":\\\"out of memory\\\"}\""},
		"refusal": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, "401"},
		"page":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><title>Login</title>") }, "a page of markup (\"Login\")"},
		"half":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"text": "Hel`) }, "incomplete JSON"},
		"bytes":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x7fELF\x00\x01\xff")) }, "expected a text in UTF-8"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"text": "Hel`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
		"circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "307 Temporary Redirect"},
		"endless error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "longer than 32 MiB"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "longer than 32 MiB"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server only notices the client's end after reading the body
			<-r.Context().Done()
		}, "no answer within"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if name == "silent" {
				limit = 50 * time.Millisecond
			}
			_, _, err := serve(t, limit, "", c.answer).Transcribe(t.Context(), recording(t))
			require.ErrorContains(t, err, c.reason)
		})
	}
	_, err := Server("localhost:8000", "", time.Second, 0)
	require.ErrorContains(t, err, "expected an address such as")
}

func TestRequestsArePaced(t *testing.T) {
	s := &server{gap: 30 * time.Millisecond}
	start := time.Now()
	for range 3 {
		require.NoError(t, s.wait(t.Context()))
	}
	assert.GreaterOrEqual(t, time.Since(start), 60*time.Millisecond)
}

func TestCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are Unix's")
	}
	run := func(line string, limit time.Duration) (string, Cost, error) {
		c, err := Command(line, limit)
		require.NoError(t, err)
		res, cost, err := c.Transcribe(t.Context(), recording(t))
		if err != nil {
			return "", cost, err
		}
		return text(res), cost, nil
	}
	text, cost, err := run(`sh -c 'cat "$0"; echo " and" more' {file}`, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, "RIFF and more", text)
	assert.Positive(t, cost.Wall)
	text, _, err = run(`sh -c 'echo log >&2; echo "{\"text\":\"from a file\"}" > {out}/x.json; echo no > {out}/x.txt' {file}`, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, "from a file", text)
	for line, reason := range map[string]string{
		`sh -c 'echo it broke >&2; exit 3' {file}`: "exit status 3: \"it broke\\n\"",
		`sh -c 'yes >&2' {file}`:                   "did not end within",
		`sh -c 'kill -9 $$' {file}`:                "signal: killed",
		`sh -c 'mkfifo {out}/x.txt' {file}`:        "expected a file",
		`sh -c 'echo "<html><p>no</p>"' {file}`:    "a page of markup",
		`yes {file}`:                               "wrote more than 32 MiB",
		`sh -c 'sleep 60 & sleep 60' {file}`:       "did not end within",
		`/no/such/program {file}`:                  "no such file",
		`sh -c 'head -c 99 /dev/zero' {file}`:      "not a transcript",
	} {
		limit := time.Minute
		if reason == "did not end within" {
			limit = 100 * time.Millisecond
		}
		_, _, err := run(line, limit)
		assert.ErrorContains(t, err, reason, line)
	}
	for _, line := range []string{"", "prog", "prog 'x {file}"} {
		_, err := Command(line, time.Minute)
		require.Error(t, err, line)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	items := []datasets.Item{{Name: "x/a.wav"}, {Name: "b.wav"}}
	folder := filepath.Dir(put("folder/b.txt", "from text"))
	put("folder/x/a.json", `{"text":"from json"}`)
	put("folder/x/a.rttm", "SPEAKER a 1 0 1 <NA> <NA> ann <NA> <NA>\n")
	for path, want := range map[string][2]string{
		folder: {"from json", "from text"},
		put("rows.jsonl", `{"audio_filepath":"q/b.wav","duration":4,"time":2,"text":"r","pred_text":"two"}`+"\n"+`{"audio_filepath":"a.wav","text":"r","pred_text":"one"}`): {"one", "two"},
		put("seg.json", `[{"session_id":"a","speaker":"A","start_time":0,"end_time":1,"words":"one"},{"session_id":"b","words":"two"}]`):                                    {"one", "two"},
		put("all.stm", "a 1 A 0 1 one\nb 1 A 0 1 two\n"): {"one", "two"},
		put("all.ctm", "a 1 0 1 one\nb 1 0 1 two\n"):     {"one", "two"},
		put("lines.txt", "one\ntwo\n"):                   {"one", "two"},
	} {
		f, err := Files(path, items)
		require.NoError(t, err, path)
		for i, it := range items {
			res, cost, err := f.Transcribe(t.Context(), it)
			require.NoError(t, err, path)
			assert.Equal(t, want[i], text(res), path)
			assert.Equal(t, path == folder && i == 0, len(res.DiarizeSegments) > 0 && len(res.Segments) > 0 && res.Segments[0].Speaker == "", path)
			if strings.HasSuffix(path, "rows.jsonl") && i == 1 {
				assert.Equal(t, Cost{Audio: 4, Wall: 2}, cost)
			}
		}
		_, _, err = f.Transcribe(t.Context(), datasets.Item{Name: "missing.wav"})
		if !strings.HasSuffix(path, ".txt") && !strings.HasSuffix(path, "tm") {
			require.ErrorIs(t, err, noHypothesis{}, path)
		}
	}
	f, err := Files(filepath.Dir(put("praat/a.TextGrid", "File type")), items)
	require.NoError(t, err)
	_, _, err = f.Transcribe(t.Context(), datasets.Item{Name: "a.wav"})
	require.ErrorIs(t, err, noHypothesis{})
	require.ErrorContains(t, err, "a.TextGrid is not read, expected one of .json")
	shared := put("all.rttm", "SPEAKER a 1 0 1 <NA> <NA> ann <NA> <NA>\n\nSPEAKER 1.1_Lesson_name 1 0 1 <NA> <NA> bob <NA> <NA>\n")
	words := put("words.ctm", "1.1_Lesson_name 1 0 1 one\na 1 0 1 two\n")
	titled := filepath.Dir(put("titled/1.1 Lesson name.txt", "one\n"))
	for path, want := range map[string][3]int{shared: {1, 1, 0}, words: {1, 1, 0}, titled: {1, -1, -1}} {
		f, err := Files(path, items)
		require.NoError(t, err, path)
		for i, name := range []string{"1.1 Lesson name", "a.wav", "quiet.wav"} {
			res, _, err := f.Transcribe(t.Context(), datasets.Item{Name: name})
			if want[i] < 0 {
				require.ErrorIs(t, err, noHypothesis{}, "%s: %s", path, name)
				continue
			}
			require.NoError(t, err, "%s: %s", path, name)
			assert.Equal(t, want[i], max(len(res.DiarizeSegments), len(res.Segments)), "%s: %s", path, name)
		}
	}
	single := put("single.rttm", "SPEAKER b 1 0 1 <NA> <NA> ann <NA> <NA>\n")
	for n, want := range map[int]int{1: 1, 2: 0} {
		f, err := Files(single, items[:n])
		require.NoError(t, err)
		res, _, err := f.Transcribe(t.Context(), datasets.Item{Name: "a.wav"})
		require.NoError(t, err)
		assert.Len(t, res.DiarizeSegments, want, "a file for %d recordings", n)
	}
	typed, err := Files(put("typed.rttm", "SPKR-INFO a 1 <NA> <NA> <NA> unknown ann <NA>\nLEXEME a 1 0 0.2 It lex ann <NA>\nSPEAKER a 1 0 1 <NA> <NA> ann <NA> <NA>\n"), items)
	require.NoError(t, err)
	res, _, err := typed.Transcribe(t.Context(), items[0])
	require.NoError(t, err)
	assert.Len(t, res.DiarizeSegments, 1, "lines of other types are no turns")
	for name, text := range map[string]string{"a.stm": "a 1 S 3 0 one\nb 1 S 0 3 two\n", "a.ctm": "a 1 0 0,3 one\n", "a.rttm": "SPEAKER a 1 0 -1 <NA> <NA> ann\n", "a.trn": "one (s-a)\ntwo (s-b)\n"} {
		_, err = Files(put("wrong/"+name, text), items)
		require.ErrorContains(t, err, name+": expected lines of ", "not read as a text with a line for each recording")
	}
	_, err = Files(put("others.ctm", "A 1 0 1 one\nz 1 0 1 two\n"), items)
	require.ErrorContains(t, err, "expected lines of x/a.wav or of another recording of the manifest, found A")
	_, err = Files(put("one.txt", "one\n"), items)
	require.ErrorContains(t, err, "expected a line for each of the 2 recordings, found 1")
	for name, text := range map[string]string{
		"rows.jsonl": `{"path":"x/a.wav","sentence":"no","prediction":"one"}` + "\n" + `{"path":"b.wav","prediction":""}`, "list.json": `[{"file":"a.wav","transcription":"one"},{"file":"b.wav","text":""}]`,
		"table.csv": "file,duration,text,prediction\na.wav,,no,one\nb.wav,2,no,\n", "table.tsv": "path\tsentence\na.wav\tone\nb.wav\t\n", "lines.txt": "one\n\n",
	} {
		f, err := Files(put(name, text), items)
		require.NoError(t, err, name)
		for i, want := range []string{"one", ""} {
			res, _, err := f.Transcribe(t.Context(), items[i])
			require.NoError(t, err, name)
			assert.Equal(t, want, res.Segments[0].Text, name)
		}
	}
	_, err = Files(put("broken.jsonl", `{"audio_filepath":"a.wav","pred`), items)
	require.ErrorIs(t, err, errOutput)
}
