package accounts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
)

// ErrInUse is returned for an account that cannot be erased yet.
var ErrInUse = errors.New("account is in use")

// Traces are the ids of the rows that Erase deleted.
type Traces struct {
	Users  []string `json:"users,omitempty"`
	Keys   []string `json:"keys,omitempty"`
	Voices []string `json:"voices,omitempty"`
}

// Erase deletes everything but the money of an account without tasks: users,
// keys, voices, and its names in the audit log. The account and its ledger
// stay, under the name "deleted" and the id. The error wraps ErrInUse if the
// account is not suspended or has tasks.
func (s *Store) Erase(ctx context.Context, a Account) (gone Traces, err error) {
	erased := "deleted " + a.ID
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		var suspended sql.NullInt64
		var tasks int
		if err := tx.QueryRowContext(ctx, "SELECT suspended_at FROM accounts WHERE id = $1"+s.db.ForUpdate(), a.ID).Scan(&suspended); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM tasks WHERE account_id = $1", a.ID).Scan(&tasks); err != nil {
			return err
		}
		if !suspended.Valid || tasks > 0 {
			return fmt.Errorf("%w: it is not suspended or has tasks (%d)", ErrInUse, tasks)
		}
		for table, ids := range map[string]*[]string{"users": &gone.Users, "api_keys": &gone.Keys, "voices": &gone.Voices} {
			if *ids, err = db.Column[string](ctx, tx, "SELECT id FROM "+table+" WHERE account_id = $1 ORDER BY id", a.ID); err != nil {
				return err
			}
		}
		if err := blankAudit(ctx, tx, a, gone, erased); err != nil {
			return err
		}
		for _, table := range []string{"users", "api_keys", "voices", "idempotency", "rate_buckets", "lane_accounts", "hooks", "callbacks"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE account_id = $1", a.ID); err != nil {
				return err
			}
		}
		return db.Do(ctx, tx, "UPDATE accounts SET name = $2 WHERE id = $1", a.ID, erased)
	})
	return gone, s.wrap("erase account "+a.ID, err)
}

// blankAudit removes an account's names from the entries of the audit log.
func blankAudit(ctx context.Context, tx *sql.Tx, a Account, gone Traces, erased string) error {
	names, err := db.Column[string](ctx, tx, "SELECT username FROM users WHERE account_id = $1", a.ID)
	if err != nil {
		return err
	}
	operators := []string{"a user"}
	for _, name := range names {
		operators = append(operators, "user "+name)
	}
	var args db.Args
	user := "operator IN (" + args.AddTexts(operators) + ")"
	return db.Do(ctx, tx, "UPDATE audit SET operator = CASE WHEN "+user+" THEN 'a user' ELSE operator END, detail = '', subject = "+args.Add(erased)+
		" WHERE "+user+" OR detail = "+args.Add("of "+a.Name)+" OR subject IN ("+args.AddTexts(append(append(names, gone.Keys...), a.Name, a.ID))+")", args...)
}
