package worker_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"errors"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
	"github.com/otograph/otograph/tasks"
	"github.com/otograph/otograph/tasks/queue"
	"github.com/otograph/otograph/tasks/taskstest"
	"github.com/otograph/otograph/tasks/webhook"
	"github.com/otograph/otograph/tasks/worker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// errBroken is what a faulty driver answers: a connection that breaks.
var errBroken = fmt.Errorf("injected: %w", io.ErrUnexpectedEOF)

// breaker decides which calls of the database fail. "before" fails without having done anything, "after" only for commits:
// the store has done it and the caller does not hear of it.
type breaker struct {
	mu  sync.Mutex
	ask func(op string) (fail, after bool)
}

func (b *breaker) verdict(op string) (fail, after bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ask == nil {
		return false, false
	}
	return b.ask(op)
}

func (b *breaker) set(ask func(op string) (fail, after bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ask = ask
}

// wrap is db.Options.Wrap.
func (b *breaker) wrap(c driver.Connector) driver.Connector { return brokenConnector{c, b} }

type brokenConnector struct {
	driver.Connector
	b *breaker
}

func (c brokenConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &brokenConn{conn, c.b}, nil
}

type brokenConn struct {
	driver.Conn
	b *breaker
}

func (c *brokenConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if fail, _ := c.b.verdict("exec"); fail {
		return nil, errBroken
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *brokenConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if fail, _ := c.b.verdict("query"); fail {
		return nil, errBroken
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *brokenConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if fail, _ := c.b.verdict("begin"); fail {
		return nil, errBroken
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return brokenTx{tx, c.b}, nil
}

func (c *brokenConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type brokenTx struct {
	driver.Tx
	b *breaker
}

func (t brokenTx) Commit() error {
	fail, after := t.b.verdict("commit")
	if fail && !after {
		return errors.Join(errBroken, t.Tx.Rollback())
	}
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	if fail {
		return errBroken
	}
	return nil
}

// brittle returns a fixture whose database and file store fail when b says so.
func brittle(t testing.TB, options ...taskstest.Option) (*taskstest.Fixture, *breaker) {
	b := &breaker{}
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{Wrap: b.wrap, MaxConns: 4}), options...)
	f.Blobs().Inject(func(op, key string) error {
		if fail, _ := b.verdict("blob " + op); fail {
			return errBroken
		}
		return nil
	})
	return f, b
}

// oneTask takes a task from its creation to its delivered callback, as client, worker and notifier do, each trying again
// after trouble. It returns how many deliveries there were.
func oneTask(t testing.TB, f *taskstest.Fixture) (deliveries int) {
	ctx := context.Background()
	again := func(what string, step func() error) {
		for range 20 {
			if err := step(); err == nil {
				return
			} else if !tasks.Outage(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
				require.NoError(t, err, what)
			}
			time.Sleep(time.Second)
		}
		t.Fatal(what, "does not work")
	}
	var task tasks.Task
	again("create", func() error {
		w, err := f.NewAudio(ctx, "speech.wav")
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write([]byte("audio")); err != nil {
			return err
		}
		info, err := w.Commit()
		if err != nil {
			return err
		}
		task, _, err = f.Create(ctx, f.Request(func(r *tasks.Request) { r.Audio = &info; r.CallbackURL = "https://receiver.example/x" }), tasks.Idempotency{Key: "k", BodyHash: "h"})
		return err
	})
	w, err := worker.New(f.Service, worker.Config{Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
		if err := job.Checkpoints.Save(ctx, "vad", []byte("work")); err != nil {
			return tasks.Outcome{}, err
		}
		return taskstest.Quick(ctx, job)
	}), ID: "w"})
	require.NoError(t, err)
	again("work", func() error {
		for range 50 {
			c, err := f.Next(ctx, "w", "m")
			if err != nil {
				// A claim whose commit was not heard of is found by the watch.
				_, _ = f.Reap(ctx, "w", tasks.EndInterrupted, "lost")
				return err
			}
			if c != nil {
				run, cancel := context.WithCancelCause(ctx)
				err := w.Work(ctx, run, cancel, c)
				cancel(nil)
				if err != nil {
					return err
				}
			}
			now, err := f.Get(ctx, f.Account, task.ID)
			if err != nil {
				return err
			}
			if now.Final() {
				return nil
			}
			time.Sleep(time.Minute)
		}
		return errors.New("the task does not end")
	})
	again("deliver", func() error {
		for range 10 {
			d, err := f.Outbox().Next(ctx, "n", nil)
			if err != nil {
				_, _ = f.Reap(ctx, "n", tasks.EndInterrupted, "lost")
				return err
			}
			if d != nil {
				deliveries++
				if err := f.Outbox().Note(ctx, d, nil); err != nil {
					_, _ = f.Reap(ctx, "n", tasks.EndInterrupted, "lost")
					return err
				}
			}
			var open int
			if err := f.DB.Read().QueryRow("SELECT COUNT(*) FROM callbacks WHERE phase <> 'delivered'").Scan(&open); err != nil {
				return err
			}
			if open == 0 {
				return nil
			}
		}
		return errors.New("the callback does not arrive")
	})
	return deliveries
}

// TestT25NthOperation makes the n-th operation of database and file store fail, for n = 1 … N, each commit in both ways.
func TestT25NthOperation(t *testing.T) {
	points, twice := 0, 0
	for n := 1; ; n += faultStride {
		fired := false
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f, b := brittle(t)
				count, hit := 0, false
				b.set(func(op string) (bool, bool) {
					count++
					if count != n || (after && op != "commit") {
						return false, false
					}
					hit = true
					return true, after
				})
				deliveries := oneTask(t, f)
				b.set(nil)
				if count >= n {
					fired = true
				}
				if !hit {
					return
				}
				points++
				if deliveries > 1 {
					twice++
				}
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks"), "n = %d: one task for one key", n)
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'"), "n = %d", n)
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"), "n = %d", n)
				require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks"), "n = %d", n)
				f.Exact()
				f.Tidy()
				require.Empty(t, f.Orphans(), "n = %d", n)
				require.Len(t, f.Files(), 1, "n = %d: the result", n)
			})
		}
		if !fired {
			break
		}
	}
	assert.Greater(t, points, 60/faultStride)
	t.Logf("T25: %d points of failure in a task's life, each survived: one task, one charge, one result; %d delivered twice", points, twice)
}

