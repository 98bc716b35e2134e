package test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// refusedStart runs a serve that must fail to start and returns its output.
func refusedStart(t *testing.T, data string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"serve", "--addr", "127.0.0.1:0", "--workers", "0", "--data", data}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=", "OTOGRAPH_DATABASE=", "OTOGRAPH_BLOBS=")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.NoError(t, ctx.Err(), "it ends by itself: %s", out)
	return string(out)
}

// oneLine asserts that a start's error is one line that suggests a remedy.
func oneLine(t *testing.T, out string, says ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "otograph: ") {
			lines = append(lines, line)
		}
	}
	require.Len(t, lines, 1, "%s", out)
	for _, s := range says {
		assert.Contains(t, lines[0], s)
	}
}

// fillStore puts n files, older than any limit, under the service's prefixes of
// a folder store.
func fillStore(t *testing.T, dir string, n int) {
	t.Helper()
	old := time.Now().Add(-60 * 24 * time.Hour)
	for i := range n {
		path := filepath.Join(dir, []string{"audio", "results", "checkpoints"}[i%3], fmt.Sprintf("%04d", i), "file")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o600))
		require.NoError(t, os.Chtimes(path, old, old))
	}
}

// TestForeignFolderIsRefused starts servers on another application's folder of
// 600 files: each start is refused, and every file remains. (With an S3 server:
// TestForeignBucketIsKept.)
func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	blobs := filepath.Join(t.TempDir(), "blobs")
	owner := serve(t, t.TempDir(), "--workers", "0", "--blobs", blobs)
	require.NoError(t, owner.stop())
	fillStore(t, blobs, 600)
	before := files(t, blobs)

	empty := t.TempDir()
	oneLine(t, refusedStart(t, empty, "--blobs", blobs), "belongs to another database", "--database or --blobs", "otograph store --adopt")
	require.NoError(t, os.Remove(filepath.Join(blobs, "otograph-store.json")))
	oneLine(t, refusedStart(t, t.TempDir(), "--blobs", blobs), "files of an unknown database", "otograph store --adopt")
	oneLine(t, refusedStart(t, owner.data, "--blobs", blobs), "the database's files are in another store")
	out, err := owner.run("account", "suspend", "local", "--delete", "--blobs", blobs)
	require.Error(t, err)
	assert.Contains(t, out, "the database's files are in another store", "no receipt for files that are elsewhere")
	assert.Len(t, files(t, blobs), len(before)-1)

	// The explicit adoption: afterwards the foreign files are at most marked.
	other := &server{t: t, data: empty}
	out, err = other.run("migrate")
	require.NoError(t, err, out)
	cmd := exec.Command(binary, "store", "--adopt", "--data", empty, "--blobs", blobs)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	s := serve(t, empty, "--workers", "0", "--blobs", blobs)
	time.Sleep(5 * time.Second) // the first version had deleted all of them after 4 s
	require.NoError(t, s.stop())
	assert.Len(t, files(t, blobs), len(before))
	t.Log("600 files of a stranger's, 3 starts refused, 1 after an adoption: 0 files deleted")
}

// TestForeignBucketIsKept starts servers with empty databases on an S3 server
// whose bucket holds 600 foreign objects: under the service's prefix, under a
// neighboring prefix, and at the bucket's top level. If the objects may be the
// service's own, each start is refused; otherwise the server starts, collects
// without limits, and deletes none of them.
func TestForeignBucketIsKept(t *testing.T) {
	t.Parallel()
	s3 := newS3(t)
	at := func(prefix string) string { return strings.Replace(s3.source, "/service?", prefix+"?", 1) }
	owner := serve(t, t.TempDir(), "--workers", "0", "--blobs", at("/service"))
	require.NoError(t, owner.stop())
	top, err := blob.Open(t.Context(), at(""))
	require.NoError(t, err)
	defer top.Close()
	list := func() (keys []string) {
		require.NoError(t, top.List(t.Context(), "", func(o blob.Object) error {
			keys = append(keys, o.Key)
			return nil
		}))
		return keys
	}
	for i := range 600 {
		folder := []string{"service/audio", "service/results", "staging/audio", "staging/checkpoints", "photos", "dumps/results"}[i%6]
		w, err := top.Create(t.Context(), fmt.Sprintf("%s/%08d-0000-7000-8000-000000000000", folder, i))
		require.NoError(t, err)
		_, err = w.Write([]byte("theirs"))
		require.NoError(t, err)
		_, err = w.Commit()
		require.NoError(t, err)
	}
	before := list()
	require.Len(t, before, 601, "and the identity")

	oneLine(t, refusedStart(t, t.TempDir(), "--blobs", at("/service")), "belongs to another database", "--database or --blobs", "otograph store --adopt")
	oneLine(t, refusedStart(t, t.TempDir(), "--blobs", at("/staging")), "files of an unknown database", "otograph store --adopt")
	oneLine(t, refusedStart(t, owner.data, "--blobs", at("/elsewhere")), "the database's files are in another store")
	require.Equal(t, before, list())

	s := serve(t, t.TempDir(), "--workers", "0", "--blobs", at("")) // there, nothing is under the service's prefixes
	require.NoError(t, s.stop())
	svc, err := tasks.New(tasks.Config{DB: s.store(), Blobs: top})
	require.NoError(t, err)
	taskstest.Tidy(t, svc)
	after := list()
	assert.Subset(t, after, before)
	assert.Len(t, after, len(before)+1, "and the identity of the bucket's own")
	t.Logf("on %s: 600 objects of others, 3 starts refused, 1 beside them: 0 objects deleted", s3.name)
}

