package httpserver

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
)

// getAccount handles GET /account, computed at the time of the request.
func (s *Server) getAccount(w http.ResponseWriter, r *request) error {
	a, err := s.cfg.Money.View(r.Context(), r.who.Account)
	return respond(w, a, err)
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
	q := queryOf(r)
	page := q.page()
	if q.err != nil {
		return q.err
	}
	list, total, err := s.cfg.Money.Transactions(r.Context(), r.who.Account, page)
	return respond(w, struct {
		Transactions []transaction `json:"transactions"`
		Total        int           `json:"total"`
		Page         int           `json:"page"`
		PageSize     int           `json:"page_size"`
	}{records(list, transactionOf), total, page.Number, page.Size}, err)
}

// pricesAge is how long the response of GET /pricing is cached, here and by
// clients and proxies.
const pricesAge = 5 * time.Minute

func (s *Server) getPricing(w http.ResponseWriter, r *request) error {
	w.Header().Set("Cache-Control", "public, max-age=300") // an error's response removes it
	p, err := s.prices.get(r.Context(), "")
	return respond(w, p, err)
}

// maxKeys limits the valid keys of an account.
const maxKeys = 100

// keyRecord is an account's view of an API key; Key is set only in the response
// that creates it.
type keyRecord struct {
	ID        string  `json:"id"`
	Key       string  `json:"key,omitempty"`
	Hint      string  `json:"hint"`
	ReadOnly  bool    `json:"read_only"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
	RevokedAt *string `json:"revoked_at"`
	UsedAt    *string `json:"used_at"`
}

func keyRecordOf(k accounts.Key) keyRecord {
	return keyRecord{
		ID: k.ID, Hint: k.Hint, ReadOnly: k.ReadOnly, CreatedAt: stamp(k.CreatedAt),
		ExpiresAt: stampOrNull(k.ExpiresAt), RevokedAt: stampOrNull(k.RevokedAt), UsedAt: stampOrNull(k.UsedAt),
	}
}

// person wraps a handler that requires a login with a password: a key must not
// create other keys that outlive it.
func (s *Server) person(h handler) handler {
	return s.private(func(w http.ResponseWriter, r *request) error {
		if r.who.User == "" {
			return &apiError{Status: http.StatusForbidden, Code: codeForbidden, Message: "managing API keys requires a user: log in with a user name and password (POST /auth/login)"}
		}
		return h(w, r)
	})
}

// recorded changes the account and records the change in the audit log, with
// the user or the API key. The account is the entry's subject; if e has another
// subject, the detail names the account.
func (s *Server) recorded(r *request, e accounts.AuditEntry, work func() error) error {
	account, err := s.cfg.Accounts.Find(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	name, err := s.author(r.Context(), r.who)
	if err != nil {
		return err
	}
	if e.Subject != "" {
		e.Detail = "of " + account.Name
	} else {
		e.Subject = account.Name
	}
	e.Operator = "user " + cmp.Or(name, r.who.User)
	if r.who.User == "" {
		e.Operator = "key " + r.who.KeyID
	}
	return s.cfg.Accounts.Audit(r.Context(), e, work)
}

// createKey handles POST /account/keys, an addition to the specification.
func (s *Server) createKey(w http.ResponseWriter, r *request) error {
	var secret string
	var k accounts.Key
	id := db.NewID()
	err := s.recorded(r, accounts.AuditEntry{Action: "key create", Detail: "unlimited, key " + id}, func() (err error) {
		secret, k, err = s.cfg.Accounts.CreateKey(r.Context(), r.who.Account, accounts.KeyOptions{ID: id, Most: maxKeys})
		return err
	})
	if err != nil {
		return err
	}
	s.log.Info("API key made", "request", r.id, "account", r.who.Account, "user", r.who.User, "key", k.ID)
	out := keyRecordOf(k)
	out.Key = secret
	return writeJSON(w, http.StatusCreated, out)
}

// revokeKey handles DELETE /account/keys/:id, an addition to the specification.
func (s *Server) revokeKey(w http.ResponseWriter, r *request) error {
	id, ok := canonicalID(r.PathValue("id"))
	if !ok {
		return notFound("there is no such key")
	}
	keys, err := s.cfg.Accounts.Keys(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	// Unknown ids must not fill the audit log, which keeps its entries forever.
	if !slices.ContainsFunc(keys, func(k accounts.Key) bool { return k.ID == id }) {
		return notFound("there is no such key")
	}
	err = s.recorded(r, accounts.AuditEntry{Action: "key revoke", Subject: id}, func() error {
		return s.cfg.Accounts.RevokeKey(r.Context(), r.who.Account, id)
	})
	if err != nil {
		return err
	}
	s.log.Info("API key revoked", "request", r.id, "account", r.who.Account, "user", r.who.User, "key", id)
	return writeJSON(w, http.StatusOK, map[string]string{"message": "key revoked"})
}

// getUsage handles GET /usage, an addition to the specification.
func (s *Server) getUsage(w http.ResponseWriter, r *request) error {
	q := queryOf(r)
	zone, _ := q.text("timezone")
	by, _ := q.text("by")
	asked, err := tasks.ParseUsage(zone, by, tasks.UsageGroups()...)
	if err != nil {
		return invalidBecause(err, "%s", err)
	}
	format := q.choice("format", "json", "csv")
	asked.Account, asked.Monthly = r.who.Account, q.choice("period", "month", "day") == "month"
	asked.From, asked.Until = q.time("from", asked.Zone), q.time("until", asked.Zone)
	if q.err != nil {
		return q.err
	}
	u, err := s.cfg.Tasks.Usage(r.Context(), asked)
	if err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(w, http.StatusOK, u)
	}
	var out bytes.Buffer
	if err := u.WriteCSV(&out); err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "text/csv; charset=utf-8", out.Bytes())
	return nil
}

// hookRecord is an account's hook; the secret is set only in the response that
// creates or replaces it.
type hookRecord struct {
	webhook.Hook
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
	OldSecret *string `json:"old_secret_expires_at"`
	Secret    string  `json:"secret,omitempty"`
}

func (s *Server) writeHook(w http.ResponseWriter, r *request, status int, secret string) error {
	h, err := s.cfg.Tasks.Outbox().Hook(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	return writeJSON(w, status, hookRecord{h, stamp(h.CreatedAt), stamp(h.UpdatedAt), stampOrNull(h.OldSecret), secret})
}

// getHook handles GET /account/hook, an addition to the specification.
func (s *Server) getHook(w http.ResponseWriter, r *request) error {
	return s.writeHook(w, r, http.StatusOK, "")
}

// changeHook changes the account's hook with work, which may return a secret,
// records it in the audit log and responds with the hook.
func (s *Server) changeHook(w http.ResponseWriter, r *request, e accounts.AuditEntry, work func(o *webhook.Outbox, ctx context.Context, account string) (string, error)) error {
	var secret string
	err := s.recorded(r, e, func() (err error) {
		secret, err = work(s.cfg.Tasks.Outbox(), r.Context(), r.who.Account)
		return err
	})
	if err != nil {
		return err
	}
	if r.Method == http.MethodPut && secret != "" {
		return s.writeHook(w, r, http.StatusCreated, secret)
	}
	return s.writeHook(w, r, http.StatusOK, secret)
}

// setHook handles PUT /account/hook, an addition to the specification.
func (s *Server) setHook(w http.ResponseWriter, r *request) error {
	var h webhook.Hook
	err := readBody(w, r, maxSmallBody, jsonstream.Fields{
		"url":      text(&h.URL, maxURL),
		"events":   func(v *jsonstream.Value) error { return v.Texts(&h.Events, len(webhook.EventNames()), 100) },
		"timezone": text(&h.Zone, 100),
		"budget":   decoded(&h.Budget, "budget: must be a number with at most 4 decimals"),
	})
	if err == nil {
		err = h.Check()
	}
	if err == nil {
		err = s.checkURL(r, "url", h.URL)
	}
	if err != nil {
		return err
	}
	return s.changeHook(w, r, accounts.AuditEntry{Action: "hook set", Detail: h.Detail()}, func(o *webhook.Outbox, ctx context.Context, account string) (string, error) {
		return o.SetHook(ctx, account, h)
	})
}

// rotateHook handles POST /account/hook/secret, an addition to the
// specification.
func (s *Server) rotateHook(w http.ResponseWriter, r *request) error {
	return s.changeHook(w, r, accounts.AuditEntry{Action: "hook rotate"}, (*webhook.Outbox).RotateSecret)
}

// removeHook handles DELETE /account/hook, an addition to the specification.
func (s *Server) removeHook(w http.ResponseWriter, r *request) error {
	err := s.recorded(r, accounts.AuditEntry{Action: "hook remove"}, func() error {
		return s.cfg.Tasks.Outbox().RemoveHook(r.Context(), r.who.Account)
	})
	return respond(w, map[string]string{"message": "hook removed"}, err)
}