// history runs one random life of a service in virtual time, all of it from one seed, and returns what happened in words.
type history struct {
	t      testing.TB
	f      *taskstest.Fixture
	b      *breaker
	random *rand.Rand
	trace  strings.Builder

	tasks    []string // by number; "" once deleted
	number   map[string]int
	workers  map[string]*tasks.Claim
	faults   func(op string) (fail, after bool)
	stale    []*webhook.Delivery // deliveries of notifiers that were taken for dead
	zombies  []*tasks.Claim      // claims of workers that were taken for dead and live
	carriers map[string]*webhook.Delivery
	sent     map[string][]string // webhook ids by task
	keys     map[string]string   // idempotency keys and the task they made
	counts   map[string]int
}

func (h *history) say(format string, args ...any) { fmt.Fprintf(&h.trace, format+"\n", args...) }

// try notes an operation and its outcome: which trouble is expected and everything else is a failure of the test.
func (h *history) try(what string, err error, expected ...error) bool {
	h.counts[what]++
	if err == nil {
		h.say("%s ok", what)
		return true
	}
	for _, e := range append(expected, io.ErrUnexpectedEOF, db.ErrUnavailable, blob.ErrUnavailable) {
		if errors.Is(err, e) {
			h.say("%s: %v", what, e)
			return false
		}
	}
	h.t.Fatalf("%s: %v", what, err)
	return false
}

// calm runs a look at the store without faults.
func (h *history) calm(look func()) {
	h.b.set(nil)
	look()
	h.b.set(h.faults)
}

func (h *history) anyTask() string {
	if len(h.tasks) == 0 {
		return "none"
	}
	return h.tasks[h.random.IntN(len(h.tasks))]
}

