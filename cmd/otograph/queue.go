package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

type queueCmd struct {
	List    queueListCmd    `cmd:"" help:"Show lanes, accounts with unfinished tasks, and workers."`
	Tasks   queueTasksCmd   `cmd:"" help:"List unfinished tasks, longest waiting first."`
	Pause   queuePauseCmd   `cmd:"" help:"Pause a lane: its tasks are not claimed. Running tasks finish, new ones are accepted."`
	Resume  queueResumeCmd  `cmd:"" help:"Resume a paused lane."`
	Cancel  queueCancelCmd  `cmd:"" help:"Fail a task without charging for it."`
	Retry   queueRetryCmd   `cmd:"" help:"Run a delayed, failed or abandoned task again."`
	Drain   queueDrainCmd   `cmd:"" help:"Stop a worker from claiming tasks; it finishes its current task."`
	Undrain queueUndrainCmd `cmd:"" help:"Let a draining worker claim tasks again."`
}

type queueListCmd struct {
	storeFlags
	Accounts int  `default:"20" placeholder:"N" help:"Number of accounts to show, those with the most unfinished tasks first; 0: all."`
	JSON     bool `help:"Print as JSON, with all accounts."`
}

func (c *queueListCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(s *stores) error {
		o, err := s.Tasks.Queue().Overview(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			o.Accounts, o.Workers = orEmpty(o.Accounts), orEmpty(o.Workers)
			return printJSON(o)
		}
		return printOverview(o, c.Accounts, time.Now())
	})
}

// printOverview prints three tables; the tables of accounts and workers only if
// there are any.
func printOverview(o queue.Overview, most int, now time.Time) error {
	t := newTable(os.Stdout, "LANE", "STATE", "WAITING", "RUNNING", "DELAYED", "OLDEST")
	for _, l := range o.Lanes {
		state := "open"
		if l.Paused {
			state = "paused"
		}
		t.row(l.Lane, state, l.Waiting, l.Running, l.Delayed, age(l.Oldest, now))
	}
	if len(o.Accounts) > 0 {
		t.section("ACCOUNT", "LANE", "WAITING", "RUNNING", "DELAYED", "OLDEST")
		shown := busiest(o.Accounts, most)
		for _, a := range shown {
			t.row(a.Account, a.Lane, a.Waiting, a.Running, a.Delayed, age(a.Oldest, now))
		}
		if hidden := len(o.Accounts) - len(shown); hidden > 0 {
			t.row(fmt.Sprintf("%d more; show them with --accounts 0", hidden))
		}
	}
	if len(o.Workers) > 0 {
		t.section("WORKER", "STATE", "TASK", "PID", "VERSION", "LAST BEAT")
		for _, m := range o.Workers {
			state := "idle"
			if m.TaskID != "" {
				state = "busy"
			}
			if m.Draining {
				state += ", draining"
			}
			t.row(m.ID, state, m.TaskID, m.PID, m.Version, age(&m.BeatAt, now))
		}
	}
	return t.flush()
}

// busiest returns the accounts with the most unfinished tasks, at most n of
// them if n is positive.
func busiest(list []queue.AccountState, n int) []queue.AccountState {
	open := func(a queue.AccountState) int { return a.Waiting + a.Running + a.Delayed }
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b queue.AccountState) int { return cmp.Compare(open(b), open(a)) })
	if n > 0 {
		list = list[:min(n, len(list))]
	}
	return list
}

// age returns the time since t, "" for none.
func age(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return max(0, now.Sub(*t)).Round(time.Second).String()
}

type queueTasksCmd struct {
	storeFlags
	Account string `placeholder:"NAME" help:"Account, by name or id."`
	Lane    string `placeholder:"LANE" help:"Lane, as named by queue list."`
	Ended   bool   `help:"Show failed and abandoned tasks instead, newest first; requires --account."`
	Limit   int    `default:"100" placeholder:"N" help:"Maximum number of entries."`
	JSON    bool   `help:"Print as JSON."`
}

