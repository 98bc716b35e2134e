package httpserver

import (
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/spec"
)

// Limits on the texts of a login, in characters.
const (
	maxUsername = 200
	maxPassword = 1000
)

// login exchanges a user's name and password for an access token.
func (s *Server) login(w http.ResponseWriter, r *request) error {
	var username, password string
	err := readBody(w, r, maxSmallBody, jsonstream.Fields{
		"username": func(v *jsonstream.Value) error { return v.Text(&username, maxUsername) },
		"password": func(v *jsonstream.Value) error { return v.Text(&password, maxPassword) },
	})
	switch {
	case err != nil:
		return err
	case username == "":
		return invalid("username: is required")
	case password == "":
		return invalid("password: is required")
	}
	user, err := s.checkPassword(r, username, password)
	if err != nil {
		return err
	}
	token, err := s.tokens.issue(user)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}{token, "Bearer", int(tokenLifetime.Seconds())})
}

// maxLoginsWaiting limits the logins that wait for their turn at the password
// hash, and the logins that wait for their delay.
const maxLoginsWaiting = 64

// newLoginTurns returns the gate before the password hash, which costs 32 MiB
// and a tenth of a second of every core. Addresses take turns, and one address
// leaves a slot to the others.
func newLoginTurns() *fairuse.Gate {
	places := max(2, min(4, runtime.GOMAXPROCS(0)))
	return fairuse.NewGate(places, places-1, maxLoginsWaiting)
}

// checkPassword returns the user who logs in. Failures are counted by user and
// address, by address, and by user; refused or delayed logins are logged with
// the name, never with the password.
func (s *Server) checkPassword(r *request, username, password string) (accounts.User, error) {
	delay, wait := s.logins.Enter(username, r.from)
	if wait > 0 {
		s.log.Warn("login refused", "request", r.id, "user", spec.Shorten(username), "from", r.from, "reason", "too many failures", "wait_s", retrySeconds(wait))
		return accounts.User{}, rateLimited(retrySeconds(wait), "too many failed logins: wait before the next one")
	}
	if delay > 0 {
		if err := s.delayLogin(r, delay); err != nil {
			return accounts.User{}, err
		}
	}
	leave, err := s.loginTurns.Enter(r.Context(), r.from)
	if errors.Is(err, fairuse.ErrFull) {
		return accounts.User{}, busyLogins()
	}
	if err != nil {
		return accounts.User{}, err
	}
	defer leave()
	user, err := s.cfg.Accounts.Login(r.Context(), username, password)
	if errors.Is(err, accounts.ErrUnauthorized) {
		s.log.Warn("login failed", "request", r.id, "user", spec.Shorten(username), "from", r.from)
		out := unauthorized()
		out.Message = "username or password is wrong"
		return accounts.User{}, out
	}
	if errors.Is(err, accounts.ErrSuspended) {
		s.log.Warn("login refused", "request", r.id, "user", spec.Shorten(username), "from", r.from, "reason", "the account is suspended")
		return accounts.User{}, forbidden("the account is suspended")
	}
	if err != nil {
		return accounts.User{}, err
	}
	s.logins.Success(username, r.from)
	s.log.Info("login", "request", r.id, "user", spec.Shorten(username), "from", r.from)
	return user, nil
}

// delayLogin delays a login. The number of delayed logins is limited, because
// each holds a connection.
func (s *Server) delayLogin(r *request, delay time.Duration) error {
	if s.loginsDelayed.Add(1) > maxLoginsWaiting {
		s.loginsDelayed.Add(-1)
		return busyLogins()
	}
	defer s.loginsDelayed.Add(-1)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	case <-s.draining.Done():
		return unavailable(errors.New("the service is stopping"))
	}
}

func busyLogins() *apiError {
	return rateLimited(1, "too many logins at the same time: try again")
}
