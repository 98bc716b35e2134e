package erasure_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// rows returns the text of every row of every table of a PostgreSQL database.
func rows(t *testing.T, d *db.DB) []byte {
	t.Helper()
	tables, err := db.Column[string](t.Context(), d.Read(), "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = current_schema()")
	require.NoError(t, err)
	require.Contains(t, tables, "hooks")
	var all []string
	for _, table := range tables {
		texts, err := db.Column[string](t.Context(), d.Read(), "SELECT CAST(t AS text) FROM "+table+" t")
		require.NoError(t, err)
		all = append(all, texts...)
	}
	return []byte(strings.Join(all, "\n"))
}

// TestErasedAccountLeavesNoRow: over PostgreSQL, none of the marked words of a
// deleted account is in a row of any table or in the file store, and another
// account keeps its rows and files.
func TestErasedAccountLeavesNoRow(t *testing.T) {
	d := dbtest.Postgres(t, db.Options{})
	f := taskstest.New(t, d)
	e := &erasure.Eraser{DB: d, Accounts: f.Accounts, Tasks: f.Service}
	other, c := taskstest.NewCustomer(t, f, "a"), taskstest.NewCustomer(t, f, "b")
	require.Greater(t, len(c.Traces([]string{f.Dir}, rows(t, d))), len(c.Words)*2/3, "the search finds words; results are compressed")
	kept := other.Traces([]string{f.Dir}, rows(t, d))
	require.NoError(t, f.Accounts.Suspend(t.Context(), c.Account.ID))
	suspended, err := f.Accounts.Find(t.Context(), c.Account.ID)
	require.NoError(t, err)
	receipt, err := e.Account(t.Context(), suspended)
	require.NoError(t, err)
	assert.Empty(t, c.Traces([]string{f.Dir}, rows(t, d)))
	assert.Equal(t, kept, other.Traces([]string{f.Dir}, rows(t, d)))
	assert.True(t, verified(t, e, receipt).Erased.Whole)
	f.Exact()
}

// TestErasedAccountLeavesNothing: after the deletion of an account, none of its
// marked words is in the database file, its write-ahead log, the file store or
// the log, another account keeps everything, money stays, and the receipt names
// the deleted objects and verifies with only the published key.
func TestErasedAccountLeavesNothing(t *testing.T) {
	path := dbtest.SQLitePath(t)
	var log bytes.Buffer
	f := taskstest.New(t, dbtest.Open(t, path, db.Options{}), func(c *tasks.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	e := &erasure.Eraser{DB: f.Config.DB, Accounts: f.Accounts, Tasks: f.Service}
	other := taskstest.NewCustomer(t, f, "a")
	c := taskstest.NewCustomer(t, f, "b")
	before := c.Traces([]string{filepath.Dir(path), f.Dir})
	require.Greater(t, len(before), len(c.Words)*2/3, "the search finds words; results are compressed")

	_, err := e.Account(t.Context(), c.Account)
	require.ErrorIs(t, err, accounts.ErrInUse, "not suspended")
	require.NoError(t, f.Accounts.Suspend(t.Context(), c.Account.ID))
	suspended, err := f.Accounts.Find(t.Context(), c.Account.ID)
	require.NoError(t, err)
	entries := f.Count("SELECT COUNT(*) FROM ledger WHERE account_id = $1", c.Account.ID)
	receipt, err := e.Account(t.Context(), suspended)
	require.NoError(t, err)

	assert.Empty(t, c.Traces([]string{filepath.Dir(path), f.Dir}))
	for _, word := range c.Traces(nil, log.Bytes()) {
		assert.Fail(t, "the log names content", word)
	}
	scraped := httptest.NewRecorder()
	metrics.New(f.Service.Stats).Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, scraped.Body.String(), "otograph_queue_waiting")
	assert.Empty(t, c.Traces(nil, scraped.Body.Bytes()), "the metrics name content")
	t.Logf("%d marked words, %d readable before the deletion; none in database, write-ahead log, store, log and metrics after it", len(c.Words), len(before))
	assert.Equal(t, entries, f.Count("SELECT COUNT(*) FROM ledger WHERE account_id = $1", c.Account.ID))
	f.Exact()
	assert.NotEmpty(t, other.Traces([]string{filepath.Dir(path)}))
	_, err = f.Result(t.Context(), other.Account.ID, other.Done.ID)
	require.NoError(t, err)

	r := verified(t, e, receipt)
	assert.True(t, r.Erased.Whole)
	assert.Equal(t, c.Account.ID, r.Erased.Account)
	assert.Len(t, r.Erased.Tasks, 6)
	assert.Len(t, r.Erased.Users, 1)
	assert.Len(t, r.Erased.Keys, 1)
	assert.Equal(t, []string{c.Voice.ID}, r.Erased.Voices)
	again, err := f.Accounts.Find(t.Context(), c.Account.ID)
	require.NoError(t, err)
	assert.Equal(t, "deleted "+c.Account.ID, again.Name)
	log2, err := f.Accounts.AuditLog(t.Context(), time.Time{}, 100)
	require.NoError(t, err)
	assert.Len(t, log2, 10, "no entry is lost")
}

// verified checks a receipt as a customer does: with the published key.
func verified(t *testing.T, e *erasure.Eraser, receipt string) (r erasure.Receipt) {
	t.Helper()
	key, err := e.Key(context.Background())
	require.NoError(t, err)
	x, err := base64.RawURLEncoding.DecodeString(key.X)
	require.NoError(t, err)
	_, err = jwt.ParseWithClaims(receipt, &r, func(*jwt.Token) (any, error) { return ed25519.PublicKey(x), nil }, jwt.WithValidMethods([]string{key.Algorithm}))
	require.NoError(t, err)
	return r
}

// TestReceiptOfATask: the receipt of a task has the hashes of its files, the
// database verifies it, and a changed receipt does not verify.
func TestReceiptOfATask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		e := &erasure.Eraser{DB: d, Accounts: f.Accounts, Tasks: f.Service}
		task := f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("a recording"), 3 })
		_, err := e.Task(t.Context(), f.Account, task.ID)
		require.ErrorIs(t, err, tasks.ErrProcessing)
		_, err = e.Account(t.Context(), accounts.Account{ID: f.Account, SuspendedAt: new(time.Now())})
		require.ErrorIs(t, err, accounts.ErrInUse)
		f.Exec("UPDATE tasks SET status = 'failed', phase = 'delayed' WHERE id = $1", task.ID)
		_, err = e.Task(t.Context(), f.NewAccount("other", 0), task.ID)
		require.ErrorIs(t, err, tasks.ErrForbidden)
		receipt, err := e.Task(t.Context(), f.Account, task.ID)
		require.NoError(t, err)
		r, err := e.Verify(t.Context(), receipt)
		require.NoError(t, err)
		sum := sha256.Sum256([]byte("a recording"))
		require.Len(t, r.Erased.Tasks, 1)
		require.Len(t, r.Erased.Tasks[0].Files, 1)
		assert.Equal(t, hex.EncodeToString(sum[:]), r.Erased.Tasks[0].Files[0].SHA256)
		assert.Equal(t, task.ID, r.Erased.Tasks[0].ID)
		assert.False(t, r.Erased.Whole)
		assert.NotEmpty(t, r.Issuer)
		_, err = e.Verify(t.Context(), receipt[:len(receipt)-9]+"AAAAAAAAA")
		require.Error(t, err)
		// All other changes of the audit log are still refused.
		require.NoError(t, f.Accounts.Record(t.Context(), accounts.AuditEntry{Operator: "o", Action: "a", Subject: "s", Detail: "d"}))
		for _, change := range []string{"SET subject = 'x'", "SET action = 'b', detail = '', subject = 'deleted x'", "SET detail = 'e', subject = 'deleted x'", "SET operator = 'p', detail = '', subject = 'deleted x'"} {
			_, err := d.Exec(t.Context(), "UPDATE audit "+change)
			require.Error(t, err, change)
		}
		_, err = d.Exec(t.Context(), "DELETE FROM audit")
		require.Error(t, err)
	})
}

