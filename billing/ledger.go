package billing

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// TransactionType is the kind of a ledger entry.
type TransactionType string

// The kinds of ledger entries.
const (
	deduction TransactionType = "deduction"
	recharge  TransactionType = "recharge"
	refund    TransactionType = "refund"
)

// maxAmount bounds a movement: a billion units, so that sums fit in int64.
const maxAmount = 1_000_000_000 * Unit

// Transaction is a ledger entry; its JSON is the specification's transaction.
type Transaction struct {
	ID, AccountID               string
	TaskID                      string // deductions only
	Type                        TransactionType
	Amount                      Money // the change of the balance
	BalanceBefore, BalanceAfter Money
	Description                 string
	CreatedAt                   time.Time
}

// Recharge adds amount (> 0) to the balance.
func (s *Store) Recharge(ctx context.Context, account string, amount Money, description string) (Transaction, error) {
	return s.move(ctx, account, recharge, amount, 1, description)
}

// Refund pays amount (> 0) back: the balance falls by it, even below zero.
func (s *Store) Refund(ctx context.Context, account string, amount Money, description string) (Transaction, error) {
	return s.move(ctx, account, refund, amount, -1, description)
}

func (s *Store) move(ctx context.Context, account string, kind TransactionType, amount, sign Money, description string) (t Transaction, err error) {
	if amount <= 0 || amount > maxAmount {
		return t, fmt.Errorf("billing: %s of %s; want more than 0 and at most %s", kind, amount.Number(), maxAmount.Number())
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) (err error) {
		t, err = s.post(ctx, tx, Transaction{AccountID: account, Type: kind, Amount: sign * amount, Description: description})
		return err
	})
	return t, s.wrap(string(kind), err)
}

