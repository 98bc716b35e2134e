//go:build unix

// Package taskstest provides tests with a task service on a fresh store, with
// one account, and checks its invariants. It also has the statements of the
// interface specification that requests alone can check.
package taskstest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/spec"
)

// Main runs the tests of m, stops the PostgreSQL server that they started, and
// fails if goroutines are left. It returns m's exit code.
func Main(m *testing.M) int {
	code := dbtest.Main(m)
	if code == 0 {
		if left := outside.Leaks("net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop"); left != "" {
			fmt.Fprintln(os.Stderr, left)
			return 1
		}
	}
	return code
}

// Fixture is a service on a fresh store with one account.
type Fixture struct {
	*tasks.Service
	T        testing.TB
	Accounts *accounts.Store
	Account  string
	Source   string // of the database
	Dir      string // of the file store
}

// Option changes the configuration of the service that New returns.
type Option func(*tasks.Config)

// New returns a fixture on a migrated database.
func New(t testing.TB, d *db.DB, options ...Option) *Fixture {
	t.Helper()
	dir := filepath.Join(dbtest.Dir(t), "blobs")
	blobs, err := blob.Open(context.Background(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { blobs.Close() })
	c := tasks.Config{DB: d, Blobs: blobs}
	if os.Getenv("OTOGRAPH_TEST_LOG") != "" {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for _, option := range options {
		option(&c)
	}
	s, err := tasks.New(c)
	require.NoError(t, err)
	f := &Fixture{Service: s, T: t, Accounts: accounts.New(d, s.Config.Logger, s.Config.Clock), Dir: dir}
	f.Account = f.NewAccount("customer", 1000*billing.Unit)
	return f
}

// NewAccount returns the id of a new account with a high limit of concurrent
// tasks.
func (f *Fixture) NewAccount(name string, balance billing.Money) string {
	f.T.Helper()
	people := f.Accounts
	a, err := people.Create(context.Background(), name)
	require.NoError(f.T, err)
	if balance > 0 {
		_, err = f.Billing().Recharge(context.Background(), a.ID, balance, "test")
		require.NoError(f.T, err)
	}
	many := 100_000
	require.NoError(f.T, people.SetLimits(context.Background(), a.ID, accounts.Overrides{Concurrency: &many}))
	return a.ID
}

// AllOptions returns options that request everything.
func AllOptions() spec.EffectiveOptions {
	return spec.EffectiveOptions{EnableASR: new(true), EnableDiarize: new(true), EnableAudioEvents: new(true)}
}

// Request returns a request with uploaded audio, modified by change.
func (f *Fixture) Request(change func(*tasks.Request)) tasks.Request {
	r := tasks.Request{Account: f.Account, Filename: "speech.wav", Options: AllOptions()}
	if change != nil {
		change(&r)
	}
	if r.URL == "" && r.Audio == nil {
		r.Audio = f.Audio("audio of some task " + uuid.NewString())
		r.Seconds = 30
	}
	return r
}

// Audio stores bytes as uploaded audio.
func (f *Fixture) Audio(content string) *blob.Info {
	f.T.Helper()
	w, err := f.NewAudio(context.Background(), "speech.wav")
	require.NoError(f.T, err)
	_, err = w.Write([]byte(content))
	require.NoError(f.T, err)
	info, err := w.Commit()
	require.NoError(f.T, err)
	return &info
}

// Add creates the task of the request that Request returns.
func (f *Fixture) Add(change func(*tasks.Request)) tasks.Task {
	f.T.Helper()
	task, _, err := f.Create(context.Background(), f.Request(change), tasks.Idempotency{})
	require.NoError(f.T, err)
	return task
}

// Row returns a task of any account.
func (f *Fixture) Row(id string) tasks.Task {
	f.T.Helper()
	var account string
	require.NoError(f.T, f.Config.DB.Read().QueryRow("SELECT account_id FROM tasks WHERE id = $1", id).Scan(&account))
	t, err := f.Get(context.Background(), account, id)
	require.NoError(f.T, err)
	return t
}

// Count returns the number that a query selects.
func (f *Fixture) Count(query string, args ...any) int {
	f.T.Helper()
	var n int
	require.NoError(f.T, f.Config.DB.Read().QueryRow(query, args...).Scan(&n))
	return n
}

// Exec runs a statement in a transaction.
func (f *Fixture) Exec(statement string, args ...any) {
	f.T.Helper()
	require.NoError(f.T, f.Config.DB.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	}))
}

// Files returns the keys of all files in the store.
func (f *Fixture) Files() (keys []string) {
	f.T.Helper()
	require.NoError(f.T, f.Config.Blobs.List(context.Background(), "", func(o blob.Object) error {
		keys = append(keys, o.Key)
		return nil
	}))
	return keys
}

// EngineFunc is an Engine implemented by a function.
type EngineFunc func(ctx context.Context, job worker.Job) (tasks.Outcome, error)

// Run implements worker.Engine.
func (f EngineFunc) Run(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	return f(ctx, job)
}

// ModelSet implements worker.Engine.
func (f EngineFunc) ModelSet() string { return "test-models-1" }

// Quick is an engine that returns the audio's bytes as the text of 61.5 s.
var Quick = EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	data, err := os.ReadFile(job.Path)
	if err != nil {
		return tasks.Outcome{}, err
	}
	return tasks.Outcome{
		Result: spec.Result{Ran: spec.Capabilities{ASR: true}, Language: "en", Segments: []spec.Segment{{Text: string(data)}}, AudioMD5: "theirs"},
		Tier:   spec.TierOptimized, Seconds: 61.5,
	}, nil
})

// Start runs workers until the test ends or stop is called; stop returns when
// they have ended.
func (f *Fixture) Start(n int, c worker.Config) (stop func()) {
	f.T.Helper()
	c.Poll = cmp.Or(c.Poll, 25*time.Millisecond)
	var runs []func(context.Context) error
	for range n {
		w, err := worker.New(f.Service.Runs, c)
		require.NoError(f.T, err)
		runs = append(runs, w.Run)
	}
	return f.start(runs...)
}

