package httpserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/spec"
)

type principal struct {
	Account string // id of the account
	User    string // id of the user, if the request carries an access token
	Key     string // first characters of the API key, otherwise
	KeyID   string // id of the API key
	// ReadOnly is set for an API key that may only read.
	ReadOnly bool
}

// private wraps a handler that requires credentials and takes a token from the
// account's rate bucket.
func (s *Server) private(h handler) handler { return s.privately(s.takeToken, h) }

// privately is private with another way to take the token.
func (s *Server) privately(take func(ctx context.Context, account string) error, h handler) handler {
	return func(w http.ResponseWriter, r *request) error {
		if err := s.identify(r, take); err != nil {
			return err
		}
		if r.who.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead {
			return forbidden("this API key is read-only")
		}
		if err := s.checkQuery(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// open wraps a handler that requires no credentials. A request with valid
// credentials still takes a token of the rate bucket, because the rate limit
// applies to every request.
func (s *Server) open(h handler) handler {
	return func(w http.ResponseWriter, r *request) error {
		if err := s.identify(r, s.takeToken); err != nil && !errors.Is(err, accounts.ErrUnauthorized) && !errors.Is(err, accounts.ErrSuspended) {
			return err
		}
		if err := s.checkQuery(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// identify sets the owner of a request's credentials and takes a token.
func (s *Server) identify(r *request, take func(ctx context.Context, account string) error) error {
	who, err := s.authenticate(r.Request)
	if err != nil {
		return err
	}
	r.who = who
	return take(r.Context(), who.Account)
}

// checkQuery parses the query. It refuses parameters that are given twice, or that
// an endpoint does not have, because a mistyped filter would select everything. On
// endpoints of OpenAI's and Deepgram's interfaces they are ignored, as by these
// vendors.
func (s *Server) checkQuery(r *request) (err error) {
	if r.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return invalidBecause(err, "the query of the URL: %v", err)
	}
	known, ok := s.document.Queries[strings.TrimPrefix(r.route, s.cfg.BasePath)]
	if !ok || s.openAIPath(r.route) || s.deepgramPath(r.route) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		if !slices.Contains(known, name) {
			return invalid("%s: there is no such query parameter here%s", spec.Shorten(name), spec.DidYouMean(name, known))
		}
		if len(r.query[name]) > 1 {
			return invalid("%s: is given twice", name)
		}
	}
	return nil
}

// authenticate returns the owner of a request's credentials, or
// accounts.ErrUnauthorized. If it has both headers, the API key counts. An API
// key is also accepted as clients of other interfaces send it: as a bearer
// token, after "Token" (Deepgram), and alone on AssemblyAI's path.
func (s *Server) authenticate(r *http.Request) (principal, error) {
	keys, bearers := r.Header.Values("X-API-Key"), r.Header.Values("Authorization")
	if len(keys) > 1 || len(bearers) > 1 || len(keys)+len(bearers) == 0 {
		return principal{}, accounts.ErrUnauthorized
	}
	if len(keys) == 1 {
		return s.byKey(r.Context(), keys[0])
	}
	scheme, token, ok := strings.Cut(bearers[0], " ")
	if !ok && r.URL.Path == s.folder()+"/v3/ws" {
		scheme, token, ok = "Token", scheme, true
	}
	token = strings.TrimSpace(token)
	bearer := strings.EqualFold(scheme, "Bearer")
	switch {
	case !ok:
	case strings.HasPrefix(token, "asr_") && (bearer || strings.EqualFold(scheme, "Token")):
		return s.byKey(r.Context(), token)
	case bearer:
		return s.byToken(r.Context(), token)
	}
	return principal{}, accounts.ErrUnauthorized
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
	return principal{Account: k.AccountID, Key: k.Hint, KeyID: k.ID, ReadOnly: k.ReadOnly}, err
}

func (s *Server) takeToken(ctx context.Context, account string) error {
	limits, err := s.limits.get(ctx, account)
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

// tokenLifetime is the validity of an access token after the login.
const tokenLifetime = time.Hour

const (
	tokenIssuer   = "otograph"
	tokenAudience = "otograph-api"
	maxToken      = 4096 // bytes; the service's tokens have about 400
	minTokenKey   = 32   // bytes; HS256 needs a key as long as its hash (RFC 7518, 3.2)
)

// tokens issues and checks access tokens: JWT with HS256 only.
type tokens struct {
	key atomic.Pointer[[]byte]
	now func() time.Time
}

func newTokens(key []byte) (*tokens, error) {
	t := &tokens{now: time.Now}
	return t, t.setKey(key)
}

func (t *tokens) setKey(key []byte) error {
	if len(key) < minTokenKey {
		return fmt.Errorf("httpserver: the token key has %d bytes, at least %d are required", len(key), minTokenKey)
	}
	t.key.Store(&key)
	return nil
}

type claims struct {
	Account     string `json:"account"`
	PasswordSet int64  `json:"password_set"` // microseconds since 1970: a token is valid until the password changes
	jwt.RegisteredClaims
}

// issue creates a token for a user, valid for tokenLifetime.
func (t *tokens) issue(u accounts.User) (string, error) {
	c := claims{u.AccountID, u.PasswordSet.UnixMicro(), t.registered(tokenAudience, tokenLifetime)}
	c.Subject, c.ID = u.ID, uuid.NewString()
	c.IssuedAt = jwt.NewNumericDate(t.now())
	c.NotBefore = c.IssuedAt
	return t.sign(c)
}

// registered returns the claims of a token for an audience. They lack the time
// of issue, so that a server whose clock is behind accepts the token
// immediately.
func (t *tokens) registered(audience string, lifetime time.Duration) jwt.RegisteredClaims {
	return jwt.RegisteredClaims{Issuer: tokenIssuer, Audience: jwt.ClaimStrings{audience}, ExpiresAt: jwt.NewNumericDate(t.now().Add(lifetime))}
}

func (t *tokens) sign(c jwt.Claims) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(*t.key.Load())
}

// parse reads the claims of a token of at most max bytes for an audience.
func (t *tokens) parse(token string, c jwt.Claims, audience string, max int) error {
	if len(token) > max {
		return errToken
	}
	_, err := jwt.ParseWithClaims(token, c, func(*jwt.Token) (any, error) { return *t.key.Load(), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuer(tokenIssuer), jwt.WithAudience(audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(t.now), jwt.WithStrictDecoding(),
	)
	return err
}

var errToken = errors.New("token refused")

// check returns the owner of a token, and the time when the owner's password
// was set. Every defect of a token is errToken.
func (t *tokens) check(token string) (who principal, passwordSet time.Time, err error) {
	var c claims
	err = t.parse(token, &c, tokenAudience, maxToken)
	// A thief of the key must not be able to create tokens that outlive its
	// rotation by much.
	short := c.IssuedAt != nil && c.ExpiresAt != nil && c.ExpiresAt.Sub(c.IssuedAt.Time) <= tokenLifetime
	if err != nil || c.Subject == "" || c.Account == "" || !short {
		return principal{}, time.Time{}, errors.Join(errToken, err)
	}
	return principal{Account: c.Account, User: c.Subject}, time.UnixMicro(c.PasswordSet), nil
}

// Limits on the texts of a login, in characters.
const (
	maxUsername = 200
	maxPassword = 1000
)

// createToken handles POST /auth/login: it exchanges a user's name and password
// for an access token.
func (s *Server) createToken(w http.ResponseWriter, r *request) error {
	var username, password string
	err := readBody(w, r, maxSmallBody, jsonstream.Fields{
		"username": text(&username, maxUsername),
		"password": text(&password, maxPassword),
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
	return respond(w, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}{token, "Bearer", int(tokenLifetime.Seconds())}, err)
}

// maxLoginsWaiting limits the logins that wait for their turn at the password
// hash, and the logins that wait for their delay.
const maxLoginsWaiting = 64

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
	user, err := s.login(r.Context(), username, password)
	if errors.Is(err, accounts.ErrUnauthorized) {
		s.log.Warn("login failed", "request", r.id, "user", spec.Shorten(username), "from", r.from)
		return accounts.User{}, &apiError{Status: http.StatusUnauthorized, Code: codeUnauthorized, Message: "username or password is wrong"}
	}
	if errors.Is(err, accounts.ErrSuspended) {
		s.log.Warn("login refused", "request", r.id, "user", spec.Shorten(username), "from", r.from, "reason", "the account is suspended")
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
	select {
	case <-time.After(delay):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	case <-s.draining.Done():
		return unavailable(errors.New("the service is stopping"))
	}
}

func busyLogins() *apiError { return rateLimited(1, "too many logins at the same time: try again") }
