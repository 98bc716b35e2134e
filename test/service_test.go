package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// server is a running `otograph serve` with its own data folder.
type server struct {
	t        *testing.T
	url      string // including the base path
	key      string // of the account "local"
	data     string
	database string // connection string; "" means SQLite in the data folder
	args     []string
	cmd      *exec.Cmd
	log      *os.File
}

// listeningAt finds the address that a server chose, in its log.
var listeningAt = regexp.MustCompile(`"listening","url":"(http://[0-9.:]+)`)

var keyPattern = regexp.MustCompile(`asr_[0-9A-Za-z]{40}`)

// serve starts the service and waits until it responds. The test's end stops
// it.
func serve(t *testing.T, data string, args ...string) *server {
	t.Helper()
	return serveUnder(t, data, []string{binary}, args...)
}

// serveUnder is like serve, but another program runs the service, for example a
// shell that limits it.
func serveUnder(t *testing.T, data string, program []string, args ...string) *server {
	t.Helper()
	s := &server{t: t, data: data, args: args}
	var err error
	s.log, err = os.CreateTemp(t.TempDir(), "serve-*.log")
	require.NoError(t, err)
	out, err := os.CreateTemp(t.TempDir(), "serve-*.out")
	require.NoError(t, err)
	if i := slices.Index(args, "--database"); i >= 0 {
		s.database = args[i+1]
	}
	s.cmd = exec.Command(program[0], slices.Concat(program[1:], []string{"serve", "--addr", "127.0.0.1:0", "--data", data}, args)...)
	s.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=", "OTOGRAPH_DATABASE=", "OTOGRAPH_BLOBS=")
	s.cmd.Stdout, s.cmd.Stderr = out, s.log
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { s.stop() })
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the service does not answer: %s", s.logged())
		}
		address := listeningAt.FindStringSubmatch(s.logged())
		if address == nil {
			continue
		}
		s.url = address[1] + "/v1"
		res, err := http.Get(address[1] + "/readyz")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			break
		}
	}
	kept, _ := os.ReadFile(filepath.Join(data, "first-api-key")) // only exists after the first start
	s.key = keyPattern.FindString(string(kept))
	return s
}

// again starts a service on the state of a stopped one.
func (s *server) again() *server {
	s.t.Helper()
	next := serve(s.t, s.data, s.args...)
	next.key = s.key
	return next
}

// kill ends the serving process like a power failure.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stop ends the service as an operator does, and returns the error of its exit.
func (s *server) stop() error {
	if s.cmd.ProcessState != nil {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	return s.cmd.Wait()
}

func (s *server) logged() string {
	b, _ := os.ReadFile(s.log.Name())
	return string(b)
}

// call sends a request with the key and decodes the response into a map or
// list.
func (s *server) call(method, path string, body any) (status int, answer map[string]any) {
	s.t.Helper()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(s.t, err)
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, s.url+path, r)
	require.NoError(s.t, err)
	req.Header.Set("X-API-Key", s.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for { // the tier of the account allows few requests per second
		res, err := http.DefaultClient.Do(req)
		require.NoError(s.t, err)
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		require.NoError(s.t, err)
		if res.StatusCode == http.StatusTooManyRequests {
			time.Sleep(time.Second)
			if r != nil {
				req.Body, _ = req.GetBody()
			}
			continue
		}
		answer = map[string]any{}
		if len(b) > 0 && b[0] == '{' {
			require.NoError(s.t, json.Unmarshal(b, &answer), "%s", b)
		}
		return res.StatusCode, answer
	}
}

// wait polls a task until it is final.
func (s *server) wait(id string) map[string]any {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		status, task := s.call("GET", "/tasks/"+id, nil)
		require.Equal(s.t, 200, status, "%v", task)
		if task["finished_at"] != nil {
			return task
		}
	}
	s.t.Fatalf("task %s is not final\n%s", id, s.logged())
	return nil
}

