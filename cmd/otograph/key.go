package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/accounts"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key and print it once."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke an API key."`
}

type keyCreateCmd struct {
	storeFlags
	Account  string `arg:"" help:"Name or id."`
	ReadOnly bool   `help:"Limit the key to reading tasks and results."`
	Expires  string `placeholder:"TIME" help:"Expiry: 2027-01-31, an RFC 3339 time, or a duration such as 720h; default: never."`
}

func (c *keyCreateCmd) Run(ctx context.Context) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	options := accounts.KeyOptions{ID: id.String(), ReadOnly: c.ReadOnly}
	detail := "unlimited"
	if c.ReadOnly {
		detail = "read only"
	}
	if c.Expires != "" {
		if options.ExpiresAt, err = timeFlag("expires", c.Expires); err != nil {
			return err
		}
		detail += ", expires " + options.ExpiresAt.Format(time.RFC3339)
	}
	return c.changeAccount(ctx, "key create", c.Account, detail+", key "+options.ID, func(s *stores, a accounts.Account) error {
		key, _, err := s.Accounts.CreateLimitedKey(ctx, a.ID, options)
		if err != nil {
			return err
		}
		say("%s\n", key)
		return nil
	})
}

type keyRevokeCmd struct {
	storeFlags
	ID string `arg:"" help:"Key id, as account list NAME prints it."`
}

func (c *keyRevokeCmd) Run(ctx context.Context) error {
	return c.change(ctx, "key revoke", c.ID, "", func(s *stores) error {
		return about("key", c.ID, s.Accounts.RevokeKey(ctx, c.ID))
	})
}

// stamp returns a time for a table, "" for none.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}
