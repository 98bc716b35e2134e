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
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/spec"
)

type queueCmd struct {
	List   queueListCmd   `cmd:"" help:"Show lanes, accounts with unfinished tasks, and workers; or list tasks, or callbacks that could not be delivered."`
	Pause  queuePauseCmd  `cmd:"" help:"Pause a lane: no tasks are claimed, running ones finish. --undo resumes it."`
	Cancel queueCancelCmd `cmd:"" help:"Fail a task without charging for it."`
	Retry  queueRetryCmd  `cmd:"" help:"Run a delayed, failed or abandoned task again, a running one on another worker (--take), or deliver a callback again (--callback)."`
}

type queueListCmd struct {
	storeFlags
	What     string `arg:"" optional:"" enum:"lanes,tasks,callbacks" default:"lanes" help:"lanes (default), tasks (unfinished ones, longest waiting first) or callbacks (that could not be delivered)."`
	JSON     bool   `help:"Print as JSON, lanes with all accounts."`
	Limit    int    `default:"100" placeholder:"N" help:"Maximum number of tasks."`
	Accounts int    `default:"20" placeholder:"N" group:"Lanes" help:"Number of accounts to show, those with the most unfinished tasks first; 0: all."`
	Account  string `placeholder:"NAME" group:"Tasks" help:"Account, by name or id."`
	Lane     string `placeholder:"LANE" group:"Tasks" help:"Lane, as named by queue list."`
	Ended    bool   `group:"Tasks" help:"Show failed and abandoned tasks instead, newest first; requires --account."`
	All      bool   `group:"Callbacks" help:"Include delivered and pending callbacks."`
	Task     string `placeholder:"ID" group:"Callbacks" help:"Task."`
}

func (c *queueListCmd) Run(ctx context.Context) error {
	switch {
	case c.What != "tasks" && (c.Account != "" || c.Lane != "" || c.Ended):
		return &usageError{errors.New("queue list: --account, --lane and --ended belong to `queue list tasks`")}
	case c.What != "callbacks" && (c.All || c.Task != ""):
		return &usageError{errors.New("queue list: --all and --task belong to `queue list callbacks`")}
	case c.Ended && c.Account == "":
		return &usageError{errors.New("queue list tasks: --ended requires --account")}
	}
	show := map[string]func(context.Context, *stores) error{"lanes": c.lanes, "tasks": c.tasks, "callbacks": c.callbacks}[c.What]
	return c.with(ctx, func(s *stores) error { return show(ctx, s) })
}

func (c *queueListCmd) lanes(ctx context.Context, s *stores) error {
	o, err := s.Tasks.Queue().Overview(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		o.Accounts, o.Workers = orEmpty(o.Accounts), orEmpty(o.Workers)
		return printJSON(o)
	}
	now := time.Now()
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
		shown := busiest(o.Accounts, c.Accounts)
		for _, a := range shown {
			t.row(a.Account, a.Lane, a.Waiting, a.Running, a.Delayed, age(a.Oldest, now))
		}
		if hidden := len(o.Accounts) - len(shown); hidden > 0 {
			t.row(fmt.Sprintf("%d more; show them with --accounts 0", hidden))
		}
	}
	if len(o.Workers) > 0 {
		t.section("WORKER", "STATE", "TASK", "STAGE", "SINCE", "PID", "VERSION", "LAST BEAT")
		for _, m := range o.Workers {
			state, since := "idle", ""
			if m.TaskID != "" {
				state, since = "busy", age(&m.Since, now)
			}
			t.row(m.ID, state, m.TaskID, m.Stage, since, m.PID, m.Version, age(&m.BeatAt, now))
		}
	}
	return t.flush()
}

func (c *queueListCmd) tasks(ctx context.Context, s *stores) error {
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
}

// mostCallbacks limits the callbacks in a list.
const mostCallbacks = 1000

func (c *queueListCmd) callbacks(ctx context.Context, s *stores) error {
	filter := webhook.Filter{TaskID: c.Task, Phase: "given_up", Limit: mostCallbacks}
	if c.All {
		filter.Phase = ""
	}
	list, err := s.Tasks.Outbox().List(ctx, filter)
	if err != nil {
		return err
	}
	return printList(c.JSON, list, []string{"TASK", "STATE", "ATTEMPTS", "UPDATED", "URL", "LAST ERROR"}, func(t table, k webhook.Callback) {
		t.row(k.TaskID, k.Phase, k.Attempts, k.UpdatedAt.Format(time.RFC3339), clip(k.URL, 60), clip(k.LastError, 60))
	})
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

type queuePauseCmd struct {
	storeFlags
	Lane string `arg:"" help:"Lane, as named by queue list: tasks or batch, for example."`
	Undo bool   `help:"Let tasks be claimed again."`
}

func (c *queuePauseCmd) Run(ctx context.Context) error {
	action := "queue pause"
	if c.Undo {
		action = "queue resume"
	}
	return c.change(ctx, action, c.Lane, "", func(s *stores) error { return s.Tasks.Queue().SetPaused(ctx, c.Lane, !c.Undo) })
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
			if err == nil {
				say("%s is %s: %s\n", t.ID, t.Status, *t.ErrorMessage)
			}
			return err
		})
	})
}

type queueRetryCmd struct {
	storeFlags
	Task     string `arg:"" help:"Task id."`
	Callback bool   `xor:"what" help:"Deliver the task's callback again, and leave the task as it is."`
	Take     bool   `xor:"what" help:"Take a running task that is stuck from its worker; another continues it, and no attempt is counted."`
}

func (c *queueRetryCmd) Run(ctx context.Context) error {
	if c.Callback {
		return c.change(ctx, "callback resend", c.Task, "", func(s *stores) error {
			return about("task", c.Task, s.Tasks.Outbox().Resend(ctx, c.Task))
		})
	}
	if c.Take {
		return c.change(ctx, "queue take", c.Task, "", func(s *stores) error {
			return about("task", c.Task, s.Tasks.TakeBack(ctx, c.Task))
		})
	}
	return c.change(ctx, "queue retry", c.Task, "", func(s *stores) error {
		t, err := s.Tasks.Retry(ctx, c.Task)
		return sayUnless(err, "%s is queued\n", t.ID)
	})
}
