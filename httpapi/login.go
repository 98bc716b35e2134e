package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/otograph/otograph/internal/accounts"
)

// Bounds on the texts of a login, in characters.
const (
	maxUsername = 200
	maxPassword = 1000
)

// login exchanges a user's name and password for an access token.
func (s *Server) login(w http.ResponseWriter, r *request) error {
	if err := wantJSON(r.Request); err != nil {
		return err
	}
	body, err := s.body(w, r.Request, maxSmallBody)
	if err != nil {
		return err
	}
	var username, password string
	err = readObject(body, maxSmallBody, map[string]func(*value) error{
		"username": func(v *value) error { return v.text(&username, maxUsername) },
		"password": func(v *value) error { return v.text(&password, maxPassword) },
	})
	switch {
	case err != nil:
		return err
	case username == "":
		return invalid("username: is required")
	case password == "":
		return invalid("password: is required")
	}
	key := throttleKey{user: strings.ToLower(username), address: clientAddress(r.RemoteAddr)}
	if wait := s.logins.enter(key); wait > 0 {
		return rateLimited(retrySeconds(wait), "too many failed logins: wait before the next one")
	}
	user, err := s.cfg.Accounts.Login(r.Context(), username, password)
	if errors.Is(err, accounts.ErrUnauthorized) {
		out := unauthorized()
		out.Message = "username or password is wrong"
		return out
	}
	if err != nil {
		return err
	}
	s.logins.success(key)
	token, err := s.tokens.issue(user)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}{token, "Bearer", int(TokenLifetime.Seconds())})
}
