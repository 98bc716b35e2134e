package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/system/db"
)

// Busy lists the accounts and hosts whose tasks a fetcher must not claim now.
type Busy struct {
	Accounts []string // ids
	Hosts    []string // as of HostOf
	// Ahead is the maximum number of an account's tasks that wait for a worker
	// in the lane of a fetched task. Beyond it, nothing more is fetched for
	// that lane and account, so that audio does not accumulate in the file
	// store. Nothing is fetched for an account that is stopped there.
	Ahead int
}

// HostOf returns the host of a URL in lower case, with its port if the URL names
// one; "" if there is none.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// NextFetch claims for worker a task of the lane "fetch" that busy does not
// exclude, and returns nil if there is none. Accounts take turns; within an
// account, non-batch tasks go first, then the oldest.
//
// read is called in the claim's transaction: if it fails, nothing is claimed.
func (q *Queue) NextFetch(ctx context.Context, worker string, busy Busy, read func(tx *sql.Tx, c *Claim) error) (*Claim, error) {
	seen, err := q.lookFetch(ctx, busy)
	if err == nil && seen.due && !seen.paused {
		if _, err = q.Sweep(ctx); err == nil {
			seen, err = q.lookFetch(ctx, busy)
		}
	}
	if err != nil || seen.paused || !seen.waiting {
		return nil, q.wrap("claim download", err)
	}
	c, err := q.first(ctx, worker, []claimFunc{q.fetchWay(busy)}, read)
	return c, q.wrap("claim download", err)
}

// fetchLook is the state of the downloads before a claim.
type fetchLook struct{ paused, due, waiting bool }

func (q *Queue) lookFetch(ctx context.Context, busy Busy) (l fetchLook, err error) {
	now := q.now()
	err = q.config.DB.Read().QueryRowContext(ctx, `SELECT COALESCE((SELECT paused FROM lanes WHERE lane = 'fetch'), FALSE),
		`+someDue,
		db.Micros(now), db.Micros(now.Add(q.config.Horizon))).Scan(&l.paused, &l.due)
	if l.paused || err != nil {
		return l, err
	}
	account, args := busy.account(q.config.DB.Dialect())
	l.waiting, err = db.Found(q.config.DB.Read().QueryRowContext(ctx, account, args...).Scan(new(string)))
	return l, err
}

// fetchWay claims the next download that is not locked: it skips an account
// whose next download is locked.
func (q *Queue) fetchWay(busy Busy) claimFunc {
	return func(ctx context.Context, tx *sql.Tx, c *Claim) error {
		busy := busy
		for range longestSearch {
			account, args := busy.account(q.config.DB.Dialect())
			if err := tx.QueryRowContext(ctx, account+q.config.DB.SkipLocked(), args...).Scan(&c.AccountID); err != nil {
				return err
			}
			err := q.fetchOf(ctx, tx, busy, c)
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			busy.Accounts = append(slices.Clip(busy.Accounts), c.AccountID)
		}
		return sql.ErrNoRows
	}
}

