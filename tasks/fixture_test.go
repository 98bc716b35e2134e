package tasks

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if run := os.Getenv("OTOGRAPH_TEST_PROCESS"); run != "" {
		os.Exit(testProcess(run))
	}
	code := dbtest.Main(m)
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// fixture is a service on a fresh store with one account.
type fixture struct {
	*Service
	t       testing.TB
	account string
	source  string // of the database
	dir     string // of the file store
}

type fixtureOption func(*Config)

func newFixture(t testing.TB, d *db.DB, options ...fixtureOption) *fixture {
	t.Helper()
	dir := filepath.Join(dbtest.Dir(t), "blobs")
	blobs, err := blob.Open(context.Background(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { blobs.Close() })
	c := Config{DB: d, Blobs: blobs}
	if os.Getenv("OTOGRAPH_TEST_LOG") != "" {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	for _, option := range options {
		option(&c)
	}
	s, err := New(c)
	require.NoError(t, err)
	f := &fixture{Service: s, t: t, dir: dir}
	f.account = f.newAccount("customer", 1000*billing.Unit)
	return f
}

func (f *fixture) newAccount(name string, balance billing.Money) string {
	f.t.Helper()
	a, err := accounts.New(f.db, f.Clock).Create(context.Background(), name)
	require.NoError(f.t, err)
	if balance > 0 {
		_, err = f.billing.Recharge(context.Background(), a.ID, balance, "test")
		require.NoError(f.t, err)
	}
	many := 100_000
	require.NoError(f.t, f.billing.SetLimits(context.Background(), a.ID, billing.Overrides{Concurrency: &many}))
	return a.ID
}

const allOptions = `{"enable_asr": true, "enable_diarize":true,"enable_audio_events":true}`

func (f *fixture) request(change func(*Request)) Request {
	r := Request{Account: f.account, Filename: "speech.wav", Options: json.RawMessage(allOptions)}
	if change != nil {
		change(&r)
	}
	if r.URL == "" && r.Audio == nil {
		r.Audio = f.audio("audio of some task " + uuid.NewString())
		r.Seconds = 30
	}
	return r
}

// audio stores bytes as uploaded audio.
func (f *fixture) audio(content string) *blob.Info {
	f.t.Helper()
	w, err := f.NewAudio(context.Background(), "speech.wav")
	require.NoError(f.t, err)
	_, err = w.Write([]byte(content))
	require.NoError(f.t, err)
	info, err := w.Commit()
	require.NoError(f.t, err)
	return &info
}

func (f *fixture) create(change func(*Request)) Task {
	f.t.Helper()
	task, _, err := f.Create(context.Background(), f.request(change), Idempotency{})
	require.NoError(f.t, err)
	return task
}

func (f *fixture) get(id string) Task {
	f.t.Helper()
	var t Task
	t, err := scanTask(f.db.Read().QueryRow("SELECT "+taskColumns+" FROM tasks WHERE id = $1", id))
	require.NoError(f.t, err)
	return t
}

func (f *fixture) count(query string, args ...any) int {
	f.t.Helper()
	var n int
	require.NoError(f.t, f.db.Read().QueryRow(query, args...).Scan(&n))
	return n
}

func (f *fixture) exec(statement string, args ...any) {
	f.t.Helper()
	require.NoError(f.t, f.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	}))
}

func (f *fixture) files() (keys []string) {
	f.t.Helper()
	require.NoError(f.t, f.blobs.List(context.Background(), "", func(o blob.Object) error {
		keys = append(keys, o.Key)
		return nil
	}))
	return keys
}

// engineFunc is an Engine made of a function.
type engineFunc func(ctx context.Context, job Job) (Outcome, error)

func (f engineFunc) Run(ctx context.Context, job Job) (Outcome, error) { return f(ctx, job) }
func (f engineFunc) ModelSet() string                                  { return "test-models-1" }