func (f *Fixture) start(runs ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	for _, run := range runs {
		wait.Go(func() { _ = run(ctx) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		wait.Wait()
	})
	f.T.Cleanup(stop)
	return stop
}

// StartFetcher runs a fetcher until the test ends or stop is called; stop
// returns when the fetcher has ended.
func (f *Fixture) StartFetcher(c worker.FetcherConfig) (stop func()) {
	f.T.Helper()
	c.Poll = cmp.Or(c.Poll, 25*time.Millisecond)
	fetcher, err := worker.NewFetcher(f.Service.Runs, c)
	require.NoError(f.T, err)
	return f.start(fetcher.Run)
}

// WaitFor waits until a task is final and returns it.
func (f *Fixture) WaitFor(id string) tasks.Task {
	f.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	t, err := f.Wait(ctx, f.Row(id).AccountID, id)
	require.NoError(f.T, err, "task %s is %s", id, t.Status)
	return t
}

// ReadResult reads the whole result of a done task, and its bill.
func (f *Fixture) ReadResult(id string) (*spec.Result, billing.Bill) {
	f.T.Helper()
	r, err := f.Result(context.Background(), f.Row(id).AccountID, id)
	require.NoError(f.T, err)
	defer r.Close()
	require.Equal(f.T, id, r.Task.ID)
	whole, err := r.Whole()
	require.NoError(f.T, err)
	return whole, r.Bill
}

// Exact checks the invariants of money over the whole store: each balance is
// the sum of its ledger and its chain has no gap, no task is charged twice,
// every done task is charged, holds belong to tasks that are not final, no row
// refers to a missing file, and running sums equal the sums of their rows.
func (f *Fixture) Exact() {
	f.T.Helper()
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM accounts a WHERE balance <> COALESCE((SELECT SUM(amount) FROM ledger l WHERE l.account_id = a.id), 0)`), "balance = Σ ledger")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM (SELECT balance_before, LAG(balance_after, 1, 0) OVER (PARTITION BY account_id ORDER BY seq) AS previous FROM ledger) x WHERE balance_before <> previous`), "chain of balances")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM (SELECT task_id FROM ledger WHERE task_id IS NOT NULL GROUP BY task_id HAVING COUNT(*) > 1) x`), "charged once")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM tasks WHERE status = 'done' AND id NOT IN (SELECT task_id FROM ledger WHERE task_id IS NOT NULL)`), "done tasks are charged")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM tasks WHERE status <> 'done' AND error_message <> 'canceled because its client went away' AND id IN (SELECT task_id FROM ledger WHERE task_id IS NOT NULL)`), "only done tasks, and those that their clients left, are charged")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM holds WHERE task_id NOT IN (SELECT id FROM tasks WHERE phase <> 'final')`), "holds of unfinished tasks only")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM tasks WHERE phase <> 'final' AND id NOT IN (SELECT task_id FROM holds)`), "unfinished tasks are held")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM settlements s JOIN ledger l ON l.task_id = s.task_id WHERE -l.amount <> s.total - s.from_packs`), "deduction = total - packs")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM lane_accounts l WHERE waiting <> (SELECT COUNT(*) FROM tasks t WHERE t.lane = l.lane AND t.account_id = l.account_id AND t.phase = 'queued')`), "waiting = queued tasks")
	require.Zero(f.T, f.Count(`SELECT COUNT(*) FROM tasks t WHERE phase = 'queued' AND NOT EXISTS (SELECT 1 FROM lane_accounts l WHERE l.lane = t.lane AND l.account_id = t.account_id)`), "queued tasks are counted")
	require.Empty(f.T, f.Sums(), "running sums")
	there := map[string]bool{}
	for _, key := range f.Files() {
		there[key] = true
	}
	rows, err := f.Config.DB.Read().Query("SELECT audio_blob FROM tasks WHERE audio_blob IS NOT NULL UNION ALL SELECT result_blob FROM tasks WHERE result_blob IS NOT NULL")
	require.NoError(f.T, err)
	defer rows.Close()
	for rows.Next() {
		var key string
		require.NoError(f.T, rows.Scan(&key))
		require.True(f.T, there[key], "a row points at %s", key)
	}
	require.NoError(f.T, rows.Err())
}

// Sums returns the differences that the check of running sums and ledger finds.
func (f *Fixture) Sums() []billing.Difference {
	f.T.Helper()
	found, err := f.Billing().Check(context.Background(), false)
	require.NoError(f.T, err)
	return found
}

// Orphans returns the files without a row.
func (f *Fixture) Orphans() []string {
	f.T.Helper()
	keys := f.Files()
	kept, err := f.Referenced(context.Background(), keys)
	require.NoError(f.T, err)
	var orphans []string
	for _, key := range keys {
		if !kept[key] {
			orphans = append(orphans, key)
		}
	}
	return orphans
}

// Tidy runs the clean-up and an unlimited collection of orphaned files.
func (f *Fixture) Tidy() {
	f.T.Helper()
	Tidy(f.T, f.Service)
}

// Tidy runs the clean-up of s and an unlimited collection of orphaned files:
// one pass marks, the next deletes.
func Tidy(t testing.TB, s *tasks.Service) {
	t.Helper()
	require.NoError(t, tasks.NewMaintainer(s, tasks.MaintainerConfig{}).Cleanup(context.Background()))
	for range 2 {
		time.Sleep(time.Millisecond) // the two passes must run at different times
		_, err := s.Collect(context.Background(), tasks.CollectConfig{MinAge: -100 * 365 * 24 * time.Hour, Marked: -time.Hour, MaxFiles: 1 << 30, MaxShare: 1})
		require.NoError(t, err)
	}
}

// Fetch stores some audio for every task that waits for its download.
func (f *Fixture) Fetch() {
	f.T.Helper()
	for {
		c, err := f.NextFetch(context.Background(), "fetcher", queue.Busy{Ahead: 1 << 30})
		require.NoError(f.T, err)
		if c == nil {
			return
		}
		audio := f.Audio("downloaded")
		require.NoError(f.T, f.Fetched(context.Background(), c, *audio, 0))
	}
}

// Take claims the next task for the worker "w", after Fetch; it returns nil if
// there is none.
func (f *Fixture) Take() *tasks.Claim {
	f.T.Helper()
	f.Fetch()
	c, err := f.Next(context.Background(), "w", "m")
	require.NoError(f.T, err)
	return c
}

// DoerFunc is a safehttp.Doer implemented by a function.
type DoerFunc func(*http.Request) (*http.Response, error)

// Do implements safehttp.Doer.
func (f DoerFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }
