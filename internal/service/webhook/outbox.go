// Package webhook stores callbacks until they are delivered, and delivers them.
// It keeps each account's hook, a receiver of the account's events.
//
// The callbacks table is the queue: a callback is written in the transaction
// that ends its task, claimed by a notifier under a fencing number, and sent
// until the receiver accepts it or its attempts are used up. All deliveries of
// a callback have the same id, body and signature.
package webhook

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/db"
)

// ErrNotFound is returned for a task that has no callback.
var ErrNotFound = errors.New("callback does not exist")

// Config holds an Outbox's dependencies and policy. All fields are required.
type Config struct {
	DB     *db.DB // migrated
	Clock  func() time.Time
	Logger *slog.Logger
	Delays []time.Duration // after the first, second … failed delivery
}

// Outbox is the queue of callbacks in one database. It is safe for concurrent
// use, by any number of processes.
type Outbox struct{ config Config }

// New returns the outbox of a migrated database.
func New(c Config) *Outbox { return &Outbox{config: c} }

func (o *Outbox) now() time.Time { return db.Time(db.Micros(o.config.Clock())) }

func (o *Outbox) wrap(what string, err error) error { return o.config.DB.Wrap("webhook: "+what, err) }

// Callback is one notification with the state of its delivery.
type Callback struct {
	ID                     string // the webhook-id of all its deliveries
	TaskID, AccountID, URL string
	Phase                  string // queued, running, delivered, given_up
	Attempts               int    // deliveries tried
	LastError              string
	CreatedAt, UpdatedAt   time.Time
}

// Message is a callback to be delivered.
type Message struct {
	TaskID, AccountID, URL string
	Secret                 string // "" leaves the deliveries unsigned
	Body                   []byte
	Warning                string // the value of the header Warning; "" for none
}

// Add writes a callback in the caller's transaction.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, m Message) error {
	return db.Do(ctx, tx, `INSERT INTO callbacks (id, task_id, account_id, url, host, secret, body, warning, phase, next_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', 0, $9, $9)`,
		"msg_"+db.NewID(), m.TaskID, m.AccountID, m.URL, queue.HostOf(m.URL), db.Optional(m.Secret), string(m.Body), m.Warning, db.Micros(o.now()))
}

// Withdraw is Drop, and returns a message with the account, URL and secret of
// the task's own callback; the zero Message if there is none.
func (o *Outbox) Withdraw(ctx context.Context, tx *sql.Tx, task string) (Message, error) {
	m := Message{TaskID: task}
	err := tx.QueryRowContext(ctx, "SELECT account_id, url, COALESCE(secret, '') FROM callbacks WHERE task_id = $1"+o.config.DB.ForUpdate(), task).Scan(&m.AccountID, &m.URL, &m.Secret)
	found, err := db.Found(err)
	if !found {
		m = Message{}
	}
	return m, errors.Join(err, o.Drop(ctx, tx, task))
}

// Drop removes a task's callback and the message about the task to its
// account's hook, in the caller's transaction, if any.
func (o *Outbox) Drop(ctx context.Context, tx *sql.Tx, task string) error {
	return db.Do(ctx, tx, "DELETE FROM callbacks WHERE task_id IN ($1, $2)", task, ofHook+task)
}

// Delivery is a callback claimed by a notifier.
type Delivery struct {
	Callback
	Claim   int64 // fencing number
	host    string
	secrets []string // each signs
	body    []byte
	warning string // value of the header of this name
}

// toHook reports whether the callback goes to its account's hook.
func (d *Delivery) toHook() bool { return strings.HasPrefix(d.TaskID, ofHook) }

// Busy lists the hosts and accounts not to be claimed for now.
type Busy struct {
	Hosts    []string
	Accounts []string // ids
}

