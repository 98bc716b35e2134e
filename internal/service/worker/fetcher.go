package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// MaxRedirects is the number of redirects that the download of an audio_url
// follows.
const MaxRedirects = 5

// FetcherConfig configures a Fetcher. HTTP is required; zero values of the
// other fields select the service's defaults.
type FetcherConfig struct {
	HTTP safehttp.Doer // follows up to MaxRedirects redirects
	// Check checks the first 64 KiB of a source, or all of a smaller one; an
	// error that is marked permanent ends the task before the rest is fetched.
	Check func(filename string, head []byte) error
	// Prober determines the length of downloads, so that their price is held
	// immediately; nil leaves that to the workers. Files in a folder store are
	// always probed; files in other stores only if they are small enough to be
	// read again.
	Prober  tasks.Prober
	Version string // of the program, for the list of members
	TempDir string // on the disk that is probed after a failure; "" is the system's
	// Outage is called when a resource fails, with the time since which
	// nothing is claimed, and with the zero time when it works again.
	Outage func(part Part, since time.Time)

	AtOnce     int           // concurrent downloads; default 32
	PerAccount int           // concurrent downloads for one account; default 4
	PerHost    int           // concurrent downloads from one host; default 8
	Ahead      int           // fetched tasks of an account that may wait for a worker; default 64
	Limit      time.Duration // of one attempt; default 1 hour
	Slow       time.Duration // how long a source may send less than Rate; default 30 s
	Rate       int64         // bytes a second that a source must send; default 8 KiB
	Stall      time.Duration // longest silence of a source; default 1 min
	Pause      time.Duration // before a dropped download is resumed; default 1 s
	MinBytes   int64         // of audio; default 1 KB
	MaxBytes   int64         // of audio; default 2 GB
	MaxSeconds float64       // of audio whose price is held; default 5 hours, as for workers
	Poll       time.Duration // the longest time between checks of an empty queue; default 250 ms on SQLite, 5 s on PostgreSQL
	Heartbeat  time.Duration // default 5 s
	Grace      time.Duration // time that downloads may take to finish at shutdown; default 15 s
}

// Fetcher downloads the audio of tasks that name a URL, before a worker claims
// them. Accounts take turns, and neither one account nor one host gets more
// than its share of the slots.
type Fetcher struct {
	service *tasks.Service
	config  FetcherConfig
	id      string

	slots   chan struct{} // holds a value for each slot in use
	freed   chan struct{} // receives when a slot becomes free
	probing chan struct{} // holds a value for each recording being probed
	claims  chan struct{} // holds a value during a claim, so that the busy lists stay valid
	offers  sync.Mutex    // held while a slot is offered to a task that is being accepted

	places sync.WaitGroup // downloads under way

	mu          sync.Mutex
	held        map[string]fetching // by task
	unconfirmed bool                // claims may have been committed without confirmation
	part        Part                // failed since the last claim; "" for none
	closed      bool                // no further claims: a resource failed, or the fetcher is stopping
}

type fetching struct {
	claim  *tasks.Claim
	host   string
	cancel context.CancelCauseFunc
}

var errFetchLimit = errors.New("the download exceeded its time limit")

// NewFetcher returns a fetcher for a service.
func NewFetcher(s *tasks.Service, c FetcherConfig) (*Fetcher, error) {
	if c.HTTP == nil {
		return nil, errors.New("worker: FetcherConfig needs HTTP")
	}
	if c.Outage == nil {
		c.Outage = func(Part, time.Time) {}
	}
	c.AtOnce = cmp.Or(c.AtOnce, 32)
	c.PerAccount = cmp.Or(c.PerAccount, 4)
	c.PerHost = cmp.Or(c.PerHost, 8)
	c.Ahead = cmp.Or(c.Ahead, 64)
	c.Limit = cmp.Or(c.Limit, time.Hour)
	c.Slow = cmp.Or(c.Slow, 30*time.Second)
	c.Rate = cmp.Or(c.Rate, 8<<10)
	c.Stall = cmp.Or(c.Stall, time.Minute)
	c.Pause = cmp.Or(c.Pause, time.Second)
	c.MinBytes = cmp.Or(c.MinBytes, spec.MinAudioBytes)
	c.MaxBytes = cmp.Or(c.MaxBytes, spec.MaxAudioBytes)
	c.MaxSeconds = cmp.Or(c.MaxSeconds, spec.MaxAudioSeconds)
	c.Poll = cmp.Or(c.Poll, defaultPoll(s))
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 15*time.Second)
	return &Fetcher{
		service: s, config: c, id: uuid.NewString(), held: map[string]fetching{}, closed: true,
		slots: make(chan struct{}, c.AtOnce), freed: make(chan struct{}, 1), probing: make(chan struct{}, runtime.GOMAXPROCS(0)), claims: make(chan struct{}, 1),
	}, nil
}