// run runs an otograph command on the server's data.
func (s *server) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "OTOGRAPH_DATA="+s.data, "OTOGRAPH_DATABASE="+s.database, "OTOGRAPH_BLOBS=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// End to end: 20 s of the bundled recording by URL, with a signed callback; the
// result equals the command's, and the ledger has the charge.
func TestServiceEndToEnd(t *testing.T) {
	t.Parallel()
	recording, file := clip(t, 5, 9), filepath.Join(t.TempDir(), "talk.wav")
	require.NoError(t, os.WriteFile(file, recording, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	calls := make(chan *http.Request, 10)
	bodies := make(chan []byte, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /talk.wav", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "talk.wav", time.Unix(1e9, 0), bytes.NewReader(recording))
	})
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		calls <- r
		bodies <- b
	})
	source := &http.Server{Handler: mux}
	go func() { _ = source.Serve(l) }()
	t.Cleanup(func() { _ = source.Close() })

	s := serve(t, t.TempDir(), "--allow-outbound", l.Addr().String())
	status, task := s.call("POST", "/tasks", map[string]any{
		"audio_url":    "http://" + l.Addr().String() + "/talk.wav",
		"callback_url": "http://" + l.Addr().String() + "/hook", "callback_secret": "secret",
	})
	require.Equal(t, 201, status, "%v", task)
	assert.Equal(t, "processing", task["status"])
	assert.Equal(t, "url", task["audio_source_type"])
	assert.Equal(t, "talk.wav", task["audio_filename"])
	id, _ := task["id"].(string)
	status, account := s.call("GET", "/account", nil)
	require.Equal(t, 200, status)
	assert.Greater(t, account["held_amount"], 0.0)

	final := s.wait(id)
	require.Equal(t, "done", final["status"], "%v\n%s", final, s.logged())
	assert.Equal(t, float64(len(recording)), final["audio_size"])
	status, result := s.call("GET", "/tasks/"+id+"/result", nil)
	require.Equal(t, 200, status)
	bill, _ := result["billing"].(map[string]any)
	assert.Equal(t, "zh_lite", bill["mode"])
	assert.Equal(t, 1.0, bill["billable_minutes"])
	assert.Equal(t, 0.0067, bill["amount"])
	assert.Equal(t, 999.9933, bill["balance"])
	delete(result, "billing")
	delete(result, "task_id")

	cmd := exec.Command(binary, "transcribe", "-q", "--no-cascade", "--format", "json", file)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=")
	out, err := cmd.Output()
	require.NoError(t, err)
	var same map[string]any
	require.NoError(t, json.Unmarshal(out, &same))
	assert.Contains(t, same, "num_speakers_probability")
	delete(same, "num_speakers_probability")
	said, _ := same["segments"].([]any)
	for _, s := range said {
		segment, _ := s.(map[string]any)
		assert.Contains(t, segment, "confidence")
		delete(segment, "confidence") // the specification has none
	}
	assert.Equal(t, same, result, "the service and the command agree except for confidences and the probability of the number of speakers")

	select {
	case r := <-calls:
		body := <-bodies
		assert.Equal(t, signature("secret", body), r.Header.Get("X-Signature"))
		assert.Contains(t, string(body), `"status":"done"`)
	case <-time.After(patience):
		t.Fatal("no callback\n" + s.logged())
	}
	status, ledger := s.call("GET", "/billing/transactions", nil)
	require.Equal(t, 200, status)
	assert.Equal(t, 2.0, ledger["total"], "the first recharge and one deduction")
	first, _ := ledger["transactions"].([]any)[0].(map[string]any)
	assert.Equal(t, "deduction", first["type"])
	assert.Equal(t, "-0.0067", first["amount"])
	assert.Equal(t, id, first["task_id"])

	status, account = s.call("GET", "/account", nil)
	require.Equal(t, 200, status)
	assert.Equal(t, 0.0, account["held_amount"])
	assert.Equal(t, 999.9933, account["balance"])

	status, _ = s.call("DELETE", "/tasks/"+id, nil)
	assert.Equal(t, 200, status)
	status, _ = s.call("GET", "/tasks/"+id, nil)
	assert.Equal(t, 404, status)
	require.NoError(t, s.stop(), s.logged())
}

// A killed worker only costs time. It covers T1 of test/README.md.
func TestKilledWorkerCostsOnlyTime(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	status, task := s.call("POST", "/tasks", upload(clip(t, 5, 20), nil))
	require.Equal(t, 201, status, "%v", task)
	id, _ := task["id"].(string)
	time.Sleep(time.Second)
	killed := killWorkers(t, s.cmd.Process.Pid)
	final := s.wait(id)
	require.Equal(t, "done", final["status"], "%v\n%s", final, s.logged())
	_, ledger := s.call("GET", "/billing/transactions", nil)
	assert.Equal(t, 2.0, ledger["total"], "charged once")
	t.Logf("T1: %d worker killed, 1 task done, charged once", killed)
}

// workers returns the worker processes of a server.
func workers(t *testing.T, parent int) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	require.NoError(t, err)
	if len(lists) == 0 {
		t.Skip("the kernel does not list children")
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			var pid int
			_, err := fmt.Sscan(word, &pid)
			require.NoError(t, err)
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(string(command), "\x00work\x00") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// killWorkers kills the workers of a server with SIGKILL.
func killWorkers(t *testing.T, parent int) (n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pid := range workers(t, parent) {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				n++
			}
		}
		return n > 0
	}, patience, 20*time.Millisecond, "a worker was running")
	return n
}

// Two servers on one data folder: the second reports it and stops. It covers
// T32 of test/README.md.
func TestSecondServerOnAFolderStops(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve(t, data, "--workers", "0")
	out, err := exec.Command(binary, "serve", "--data", data, "--addr", "127.0.0.1:0").CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), data)
	assert.Contains(t, string(out), "in use")
}
