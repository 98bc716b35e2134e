package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// Roles of processes.
const (
	roleServer   = "server" // serves customers, detects dead processes, cleans up
	roleWorker   = "worker"
	roleFetcher  = "fetcher"
	roleNotifier = "notifier"
)

// process is one process of the fleet, with a separate database handle, clock
// and network.
type process struct {
	world   *world
	number  int
	role    string
	name    string
	service *tasks.Service
	slots   chan *tasks.Service // a server's handles for requests
	handles []*db.DB
	random  *rand.Rand

	dead     atomic.Bool // killed
	buried   bool        // its end has been recorded
	leaving  atomic.Bool // asked to end
	ended    chan struct{}
	requests sync.WaitGroup // that it answers
	cancel   context.CancelFunc
	stalled  time.Time    // paused until then (SIGSTOP, swap)
	cut      time.Time    // cut off from the database and the file store until then
	full     atomic.Int64 // its disk is full until then, nanoseconds since 1970
	shift    atomic.Int64 // offset of its clock in nanoseconds
}

// start starts a process. Each has a new number, even if it replaces one that
// died.
func (w *world) start(role string) *process {
	w.started++
	p := &process{
		world: w, number: w.started, role: role, name: fmt.Sprintf("%s %d", role, w.started), ended: make(chan struct{}),
		random: rand.New(rand.NewPCG(w.seed, uint64(w.started))),
	}
	if w.shifts {
		p.shift.Store(p.random.Int64N(int64(2*time.Hour)) - int64(time.Hour))
	}
	p.service = p.open()
	p.slots = make(chan *tasks.Service, requestsAtOnce)
	for range cap(p.slots) {
		if role == roleServer {
			p.slots <- p.open()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	w.mu.Lock()
	w.processes, w.all = append(w.processes, p), append(w.all, p)
	w.mu.Unlock()
	w.scheduler.say("-- start %s, clock %s", p.name, time.Duration(p.shift.Load()).Round(time.Second))
	go func() {
		defer close(p.ended)
		defer func() {
			p.requests.Wait()
			for _, d := range p.handles {
				w.must(d.Close())
			}
		}()
		if err := p.run(ctx); err != nil && !p.dead.Load() && !errors.Is(err, worker.ErrHung) {
			w.fail("%s ended: %v", p.name, err)
		}
	}()
	return p
}

// requestsAtOnce is the number of requests that a server processes
// concurrently.
const requestsAtOnce = 2

// open returns a service with a separate database handle: if several goroutines
// waited for one connection, they would get it in an order that does not depend
// on the seed.
func (p *process) open() *tasks.Service {
	w := p.world
	d, err := db.Open(context.Background(), w.source, db.Options{NoListen: true, MaxConns: 4, Wrap: dbtest.Faulty(func(c dbtest.Call) (bool, error) { return w.scheduler.call(p, c) })})
	w.must(err)
	p.handles = append(p.handles, d)
	blobs := blob.Over(w.bucket, "memory")
	blobs.Inject(func(op, _ string) error { return w.scheduler.pass(p, "file "+op).err })
	c := tasks.Config{
		DB: d, Blobs: blobs, Clock: func() time.Time { return time.Now().Add(time.Duration(p.shift.Load())) }, Random: p.random.Float64,
		RetryDelays: w.retryDelays, CallbackDelays: w.callbackDelays, BatchWait: w.batchWait, KeepAudio: w.keepAudio,
		Prober: engine{p}, TempDir: w.dir,
		EraseAtOnce: 1, // so that the order depends only on the seed
	}
	if os.Getenv("OTOGRAPH_TEST_LOG") != "" {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", p.name)
	}
	s, err := tasks.New(c)
	w.must(err)
	return s
}

// run runs the program's own loops for the process's role. The intervals
// between polls differ slightly, so that two polls rarely coincide.
func (p *process) run(ctx context.Context) error {
	w, own := p.world, time.Duration(p.number)*13*time.Microsecond
	beat := w.heartbeat + own
	switch p.role {
	case roleWorker:
		one, err := worker.New(p.service.Runs, worker.Config{
			Engine: engine{p}, Prober: engine{p}, TempDir: w.dir, ID: p.id(),
			Poll: w.poll + 3*own, Heartbeat: beat, Available: w.available,
		})
		if err != nil {
			return err
		}
		return one.Run(ctx)
	case roleFetcher:
		f, err := worker.NewFetcher(p.service.Runs, worker.FetcherConfig{HTTP: sources{p}, TempDir: w.dir, AtOnce: 1, MinBytes: 1, Poll: w.poll + 5*own, Heartbeat: beat})
		if err != nil {
			return err
		}
		return f.Run(ctx)
	case roleNotifier:
		n, err := webhook.NewNotifier(p.service.Outbox(), p.service.Queue(), webhook.NotifierConfig{HTTP: receivers{p}, AtOnce: 1, Poll: w.poll/2 + 7*own, Heartbeat: beat})
		if err != nil {
			return err
		}
		return n.Run(ctx)
	default:
		return tasks.NewMaintainer(p.service, tasks.MaintainerConfig{Interval: 8*time.Second + 11*own, CollectAfter: time.Minute, Collect: 10 * time.Minute}).Run(ctx)
	}
}

func (p *process) diskFull() bool { return time.Now().UnixNano() < p.full.Load() }

// id returns the process's name in the list of workers; a notifier chooses
// another one.
func (p *process) id() string {
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", p.number, p.world.seed%1e12)
}

// gone reports whether the process can no longer serve requests.
func (p *process) gone() bool { return p.dead.Load() || p.leaving.Load() }
