package billing

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Prices is one state of the price table: prices per hour. Its JSON is the
// specification's Pricing record.
type Prices struct {
	ID            int64     `json:"-"`
	Standard      Money     `json:"standard_price_per_hour"`
	Optimized     Money     `json:"zh_lite_price_per_hour"`
	Diarize       Money     `json:"diarize_price_per_hour"`
	AudioEvents   Money     `json:"audio_events_price_per_hour"`
	BatchDiscount Factor    `json:"batch_discount"`
	ValidFrom     time.Time `json:"-"`
	UpdatedAt     time.Time `json:"updated_at"` // when this state was entered, or installed with the store
}

// MarshalJSON implements json.Marshaler.
func (p Prices) MarshalJSON() ([]byte, error) {
	type fields Prices
	return json.Marshal(struct {
		fields
		UpdatedAt string `json:"updated_at"`
	}{fields(p), p.UpdatedAt.UTC().Format(spec.TimeFormat)})
}

// errPrices is returned for a price table that can't be accepted.
var errPrices = errors.New("prices not accepted")

// maxPrice bounds a price per hour: a million units.
const maxPrice = 1_000_000 * Unit

const priceColumns = "SELECT id, standard, zh_lite, diarize, audio_events, batch_discount, valid_from, created_at FROM prices "

func scanPrices(row *sql.Row) (Prices, error) {
	var p Prices
	return p, row.Scan(&p.ID, &p.Standard, &p.Optimized, &p.Diarize, &p.AudioEvents, &p.BatchDiscount, db.ScanTime(&p.ValidFrom), db.ScanTime(&p.UpdatedAt))
}

// Prices returns the prices that are valid now.
func (s *Store) Prices(ctx context.Context) (Prices, error) {
	return s.pricesAt(ctx, s.pool, s.clock())
}

// PricesTx is Prices inside a transaction.
func (s *Store) PricesTx(ctx context.Context, tx *sql.Tx) (Prices, error) {
	return s.pricesAt(ctx, tx, s.clock())
}

// pricesAt returns the prices that were valid at t.
func (s *Store) pricesAt(ctx context.Context, from Querier, t time.Time) (Prices, error) {
	p, err := scanPrices(from.QueryRowContext(ctx, priceColumns+"WHERE valid_from <= $1 ORDER BY valid_from DESC, id DESC LIMIT 1", db.Micros(t)))
	return p, s.wrap("prices", err)
}

// PricesByID returns one state of the table, such as the one a task was created under.
func (s *Store) PricesByID(ctx context.Context, from Querier, id int64) (Prices, error) {
	p, err := scanPrices(from.QueryRowContext(ctx, priceColumns+"WHERE id = $1", id))
	return p, s.wrap(fmt.Sprintf("prices %d", id), err)
}

// SetPrices enters prices that are valid from validFrom on (the zero time: from
// now on). Existing tasks keep the prices of their creation. Prices must lie in
// 0 … 1,000,000 and the discount in 0 … 1.
func (s *Store) SetPrices(ctx context.Context, p Prices, validFrom time.Time) (Prices, error) {
	for name, price := range map[string]Money{"standard": p.Standard, "zh_lite": p.Optimized, "diarize": p.Diarize, "audio_events": p.AudioEvents} {
		if price < 0 || price > maxPrice {
			return Prices{}, fmt.Errorf("%w: %s is %s; want 0 to %s", errPrices, name, price.Number(), maxPrice.Number())
		}
	}
	if p.BatchDiscount < 0 || p.BatchDiscount > Factor(Unit) {
		return Prices{}, fmt.Errorf("%w: batch_discount is %s; want 0 to 1", errPrices, p.BatchDiscount)
	}
	now := s.clock()
	if validFrom.IsZero() {
		validFrom = now
	}
	p.ValidFrom, p.UpdatedAt = db.Time(db.Micros(validFrom)), db.Time(db.Micros(now))
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO prices (standard, zh_lite, diarize, audio_events, batch_discount, valid_from, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
			p.Standard, p.Optimized, p.Diarize, p.AudioEvents, p.BatchDiscount, db.Micros(validFrom), db.Micros(now)).Scan(&p.ID)
	})
	return p, s.wrap("set prices", err)
}