func (h *history) step() {
	ctx, f := context.Background(), h.f
	who := fmt.Sprint("w", h.random.IntN(3))
	carrier := fmt.Sprint("n", h.random.IntN(2))
	switch h.random.IntN(23) {
	case 0, 1, 2: // a customer submits, perhaps with a key that was used before
		key := fmt.Sprint("k", h.random.IntN(12))
		r := tasks.Request{Account: f.Account, URL: "https://source.example/" + key, Filename: "a.wav", Options: []byte(taskstest.AllOptions), Batch: h.random.IntN(3) == 0}
		if h.random.IntN(2) == 0 {
			r.CallbackURL = "https://receiver.example/"
		}
		idem := tasks.Idempotency{}
		if h.random.IntN(2) == 0 {
			idem = tasks.Idempotency{Key: key, BodyHash: "h"}
		}
		task, replayed, err := f.Create(ctx, r, idem)
		if h.try("create", err, billing.ErrInsufficientBalance) {
			if before, ok := h.keys[idem.Key]; ok && idem.Key != "" {
				require.Equal(h.t, before, task.ID, "a key makes one task")
			}
			if idem.Key != "" {
				h.keys[idem.Key] = task.ID
			}
			if !replayed || h.number[task.ID] == 0 {
				h.tasks = append(h.tasks, task.ID)
				h.number[task.ID] = len(h.tasks)
			}
		}
	case 3, 4, 5, 6: // a worker looks for work
		if h.workers[who] != nil {
			return
		}
		c, err := f.Next(ctx, who, "m")
		if h.try("claim", err) && c != nil {
			h.say("%s has task %d, attempt %d", who, h.number[c.ID], c.Held.Attempt)
			h.workers[who] = c
		}
	case 7: // fetches
		if c := h.workers[who]; c != nil {
			key, err := tasks.AudioKey("a.wav")
			require.NoError(h.t, err)
			w, err := f.Blobs().Create(ctx, key)
			if !h.try("fetch", err) {
				return
			}
			defer w.Abort()
			if _, err := w.Write([]byte("audio")); !h.try("fetch", err) {
				return
			}
			info, err := w.Commit()
			if !h.try("fetch", err) {
				return
			}
			h.try("fetched", f.Fetched(ctx, c, info.Key, info.Size, info.MD5), queue.ErrSuperseded)
		}
	case 8: // probes
		if c := h.workers[who]; c != nil {
			h.try("probe", f.Probed(ctx, c, float64(h.random.IntN(4000))), queue.ErrSuperseded)
		}
	case 9, 10, 11: // finishes
		if c := h.workers[who]; c != nil {
			if h.try("complete", f.Complete(ctx, c, tasks.Outcome{Result: []byte(`{"language":"en"}`), Tier: "zh_lite", Seconds: float64(h.random.IntN(4000))}), queue.ErrSuperseded) || h.random.IntN(2) == 0 {
				delete(h.workers, who) // or gives up after trouble and is found by the watch
			}
		}
	case 12, 13: // fails
		if c := h.workers[who]; c != nil {
			how := []tasks.Ending{tasks.EndPermanent, tasks.EndRecoverable, tasks.EndRecoverable, tasks.EndCrash, tasks.EndHandedBack}[h.random.IntN(5)]
			if h.try(fmt.Sprint("ending ", how), f.Release(ctx, c, how, "trouble"), queue.ErrSuperseded) {
				delete(h.workers, who)
			}
		}
	case 14: // a worker is taken for dead; its claim may live on in a process that wakes up later
		if c := h.workers[who]; c != nil {
			h.zombies = append(h.zombies, c)
			delete(h.workers, who)
		}
		_, err := f.Reap(ctx, who, []tasks.Ending{tasks.EndInterrupted, tasks.EndCrash}[h.random.IntN(2)], "dead")
		h.try("reap", err)
	case 15: // a dead one wakes up
		if len(h.zombies) > 0 {
			c := h.zombies[h.random.IntN(len(h.zombies))]
			may := 0 // the claim is current, or has finished the task before it was taken for dead
			h.calm(func() {
				may = f.Count("SELECT COUNT(*) FROM tasks WHERE id = $1 AND ((attempt = $2 AND phase = 'running') OR result_blob = $3)", c.ID, c.Held.Attempt, fmt.Sprintf("results/%s-%d.json.zst", c.ID, c.Held.Attempt))
			})
			err := f.Complete(ctx, c, tasks.Outcome{Result: []byte(`{"late":true}`), Tier: "standard", Seconds: 1})
			if h.try("late commit", err, queue.ErrSuperseded) {
				require.Equal(h.t, 1, may, "a claim that is over finished a task")
			}
		}
	case 16, 17: // a notifier delivers; the receiver or the notifier may fail
		if h.carriers[carrier] == nil {
			d, err := f.Outbox().Next(ctx, carrier, nil)
			if !h.try("claim callback", err) || d == nil {
				return
			}
			h.carriers[carrier] = d
		}
		d := h.carriers[carrier]
		var failure error
		if h.random.IntN(3) == 0 {
			failure = errors.New("receiver down")
		} else {
			h.sent[d.TaskID] = append(h.sent[d.TaskID], d.ID)
		}
		if h.random.IntN(4) == 0 { // dies between the delivery and its record
			_, err := f.Reap(ctx, carrier, tasks.EndInterrupted, "dead")
			h.try("reap", err)
			h.stale = append(h.stale, d)
			delete(h.carriers, carrier)
			return
		}
		if h.try("note callback", f.Outbox().Note(ctx, d, failure)) {
			delete(h.carriers, carrier)
		}
	case 22: // a notifier that was taken for dead notes what it knows
		if len(h.stale) > 0 {
			d := h.stale[h.random.IntN(len(h.stale))]
			current, before, after := 0, "", ""
			look := func(text *string) func() {
				return func() {
					current = f.Count("SELECT COUNT(*) FROM callbacks WHERE id = $1 AND claim = $2 AND phase = 'running'", d.ID, d.Claim)
					if f.Count("SELECT COUNT(*) FROM callbacks WHERE id = $1", d.ID) > 0 {
						require.NoError(h.t, f.DB.Read().QueryRow("SELECT phase || attempts || claim FROM callbacks WHERE id = $1", d.ID).Scan(text))
					}
				}
			}
			h.calm(look(&before))
			was := current
			h.try("late note", f.Outbox().Note(ctx, d, errors.New("late")))
			h.calm(look(&after))
			if was == 0 {
				require.Equal(h.t, before, after, "a delivery that is over was noted")
			}
		}
	case 18: // a customer deletes
		id := h.anyTask()
		h.try("delete", f.Delete(ctx, f.Account, id), tasks.ErrNotFound, tasks.ErrProcessing)
	case 19: // money moves
		amount := billing.Money(1 + h.random.IntN(5000))
		switch h.random.IntN(4) {
		case 0:
			_, err := f.Billing().Recharge(ctx, f.Account, amount, "")
			h.try("recharge", err)
		case 1:
			_, err := f.Billing().Refund(ctx, f.Account, amount, "")
			h.try("refund", err)
		case 2:
			_, err := f.Billing().AddPack(ctx, f.Account, billing.Pack{Value: amount, ExpiresAt: f.Clock().Add(time.Hour)})
			h.try("pack", err)
		case 3:
			_, err := f.Billing().SetPrices(ctx, billing.Prices{Standard: amount, Lite: amount / 2, BatchDiscount: 5000}, time.Time{})
			h.try("prices", err)
		}
	case 20:
		time.Sleep(time.Duration(h.random.IntN(600)) * time.Second)
	case 21:
		h.try("clean up", tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(ctx))
	}
}