// TestLogsNameNoContent: if an attempt, a download or a callback fails for a
// reason that names the recording or an address, the log has the task and the
// cause, but no name or address of the customer's.
func TestLogsNameNoContent(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	writer := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	})
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(writer, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.RetryDelays = []time.Duration{time.Millisecond}
	})
	c := taskstest.NewCustomer(t, f, "b")
	named := func(r *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: r.URL.Host}}}
	}
	n, err := webhook.NewNotifier(f.Outbox(), f.Queue(), webhook.NotifierConfig{HTTP: taskstest.DoerFunc(named), Poll: time.Millisecond})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _ = n.Run(ctx) })
	f.StartFetcher(worker.FetcherConfig{HTTP: taskstest.DoerFunc(named), Pause: time.Millisecond})
	f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(_ context.Context, job worker.Job) (tasks.Outcome, error) {
		return tasks.Outcome{}, spec.Permanent(fmt.Errorf("%s: not decoded: markedbreason", job.Path))
	})})
	c.Words = append(c.Words, "markedbreason")
	permanent := c.Add()
	source := f.Add(func(r *tasks.Request) {
		r.Account, r.URL = c.Account.ID, "https://"+c.Word("source")+".example/"+c.Word("path")
		r.Filename = c.Word("file")
	})
	for _, task := range []tasks.Task{permanent, source} {
		ended := f.WaitFor(task.ID)
		require.NotEqual(t, tasks.StatusDone, ended.Status)
	}
	require.Contains(t, *f.Row(permanent.ID).ErrorMessage, "reason", "its owner is told")
	require.Eventually(t, func() bool {
		return f.Count("SELECT COUNT(*) FROM callbacks WHERE attempts > 0 AND task_id = $1", permanent.ID) > 0
	}, time.Minute, time.Millisecond)
	stop()
	wait.Wait()
	mu.Lock()
	defer mu.Unlock()
	for _, line := range []string{`"msg":"task failed"`, `"msg":"attempt failed"`, `"msg":"download failed"`, `"kind":"*net.DNSError"`, `"msg":"callback not delivered"`, permanent.ID, source.ID} {
		assert.Contains(t, log.String(), line)
	}
	assert.Empty(t, c.Traces(nil, log.Bytes()))
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
