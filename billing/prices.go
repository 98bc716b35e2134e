package billing

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
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
	Live          *Money    `json:"live_price_per_hour,omitempty"` // of live sessions, in place of Standard and Optimized; nil: the same as recordings
	BatchDiscount Money     `json:"batch_discount"`                // a factor from 0 to 1
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

const priceColumns = "SELECT id, standard, zh_lite, diarize, audio_events, live, batch_discount, valid_from, created_at FROM prices "

// Prices returns the prices that are valid now.
func (s *Store) Prices(ctx context.Context) (Prices, error) { return s.PricesByID(ctx, s.pool, 0) }

// PricesByID returns one state of the table, such as the one a task was created
// under; 0 is the state that is valid now.
func (s *Store) PricesByID(ctx context.Context, from Querier, id int64) (p Prices, err error) {
	where, key := "WHERE id = $1", id
	if id == 0 {
		where, key = "WHERE valid_from <= $1 ORDER BY valid_from DESC, id DESC LIMIT 1", db.Micros(s.clock())
	}
	err = from.QueryRowContext(ctx, priceColumns+where, key).
		Scan(&p.ID, &p.Standard, &p.Optimized, &p.Diarize, &p.AudioEvents, &p.Live, &p.BatchDiscount, db.ScanTime(&p.ValidFrom), db.ScanTime(&p.UpdatedAt))
	return p, s.wrap(fmt.Sprintf("prices %d", id), err)
}

// SetPrices enters prices that are valid from validFrom on (the zero time: from
// now on). Existing tasks keep the prices of their creation. Prices must lie in
// 0 … 1,000,000 and the discount in 0 … 1.
func (s *Store) SetPrices(ctx context.Context, p Prices, validFrom time.Time) (Prices, error) {
	for name, price := range map[string]Money{"standard": p.Standard, "zh_lite": p.Optimized, "diarize": p.Diarize, "audio_events": p.AudioEvents, "live": p.base(Usage{Live: true, Mode: spec.TierStandard})} {
		if price < 0 || price > maxPrice {
			return Prices{}, fmt.Errorf("%w: %s is %s; want 0 to %s", errPrices, name, price.Number(), maxPrice.Number())
		}
	}
	if p.BatchDiscount < 0 || p.BatchDiscount > Unit {
		return Prices{}, fmt.Errorf("%w: batch_discount is %s; want 0 to 1", errPrices, p.BatchDiscount.Number())
	}
	now := s.clock()
	if validFrom.IsZero() {
		validFrom = now
	}
	p.ValidFrom, p.UpdatedAt = db.Time(db.Micros(validFrom)), db.Time(db.Micros(now))
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO prices (standard, zh_lite, diarize, audio_events, live, batch_discount, valid_from, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
			p.Standard, p.Optimized, p.Diarize, p.AudioEvents, p.Live, p.BatchDiscount, db.Micros(validFrom), db.Micros(now)).Scan(&p.ID)
	})
	return p, s.wrap("set prices", err)
}

// Usage is the amount of service that a task used or may use.
type Usage struct {
	Mode                         spec.Tier
	Seconds                      float64 // decoded duration
	Diarize, Events, Batch, Live bool
	Partial                      bool // the rest of the recording is missing or could not be read
}

// Detail breaks a price down. Components that the task did not use are nil.
// Settlements store its JSON, which is also the specification's billing.detail.
type Detail struct {
	BasePricePerHour    Money  `json:"base_price_per_hour"`
	BaseAmount          Money  `json:"base_amount"`
	DiarizePricePerHour *Money `json:"diarize_price_per_hour,omitempty"`
	DiarizeAmount       *Money `json:"diarize_amount,omitempty"`
	EventsPricePerHour  *Money `json:"events_price_per_hour,omitempty"`
	EventsAmount        *Money `json:"events_amount,omitempty"`
	Subtotal            Money  `json:"subtotal"`
	BatchDiscount       *Money `json:"batch_discount,omitempty"` // a factor, for batch tasks only; 0 means no discount
	Total               Money  `json:"total"`
}

// Quote is the price of a usage.
type Quote struct {
	Mode    spec.Tier
	Minutes int64 // billable
	Detail  Detail
	Total   Money
	Partial bool // for the part of a recording that could be decoded
}

// ErrUsage is returned for a usage that can't be priced.
var ErrUsage = errors.New("usage can't be priced")

// maxSeconds bounds the usage that can be priced: 10 years, above every limit.
const maxSeconds = 10 * 366 * 24 * 3600

