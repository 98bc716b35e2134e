package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// patience is the context key of a time limit set by Patient.
type patience struct{}

// Patient returns a context whose queries and transactions may take up to limit
// instead of the store's usual time. On PostgreSQL, statement_timeout still
// limits a single statement (a minute, or Options.Timeout if that is longer).
func Patient(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patience{}, limit)
}

// bound returns a context that ends after the store's time limit.
func (d *DB) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := d.timeout
	if own, ok := ctx.Value(patience{}).(time.Duration); ok {
		limit = own
	}
	return context.WithTimeout(ctx, limit)
}

// Reader is the pool for queries that change nothing. Its methods with a
// context apply the store's time limit, which includes reading the rows.
type Reader struct {
	*sql.DB
	d *DB
}

// QueryContext is sql.DB's, with a time limit that includes reading rows.
func (r *Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	begun := time.Now()
	bounded, cancel := r.d.bound(ctx)
	rows, err := r.DB.QueryContext(bounded, query, args...)
	if err != nil {
		cancel()
	} else {
		context.AfterFunc(bounded, cancel) // the rows are valid until then
	}
	r.d.observe("read", time.Since(begun), r.d.trouble(err))
	return rows, err
}

// QueryRowContext is sql.DB's with the store's time limit.
func (r *Reader) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	begun := time.Now()
	bounded, cancel := r.d.bound(ctx)
	row := r.DB.QueryRowContext(bounded, query, args...)
	context.AfterFunc(bounded, cancel) // the row is valid until then
	r.d.observe("read", time.Since(begun), r.d.trouble(row.Err()))
	return row
}

// trouble returns err if the store caused it, else nil.
func (d *DB) trouble(err error) error {
	if err = d.Classify(err); Outage(err) {
		return err
	}
	return nil
}

// cutAt breaks the connection if ctx ends before release is called. The
// statements of a transaction run under separate contexts, so cutAt alone ends
// a statement that waits for a server cut off from the network.
func cutAt(ctx context.Context, conn *sql.Conn) (release func()) {
	var link net.Conn
	_ = conn.Raw(func(driverConn any) error {
		if c, ok := driverConn.(*stdlib.Conn); ok {
			link = c.Conn().PgConn().Conn()
		}
		return nil
	})
	if link == nil { // SQLite
		return func() {}
	}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the driver and database/sql handle cancellations
			_ = link.SetDeadline(time.Unix(1, 0))
		}
	})
	return func() {
		if stop() {
			return
		}
		<-over
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = link.Close() // a connection with a past deadline is useless to the next transaction
		}
	}
}

// Limits enforced by PostgreSQL itself. Limits on a transaction's time are for
// clients that have gone; usually the client ends a slow statement.
const (
	minStatementTimeout = time.Minute
	idleTransaction     = time.Minute      // a client stopped in a transaction must not keep its locks
	deadPeer            = 15 * time.Second // data stays unacknowledged: the other side is gone
)

// postgresConfig returns the settings of connections to source whose work is
// limited by timeout. Settings in source take precedence.
func postgresConfig(source string, timeout time.Duration) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(source)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, min(5*time.Second, timeout))
	set := func(name string, d time.Duration) {
		config.RuntimeParams[name] = cmp.Or(config.RuntimeParams[name], strconv.FormatInt(d.Milliseconds(), 10))
	}
	set("statement_timeout", max(minStatementTimeout, timeout))
	set("lock_timeout", timeout*3/4) // returns a clear error before the connection is closed
	set("idle_in_transaction_session_timeout", max(idleTransaction, timeout))
	set("tcp_user_timeout", deadPeer)
	config.DialFunc = (&net.Dialer{KeepAlive: deadPeer, Control: userTimeout}).DialContext
	return config, nil
}