// Run downloads until ctx is done; downloads in progress may end within Grace,
// the others are handed back.
func (f *Fetcher) Run(ctx context.Context) error {
	s := f.service
	stop, joined := s.Queue().Join(ctx, queue.Member{ID: f.id, Kind: queue.Fetcher, Version: f.config.Version}, f.config.Heartbeat, f.dropSuperseded)
	if !joined {
		return nil
	}
	defer stop()
	wake := s.Queue().Wakeups(ctx)
	claiming := &breaker{service: s, id: f.id, dir: f.config.TempDir, report: f.config.Outage}
	defer s.Downloads(f)()
	for {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
		}
		if part := f.takeOutage(); part != "" {
			claiming.open(part)
		}
		if ctx.Err() != nil || !claiming.wait(ctx) {
			break
		}
		f.close(false)
		c, err := f.claim(ctx)
		if err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "no download claimed", "fetcher", f.id, "error", err)
			claiming.open(partOf(err, PartDatabase))
			f.close(true)
		}
		if c == nil {
			<-f.slots
			if err == nil {
				idle(ctx, s, f.config.Poll, wake, f.freed)
			}
			continue
		}
		f.places.Go(func() { f.place(context.WithoutCancel(ctx), c) })
	}
	f.close(true)
	defer time.AfterFunc(f.config.Grace, func() { f.cancelAll(errDraining) }).Stop()
	f.places.Wait()
	return nil
}

// place downloads a claimed task's audio, then that task's successor for as
// long as each end claims another. The claims are already recorded.
func (f *Fetcher) place(ctx context.Context, c *tasks.Claim) {
	for c != nil {
		run, cancel := context.WithCancelCause(ctx)
		f.mu.Lock()
		f.held[c.ID] = fetching{c, tasks.HostOf(c.URL), cancel}
		f.mu.Unlock()
		next := f.work(run, c)
		cancel(nil)
		f.mu.Lock()
		delete(f.held, c.ID)
		f.mu.Unlock()
		c = next
	}
	f.leave()
}

func (f *Fetcher) leave() {
	<-f.slots
	backoff.Signal(f.freed)
}

// Offer implements tasks.Downloader: a free slot goes to a download that is
// claimed in the transaction that accepts its task.
func (f *Fetcher) Offer(ctx context.Context) (then queue.NextClaim, taken func(c *tasks.Claim, err error)) {
	if !f.reserve(ctx) {
		return nil, nil
	}
	taken = func(c *tasks.Claim, err error) {
		if err != nil {
			f.claimsUnconfirmed()
		}
		f.hold(c)
		<-f.claims
		f.offers.Unlock()
		if c == nil {
			f.leave()
			f.places.Done()
			return
		}
		go func() {
			defer f.places.Done()
			f.place(context.WithoutCancel(ctx), c)
		}()
	}
	busy, _ := f.busy("")
	then, err := f.service.Queue().NextFetchClaim(ctx, f.id, busy, true)
	if then == nil || err != nil { // the acceptance would meet the same error
		taken(nil, nil)
		return nil, nil
	}
	return then, taken
}

