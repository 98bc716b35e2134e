package webhook

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// NotifierConfig configures a Notifier. HTTP is required and must not follow
// redirects. Zero values of the other fields select the service's defaults.
type NotifierConfig struct {
	HTTP safehttp.Doer

	Version    string
	AtOnce     int           // concurrent deliveries; default 64
	PerHost    int           // concurrent deliveries to one host; default 8
	PerAccount int           // concurrent deliveries for one account; default 32
	Timeout    time.Duration // of one delivery; default 15 s
	Poll       time.Duration // between checks of an empty queue; default 250 ms
	Heartbeat  time.Duration // default 5 s
	Grace      time.Duration // time that deliveries may take to finish at shutdown; default 16 s
}

// Notifier delivers callbacks.
type Notifier struct {
	outbox *Outbox
	queue  *queue.Queue // keeps the heartbeat
	config NotifierConfig
}

// NewNotifier returns a notifier of o's callbacks with a heartbeat in q.
func NewNotifier(o *Outbox, q *queue.Queue, c NotifierConfig) (*Notifier, error) {
	if c.HTTP == nil {
		return nil, errors.New("webhook: NotifierConfig needs HTTP")
	}
	c.AtOnce = cmp.Or(c.AtOnce, 64)
	c.PerHost = cmp.Or(c.PerHost, 8)
	c.PerAccount = cmp.Or(c.PerAccount, 32)
	c.Timeout = cmp.Or(c.Timeout, 15*time.Second)
	c.Poll = cmp.Or(c.Poll, 250*time.Millisecond)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 16*time.Second)
	return &Notifier{outbox: o, queue: q, config: c}, nil
}

// Run delivers until ctx is done; deliveries in progress may end within Grace.
// A slow host occupies no more than PerHost slots, so that it does not block
// others, and the account with the fewest deliveries in progress is served
// first. Hosts that did not answer in time share half of the slots until they
// answer.
func (n *Notifier) Run(ctx context.Context) error {
	o, log, id := n.outbox, n.outbox.config.Logger, uuid.NewString()
	stop, joined := n.queue.Join(ctx, queue.Member{ID: id, Kind: queue.Notifier, Version: n.config.Version}, n.config.Heartbeat, nil)
	if !joined {
		return nil
	}
	defer stop()
	f := &deliveries{limits: n.config, under: map[string]*Delivery{}, slow: map[string]bool{}}
	pause := n.config.Poll
	queue.Loop[Delivery]{
		AtOnce: n.config.AtOnce, Grace: n.config.Grace,
		Claim: func(ctx context.Context) *Delivery {
			d, err := n.next(ctx, id, f)
			pause = n.config.Poll
			if err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "no callback claimed", "error", err)
				pause = max(pause, time.Second)
			}
			return d
		},
		Idle: func(ctx context.Context, freed <-chan struct{}) { backoff.Wait(ctx, pause, freed, nil) },
		Work: func(ctx context.Context, d *Delivery) { f.end(d, n.deliver(ctx, d, f)) },
	}.Run(ctx)
	final, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if err := o.handBack(final, id); err != nil {
		log.WarnContext(ctx, "deliveries not handed back", "error", err)
	}
	return nil
}

// next claims and begins a callback, after returning callbacks that this
// notifier may have claimed without confirmation.
func (n *Notifier) next(ctx context.Context, id string, f *deliveries) (d *Delivery, err error) {
	if f.unconfirmed.Swap(false) {
		f.mu.Lock()
		inProgress := slices.Collect(maps.Keys(f.under))
		f.mu.Unlock()
		err = n.outbox.handBack(ctx, id, inProgress...)
	}
	for share := 1; d == nil && err == nil; share = min(2*share, n.config.PerAccount) {
		busy := f.busy(share)
		d, err = n.outbox.Next(ctx, id, busy)
		if share == n.config.PerAccount || len(busy.Accounts) == 0 {
			break
		}
	}
	switch {
	case err != nil:
		f.unconfirmed.Store(true)
	case d != nil:
		f.mu.Lock()
		f.under[d.ID] = d
		f.mu.Unlock()
	}
	return d, err
}

