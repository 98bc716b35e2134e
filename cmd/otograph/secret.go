package main

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/internal/backoff"
)

// keyInterval is how soon a server notices that the token key was rotated.
const keyInterval = 5 * time.Second

type secretCmd struct {
	Rotate secretRotateCmd `cmd:"" help:"Replace the key that signs access tokens. All tokens become invalid; users must log in again."`
}

type secretRotateCmd struct {
	storeFlags
}

func (c *secretRotateCmd) Run(ctx context.Context) error {
	return c.change(ctx, "secret rotate", "", "", func(s *stores) error {
		if err := s.accounts.RotateSigningKey(ctx); err != nil {
			return err
		}
		say("The token key has been replaced. Running servers reject old tokens within %s.\n", keyInterval)
		return nil
	})
}

// followKey hands the token key to the server whenever it was rotated, until ctx
// ends.
func followKey(ctx context.Context, s *stores, api *httpapi.Server, key []byte, log *slog.Logger) error {
	return backoff.Every(ctx, keyInterval, func() error {
		now, err := s.accounts.SigningKey(ctx)
		switch {
		case err != nil:
			log.WarnContext(ctx, "token key not read", "error", err)
		case !bytes.Equal(now, key):
			if err := api.SetTokenKey(now); err != nil {
				return err
			}
			key = now
			log.InfoContext(ctx, "the token key was rotated")
		}
		return nil
	})
}