// quick is an engine that reads the audio and reports it as text of 61.5 s.
var quick = engineFunc(func(ctx context.Context, job Job) (Outcome, error) {
	data, err := os.ReadFile(job.Path)
	if err != nil {
		return Outcome{}, err
	}
	text, err := json.Marshal(string(data))
	return Outcome{Result: json.RawMessage(`{"language":"en", "segments":[{"id":0,"text":` + string(text) + `}],"audio_md5":"theirs"}`), Tier: "zh_lite", Seconds: 61.5}, err
})

// start runs workers until the test ends or stop is called; it returns when they have ended.
func (f *fixture) start(n int, c WorkerConfig) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	setDefault(&c.Poll, 5*time.Millisecond)
	for range n {
		w, err := NewWorker(f.Service, c)
		require.NoError(f.t, err)
		wait.Go(func() { _ = w.Run(ctx) })
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			wait.Wait()
		})
	}
	f.t.Cleanup(stop)
	return stop
}

func (f *fixture) wait(id string) Task {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	t, err := f.Wait(ctx, f.get(id).AccountID, id)
	require.NoError(f.t, err, "task %s is %s", id, t.Status)
	return t
}

// result reads the whole result of a done task.
func (f *fixture) result(id string) map[string]any {
	f.t.Helper()
	r, err := f.Result(context.Background(), f.get(id).AccountID, id)
	require.NoError(f.t, err)
	defer r.Close()
	var out bytes.Buffer
	n, err := r.WriteTo(&out)
	require.NoError(f.t, err)
	require.EqualValues(f.t, out.Len(), n)
	var m map[string]any
	require.NoError(f.t, json.Unmarshal(out.Bytes(), &m), out.String())
	return m
}

// exact checks the invariants of money over the whole store: each balance is the sum of its ledger and its chain has no
// gap, no task is charged twice, every done task is charged, holds belong to tasks that are not final, and no row points at
// a file that is not there.
func (f *fixture) exact() {
	f.t.Helper()
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM accounts a WHERE balance <> COALESCE((SELECT SUM(amount) FROM ledger l WHERE l.account_id = a.id), 0)`), "balance = Σ ledger")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM (SELECT balance_before, LAG(balance_after, 1, 0) OVER (PARTITION BY account_id ORDER BY seq) AS previous FROM ledger) x WHERE balance_before <> previous`), "chain of balances")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM (SELECT task_id FROM ledger WHERE task_id IS NOT NULL GROUP BY task_id HAVING COUNT(*) > 1) x`), "charged once")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM tasks WHERE status = 'done' AND id NOT IN (SELECT task_id FROM ledger WHERE task_id IS NOT NULL)`), "done tasks are charged")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM tasks WHERE status <> 'done' AND id IN (SELECT task_id FROM ledger WHERE task_id IS NOT NULL)`), "only done tasks are charged")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM holds WHERE task_id NOT IN (SELECT id FROM tasks WHERE phase <> 'final')`), "holds of unfinished tasks only")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM tasks WHERE phase <> 'final' AND id NOT IN (SELECT task_id FROM holds)`), "unfinished tasks are held")
	require.Zero(f.t, f.count(`SELECT COUNT(*) FROM settlements s JOIN ledger l ON l.task_id = s.task_id WHERE -l.amount <> s.total - s.from_packs`), "deduction = total - packs")
	there := map[string]bool{}
	for _, key := range f.files() {
		there[key] = true
	}
	rows, err := f.db.Read().Query("SELECT audio_blob FROM tasks WHERE audio_blob IS NOT NULL UNION ALL SELECT result_blob FROM tasks WHERE result_blob IS NOT NULL")
	require.NoError(f.t, err)
	defer rows.Close()
	for rows.Next() {
		var key string
		require.NoError(f.t, rows.Scan(&key))
		require.True(f.t, there[key], "a row points at %s", key)
	}
	require.NoError(f.t, rows.Err())
}

// orphans are the files that nothing points at.
func (f *fixture) orphans() []string {
	f.t.Helper()
	keys := f.files()
	kept, err := f.claimed(context.Background(), keys)
	require.NoError(f.t, err)
	var orphans []string
	for _, key := range keys {
		if !kept[key] {
			orphans = append(orphans, key)
		}
	}
	return orphans
}

// doerFunc is an HTTPDoer made of a function.
type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }
