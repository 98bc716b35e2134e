package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/audit"
)

// maxKeys bounds the keys of an account that are not revoked.
const maxKeys = 100

// keyRecord is an API key as its account sees it; Key is there once, when it is
// made.
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

func recordOf(k accounts.Key, secret string) keyRecord {
	return keyRecord{
		ID: k.ID, Key: secret, Hint: k.Hint, ReadOnly: k.ReadOnly, CreatedAt: stamp(k.CreatedAt),
		ExpiresAt: stampOrNull(k.ExpiresAt), RevokedAt: stampOrNull(k.RevokedAt), UsedAt: stampOrNull(k.UsedAt),
	}
}

// person makes a handler one for people who have logged in: a key must not be
// able to make others that outlive it.
func (s *Server) person(h handler) handler {
	return s.private(func(w http.ResponseWriter, r *request) error {
		if r.who.User == "" {
			return &Error{Status: http.StatusForbidden, Code: codeForbidden, Message: "API keys are managed by people: log in with a user name and password (POST /auth/login)"}
		}
		return h(w, r)
	})
}

// recorded does something with a key that stands in the audit log, as that of the
// person who has logged in.
func (s *Server) recorded(r *request, action, key string, work func() error) error {
	account, err := s.cfg.Accounts.Find(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	users, err := s.cfg.Accounts.Users(r.Context(), account.ID)
	if err != nil {
		return err
	}
	e := audit.Entry{Operator: "user " + r.who.User, Action: action, Subject: account.Name, Detail: "unlimited"}
	if key != "" {
		e.Subject, e.Detail = key, "of "+account.Name
	}
	for _, u := range users {
		if u.ID == r.who.User {
			e.Operator = "user " + u.Username
		}
	}
	return s.cfg.Audit.Do(r.Context(), e, work)
}

// listKeys is GET /account/keys, which the specification does not have.
func (s *Server) listKeys(w http.ResponseWriter, r *request) error {
	keys, err := s.cfg.Accounts.Keys(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	out := struct {
		Keys []keyRecord `json:"keys"`
	}{make([]keyRecord, len(keys))}
	for i, k := range keys {
		out.Keys[i] = recordOf(k, "")
	}
	return writeJSON(w, http.StatusOK, out)
}

// createKey is POST /account/keys, which the specification does not have.
func (s *Server) createKey(w http.ResponseWriter, r *request) error {
	keys, err := s.cfg.Accounts.Keys(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	valid := 0
	for _, k := range keys {
		if k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(time.Now())) {
			valid++
		}
	}
	if valid >= maxKeys {
		return &Error{Status: http.StatusConflict, Code: codeConflict, Message: "the account has 100 API keys: revoke one first"}
	}
	var secret string
	var k accounts.Key
	err = s.recorded(r, "key create", "", func() error {
		var err error
		secret, k, err = s.cfg.Accounts.CreateKey(r.Context(), r.who.Account)
		return err
	})
	if err != nil {
		return err
	}
	s.log.Info("API key made", "request", r.id, "account", r.who.Account, "user", r.who.User, "key", k.ID)
	return writeJSON(w, http.StatusCreated, recordOf(k, secret))
}

// revokeKey is DELETE /account/keys/:id, which the specification does not have.
func (s *Server) revokeKey(w http.ResponseWriter, r *request) error {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return notFound("there is no such key")
	}
	err = s.recorded(r, "key revoke", id.String(), func() error {
		return s.cfg.Accounts.RevokeKeyOf(r.Context(), r.who.Account, id.String())
	})
	if errors.Is(err, accounts.ErrNotFound) {
		return notFound("there is no such key")
	}
	if err != nil {
		return err
	}
	s.log.Info("API key revoked", "request", r.id, "account", r.who.Account, "user", r.who.User, "key", id.String())
	return writeJSON(w, http.StatusOK, struct {
		Message string `json:"message"`
	}{"key revoked"})
}
