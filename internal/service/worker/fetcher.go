package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// MaxRedirects is the number of redirects that a download follows.
const MaxRedirects = 5

// FetcherConfig configures a Fetcher. HTTP is required; zero values of the
// other fields select the service's defaults.
type FetcherConfig struct {
	HTTP safehttp.Doer // follows up to MaxRedirects redirects
	// Check checks the first 64 KiB of a source, or all of a smaller one; an
	// error that is marked permanent ends the task before the rest is fetched.
	Check   func(filename string, head []byte) error
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
	Slow       time.Duration // how long a source need not reach Rate; default 30 s
	Rate       int64         // minimum rate after that, in bytes per second; default 8 KiB
	Stall      time.Duration // longest silence of a source; default 1 min
	Pause      time.Duration // before a dropped download is resumed; default 1 s
	Resumes    int           // how often a download is resumed; default 5
	MinBytes   int64         // of audio; default 1 KB
	MaxBytes   int64         // of audio; default 2 GB
	Poll       time.Duration // the longest time between checks of an empty queue; default 250 ms on SQLite, 5 s on PostgreSQL
	Heartbeat  time.Duration // default 5 s
	Grace      time.Duration // time that downloads may take to finish at shutdown; default 15 s
}

// Fetcher downloads the audio of tasks that name a URL, before a worker claims
// them. Accounts take turns, and neither one account nor one host gets more
// than its share of the slots.
type Fetcher struct {
	service *tasks.Runs
	config  FetcherConfig
	id      string

	breaker *breaker // the claiming goroutine's

	unconfirmed atomic.Bool // the queue may have claims that this fetcher does not know

	mu   sync.Mutex
	held map[string]*fetching // by task
	part Part                 // failed since the last claim; "" for none
}

// fetching is a claim in progress.
type fetching struct {
	claim  *tasks.Claim
	host   string
	cancel context.CancelCauseFunc // has no effect before the work begins
}

var errFetchLimit = errors.New("the download exceeded its time limit")

// NewFetcher returns a fetcher for a service.
func NewFetcher(s *tasks.Runs, c FetcherConfig) (*Fetcher, error) {
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
	c.Resumes = cmp.Or(c.Resumes, 5)
	c.MinBytes = cmp.Or(c.MinBytes, spec.MinAudioBytes)
	c.MaxBytes = cmp.Or(c.MaxBytes, spec.MaxAudioBytes)
	c.Poll = cmp.Or(c.Poll, defaultPoll(s))
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 15*time.Second)
	id := uuid.NewString()
	return &Fetcher{
		service: s, config: c, id: id, held: map[string]*fetching{},
		breaker: &breaker{service: s, id: id, dir: c.TempDir, report: c.Outage},
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
	queue.Loop[fetching]{
		AtOnce: f.config.AtOnce, Grace: f.config.Grace, Claim: f.claim,
		Idle: func(ctx context.Context, freed <-chan struct{}) {
			if f.breaker.part == "" {
				idle(ctx, s, f.config.Poll, wake, freed)
			}
		},
		Work: f.work,
	}.Run(ctx)
	return nil
}

