package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// TestFirstRun is a new user's first recording on a terminal and an empty
// machine: the question, every answer to it, and a download that is
// interrupted, corrupt, or too large for the disk. The program is the real one
// with another catalog, whose models are fake (the demonstration models under
// other names).
func TestFirstRun(t *testing.T) {
	t.Parallel()
	if os.Getenv("OTOGRAPH_BINARY") != "" {
		t.Skip("a program that was built elsewhere has its own catalog")
	}
	published := publish(t)
	program := withCatalog(t, published.catalog(t))
	wav, recording := filepath.Join(t.TempDir(), "own.wav"), filepath.Join(t.TempDir(), "own.m4a")
	require.NoError(t, os.WriteFile(wav, clip(t, 5, 5), 0o600))
	out, err := exec.Command("ffmpeg", "-v", "error", "-i", wav, recording).CombinedOutput()
	require.NoError(t, err, "%s", out)
	begin := func(t *testing.T, data string, wrap ...string) *session {
		args := append(wrap, program, "transcribe", "--enable-audio-events=false", recording)
		return terminalSession(t, args, "XDG_DATA_HOME="+data, "OTOGRAPH_MODELS=", "OTOGRAPH_DEMO=false", "OTOGRAPH_MIRROR="+published.url)
	}

	t.Run("Ctrl-C at the question", func(t *testing.T) {
		data := t.TempDir()
		s := begin(t, data)
		s.expect("Get them now? [y/N] ")
		s.write("\x03")
		assert.Equal(t, 130, s.wait())
		assert.NoDirExists(t, filepath.Join(data, "otograph", "models"))
	})
	t.Run("no", func(t *testing.T) {
		s := begin(t, t.TempDir())
		s.expect("made-up-standard, ")
		s.expect("[y/N] ")
		s.write("n\n")
		assert.Equal(t, 1, s.wait())
		assert.Contains(t, s.output(), "run `otograph models pull`")
	})
	t.Run("--demo", func(t *testing.T) {
		s := terminalSession(t, []string{program, "transcribe", "--demo", "--enable-audio-events=false", recording}, "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=")
		assert.Equal(t, 0, s.wait())
		assert.NotContains(t, s.output(), "[y/N]")
		assert.Contains(t, s.output(), "Using demo models")
	})
	t.Run("not a terminal", func(t *testing.T) {
		cmd := exec.Command(program, "transcribe", "--enable-audio-events=false", recording)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=", "OTOGRAPH_DEMO=false", "OTOGRAPH_MIRROR="+published.url)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.Error(t, err)
		assert.Empty(t, out, "no text without a recognizer")
		assert.NotContains(t, stderr.String(), "[y/N]")
		assert.Contains(t, stderr.String(), "run `otograph models pull`")
	})
	t.Run("wrong hash", func(t *testing.T) {
		published.change(func() { published.rubbish = true })
		defer published.change(func() { published.rubbish = false })
		data := t.TempDir()
		s := begin(t, data)
		s.expect("[y/N] ")
		s.write("y\n")
		assert.Equal(t, 1, s.wait())
		shown := s.output()
		assert.Contains(t, shown, "expected sha256 ")
		assert.Contains(t, shown, "run the command again")
		assert.Empty(t, filesOf(t, data, ".bin"), "no model with a wrong hash is installed")
	})
	t.Run("interrupted and resumed", func(t *testing.T) {
		hung := make(chan struct{})
		published.change(func() { published.hang = hung })
		data := t.TempDir()
		s := begin(t, data)
		s.expect("[y/N] ")
		s.write("y\n")
		<-hung // half of a file was sent
		require.Eventually(t, func() bool { return holdsBytes(filesOf(t, data, ".part")) }, patience, 10*time.Millisecond)
		s.write("\x03")
		assert.Equal(t, 130, s.wait(), "%s", s.output())
		published.change(func() { published.hang, published.resumed = nil, 0 })

		s = begin(t, data)
		s.expect("[y/N] ")
		s.write("y\n")
		s.expect("5 models in ")
		assert.Equal(t, 0, s.wait())
		published.change(func() { assert.Equal(t, 1, published.resumed, "the interrupted download resumes") })
		s = begin(t, data)
		assert.Equal(t, 0, s.wait())
		assert.NotContains(t, s.output(), "[y/N]")
	})
	t.Run("no room", func(t *testing.T) {
		small := t.TempDir()
		wrap := []string{"unshare", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs -o size=512k none "$0" && exec "$@"`, small}
		if out, err := exec.Command(wrap[0], append(wrap[1:], "true")...).CombinedOutput(); err != nil {
			t.Skipf("no file system can be mounted here: %v: %s", err, out)
		}
		s := begin(t, small, wrap...)
		s.expect("[y/N] ")
		s.write("y\n")
		assert.Equal(t, 1, s.wait())
		shown := s.output()
		assert.Contains(t, shown, "no space left on device")
		assert.Contains(t, shown, "run the command again")
	})
}

// publisher is a mirror of fake models.
type publisher struct {
	url   string
	files map[string][]byte
	list  []map[string]any

	mu      sync.Mutex
	rubbish bool          // every file has wrong content
	hang    chan struct{} // closed in the middle of the first file, which then stalls
	resumed int           // requests that resumed in the middle of a file
}

func publish(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{files: map[string][]byte{}}
	for _, m := range demo.Models().Models {
		if m.Role == models.RoleSegmenter {
			continue // not in any profile
		}
		var files []map[string]any
		for _, f := range m.Files {
			data, err := f.Data()
			require.NoError(t, err)
			name := strings.Replace(f.Name, "demo", "made-up", 1)
			p.files[name] = data
			sum := sha256.Sum256(data)
			files = append(files, map[string]any{
				"part": f.Part, "name": name, "url": "https://models.example/" + name, "size": len(data), "sha256": hex.EncodeToString(sum[:]),
			})
		}
		p.list = append(p.list, map[string]any{
			"name": "made-up-" + string(m.Role), "role": m.Role, "contract": m.Contract, "languages": m.Languages, "license": "made up", "sources": 1,
			"window_seconds": m.WindowSeconds, "sample_rate": m.SampleRate, "same_speaker": m.SameSpeaker, "files": files,
		})
	}
	mirror := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(mirror.Close)
	p.url = mirror.URL
	return p
}

func (p *publisher) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *publisher) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, ok := p.files[path.Base(r.URL.Path)]
	if !ok || path.Dir(r.URL.Path) != "/models.example" {
		http.NotFound(w, r)
		return
	}
	if p.rubbish {
		data = bytes.Repeat([]byte("x"), len(data))
	}
	w.Header().Set("ETag", `"1"`)
	if hung := p.hang; hung != nil {
		p.hang = nil
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		_ = http.NewResponseController(w).Flush()
		p.mu.Unlock()
		close(hung)
		<-r.Context().Done()
		p.mu.Lock()
		return
	}
	if r.Header.Get("Range") != "" {
		p.resumed++
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// catalog writes a catalog of the mirror's models.
func (p *publisher) catalog(t *testing.T) string {
	t.Helper()
	var names []string
	for _, m := range p.list {
		names = append(names, m["name"].(string))
	}
	data, err := json.Marshal(map[string]any{"profiles": map[string]any{"starter": names}, "models": p.list})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "catalog.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

// withCatalog builds the program with another catalog.
func withCatalog(t *testing.T, catalog string) string {
	t.Helper()
	own, err := filepath.Abs("../models/library/catalog.json")
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{own: catalog}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	program := filepath.Join(t.TempDir(), "otograph")
	out, err := exec.Command("go", "build", stripped, "-overlay", file, "-o", program, "../cmd/otograph").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// filesOf returns the files below dir whose names end with suffix.
func filesOf(t *testing.T, dir, suffix string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
		return nil // the file was renamed meanwhile
	})
	require.NoError(t, err)
	return found
}

// holdsBytes reports whether one of the files is not empty.
func holdsBytes(files []string) bool {
	return slices.ContainsFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Size() > 0
	})
}

// session is a program with its own terminal.
type session struct {
	t      *testing.T
	cmd    *exec.Cmd
	screen *os.File // the user's side of the terminal
	ended  chan struct{}

	mu   sync.Mutex
	text strings.Builder
	seen int // length of the text that was already matched
}

func terminalSession(t *testing.T, args []string, env ...string) *session {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	s := &session{t: t, screen: screen, ended: make(chan struct{}), cmd: exec.Command(args[0], args[1:]...)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = line, line, line
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, s.cmd.Start())
	require.NoError(t, line.Close())
	go s.watch()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		screen.Close()
	})
	return s
}

// watch reads the screen until no program has the terminal open.
func (s *session) watch() {
	defer close(s.ended)
	buf := make([]byte, 4096)
	for {
		n, err := s.screen.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *session) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// expect waits until text appears after the previously expected text.
func (s *session) expect(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		shown := s.output()
		at := strings.Index(shown[s.seen:], text)
		if at < 0 {
			return false
		}
		s.seen += at + len(text)
		return true
	}, patience, 10*time.Millisecond, "%q did not appear", text)
}

func (s *session) write(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.screen, text)
	require.NoError(s.t, err)
}

// wait returns the program's exit status.
func (s *session) wait() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		require.Fail(s.t, "the program does not end", "%s", s.output())
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s.t, err)
	}
	return s.cmd.ProcessState.ExitCode()
}
