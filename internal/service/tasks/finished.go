package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
)

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
