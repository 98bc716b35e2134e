package webhook

import (
	"context"
	"database/sql"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
)

// mostBudget bounds a budget, so that sums and percentages fit in int64.
const mostBudget = 1_000_000_000 * billing.Unit

// shares are the percentages of a budget that are announced, in order.
var shares = []struct {
	percent int64
	event   string
}{{80, EventWarning}, {100, EventReached}}

// month is a calendar month in a time zone.
type month struct {
	name        string // such as 2026-11
	begin, next time.Time
}

func monthOf(zone string, at time.Time) (month, error) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return month{}, err
	}
	at = at.In(location)
	first := func(m time.Month) time.Time { return time.Date(at.Year(), m, 1, 0, 0, 0, 0, location) }
	return month{at.Format("2006-01"), first(at.Month()), first(at.Month() + 1)}, nil
}

// spend adds the price of a task to the month of its charge. It announces each
// share of the budget once a month. The sum equals the ledger's, in any order
// of charges.
func (o *Outbox) spend(ctx context.Context, tx *sql.Tx, account string, h Hook, price billing.Money, at time.Time) error {
	if h.Budget == 0 {
		return nil
	}
	m, err := monthOf(h.Zone, at)
	switch {
	case err != nil:
		return err
	case m.name < h.Month: // the next month has begun by the clock of another server
		return nil
	case m.name == h.Month:
		h.Spent += price
	default:
		h.Month, h.warned = m.name, 0
		err = tx.QueryRowContext(ctx, `SELECT CAST(COALESCE(SUM(s.total), 0) AS bigint) FROM ledger l JOIN settlements s ON s.task_id = l.task_id
			WHERE l.account_id = $1 AND l.created_at >= $2 AND l.created_at < $3`, account, db.Micros(m.begin), db.Micros(m.next)).Scan(&h.Spent)
		if err != nil {
			return err
		}
	}
	for _, s := range shares {
		if h.warned >= s.percent || int64(h.Spent)*100 < int64(h.Budget)*s.percent {
			continue
		}
		h.warned = s.percent
		data := map[string]any{"percent": s.percent, "budget": h.Budget, "spent": h.Spent, "month": h.Month, "timezone": h.Zone}
		if err := o.send(ctx, tx, account, h, ofHook+db.NewID(), s.event, data); err != nil {
			return err
		}
	}
	return db.Do(ctx, tx, "UPDATE hooks SET month = $2, spent = $3, warned = $4 WHERE account_id = $1", account, h.Month, h.Spent, h.warned)
}
