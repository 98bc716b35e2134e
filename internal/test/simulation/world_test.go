package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// size is the size of a history.
type size struct {
	servers, workers, notifiers int
	customers, accounts         int           // the accounts of all customers
	submissions                 int           // of all customers
	length                      time.Duration // of the trouble
}

// world is one history: a fleet, its customers, and the disturbances.
type world struct {
	t         testing.TB
	seed      uint64
	size      size
	source    string // of the database
	dir       string // for the workers' copies of audio
	bucket    *memory
	scheduler *scheduler
	random    *rand.Rand
	observer  *taskstest.Fixture // bypasses the scheduler

	// The policy that the seed chooses.
	shifts                      bool // clocks differ and jump
	retryDelays, callbackDelays []time.Duration
	batchWait, keepAudio        time.Duration
	heartbeat, poll             time.Duration
	pause, work                 time.Duration // between a customer's requests; of an engine, at most
	gap                         time.Duration // between two disturbances, on average
	available                   spec.Available

	processes []*process // processes that run or were just killed
	all       []*process // that ever were
	started   int        // processes
	calm      atomic.Bool
	next      time.Time // disturbance
	restarts  []restart
	looked    time.Time // at the invariants
	customers sync.WaitGroup
	asking    atomic.Int32 // customers and running requests that may create tasks

	mu          sync.Mutex
	submissions []*submission
	balances    map[string]billing.Money // acknowledged transactions
	deliveries  map[string][]delivery    // by task
	canceled    map[string]bool          // possibly canceled by an operator
	retried     map[string]bool          // possibly retried by an operator
	failure     string
}

// restart is a process that will be started again.
type restart struct {
	at   time.Time
	role string
}

// must fails the test for an error that no fault explains.
func (w *world) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

// fail records the first violation; the history ends with it.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// newWorld creates the accounts, the unrelated files, and the fleet.
func newWorld(t testing.TB, seed uint64, z size, source, dir string) *world {
	random := rand.New(rand.NewPCG(seed, 0))
	second := func(least, most int) time.Duration {
		return time.Duration(least)*time.Second + time.Duration(random.Int64N(int64(most-least)*int64(time.Second)))
	}
	w := &world{
		t: t, seed: seed, size: z, source: source, dir: dir, bucket: newMemory(), random: random, scheduler: newScheduler(random),
		shifts: random.IntN(3) == 0, batchWait: second(60, 600), heartbeat: second(4, 8), poll: second(2, 8), work: second(5, 60),
		retryDelays: []time.Duration{second(2, 12), second(10, 60), second(20, 100)}, callbackDelays: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second},
		balances: map[string]billing.Money{}, deliveries: map[string][]delivery{}, canceled: map[string]bool{}, retried: map[string]bool{}, gap: second(2, 15),
	}
	if random.IntN(3) == 0 { // so slow that living processes are often considered dead
		w.heartbeat = second(15, 40)
	}
	if random.IntN(3) == 0 {
		w.keepAudio = second(30, 600)
	}
	w.pause = z.length * time.Duration(z.customers) / time.Duration(2*z.submissions+1)
	s := w.scheduler
	s.faults, s.lost, s.kills, s.slow, s.latency = random.IntN(30), random.IntN(60), random.IntN(15), random.IntN(100), second(1, 20)
	if random.IntN(3) == 0 { // no process dies, so that work that a living process has forgotten stays unfinished
		s.kills, w.gap = 0, time.Hour
	}
	d, err := db.Open(context.Background(), source, db.Options{NoListen: true, MaxConns: 2})
	require.NoError(t, err)
	service, err := tasks.New(tasks.Config{DB: d, Blobs: blob.Over(w.bucket, "memory")})
	require.NoError(t, err)
	w.observer = &taskstest.Fixture{Service: service, T: t}
	w.watch()
	w.strangers()
	book := accounts.New(d, nil, time.Now)
	for i := range z.accounts {
		a, err := book.Create(context.Background(), fmt.Sprint("account ", i))
		require.NoError(t, err)
		amount := billing.Money(1+random.IntN(50)) * billing.Unit / 5
		_, err = service.Billing().Recharge(context.Background(), a.ID, amount, "")
		require.NoError(t, err)
		w.balances[a.ID] = amount
		if random.IntN(4) > 0 {
			many := 1000
			require.NoError(t, book.SetLimits(context.Background(), a.ID, accounts.Overrides{Concurrency: &many}))
		}
	}
	return w
}

// close ends the fleet, so that no goroutine remains.
func (w *world) close() {
	for _, p := range w.all {
		w.scheduler.bury(p)
	}
	for _, p := range w.all {
		<-p.ended
	}
	w.customers.Wait()
	w.must(w.observer.Config.DB.Close())
}