// reserve takes a slot and the right to claim, for one acceptance at a time;
// other acceptances leave their tasks to the queue immediately. It returns
// false if there is no free slot, or while claims are suspended.
func (f *Fetcher) reserve(ctx context.Context) bool {
	if !f.offers.TryLock() {
		return false
	}
	select {
	case f.slots <- struct{}{}:
	default:
		f.offers.Unlock()
		return false
	}
	select {
	case f.claims <- struct{}{}:
	case <-ctx.Done():
		<-f.slots
		f.offers.Unlock()
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.claimsMore() {
		<-f.claims
		<-f.slots
		f.offers.Unlock()
		return false
	}
	f.places.Add(1) // under the lock: Run closes the fetcher before it waits
	return true
}

// claimsMore reports whether further downloads may be claimed when a download
// ends or when a task is accepted here. The caller holds the lock.
func (f *Fetcher) claimsMore() bool { return !f.closed && !f.unconfirmed && f.part == "" }

// claim claims a download, after handing back claims that this fetcher may hold
// without knowing.
func (f *Fetcher) claim(ctx context.Context) (*tasks.Claim, error) {
	f.claims <- struct{}{}
	defer func() { <-f.claims }()
	busy, known := f.busy("")
	f.mu.Lock()
	unheard := f.unconfirmed
	f.unconfirmed = false
	f.mu.Unlock()
	var c *tasks.Claim
	var err error
	if unheard {
		err = f.service.HandBack(ctx, f.id, known...)
	}
	if err == nil {
		c, err = f.service.NextFetch(ctx, f.id, busy)
	}
	if err != nil {
		f.claimsUnconfirmed()
	}
	f.hold(c)
	return c, err
}

// fetched records the downloaded audio and claims the next download for the
// same slot, if there is one and the fetcher is not stopping.
func (f *Fetcher) fetched(ctx context.Context, c *tasks.Claim, audio blob.Info, seconds float64) (next *tasks.Claim, err error) {
	f.claims <- struct{}{}
	defer func() { <-f.claims }()
	f.mu.Lock()
	more := f.claimsMore()
	f.mu.Unlock()
	if more {
		busy, _ := f.busy(c.ID)
		next, err = f.service.FetchedNext(ctx, c, audio, seconds, f.id, busy)
		if err != nil && !errors.Is(err, queue.ErrSuperseded) {
			f.claimsUnconfirmed()
		}
	} else {
		err = f.service.Fetched(ctx, c, audio, seconds)
	}
	f.hold(next)
	return next, err
}

func (f *Fetcher) hold(c *tasks.Claim) {
	if c == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[c.ID] = fetching{c, tasks.HostOf(c.URL), func(error) {}}
}

// close sets whether ends of downloads claim further downloads.
func (f *Fetcher) close(closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = closed
}

// claimsUnconfirmed records that the queue may have claims of this fetcher that
// it does not know of.
func (f *Fetcher) claimsUnconfirmed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unconfirmed = true
}

// busy returns the hosts and accounts that must not be claimed for now, and the
// tasks in progress. The slot of the task done counts as free.
func (f *Fetcher) busy(done string) (busy queue.Busy, known []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	accounts, hosts := map[string]int{}, map[string]int{}
	for task, d := range f.held {
		known = append(known, task)
		if task == done {
			continue
		}
		if accounts[d.claim.AccountID]++; accounts[d.claim.AccountID] == f.config.PerAccount {
			busy.Accounts = append(busy.Accounts, d.claim.AccountID)
		}
		if hosts[d.host]++; hosts[d.host] == f.config.PerHost {
			busy.Hosts = append(busy.Hosts, d.host)
		}
	}
	busy.Ahead = f.config.Ahead
	return busy, known
}

// takeOutage returns the resource whose failure a download found, once, and
// then closes the fetcher.
func (f *Fetcher) takeOutage() Part {
	f.mu.Lock()
	defer f.mu.Unlock()
	part := f.part
	f.part = ""
	f.closed = f.closed || part != ""
	return part
}

// dropSuperseded ends the downloads of tasks that were canceled or deleted, or
// that other members have claimed.
func (f *Fetcher) dropSuperseded(ctx context.Context) {
	f.mu.Lock()
	held := slices.Collect(maps.Values(f.held))
	f.mu.Unlock()
	for _, d := range held {
		if still, err := f.service.Queue().Current(ctx, d.claim.Held); err == nil && !still {
			d.cancel(queue.ErrSuperseded)
		}
	}
}

func (f *Fetcher) cancelAll(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.held {
		d.cancel(cause)
	}
}

