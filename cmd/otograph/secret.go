package main

import (
	"context"

	"github.com/otograph/otograph/service"
)

type secretCmd struct {
	Rotate secretRotateCmd `cmd:"" help:"Replace the key that signs access tokens. All tokens become invalid; users must log in again."`
}

type secretRotateCmd struct {
	storeFlags
}

func (c *secretRotateCmd) Run(ctx context.Context) error {
	return c.change(ctx, "secret rotate", "", "", func(s *stores) error {
		if err := s.Accounts.RotateSigningKey(ctx); err != nil {
			return err
		}
		say("The token key has been replaced. Running servers reject old tokens within %s.\n", service.KeyInterval)
		return nil
	})
}
