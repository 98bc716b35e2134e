package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// Environment variables through which tests instruct their child processes.
const (
	envProcess  = "OTOGRAPH_TEST_PROCESS" // "serve" or "worker"
	envDatabase = "OTOGRAPH_TEST_DATABASE"
	envBlobs    = "OTOGRAPH_TEST_BLOBS"
	envStall    = "OTOGRAPH_TEST_STALL" // an engine's time without progress
	envLog      = "OTOGRAPH_TEST_LOG"
)

// scripted is an engine that follows the audio's script: "sleep 50ms …", "crash
// …", "hang …".
var scripted = taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	data, err := os.ReadFile(job.Path)
	if err != nil {
		return tasks.Outcome{}, err
	}
	verb, rest, _ := strings.Cut(string(data), " ")
	switch verb {
	case "sleep":
		text, _, _ := strings.Cut(rest, " ")
		d, err := time.ParseDuration(text)
		if err != nil {
			return tasks.Outcome{}, spec.Permanent(err)
		}
		if !backoff.Sleep(ctx, d) {
			return tasks.Outcome{}, ctx.Err()
		}
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Minute)
	case "hang":
		time.Sleep(time.Hour) // like native code, ignores ctx
	}
	return tasks.Outcome{Result: spec.Result{Ran: spec.Capabilities{ASR: true}, Segments: []spec.Segment{{Text: string(data)}}}, Tier: spec.TierStandard, Seconds: 30}, nil
})

// testProcess runs this test program as a child of the given kind and returns
// its exit code.
func testProcess(kind string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv(envLog) != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	err := func() error {
		d, err := db.Open(ctx, os.Getenv(envDatabase), db.Options{MaxConns: 4})
		if err != nil {
			return err
		}
		defer d.Close()
		blobs, err := blob.Open(ctx, os.Getenv(envBlobs))
		if err != nil {
			return err
		}
		s, err := tasks.New(tasks.Config{
			DB: d, Blobs: blobs, Logger: logger, RetryDelays: []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond},
			CallbackDelays: []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond},
		})
		if err != nil {
			return err
		}
		if kind == "worker" {
			limit, _ := time.ParseDuration(os.Getenv(envStall))
			w, err := worker.New(s.Runs, worker.Config{Engine: scripted, Poll: 20 * time.Millisecond, Heartbeat: 200 * time.Millisecond, Grace: 300 * time.Millisecond, StallTimeout: limit, HangTimeout: 200 * time.Millisecond})
			if err != nil {
				return err
			}
			ctx, _, cancel := worker.Supervised(ctx)
			defer cancel()
			return w.Run(ctx)
		}
		v, err := worker.NewSupervisor(s.Runs, worker.SupervisorConfig{
			Command: []string{os.Args[0]}, Env: []string{envProcess + "=worker"}, N: 2, Stderr: os.Stderr,
			Heartbeat: 200 * time.Millisecond, MinPause: 20 * time.Millisecond, MaxPause: 100 * time.Millisecond, Grace: 5 * time.Second, Stale: 10 * time.Second,
		})
		if err != nil {
			return err
		}
		n, err := webhook.NewNotifier(s.Outbox(), s.Queue(), webhook.NotifierConfig{HTTP: http.DefaultClient, Poll: 20 * time.Millisecond, Heartbeat: 200 * time.Millisecond})
		if err != nil {
			return err
		}
		m := tasks.NewMaintainer(s, tasks.MaintainerConfig{DeadAfter: 3 * time.Second, Interval: 100 * time.Millisecond})
		var wait sync.WaitGroup
		for _, run := range []func(context.Context) error{v.Run, n.Run, m.Run} {
			wait.Go(func() {
				if err := run(ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			})
		}
		fmt.Println("ready")
		wait.Wait()
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, kind, err)
		return 3
	}
	return 0
}

// child is a process that runs this test program.
type child struct {
	*exec.Cmd
	exited chan struct{}
}

func startChild(f *taskstest.Fixture, kind string, env ...string) *child {
	f.T.Helper()
	source := f.Source
	require.NotEmpty(f.T, source, "the fixture must know its database")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), envProcess+"="+kind, envDatabase+"="+source, envBlobs+"="+f.Dir, "GOMAXPROCS=2", "GOTRACEBACK=none"), env...)
	if os.Getenv(envLog) != "" {
		cmd.Stderr = os.Stderr
	}
	out, err := cmd.StdoutPipe()
	require.NoError(f.T, err)
	require.NoError(f.T, cmd.Start())
	c := &child{Cmd: cmd, exited: make(chan struct{})}
	if kind == "serve" {
		_, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(f.T, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		close(c.exited)
	}()
	f.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-c.exited
	})
	return c
}

// end asks the child to end and returns how long that took.
func (c *child) end(t testing.TB) time.Duration {
	t.Helper()
	begun := time.Now()
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	select {
	case <-c.exited:
	case <-time.After(30 * time.Second):
		t.Fatal("the process does not end")
	}
	return time.Since(begun)
}

func (c *child) kill(t testing.TB) {
	t.Helper()
	if err := c.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
	<-c.exited
}

// receiver counts callbacks by task and by id.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	ids  map[string]map[string]int // task → webhook id → deliveries
	last map[string]string         // task → status
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{ids: map[string]map[string]int{}, last: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var body struct {
			TaskID string `json:"task_id"`
			Status string `json:"status"`
		}
		if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ids[body.TaskID] == nil {
			r.ids[body.TaskID] = map[string]int{}
		}
		r.ids[body.TaskID][q.Header.Get("Webhook-Id")]++
		r.last[body.TaskID] = body.Status
	}))
	t.Cleanup(r.Close)
	return r
}

// counts returns the numbers of tasks, ids and deliveries received.
func (r *receiver) counts() (tasks, ids, deliveries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.ids {
		tasks++
		ids += len(of)
		for _, n := range of {
			deliveries += n
		}
	}
	return tasks, ids, deliveries
}
