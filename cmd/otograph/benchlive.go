package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/otograph/otograph/bench"
)

// benchLiveCmd is hidden because `help all` has as many commands as it may;
// the help of `bench run` names it.
type benchLiveCmd struct {
	Manifest string  `arg:"" help:"Manifest, or a folder of recordings, as for bench run."`
	Sessions []int   `placeholder:"N,…" help:"Numbers of concurrent sessions to measure; default: one, then the largest number that keeps up."`
	Seconds  float64 `placeholder:"S" help:"Sound that each session gets, in whole recordings; default: all."`
	Format   string  `short:"f" enum:"table,json" default:"table" help:"Output format: table or json."`
	Quiet    bool    `short:"q" help:"No progress."`
	Cores    int     `placeholder:"N" help:"Cores to use; default: all."`

	KnownLanguage bool `help:"Use the manifest's language instead of detecting it."`

	deviceFlag
	modelFlags
	optionFlags `embed:""`
}

func (c *benchLiveCmd) Run(ctx context.Context) error {
	if len(c.Sessions) > 0 && slices.Min(c.Sessions) < 1 || !(c.Seconds >= 0) {
		return &usageError{errors.New("--sessions must be at least 1, --seconds at least 0")}
	}
	if err := refuseAddress(c.Manifest); err != nil {
		return err
	}
	items, err := bench.Load(c.Manifest)
	if err != nil {
		return err
	}
	opt, err := c.options()
	if err != nil {
		return err
	}
	opt.EnableDiarize = cmp.Or(opt.EnableDiarize, new(false))
	opt.EnableAudioEvents = cmp.Or(opt.EnableAudioEvents, new(false))
	set, err := c.openRecognizer()
	if err != nil {
		return err
	}
	c.chooseTier(&opt, set)
	line := newStatusLine(os.Stderr, c.Quiet)
	r, err := bench.Live(ctx, bench.Config{
		Items: items, Systems: []bench.System{{Name: filepath.Base(c.Manifest), Set: set, Options: opt, KnownLanguage: c.KnownLanguage}},
		Cores: c.Cores, Device: string(c.Device), Progress: benchProgress(line),
	}, c.Sessions, c.Seconds)
	line.clear()
	if err != nil {
		return err
	}
	if c.Format == "json" {
		return lineEncoder().Encode(r)
	}
	return r.WriteTable(os.Stdout)
}
