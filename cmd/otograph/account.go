package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/record"
)

type accountCmd struct {
	Create accountCreateCmd `cmd:"" help:"Create an account with a zero balance."`
	List   accountListCmd   `cmd:"" help:"List the accounts."`
	Show   accountShowCmd   `cmd:"" help:"Show an account's balance, limits and resource packs."`
	Credit accountCreditCmd `cmd:"" help:"Add to an account's balance."`
	Refund accountRefundCmd `cmd:"" help:"Pay money back, which lowers the balance."`
	Tier   accountTierCmd   `cmd:"" help:"Move an account to a tier, 1 to 5."`
	Limits accountLimitsCmd `cmd:"" help:"Set an account's limits. A limit without a flag becomes that of the account's tier."`
	Pack   accountPackCmd   `cmd:"" help:"Add a resource pack to an account."`

	Suspend accountSuspendCmd `cmd:"" help:"Reject an account's keys, logins and tokens. Its tasks continue; its data and balance stay."`
	Resume  accountResumeCmd  `cmd:"" help:"Lift an account's suspension."`
}

type accountCreateCmd struct {
	storeFlags
	Name string `arg:""`
}

func (c *accountCreateCmd) Run(ctx context.Context) error {
	return c.change(ctx, "account create", c.Name, "", func(s *stores) error {
		a, err := s.Accounts.Create(ctx, c.Name)
		if err != nil {
			return fmt.Errorf("account %q: %w", c.Name, err)
		}
		say("%s\n", a.ID)
		return nil
	})
}

type accountListCmd struct {
	storeFlags
	JSON bool `help:"Print as JSON."`
}

// accountLine is an account in a list.
type accountLine struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Balance billing.Money `json:"balance"`
	Created time.Time     `json:"created_at"`

	Suspended *time.Time `json:"suspended_at,omitempty"`
}

func (c *accountListCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		list, err := s.Accounts.List(ctx)
		if err != nil {
			return err
		}
		var lines []accountLine
		for _, a := range list {
			balance, err := s.Billing.Balance(ctx, a.ID)
			if err != nil {
				return err
			}
			lines = append(lines, accountLine{a.ID, a.Name, balance, a.CreatedAt, a.SuspendedAt})
		}
		return printList(c.JSON, lines, []string{"NAME", "BALANCE", "ID", "CREATED", "SUSPENDED"}, func(t table, l accountLine) {
			t.row(l.Name, l.Balance, l.ID, l.Created.Format(time.DateOnly), stamp(l.Suspended))
		})
	})
}

type accountShowCmd struct {
	storeFlags
	Name string `arg:"" help:"Name or id."`
}

func (c *accountShowCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		view, err := s.Billing.View(ctx, a.ID)
		if err != nil {
			return err
		}
		packs, err := s.Billing.Packs(ctx, a.ID)
		if err != nil {
			return err
		}
		type pack struct {
			Remaining   billing.Money `json:"remaining"`
			Value       billing.Money `json:"value"`
			Concurrency int           `json:"concurrency,omitempty"`
			Expires     time.Time     `json:"expires_at"`
		}
		shown := []pack{}
		for _, p := range packs {
			shown = append(shown, pack{p.Remaining, p.Value, p.Concurrency, p.ExpiresAt})
		}
		return printJSON(map[string]any{"id": a.ID, "name": a.Name, "created_at": a.CreatedAt, "suspended_at": a.SuspendedAt, "account": record.AccountOf(view), "packs": shown})
	})
}

// balanceFlags name an account and an amount.
type balanceFlags struct {
	storeFlags
	Name   string `arg:"" help:"Name or id."`
	Amount string `arg:"" help:"Amount in the currency unit, with at most 4 decimals."`
}

type accountCreditCmd struct {
	balanceFlags
	Note string `default:"credit" help:"Description in the ledger."`
}

func (c *accountCreditCmd) Run(ctx context.Context) error {
	return c.move(ctx, "account credit", c.Note, (*billing.Store).Recharge)
}

type accountRefundCmd struct {
	balanceFlags
	Note string `default:"refund" help:"Description in the ledger."`
}

func (c *accountRefundCmd) Run(ctx context.Context) error {
	return c.move(ctx, "account refund", c.Note, (*billing.Store).Refund)
}