// TestPartitionedDatabaseIs503 drops every packet between a server and
// PostgreSQL: requests are answered with 503 within five seconds.
func TestPartitionedDatabaseIs503(t *testing.T) {
	t.Parallel()
	source := dbtest.PostgresSource(t)
	proxy, through := dbtest.Proxied(t, source)
	s := serve(t, t.TempDir(), "--workers", "0", "--database", source).unlimited()
	require.NoError(t, s.stop())
	s.args = []string{"--workers", "0", "--database", through}
	s = s.again()
	body := upload(clip(t, 8, 1.5), quick)
	id := s.create(body)
	proxy.Drop()
	asked := 0
	for _, q := range []struct {
		method, path string
		body         any
	}{{"GET", "/account", nil}, {"GET", "/tasks", nil}, {"GET", "/tasks/" + id, nil}, {"POST", "/tasks", body}, {"DELETE", "/tasks/" + id, nil}, {"GET", "//readyz", nil}} {
		a, err := s.try(q.method, q.path, q.body)
		require.NoError(t, err)
		assert.Equal(t, 503, a.status, "%s %s: %s", q.method, q.path, a.body)
		assert.Equal(t, "unavailable", a.code(t))
		assert.Equal(t, "5", a.header.Get("Retry-After"))
		asked++
	}
	proxy.Pass()
	require.Eventually(t, func() bool {
		a, err := s.try("GET", "/tasks/"+id, nil)
		return err == nil && a.status == 200
	}, patience, 100*time.Millisecond)
	t.Logf("%d of 6 requests answered 503 while every packet to PostgreSQL was dropped, 200 afterwards", asked)
}

// TestStartNamesTheFault starts servers whose database or file store is
// unavailable.
func TestStartNamesTheFault(t *testing.T) {
	t.Parallel()
	at := func(endpoint string) string { return outside.S3Store(endpoint, "files") }
	gone := httptest.NewServer(nil)
	gone.Close()
	oneLine(t, refusedStart(t, t.TempDir(), "--blobs", at(outside.S3(t))), "there is no such bucket", "--blobs")
	oneLine(t, refusedStart(t, t.TempDir(), "--blobs", at(gone.URL)), "refused the connection")
	nowhere := "postgres://someone:geheim@" + strings.TrimPrefix(gone.URL, "http://") + "/x"
	out := refusedStart(t, t.TempDir(), "--database", nowhere, "--database-wait", "2s")
	oneLine(t, out, "database unavailable")
	assert.Contains(t, out, "waiting for the database")
	assert.NotContains(t, out, "geheim")

	// A worker's exit code shows that it did not crash.
	_, err := (&server{t: t, data: t.TempDir()}).run("work", "--database", nowhere, "--database-wait", "1s")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, worker.ExitAway, exit.ExitCode())

	// A database that becomes available while the server waits.
	if dbtest.Programs() == "" {
		return
	}
	source := dbtest.PostgresSource(t)
	proxy, through := dbtest.Proxied(t, source)
	proxy.Cut()
	go func() {
		for proxy.Refused() == 0 && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		proxy.Pass()
	}()
	s := serve(t, t.TempDir(), "--workers", "0", "--database", through)
	assert.Contains(t, s.logged(), "waiting for the database")
}

