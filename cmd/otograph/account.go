package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/accounts"
)

type accountCmd struct {
	Create accountCreateCmd `cmd:"" help:"Create an account with balance 0."`
	List   accountListCmd   `cmd:"" help:"List the accounts."`
	Show   accountShowCmd   `cmd:"" help:"Show an account's balance, limits and resource packs."`
	Credit accountCreditCmd `cmd:"" help:"Add to an account's balance."`
	Refund accountRefundCmd `cmd:"" help:"Pay money back: the balance falls."`
	Tier   accountTierCmd   `cmd:"" help:"Move an account to a tier, 1 to 5."`
	Limits accountLimitsCmd `cmd:"" help:"Replace an account's limits; without flags, back to those of its tier."`
	Pack   accountPackCmd   `cmd:"" help:"Give an account a resource pack."`
}

type accountCreateCmd struct {
	storeFlags
	Name string `arg:""`
}

func (c *accountCreateCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		a, err := s.accounts.Create(ctx, c.Name)
		if err != nil {
			return fmt.Errorf("account %q: %w", c.Name, err)
		}
		fmt.Println(a.ID)
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
}

func (c *accountListCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		list, err := s.accounts.List(ctx)
		if err != nil {
			return err
		}
		lines := []accountLine{}
		for _, a := range list {
			balance, err := s.billing.Balance(ctx, a.ID)
			if err != nil {
				return err
			}
			lines = append(lines, accountLine{a.ID, a.Name, balance, a.CreatedAt})
		}
		if c.JSON {
			return printJSON(lines)
		}
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tBALANCE\tID\tCREATED")
		for _, l := range lines {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Name, l.Balance, l.ID, l.Created.Format(time.DateOnly))
		}
		return w.Flush()
	})
}

type accountShowCmd struct {
	storeFlags
	Name string `arg:"" help:"Name or id."`
}

func (c *accountShowCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		view, err := s.billing.View(ctx, a.ID)
		if err != nil {
			return err
		}
		packs, err := s.billing.Packs(ctx, a.ID)
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
		return printJSON(map[string]any{"id": a.ID, "name": a.Name, "created_at": a.CreatedAt, "account": view, "packs": shown})
	})
}

type accountCreditCmd struct {
	storeFlags
	Name   string `arg:"" help:"Name or id."`
	Amount string `arg:"" help:"Amount in the currency unit, with at most 4 decimals."`
	Note   string `default:"credit" help:"Description in the ledger."`
}

func (c *accountCreditCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		amount, err := billing.ParseMoney(c.Amount)
		if err != nil {
			return &usageError{err}
		}
		t, err := s.billing.Recharge(ctx, a.ID, amount, c.Note)
		if err != nil {
			return err
		}
		fmt.Printf("balance %s\n", t.BalanceAfter)
		return nil
	})
}

type accountRefundCmd struct {
	storeFlags
	Name   string `arg:"" help:"Name or id."`
	Amount string `arg:"" help:"Amount in the currency unit, with at most 4 decimals."`
	Note   string `default:"refund" help:"Description in the ledger."`
}

func (c *accountRefundCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		amount, err := billing.ParseMoney(c.Amount)
		if err != nil {
			return &usageError{err}
		}
		t, err := s.billing.Refund(ctx, a.ID, amount, c.Note)
		if err != nil {
			return err
		}
		fmt.Printf("balance %s\n", t.BalanceAfter)
		return nil
	})
}

type accountTierCmd struct {
	storeFlags
	Name string `arg:"" help:"Name or id."`
	Tier int    `arg:"" help:"1 to 5."`
}

func (c *accountTierCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		return s.billing.SetTier(ctx, a.ID, c.Tier)
	})
}

type accountLimitsCmd struct {
	storeFlags
	Name        string   `arg:"" help:"Name or id."`
	Concurrency *int     `placeholder:"N" help:"Tasks at once outside the batch lane."`
	TPS         *float64 `name:"tps" placeholder:"X" help:"Requests per second."`
	Burst       *int     `placeholder:"N" help:"Requests that may come at once."`
}

func (c *accountLimitsCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		return s.billing.SetLimits(ctx, a.ID, billing.Overrides{Concurrency: c.Concurrency, TPS: c.TPS, Burst: c.Burst})
	})
}

type accountPackCmd struct {
	storeFlags
	Name        string `arg:"" help:"Name or id."`
	Value       string `arg:"" help:"Value in the currency unit."`
	Expires     string `required:"" placeholder:"TIME" help:"When it expires: 2027-01-31, an RFC 3339 time, or a duration such as 720h."`
	Concurrency int    `placeholder:"N" help:"Raise the number of tasks at once to this while it lasts."`
}