// run runs the history: disturbances, then calm in which all work must end;
// some histories continue for nine days.
func (w *world) run() {
	z := w.size
	w.fleet()
	names := make([][]string, z.customers)
	ids, err := db.Column[string](context.Background(), w.observer.Config.DB.Read(), "SELECT id FROM accounts ORDER BY id")
	w.must(err)
	for i, id := range ids {
		names[i%z.customers] = append(names[i%z.customers], id)
	}
	for i := range z.customers {
		c := &customer{world: w, number: i, random: rand.New(rand.NewPCG(w.seed, uint64(1_000_000+i))), accounts: names[i]}
		quota := z.submissions/z.customers + 1
		w.customers.Go(func() { c.live(quota) })
	}
	w.next = time.Now().Add(w.gap)
	w.scheduler.run(time.Now().Add(z.length), w.plan, w.failed)
	w.settle()
	w.callbacks()
	if !w.failed() && w.random.IntN(8) == 0 && z.workers < 20 {
		w.days()
	}
	w.finalCheck()
}

// fleet starts the processes.
func (w *world) fleet() {
	for range w.size.servers {
		w.start(roleServer)
	}
	for range w.size.workers {
		w.start(roleWorker)
	}
	for range w.size.notifiers {
		w.start(roleFetcher)
		w.start(roleNotifier)
	}
}

// settle ends the disturbances and waits until no work is left.
func (w *world) settle() {
	s := w.scheduler
	s.say("-- calm")
	w.calm.Store(true)
	s.mu.Lock()
	s.faults, s.lost, s.kills, s.dbAway, s.blobAway = 0, 0, 0, time.Time{}, time.Time{}
	for _, p := range w.processes {
		p.stalled, p.cut = time.Time{}, time.Time{}
		p.full.Store(0)
	}
	s.mu.Unlock()
	w.payAll()
	var looked time.Time
	open := 1
	s.run(time.Now().Add(6*time.Hour), w.plan, func() bool {
		if w.failed() {
			return true
		}
		if w.asking.Load() == 0 && time.Since(looked) > 5*time.Second {
			looked = time.Now()
			w.resume()
			open = w.count("SELECT (SELECT COUNT(*) FROM tasks WHERE phase <> 'final') + (SELECT COUNT(*) FROM callbacks WHERE phase IN ('queued', 'running'))")
		}
		return open == 0 && len(w.restarts) == 0
	})
	if !w.failed() && open > 0 {
		w.fail("after 6 hours without trouble %d tasks or callbacks are not finished: %s", open, w.stuck())
	}
}

// resume undoes the operators' commands that are still in force.
func (w *world) resume() {
	for _, lane := range []string{queue.LaneFetch, queue.LaneTasks, queue.LaneBatch} {
		w.must(w.observer.Queue().SetPaused(context.Background(), lane, false))
	}
}

// payAll recharges accounts whose tasks wait for money.
func (w *world) payAll() {
	for account := range w.balances {
		_, err := w.observer.Billing().Recharge(context.Background(), account, 100*billing.Unit, "")
		w.must(err)
	}
}

// days stops and restarts the fleet, so that orphaned files, whose rules count
// in days, are collected.
func (w *world) days() {
	for _, pause := range []time.Duration{26 * time.Hour, 8 * 24 * time.Hour} {
		for _, p := range w.processes {
			p.leaving.Store(true)
			p.cancel()
		}
		w.mu.Lock()
		w.processes = nil
		w.mu.Unlock()
		w.scheduler.run(time.Now().Add(pause), w.plan, w.failed)
		w.fleet()
		w.scheduler.run(time.Now().Add(2*time.Minute), w.plan, w.failed)
	}
	w.scheduler.disturbs["nine days"]++
}

// server starts a request on a server with a free slot; without one it returns
// nil. The caller ends it with p.requests.Done.
func (w *world) server(random *rand.Rand) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var can []*process
	for _, p := range w.processes {
		if p.role == roleServer && !p.gone() {
			can = append(can, p)
		}
	}
	if len(can) == 0 {
		return nil
	}
	p := can[random.IntN(len(can))]
	p.requests.Add(1)
	return p
}

// submission records a new submission.
func (w *world) submission(account string) *submission {
	w.mu.Lock()
	defer w.mu.Unlock()
	sub := &submission{number: len(w.submissions), account: account}
	w.submissions = append(w.submissions, sub)
	return sub
}

// answered records the response to a submission.
func (w *world) answered(sub *submission, id string, refused bool) {
	w.mu.Lock()
	before := sub.id
	if refused {
		sub.refused = true
	} else if sub.key != "" || before == "" {
		sub.id = id
	}
	w.mu.Unlock()
	if before != "" && sub.key != "" && !refused && before != id {
		w.fail("submission %d made two tasks, %s and %s", sub.number, before, id)
	}
}

// known returns one of a customer's acknowledged tasks, or nil.
func (w *world) known(c *customer) *submission {
	w.mu.Lock()
	defer w.mu.Unlock()
	var can []*submission
	for _, sub := range w.submissions {
		if sub.id != "" && !sub.deleted && sub.number%w.size.customers == c.number%w.size.customers {
			can = append(can, sub)
		}
	}
	if len(can) == 0 {
		return nil
	}
	return can[c.random.IntN(len(can))]
}

func (w *world) recharged(account string, amount billing.Money) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.balances[account] += amount
}

// count returns the number that a query selects.
func (w *world) count(query string, args ...any) int {
	var n int
	w.must(w.observer.Config.DB.Read().QueryRow(query, args...).Scan(&n))
	return n
}
