package httpserver

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/accounts"
)

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

// claims are the claims of a token.
type claims struct {
	Account     string `json:"account"`
	PasswordSet int64  `json:"password_set"` // microseconds since 1970: a token is valid until the password changes
	jwt.RegisteredClaims
}

// issue creates a token for a user, valid for tokenLifetime.
func (t *tokens) issue(u accounts.User) (string, error) {
	now := t.now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims{Account: u.AccountID, PasswordSet: u.PasswordSet.UnixMicro(), RegisteredClaims: jwt.RegisteredClaims{
		Issuer: tokenIssuer, Audience: jwt.ClaimStrings{tokenAudience}, Subject: u.ID, ID: uuid.NewString(),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLifetime)),
	}}).SignedString(*t.key.Load())
}

var errToken = errors.New("token refused")

// check returns the owner of a token, and the time when the owner's password
// was set. Every defect of a token is errToken.
func (t *tokens) check(token string) (who principal, passwordSet time.Time, err error) {
	if len(token) > maxToken {
		return principal{}, time.Time{}, errToken
	}
	var c claims
	_, err = jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return *t.key.Load(), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(tokenIssuer), jwt.WithAudience(tokenAudience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(t.now), jwt.WithStrictDecoding(),
	)
	// Someone who obtained the key must not be able to create tokens that
	// outlive its rotation by much.
	short := c.IssuedAt != nil && c.ExpiresAt != nil && c.ExpiresAt.Sub(c.IssuedAt.Time) <= tokenLifetime
	if err != nil || c.Subject == "" || c.Account == "" || !short {
		return principal{}, time.Time{}, errors.Join(errToken, err)
	}
	return principal{Account: c.Account, User: c.Subject}, time.UnixMicro(c.PasswordSet), nil
}
