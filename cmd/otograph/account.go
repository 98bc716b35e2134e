package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/httpserver"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/service"
)

type accountCmd struct {
	Create  accountCreateCmd  `cmd:"" help:"Create an account with a zero balance."`
	List    accountListCmd    `cmd:"" help:"List the accounts, show one with its limits, packs, keys and users, add up what they used (--usage), or export one (--export)."`
	Credit  accountCreditCmd  `cmd:"" help:"Add to an account's balance (--refund: pay back; --expires: add a resource pack)."`
	Limits  accountLimitsCmd  `cmd:"" help:"Set an account's tier or limits. Without --tier, a limit without a flag becomes that of the tier."`
	Hook    accountHookCmd    `cmd:"" help:"Show, set (--url), rotate or remove an account's hook: the receiver of its events and budget warnings."`
	Suspend accountSuspendCmd `cmd:"" help:"Reject an account's keys, logins and tokens. Its tasks continue; its data and balance stay. --undo lifts it; --delete then deletes the account."`
}

type accountCreateCmd struct {
	storeFlags
	Name string `arg:""`
}

func (c *accountCreateCmd) Run(ctx context.Context) error {
	return c.change(ctx, "account create", c.Name, "", func(s *stores) error {
		a, err := s.Accounts.Create(ctx, c.Name)
		return about("account", c.Name, sayUnless(err, "%s\n", a.ID))
	})
}

type accountListCmd struct {
	storeFlags
	usageFlags
	Name   string `arg:"" optional:"" help:"Show this account, by name or id, as JSON."`
	JSON   bool   `help:"Print as JSON."`
	Export string `type:"path" placeholder:"FILE" help:"Write everything of the account except its secrets to this new ZIP archive."`
}

type accountLine struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Balance billing.Money `json:"balance"`
	Created time.Time     `json:"created_at"`

	Suspended *time.Time `json:"suspended_at,omitempty"`
}

func (c *accountListCmd) Run(ctx context.Context) error {
	if c.Export != "" && (c.Name == "" || c.Usage != "") {
		return &usageError{errors.New("account list: --export requires an account, and is not combined with --usage")}
	}
	if c.Usage != "" {
		return c.usage(ctx)
	}
	if c.usageFlags != (usageFlags{Timezone: c.Timezone}) {
		return &usageError{errors.New("account list: --by, --from, --until and --csv belong to --usage")}
	}
	if c.Export != "" {
		return c.changeAccount(ctx, "account export", c.Name, "", func(s *stores, a accounts.Account) error { return c.export(ctx, s, a) })
	}
	if c.Name != "" {
		return c.withAccount(ctx, c.Name, func(s *stores, a accounts.Account) error {
			return printAnswer(httpserver.Describe(ctx, s.Accounts, s.Billing, a))
		})
	}
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

// export writes an account's data to a new file.
func (c *accountListCmd) export(ctx context.Context, s *stores, a accounts.Account) error {
	f, err := os.OpenFile(c.Export, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("export to a new file: %w", err)
	}
	missing, err := httpserver.Export(ctx, s.Erasure, a, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Export))
	}
	if missing > 0 {
		return fmt.Errorf("%s: %d entries are missing or incomplete: see their errors in manifest.json", c.Export, missing)
	}
	return nil
}

type accountCreditCmd struct {
	storeFlags
	Name        string `arg:"" help:"Name or id."`
	Amount      string `arg:"" help:"Amount in the currency unit, with at most 4 decimals."`
	Refund      bool   `help:"Pay the amount back, which lowers the balance."`
	Note        string `placeholder:"TEXT" help:"Description in the ledger; default: credit or refund."`
	Expires     string `placeholder:"TIME" help:"Add a resource pack of this amount that expires then: 2027-01-31, an RFC 3339 time, or a duration such as 720h."`
	Concurrency int    `placeholder:"N" help:"Concurrency limit of the account while the pack is valid."`
}

