package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/db"
)

// TimeFormat is how times are written to customers: RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// Callback is one notification and how far its delivery is.
type Callback struct {
	ID        string // the webhook-id of all its deliveries
	TaskID    string
	AccountID string
	URL       string
	Phase     string // queued, running, delivered, given_up
	Attempts  int    // deliveries tried
	LastError string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// announce writes the callback of a task that has just become final, body and all, into the same transaction.
func (s *Service) announce(ctx context.Context, tx *sql.Tx, r row) error {
	var finished *string
	if r.FinishedAt != nil {
		text := r.FinishedAt.Format(TimeFormat)
		finished = &text
	}
	body, err := json.Marshal(struct {
		TaskID       string  `json:"task_id"`
		Status       Status  `json:"status"`
		CreatedAt    string  `json:"created_at"`
		FinishedAt   *string `json:"finished_at"`
		ErrorMessage *string `json:"error_message"`
	}{r.ID, r.Status, r.CreatedAt.Format(TimeFormat), finished, r.ErrorMessage})
	if err != nil {
		return err
	}
	id, err := newID("msg_")
	if err != nil {
		return err
	}
	host := r.callbackURL.String
	if u, err := url.Parse(host); err == nil {
		host = strings.ToLower(u.Host)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO callbacks (id, task_id, account_id, url, host, secret, body, phase, next_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', 0, $8, $8)`,
		id, r.ID, r.AccountID, r.callbackURL.String, host, r.callbackSecret, string(body), db.Micros(s.now()))
	return err
}

// delivery is a callback in a notifier's hands.
type delivery struct {
	Callback
	claim  int64 // fencing number
	host   string
	secret string
	body   []byte
}

// nextCallback gives worker a callback that is due and whose receiver is not among busy, nil when there is none.
func (s *Service) nextCallback(ctx context.Context, worker string, busy []string) (*delivery, error) {
	now := s.now()
	where := "phase = 'queued' AND (next_at <= $1 OR next_at > $2)"
	args := []any{db.Micros(now), db.Micros(now.Add(longestDelay(s.CallbackDelays)))}
	for i, host := range busy {
		where += fmt.Sprintf(" AND host <> $%d", i+3)
		args = append(args, host)
	}
	query := "SELECT id FROM callbacks WHERE " + where + " ORDER BY next_at, id LIMIT 1"
	var id string
	err := s.db.Read().QueryRowContext(ctx, query, args...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, s.wrap("claim callback", err)
	}
	if s.db.Dialect() == db.Postgres {
		query += " FOR UPDATE SKIP LOCKED"
	}
	var d *delivery
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		d = nil
		err := tx.QueryRowContext(ctx, query, args...).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		taken := delivery{Callback: Callback{ID: id}}
		var secret sql.NullString
		var body string
		if err := tx.QueryRowContext(ctx, `UPDATE callbacks SET phase = 'running', claim = claim + 1, worker_id = $2, updated_at = $3 WHERE id = $1
			RETURNING task_id, account_id, url, host, secret, body, claim, attempts`, id, worker, db.Micros(now)).
			Scan(&taken.TaskID, &taken.AccountID, &taken.URL, &taken.host, &secret, &body, &taken.claim, &taken.Attempts); err != nil {
			return err
		}
		taken.secret, taken.body = secret.String, []byte(body)
		d = &taken
		return nil
	})
	return d, s.wrap("claim callback", err)
}

// delivered notes how a delivery ended: nil is success. A claim that is no longer current changes nothing.
func (s *Service) delivered(ctx context.Context, d *delivery, failure error) error {
	return s.wrap("note callback "+d.ID, s.db.Write(ctx, func(tx *sql.Tx) error {
		now := s.now()
		var attempts int
		err := tx.QueryRowContext(ctx, "SELECT attempts FROM callbacks WHERE id = $1 AND claim = $2 AND phase = 'running'"+s.db.ForUpdate(), d.ID, d.claim).Scan(&attempts)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // deleted with its task, or given to another notifier
		}
		if err != nil {
			return err
		}
		attempts++
		phase, next, message := "delivered", now, any(nil)
		if failure != nil {
			message = failure.Error()
			if attempts > len(s.CallbackDelays) {
				phase = "given_up"
			} else {
				phase, next = "queued", now.Add(s.CallbackDelays[attempts-1])
			}
		}
		_, err = tx.ExecContext(ctx, "UPDATE callbacks SET phase = $2, attempts = $3, next_at = $4, last_error = $5, worker_id = NULL, updated_at = $6 WHERE id = $1",
			d.ID, phase, attempts, db.Micros(next), message, db.Micros(now))
		return err
	}))
}

// requeueCallbacks gives back the deliveries of a dead notifier. Whether they arrived is not known: they are sent again
// under the same id.
func (s *Service) requeueCallbacks(ctx context.Context, tx *sql.Tx, worker string) (int, error) {
	result, err := tx.ExecContext(ctx, "UPDATE callbacks SET phase = 'queued', next_at = 0, worker_id = NULL, updated_at = $2 WHERE worker_id = $1 AND phase = 'running'", worker, db.Micros(s.now()))
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// CallbackFilter selects callbacks; the zero value is all of them.
type CallbackFilter struct {
	AccountID string
	TaskID    string
	Phase     string // such as "given_up"
	Limit     int    // 0 is 100
}

// Callbacks returns callbacks, newest first.
func (s *Service) Callbacks(ctx context.Context, f CallbackFilter) ([]Callback, error) {
	where, args := "1 = 1", []any{}
	for column, value := range map[string]string{"account_id": f.AccountID, "task_id": f.TaskID, "phase": f.Phase} {
		if value != "" {
			args = append(args, value)
			where += fmt.Sprintf(" AND %s = $%d", column, len(args))
		}
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	rows, err := s.db.Read().QueryContext(ctx, fmt.Sprintf(`SELECT id, task_id, account_id, url, phase, attempts, COALESCE(last_error, ''), created_at, updated_at
		FROM callbacks WHERE %s ORDER BY created_at DESC, id DESC LIMIT %d`, where, f.Limit), args...)
	if err != nil {
		return nil, s.wrap("callbacks", err)
	}
	defer rows.Close()
	var list []Callback
	for rows.Next() {
		var c Callback
		var created, updated int64
		if err := rows.Scan(&c.ID, &c.TaskID, &c.AccountID, &c.URL, &c.Phase, &c.Attempts, &c.LastError, &created, &updated); err != nil {
			return nil, s.wrap("callbacks", err)
		}
		c.CreatedAt, c.UpdatedAt = db.Time(created), db.Time(updated)
		list = append(list, c)
	}
	return list, s.wrap("callbacks", rows.Err())
}

// ResendCallback delivers a task's callback again, with the same id and body and the full number of attempts. One that is
// on its way already is left alone. Errors wrap ErrNotFound.
func (s *Service) ResendCallback(ctx context.Context, task string) error {
	return s.wrap("resend callback", s.db.Write(ctx, func(tx *sql.Tx) error {
		var id, phase string
		err := tx.QueryRowContext(ctx, "SELECT id, phase FROM callbacks WHERE task_id = $1"+s.db.ForUpdate(), task).Scan(&id, &phase)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w or has no callback: %.40q", ErrNotFound, task)
		}
		if err != nil || phase == "queued" || phase == "running" {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE callbacks SET phase = 'queued', attempts = 0, next_at = 0, updated_at = $2 WHERE id = $1", id, db.Micros(s.now()))
		return err
	}))
}
