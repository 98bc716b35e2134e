package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

var (
	// ErrNoHook is returned for an account that has no hook.
	ErrNoHook = errors.New("the account has no hook")
	// ErrHook is returned for a hook that can't be set.
	ErrHook = errors.New("the hook is not set")
)

// Names of the events of budgets. A task's event is "task." and its status.
const (
	EventWarning = "budget.warning" // the month reached 80 % of the budget
	EventReached = "budget.reached" // the month reached the budget
)

// EventNames returns the names of the events that a hook can select.
func EventNames() []string {
	return []string{"task.done", "task.failed", "task.abandoned", EventWarning, EventReached}
}

// secretOverlap is how long a hook's replaced secret still signs.
const secretOverlap = 24 * time.Hour

// ofHook begins the task_id of a callback to the account's hook. The task's id
// or, for other events, the callback's own id follows.
const ofHook = "hook:"

// Hook is the receiver of an account's events. Its messages are callbacks whose
// body and signatures follow Standard Webhooks.
type Hook struct {
	URL       string        `json:"url"`
	Events    []string      `json:"events"`                          // from EventNames; empty after the receiver answered 410
	Budget    billing.Money `json:"budget,omitempty"`                // for a month; 0 means none
	Zone      string        `json:"timezone"`                        // IANA name; months begin in it
	Month     string        `json:"month,omitempty"`                 // this month, such as 2026-11; "" without a budget
	Spent     billing.Money `json:"spent"`                           // price of the tasks charged in Month, with resource packs
	OldSecret *time.Time    `json:"old_secret_expires_at,omitempty"` // until then the replaced secret also signs
	CreatedAt time.Time     `json:"created_at"`
	UpdatedAt time.Time     `json:"updated_at"`

	warned int64
}

// Check fills in a hook's defaults, or returns an error that begins with the
// wrong field and wraps ErrHook.
func (h *Hook) Check() error {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("url: must be an http or https URL: %w", ErrHook)
	}
	if len(h.Events) == 0 {
		h.Events = EventNames()
	}
	for i, name := range h.Events {
		if !slices.Contains(EventNames(), name) || slices.Contains(h.Events[:i], name) {
			return fmt.Errorf("events: must be some of %s, each once, not %q: %w", strings.Join(EventNames(), ", "), spec.Shorten(name), ErrHook)
		}
	}
	if h.Budget < 0 || h.Budget > mostBudget {
		return fmt.Errorf("budget: must be 0 to %s: %w", mostBudget.Number(), ErrHook)
	}
	h.Zone = cmp.Or(h.Zone, "UTC")
	if _, err := time.LoadLocation(h.Zone); err != nil || h.Zone == time.Local.String() {
		return fmt.Errorf("timezone: must be a name of the IANA database, such as Europe/Berlin, not %q: %w", spec.Shorten(h.Zone), ErrHook)
	}
	return nil
}

// Detail describes a hook for the audit log, without the URL: it may be secret.
func (h *Hook) Detail() string {
	return "events " + strings.Join(h.Events, " ") + ", budget " + h.Budget.Number()
}

// newSecret returns a random secret in the form of Standard Webhooks.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// SetHook sets the URL, events and budget of an account's hook, also for its
// waiting messages. It creates the hook if there is none: only then does it
// return the secret. A changed budget counts from the beginning of the month,
// and its warnings are sent anew. The error wraps ErrHook if it can't be set, or
// accounts.ErrSuspended.
func (o *Outbox) SetHook(ctx context.Context, account string, h Hook) (secret string, err error) {
	if err := h.Check(); err != nil {
		return "", err
	}
	err = o.config.DB.Write(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = $1"+o.config.DB.ForUpdate(), account).Scan(new(string)); err != nil {
			return err
		}
		fresh, now := newSecret(), o.now()
		if err := accounts.Permitted(ctx, tx, now, account, ""); err != nil { // it may be deleted, which removes its hook once
			return err
		}
		err := tx.QueryRowContext(ctx, `INSERT INTO hooks (account_id, url, events, secret, budget, timezone, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
			ON CONFLICT (account_id) DO UPDATE SET url = excluded.url, events = excluded.events, budget = excluded.budget, timezone = excluded.timezone,
			updated_at = excluded.updated_at,
			month = CASE WHEN hooks.events <> '' AND hooks.budget = excluded.budget AND hooks.timezone = excluded.timezone THEN hooks.month ELSE '' END RETURNING secret`,
			account, h.URL, strings.Join(h.Events, " "), fresh, h.Budget, h.Zone, db.Micros(now)).Scan(&secret)
		if err != nil {
			return err
		}
		if secret != fresh {
			secret = ""
		}
		if _, err := tx.ExecContext(ctx, "UPDATE callbacks SET url = $2, host = $3 WHERE account_id = $1 AND task_id LIKE '"+ofHook+"%'", account, h.URL, queue.HostOf(h.URL)); err != nil {
			return err
		}
		stored, err := o.read(ctx, tx, account, "")
		return errors.Join(err, o.spend(ctx, tx, account, stored, 0, now))
	})
	return secret, o.wrap("set hook", err)
}