// settleDown ends all trouble and lets everything run to its end.
func (h *history) settleDown() {
	ctx, f := context.Background(), h.f
	h.b.set(nil)
	for _, id := range []string{"w0", "w1", "w2", "n0", "n1"} {
		_, err := f.Reap(ctx, id, tasks.EndInterrupted, "end of the trouble")
		require.NoError(h.t, err)
	}
	for range 200 {
		for {
			c, err := f.Next(ctx, "last", "m")
			require.NoError(h.t, err)
			if c == nil {
				break
			}
			require.NoError(h.t, f.Complete(ctx, c, tasks.Outcome{Result: []byte(`{}`), Tier: "standard", Seconds: 61}))
		}
		for {
			d, err := f.Outbox().Next(ctx, "last", nil)
			require.NoError(h.t, err)
			if d == nil {
				break
			}
			h.sent[d.TaskID] = append(h.sent[d.TaskID], d.ID)
			require.NoError(h.t, f.Outbox().Note(ctx, d, nil))
		}
		if f.Count("SELECT COUNT(*) FROM tasks WHERE phase <> 'final'")+f.Count("SELECT COUNT(*) FROM callbacks WHERE phase IN ('queued', 'running')") == 0 {
			break
		}
		time.Sleep(time.Minute)
	}
	require.Zero(h.t, f.Count("SELECT COUNT(*) FROM tasks WHERE phase <> 'final'"), "every task ends")
	require.Zero(h.t, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase IN ('queued', 'running')"))
	f.Exact()
	require.Zero(h.t, f.Count("SELECT COUNT(*) FROM tasks WHERE callback_url IS NOT NULL AND id NOT IN (SELECT task_id FROM callbacks)"), "a final task with an address has its callback")
	require.Zero(h.t, f.Count("SELECT COUNT(*) FROM tasks WHERE callback_url IS NULL AND id IN (SELECT task_id FROM callbacks)"))
	for task, ids := range h.sent {
		slices.Sort(ids)
		require.Len(h.t, slices.Compact(ids), 1, "deliveries of task %d have one id", h.number[task])
	}
	f.Tidy()
	require.Empty(h.t, f.Orphans())
	h.say("end: %d tasks, %d done, balance %d", f.Count("SELECT COUNT(*) FROM tasks"), f.Count("SELECT COUNT(*) FROM tasks WHERE status = 'done'"), f.Count("SELECT balance FROM accounts"))
}

// runHistory runs the history of one seed and returns the hash of its trace and how often each operation ran.
func runHistory(t *testing.T, seed uint64, steps int) (sum uint64, trace string, counts map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 36))
		f, b := brittle(t, func(c *tasks.Config) { c.Random = random.Float64 })
		h := &history{t: t, f: f, b: b, random: random, number: map[string]int{}, workers: map[string]*tasks.Claim{}, carriers: map[string]*webhook.Delivery{}, sent: map[string][]string{}, keys: map[string]string{}, counts: map[string]int{}}
		faults := random.IntN(40) // of a thousand operations
		h.faults = func(op string) (bool, bool) { return random.IntN(1000) < faults, random.IntN(2) == 0 }
		b.set(h.faults)
		defer func() {
			if t.Failed() {
				t.Logf("seed %d\n%s", seed, h.trace.String())
			}
		}()
		for range steps {
			h.step()
		}
		h.settleDown()
		trace, counts = h.trace.String(), h.counts
	})
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, trace)
	return hash.Sum64(), trace, counts
}

