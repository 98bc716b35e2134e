package httpserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/service/accounts"
)

// principal is the sender of a request.
type principal struct {
	Account string // id of the account
	User    string // id of the user, if the request carries an access token
	// ReadOnly is set for an API key that may only read.
	ReadOnly bool
}

// private wraps a handler that requires credentials and takes a token from the
// account's rate bucket.
func (s *Server) private(h handler) handler { return s.privately(s.takeToken, h) }

// privately is private with another way to take the token.
func (s *Server) privately(take func(ctx context.Context, account string) error, h handler) handler {
	return func(w http.ResponseWriter, r *request) error {
		who, err := s.authenticate(r.Request)
		if err != nil {
			return err
		}
		r.who = who
		if err := take(r.Context(), who.Account); err != nil {
			return err
		}
		if who.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead {
			return forbidden("this API key is read-only")
		}
		return h(w, r)
	}
}

// open wraps a handler that requires no credentials. A request with valid
// credentials takes its token anyway: the rate limit applies to every request.
func (s *Server) open(h handler) handler {
	return func(w http.ResponseWriter, r *request) error {
		who, err := s.authenticate(r.Request)
		var refused *apiError
		switch {
		case err == nil:
			r.who = who
			if err := s.takeToken(r.Context(), who.Account); err != nil {
				return err
			}
		case !errors.As(err, &refused):
			return err
		}
		return h(w, r)
	}
}

// authenticate determines the sender of a request.
func (s *Server) authenticate(r *http.Request) (principal, error) {
	who, err := s.sender(r)
	switch {
	case errors.Is(err, accounts.ErrUnauthorized):
		return principal{}, unauthorized()
	case errors.Is(err, accounts.ErrSuspended):
		return principal{}, forbidden("the account is suspended")
	}
	return who, err
}

// sender returns the owner of a request's credentials, or
// accounts.ErrUnauthorized. If it has both headers, the API key counts. An API
// key is also accepted as a bearer token, because clients of other interfaces
// cannot send it in any other way.
func (s *Server) sender(r *http.Request) (principal, error) {
	keys, bearers := r.Header.Values("X-API-Key"), r.Header.Values("Authorization")
	if len(keys) > 1 || len(bearers) > 1 || len(keys)+len(bearers) == 0 {
		return principal{}, accounts.ErrUnauthorized
	}
	if len(keys) == 1 {
		return s.byKey(r.Context(), keys[0])
	}
	scheme, token, ok := strings.Cut(bearers[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return principal{}, accounts.ErrUnauthorized
	}
	if token = strings.TrimSpace(token); strings.HasPrefix(token, "asr_") {
		return s.byKey(r.Context(), token)
	}
	return s.byToken(r.Context(), token)
}

func (s *Server) byToken(ctx context.Context, token string) (principal, error) {
	who, issuedFor, err := s.tokens.check(token)
	if err != nil {
		return principal{}, accounts.ErrUnauthorized
	}
	set, err := s.cfg.Accounts.PasswordSet(ctx, who.User)
	if err == nil && !set.Equal(issuedFor) {
		return principal{}, accounts.ErrUnauthorized
	}
	return who, err
}

func (s *Server) byKey(ctx context.Context, key string) (principal, error) {
	k, err := s.cfg.Accounts.Authenticate(ctx, key)
	return principal{Account: k.AccountID, ReadOnly: k.ReadOnly}, err
}

func (s *Server) takeToken(ctx context.Context, account string) error {
	limits, err := s.limits.get(ctx, account)
	if errors.Is(err, accounts.ErrNotFound) {
		return unauthorized()
	}
	if err != nil {
		return err
	}
	wait, err := s.cfg.Rate.TakeToken(ctx, account, limits)
	if err != nil {
		return err
	}
	if wait > 0 {
		return rateLimited(retrySeconds(wait), "too many requests: see tps_limit and tps_burst in GET /account")
	}
	return nil
}

// limitsAge is how long an account's limits are cached: short enough to go
// unnoticed, long enough that a thousand requests a second cause only a few
// queries.
const limitsAge = 200 * time.Millisecond
