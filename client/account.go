package client

import (
	"context"
	"net/http"
	"time"
)

// Account is the account's balance and limits. Amounts are in its currency.
type Account struct {
	Balance            float64 `json:"balance"`
	Held               float64 `json:"held_amount"`
	ResourcePacks      float64 `json:"resource_pack_equivalent"`
	Available          float64 `json:"available_balance"`
	Tier               int     `json:"tier"`
	ConcurrencyLimit   int     `json:"concurrency_limit"`
	ActiveTasks        int     `json:"active_tasks"`
	AvailableTasks     int     `json:"available_concurrency"`
	WaitingBatchTasks  int     `json:"waiting_batch_tasks"`
	RequestsPerSecond  float64 `json:"tps_limit"`
	RequestsInOneBurst int     `json:"tps_burst"`
}

// Account returns the account of the API key.
func (c *Client) Account(ctx context.Context) (Account, error) {
	var a Account
	return a, c.call(ctx, http.MethodGet, "/account", nil, &a)
}

// Pricing is the table of prices per hour, in the currency of the service.
type Pricing struct {
	Standard      float64   `json:"standard_price_per_hour"`
	Optimized     float64   `json:"zh_lite_price_per_hour"`
	Diarize       float64   `json:"diarize_price_per_hour"`
	AudioEvents   float64   `json:"audio_events_price_per_hour"`
	BatchDiscount float64   `json:"batch_discount"` // 0.5 means half price
	UpdatedAt     time.Time `json:"updated_at"`
}

// Pricing returns the prices; it needs no API key.
func (c *Client) Pricing(ctx context.Context) (Pricing, error) {
	var p Pricing
	return p, c.call(ctx, http.MethodGet, "/pricing", nil, &p)
}

// Transaction is an entry of an account's ledger. Amounts are decimal texts with
// four fraction digits.
type Transaction struct {
	ID            string    `json:"id"`
	UserID        string    `json:"user_id"`
	TaskID        *string   `json:"task_id"` // nil unless Type is "deduction"
	Type          string    `json:"type"`    // "deduction", "recharge" or "refund"
	Amount        string    `json:"amount"`
	BalanceBefore string    `json:"balance_before"`
	BalanceAfter  string    `json:"balance_after"`
	Description   string    `json:"description"`
	CreatedAt     time.Time `json:"created_at"`
}

// Transactions returns a page of the ledger, newest first, and the total number
// of entries; page and size work as in Tasks.
func (c *Client) Transactions(ctx context.Context, page, size int) (entries []Transaction, total int, err error) {
	var out struct {
		Transactions []Transaction `json:"transactions"`
		Total        int           `json:"total"`
	}
	err = c.call(ctx, http.MethodGet, "/billing/transactions?"+pageQuery(page, size).Encode(), nil, &out)
	return out.Transactions, out.Total, err
}