// BillableMinutes returns the number of started minutes, at least 1, in exactly
// the given seconds: one sample past a full minute starts another. Lengths that
// are no numbers, negative or above 10 years are errors that wrap ErrUsage.
func BillableMinutes(seconds float64) (int64, error) {
	if !(seconds >= 0 && seconds <= maxSeconds) {
		return 0, fmt.Errorf("%w: a length of %v s", ErrUsage, seconds)
	}
	return max(1, int64(math.Ceil(seconds/60))), nil
}

// Quote prices a usage by the specification's formula: the sum of the prices
// per hour / 60 × minutes, and of a batch task × the batch discount (0 means
// none). Subtotal and Total are each rounded half up to four digits once, from
// the exact value. The components add up to Subtotal: each is rounded down, and
// the remainder goes to the components with the largest fractions.
func (p Prices) Quote(u Usage) (Quote, error) {
	minutes, err := BillableMinutes(u.Seconds)
	if err != nil {
		return Quote{}, err
	}
	if u.Mode != spec.TierStandard && u.Mode != spec.TierOptimized {
		return Quote{}, fmt.Errorf("%w: mode %q", ErrUsage, u.Mode)
	}
	base := p.base(u)
	d := Detail{BasePricePerHour: base}
	perHour, amounts := []Money{base}, []*Money{&d.BaseAmount}
	if u.Diarize {
		d.DiarizePricePerHour, d.DiarizeAmount = &p.Diarize, new(Money)
		perHour, amounts = append(perHour, p.Diarize), append(amounts, d.DiarizeAmount)
	}
	if u.Events {
		d.EventsPricePerHour, d.EventsAmount = &p.AudioEvents, new(Money)
		perHour, amounts = append(perHour, p.AudioEvents), append(amounts, d.EventsAmount)
	}
	var sum Money
	for _, price := range perHour {
		sum += price
	}
	var ok bool
	if d.Subtotal, ok = share(sum, minutes, 60); !ok || sum < 0 {
		return Quote{}, fmt.Errorf("%w: the price is too large", ErrUsage)
	}
	for i, amount := range components(perHour, minutes, d.Subtotal) {
		*amounts[i] = amount
	}
	d.Total = d.Subtotal
	if u.Batch {
		d.BatchDiscount = &p.BatchDiscount
		if p.BatchDiscount != 0 { // a factor of at most 1: the total fits if the subtotal does
			d.Total, _ = share(sum, minutes*int64(p.BatchDiscount), 60*int64(Unit))
		}
	}
	return Quote{Mode: u.Mode, Minutes: minutes, Detail: d, Total: d.Total, Partial: u.Partial}, nil
}

// base returns the price per hour of the text.
func (p Prices) base(u Usage) Money {
	switch {
	case u.Live && p.Live != nil:
		return *p.Live
	case u.Mode == spec.TierOptimized:
		return p.Optimized
	}
	return p.Standard
}

// components divides subtotal, the rounded sum of price / 60 × minutes, among
// the prices by the largest remainder. Each amount differs from its exact value
// by less than 0.0001; of equal remainders, the first counts as larger.
func components(perHour []Money, minutes int64, subtotal Money) []Money {
	amounts, remainders := make([]Money, len(perHour)), make([]int64, len(perHour))
	left := subtotal
	for i, price := range perHour {
		// price × minutes = (price / 60 × minutes) × 60 + (price mod 60) × minutes
		rest := int64(price%60) * minutes
		amounts[i] = price/60*Money(minutes) + Money(rest/60)
		remainders[i] = rest % 60
		left -= amounts[i]
	}
	for ; left > 0; left-- {
		largest := 0
		for i, r := range remainders {
			if r > remainders[largest] {
				largest = i
			}
		}
		amounts[largest]++
		remainders[largest] = -1
	}
	return amounts
}

// Dearest prices a usage with an unknown tier at the most expensive of tiers.
func (p Prices) Dearest(u Usage, tiers ...spec.Tier) (Quote, error) {
	var dearest Quote
	for i, tier := range tiers {
		u.Mode = tier
		q, err := p.Quote(u)
		if err != nil {
			return Quote{}, err
		}
		if i == 0 || q.Total > dearest.Total {
			dearest = q
		}
	}
	return dearest, nil
}

// LongestPaid returns the number of minutes, at most limit, that amount pays
// for at the most expensive of tiers. It ignores u.Seconds.
func (p Prices) LongestPaid(amount Money, limit int64, u Usage, tiers ...spec.Tier) (minutes int64, err error) {
	tooLong := sort.Search(int(max(0, limit)), func(i int) bool {
		u.Seconds = 60 * float64(i+1)
		q, failed := p.Dearest(u, tiers...)
		err = errors.Join(err, failed)
		return q.Total > amount
	})
	return int64(tooLong), err
}