// fetchOf claims a download of the account that c names. It returns
// sql.ErrNoRows if others have locked the next downloads.
func (q *Queue) fetchOf(ctx context.Context, tx *sql.Tx, busy Busy, c *Claim) error {
	for _, batch := range []bool{false, true} {
		queries, args := busy.finds(q.config.DB.Dialect(), c.AccountID, batch)
		for _, query := range queries {
			err := tx.QueryRowContext(ctx, query+q.config.DB.SkipLocked(), args...).Scan(&c.TaskID)
			if err == nil {
				return q.take(ctx, tx, LaneFetch, "", c)
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
	}
	return sql.ErrNoRows
}

// account returns the query for the account whose turn it is, among accounts
// with a task that b does not exclude. Each account costs a few probes of
// indexes, regardless of its number of waiting tasks.
func (b Busy) account(d db.Dialect) (query string, args []any) {
	var a db.Args
	query = "SELECT l.account_id FROM lane_accounts l WHERE l.lane = 'fetch' AND l.waiting > 0 AND NOT l.stopped"
	if len(b.Accounts) > 0 {
		query += " AND l.account_id NOT IN (" + a.AddTexts(b.Accounts) + ")"
	}
	hosts, ahead := a.AddTexts(b.Hosts), a.Add(b.Ahead)
	some := func(batch bool) string {
		own := downloads{d, "l.account_id", batch}
		next := own.first("1", byAge, "")
		if hosts != "" {
			next = own.idleHost(hosts)
		}
		return room("l.account_id", batch, ahead) + " AND (" + next + ") IS NOT NULL"
	}
	return query + " AND (" + some(false) + " OR " + some(true) + ") ORDER BY l.served, l.account_id LIMIT 1", a
}

// finds returns the queries for one of an account's batch or non-batch
// downloads, in the order in which they are tried: the oldest download and, if
// the hosts of many old downloads are busy, the oldest of another host.
func (b Busy) finds(d db.Dialect, account string, batch bool) (queries []string, args []any) {
	var a db.Args
	own := downloads{d, a.Add(account), batch}
	hosts, ahead := a.AddTexts(b.Hosts), a.Add(b.Ahead)
	ids := []string{own.first("t.id", byAge, "")}
	if hosts != "" {
		ids = []string{own.oldest(hosts), own.first("t.id", byHost, ">= ("+own.idleHost(hosts)+")")}
	}
	for _, id := range ids {
		queries = append(queries, fmt.Sprintf("SELECT id FROM tasks WHERE id = (%s) AND lane = 'fetch' AND phase = 'queued' AND %s",
			id, room(own.account, batch, ahead)))
	}
	return queries, a
}

// room returns the condition that fewer than ahead tasks of account wait in the
// lane of its downloads, and that the account is not stopped there.
func room(account string, batch bool, ahead string) string {
	lane := LaneTasks
	if batch {
		lane = LaneBatch
	}
	return fmt.Sprintf(`COALESCE((SELECT CASE WHEN w.stopped THEN 1000000000 ELSE w.waiting END FROM lane_accounts w
		WHERE w.account_id = %s AND w.lane = '%s'), 0) < %s`, account, lane, ahead)
}

// downloads are an account's waiting downloads, either batch tasks or others.
type downloads struct {
	dialect db.Dialect
	account string // an expression
	batch   bool
}

// hostOf is a download's host in the form of the index by host.
const hostOf = "COALESCE(t.audio_host, '')"

type order struct{ index, columns string }

var (
	byAge  = order{"tasks_fetch_age", "t.queued_at, t.id"}
	byHost = order{"tasks_fetch_host", hostOf + ", t.queued_at, t.id"}
)

// hostWindow is the number of an account's oldest downloads that are searched
// for a download with an idle host, before hosts are searched.
const hostWindow = 100

// rows returns the start of a query for downloads in order, where host is a
// condition such as "> 'x'" on their host, "" for all. Query planners, which
// only know averages over accounts, would choose the other index and sort. On
// SQLite the index is therefore named; on PostgreSQL the query starts at the
// account's first entry and has no upper end.
func (d downloads) rows(columns string, o order, host string) string {
	from, where := "", fmt.Sprintf("t.account_id = %s AND t.batch_mode = %t", d.account, d.batch)
	switch {
	case d.dialect == db.Postgres && host != "":
		sign, value, _ := strings.Cut(host, " ")
		where = fmt.Sprintf("(t.account_id, t.batch_mode, %s) %s (%s, %t, %s)", hostOf, sign, d.account, d.batch, value)
	case d.dialect == db.Postgres:
		where = fmt.Sprintf("(t.account_id, t.batch_mode) >= (%s, %t)", d.account, d.batch)
	default:
		from = " INDEXED BY " + o.index
		if host != "" {
			where += " AND " + hostOf + " " + host
		}
	}
	return fmt.Sprintf(`SELECT %s FROM tasks t%s WHERE t.lane = 'fetch' AND t.phase = 'queued' AND %s
		ORDER BY t.account_id, t.batch_mode, %s`, columns, from, where, o.columns)
}

// first returns the query for a column of the first download, null for none.
func (d downloads) first(column string, o order, host string) string {
	own := fmt.Sprintf("CASE WHEN t.account_id = %s AND t.batch_mode = %t THEN %s END", d.account, d.batch, column)
	return d.rows(own, o, host) + " LIMIT 1"
}

// oldest returns the query for the id of the oldest download whose host is not
// in the list busy, among the first hostWindow.
func (d downloads) oldest(busy string) string {
	columns := fmt.Sprintf("t.id, t.account_id, t.batch_mode, t.queued_at, %s AS host", hostOf)
	return fmt.Sprintf(`SELECT w.id FROM (%s LIMIT %d) w WHERE w.account_id = %s AND w.batch_mode = %t AND w.host NOT IN (%s)
		ORDER BY w.queued_at, w.id LIMIT 1`, d.rows(columns, byAge, ""), hostWindow, d.account, d.batch, busy)
}

// idleHost returns the query for a host that is not in the list busy. It steps
// from one busy host to the next in the index, skipping all downloads between
// them.
func (d downloads) idleHost(busy string) string {
	return fmt.Sprintf(`WITH RECURSIVE hosts (host) AS (SELECT (%s)
		UNION ALL SELECT (%s) FROM hosts WHERE hosts.host IN (%[3]s))
		SELECT host FROM hosts WHERE host NOT IN (%[3]s)`,
		d.first(hostOf, byHost, ">= ''"), d.first(hostOf, byHost, "> hosts.host"), busy)
}
