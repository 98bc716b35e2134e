package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/otograph/otograph/bench"
)

// benchLiveCmd is hidden because `help all` lists at most 35 commands; the help
// of `bench run` names it.
type benchLiveCmd struct {
	Manifest string   `arg:"" help:"Manifest, or a folder of recordings, as for bench run."`
	System   []string `placeholder:"NAME=URL" sep:"none" help:"Also measure a server with OpenAI's realtime interface, such as ws://localhost:8000/v1/realtime?intent=transcription&model=base (repeat for more). Its key is read from NAME_API_KEY."`
	Sessions []int    `placeholder:"N,…" help:"Numbers of concurrent sessions to measure; default: one, then the largest number that keeps up."`
	Seconds  float64  `placeholder:"S" help:"Sound that each session gets, in whole recordings; default: all."`
	Format   string   `short:"f" enum:"table,json" default:"table" help:"Output format: table or json."`
	Quiet    bool     `short:"q" help:"No progress."`
	Cores    int      `placeholder:"N" help:"Cores to use; default: all."`

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
	systems := []bench.System{{Name: "otograph", Set: set, Options: opt, KnownLanguage: c.KnownLanguage}}
	for _, value := range c.System {
		name, address, ok := strings.Cut(value, "=")
		if !ok || name == "" {
			return &usageError{fmt.Errorf("--system: expected NAME=URL, got %q", value)}
		}
		s := systems[0]
		s.Name, s.Stream = name, func(ctx context.Context, language *string) (bench.LiveStream, error) {
			return openRealtime(ctx, address, os.Getenv(keyName(name)), language)
		}
		systems = append(systems, s)
	}
	line := newStatusLine(os.Stderr, c.Quiet)
	defer line.clear()
	config := bench.Config{Items: items, Systems: systems, Cores: c.Cores, Device: string(c.Device), Progress: benchProgress(line)}
	return bench.Live(ctx, config, c.Sessions, c.Seconds, func(r *bench.LiveReport) error {
		line.clear()
		if c.Format == "json" {
			return lineEncoder().Encode(r)
		}
		return r.WriteTable(os.Stdout)
	})
}