// TestT36SeededFaults runs random histories of queue, ledger and callbacks with random faults in virtual time.
func TestT36SeededFaults(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	if text := os.Getenv("OTOGRAPH_TEST_SEED"); text != "" {
		fixed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		first = fixed
	}
	total := map[string]int{}
	operations := 0
	for n := range seedsInSuite {
		seed := first + uint64(n)
		sum, trace, counts := runHistory(t, seed, 150)
		if t.Failed() {
			t.Fatalf("T36: seed %d breaks an invariant", seed)
		}
		for what, n := range counts {
			total[what] += n
			operations += n
		}
		if n < min(3, seedsInSuite/2) {
			again, other, _ := runHistory(t, seed, 150)
			if again != sum {
				t.Fatalf("T36: seed %d ran differently the second time:\n%s\n----\n%s", seed, trace, other)
			}
		}
	}
	assert.Positive(t, total["late commit"])
	assert.Positive(t, total["complete"])
	t.Logf("T36: %d histories from seed %d, %d operations (%d creations, %d claims, %d completions, %d late commits, %d take-backs): all invariants held; %d seeds ran alike twice",
		seedsInSuite, first, operations, total["create"], total["claim"], total["complete"], total["late commit"], total["reap"], min(3, seedsInSuite/2))
}
