package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/spec"
)

// Affordable limits the length of a claimed task's audio.
type Affordable struct {
	Held float64 // seconds that the task's hold pays for
	Most float64 // seconds that the account could pay for now, including Held
}

// longestPriced bounds Affordable, in minutes: a day, above any recording.
const longestPriced = 24 * 60

// Probed holds the price of the task's actual length before it is processed: it
// raises the hold if that is too small. If the account cannot pay for the
// length, nothing changes and the error wraps an *UnpaidError.
func (s *Runs) Probed(ctx context.Context, c *Claim, seconds float64) (Affordable, error) {
	t, err := s.tariff(ctx, c, seconds)
	if err != nil {
		return Affordable{}, s.wrap("price of "+c.ID, err)
	}
	held, most, err := s.billing.HoldLimit(ctx, c.ID)
	if err != nil {
		return Affordable{}, s.wrap("price of "+c.ID, err)
	}
	if price := t.quote.Total; price > held || c.Extras.Live { // for a live session, to detect a cancellation
		err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
			if _, err := s.guard(ctx, tx, c); err != nil {
				return err
			}
			return unaffordable(s.billing.Raise(ctx, tx, c.ID, price), seconds)
		})
		if err != nil {
			return Affordable{}, s.wrap("raise hold of "+c.ID, err)
		}
		held, most = max(price, held), max(price, most)
	}
	paid, err := t.prices.LongestPaid(held, longestPriced, t.usage, t.tiers...)
	payable, failed := t.prices.LongestPaid(most, longestPriced, t.usage, t.tiers...)
	return Affordable{Held: 60 * float64(paid), Most: 60 * float64(payable)}, s.wrap("price of "+c.ID, errors.Join(err, failed))
}

// tariff holds the data that determine the price of a task.
type tariff struct {
	prices billing.Prices
	usage  billing.Usage
	tiers  []spec.Tier // tiers that may run
	quote  billing.Quote
}

// tariff returns the tariff of a claimed task of the given length, at the most
// expensive tier that the workers' models allow.
func (s *core) tariff(ctx context.Context, c *Claim, seconds float64) (t tariff, err error) {
	var sets []spec.Available
	if t.prices, sets, err = s.terms(ctx, s.Config.DB.Read(), c.price); err != nil {
		return t, err
	}
	t.usage, t.tiers = usage(c.Task, seconds), possibleTiers(c.Options, stillNaming(c.Extras.Model, sets))
	t.quote, err = t.prices.Dearest(t.usage, t.tiers...)
	return t, spec.Permanent(err)
}

// terms returns a price list by id, 0 for the current one, and the workers' models.
func (s *core) terms(ctx context.Context, from billing.Querier, price int64) (prices billing.Prices, sets []spec.Available, err error) {
	if prices, err = s.billing.PricesByID(ctx, from, price); err == nil {
		sets, err = s.queue.Available(ctx, from)
	}
	return prices, sets, err
}

// unaffordable turns an insufficient balance into the error that ends the task;
// other errors pass unchanged.
func unaffordable(err error, seconds float64) error {
	short, ok := errors.AsType[*billing.Shortage](err)
	if !ok {
		return err
	}
	minutes, _ := billing.BillableMinutes(seconds) // it was priced
	return &UnpaidError{err, fmt.Sprintf("insufficient_balance: %d min of audio require %s, %s available; nothing is charged",
		minutes, short.Required.Number(), max(0, short.Available).Number())}
}

// UnpaidError ends a task whose account cannot pay for the length of its audio.
// It is permanent (see spec.IsPermanent), wraps billing.ErrInsufficientBalance,
// and its text is shown to the customer.
type UnpaidError struct {
	cause error
	text  string
}

// Error implements error.
func (e *UnpaidError) Error() string { return e.text }

// Unwrap returns the shortage.
func (e *UnpaidError) Unwrap() error { return e.cause }

// Permanent returns true, since another attempt would fail the same way.
func (e *UnpaidError) Permanent() bool { return true }
