package main

import (
	"context"
	"os"

	"github.com/otograph/otograph/internal/native"
)

type nativeCmd struct {
	To string `placeholder:"DIR" help:"Where to put them; default: where the program finds them."`
}

func (c *nativeCmd) Run(ctx context.Context) error {
	return native.Install(ctx, c.To, os.Stderr)
}
