package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/webhook"
)

type accountHookCmd struct {
	storeFlags
	Name     string   `arg:"" help:"Name or id."`
	URL      string   `name:"url" xor:"change" placeholder:"URL" help:"Set the hook: its events, budget and time zone become those of the flags. A new hook's secret is printed once."`
	Events   []string `placeholder:"NAME,…" help:"Events to send: task.done, task.failed, task.abandoned, budget.warning, budget.reached; default: all."`
	Budget   string   `placeholder:"AMOUNT" help:"Budget of a month: budget.warning is sent at 80 %, budget.reached at 100 %. Tasks continue."`
	Timezone string   `placeholder:"ZONE" help:"Time zone in which months begin, such as Europe/Berlin; default: UTC."`
	Rotate   bool     `xor:"change" help:"Replace the secret and print the new one; the old one signs too for 24 hours."`
	Remove   bool     `xor:"change" help:"Remove the hook, its secrets and its waiting messages."`
}

func (c *accountHookCmd) Run(ctx context.Context) (err error) {
	h := webhook.Hook{URL: c.URL, Events: c.Events, Zone: c.Timezone}
	if c.Budget != "" {
		if h.Budget, err = billing.ParseMoney(c.Budget); err != nil {
			err = fmt.Errorf("budget: %w", err)
		}
	}
	action, detail := "hook set", ""
	change := func(o *webhook.Outbox, ctx context.Context, account string) (string, error) {
		return o.SetHook(ctx, account, h)
	}
	switch {
	case c.Rotate:
		action, change = "hook rotate", (*webhook.Outbox).RotateSecret
	case c.Remove:
		action = "hook remove"
		change = func(o *webhook.Outbox, ctx context.Context, account string) (string, error) {
			return "", o.RemoveHook(ctx, account)
		}
	case c.URL != "" && err == nil:
		err = h.Check()
		detail = h.Detail()
	}
	if c.URL == "" && (c.Events != nil || c.Budget != "" || c.Timezone != "") {
		err = errors.New("url: expected with --events, --budget and --timezone")
	}
	switch {
	case err != nil:
		return &usageError{fmt.Errorf("--%w", err)}
	case c.URL == "" && !c.Rotate && !c.Remove:
		return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
			return printAnswer(s.Tasks.Outbox().Hook(ctx, a.ID))
		})
	}
	return c.changeAccount(ctx, action, c.Name, detail, func(s *stores, a accounts.Account) error {
		secret, err := change(s.Tasks.Outbox(), ctx, a.ID)
		if secret != "" {
			say("%s\n", secret)
		}
		return err
	})
}