// claim claims a download, after handing back claims unknown to the fetcher.
func (f *Fetcher) claim(ctx context.Context) *fetching {
	f.mu.Lock()
	part := f.part // the resource whose failure ended a download; reported once
	f.part = ""
	f.mu.Unlock()
	if part != "" {
		f.breaker.open(part)
	}
	if !f.breaker.wait(ctx) {
		return nil
	}
	busy, inProgress := f.busy()
	c, err := f.breaker.claim(ctx, f.unconfirmed.Swap(false), inProgress, func() (*tasks.Claim, error) { return f.service.NextFetch(ctx, f.id, busy) })
	if err != nil {
		f.unconfirmed.Store(true)
	}
	if c == nil {
		return nil
	}
	d := &fetching{claim: c, host: queue.HostOf(c.URL), cancel: func(error) {}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[c.ID] = d
	return d
}

// busy returns hosts and accounts not to be claimed, and tasks in progress.
func (f *Fetcher) busy() (busy queue.Busy, inProgress []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	accounts, hosts := map[string]int{}, map[string]int{}
	for task, d := range f.held {
		inProgress = append(inProgress, task)
		if accounts[d.claim.AccountID]++; accounts[d.claim.AccountID] == f.config.PerAccount {
			busy.Accounts = append(busy.Accounts, d.claim.AccountID)
		}
		if hosts[d.host]++; hosts[d.host] == f.config.PerHost {
			busy.Hosts = append(busy.Hosts, d.host)
		}
	}
	busy.Ahead = f.config.Ahead
	return busy, inProgress
}

// dropSuperseded ends the downloads of tasks that were canceled, deleted, or
// claimed by other members.
func (f *Fetcher) dropSuperseded(ctx context.Context) {
	f.mu.Lock()
	held := slices.Collect(maps.Values(f.held))
	f.mu.Unlock()
	for _, d := range held {
		if still, err := f.service.Queue().Current(ctx, d.claim.Held); err == nil && !still {
			f.mu.Lock()
			d.cancel(queue.ErrSuperseded)
			f.mu.Unlock()
		}
	}
}

// work downloads the audio of one claim.
func (f *Fetcher) work(ctx context.Context, d *fetching) {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mu.Lock()
	d.cancel = cancel
	f.mu.Unlock()
	written := f.download(run, d.claim)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, d.claim.ID)
	if !written {
		f.unconfirmed.Store(true) // after the deletion: the claim will be handed back
	}
}

// download downloads a claim's audio and reports whether its end was recorded.
func (f *Fetcher) download(run context.Context, c *tasks.Claim) (written bool) {
	s, log := f.service, f.service.Config.Logger
	log.InfoContext(run, "download begins", "task", c.ID, "account", c.AccountID, "attempt", c.Held.Attempt, "fetcher", f.id)
	begun := time.Now()
	size, err := f.fetch(run, c)
	if err == nil {
		log.InfoContext(run, "download done", "task", c.ID, "account", c.AccountID, "attempt", c.Held.Attempt, "bytes", size, "seconds", time.Since(begun).Seconds())
		return true
	}
	cause := context.Cause(run)
	if errors.Is(err, queue.ErrSuperseded) || errors.Is(cause, queue.ErrSuperseded) {
		log.WarnContext(run, "claim superseded: the download is dropped", "task", c.ID, "attempt", c.Held.Attempt, "fetcher", f.id)
		return true
	}
	how, message := endOf(err, cause)
	if how == tasks.EndOutage {
		f.mu.Lock()
		f.part = partOf(err, PartStore)
		f.mu.Unlock()
	}
	log.WarnContext(run, "download failed", "task", c.ID, "attempt", c.Held.Attempt, "cause", how.String(), "kind", safehttp.Class(err))
	if err := release(run, s, c, how, message, lastWrite); err != nil {
		log.ErrorContext(run, "end of a download not written; the task is handed back", "task", c.ID, "error", err)
		return false
	}
	return true
}

// fetch downloads the audio of a claim into the file store, hands the task to
// the workers, and returns the audio's size.
func (f *Fetcher) fetch(ctx context.Context, c *tasks.Claim) (size int64, err error) {
	s := f.service
	key := tasks.AudioKey(c.AudioFilename)
	limited, done := context.WithTimeoutCause(ctx, f.config.Limit, fmt.Errorf("%w of %s", errFetchLimit, f.config.Limit))
	defer done()
	info, err := fetchAudio(limited, &f.config, s.Config.Blobs, c.URL, key, c.AudioFilename)
	if err != nil {
		return 0, err
	}
	seconds := 0.0 // the worker will determine the length
	if s.Config.Blobs.Folder() || info.Size <= lookBytes {
		seconds = s.Length(limited, c.AccountID, info.Key, c.AudioFilename)
	}
	if seconds > spec.MaxAudioSeconds { // the worker will refuse the audio
		seconds = 0
	}
	err = backoff.Retry(ctx, tasks.Outage, func(ctx context.Context) error { return s.Fetched(ctx, c, info, seconds) })
	if errors.Is(err, queue.ErrSuperseded) {
		s.DropAudio(ctx, key)
	}
	return info.Size, err
}

// lookBytes is the size of the largest download that is read again, from a
// store other than a folder, to determine its length.
const lookBytes = 32 << 20
