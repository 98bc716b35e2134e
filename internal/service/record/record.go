// Package record holds the specification's records of accounts and prices,
// which the service returns and the operator's commands print.
package record

import (
	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
)

// Account is the specification's Account record.
type Account struct {
	Balance                billing.Money `json:"balance"`
	HeldAmount             billing.Money `json:"held_amount"`
	ResourcePackEquivalent billing.Money `json:"resource_pack_equivalent"`
	AvailableBalance       billing.Money `json:"available_balance"`
	Tier                   int           `json:"tier"`
	ConcurrencyLimit       int           `json:"concurrency_limit"`
	ActiveTasks            int           `json:"active_tasks"`
	AvailableConcurrency   int           `json:"available_concurrency"`
	WaitingBatchTasks      int           `json:"waiting_batch_tasks"`
	TPSLimit               float64       `json:"tps_limit"`
	TPSBurst               int           `json:"tps_burst"`
}

// AccountOf returns the record of an account.
func AccountOf(a billing.Account) Account {
	return Account{
		Balance: a.Balance, HeldAmount: a.Held, ResourcePackEquivalent: a.Packs, AvailableBalance: a.Available,
		Tier: a.Limits.Tier, ConcurrencyLimit: a.Limits.Concurrency, ActiveTasks: a.ActiveTasks,
		AvailableConcurrency: max(0, a.Limits.Concurrency-a.ActiveTasks), WaitingBatchTasks: a.WaitingBatchTasks,
		TPSLimit: a.Limits.TPS, TPSBurst: a.Limits.Burst,
	}
}

// Pricing is the specification's Pricing record.
type Pricing struct {
	Standard      billing.Money  `json:"standard_price_per_hour"`
	Optimized     billing.Money  `json:"zh_lite_price_per_hour"`
	Diarize       billing.Money  `json:"diarize_price_per_hour"`
	AudioEvents   billing.Money  `json:"audio_events_price_per_hour"`
	BatchDiscount billing.Factor `json:"batch_discount"`
	UpdatedAt     string         `json:"updated_at"`
}

// PricingOf returns the record of prices.
func PricingOf(p billing.Prices) Pricing {
	return Pricing{
		Standard: p.Standard, Optimized: p.Optimized, Diarize: p.Diarize, AudioEvents: p.AudioEvents,
		BatchDiscount: p.BatchDiscount, UpdatedAt: p.UpdatedAt.UTC().Format(tasks.TimeFormat),
	}
}