func (c *accountCreditCmd) Run(ctx context.Context) error {
	switch {
	case c.Expires != "" && (c.Refund || c.Note != ""):
		return &usageError{errors.New("--expires adds a resource pack: expected neither --refund nor --note")}
	case c.Expires == "" && c.Concurrency != 0:
		return &usageError{errors.New("--concurrency belongs to a resource pack: expected --expires")}
	}
	amount, err := billing.ParseMoney(c.Amount)
	if err != nil {
		return &usageError{err}
	}
	expires, err := timeFlag(time.UTC, "expires", c.Expires)
	if err != nil {
		return err
	}
	action, post := "credit", (*billing.Store).Recharge
	if c.Refund {
		action, post = "refund", (*billing.Store).Refund
	}
	note := cmp.Or(c.Note, action)
	detail := ", " + note
	if c.Expires != "" {
		action, detail = "pack", fmt.Sprintf(" until %s, concurrency %d", expires.Format(time.RFC3339), c.Concurrency)
	}
	return c.changeAccount(ctx, "account "+action, c.Name, c.Amount+detail, func(s *stores, a accounts.Account) error {
		if c.Expires != "" {
			p, err := s.Billing.AddPack(ctx, a.ID, billing.Pack{Value: amount, Concurrency: c.Concurrency, ExpiresAt: expires})
			return sayUnless(err, "pack %s of %s until %s\n", p.ID, p.Value, p.ExpiresAt.Format(time.RFC3339))
		}
		t, err := post(s.Billing, ctx, a.ID, amount, note)
		return sayUnless(err, "balance %s\n", t.BalanceAfter)
	})
}

type accountLimitsCmd struct {
	storeFlags
	Name        string         `arg:"" help:"Name or id."`
	Tier        *int           `placeholder:"N" help:"Move the account to this tier, 1 to 5; limits that were set stay unless others are."`
	Concurrency *int           `placeholder:"N" help:"Concurrency limit, batch tasks excluded."`
	TPS         *float64       `name:"tps" placeholder:"X" help:"Requests per second."`
	Burst       *int           `placeholder:"N" help:"Maximum burst of requests."`
	KeepTasks   *time.Duration `placeholder:"DURATION" help:"Remove its tasks and results this time after they end (at least 24h; 0: as --keep-tasks of serve); limits that were set stay unless others are."`
}

func (c *accountLimitsCmd) Run(ctx context.Context) error {
	set := accounts.Overrides{Concurrency: c.Concurrency, TPS: c.TPS, Burst: c.Burst}
	return c.changeAccount(ctx, "account limits", c.Name, c.detail(), func(s *stores, a accounts.Account) error {
		if c.Tier != nil {
			if err := s.Accounts.SetTier(ctx, a.ID, *c.Tier); err != nil {
				return err
			}
		}
		if c.KeepTasks != nil {
			if err := s.Accounts.SetRetention(ctx, a.ID, *c.KeepTasks); err != nil {
				return err
			}
		}
		if (c.Tier != nil || c.KeepTasks != nil) && set == (accounts.Overrides{}) {
			return nil
		}
		return s.Accounts.SetLimits(ctx, a.ID, set)
	})
}

// detail describes the changed limits.
func (c *accountLimitsCmd) detail() string {
	var parts []string
	for _, limit := range []struct {
		name  string
		value any
	}{{"tier", c.Tier}, {"tasks kept", c.KeepTasks}, {"concurrency", c.Concurrency}, {"tps", c.TPS}, {"burst", c.Burst}} {
		if v := reflect.ValueOf(limit.value); !v.IsNil() {
			parts = append(parts, fmt.Sprintf("%s %v", limit.name, v.Elem().Interface()))
		}
	}
	if parts == nil {
		return "limits of the tier"
	}
	return strings.Join(parts, ", ")
}

type accountSuspendCmd struct {
	storeFlags
	Name   string `arg:"" help:"Name or id."`
	Undo   bool   `help:"Lift the suspension."`
	Delete bool   `help:"Delete the suspended account with its tasks, files, voices, users and keys for good, and print a signed receipt. The ledger stays."`
	Note   string `help:"Reason, for the audit log."`
}

func (c *accountSuspendCmd) Run(ctx context.Context) error {
	if c.Delete && (c.Undo || c.Note != "") {
		return &usageError{errors.New("account suspend: --delete is combined with neither --undo nor --note")}
	}
	if c.claims = c.Delete; c.Delete {
		return c.changeAccount(ctx, "account delete", c.Name, "", func(s *stores, a accounts.Account) error {
			receipt, err := s.Erasure.Account(ctx, a)
			return sayUnless(err, "%s\n", receipt)
		})
	}
	action, change := "account suspend", (*accounts.Store).Suspend
	if c.Undo {
		action, change = "account resume", (*accounts.Store).Resume
	}
	return c.changeAccount(ctx, action, c.Name, c.Note, func(s *stores, a accounts.Account) error {
		return change(s.Accounts, ctx, a.ID)
	})
}