// deliver attempts a claimed callback and reports whether it wrote the outcome.
func (n *Notifier) deliver(ctx context.Context, d *Delivery, f *deliveries) (written bool) {
	o, log := n.outbox, n.outbox.config.Logger.With("callback", d.ID, "task", d.TaskID)
	attempt, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	failure := n.post(attempt, d)
	var network net.Error // a receiver that did not answer in time
	slow := errors.Is(failure, context.DeadlineExceeded) || errors.As(failure, &network) && network.Timeout()
	f.answered(d, !slow)
	written = true
	if failure == nil || ctx.Err() == nil { // an aborted delivery does not count as an attempt: the watch returns it
		if err := backoff.Retry(ctx, db.Outage, func(ctx context.Context) error { return o.Note(ctx, d, failure) }); err != nil {
			written = false
			log.ErrorContext(ctx, "outcome of a callback not written; it is sent again", "error", err)
		}
	}
	if failure != nil {
		log.InfoContext(ctx, "callback not delivered", "attempt", d.Attempts+1, "cause", safehttp.Class(failure))
	} else {
		log.InfoContext(ctx, "callback delivered", "attempt", d.Attempts+1)
	}
	return written
}

func (o *Outbox) handBack(ctx context.Context, id string, keep ...string) error {
	return o.wrap("hand back", o.config.DB.Write(ctx, func(tx *sql.Tx) error {
		_, err := o.Return(ctx, tx, id, keep...)
		return err
	}))
}

// post delivers once. Any 2xx is success.
func (n *Notifier) post(ctx context.Context, d *Delivery) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.body))
	if err != nil {
		return err
	}
	if d.toHook() {
		request.Header = hookHeaders(d.ID, d.secrets, d.body, n.outbox.now())
	} else {
		request.Header = Headers(d.ID, d.secrets[0], d.body, n.outbox.now())
	}
	if d.warning != "" {
		request.Header.Set("Warning", d.warning)
	}
	response, err := n.config.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return &refusal{response.Status, response.StatusCode, retryAfter(response.Header, n.outbox.now())}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // only the status matters; reading the body lets the connection be reused
	return nil
}

// longestRetryAfter limits the delay that a receiver may ask for.
const longestRetryAfter = 15 * time.Minute

type refusal struct {
	status string
	code   int
	after  time.Duration // delay before the next delivery, if the receiver asks for one
}

func (r *refusal) Error() string { return "the receiver answered " + spec.Shorten(r.status) }

// retryAfter returns the delay that the header Retry-After asks for, in seconds
// or until a date, up to longestRetryAfter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestRetryAfter)
}

// nextDelay returns the delay after the n-th failed delivery: the schedule's or
// the receiver's, whichever is longer. It returns false if no delivery follows:
// after the last one, and if the receiver is gone (410).
func (o *Outbox) nextDelay(n int, failure error) (time.Duration, bool) {
	if n > len(o.config.Delays) || gone(failure) {
		return 0, false
	}
	delay := o.config.Delays[n-1]
	if r, refused := errors.AsType[*refusal](failure); refused {
		delay = max(delay, r.after)
	}
	return delay, true
}

// gone reports whether a receiver asks for no further messages.
func gone(failure error) bool {
	r, refused := errors.AsType[*refusal](failure)
	return refused && r.code == http.StatusGone
}

type deliveries struct {
	limits NotifierConfig

	unconfirmed atomic.Bool // a claim may have been committed, or an outcome may not, without confirmation

	mu    sync.Mutex
	under map[string]*Delivery // by the callback's id
	slow  map[string]bool      // hosts that did not answer in time
}

// mostSlow limits the remembered slow hosts.
const mostSlow = 1000

// busy returns the hosts and accounts that have their full share of deliveries
// in progress. perAccount is an account's share; slow hosts share half of all
// slots.
func (f *deliveries) busy(perAccount int) (busy Busy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts, accounts, slow := map[string]int{}, map[string]int{}, 0
	for _, d := range f.under {
		hosts[d.host]++
		accounts[d.AccountID]++
		if f.slow[d.host] {
			slow++
		}
	}
	busy.Hosts = atLeast(hosts, f.limits.PerHost)
	busy.Accounts = atLeast(accounts, perAccount)
	if slow >= max(1, f.limits.AtOnce/2) {
		busy.Hosts = slices.AppendSeq(busy.Hosts, maps.Keys(f.slow))
	}
	return busy
}

func atLeast(counts map[string]int, share int) (keys []string) {
	for key, count := range counts {
		if count >= share {
			keys = append(keys, key)
		}
	}
	return keys
}

func (f *deliveries) answered(d *Delivery, inTime bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inTime {
		delete(f.slow, d.host)
	} else if len(f.slow) < mostSlow {
		f.slow[d.host] = true
	}
}

// end removes a delivery. written is false if its outcome may not be written.
func (f *deliveries) end(d *Delivery, written bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, d.ID)
	if !written {
		f.unconfirmed.Store(true)
	}
}