// move posts the amount to the account's ledger.
func (c *balanceFlags) move(ctx context.Context, action, note string, post func(b *billing.Store, ctx context.Context, account string, amount billing.Money, note string) (billing.Transaction, error)) error {
	return c.changeAccount(ctx, action, c.Name, c.Amount+", "+note, func(s *stores, a accounts.Account) error {
		amount, err := billing.ParseMoney(c.Amount)
		if err != nil {
			return &usageError{err}
		}
		t, err := post(s.Billing, ctx, a.ID, amount, note)
		if err != nil {
			return err
		}
		say("balance %s\n", t.BalanceAfter)
		return nil
	})
}

type accountTierCmd struct {
	storeFlags
	Name string `arg:"" help:"Name or id."`
	Tier int    `arg:"" help:"1 to 5."`
}

func (c *accountTierCmd) Run(ctx context.Context) error {
	return c.changeAccount(ctx, "account tier", c.Name, strconv.Itoa(c.Tier), func(s *stores, a accounts.Account) error {
		return s.Accounts.SetTier(ctx, a.ID, c.Tier)
	})
}

type accountLimitsCmd struct {
	storeFlags
	Name        string   `arg:"" help:"Name or id."`
	Concurrency *int     `placeholder:"N" help:"Concurrency limit, batch tasks excluded."`
	TPS         *float64 `name:"tps" placeholder:"X" help:"Requests per second."`
	Burst       *int     `placeholder:"N" help:"Maximum burst of requests."`
}

func (c *accountLimitsCmd) Run(ctx context.Context) error {
	return c.changeAccount(ctx, "account limits", c.Name, c.detail(), func(s *stores, a accounts.Account) error {
		return s.Accounts.SetLimits(ctx, a.ID, accounts.Overrides{Concurrency: c.Concurrency, TPS: c.TPS, Burst: c.Burst})
	})
}

// detail describes the changed limits.
func (c *accountLimitsCmd) detail() string {
	var parts []string
	if c.Concurrency != nil {
		parts = append(parts, fmt.Sprintf("concurrency %d", *c.Concurrency))
	}
	if c.TPS != nil {
		parts = append(parts, fmt.Sprintf("tps %g", *c.TPS))
	}
	if c.Burst != nil {
		parts = append(parts, fmt.Sprintf("burst %d", *c.Burst))
	}
	if parts == nil {
		return "limits of the tier"
	}
	return strings.Join(parts, ", ")
}

// reasonFlags name an account and the reason for a change.
type reasonFlags struct {
	storeFlags
	Name string `arg:"" help:"Name or id."`
	Note string `help:"Reason, for the audit log."`
}

type accountSuspendCmd struct{ reasonFlags }

func (c *accountSuspendCmd) Run(ctx context.Context) error {
	return c.changeAccount(ctx, "account suspend", c.Name, c.Note, func(s *stores, a accounts.Account) error {
		return s.Accounts.Suspend(ctx, a.ID)
	})
}

type accountResumeCmd struct{ reasonFlags }

func (c *accountResumeCmd) Run(ctx context.Context) error {
	return c.changeAccount(ctx, "account resume", c.Name, c.Note, func(s *stores, a accounts.Account) error {
		return s.Accounts.Resume(ctx, a.ID)
	})
}

type accountPackCmd struct {
	storeFlags
	Name        string `arg:"" help:"Name or id."`
	Value       string `arg:"" help:"Value in the currency unit."`
	Expires     string `required:"" placeholder:"TIME" help:"Expiry: 2027-01-31, an RFC 3339 time, or a duration such as 720h."`
	Concurrency int    `placeholder:"N" help:"Concurrency limit of the account while the pack is valid."`
}

func (c *accountPackCmd) Run(ctx context.Context) error {
	return c.changeAccount(ctx, "account pack", c.Name, c.Value+" until "+c.Expires, func(s *stores, a accounts.Account) error {
		value, err := billing.ParseMoney(c.Value)
		if err != nil {
			return &usageError{err}
		}
		expires, err := timeFlag("expires", c.Expires)
		if err != nil {
			return err
		}
		p, err := s.Billing.AddPack(ctx, a.ID, billing.Pack{Value: value, Concurrency: c.Concurrency, ExpiresAt: expires})
		if err != nil {
			return err
		}
		say("pack %s of %s until %s\n", p.ID, p.Value, p.ExpiresAt.Format(time.RFC3339))
		return nil
	})
}

// optionalTime is timeFlag for a flag that may be absent, which is the zero time.
func optionalTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return timeFlag(flag, text)
}

// timeFlag reads a date, a time, or a duration from now.
func timeFlag(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(d), nil
	}
	return time.Time{}, &usageError{fmt.Errorf("--%s: %q is not a date (2027-01-31), time (2027-01-31T12:00:00Z) or duration (720h)", flag, text)}
}
