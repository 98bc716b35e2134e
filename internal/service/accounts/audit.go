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

// AuditEntry is one action.
type AuditEntry struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Operator string    `json:"operator"` // see Operator; "user NAME" for one of an account's people
	Action   string    `json:"action"`   // the command's name: account credit
	Subject  string    `json:"subject"`  // name or id of the object
	Detail   string    `json:"detail"`   // further details such as amounts, never a secret
}

// AuditLog is the append-only log of operators' actions and of changes that an
// account's users make to its keys.
type AuditLog struct {
	db    *db.DB
	clock func() time.Time
}

// NewAuditLog returns the log in a migrated database. A nil clock is time.Now.
func NewAuditLog(d *db.DB, clock func() time.Time) *AuditLog {
	if clock == nil {
		clock = time.Now
	}
	return &AuditLog{d, clock}
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

// Record writes an entry; the log sets its time and number.
func (l *AuditLog) Record(ctx context.Context, e AuditEntry) error {
	_, err := l.db.Exec(ctx, "INSERT INTO audit (at, operator, action, subject, detail) VALUES ($1, $2, $3, $4, $5)",
		db.Micros(l.clock()), e.Operator, e.Action, e.Subject, e.Detail)
	return l.db.Wrap("audit log", err)
}

// Do records an entry and then does the work. A failure adds a second entry
// with the error. If the first entry can't be recorded, it does nothing.
func (l *AuditLog) Do(ctx context.Context, e AuditEntry, work func() error) error {
	if err := l.Record(ctx, e); err != nil {
		return fmt.Errorf("%s: not done: %w", e.Action, err)
	}
	err := work()
	if err != nil {
		e.Detail = "failed: " + err.Error()
		err = errors.Join(err, l.Record(context.WithoutCancel(ctx), e))
	}
	return err
}

// List returns the entries since a time, newest first, at most limit.
func (l *AuditLog) List(ctx context.Context, since time.Time, limit int) ([]AuditEntry, error) {
	from := int64(0)
	if !since.IsZero() {
		from = db.Micros(since)
	}
	entries, err := db.Select(ctx, l.db.Read(), func(row db.Row, e *AuditEntry) error {
		return row.Scan(&e.Seq, db.ScanTime(&e.At), &e.Operator, &e.Action, &e.Subject, &e.Detail)
	}, "SELECT seq, at, operator, action, subject, detail FROM audit WHERE at >= $1 ORDER BY seq DESC LIMIT $2", from, limit)
	return entries, l.db.Wrap("audit log", err)
}