// Next claims for worker a due callback that busy does not exclude. It returns
// nil if there is none. After an error, the commit may have succeeded, so that
// worker does not know of its claim; Return releases it.
func (o *Outbox) Next(ctx context.Context, worker string, busy Busy) (*Delivery, error) {
	now := o.now()
	where := "phase = 'queued' AND (next_at <= $1 OR next_at > $2)"
	args := db.Args{db.Micros(now), db.Micros(now.Add(backoff.Horizon(append(slices.Clip(o.config.Delays), longestRetryAfter)...)))}
	for _, host := range busy.Hosts {
		where += " AND host <> " + args.Add(host)
	}
	for _, account := range busy.Accounts {
		where += " AND account_id <> " + args.Add(account)
	}
	query := "SELECT id FROM callbacks WHERE " + where + " ORDER BY next_at, id LIMIT 1"
	var id string
	if found, err := db.Found(o.config.DB.Read().QueryRowContext(ctx, query, args...).Scan(&id)); !found {
		return nil, o.wrap("claim callback", err)
	}
	d, found := &Delivery{}, false
	err := o.config.DB.Write(ctx, func(tx *sql.Tx) (err error) {
		if found, err = db.Found(tx.QueryRowContext(ctx, query+o.config.DB.SkipLocked(), args...).Scan(&d.ID)); !found {
			return err
		}
		var own, hook, old string
		err = tx.QueryRowContext(ctx, `UPDATE callbacks SET phase = 'running', claim = claim + 1, worker_id = $2, updated_at = $3 WHERE id = $1
			RETURNING task_id, account_id, url, host, COALESCE(secret, ''), body, warning, claim, attempts,
				COALESCE((SELECT h.secret FROM hooks h WHERE h.account_id = callbacks.account_id), ''),
				COALESCE((SELECT h.old_secret FROM hooks h WHERE h.account_id = callbacks.account_id AND h.old_until > $3), '')`, d.ID, worker, db.Micros(now)).
			Scan(&d.TaskID, &d.AccountID, &d.URL, &d.host, &own, &d.body, &d.warning, &d.Claim, &d.Attempts, &hook, &old)
		if d.secrets = []string{own}; d.toHook() {
			d.secrets = slices.DeleteFunc([]string{hook, old}, func(secret string) bool { return secret == "" })
		}
		return err
	})
	if err != nil || !found {
		return nil, o.wrap("claim callback", err)
	}
	return d, nil
}

// Note records the outcome of a delivery; a nil failure is success. It changes
// nothing if the claim is no longer current. A hook whose receiver is gone is
// switched off.
func (o *Outbox) Note(ctx context.Context, d *Delivery, failure error) error {
	if d.toHook() && gone(failure) {
		if err := o.switchOff(ctx, d); err != nil {
			return err
		}
	}
	return o.wrap("note callback "+d.ID, o.config.DB.Write(ctx, func(tx *sql.Tx) error {
		now := o.now()
		var attempts int
		err := tx.QueryRowContext(ctx, "SELECT attempts FROM callbacks WHERE id = $1 AND claim = $2 AND phase = 'running'"+o.config.DB.ForUpdate(), d.ID, d.Claim).Scan(&attempts)
		if found, err := db.Found(err); !found { // deleted with its task, or claimed by another notifier
			return err
		}
		attempts++
		phase, next, message := "delivered", now, any(nil)
		if failure != nil {
			message = failure.Error()
			phase = "given_up"
			if delay, again := o.nextDelay(attempts, failure); again {
				phase, next = "queued", now.Add(delay)
			}
		}
		return db.Do(ctx, tx, "UPDATE callbacks SET phase = $2, attempts = $3, next_at = $4, last_error = $5, worker_id = NULL, updated_at = $6 WHERE id = $1",
			d.ID, phase, attempts, db.Micros(next), message, db.Micros(now))
	}))
}

