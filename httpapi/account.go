package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/spec"
)

// getAccount is GET /account, computed at the time of asking.
func (s *Server) getAccount(w http.ResponseWriter, r *request) error {
	a, err := s.cfg.Money.View(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, a)
}

// listTransactions is GET /billing/transactions.
func (s *Server) listTransactions(w http.ResponseWriter, r *request) error {
	page, size, err := paging(r)
	if err != nil {
		return err
	}
	list, total, err := s.cfg.Money.Transactions(r.Context(), r.who.Account, page, size)
	if err != nil {
		return err
	}
	if list == nil {
		list = []billing.Transaction{}
	}
	return writeJSON(w, http.StatusOK, struct {
		Transactions []billing.Transaction `json:"transactions"`
		Total        int                   `json:"total"`
		Page         int                   `json:"page"`
		PageSize     int                   `json:"page_size"`
	}{list, total, page, size})
}

// PricesAge is how long the answer of GET /pricing is kept, here and by caches
// on the way.
const PricesAge = 5 * time.Minute

// pricing is the specification's Pricing record.
type pricing struct {
	Standard      billing.Money  `json:"standard_price_per_hour"`
	Lite          billing.Money  `json:"zh_lite_price_per_hour"`
	Diarize       billing.Money  `json:"diarize_price_per_hour"`
	AudioEvents   billing.Money  `json:"audio_events_price_per_hour"`
	BatchDiscount billing.Factor `json:"batch_discount"`
	UpdatedAt     string         `json:"updated_at"`
}

// getPricing is GET /pricing.
func (s *Server) getPricing(w http.ResponseWriter, r *request) error {
	p, err := s.prices.get(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	return writeJSON(w, http.StatusOK, pricing{
		Standard: p.Standard, Lite: p.Lite, Diarize: p.Diarize, AudioEvents: p.AudioEvents,
		BatchDiscount: p.BatchDiscount, UpdatedAt: stamp(p.UpdatedAt),
	})
}

// pricesCache keeps the prices for PricesAge.
type pricesCache struct {
	money  Money
	now    func() time.Time
	mu     sync.Mutex
	prices billing.Prices
	read   time.Time
}

func newPricesCache(m Money) *pricesCache { return &pricesCache{money: m, now: time.Now} }

func (c *pricesCache) get(ctx context.Context) (billing.Prices, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if age := now.Sub(c.read); !c.read.IsZero() && age >= 0 && age < PricesAge {
		return c.prices, nil
	}
	p, err := c.money.Prices(ctx)
	if err != nil {
		return billing.Prices{}, err
	}
	c.prices, c.read = p, now
	return p, nil
}

// listClasses is GET /audio-event-classes.
func (s *Server) listClasses(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Cache-Control", "private, max-age=3600")
	writeBody(w, http.StatusOK, "application/json", s.classes)
	return nil
}

func classesJSON() ([]byte, error) { return json.Marshal(spec.EventClasses()) }
