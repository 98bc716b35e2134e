package accounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// AuditEntry is one action in the append-only log of operators' actions and of
// changes that an account's users make to its keys.
type AuditEntry struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Operator string    `json:"operator"` // see Operator; "user NAME" for one of an account's people
	Action   string    `json:"action"`   // the command's name: account credit
	Subject  string    `json:"subject"`  // name or id of the object
	Detail   string    `json:"detail"`   // further details such as amounts, never a secret
}

// Operator returns the name of this process's user and of the machine. For a
// user who changed to another one with sudo, it includes both names.
func Operator() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if before := os.Getenv("SUDO_USER"); before != "" {
		name = before + " as " + name
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// Record writes an entry of the audit log, with the next number and the time.
func (s *Store) Record(ctx context.Context, e AuditEntry) error {
	_, err := s.db.Exec(ctx, "INSERT INTO audit (at, operator, action, subject, detail) VALUES ($1, $2, $3, $4, $5)",
		db.Micros(s.clock()), e.Operator, e.Action, e.Subject, e.Detail)
	return s.db.Wrap("audit log", err)
}

// Audit records an entry and then does the work. A failure adds a second entry
// with the error. The work is not done if the first entry can't be recorded.
func (s *Store) Audit(ctx context.Context, e AuditEntry, work func() error) error {
	if err := s.Record(ctx, e); err != nil {
		return fmt.Errorf("%s: not done: %w", e.Action, err)
	}
	err := work()
	if err != nil {
		e.Detail = "failed: " + err.Error()
		err = errors.Join(err, s.Record(context.WithoutCancel(ctx), e))
	}
	return err
}

// AuditLog returns the entries since a time, newest first, at most limit.
func (s *Store) AuditLog(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error) {
	from := int64(0)
	if !since.IsZero() {
		from = db.Micros(since)
	}
	entries, err := db.Select(ctx, s.db.Read(), func(row db.Row, e *AuditEntry) error {
		return row.Scan(&e.Seq, db.ScanTime(&e.At), &e.Operator, &e.Action, &e.Subject, &e.Detail)
	}, "SELECT seq, at, operator, action, subject, detail FROM audit WHERE at >= $1 ORDER BY seq DESC LIMIT $2", from, limit)
	return entries, s.db.Wrap("audit log", err)
}