// TestOnlyServeAndMigrateChangeTables: serve and migrate update the tables,
// other commands never do, and every command refuses the tables of a newer
// program.
func TestOnlyServeAndMigrateChangeTables(t *testing.T) {
	t.Parallel()
	s := &server{t: t, data: t.TempDir()}
	out, err := s.run("account", "create", "someone")
	require.Error(t, err)
	oneLine(t, out, "older than this program", "otograph migrate")
	oneLine(t, refusedStart(t, s.data, "--migrate", "check"), "older than this program", "otograph migrate")
	out, err = s.run("migrate", "--check")
	require.Error(t, err)
	oneLine(t, out, "older than this program")
	assert.Contains(t, s.must("migrate"), "version ")
	s.must("migrate", "--check")
	s.must("account", "create", "someone")
	require.NoError(t, serve(t, s.data, "--workers", "0", "--migrate", "check").stop())

	change(t, s.store(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)")
	for _, args := range [][]string{{"account", "list"}, {"migrate"}, {"work"}} {
		out, err := s.run(args...)
		require.Error(t, err)
		oneLine(t, out, "newer than this program", "version 99999")
	}
	oneLine(t, refusedStart(t, s.data), "newer than this program")
}

// TestOnlyTheOwnerReadsState: only the owner can read the service's files, with
// any umask and existing folder. It covers H3 of the security findings.
func TestOnlyTheOwnerReadsState(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	require.NoError(t, os.Chmod(data, 0o755))
	s := serveUnder(t, data, []string{"/bin/sh", "-c", `umask 0000; exec "$0" "$@"`, binary}, "--workers", "0").unlimited()
	s.create(upload(clip(t, 8, 1.5), quick))
	copied := filepath.Join(t.TempDir(), "copy.db")
	s.must("backup", copied)
	check := func(path string) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, "%s has mode %04o", path, info.Mode().Perm())
	}
	check(copied)
	check(data)
	for _, name := range files(t, data) {
		check(filepath.Join(data, name))
	}
	require.NoError(t, s.stop())

	require.NoError(t, os.Chmod(data, 0o755))
	require.NoError(t, os.Chmod(filepath.Join(data, "otograph.db"), 0o644))
	s.must("account", "list")
	check(data)
	check(filepath.Join(data, "otograph.db"))

	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "somebody's"), nil, 0o644))
	require.NoError(t, os.Chmod(foreign, 0o755))
	oneLine(t, refusedStart(t, foreign), "other users can open it", "--data")
	info, err := os.Stat(foreign)
	require.NoError(t, err)
	assert.EqualValues(t, 0o755, info.Mode().Perm(), "another owner's folder is unchanged")
}

// TestCommandLinesHideThePassword: no command line shows the database's
// password. It covers M2 of the security findings.
func TestCommandLinesHideThePassword(t *testing.T) {
	t.Parallel()
	source := strings.Replace(dbtest.PostgresSource(t), "postgres@", "postgres:geheim@", 1)
	s := &server{t: t, data: t.TempDir(), database: source}
	cmd := exec.Command(binary, "serve", "--addr", "127.0.0.1:0", "--data", s.data)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=", "OTOGRAPH_DATABASE="+source, "OTOGRAPH_BLOBS=")
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	var d *db.DB
	require.Eventually(t, func() bool {
		if len(workers(t, cmd.Process.Pid)) == 0 {
			return false
		}
		d = s.store()
		return true
	}, patience, 50*time.Millisecond)
	for _, pid := range append(workers(t, cmd.Process.Pid), cmd.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		assert.NotContains(t, string(line), "geheim")
		assert.NotContains(t, string(line), "postgres")
	}
	require.Eventually(t, func() bool { return count(t, d, "SELECT COUNT(*) FROM workers WHERE kind = 'worker'") == 1 }, patience, 50*time.Millisecond,
		"the worker found the database all the same")
}

// TestSecretRotate: a rotation invalidates the tokens of a running server.
func TestSecretRotate(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--workers", "0").unlimited()
	s.must("user", "create", "local", "someone", "--password", "correct horse battery")
	login := func() string {
		a := s.do("POST", "/auth/login", map[string]any{"username": "someone", "password": "correct horse battery"})
		require.Equal(t, 200, a.status, "%s", a.body)
		token, _ := a.object(t)["access_token"].(string)
		return token
	}
	token := login()
	with := func(token string) int {
		return s.do("GET", "/account", nil, "X-API-Key", "", "Authorization", "Bearer "+token).status
	}
	require.Equal(t, 200, with(token))
	s.must("user", "logout", "--all")
	require.Eventually(t, func() bool { return with(token) == 401 }, patience, 100*time.Millisecond)
	require.Equal(t, 200, with(login()))
	assert.Equal(t, 200, s.do("GET", "/account", nil).status, "API keys are not tokens")
}
