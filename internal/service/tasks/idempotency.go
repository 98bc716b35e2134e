package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/otograph/otograph/internal/system/db"
)

// Idempotency identifies a request, so that sending it again within 24 hours
// returns its first response unless the task has been deleted. The zero value
// disables this.
type Idempotency struct {
	Key      string
	BodyHash string // hash of method, path and body
}

// claimKey claims an idempotency key in this transaction. If the key was used
// before, replayed is true and items is the first response.
func (s *core) claimKey(ctx context.Context, tx *sql.Tx, account string, idem Idempotency) (items []Item, replayed bool, err error) {
	now := s.now()
	result, err := tx.ExecContext(ctx, `INSERT INTO idempotency (account_id, key, body_hash, answer, created_at) VALUES ($1, $2, $3, '', $4)
		ON CONFLICT (account_id, key) DO UPDATE SET body_hash = excluded.body_hash, answer = '', created_at = excluded.created_at
		WHERE idempotency.created_at < $5`, account, idem.Key, idem.BodyHash, db.Micros(now), db.Micros(now.Add(-idempotencyAge)))
	if err != nil {
		return nil, false, err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return nil, false, err
	}
	var hash string
	err = tx.QueryRowContext(ctx, "SELECT body_hash, answer FROM idempotency WHERE account_id = $1 AND key = $2", account, idem.Key).Scan(&hash, db.ScanJSON(&items))
	if err == nil && hash != idem.BodyHash {
		err = ErrIdempotencyConflict
	}
	return items, err == nil, err
}

// keyUsed reports whether a request with the idempotency key made tasks of the
// account in the last 24 hours.
func (s *core) keyUsed(ctx context.Context, account, key string) (bool, error) {
	var used bool
	err := s.Config.DB.Read().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM idempotency WHERE account_id = $1 AND key = $2 AND created_at >= $3)",
		account, key, db.Micros(s.now().Add(-idempotencyAge))).Scan(&used)
	return used, s.wrap("idempotency key", err)
}

// forgetAnswer removes a deleted task from the answer of its idempotency key.
// The key stays used, so that the same request, sent again, makes no second
// task.
func (s *core) forgetAnswer(ctx context.Context, tx *sql.Tx, r row) error {
	if r.idempotencyKey == "" {
		return nil
	}
	var items []Item
	err := tx.QueryRowContext(ctx, "SELECT answer FROM idempotency WHERE account_id = $1 AND key = $2"+s.Config.DB.ForUpdate(), r.AccountID, r.idempotencyKey).Scan(db.ScanJSON(&items))
	if found, err := db.Found(err); !found {
		return err // its 24 hours are over
	}
	i := slices.IndexFunc(items, func(item Item) bool { return item.Task != nil && item.Task.ID == r.ID })
	if i < 0 {
		return nil // the key has been used again since
	}
	items[i] = Item{Error: ErrDeleted.Error()}
	return s.setAnswer(ctx, tx, r.AccountID, r.idempotencyKey, items)
}

func (s *core) setAnswer(ctx context.Context, tx *sql.Tx, account, key string, items []Item) error {
	text, err := json.Marshal(items)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE idempotency SET answer = $3 WHERE account_id = $1 AND key = $2", account, key, string(text))
	return err
}
