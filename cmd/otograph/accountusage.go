package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/otograph/otograph/internal/service/tasks"
)

// usageFlags are the flags of account list that add up charged tasks.
type usageFlags struct {
	Usage    string `placeholder:"PERIOD" enum:",day,month" default:"" group:"Usage" help:"Add up the charged tasks of the account, or of all accounts, by day or month."`
	By       string `placeholder:"GROUPS" group:"Usage" help:"Further groups, separated by commas: account, key, model, kind (of work)."`
	Timezone string `placeholder:"ZONE" default:"UTC" group:"Usage" help:"Time zone in which days begin, such as Europe/Berlin; default: UTC."`
	From     string `placeholder:"DATE" group:"Usage" help:"First date or time; default: the beginning of this month, or of the month eleven months ago."`
	Until    string `placeholder:"DATE" group:"Usage" help:"Date or time before which the last charge was made; default: now."`
	CSV      bool   `name:"csv" group:"Usage" help:"Print as CSV."`
}

// usage prints the charged tasks of an account or of all, added up.
func (c *accountListCmd) usage(ctx context.Context) error {
	q, err := tasks.ParseUsage(c.Timezone, c.By, append(tasks.UsageGroups(), "account")...)
	if err != nil {
		return &usageError{fmt.Errorf("--%w", err)}
	}
	q.Monthly = c.Usage == "month"
	if q.From, err = timeFlag(q.Zone, "from", c.From); err != nil {
		return err
	}
	if q.Until, err = timeFlag(q.Zone, "until", c.Until); err != nil {
		return err
	}
	return c.with(ctx, func(s *stores) error {
		if c.Name != "" {
			a, err := s.Accounts.Find(ctx, c.Name)
			if err != nil {
				return fmt.Errorf("account %q: %w", c.Name, err)
			}
			q.Account = a.ID
		}
		u, err := s.Tasks.Usage(ctx, q)
		switch {
		case errors.Is(err, tasks.ErrPeriod):
			return &usageError{err}
		case err != nil:
			return err
		case c.CSV:
			return u.WriteCSV(os.Stdout)
		case c.JSON:
			return printJSON(u)
		}
		return printList(false, u.Rows, strings.Split(strings.ToUpper(strings.Join(u.Header(), ",")), ","), func(t table, r tasks.UsageRow) {
			fmt.Fprintln(t.w, strings.Join(r.Cells(u.By), "\t"))
		})
	})
}
