package main

import (
	"context"
	"os"

	"github.com/otograph/otograph/internal/native"
)

type nativeCmd struct {
	To   string `placeholder:"DIR" help:"Where to put them; default: where the program finds them."`
	With string `enum:"vulkan,none,unchanged" default:"unchanged" placeholder:"PLUGIN" help:"vulkan: ggml's plug-in for GPUs, too. none: no longer."`
}

func (c *nativeCmd) Run(ctx context.Context) error {
	return native.Install(ctx, c.To, native.Plugins(c.With), os.Stderr)
}
