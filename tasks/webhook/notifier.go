package webhook

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/otograph/otograph/internal/backoff"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/tasks/queue"
)

// Doer makes outbound requests.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// NotifierConfig is what a Notifier works with. HTTP is required and must not follow redirects. Zero values of the rest
// are the service's rules.
type NotifierConfig struct {
	HTTP      Doer
	Version   string
	AtOnce    int           // deliveries at once; default 64
	PerHost   int           // of these, to one receiver; default 8
	Timeout   time.Duration // of one delivery; default 15 s
	Poll      time.Duration // between looks at an empty queue; default 250 ms
	Heartbeat time.Duration // default 5 s
	Grace     time.Duration // how long deliveries may go on when the notifier is asked to end; default 16 s
}

// Notifier delivers callbacks.
type Notifier struct {
	outbox *Outbox
	queue  *queue.Queue // where it keeps its heartbeat
	config NotifierConfig
}

// NewNotifier returns a notifier that delivers what is in o. It keeps a heartbeat in q.
func NewNotifier(o *Outbox, q *queue.Queue, c NotifierConfig) (*Notifier, error) {
	if c.HTTP == nil {
		return nil, errors.New("webhook: NotifierConfig needs HTTP")
	}
	setDefault(&c.AtOnce, 64)
	setDefault(&c.PerHost, 8)
	setDefault(&c.Timeout, 15*time.Second)
	setDefault(&c.Poll, 250*time.Millisecond)
	setDefault(&c.Heartbeat, 5*time.Second)
	setDefault(&c.Grace, 16*time.Second)
	return &Notifier{outbox: o, queue: q, config: c}, nil
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Run delivers until ctx is done; deliveries under way may end within Grace. A receiver that is slow holds no more than
// PerHost deliveries, so that the others go on.
func (n *Notifier) Run(ctx context.Context) error {
	o, log, id := n.outbox, n.outbox.config.Logger, uuid.NewString()
	stop, joined := n.queue.Join(ctx, queue.Member{ID: id, Kind: queue.Notifier, Version: n.config.Version}, n.config.Heartbeat, nil)
	if !joined {
		return nil
	}
	defer stop()
	deliver, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var wait sync.WaitGroup
	var mu sync.Mutex
	hosts := map[string]int{}
	slots := make(chan struct{}, n.config.AtOnce)
	wake := make(chan struct{}, 1)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		mu.Lock()
		var busy []string
		for host, count := range hosts {
			if count >= n.config.PerHost {
				busy = append(busy, host)
			}
		}
		mu.Unlock()
		d, err := o.Next(ctx, id, busy)
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "no callback claimed", "error", err)
		}
		if d == nil {
			<-slots
			pause := n.config.Poll
			if err != nil {
				pause = max(pause, time.Second)
			}
			timer := time.NewTimer(pause)
			select {
			case <-ctx.Done():
			case <-timer.C:
			case <-wake:
			}
			timer.Stop()
			continue
		}
		mu.Lock()
		hosts[d.host]++
		mu.Unlock()
		wait.Go(func() {
			failure := n.post(deliver, d)
			if failure == nil || deliver.Err() == nil { // an aborted delivery was not tried: the watch gives it back
				if err := backoff.Retry(deliver, db.Outage, func(ctx context.Context) error { return o.Note(ctx, d, failure) }); err != nil {
					log.ErrorContext(ctx, "outcome of a callback not written; it is sent again", "callback", d.ID, "task", d.TaskID, "error", err)
				}
			}
			if failure != nil {
				log.InfoContext(ctx, "callback not delivered", "callback", d.ID, "task", d.TaskID, "attempt", d.Attempts+1, "error", failure)
			} else {
				log.InfoContext(ctx, "callback delivered", "callback", d.ID, "task", d.TaskID, "attempt", d.Attempts+1)
			}
			mu.Lock()
			if hosts[d.host]--; hosts[d.host] == 0 {
				delete(hosts, d.host)
			}
			mu.Unlock()
			<-slots
			select {
			case wake <- struct{}{}:
			default:
			}
		})
	}
	drained := make(chan struct{})
	go func() {
		wait.Wait()
		close(drained)
	}()
	grace := time.NewTimer(n.config.Grace)
	defer grace.Stop()
	select {
	case <-drained:
	case <-grace.C:
		abort()
		<-drained
	}
	final, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if err := o.handBack(final, id); err != nil {
		log.WarnContext(ctx, "deliveries not handed back", "error", err)
	}
	return nil
}

// handBack returns what a notifier that ends still holds.
func (o *Outbox) handBack(ctx context.Context, id string) error {
	return o.wrap("hand back", o.config.DB.Write(ctx, func(tx *sql.Tx) error {
		_, err := o.Return(ctx, tx, id)
		return err
	}))
}

// post delivers once. Any 2xx is success.
func (n *Notifier) post(ctx context.Context, d *Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.body))
	if err != nil {
		return err
	}
	request.Header = Headers(d.ID, d.secret, d.body, n.outbox.now())
	response, err := n.config.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %s", response.Status)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // the answer is the status; reading on lets the connection be used again
	return nil
}
