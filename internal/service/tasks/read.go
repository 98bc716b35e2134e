package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/db"
)

const taskColumns = `id, account_id, status, audio_filename, audio_source_type, audio_size, audio_md5, audio_seconds, allow_training,
	error_message, warnings, COALESCE(language, ''), speakers, options, extras, batch_mode, created_at, updated_at, finished_at`

// scanTask reads taskColumns, and the columns after them into other targets.
func scanTask(row db.Row, more ...any) (t Task, err error) {
	err = row.Scan(append([]any{
		&t.ID, &t.AccountID, &t.Status, &t.AudioFilename, &t.AudioSourceType, &t.AudioSize, &t.AudioMD5, &t.AudioDuration, &t.AllowTraining,
		&t.ErrorMessage, db.ScanJSON(&t.Warnings), &t.Language, &t.Speakers, db.ScanJSON(&t.Options), db.ScanJSON(&t.Extras), &t.BatchMode,
		db.ScanTime(&t.CreatedAt), db.ScanTime(&t.UpdatedAt), db.ScanOptionalTime(&t.FinishedAt),
	}, more...)...)
	return t, err
}

// Get returns a task of an account. Errors wrap ErrNotFound or ErrForbidden.
func (s *Owners) Get(ctx context.Context, account, id string) (Task, error) {
	t, _, _, err := s.get(ctx, account, id)
	return t, err
}

// get is Get, and returns the keys of the task's audio and result, "" for none.
func (s *core) get(ctx context.Context, account, id string) (t Task, audio, result string, err error) {
	t, err = scanTask(s.Config.DB.Read().QueryRowContext(ctx, "SELECT "+taskColumns+", COALESCE(audio_blob, ''), COALESCE(result_blob, '') FROM tasks WHERE id = $1", id), &audio, &result)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = fmt.Errorf("%w: %.40q", ErrNotFound, id)
	case err != nil:
		err = s.wrap("get", err)
	case t.AccountID != account:
		err = fmt.Errorf("%w: %s", ErrForbidden, id)
	}
	if err != nil {
		return Task{}, "", "", err
	}
	return t, audio, result, nil
}

// Wait returns the task once its state is final, or ctx's error.
func (s *Owners) Wait(ctx context.Context, account, id string) (Task, error) {
	t, err := s.Get(ctx, account, id)
	if err != nil || t.Final() {
		return t, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	states, err := s.Follow(following, account, id)
	if err != nil {
		return t, err
	}
	for {
		select {
		case <-ctx.Done():
			return t, context.Cause(ctx)
		case state := <-states:
			if state.Final || state.Gone {
				return s.Get(ctx, account, id)
			}
		}
	}
}

// Filter selects a page of an account's tasks.
type Filter struct {
	billing.Page
	Status Status // "" for all
}

// List returns a page of tasks, newest first, and the number of all.
func (s *Owners) List(ctx context.Context, account string, f Filter) ([]Task, int, error) {
	if f.Number < 1 || f.Size < 1 || !slices.Contains([]Status{"", StatusProcessing, StatusDone, StatusFailed, StatusAbandoned}, f.Status) {
		return nil, 0, fmt.Errorf("%w: page %d of size %d, status %.40q", ErrRequest, f.Number, f.Size, f.Status)
	}
	var args db.Args
	where := "account_id = " + args.Add(account)
	if f.Status != "" {
		where += " AND status = " + args.Add(string(f.Status))
	}
	where += args.Created(f.From, f.Until)
	total, err := s.total(ctx, account, f.Status)
	if err == nil && f.Bounded() {
		err = s.Config.DB.Read().QueryRowContext(ctx, "SELECT COUNT(*) FROM tasks WHERE "+where, args...).Scan(&total)
	}
	if err != nil || f.Number-1 > total/f.Size {
		return nil, total, s.wrap("list", err)
	}
	if f.After != "" {
		last, err := s.Get(ctx, account, f.After)
		if err != nil {
			return nil, total, fmt.Errorf("%w: %w", billing.ErrAfter, err)
		}
		where += " AND (created_at, id) < (" + args.Add(db.Micros(last.CreatedAt), last.ID) + ")"
	}
	if f.Number > 1 {
		// The start of the page is found in the index alone; only the page's
		// own rows are read.
		var created int64
		var id string
		err := s.Config.DB.Read().QueryRowContext(ctx, fmt.Sprintf("SELECT created_at, id FROM tasks WHERE %s ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET %d", where, (f.Number-1)*f.Size), args...).
			Scan(&created, &id)
		if found, err := db.Found(err); !found {
			return nil, total, s.wrap("list", err)
		}
		where += " AND (created_at, id) <= (" + args.Add(created, id) + ")"
	}
	list, err := s.charged(ctx, fmt.Sprintf("%s ORDER BY created_at DESC, id DESC LIMIT %d", where, f.Size), args)
	return list, max(total, (f.Number-1)*f.Size+len(list)), s.wrap("list", err) // a task may have been added since the sums were read
}

// allBatch is the number of tasks that All reads at a time.
const allBatch = 100

// All returns an account's tasks, newest first; it ends after an error. The
// caller may delete tasks meanwhile.
func (s *Owners) All(ctx context.Context, account string) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		where, args := "account_id = $1", db.Args{account}
		for {
			list, err := s.charged(ctx, fmt.Sprintf("%s ORDER BY created_at DESC, id DESC LIMIT %d", where, allBatch), args)
			if err != nil {
				yield(Task{}, s.wrap("list", err))
				return
			}
			for _, t := range list {
				if !yield(t, nil) {
					return
				}
			}
			if len(list) < allBatch {
				return
			}
			last := list[allBatch-1]
			where, args = "account_id = $1 AND (created_at, id) < ($2, $3)", db.Args{account, db.Micros(last.CreatedAt), last.ID}
		}
	}
}

