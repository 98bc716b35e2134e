//go:build unix

// Package dbtest provides tests with fresh, migrated stores: always SQLite, and
// PostgreSQL if its server programs are installed (Debian's postgresql-15, for
// example; no server has to run). Call Main from TestMain so that the server
// ends with the tests.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/outside"
)

// Main runs the tests of m and stops the PostgreSQL server that they started, if any. It returns m's exit code.
func Main(m *testing.M) int {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		shared.server.Close()
	}
	return code
}

// Each runs test once for each kind of store, as the subtests "sqlite" and "postgres".
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t, db.Options{})) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t, db.Options{})) })
}

// Open opens source as SQLite and Postgres do, for a second handle on the same store, and closes it with the test.
func Open(t testing.TB, source string, opt db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), source, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// template returns the content of a migrated SQLite file.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "otograph-dbtest-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "template.db")
	d, err := db.Open(context.Background(), path, db.Options{})
	if err != nil {
		return nil, err
	}
	// The last connection merges the write-ahead log into the file.
	if err := errors.Join(d.Migrate(context.Background()), d.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Dir returns an empty folder that is removed after the test. It is in memory
// if the system provides such a folder, because tests would otherwise wait for
// thousands of flushes to the disk.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "otograph-test-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// SQLitePath returns the path of a fresh, migrated SQLite file in a separate
// folder.
func SQLitePath(t testing.TB) string {
	t.Helper()
	data, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(Dir(t), "otograph.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SQLite returns a fresh, migrated SQLite store.
func SQLite(t testing.TB, opt db.Options) *db.DB {
	t.Helper()
	return Open(t, SQLitePath(t), opt)
}

var shared struct {
	mu      sync.Mutex
	started bool
	server  *Server
	reason  string // the reason why there is no server
	err     error
	count   atomic.Int64
}

// PostgresSource returns the connection string of a fresh, migrated PostgreSQL
// database on a server that the tests of this package share. The test is
// skipped if the server's programs are not installed.
func PostgresSource(t testing.TB) string {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	ctx := context.Background()
	if !shared.started {
		shared.started = true
		if Programs() == "" {
			shared.reason = "PostgreSQL's server programs are not installed (Debian: apt-get install postgresql)"
		} else if shared.server, shared.err = StartServer(); shared.err == nil {
			shared.err = func() error {
				if err := shared.server.CreateDatabase(ctx, "migrated", "template1"); err != nil {
					return err
				}
				d, err := db.Open(ctx, shared.server.Source("migrated"), db.Options{})
				if err != nil {
					return err
				}
				defer d.Close()
				return d.Migrate(ctx)
			}()
		}
	}
	if shared.reason != "" {
		t.Skip(shared.reason)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	name := "test" + strconv.FormatInt(shared.count.Add(1), 10)
	if err := shared.server.CreateDatabase(ctx, name, "migrated"); err != nil {
		t.Fatal(err)
	}
	server := shared.server
	t.Cleanup(func() { _ = server.DropDatabase(ctx, name) })
	return server.Source(name)
}

// Postgres returns a fresh, migrated PostgreSQL store.
func Postgres(t testing.TB, opt db.Options) *db.DB {
	t.Helper()
	return Open(t, PostgresSource(t), opt)
}

// Programs is the folder of PostgreSQL's server programs (initdb, postgres),
// newest version first; empty if none is installed.
func Programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	slices.SortFunc(found, func(a, b string) int { return versionOf(b) - versionOf(a) })
	for _, path := range found {
		if versionOf(path) >= 14 {
			return filepath.Dir(path)
		}
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

func versionOf(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// Server is a PostgreSQL server in a temporary folder, reached over a Unix socket. As root it runs as the user postgres.
type Server struct {
	dir     string
	cred    *syscall.Credential
	cmd     *exec.Cmd
	stopped chan struct{}
}

// StartServer creates a database cluster and starts it. fsync is off: the tests
// kill programs, not the machine.
func StartServer() (s *Server, err error) {
	dir, err := os.MkdirTemp("/dev/shm", "otograph-pg-*")
	if err != nil {
		if dir, err = os.MkdirTemp("", "otograph-pg-*"); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	s = &Server{dir: dir}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	initdb := exec.Command(filepath.Join(Programs(), "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir = dir
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s, s.Start()
}

// Start starts the server again after Stop and waits until it answers.
func (s *Server) Start() error {
	s.cmd = exec.Command(filepath.Join(Programs(), "postgres"), "-D", filepath.Join(s.dir, "data"), "-k", s.dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "max_connections=300", "-c", "shared_buffers=32MB", "-c", "log_min_messages=fatal")
	s.cmd.Dir = s.dir
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	stopped := make(chan struct{})
	s.stopped = stopped
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(stopped)
	}(s.cmd)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		d, err := db.Open(context.Background(), s.Source("postgres"), db.Options{})
		if err == nil {
			d.Close()
			return nil
		}
		select {
		case <-stopped:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("PostgreSQL ended at its start: %s", text)
		default:
		}
		if time.Now().After(deadline) {
			s.Stop()
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// Stop ends the server immediately; its open connections break, as in an
// outage.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown
	select {
	case <-s.stopped:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.stopped
	}
	s.cmd = nil
}

// Close stops the server and removes its files.
func (s *Server) Close() {
	s.Stop()
	os.RemoveAll(s.dir)
}

// Source returns the connection string of one database of the server.
func (s *Server) Source(database string) string {
	return "postgres://postgres@/" + database + "?host=" + s.dir + "&sslmode=disable"
}

// CreateDatabase creates a database as a copy of another one.
func (s *Server) CreateDatabase(ctx context.Context, name, from string) error {
	return s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+from)
}

// DropDatabase removes a database and ends its connections.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

func (s *Server) exec(ctx context.Context, statement string) error {
	d, err := db.Open(ctx, s.Source("postgres"), db.Options{MaxConns: 1})
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Read().ExecContext(ctx, statement)
	return err
}

// Proxied returns a proxy to the server of source, a connection string of
// PostgresSource or Server.Source, and the connection string through it.
func Proxied(t testing.TB, source string) (*outside.Proxy, string) {
	t.Helper()
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	socket := filepath.Join(query.Get("host"), ".s.PGSQL.5432")
	p := outside.NewProxy(t, func() (net.Conn, error) { return net.Dial("unix", socket) })
	query.Del("host")
	u.Host, u.RawQuery = p.Addr(), query.Encode()
	return p, u.String()
}
