package httpserver

import (
	"context"
	"net/http"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/webhook"
)

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
