package billing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// Errors that callers act upon.
var (
	// ErrInsufficientBalance is returned when the available balance does not
	// cover a hold (HTTP 402).
	ErrInsufficientBalance = errors.New("available balance insufficient")
	// ErrBatchBalance is ErrInsufficientBalance for a batch task. Resource
	// packs do not pay for batch tasks, so a hold can fail although the
	// available balance, which includes packs, covers it.
	ErrBatchBalance = fmt.Errorf("%w for a batch task, which resource packs do not pay for", ErrInsufficientBalance)
	// ErrConcurrencyLimit is returned when the account has reached its limit of
	// non-batch tasks (HTTP 429).
	ErrConcurrencyLimit = errors.New("concurrent task limit reached")
	// ErrNoAccount is returned when the account does not exist.
	ErrNoAccount = errors.New("account does not exist")
	// errSettled is returned when a task was charged and can't be held again.
	errSettled = errors.New("task is settled")
)

// Store accesses the database's balances, holds, packs and ledger. It is safe
// for concurrent use.
type Store struct {
	pool  Querier
	db    database
	clock func() time.Time
}

// database is the database with the service's tables.
type database interface {
	// Write runs a transaction. It repeats fn if the database asks for a retry.
	Write(ctx context.Context, fn func(tx *sql.Tx) error) error
	// ForUpdate returns the clause that locks the rows of a SELECT.
	ForUpdate() string
	// Classify marks an error of a database that is unreachable or full.
	Classify(err error) error
}

// New returns the store over d, which reads from pool. A nil clock is time.Now.
func New(pool Querier, d database, clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	return &Store{pool: pool, db: d, clock: clock}
}

func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("billing: %s: %w", what, s.db.Classify(err))
}

// Account is a snapshot of an account's balance and limits. Its JSON is the
// specification's Account record.
type Account struct {
	Balance   Money `json:"balance"`
	Held      Money `json:"held_amount"`              // reserved for tasks that are not charged yet
	Packs     Money `json:"resource_pack_equivalent"` // remaining value of the resource packs
	Available Money `json:"available_balance"`        // Balance + Packs - Held
	Limits
	ActiveTasks          int `json:"active_tasks"` // non-batch tasks that are not finished
	AvailableConcurrency int `json:"available_concurrency"`
	WaitingBatchTasks    int `json:"waiting_batch_tasks"`
}

// state is the part of an account that Hold and Raise check.
type state struct {
	balance, heldTasks, heldBatch, packs Money
	active, waitingBatch, tier           int
	concurrency, tps, burst              sql.NullInt64
	packConcurrency                      int
}

// Querier is a database or a transaction.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// lock locks the account's row for the transaction, so that all changes to its
// money happen one after another.
func (s *Store) lock(ctx context.Context, tx *sql.Tx, account string) (balance Money, err error) {
	err = tx.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE id = $1"+s.db.ForUpdate(), account).Scan(&balance)
	return balance, missing(err, account)
}

// missing returns ErrNoAccount if err says that the account has no row.
func missing(err error, account string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %s", ErrNoAccount, account)
	}
	return err
}

// read uses a single statement, so that all figures are of the same moment.
func (s *Store) read(ctx context.Context, q Querier, account string) (state, error) {
	var st state
	err := q.QueryRowContext(ctx, `SELECT a.balance, a.tier, a.concurrency, a.tps_thousandths, a.burst,
		s.held_tasks, s.held_batch, s.active_tasks, s.waiting_batch,
		COALESCE((SELECT CAST(SUM(remaining) AS bigint) FROM packs WHERE account_id = a.id AND expires_at > $2), 0),
		COALESCE((SELECT MAX(concurrency) FROM packs WHERE account_id = a.id AND expires_at > $2), 0)
		FROM accounts a JOIN account_sums s ON s.account_id = a.id WHERE a.id = $1`, account, db.Micros(s.clock())).
		Scan(&st.balance, &st.tier, &st.concurrency, &st.tps, &st.burst, &st.heldTasks, &st.heldBatch, &st.active, &st.waitingBatch, &st.packs, &st.packConcurrency)
	return st, missing(err, account)
}

// limits returns the tier's limits (1 to 5) with the account's overrides (TPS
// in thousandths), and at least the concurrency of the packs.
func (st state) limits() Limits {
	base := tierLimits[st.tier]
	l := Limits{Tier: st.tier, Concurrency: base, TPS: float64(base), Burst: 2 * base}
	if st.concurrency.Valid {
		l.Concurrency = int(st.concurrency.Int64)
	}
	l.Concurrency = max(l.Concurrency, st.packConcurrency)
	if st.tps.Valid {
		l.TPS = float64(st.tps.Int64) / 1000
		l.Burst = max(1, int(2*l.TPS))
	}
	if st.burst.Valid {
		l.Burst = int(st.burst.Int64)
	}
	return l
}

