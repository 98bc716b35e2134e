package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Login returns a client that acts for a person until the access token expires;
// the service then responds with the status 401. Only people can manage API
// keys.
func (c *Client) Login(ctx context.Context, username, password string) (*Client, error) {
	var out struct {
		Token string `json:"access_token"`
	}
	in := struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}{username, password}
	if err := c.call(ctx, http.MethodPost, "/auth/login", in, &out); err != nil {
		return nil, err
	}
	person := *c
	person.key, person.token = "", out.Token
	return &person, nil
}

// Key is an API key of the account.
type Key struct {
	ID string `json:"id"`
	// Secret is the key itself, returned only by CreateKey.
	Secret    string     `json:"key"`
	Hint      string     `json:"hint"` // the beginning of the key
	ReadOnly  bool       `json:"read_only"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	UsedAt    *time.Time `json:"used_at"`
}

// Keys returns the account's API keys, including revoked ones; see Login.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var out struct {
		Keys []Key `json:"keys"`
	}
	err := c.call(ctx, http.MethodGet, "/account/keys", nil, &out)
	return out.Keys, err
}

// CreateKey creates an API key; see Login.
func (c *Client) CreateKey(ctx context.Context) (Key, error) {
	var k Key
	return k, c.call(ctx, http.MethodPost, "/account/keys", nil, &k)
}

// RevokeKey revokes an API key; see Login.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/account/keys/"+url.PathEscape(id), nil, nil)
}
