package main

import (
	"context"
	"time"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/spec"
)

type auditCmd struct {
	storeFlags
	Since string `placeholder:"TIME" help:"Earliest time: 2027-01-31, an RFC 3339 time, or a duration such as -24h (--since=-24h)."`
	Limit int    `default:"100" placeholder:"N" help:"Number of entries, newest first."`
	JSON  bool   `help:"Print as JSON."`
}

func (c *auditCmd) Run(ctx context.Context) error {
	since, err := optionalTime("since", c.Since)
	if err != nil {
		return err
	}
	return c.with(ctx, func(s *stores) error {
		entries, err := s.Audit.List(ctx, since, c.Limit)
		if err != nil {
			return err
		}
		return printList(c.JSON, entries, []string{"TIME", "OPERATOR", "ACTION", "SUBJECT", "DETAIL"}, func(t table, e accounts.AuditEntry) {
			t.row(e.At.Format(time.RFC3339), e.Operator, e.Action, spec.Shorten(e.Subject), spec.Shorten(e.Detail))
		})
	})
}

// change is like with, for a command that changes something: the audit log
// records the change before it is made, and again if it fails.
func (f *storeFlags) change(ctx context.Context, action, subject, detail string, work func(*stores) error) error {
	return f.with(ctx, func(s *stores) error {
		return recorded(ctx, s, action, subject, detail, func() error { return work(s) })
	})
}

// changeAccount is like change, for a command about one account.
func (f *storeFlags) changeAccount(ctx context.Context, action, name, detail string, work func(*stores, accounts.Account) error) error {
	return f.withAccount(ctx, name, func(s *stores, a accounts.Account) error {
		return recorded(ctx, s, action, a.Name, detail, func() error { return work(s, a) })
	})
}

// recorded writes a change to the audit log and then makes it.
func recorded(ctx context.Context, s *stores, action, subject, detail string, work func() error) error {
	return s.Audit.Do(ctx, accounts.AuditEntry{Operator: accounts.Operator(), Action: action, Subject: subject, Detail: detail}, work)
}
