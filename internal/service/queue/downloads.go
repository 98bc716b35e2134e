package queue

import (
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/system/db"
)

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
// for one with an idle host, before a download of another host is taken.
const hostWindow = 100

// rows returns the start of a query for downloads in order, where host is a
// condition such as "> 'x'" on their host, "" for all. Planners, which only
// know averages over accounts, would choose the other index and sort. On SQLite
// the index is therefore named; on PostgreSQL the query starts at the account's
// first entry and has no upper end.
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

// first returns the query for a column of the first download, null if there is
// none.
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
// from one busy host to the next in the index, skipping all downloads between.
func (d downloads) idleHost(busy string) string {
	return fmt.Sprintf(`WITH RECURSIVE hosts (host) AS (SELECT (%s)
		UNION ALL SELECT (%s) FROM hosts WHERE hosts.host IN (%[3]s))
		SELECT host FROM hosts WHERE host NOT IN (%[3]s)`,
		d.first(hostOf, byHost, ">= ''"), d.first(hostOf, byHost, "> hosts.host"), busy)
}