// charged returns the tasks that the rest of a statement selects, with charges.
func (s *core) charged(ctx context.Context, where string, args db.Args) ([]Task, error) {
	return db.Select(ctx, s.Config.DB.Read(), func(row db.Row, t *Task) (err error) {
		var charged *billing.Money
		var number int64
		*t, err = scanTask(row, &charged, &number)
		t.Charged, t.number = charged, number
		return err
	}, "SELECT "+taskColumns+", (SELECT total FROM settlements WHERE task_id = tasks.id), COALESCE(finished_seq, 0) FROM tasks WHERE "+where, args...)
}

// total returns the number of an account's tasks with a status, from the
// running sums: the open holds are the tasks that are not final. The few that
// wait for a retry are counted in the table.
func (s *core) total(ctx context.Context, account string, status Status) (n int, err error) {
	const retrying = "(SELECT COUNT(*) FROM tasks t WHERE t.account_id = $1 AND t.status = 'failed' AND t.phase <> 'final')"
	counts := map[Status]string{
		"":               "active_tasks + waiting_batch + done + failed + abandoned",
		StatusProcessing: "active_tasks + waiting_batch - " + retrying,
		StatusDone:       "done",
		StatusFailed:     "failed + " + retrying,
		StatusAbandoned:  "abandoned",
	}
	err = s.Config.DB.Read().QueryRowContext(ctx, "SELECT "+counts[status]+" FROM account_sums WHERE account_id = $1", account).Scan(&n)
	_, err = db.Found(err) // 0 without such an account
	return n, err
}

// ErrCursor is returned for a cursor beyond the account's last ended task, as
// after the database was restored from a backup.
var ErrCursor = errors.New("the cursor is ahead of all ended tasks: begin again at 0, and expect tasks that you have read")

// Finished returns the tasks of an account that ended after the task at cursor,
// in the order of their ends, at most size; next is the cursor of the last one,
// and ended the number of the account's ended tasks. A cursor of 0 is before
// the first task. An empty status selects all tasks.
//
// A caller who continues from each next gets each end once, regardless of the
// server that ended the task. A task that an operator retries ends again. Tasks
// that ended before the database numbered ends are not listed.
func (s *Owners) Finished(ctx context.Context, account string, status Status, cursor int64, size int) (list []Task, next int64, ended int, err error) {
	var last int64
	found, err := db.Found(s.Config.DB.Read().QueryRowContext(ctx, "SELECT finished, done + failed + abandoned FROM account_sums WHERE account_id = $1", account).Scan(&last, &ended))
	if !found {
		return nil, cursor, 0, s.wrap("ended tasks", err)
	}
	if cursor > last {
		return nil, cursor, ended, ErrCursor
	}
	var args db.Args
	where := "account_id = " + args.Add(account) + " AND phase = 'final' AND finished_seq > " + args.Add(cursor)
	if status != "" {
		where += " AND status = " + args.Add(string(status))
	}
	list, err = s.charged(ctx, fmt.Sprintf("%s ORDER BY finished_seq LIMIT %d", where, size), args)
	if next = cursor; len(list) > 0 {
		next = list[len(list)-1].number
	}
	return list, next, ended, s.wrap("ended tasks", err)
}