// read returns an account's hook, locked if the clause says so. The error wraps
// ErrNoHook.
func (o *Outbox) read(ctx context.Context, from billing.Querier, account, lock string) (h Hook, err error) {
	var events string
	err = from.QueryRowContext(ctx, `SELECT url, events, budget, timezone, month, spent, warned, CASE WHEN old_until > $2 THEN old_until END, created_at, updated_at
		FROM hooks WHERE account_id = $1`+lock, account, db.Micros(o.now())).Scan(&h.URL, &events, &h.Budget, &h.Zone, &h.Month, &h.Spent, &h.warned,
		db.ScanOptionalTime(&h.OldSecret), db.ScanTime(&h.CreatedAt), db.ScanTime(&h.UpdatedAt))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoHook
	}
	h.Events = strings.Fields(events)
	return h, err
}

// Hook returns an account's hook. The error wraps ErrNoHook.
func (o *Outbox) Hook(ctx context.Context, account string) (Hook, error) {
	h, err := o.read(ctx, o.config.DB.Read(), account, "")
	if err == nil && h.Budget == 0 {
		h.Month, h.Spent = "", 0
	} else if err == nil {
		var m month
		if m, err = monthOf(h.Zone, o.now()); m.name > h.Month { // nothing was charged in this month yet
			h.Month, h.Spent = m.name, 0
		}
	}
	return h, o.wrap("hook", err)
}

// RotateSecret replaces the secret of an account's hook and returns the new
// one. The previous secret also signs for a day; an earlier one no longer does.
// The error wraps ErrNoHook.
func (o *Outbox) RotateSecret(ctx context.Context, account string) (secret string, err error) {
	secret = newSecret()
	changed, err := o.config.DB.Exec(ctx, "UPDATE hooks SET old_secret = secret, old_until = $2, secret = $3, updated_at = $4 WHERE account_id = $1",
		account, db.Micros(o.now().Add(secretOverlap)), secret, db.Micros(o.now()))
	if err == nil && changed == 0 {
		err = ErrNoHook
	}
	if err != nil {
		return "", o.wrap("rotate secret", err)
	}
	return secret, nil
}

// RemoveHook deletes an account's hook with its secrets and all its messages.
// The error wraps ErrNoHook.
func (o *Outbox) RemoveHook(ctx context.Context, account string) error {
	return o.wrap("remove hook", o.config.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := o.read(ctx, tx, account, o.config.DB.ForUpdate()); err != nil { // locked: Announce commits its message first
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM hooks WHERE account_id = $1", account); err != nil {
			return err
		}
		return db.Do(ctx, tx, "DELETE FROM callbacks WHERE account_id = $1 AND task_id LIKE '"+ofHook+"%'", account)
	}))
}

// switchOff lets a hook select no events, as Standard Webhooks requires after a
// 410, unless the hook has a new URL. Setting the hook selects them again.
func (o *Outbox) switchOff(ctx context.Context, d *Delivery) error {
	off, err := o.config.DB.Exec(ctx, "UPDATE hooks SET events = '', updated_at = $3 WHERE account_id = $1 AND url = $2 AND events <> ''", d.AccountID, d.URL, db.Micros(o.now()))
	if off > 0 {
		o.config.Logger.WarnContext(ctx, "hook is switched off: its receiver answered 410 Gone", "account", d.AccountID)
	}
	return o.wrap("switch hook off", err)
}

// Announce queues an event of a task for the account's hook, in the transaction
// of the event, which, if charged is not zero, has charged the account and
// holds its lock. An account without a hook that selects the event is ignored.
func (o *Outbox) Announce(ctx context.Context, tx *sql.Tx, account, task, event string, data any, charged billing.Receipt) error {
	h, err := o.read(ctx, tx, account, o.config.DB.ForUpdate())
	if errors.Is(err, ErrNoHook) {
		return nil
	}
	if price := charged.Quote.Total; err == nil && price > 0 {
		err = o.spend(ctx, tx, account, h, price, charged.SettledAt)
	}
	return errors.Join(err, o.send(ctx, tx, account, h, ofHook+task, event, data))
}

// send queues an event for a hook that selects it.
func (o *Outbox) send(ctx context.Context, tx *sql.Tx, account string, h Hook, occasion, event string, data any) error {
	if !slices.Contains(h.Events, event) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"type": event, "timestamp": o.now().UTC().Format(spec.TimeFormat), "data": data})
	if err != nil {
		return err
	}
	return o.Add(ctx, tx, Message{TaskID: occasion, AccountID: account, URL: h.URL, Body: body})
}
