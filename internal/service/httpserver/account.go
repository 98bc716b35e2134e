package httpserver

import (
	"net/http"
	"time"

	"github.com/otograph/otograph/billing"
)

// getAccount handles GET /account, computed at the time of the request.
func (s *Server) getAccount(w http.ResponseWriter, r *request) error {
	a, err := s.cfg.Money.View(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, a)
}

// transaction is the specification's Transaction record: amounts as strings
// with four digits; user_id is the account.
type transaction struct {
	ID            string                  `json:"id"`
	UserID        string                  `json:"user_id"`
	TaskID        *string                 `json:"task_id"`
	Type          billing.TransactionType `json:"type"`
	Amount        string                  `json:"amount"`
	BalanceBefore string                  `json:"balance_before"`
	BalanceAfter  string                  `json:"balance_after"`
	Description   string                  `json:"description"`
	CreatedAt     string                  `json:"created_at"`
}

func transactionOf(t billing.Transaction) transaction {
	out := transaction{
		ID: t.ID, UserID: t.AccountID, Type: t.Type, Amount: t.Amount.String(), BalanceBefore: t.BalanceBefore.String(),
		BalanceAfter: t.BalanceAfter.String(), Description: t.Description, CreatedAt: stamp(t.CreatedAt),
	}
	if t.TaskID != "" {
		out.TaskID = &t.TaskID
	}
	return out
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
	records := make([]transaction, len(list))
	for i, t := range list {
		records[i] = transactionOf(t)
	}
	return writeJSON(w, http.StatusOK, struct {
		Transactions []transaction `json:"transactions"`
		Total        int           `json:"total"`
		Page         int           `json:"page"`
		PageSize     int           `json:"page_size"`
	}{records, total, page, size})
}

// pricesAge is how long the response of GET /pricing is cached, here and by
// clients and proxies.
const pricesAge = 5 * time.Minute

// getPricing is GET /pricing.
func (s *Server) getPricing(w http.ResponseWriter, r *request) error {
	p, err := s.prices.get(r.Context(), "")
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	return writeJSON(w, http.StatusOK, p)
}

// listClasses is GET /audio-event-classes.
func (s *Server) listClasses(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Cache-Control", "private, max-age=3600")
	writeBody(w, http.StatusOK, "application/json", s.classes)
	return nil
}
