package tasks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// NotifierConfig is what a Notifier works with. HTTP is required and must not follow redirects. Zero values of the rest
// are the service's rules.
type NotifierConfig struct {
	HTTP      HTTPDoer
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
	service *Service
	config  NotifierConfig
}

// NewNotifier returns a notifier over a service.
func NewNotifier(s *Service, c NotifierConfig) (*Notifier, error) {
	if c.HTTP == nil {
		return nil, errors.New("tasks: NotifierConfig needs HTTP")
	}
	setDefault(&c.AtOnce, 64)
	setDefault(&c.PerHost, 8)
	setDefault(&c.Timeout, 15*time.Second)
	setDefault(&c.Poll, 250*time.Millisecond)
	setDefault(&c.Heartbeat, 5*time.Second)
	setDefault(&c.Grace, 16*time.Second)
	return &Notifier{service: s, config: c}, nil
}

// Run delivers until ctx is done; deliveries under way may end within Grace. A receiver that is slow holds no more than
// PerHost deliveries, so that the others go on.
func (n *Notifier) Run(ctx context.Context) error {
	s, id := n.service, uuid.NewString()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		stop, err := s.keepBeating(ctx, newMember(id, kindNotifier, "", n.config.Version, ""), n.config.Heartbeat, nil)
		if err == nil {
			defer stop()
			break
		}
		s.log.WarnContext(ctx, "notifier waits for the database", "error", err)
		if !sleep(ctx, pause) {
			return nil
		}
	}
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
		d, err := s.nextCallback(ctx, id, busy)
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "no callback claimed", "error", err)
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
				if err := persist(deliver, func(ctx context.Context) error { return s.delivered(ctx, d, failure) }); err != nil {
					s.log.ErrorContext(ctx, "outcome of a callback not written; it is sent again", "callback", d.ID, "task", d.TaskID, "error", err)
				}
			}
			if failure != nil {
				s.log.InfoContext(ctx, "callback not delivered", "callback", d.ID, "task", d.TaskID, "attempt", d.Attempts+1, "error", failure)
			} else {
				s.log.InfoContext(ctx, "callback delivered", "callback", d.ID, "task", d.TaskID, "attempt", d.Attempts+1)
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
	if _, err := s.reap(final, id, endHandedBack, errDraining.Error()); err != nil {
		s.log.WarnContext(ctx, "deliveries not handed back", "error", err)
	}
	return nil
}

// post delivers once. Any 2xx is success.
func (n *Notifier) post(ctx context.Context, d *delivery) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.body))
	if err != nil {
		return err
	}
	request.Header = CallbackHeaders(d.ID, d.secret, d.body, n.service.now())
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

// CallbackHeaders returns the headers of one delivery: the specified X-Signature over the raw body, and the three of
// Standard Webhooks, whose signature covers id and time too. Without a secret nothing is signed. A secret that begins with
// "whsec_" and is Base64 after that is used as Standard Webhooks says for webhook-signature; X-Signature always takes the
// secret's bytes as they are.
func CallbackHeaders(id, secret string, body []byte, now time.Time) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Otograph-Callback/1")
	stamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	if secret == "" {
		return h
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	h.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = raw
		}
	}
	mac = hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}