func (c *accountPackCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
		value, err := billing.ParseMoney(c.Value)
		if err != nil {
			return &usageError{err}
		}
		expires, err := parseTime(c.Expires, time.Now())
		if err != nil {
			return &usageError{fmt.Errorf("--expires: %w", err)}
		}
		p, err := s.billing.AddPack(ctx, a.ID, billing.Pack{Value: value, Concurrency: c.Concurrency, ExpiresAt: expires})
		if err != nil {
			return err
		}
		fmt.Printf("pack %s of %s until %s\n", p.ID, p.Value, p.ExpiresAt.Format(time.RFC3339))
		return nil
	})
}

// parseTime reads a date, a time, or a duration from now.
func parseTime(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no date (2027-01-31), time (2027-01-31T12:00:00Z) or duration (720h)", s)
}

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key and print it, this once."`
	List   keyListCmd   `cmd:"" help:"List an account's keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Make a key useless."`
}

type keyCreateCmd struct {
	storeFlags
	Account string `arg:"" help:"Name or id."`
}

func (c *keyCreateCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Account, func(s *stores, a accounts.Account) error {
		key, _, err := s.accounts.CreateKey(ctx, a.ID)
		if err != nil {
			return err
		}
		fmt.Println(key)
		return nil
	})
}

type keyListCmd struct {
	storeFlags
	Account string `arg:"" help:"Name or id."`
}

func (c *keyListCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Account, func(s *stores, a accounts.Account) error {
		keys, err := s.accounts.Keys(ctx, a.ID)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tKEY\tCREATED\tREVOKED")
		for _, k := range keys {
			revoked := ""
			if k.RevokedAt != nil {
				revoked = k.RevokedAt.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s\t%s…\t%s\t%s\n", k.ID, k.Hint, k.CreatedAt.Format(time.RFC3339), revoked)
		}
		return w.Flush()
	})
}

type keyRevokeCmd struct {
	storeFlags
	ID string `arg:"" help:"The key's id, as key list prints it."`
}

func (c *keyRevokeCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		if err := s.accounts.RevokeKey(ctx, c.ID); err != nil {
			return fmt.Errorf("key %q: %w", c.ID, err)
		}
		return nil
	})
}

type userCmd struct {
	Create userCreateCmd `cmd:"" help:"Create a user who logs in with a password."`
	Passwd userPasswdCmd `cmd:"" help:"Change a user's password."`
}

// passwordFlag is a password from the flag, or asked for.
type passwordFlag struct {
	Password string `env:"OTOGRAPH_PASSWORD" help:"Password; asked for when left out."`
}

func (f passwordFlag) read() (string, error) {
	if f.Password != "" {
		return f.Password, nil
	}
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		b, err := io.ReadAll(io.LimitReader(os.Stdin, 4096))
		if p := strings.TrimRight(string(b), "\r\n"); err == nil && p != "" {
			return p, nil
		}
		return "", &usageError{errors.New("a password is needed: --password, or on standard input")}
	}
	fmt.Fprint(os.Stderr, "Password: ")
	first, err := term.ReadPassword(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, "\nOnce more: ")
	second, err := term.ReadPassword(fd)
	fmt.Fprintln(os.Stderr)
	if err == nil && string(first) != string(second) {
		err = errors.New("the two passwords differ")
	}
	return string(first), err
}

type userCreateCmd struct {
	storeFlags
	passwordFlag
	Account  string `arg:"" help:"Account, by name or id."`
	Username string `arg:""`
}

func (c *userCreateCmd) Run(ctx context.Context) error {
	return c.withAccount(ctx, c.Account, func(s *stores, a accounts.Account) error {
		password, err := c.read()
		if err != nil {
			return err
		}
		u, err := s.accounts.CreateUser(ctx, a.ID, c.Username, password)
		if err != nil {
			return fmt.Errorf("user %q: %w", c.Username, err)
		}
		fmt.Println(u.ID)
		return nil
	})
}

type userPasswdCmd struct {
	storeFlags
	passwordFlag
	Username string `arg:""`
}

func (c *userPasswdCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		password, err := c.read()
		if err != nil {
			return err
		}
		if err := s.accounts.SetPassword(ctx, c.Username, password); err != nil {
			return fmt.Errorf("user %q: %w", c.Username, err)
		}
		return nil
	})
}