// timeFlag reads a date, which begins in zone, a time, or a duration from now; ""
// is the zero time.
func timeFlag(zone *time.Location, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(d), nil
	}
	return time.Time{}, &usageError{fmt.Errorf("--%s: %q is not a date (2027-01-31), time (2027-01-31T12:00:00Z) or duration (720h)", flag, text)}
}

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key and print it once."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke an API key."`
}

type keyCreateCmd struct {
	storeFlags
	Account  string `arg:"" help:"Name or id."`
	ReadOnly bool   `help:"Limit the key to reading tasks and results."`
	Expires  string `placeholder:"TIME" help:"Expiry: 2027-01-31, an RFC 3339 time, or a duration such as 720h; default: never."`
}

func (c *keyCreateCmd) Run(ctx context.Context) error {
	expires, err := timeFlag(time.UTC, "expires", c.Expires)
	if err != nil {
		return err
	}
	options := accounts.KeyOptions{ID: db.NewID(), ReadOnly: c.ReadOnly, ExpiresAt: expires}
	detail := "unlimited"
	if c.ReadOnly {
		detail = "read only"
	}
	if c.Expires != "" {
		detail += ", expires " + expires.Format(time.RFC3339)
	}
	return c.changeAccount(ctx, "key create", c.Account, detail+", key "+options.ID, func(s *stores, a accounts.Account) error {
		key, _, err := s.Accounts.CreateKey(ctx, a.ID, options)
		return sayUnless(err, "%s\n", key)
	})
}

type keyRevokeCmd struct {
	storeFlags
	ID string `arg:"" help:"Key id, as account list NAME prints it."`
}

func (c *keyRevokeCmd) Run(ctx context.Context) error {
	return c.change(ctx, "key revoke", c.ID, "", func(s *stores) error {
		return about("key", c.ID, s.Accounts.RevokeKey(ctx, "", c.ID))
	})
}

// stamp returns a time for a table, "" for none.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

type userCmd struct {
	Create userCreateCmd `cmd:"" help:"Create a user with a password."`
	Passwd userPasswdCmd `cmd:"" help:"Change a user's password and revoke the user's access tokens."`
	Logout userLogoutCmd `cmd:"" help:"Revoke the access tokens of a user, or of --all users; the passwords stay valid."`
	Delete userDeleteCmd `cmd:"" help:"Delete a user and revoke the user's access tokens."`
}

// passwordFlag is a password given by the flag or at a prompt.
type passwordFlag struct {
	Password string `env:"OTOGRAPH_PASSWORD" help:"Password; prompted for when not set."`
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
		return "", &usageError{errors.New("a password is required: use --password or standard input")}
	}
	warn("Password: ")
	first, err := term.ReadPassword(fd)
	if err != nil {
		return "", err
	}
	warn("\nOnce more: ")
	second, err := term.ReadPassword(fd)
	warn("\n")
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
	password, err := c.read()
	if err != nil {
		return err
	}
	return c.changeAccount(ctx, "user create", c.Account, c.Username, func(s *stores, a accounts.Account) error {
		u, err := s.Accounts.CreateUser(ctx, a.ID, c.Username, password)
		return about("user", c.Username, sayUnless(err, "%s\n", u.ID))
	})
}

type userPasswdCmd struct {
	storeFlags
	passwordFlag
	Username string `arg:""`
}

func (c *userPasswdCmd) Run(ctx context.Context) error {
	password, err := c.read()
	if err != nil {
		return err
	}
	return c.change(ctx, "user passwd", c.Username, "", func(s *stores) error {
		return about("user", c.Username, s.Accounts.SetPassword(ctx, c.Username, password))
	})
}

type userLogoutCmd struct {
	storeFlags
	Username string `arg:"" optional:""`
	All      bool   `help:"Replace the key that signs access tokens: all users must log in again."`
}

func (c *userLogoutCmd) Run(ctx context.Context) error {
	if c.All == (c.Username != "") {
		return &usageError{errors.New("user logout: expected a user or --all")}
	}
	if c.All {
		return c.change(ctx, "secret rotate", "", "", func(s *stores) error {
			err := s.Accounts.RotateSigningKey(ctx)
			return sayUnless(err, "The token key has been replaced. Running servers reject old tokens within %s.\n", service.KeyInterval)
		})
	}
	return c.change(ctx, "user logout", c.Username, "", func(s *stores) error {
		return about("user", c.Username, s.Accounts.EndSessions(ctx, c.Username))
	})
}

type userDeleteCmd struct {
	storeFlags
	Username string `arg:""`
}

func (c *userDeleteCmd) Run(ctx context.Context) error {
	return c.change(ctx, "user delete", c.Username, "", func(s *stores) error {
		return about("user", c.Username, s.Accounts.DeleteUser(ctx, c.Username))
	})
}
