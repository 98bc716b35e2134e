package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/otograph/otograph/billing"
)

// pricingCmd shows the prices, or changes the prices that flags name.
type pricingCmd struct {
	storeFlags
	Standard      string `placeholder:"PRICE" help:"Standard tier, per hour."`
	Optimized     string `placeholder:"PRICE" help:"Optimized tier, per hour."`
	Diarize       string `placeholder:"PRICE" help:"Diarization, per hour."`
	Events        string `name:"audio-events" placeholder:"PRICE" help:"Sound events, per hour."`
	Live          string `placeholder:"PRICE" help:"Live sessions, per hour, in place of their tier; none: no price of their own."`
	BatchDiscount string `placeholder:"FACTOR" help:"Price factor of batch tasks, 0 to 1."`
	From          string `placeholder:"TIME" help:"Effective time; default: now."`
}

// detail describes the changed prices.
func (c *pricingCmd) detail() string {
	var parts []string
	for _, f := range [][2]string{{"standard", c.Standard}, {"optimized", c.Optimized}, {"diarize", c.Diarize}, {"audio-events", c.Events}, {"live", c.Live}, {"batch-discount", c.BatchDiscount}, {"from", c.From}} {
		if f[1] != "" {
			parts = append(parts, f[0]+" "+f[1])
		}
	}
	return strings.Join(parts, ", ")
}

func (c *pricingCmd) Run(ctx context.Context) error {
	if c.detail() == "" {
		return c.with(ctx, func(s *stores) error { return printAnswer(s.Billing.Prices(ctx)) })
	}
	return c.change(ctx, "pricing set", "", c.detail(), func(s *stores) error {
		from, err := timeFlag(time.UTC, "from", c.From)
		if err != nil {
			return err
		}
		p, err := s.Billing.Prices(ctx)
		if err != nil {
			return err
		}
		switch c.Live {
		case "":
		case "none":
			p.Live, c.Live = nil, ""
		default:
			p.Live = new(billing.Money)
		}
		for flag, set := range map[string]struct {
			text   string
			target *billing.Money
		}{
			"standard": {c.Standard, &p.Standard}, "optimized": {c.Optimized, &p.Optimized},
			"diarize": {c.Diarize, &p.Diarize}, "audio-events": {c.Events, &p.AudioEvents}, "live": {c.Live, p.Live}, "batch-discount": {c.BatchDiscount, &p.BatchDiscount},
		} {
			if set.text == "" {
				continue
			}
			if *set.target, err = billing.ParseMoney(set.text); err != nil {
				return &usageError{fmt.Errorf("--%s: %w", flag, err)}
			}
		}
		return printAnswer(s.Billing.SetPrices(ctx, p, from))
	})
}
