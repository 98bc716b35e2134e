package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/system/fetch"
)

// mirror serves made-up files under HOST/PATH, as a mirror does.
type mirror struct {
	mu    sync.Mutex
	files map[string][]byte
	cut   int      // bytes after which the next response is cut, 0 for none
	asked []string // paths, with the range if there was one
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	path := strings.TrimPrefix(r.URL.Path, "/")
	m.asked = append(m.asked, path+" "+r.Header.Get("Range"))
	data, ok := m.files[path]
	cut := m.cut
	if ok && cut > 0 {
		m.cut = 0
	}
	m.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+sum(data)+`"`)
	if cut > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:cut])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func (m *mirror) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// tarball returns a tar.gz of files.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}))
		_, err := io.WriteString(w, files[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(f, files[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// serve starts a mirror and returns options for it.
func serve(t *testing.T, files map[string][]byte) (*mirror, Options) {
	t.Helper()
	m := &mirror{files: files}
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	f := fetch.New(fetch.Fetcher{Client: server.Client(), Mirror: server.URL, Pause: time.Millisecond, Stall: 5 * time.Second, ByHand: "get --from FILE"})
	return m, Options{Dir: filepath.Join(t.TempDir(), "set"), fetcher: f}
}

// adopt returns a recipe with the hashes and sizes of the made-up files.
func adopt(s Set, m *mirror) Set {
	s.files = slices.Clone(s.files)
	for i, f := range s.files {
		data := m.files[strings.TrimPrefix(f.URL, "https://")]
		if f.Size > 0 {
			s.files[i].Size = int64(len(data))
		}
		if f.SHA256 != "" {
			s.files[i].SHA256 = sum(data)
		}
	}
	return s
}

func find(t *testing.T, name string) Set {
	t.Helper()
	s, err := Find(name)
	require.NoError(t, err)
	return s
}

// get fetches a data set and returns it as bench reads it.
func get(t *testing.T, s Set, o Options) (*Got, []bench.Item) {
	t.Helper()
	got, err := s.Get(t.Context(), o)
	require.NoError(t, err)
	assert.NoDirExists(t, filepath.Join(o.Dir, partials))
	items, err := bench.Load(got.Manifest)
	require.NoError(t, err)
	for _, it := range items {
		assert.FileExists(t, it.Path)
	}
	return got, items
}

// books is LibriSpeech's layout.
func books(t *testing.T) map[string][]byte {
	return map[string][]byte{"www.openslr.org/resources/12/test-clean.tar.gz": tarball(t, map[string]string{
		"LibriSpeech/README.TXT": "about", "LibriSpeech/test-clean/61/70968/61-70968-0000.flac": "sound a" + strings.Repeat("x", 5000),
		"LibriSpeech/test-clean/61/70968/61-70968-0001.flac": "sound b", "LibriSpeech/test-clean/61/70968/61-70968-0009.flac": "without text",
		"LibriSpeech/test-clean/61/70968/61-70968.trans.txt": "61-70968-0000 HE BEGAN\n61-70968-0001 GIVE NOT SO\n61-70968-0002 LOST\n",
	})}
}

func TestLibriSpeechRecipe(t *testing.T) {
	m, o := serve(t, books(t))
	got, items := get(t, adopt(find(t, "librispeech-test-clean"), m), o)
	assert.Equal(t, Got{Manifest: filepath.Join(o.Dir, "manifest.jsonl"), Recordings: 2, Skipped: 2}, *got)
	assert.Equal(t, "HE BEGAN", *items[0].Text)
	assert.Equal(t, "en", items[0].Language)
	assert.Equal(t, map[string]string{"speaker": "61", "license": "CC-BY-4.0"}, items[0].Keys)
	origin, err := os.ReadFile(filepath.Join(o.Dir, "dataset.json"))
	require.NoError(t, err)
	assert.Contains(t, string(origin), sum(m.files["www.openslr.org/resources/12/test-clean.tar.gz"]))

	requests := len(m.requests())
	again, err := find(t, "librispeech-test-clean").Get(t.Context(), o)
	require.NoError(t, err)
	assert.True(t, again.Already)
	assert.Len(t, m.requests(), requests)
}

func TestFLEURSRecipe(t *testing.T) {
	const base = "huggingface.co/datasets/google/fleurs/"
	sounds := tarball(t, map[string]string{"test/1.wav": "sound", "test/2.wav": "sound"})
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", sum(sounds), len(sounds))
	m, o := serve(t, map[string][]byte{
		base + "resolve/main/data/de_de/audio/test.tar.gz": sounds, base + "raw/main/data/de_de/audio/test.tar.gz": []byte(pointer),
		base + "resolve/main/data/de_de/test.tsv": []byte("7\t1.wav\tÜber „alles“.\tüber alles\tü b e r |\t96000\tFEMALE\n7\t2.wav\tÜber\tüber\tü\t9\tMALE\n"),
	})
	got, items := get(t, find(t, "fleurs:de"), o)
	assert.Equal(t, []string{"test.tsv"}, got.Unchecked)
	assert.Equal(t, "Über „alles“.", *items[0].Text)
	assert.Equal(t, "de", items[0].Language)
	assert.Equal(t, "female", items[0].Keys["gender"])

	m.files[base+"raw/main/data/de_de/audio/test.tar.gz"] = []byte(strings.Replace(pointer, sum(sounds), sum(nil), 1))
	o.Dir = filepath.Join(t.TempDir(), "other")
	_, err := find(t, "fleurs:de").Get(t.Context(), o)
	require.ErrorIs(t, err, fetch.ErrBroken, "the pointer's hash counts")

	delete(m.files, base+"raw/main/data/de_de/audio/test.tar.gz")
	got, err = find(t, "fleurs:de").Get(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, []string{"test.tar.gz", "test.tsv"}, got.Unchecked)
}

func TestFLEURSLanguages(t *testing.T) {
	for name, want := range map[string]string{"de": "fleurs:de_de", "en_us": "fleurs:en_us", "zh": "fleurs:cmn_hans_cn", "cmn": "fleurs:cmn_hans_cn", "ff": "fleurs:ff_sn", "nb": "fleurs:nb_no"} {
		assert.Equal(t, want, find(t, "fleurs:"+name).Name)
	}
	_, err := Find("fleurs:xx")
	require.ErrorIs(t, err, ErrUnknown)
	assert.Equal(t, "zh", find(t, "fleurs:zh").Language)
	assert.Empty(t, find(t, "fleurs:umb").Language, "Whisper has no code for it")
}

func TestVoxConverseRecipe(t *testing.T) {
	turns := "SPEAKER abc 1 0.5 1.5 <NA> <NA> spk00 <NA> <NA>\nSPEAKER abc 1 2 1 <NA> <NA> spk01 <NA> <NA>\n"
	m, o := serve(t, map[string][]byte{
		"www.robots.ox.ac.uk/~vgg/data/voxconverse/data/voxconverse_test_wav.zip": zipped(t, map[string]string{"voxconverse_test_wav/abc.wav": "sound"}),
		"github.com/joonson/voxconverse/archive/24bf60be297701cd7e4ef18550c6d390c1b87365.tar.gz": tarball(t, map[string]string{
			"voxconverse-24bf/test/abc.rttm": turns, "voxconverse-24bf/dev/xyz.rttm": turns,
		}),
	})
	_, items := get(t, adopt(find(t, "voxconverse-test"), m), o)
	require.Len(t, items, 1)
	assert.Equal(t, []bench.SpeakerTurn{{Start: 0.5, End: 2, Speaker: "spk00"}, {Start: 2, End: 3, Speaker: "spk01"}}, items[0].Turns)
	assert.Nil(t, items[0].Text)
}

func TestAMIRecipe(t *testing.T) {
	const head = `<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>` + "\n" + `<nite:root nite:id="x" xmlns:nite="http://nite.sourceforge.net/">` + "\n"
	files := map[string][]byte{}
	annotations, turns := map[string]string{"words/ES2002a.A.words.xml": "not of the test part"}, map[string]string{}
	for _, m := range amiMeetings {
		files["groups.inf.ed.ac.uk/ami/AMICorpusMirror/amicorpus/"+m+"/audio/"+m+".Array1-01.wav"] = []byte("sound " + m)
		annotations["words/"+m+".A.words.xml"] = head + `<w nite:id="a0" starttime="1" endtime="1.5">Caf` + "\xe9" + `</w><vocalsound nite:id="a1" type="laugh"/>` +
			`<w nite:id="a2" starttime="2" endtime="3">L_C_D_</w><w nite:id="a3" starttime="3" endtime="3" punc="true">.</w><w nite:id="a4">Yes</w></nite:root>`
		annotations["segments/"+m+".A.segments.xml"] = head + `<segment nite:id="s0" transcriber_start="4.0" transcriber_end="5.0"><nite:child href="x.words.xml#id(a4)"/></segment>` +
			`<segment nite:id="s1" transcriber_start="0.9" transcriber_end="3.1"><nite:child href="x.words.xml#id(a0)..id(a3)"/></segment></nite:root>`
		annotations["words/"+m+".B.words.xml"] = head + `<w nite:id="b0">no</w></nite:root>`
		annotations["segments/"+m+".B.segments.xml"] = head + `<segment transcriber_start="2" transcriber_end="2.5"><nite:child href="x#id(b0)"/></segment><segment transcriber_start="7" transcriber_end="8"/></nite:root>`
		turns["AMI-diarization-setup-67c2/only_words/rttms/test/"+m+".rttm"] = "SPEAKER " + m + " 1 1 2 <NA> <NA> MEE006 <NA> <NA>\n"
		turns["AMI-diarization-setup-67c2/uems/test/"+m+".uem"] = m + " 1 0 10\n"
	}
	files["groups.inf.ed.ac.uk/ami/AMICorpusAnnotations/ami_public_manual_1.6.2.zip"] = zipped(t, annotations)
	files["github.com/pyannote/AMI-diarization-setup/archive/"+amiTurns+".tar.gz"] = tarball(t, turns)
	m, o := serve(t, files)
	got, items := get(t, adopt(find(t, "ami-sdm"), m), o)
	assert.Len(t, items, 16)
	assert.Len(t, got.Unchecked, 17, "all but the annotations")
	it := items[4]
	assert.Equal(t, "audio/ES2004a.Array1-01.wav", it.Name)
	assert.Equal(t, "Café L C D. no Yes", *it.Text)
	assert.Equal(t, []string{"A", "B", "A"}, it.SentenceSpeakers)
	assert.Equal(t, bench.TimedText{Start: 0.9, End: 3.1, Text: "Café L C D."}, it.Sentences[0])
	assert.Equal(t, []bench.SpeakerTurn{{Start: 1, End: 3, Speaker: "MEE006"}}, it.Turns)
	assert.Equal(t, [][2]float64{{0, 10}}, it.Evaluated)
	assert.NoFileExists(t, filepath.Join(o.Dir, "references", "ES2002a.A.words.xml"))
}

func TestInterruptedDownloadContinues(t *testing.T) {
	m, o := serve(t, books(t))
	m.cut = 200
	s := adopt(find(t, "librispeech-test-clean"), m)
	hasty := *o.fetcher
	hasty.Attempts = 1
	_, err := s.Get(t.Context(), Options{Dir: o.Dir, fetcher: &hasty})
	require.ErrorContains(t, err, "run the command again")
	assert.NoFileExists(t, filepath.Join(o.Dir, "manifest.jsonl"))

	whole := s
	whole.lines = func(string) ([]line, error) { return nil, context.Canceled } // as if it was stopped while reading
	_, err = whole.Get(t.Context(), o)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, "www.openslr.org/resources/12/test-clean.tar.gz bytes=200-", m.requests()[1])
	_, items := get(t, s, o)
	assert.Len(t, items, 2)
	assert.Len(t, m.requests(), 2, "a complete file is not fetched again")
}

func TestWrongHashIsRefused(t *testing.T) {
	m, o := serve(t, books(t))
	_, err := find(t, "librispeech-test-clean").Get(t.Context(), o)
	require.ErrorIs(t, err, fetch.ErrBroken)
	assert.NoFileExists(t, filepath.Join(o.Dir, "manifest.jsonl"))
	s := adopt(find(t, "librispeech-test-clean"), m)
	s.files[0].SHA256 = sum([]byte("other"))
	_, err = s.Get(t.Context(), o)
	require.ErrorIs(t, err, fetch.ErrBroken)
	assert.ErrorContains(t, err, "sha256")
}

func TestHostileArchive(t *testing.T) {
	const at = "www.openslr.org/resources/12/test-clean.tar.gz"
	for name, files := range map[string]map[string]string{
		"climbs out": {"../../x/a.flac": "sound"},
		"absolute":   {"/etc/x/a.flac": "sound"},
		"bomb":       {"x/a.flac": strings.Repeat("0", 70<<20)},
		"twice":      {"x/a.flac": "sound", "y/a.flac": "sound"},
	} {
		m, o := serve(t, map[string][]byte{at: tarball(t, files)})
		_, err := adopt(find(t, "librispeech-test-clean"), m).Get(t.Context(), o)
		require.ErrorIs(t, err, fetch.ErrArchive, name)
		around, err := os.ReadDir(filepath.Dir(o.Dir))
		require.NoError(t, err)
		assert.Len(t, around, 1, name)
	}
	m, o := serve(t, map[string][]byte{at: tarball(t, map[string]string{"x/a.txt": "another archive"})})
	_, err := adopt(find(t, "librispeech-test-clean"), m).Get(t.Context(), o)
	require.ErrorIs(t, err, ErrContent)
}

// TestFilesAreTakenFromFolders checks that files which were fetched by hand
// replace downloads.
func TestFilesAreTakenFromFolders(t *testing.T) {
	m, o := serve(t, books(t))
	s := adopt(find(t, "librispeech-test-clean"), m)
	hand := filepath.Join(t.TempDir(), "test-clean (1).tar.gz")
	data := books(t)["www.openslr.org/resources/12/test-clean.tar.gz"]
	require.NoError(t, os.WriteFile(hand, data, 0o600))
	o.From = []string{hand}
	_, items := get(t, s, o)
	assert.Len(t, items, 2)
	assert.Empty(t, m.requests())
	assert.FileExists(t, hand)
	links := t.TempDir()
	require.NoError(t, os.Symlink(hand, filepath.Join(links, "test-clean.tar.gz")))
	_, items = get(t, s, Options{Dir: filepath.Join(t.TempDir(), "linked"), From: []string{links}, fetcher: o.fetcher})
	assert.Len(t, items, 2)
	assert.Empty(t, m.requests(), "a folder of links")

	require.NoError(t, os.WriteFile(hand, data[1:], 0o600))
	o.Dir = filepath.Join(t.TempDir(), "other")
	_, err := s.Get(t.Context(), o)
	require.ErrorIs(t, err, fetch.ErrBroken)
	assert.FileExists(t, hand, "a file of somebody else is not removed")

	o.From = []string{filepath.Join(t.TempDir(), "none")}
	_, err = s.Get(t.Context(), o)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestFolderName checks that a folder's name is no pattern.
func TestFolderName(t *testing.T) {
	m, o := serve(t, books(t))
	o.Dir = filepath.Join(t.TempDir(), "sets [1]")
	_, items := get(t, adopt(find(t, "librispeech-test-clean"), m), o)
	assert.Len(t, items, 2)
}

// TestForeignFolder checks that nothing is written into a folder with other
// content.
func TestForeignFolder(t *testing.T) {
	m, o := serve(t, books(t))
	s := adopt(find(t, "librispeech-test-clean"), m)
	require.NoError(t, os.Mkdir(o.Dir, 0o755))
	own := filepath.Join(o.Dir, "manifest.jsonl")
	require.NoError(t, os.WriteFile(own, []byte("mine"), 0o600))
	_, err := s.Get(t.Context(), o)
	require.ErrorIs(t, err, ErrFolder)
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)

	require.NoError(t, os.Remove(own))
	unfinished := filepath.Join(o.Dir, partials, "mine")
	require.NoError(t, os.Mkdir(filepath.Dir(unfinished), 0o755))
	require.NoError(t, os.WriteFile(unfinished, []byte("mine"), 0o600))
	_, err = s.Get(t.Context(), o)
	require.ErrorIs(t, err, ErrFolder)
	assert.FileExists(t, unfinished, "the unfinished work of another program")

	require.NoError(t, os.Remove(unfinished))
	get(t, s, o)
	_, err = find(t, "librispeech-test-other").Get(t.Context(), o)
	require.ErrorIs(t, err, ErrFolder)
	assert.ErrorContains(t, err, "librispeech-test-clean")
}

// TestList checks that the recipes are complete.
func TestList(t *testing.T) {
	for _, s := range List() {
		assert.NotEmpty(t, s.About, s.Name)
		assert.NotEmpty(t, s.License, s.Name)
		assert.NotEmpty(t, s.Page, s.Name)
		names := map[string]bool{}
		for _, f := range s.files {
			assert.False(t, names[f.Name], "%s: %s", s.Name, f.Name)
			names[f.Name] = true
			assert.True(t, strings.HasPrefix(f.URL, "https://"), f.URL)
			assert.True(t, (f.place == nil) != (f.to == ""), f.Name)
			if f.SHA256 != "" {
				assert.Regexp(t, "^[0-9a-f]{64}$", f.SHA256)
			}
		}
		if s.Name != "fleurs:LANG" {
			find(t, s.Name)
		}
	}
	_, err := Find("librispeech")
	require.ErrorIs(t, err, ErrUnknown)
	assert.ErrorContains(t, err, "librispeech-test-clean")
}
