package billing

import (
	"errors"
	"fmt"
	"math"
)

// Mode is the tier that a task is charged for, under its name in bills.
type Mode string

// The two tiers.
const (
	// ModeStandard is the standard tier.
	ModeStandard Mode = "standard"
	// ModeLite is the optimized tier; its name is historical.
	ModeLite Mode = "zh_lite"
)

// Usage is what a task used or may use.
type Usage struct {
	Mode    Mode
	Seconds float64 // decoded duration
	Diarize bool
	Events  bool
	Batch   bool
}

// Detail is the specification's billing.detail. Components that were off are nil and stay away from the JSON.
type Detail struct {
	BasePricePerHour    Money   `json:"base_price_per_hour"`
	BaseAmount          Money   `json:"base_amount"`
	DiarizePricePerHour *Money  `json:"diarize_price_per_hour,omitempty"`
	DiarizeAmount       *Money  `json:"diarize_amount,omitempty"`
	EventsPricePerHour  *Money  `json:"events_price_per_hour,omitempty"`
	EventsAmount        *Money  `json:"events_amount,omitempty"`
	Subtotal            Money   `json:"subtotal"`
	BatchDiscount       *Factor `json:"batch_discount,omitempty"` // batch tasks only; 0 means no discount
	Total               Money   `json:"total"`
}

// Quote is the price of a usage.
type Quote struct {
	Mode    Mode
	Minutes int64 // billable
	Detail  Detail
	Total   Money
}

// ErrUsage says that a usage can't be priced.
var ErrUsage = errors.New("usage can't be priced")

// maxSeconds bounds what is priced: 10 years, far above every limit of the service.
const maxSeconds = 10 * 366 * 24 * 3600

// BillableMinutes is the number of begun minutes, at least 1, of a length in seconds that is first rounded to 10 ms.
// Lengths that are not numbers, negative or longer than 10 years are errors that wrap ErrUsage.
func BillableMinutes(seconds float64) (int64, error) {
	if !(seconds >= 0 && seconds <= maxSeconds) {
		return 0, fmt.Errorf("%w: a length of %v s", ErrUsage, seconds)
	}
	centiseconds := int64(math.Round(seconds * 100))
	return max(1, (centiseconds+5999)/6000), nil
}

// Quote prices a usage: each component is price per hour × minutes / 60 rounded half up to four digits; their sum is
// multiplied by the batch discount for a batch task (0 means no discount), rounded half up.
func (p Prices) Quote(u Usage) (Quote, error) {
	minutes, err := BillableMinutes(u.Seconds)
	if err != nil {
		return Quote{}, err
	}
	base := p.Standard
	switch u.Mode {
	case ModeStandard:
	case ModeLite:
		base = p.Lite
	default:
		return Quote{}, fmt.Errorf("%w: mode %q", ErrUsage, u.Mode)
	}
	var overflow bool
	component := func(perHour Money) *Money {
		amount, ok := share(perHour, minutes, 60)
		overflow = overflow || !ok
		return &amount
	}
	d := Detail{BasePricePerHour: base, BaseAmount: *component(base)}
	d.Subtotal = d.BaseAmount
	if u.Diarize {
		d.DiarizePricePerHour, d.DiarizeAmount = &p.Diarize, component(p.Diarize)
		d.Subtotal += *d.DiarizeAmount
	}
	if u.Events {
		d.EventsPricePerHour, d.EventsAmount = &p.AudioEvents, component(p.AudioEvents)
		d.Subtotal += *d.EventsAmount
	}
	d.Total = d.Subtotal
	if u.Batch {
		d.BatchDiscount = &p.BatchDiscount
		if p.BatchDiscount != 0 && !overflow {
			var ok bool
			d.Total, ok = share(d.Subtotal, int64(p.BatchDiscount), int64(Unit))
			overflow = !ok
		}
	}
	if overflow || d.Subtotal < 0 {
		return Quote{}, fmt.Errorf("%w: the price is too large", ErrUsage)
	}
	return Quote{Mode: u.Mode, Minutes: minutes, Detail: d, Total: d.Total}, nil
}

// Dearest prices a usage whose tier is not known yet: the dearer of modes.
func (p Prices) Dearest(u Usage, modes ...Mode) (Quote, error) {
	var dearest Quote
	for i, mode := range modes {
		u.Mode = mode
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