func (c *queueTasksCmd) Run(ctx context.Context) error {
	if c.Ended && c.Account == "" {
		return &usageError{errors.New("queue tasks: --ended requires --account")}
	}
	return c.with(ctx, func(s *stores) error {
		filter := queue.ListFilter{Lane: c.Lane, Ended: c.Ended, Limit: c.Limit}
		if c.Account != "" {
			a, err := s.Accounts.Find(ctx, c.Account)
			if err != nil {
				return fmt.Errorf("account %q: %w", c.Account, err)
			}
			filter.AccountID = a.ID
		}
		items, err := s.Tasks.Queue().List(ctx, filter)
		if err != nil {
			return err
		}
		now := time.Now()
		header := []string{"TASK", "ACCOUNT", "LANE", "PHASE", "STATUS", "FAILURES", "SINCE", "ERROR"}
		return printList(c.JSON, items, header, func(t table, i queue.Item) {
			t.row(i.TaskID, i.Account, i.Lane, i.Phase, i.Status, i.Failures, age(&i.QueuedAt, now), spec.Shorten(i.Error))
		})
	})
}

// laneArg names a lane.
type laneArg struct {
	Lane string `arg:"" help:"Lane, as named by queue list: tasks or batch, for example."`
}

type queuePauseCmd struct {
	storeFlags
	laneArg
}

func (c *queuePauseCmd) Run(ctx context.Context) error {
	return c.change(ctx, "queue pause", c.Lane, "", func(s *stores) error { return s.Tasks.Queue().SetPaused(ctx, c.Lane, true) })
}

type queueResumeCmd struct {
	storeFlags
	laneArg
}

func (c *queueResumeCmd) Run(ctx context.Context) error {
	return c.change(ctx, "queue resume", c.Lane, "", func(s *stores) error { return s.Tasks.Queue().SetPaused(ctx, c.Lane, false) })
}

type queueCancelCmd struct {
	storeFlags
	Task      string        `arg:"" help:"Task id."`
	KeepAudio time.Duration `placeholder:"DURATION" help:"Keep an uploaded recording for this time, so that the task can be retried; default: delete it now."`
}

func (c *queueCancelCmd) Run(ctx context.Context) error {
	return c.withRules(ctx, tasks.Config{KeepAudio: c.KeepAudio}, func(s *stores) error {
		return recorded(ctx, s, "queue cancel", c.Task, "", func() error {
			t, err := s.Tasks.Cancel(ctx, c.Task)
			if err != nil {
				return err
			}
			say("%s is %s: %s\n", t.ID, t.Status, *t.ErrorMessage)
			return nil
		})
	})
}

type queueRetryCmd struct {
	storeFlags
	Task string `arg:"" help:"Task id."`
}

func (c *queueRetryCmd) Run(ctx context.Context) error {
	return c.change(ctx, "queue retry", c.Task, "", func(s *stores) error {
		t, err := s.Tasks.Retry(ctx, c.Task)
		if err != nil {
			return err
		}
		say("%s is queued\n", t.ID)
		return nil
	})
}

// drainFlags name a worker.
type drainFlags struct {
	storeFlags
	Worker string `arg:"" help:"Worker id, as shown by queue list, or its first characters."`
}

// drain lets the worker claim tasks or stops it from claiming them.
func (c *drainFlags) drain(ctx context.Context, action string, draining bool, done string) error {
	return c.change(ctx, action, c.Worker, "", func(s *stores) error {
		id, err := s.Tasks.Queue().SetDraining(ctx, c.Worker, draining)
		if err == nil {
			say("worker %s %s\n", id, done)
		}
		return err
	})
}

type queueDrainCmd struct{ drainFlags }

func (c *queueDrainCmd) Run(ctx context.Context) error {
	return c.drain(ctx, "queue drain", true, "claims no more tasks")
}

type queueUndrainCmd struct{ drainFlags }

func (c *queueUndrainCmd) Run(ctx context.Context) error {
	return c.drain(ctx, "queue undrain", false, "claims tasks")
}
