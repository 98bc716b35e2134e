package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/record"
	"github.com/otograph/otograph/internal/service/webhook"
)

type pricingCmd struct {
	Show pricingShowCmd `cmd:"" help:"Show the current prices."`
	Set  pricingSetCmd  `cmd:"" help:"Change prices. Omitted prices stay; existing tasks keep theirs."`
}

type pricingShowCmd struct{ storeFlags }

func (c *pricingShowCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		p, err := s.Billing.Prices(ctx)
		if err != nil {
			return err
		}
		return printJSON(record.PricingOf(p))
	})
}

type pricingSetCmd struct {
	storeFlags
	Standard      string `placeholder:"PRICE" help:"Standard tier, per hour."`
	Optimized     string `placeholder:"PRICE" help:"Optimized tier, per hour."`
	Diarize       string `placeholder:"PRICE" help:"Diarization, per hour."`
	Events        string `name:"audio-events" placeholder:"PRICE" help:"Sound events, per hour."`
	BatchDiscount string `placeholder:"FACTOR" help:"Price factor of batch tasks, 0 to 1."`
	From          string `placeholder:"TIME" help:"Effective time; default: now."`
}

// detail describes the changed prices.
func (c *pricingSetCmd) detail() string {
	var parts []string
	for _, f := range [][2]string{{"standard", c.Standard}, {"optimized", c.Optimized}, {"diarize", c.Diarize}, {"audio-events", c.Events}, {"batch-discount", c.BatchDiscount}, {"from", c.From}} {
		if f[1] != "" {
			parts = append(parts, f[0]+" "+f[1])
		}
	}
	return strings.Join(parts, ", ")
}

func (c *pricingSetCmd) Run(ctx context.Context) error {
	return c.change(ctx, "pricing set", "", c.detail(), func(s *stores) error {
		from, err := optionalTime("from", c.From)
		if err != nil {
			return err
		}
		p, err := s.Billing.Prices(ctx)
		if err != nil {
			return err
		}
		for flag, set := range map[string]struct {
			text   string
			target *billing.Money
		}{
			"standard": {c.Standard, &p.Standard}, "optimized": {c.Optimized, &p.Optimized},
			"diarize": {c.Diarize, &p.Diarize}, "audio-events": {c.Events, &p.AudioEvents},
		} {
			if set.text == "" {
				continue
			}
			if *set.target, err = billing.ParseMoney(set.text); err != nil {
				return &usageError{fmt.Errorf("--%s: %w", flag, err)}
			}
		}
		if c.BatchDiscount != "" {
			if err := json.Unmarshal([]byte(c.BatchDiscount), &p.BatchDiscount); err != nil {
				return &usageError{fmt.Errorf("--batch-discount: %w", err)}
			}
		}
		p, err = s.Billing.SetPrices(ctx, p, from)
		if err != nil {
			return err
		}
		return printJSON(record.PricingOf(p))
	})
}

type callbackCmd struct {
	List   callbackListCmd   `cmd:"" help:"List callbacks that could not be delivered."`
	Resend callbackResendCmd `cmd:"" help:"Deliver a task's callback again."`
}

type callbackListCmd struct {
	storeFlags
	All  bool   `help:"Include delivered and pending callbacks."`
	Task string `placeholder:"ID" help:"Task."`
}

func (c *callbackListCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		filter := webhook.Filter{TaskID: c.Task, Phase: "given_up", Limit: 1000}
		if c.All {
			filter.Phase = ""
		}
		list, err := s.Tasks.Outbox().List(ctx, filter)
		if err != nil {
			return err
		}
		return printList(false, list, []string{"TASK", "STATE", "ATTEMPTS", "UPDATED", "URL", "LAST ERROR"}, func(t table, k webhook.Callback) {
			t.row(k.TaskID, k.Phase, k.Attempts, k.UpdatedAt.Format(time.RFC3339), clip(k.URL, 60), clip(k.LastError, 60))
		})
	})
}

type callbackResendCmd struct {
	storeFlags
	Task string `arg:"" help:"Task id."`
}

func (c *callbackResendCmd) Run(ctx context.Context) error {
	return c.change(ctx, "callback resend", c.Task, "", func(s *stores) error {
		return about("task", c.Task, s.Tasks.Outbox().Resend(ctx, c.Task))
	})
}
