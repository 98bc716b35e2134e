package main

import (
	"context"
	"os"

	"github.com/otograph/otograph/internal/system/native"
)

type nativeCmd struct {
	To   string `placeholder:"DIR" help:"Destination folder; default: where the program looks for them."`
	With string `enum:"vulkan,none,unchanged" default:"unchanged" placeholder:"PLUGIN" help:"vulkan adds ggml's plug-in for GPUs; none removes it."`
}

func (c *nativeCmd) Run(ctx context.Context) error {
	return native.Install(ctx, c.To, native.Plugins(c.With), os.Stderr)
}