// View returns the account's record. Errors wrap ErrNoAccount.
func (s *Store) View(ctx context.Context, account string) (Account, error) {
	st, err := s.read(ctx, s.pool, account)
	if err != nil {
		return Account{}, s.wrap("account", err)
	}
	held, limits := st.heldTasks+st.heldBatch, st.limits()
	return Account{
		Balance: st.balance, Held: held, Packs: st.packs, Available: st.balance + st.packs - held, Limits: limits,
		ActiveTasks: st.active, AvailableConcurrency: max(0, limits.Concurrency-st.active), WaitingBatchTasks: st.waitingBatch,
	}, nil
}

// Balance returns the account's balance.
func (s *Store) Balance(ctx context.Context, account string) (Money, error) {
	var m Money
	err := s.pool.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE id = $1", account).Scan(&m)
	return m, s.wrap("balance", missing(err, account))
}

// Pack is a resource pack: value that non-batch tasks draw on before the balance, until it expires.
type Pack struct {
	ID          string    `json:"-"`
	Value       Money     `json:"value"`
	Remaining   Money     `json:"remaining"`
	Concurrency int       `json:"concurrency,omitempty"` // the account's concurrency limit is at least this while the pack is active; 0 = no effect
	ExpiresAt   time.Time `json:"expires_at"`
	CreatedAt   time.Time `json:"-"`
}

// AddPack adds a resource pack of p's Value, Concurrency and ExpiresAt.
func (s *Store) AddPack(ctx context.Context, account string, p Pack) (Pack, error) {
	now := s.clock()
	switch {
	case p.Value < 0 || p.Value > maxAmount:
		return Pack{}, fmt.Errorf("billing: pack value %s; want 0 to %s", p.Value.Number(), maxAmount.Number())
	case p.Concurrency < 0 || p.Concurrency > 1_000_000:
		return Pack{}, fmt.Errorf("billing: pack concurrency %d; want 0 to 1,000,000", p.Concurrency)
	case !p.ExpiresAt.After(now):
		return Pack{}, fmt.Errorf("billing: the pack would expire at %s, which is not in the future", p.ExpiresAt.UTC().Format(time.RFC3339))
	}
	p.ID, p.Remaining, p.ExpiresAt, p.CreatedAt = db.NewID(), p.Value, db.Time(db.Micros(p.ExpiresAt)), db.Time(db.Micros(now))
	return p, s.wrap("add pack", s.db.Write(ctx, func(tx *sql.Tx) error {
		if _, err := s.lock(ctx, tx, account); err != nil {
			return err
		}
		return db.Do(ctx, tx, "INSERT INTO packs (id, account_id, value, remaining, concurrency, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			p.ID, account, p.Value, p.Remaining, p.Concurrency, db.Micros(p.ExpiresAt), db.Micros(p.CreatedAt))
	}))
}

// Packs returns the account's resource packs by expiry, expired ones included.
func (s *Store) Packs(ctx context.Context, account string) ([]Pack, error) {
	packs, err := readPacks(ctx, s.pool, account, 0)
	return packs, s.wrap("packs", err)
}

func readPacks(ctx context.Context, q Querier, account string, after int64) ([]Pack, error) {
	return db.Select(ctx, q, func(row db.Row, p *Pack) error {
		return row.Scan(&p.ID, &p.Value, &p.Remaining, &p.Concurrency, db.ScanTime(&p.ExpiresAt), db.ScanTime(&p.CreatedAt))
	}, "SELECT id, value, remaining, concurrency, expires_at, created_at FROM packs WHERE account_id = $1 AND expires_at > $2 ORDER BY expires_at, id", account, after)
}

// Limits are an account's rates and caps.
type Limits struct {
	Tier        int     `json:"tier"`
	Concurrency int     `json:"concurrency_limit"` // concurrent non-batch tasks, including the packs' bonus
	TPS         float64 `json:"tps_limit"`         // requests per second
	Burst       int     `json:"tps_burst"`         // requests at once
}

// tierLimits are the defaults of the tiers 1 to 5; the burst is twice the rate.
var tierLimits = [...]int{1: 2, 2: 5, 3: 10, 4: 20, 5: 50}
