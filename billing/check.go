package billing

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// Difference is a figure of an account that differs from the sum of its rows.
type Difference struct {
	Account string
	Figure  string // a column of account_sums, or "balance"
	Stored  int64  // money in ten-thousandths
	Real    int64
}

// String describes the difference.
func (d Difference) String() string {
	return fmt.Sprintf("account %s: %s is %d, the rows say %d", d.Account, d.Figure, d.Stored, d.Real)
}

// figures are the sums that Check compares, each with the SQL that computes it
// for account $1.
var figures = []struct{ name, sum string }{
	{"held_tasks", "SELECT CAST(COALESCE(SUM(amount), 0) AS bigint) FROM holds WHERE account_id = $1 AND NOT batch"},
	{"held_batch", "SELECT CAST(COALESCE(SUM(amount), 0) AS bigint) FROM holds WHERE account_id = $1 AND batch"},
	{"active_tasks", "SELECT COUNT(*) FROM holds WHERE account_id = $1 AND NOT batch"},
	{"waiting_batch", "SELECT COUNT(*) FROM holds WHERE account_id = $1 AND batch"},
	{"entries", "SELECT COUNT(*) FROM ledger WHERE account_id = $1"},
	{"done", "SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND phase = 'final' AND status = 'done'"},
	{"failed", "SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND phase = 'final' AND status = 'failed'"},
	{"abandoned", "SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND phase = 'final' AND status = 'abandoned'"},
}

const (
	checkTimeout = time.Minute // of one account
	balanceSum   = "SELECT CAST(COALESCE(SUM(amount), 0) AS bigint) FROM ledger WHERE account_id = $1"
)

// Check compares every account's balance with its ledger, and its running sums
// with their rows. If repair is true, it corrects wrong sums, but never a
// balance. It returns all differences, including the repaired ones.
func (s *Store) Check(ctx context.Context, repair bool) (all []Difference, err error) {
	ids, err := db.Column[string](ctx, s.pool, "SELECT id FROM accounts ORDER BY id")
	if err != nil {
		return nil, s.wrap("check sums", err)
	}
	ctx = db.Patient(ctx, checkTimeout)
	for _, id := range ids {
		different, err := compare(ctx, s.pool, id) // without a lock
		if err == nil && len(different) > 0 {
			err = s.db.Write(ctx, func(tx *sql.Tx) error {
				// Final tasks are counted without the account's lock, so their
				// writers wait for the row of sums instead.
				if _, err := s.lock(ctx, tx, id); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, "UPDATE account_sums SET entries = entries WHERE account_id = $1", id); err != nil {
					return err
				}
				if different, err = compare(ctx, tx, id); err != nil || !repair {
					return err
				}
				return mend(ctx, tx, different)
			})
		}
		if err != nil {
			return all, s.wrap("check sums of account "+id, err)
		}
		all = append(all, different...)
	}
	return all, nil
}

// compare returns the account's differing figures. It uses one statement, so
// all figures are of the same moment.
func compare(ctx context.Context, from Querier, account string) (different []Difference, err error) {
	query, values := "SELECT a.balance, ("+balanceSum+")", make([]int64, 2+2*len(figures))
	for _, f := range figures {
		query += ", s." + f.name + ", (" + f.sum + ")"
	}
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := from.QueryRowContext(ctx, query+" FROM accounts a JOIN account_sums s ON s.account_id = a.id WHERE a.id = $1", account).Scan(targets...); err != nil {
		return nil, err
	}
	for i := 0; i < len(values); i += 2 {
		name := "balance"
		if i > 0 {
			name = figures[i/2-1].name
		}
		if values[i] != values[i+1] {
			different = append(different, Difference{account, name, values[i], values[i+1]})
		}
	}
	return different, nil
}

func mend(ctx context.Context, tx *sql.Tx, different []Difference) error {
	for _, d := range different {
		if d.Figure == "balance" {
			continue
		}
		if _, err := tx.ExecContext(ctx, "UPDATE account_sums SET "+d.Figure+" = $2 WHERE account_id = $1", d.Account, d.Real); err != nil { //nolint:gosec // the figure's name is a constant of this file
			return err
		}
	}
	return nil
}