// work downloads the audio of one claim and records how that ended. It returns
// the claim made with the end, if any.
func (f *Fetcher) work(run context.Context, c *tasks.Claim) (next *tasks.Claim) {
	s, log := f.service, f.service.Logger
	log.InfoContext(run, "download begins", "task", c.ID, "account", c.AccountID, "attempt", c.Held.Attempt, "fetcher", f.id)
	begun := time.Now()
	size, next, err := f.fetch(run, c)
	if err == nil {
		log.InfoContext(run, "download done", "task", c.ID, "account", c.AccountID, "attempt", c.Held.Attempt, "bytes", size, "seconds", time.Since(begun).Seconds())
		return next
	}
	cause := context.Cause(run)
	how, message := tasks.EndRecoverable, messageOf(err)
	switch {
	case errors.Is(err, queue.ErrSuperseded) || errors.Is(cause, queue.ErrSuperseded):
		log.WarnContext(run, "claim superseded: the download is dropped", "task", c.ID, "attempt", c.Held.Attempt, "fetcher", f.id)
		return nil
	case errors.Is(cause, errDraining):
		how, message = tasks.EndHandedBack, errDraining.Error()
	case ours(err):
		how = tasks.EndOutage
		f.mu.Lock()
		f.part = partOf(err, PartStore)
		f.mu.Unlock()
	case spec.IsPermanent(err):
		how = tasks.EndPermanent
	}
	log.WarnContext(run, "download failed", "task", c.ID, "attempt", c.Held.Attempt, "error", err, "cause", fmt.Sprint(safehttp.Cause(err)))
	if err := release(run, s, c, how, message, lastWrite); err != nil {
		log.ErrorContext(run, "end of a download not written; the task is handed back", "task", c.ID, "error", err)
		f.claimsUnconfirmed()
	}
	return nil
}

// fetch downloads the audio of a claim into the file store, hands the task to
// the workers, and returns the audio's size and the next claim.
func (f *Fetcher) fetch(ctx context.Context, c *tasks.Claim) (size int64, next *tasks.Claim, err error) {
	s := f.service
	key := tasks.AudioKey(c.AudioFilename)
	limits := fetchLimits{min: f.config.MinBytes, max: f.config.MaxBytes, resumes: 5, pause: f.config.Pause, stall: f.config.Stall, grace: f.config.Slow, rate: f.config.Rate}
	if f.config.Check != nil {
		limits.check = func(head []byte) error { return f.config.Check(c.AudioFilename, head) }
	}
	limited, done := context.WithTimeoutCause(ctx, f.config.Limit, fmt.Errorf("%w of %s", errFetchLimit, f.config.Limit))
	defer done()
	info, err := fetchAudio(limited, f.config.HTTP, s.Blobs, c.URL, key, limits)
	if err != nil {
		return 0, nil, err
	}
	seconds := f.probe(limited, c, info)
	err = backoff.Retry(ctx, tasks.Outage, func(ctx context.Context) (err error) {
		next, err = f.fetched(ctx, c, info, seconds)
		return err
	})
	if errors.Is(err, queue.ErrSuperseded) {
		s.DropAudio(ctx, key)
	}
	return info.Size, next, err
}

const (
	lookTimeout = 30 * time.Second // limits the probe of one recording
	lookBytes   = 32 << 20         // the largest recording that is read again from a store that is no folder
)

// probe returns the length of a recording in seconds. It returns 0 to leave
// that to the worker, whose verdict on unreadable or overlong recordings
// decides.
func (f *Fetcher) probe(ctx context.Context, c *tasks.Claim, audio blob.Info) float64 {
	blobs := f.service.Blobs
	if f.config.Prober == nil || (!blobs.Folder() && audio.Size > lookBytes) || ctx.Err() != nil {
		return 0
	}
	ctx, done := context.WithTimeout(ctx, lookTimeout)
	defer done()
	select {
	case f.probing <- struct{}{}:
		defer func() { <-f.probing }()
	case <-ctx.Done():
		return 0
	}
	path, release, err := blobs.Local(ctx, audio.Key, f.config.TempDir)
	seconds := 0.0
	if err == nil {
		defer release()
		seconds, err = f.config.Prober.Probe(ctx, path, c.AudioFilename)
	}
	if err != nil {
		f.service.Logger.DebugContext(ctx, "download not probed", "task", c.ID, "error", err)
		return 0
	}
	if !(seconds >= 0 && seconds <= f.config.MaxSeconds) {
		return 0
	}
	return seconds
}