// post completes a ledger entry, writes it and moves the balance by its amount.
func (s *Store) post(ctx context.Context, tx *sql.Tx, t Transaction) (Transaction, error) {
	before, err := s.lock(ctx, tx, t.AccountID)
	if err != nil {
		return Transaction{}, err
	}
	after := before + t.Amount
	if (t.Amount > 0) != (after > before) && t.Amount != 0 {
		return Transaction{}, fmt.Errorf("the balance of account %s would overflow", t.AccountID)
	}
	t.ID, t.BalanceBefore, t.BalanceAfter, t.CreatedAt = db.NewID(), before, after, db.Time(db.Micros(s.clock()))
	if _, err := tx.ExecContext(ctx, `INSERT INTO ledger (id, account_id, task_id, type, amount, balance_before, balance_after, description, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		t.ID, t.AccountID, db.Optional(t.TaskID), string(t.Type), t.Amount, before, after, t.Description, db.Micros(t.CreatedAt)); err != nil {
		return Transaction{}, err
	}
	return t, db.Do(ctx, tx, "UPDATE accounts SET balance = $2 WHERE id = $1", t.AccountID, after)
}

// Page selects entries of a list that is sorted newest first.
type Page struct {
	Number, Size int // both from 1
	// From and Until select entries by the time of their creation: at or after
	// From and before Until; zero means no limit.
	From, Until time.Time
	// After is the id of an entry: the page is counted from the entry that
	// follows it. New entries move numbered pages, but not a page after an id.
	// "" is the list's beginning.
	After string
}

// ErrAfter is returned for a Page whose After is no entry of the list.
var ErrAfter = errors.New("no such entry")

// Bounded reports whether the page limits the time of creation.
func (p Page) Bounded() bool { return !p.From.IsZero() || !p.Until.IsZero() }

// Transactions returns a page of the account's ledger and the total number of
// entries in the page's time.
func (s *Store) Transactions(ctx context.Context, account string, p Page) ([]Transaction, int, error) {
	if p.Number < 1 || p.Size < 1 {
		return nil, 0, fmt.Errorf("billing: page %d of size %d; both begin at 1", p.Number, p.Size)
	}
	var args db.Args
	where := "account_id = " + args.Add(account) + args.Created(p.From, p.Until)
	count := "SELECT COUNT(*) FROM ledger WHERE " + where
	if !p.Bounded() {
		count = "SELECT entries FROM account_sums WHERE account_id = $1"
	}
	var total int
	found, err := db.Found(s.pool.QueryRowContext(ctx, count, args...).Scan(&total))
	if !found || p.Number-1 > total/p.Size {
		return nil, total, s.wrap("transactions", err)
	}
	var first int64
	if p.After != "" {
		found, err := db.Found(s.pool.QueryRowContext(ctx, "SELECT seq FROM ledger WHERE account_id = $1 AND id = $2", account, p.After).Scan(&first))
		if !found {
			return nil, total, s.wrap("transactions", cmp.Or(err, ErrAfter))
		}
		where += " AND seq < " + args.Add(first)
	}
	// The index finds the beginning of the page; only the page's rows are read.
	err = s.pool.QueryRowContext(ctx, fmt.Sprintf("SELECT seq FROM ledger WHERE %s ORDER BY seq DESC LIMIT 1 OFFSET %d", where, (p.Number-1)*p.Size), args...).Scan(&first)
	if found, err := db.Found(err); !found {
		return nil, total, s.wrap("transactions", err)
	}
	list, err := db.Select(ctx, s.pool, func(row db.Row, t *Transaction) error {
		return row.Scan(&t.ID, &t.AccountID, &t.TaskID, &t.Type, &t.Amount, &t.BalanceBefore, &t.BalanceAfter, &t.Description, db.ScanTime(&t.CreatedAt))
	}, `SELECT id, account_id, COALESCE(task_id, ''), type, amount, balance_before, balance_after, description, created_at
		FROM ledger WHERE `+where+` AND seq <= `+args.Add(first)+` ORDER BY seq DESC LIMIT `+args.Add(p.Size), args...)
	return list, max(total, (p.Number-1)*p.Size+len(list)), s.wrap("transactions", err) // entries may have been added since the sums were read
}

// Receipt describes how a task was charged.
type Receipt struct {
	Quote        Quote
	FromPacks    Money // part of the total that resource packs covered
	BalanceAfter Money // right after the charge
	SettledAt    time.Time
}

// Settle charges a finished task once, in the transaction that finishes it, and
// ends its hold. A non-batch task first draws on the account's active packs in
// order of expiry. The remainder leaves the balance as a single deduction in
// the ledger, which may be 0.0000. Settling a task again changes nothing and
// returns the first receipt. A charge above the hold must be available as for a
// new hold, else the error is a *Shortage.
func (s *Store) Settle(ctx context.Context, tx *sql.Tx, account, task string, q Quote, batch bool) (Receipt, error) {
	r, err := s.settle(ctx, tx, account, task, q, batch)
	return r, s.wrap("settle "+task, err)
}

func (s *Store) settle(ctx context.Context, tx *sql.Tx, account, task string, q Quote, batch bool) (Receipt, error) {
	if _, err := s.lock(ctx, tx, account); err != nil {
		return Receipt{}, err
	}
	if r, err := receipt(ctx, tx, task); err == nil || !errors.Is(err, sql.ErrNoRows) {
		return r, err
	}
	if q.Total < 0 || q.Total != q.Detail.Total {
		return Receipt{}, fmt.Errorf("%w: total %s, detail %s", ErrUsage, q.Total, q.Detail.Total)
	}
	if err := s.cover(ctx, tx, account, task, q.Total, batch); err != nil {
		return Receipt{}, err
	}
	now := db.Micros(s.clock())
	rest := q.Total
	if !batch && rest > 0 {
		packs, err := readPacks(ctx, tx, account, now)
		if err != nil {
			return Receipt{}, err
		}
		for _, p := range packs {
			draw := min(p.Remaining, rest)
			if draw == 0 {
				continue
			}
			if _, err := tx.ExecContext(ctx, "UPDATE packs SET remaining = remaining - $2 WHERE id = $1", p.ID, draw); err != nil {
				return Receipt{}, err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO pack_uses (pack_id, task_id, amount, created_at) VALUES ($1, $2, $3, $4)", p.ID, task, draw, now); err != nil {
				return Receipt{}, err
			}
			rest -= draw
		}
	}
	r := Receipt{Quote: q, FromPacks: q.Total - rest}
	description := fmt.Sprintf("Transcription, %s, %d min", q.Mode, q.Minutes)
	if batch {
		description += ", batch"
	}
	if q.Partial {
		description += ", decoded part of a cut or damaged recording"
	}
	switch {
	case r.FromPacks > 0 && rest == 0:
		description += fmt.Sprintf("; %s covered by resource packs", r.FromPacks)
	case r.FromPacks > 0:
		description += fmt.Sprintf("; %s of %s covered by resource packs", r.FromPacks, q.Total)
	}
	t, err := s.post(ctx, tx, Transaction{AccountID: account, TaskID: task, Type: deduction, Amount: -rest, Description: description})
	if err != nil {
		return Receipt{}, err
	}
	r.BalanceAfter, r.SettledAt = t.BalanceAfter, t.CreatedAt
	return r, db.Do(ctx, tx, `INSERT INTO settlements (task_id, account_id, mode, minutes, detail, total, from_packs, balance_after, settled_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, task, account, string(q.Mode), q.Minutes, db.JSON{V: q.Detail}, q.Total, r.FromPacks, r.BalanceAfter, db.Micros(r.SettledAt))
}

// cover ends a task's hold and checks that its charge can be paid: from the
// hold or, if the charge is larger, from the available money.
func (s *Store) cover(ctx context.Context, tx *sql.Tx, account, task string, charge Money, batch bool) error {
	var held Money
	err := tx.QueryRowContext(ctx, "DELETE FROM holds WHERE task_id = $1 RETURNING amount", task).Scan(&held)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if charge <= held {
		return nil
	}
	st, err := s.read(ctx, tx, account)
	if err != nil {
		return err
	}
	return st.covers(0, charge, batch)
}

// receipt returns how a task was charged, or sql.ErrNoRows if it was not.
func receipt(ctx context.Context, q Querier, task string) (r Receipt, err error) {
	err = q.QueryRowContext(ctx, "SELECT mode, minutes, detail, total, from_packs, balance_after, settled_at FROM settlements WHERE task_id = $1", task).
		Scan(&r.Quote.Mode, &r.Quote.Minutes, db.ScanJSON(&r.Quote.Detail), &r.Quote.Total, &r.FromPacks, &r.BalanceAfter, db.ScanTime(&r.SettledAt))
	return r, err
}

// Bill is a task's charge with the account's current balance. Its JSON is the
// specification's billing block of a task result.
type Bill struct {
	Mode            spec.Tier `json:"mode"`
	BillableMinutes int64     `json:"billable_minutes"`
	Detail          Detail    `json:"detail"`
	Amount          Money     `json:"amount"`
	Balance         Money     `json:"balance"`
}

// Bill returns the bill of a charged task.
func (s *Store) Bill(ctx context.Context, account, task string) (Bill, error) {
	r, err := receipt(ctx, s.pool, task)
	if err != nil {
		return Bill{}, s.wrap("bill of "+task, err)
	}
	balance, err := s.Balance(ctx, account)
	if err != nil {
		return Bill{}, err
	}
	return Bill{Mode: r.Quote.Mode, BillableMinutes: r.Quote.Minutes, Detail: r.Quote.Detail, Amount: r.Quote.Total, Balance: balance}, nil
}

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

// figures are the sums that Check compares, each with its SQL for account $1.
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
