package client

import (
	"context"
	"net/http"
	"net/url"
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
func (c *Client) Account(ctx context.Context) (a Account, err error) {
	err = c.call(ctx, http.MethodGet, "/account", nil, &a)
	return a, err
}

// Pricing is the table of prices per hour, in the currency of the service.
type Pricing struct {
	Standard      float64   `json:"standard_price_per_hour"`
	Optimized     float64   `json:"zh_lite_price_per_hour"`
	Diarize       float64   `json:"diarize_price_per_hour"`
	AudioEvents   float64   `json:"audio_events_price_per_hour"`
	Live          *float64  `json:"live_price_per_hour"` // of live sessions; nil: Standard or Optimized
	BatchDiscount float64   `json:"batch_discount"`      // 0.5 means half price
	UpdatedAt     time.Time `json:"updated_at"`
}

// Pricing returns the prices; it needs no API key.
func (c *Client) Pricing(ctx context.Context) (p Pricing, err error) {
	err = c.call(ctx, http.MethodGet, "/pricing", nil, &p)
	return p, err
}

// Transaction is a ledger entry. Amounts are decimals with four digits.
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

// Voice is a voice registered with the account under a name.
type Voice struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Consent    string    `json:"consent"` // scope and date of the person's consent
	Model      string    `json:"model"`   // SHA-256 of the speaker model's file
	Recordings int       `json:"recordings"`
	Denied     int       `json:"denied"` // speakers who are not this person
	AddedAt    time.Time `json:"added_at"`
}

// NewVoice is a voice to register, from a speaker of a finished task or from
// vectors of the service's speaker model. If the name exists, its voice gets a
// further recording.
type NewVoice struct {
	Name string `json:"name"`
	// Consent is the scope and date of the person's consent; required without Denied.
	Consent string `json:"consent,omitempty"`
	// TaskID and Speaker (in the task's SpeakerEmbeddings) name a speaker, or
	TaskID  string `json:"task_id,omitempty"`
	Speaker string `json:"speaker,omitempty"`
	// Denied is set if the speaker is another person than the registered Name.
	Denied bool `json:"denied,omitempty"`
	// VoiceID names a registered voice to merge into this one: its recordings
	// move here, and it is deleted.
	VoiceID string `json:"voice_id,omitempty"`
	// Model and Vectors describe the voice.
	Model   string      `json:"model,omitempty"`
	Vectors [][]float32 `json:"vectors,omitempty"`
}

// AddVoice registers a voice, which tasks with Options.Voices name.
func (c *Client) AddVoice(ctx context.Context, v NewVoice) (stored Voice, err error) {
	err = c.call(ctx, http.MethodPost, "/voices", v, &stored)
	return stored, err
}

// Voices returns the account's registered voices, by name.
func (c *Client) Voices(ctx context.Context) ([]Voice, error) {
	var out struct {
		Voices []Voice `json:"voices"`
	}
	err := c.call(ctx, http.MethodGet, "/voices", nil, &out)
	return out.Voices, err
}

// DeleteVoice deletes a voice.
func (c *Client) DeleteVoice(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/voices/"+url.PathEscape(id), nil, nil)
}
