package accounts

import (
	"context"
	"errors"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// ErrSuspended is returned if the account is suspended (HTTP 403).
var ErrSuspended = errors.New("account is suspended")

// Suspend blocks the keys, logins and tokens of an account (its id). Its tasks
// continue; data and money stay. Doing it again changes nothing.
func (s *Store) Suspend(ctx context.Context, account string) error {
	return s.one(ctx, "account "+account, "UPDATE accounts SET suspended_at = COALESCE(suspended_at, $2) WHERE id = $1", account, db.Micros(s.clock()))
}

// Resume ends an account's suspension.
func (s *Store) Resume(ctx context.Context, account string) error {
	return s.one(ctx, "account "+account, "UPDATE accounts SET suspended_at = NULL WHERE id = $1", account)
}

// Users returns an account's users in the order of their names.
func (s *Store) Users(ctx context.Context, account string) ([]User, error) {
	list, err := db.Select(ctx, s.db.Read(), func(row db.Row, u *User) error {
		return row.Scan(&u.ID, &u.AccountID, &u.Username, db.ScanTime(&u.CreatedAt), db.ScanTime(&u.PasswordSet))
	}, "SELECT id, account_id, username, created_at, updated_at FROM users WHERE account_id = $1 ORDER BY username", account)
	return list, s.wrap("users", err)
}

// DeleteUser deletes a user. The user's access tokens become invalid.
func (s *Store) DeleteUser(ctx context.Context, username string) error {
	return s.one(ctx, "user "+username, "DELETE FROM users WHERE username = $1", username)
}

// EndSessions invalidates all access tokens of a user; the password stays.
func (s *Store) EndSessions(ctx context.Context, username string) error {
	return s.one(ctx, "user "+username, "UPDATE users SET updated_at = CASE WHEN updated_at >= $2 THEN updated_at + 1 ELSE $2 END WHERE username = $1", username, db.Micros(s.clock()))
}

// KeyOptions limit an API key. The zero value limits nothing.
type KeyOptions struct {
	ID        string // a new UUID; "": CreateLimitedKey makes one
	ReadOnly  bool
	ExpiresAt time.Time // zero: never
	// Most refuses the key with ErrTooManyKeys if the account has so many valid
	// ones already; 0 means no limit.
	Most int
}

// usedEvery is the accuracy of a key's last use: a write for every request
// would cost more than most requests.
const usedEvery = 10 * time.Minute

// used records the use of a key. A failure must not fail the request.
func (s *Store) used(ctx context.Context, k Key) {
	now := s.clock()
	if k.UsedAt != nil && now.Sub(*k.UsedAt) < usedEvery && !now.Before(*k.UsedAt) {
		return
	}
	_, _ = s.db.Exec(ctx, "UPDATE api_keys SET used_at = $2 WHERE id = $1", k.ID, db.Micros(now))
}
