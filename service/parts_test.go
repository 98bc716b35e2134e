package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/spec"
)

// able is an engine with all optional methods: it lists its tiers, and checks its
// models and the beginnings of files.
type able struct{ idle }

func (able) Available() spec.Available         { return spec.Available{Standard: true} }
func (able) CheckModels(context.Context) error { return nil }
func (able) CheckHead(string, []byte) error    { return nil }

// messages keeps the messages of a log.
type messages struct {
	slog.Handler
	mu   sync.Mutex
	list []string
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }

func (m *messages) Handle(_ context.Context, r slog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, r.Message)
	return nil
}

func (m *messages) WithAttrs([]slog.Attr) slog.Handler { return m }

func (m *messages) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// workers returns the number of workers and supervisors in the list.
func workers(t *testing.T, s *Service) int {
	now, err := s.state.Tasks.Queue().Overview(t.Context())
	require.NoError(t, err)
	return len(now.Workers)
}

// TestAllPartsRun: a service with an engine, live sessions and Wyoming runs all
// of them, uses a rotated token key, and leaves nothing behind.
func TestAllPartsRun(t *testing.T) {
	listeners := make([]net.Listener, 3) // requests, ops, Wyoming
	for i := range listeners {
		var err error
		listeners[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
	}
	folder, log := t.TempDir(), &messages{Handler: slog.DiscardHandler}
	before := outside.Running()
	s, err := Open(t.Context(), Config{
		Folder: folder, Engine: able{}, Version: "7", Logger: slog.New(log), SharedRates: true,
		Live: Live{
			Process: Workers{N: 3, Command: []string{"cat"}}, Socket: filepath.Join(folder, "live"), Sessions: 1,
			Wyoming: listeners[2], WyomingAccount: "home",
		},
	})
	require.NoError(t, err)
	key, err := s.CreateFirstAccount(t.Context(), "home", 5)
	require.NoError(t, err)
	assert.NotEmpty(t, key)
	key, err = s.CreateFirstAccount(t.Context(), "second", 5)
	require.NoError(t, err)
	assert.Empty(t, key, "there is an account")

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listeners[0], listeners[1]) }()
	require.NoError(t, s.state.Accounts.RotateSigningKey(t.Context()))
	require.Eventually(t, func() bool { return workers(t, s) == 1 }, time.Minute, 10*time.Millisecond)
	for _, l := range listeners[:2] {
		answer, err := http.Get("http://" + l.Addr().String() + "/readyz")
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, l == listeners[1], answer.StatusCode == http.StatusOK, "readiness is not among the requests without Ops")
	}
	require.Eventually(t, func() bool { return slices.Contains(log.all(), "the token key was rotated") }, time.Minute, 50*time.Millisecond)
	stop()
	assert.NoError(t, <-served)
	require.NoError(t, s.Close())
	http.DefaultClient.CloseIdleConnections()
	require.Empty(t, outside.Leaks(before...))
}

// TestWorkHostsLiveSessions: Work with Live.Host serves the socket, also if a
// dead process left it, and writes its metrics while it runs.
func TestWorkHostsLiveSessions(t *testing.T) {
	folder := t.TempDir()
	s, err := Open(t.Context(), Config{Folder: folder})
	require.NoError(t, err)
	defer s.Close()
	socket := filepath.Join(folder, "live")
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() {
		worked <- Work(ctx, Config{Folder: folder, Live: Live{Socket: socket, Host: func(ctx context.Context, l net.Listener) error {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			_, err = io.WriteString(conn, "hello")
			<-ctx.Done()
			return errors.Join(err, conn.Close())
		}}})
	}()
	var conn net.Conn
	require.Eventually(t, func() bool {
		conn, err = net.Dial("unix", socket)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	defer conn.Close()
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(folder, state.MetricsFolder, "worker-*.prom"))
		return err == nil && len(files) == 1
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-worked)
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(said))
	files, err := os.ReadDir(filepath.Join(folder, state.MetricsFolder))
	require.NoError(t, err)
	assert.Empty(t, files, "a process that ended has no metrics")

	err = Work(t.Context(), Config{Folder: folder, Live: Live{Socket: filepath.Join(folder, "none", "live"), Host: func(context.Context, net.Listener) error { return nil }}})
	assert.Equal(t, 1, ExitCode(err), err)
	err = Work(t.Context(), Config{Database: "postgres://127.0.0.1:1/x?sslmode=disable", Files: "file://" + folder, Engine: idle{}})
	assert.Equal(t, worker.ExitAway, ExitCode(err), err)
	assert.Zero(t, ExitCode(nil))
}