// Return releases the deliveries that a notifier holds, except those in keep,
// and returns their number. They may have arrived, so they are sent again with
// the same id.
func (o *Outbox) Return(ctx context.Context, tx *sql.Tx, worker string, keep ...string) (int, error) {
	where, args := "worker_id = $1 AND phase = 'running'", db.Args{worker, db.Micros(o.now())}
	for _, id := range keep {
		where += " AND id <> " + args.Add(id)
	}
	result, err := tx.ExecContext(ctx, "UPDATE callbacks SET phase = 'queued', next_at = 0, worker_id = NULL, updated_at = $2 WHERE "+where, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Filter selects callbacks; the zero value selects all.
type Filter struct {
	TaskID string
	Phase  string // such as "given_up"
	Limit  int    // 0 is 100
}

// List returns callbacks, newest first.
func (o *Outbox) List(ctx context.Context, f Filter) ([]Callback, error) {
	where, args := "1 = 1", db.Args{}
	for column, value := range map[string]string{"task_id": f.TaskID, "phase": f.Phase} {
		if value != "" {
			where += " AND " + column + " = " + args.Add(value)
		}
	}
	list, err := db.Select(ctx, o.config.DB.Read(), func(row db.Row, c *Callback) error {
		return row.Scan(&c.ID, &c.TaskID, &c.AccountID, &c.URL, &c.Phase, &c.Attempts, &c.LastError, db.ScanTime(&c.CreatedAt), db.ScanTime(&c.UpdatedAt))
	}, fmt.Sprintf(`SELECT id, task_id, account_id, url, phase, attempts, COALESCE(last_error, ''), created_at, updated_at
		FROM callbacks WHERE %s ORDER BY created_at DESC, id DESC LIMIT %d`, where, cmp.Or(f.Limit, 100)), args...)
	return list, o.wrap("callbacks", err)
}

// Resend delivers a task's callback again, with the same id and body and the
// full number of attempts. A callback that is already in delivery is left
// alone. Errors wrap ErrNotFound.
func (o *Outbox) Resend(ctx context.Context, task string) error {
	return o.wrap("resend callback", o.config.DB.Write(ctx, func(tx *sql.Tx) error {
		var id, phase string
		err := tx.QueryRowContext(ctx, "SELECT id, phase FROM callbacks WHERE task_id = $1"+o.config.DB.ForUpdate(), task).Scan(&id, &phase)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: task %.40q", ErrNotFound, task)
		}
		if err != nil || phase == "queued" || phase == "running" {
			return err
		}
		return db.Do(ctx, tx, "UPDATE callbacks SET phase = 'queued', attempts = 0, next_at = 0, updated_at = $2 WHERE id = $1", id, db.Micros(o.now()))
	}))
}

// Retention of ended callbacks for List and Resend, with URLs and secrets.
const (
	keepDelivered = 7 * 24 * time.Hour
	keepGivenUp   = 30 * 24 * time.Hour
)

// Forget deletes callbacks that ended longer ago than their retention, and
// replaced secrets of hooks that no longer sign.
func (o *Outbox) Forget(ctx context.Context) error {
	for phase, age := range map[string]time.Duration{"delivered": keepDelivered, "given_up": keepGivenUp} {
		if _, err := o.config.DB.Exec(ctx, "DELETE FROM callbacks WHERE phase = $1 AND updated_at < $2", phase, db.Micros(o.now().Add(-age))); err != nil {
			return o.wrap("forget", err)
		}
	}
	_, err := o.config.DB.Exec(ctx, "UPDATE hooks SET old_secret = NULL, old_until = NULL WHERE old_until <= $1", db.Micros(o.now()))
	return o.wrap("forget", err)
}

// Headers returns the headers of one delivery: the specified X-Signature over
// the raw body, and the three of Standard Webhooks, whose signature also covers
// id and time. Without a secret nothing is signed. If the secret is "whsec_"
// followed by Base64, webhook-signature uses the decoded bytes, as Standard
// Webhooks defines; X-Signature always uses the secret's bytes as they are.
func Headers(id, secret string, body []byte, now time.Time) http.Header {
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
	h.Set("Webhook-Signature", signature(secret, id, stamp, body))
	return h
}

// hookHeaders returns the headers of one delivery to a hook: only the headers of
// Standard Webhooks, with a signature of each secret.
func hookHeaders(id string, secrets []string, body []byte, now time.Time) http.Header {
	h := Headers(id, "", body, now)
	var signatures []string
	for _, secret := range secrets {
		signatures = append(signatures, signature(secret, id, h.Get("Webhook-Timestamp"), body))
	}
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
	return h
}

// signature returns a signature of Standard Webhooks.
func signature(secret, id, stamp string, body []byte) string {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = raw
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
