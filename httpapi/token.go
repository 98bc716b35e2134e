package httpapi

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// TokenLifetime is how long an access token is valid after the login.
const TokenLifetime = time.Hour

const (
	tokenIssuer   = "otograph"
	tokenAudience = "otograph-api"
	maxToken      = 4096 // bytes; ours have about 400
	minTokenKey   = 32   // bytes; HS256 needs a key as long as its hash (RFC 7518, 3.2)
)

// tokens issues and checks access tokens: JWT, HS256 and nothing else.
type tokens struct {
	key []byte
	now func() time.Time
}

func newTokens(key []byte) (*tokens, error) {
	if len(key) < minTokenKey {
		return nil, fmt.Errorf("httpapi: the token key has %d bytes, at least %d are needed", len(key), minTokenKey)
	}
	return &tokens{key: key, now: time.Now}, nil
}

// claims are what a token says.
type claims struct {
	Account string `json:"account"`
	jwt.RegisteredClaims
}

// issue makes a token for a user, valid for TokenLifetime.
func (t *tokens) issue(who Principal) (string, error) {
	now := t.now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims{Account: who.Account, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: tokenIssuer, Audience: jwt.ClaimStrings{tokenAudience}, Subject: who.User, ID: uuid.NewString(),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(TokenLifetime)),
	}}).SignedString(t.key)
}

var errToken = errors.New("token refused")

// check says who a token was issued to. Every flaw of it is errToken.
func (t *tokens) check(token string) (Principal, error) {
	if len(token) > maxToken {
		return Principal{}, errToken
	}
	var c claims
	_, err := jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return t.key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(tokenIssuer), jwt.WithAudience(tokenAudience),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(t.now), jwt.WithStrictDecoding(),
	)
	if err != nil || c.Subject == "" || c.Account == "" {
		return Principal{}, errors.Join(errToken, err)
	}
	return Principal{Account: c.Account, User: c.Subject}, nil
}
