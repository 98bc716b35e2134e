package dbtest

import (
	"context"
	"database/sql/driver"
	"errors"
)

// Call is a database driver's call that is about to be made.
type Call struct {
	Op    string // "query", "exec", "begin" or "commit"
	Query string // the SQL of query and exec
	InTx  bool   // inside a transaction
}

// Faulty returns a db.Options.Wrap that calls ask before each call of the
// driver. If ask returns an error, it becomes the call's result and the store
// does nothing. For a commit with after set, the commit is done first and only
// its response is lost. ask may block.
func Faulty(ask func(Call) (after bool, err error)) func(driver.Connector) driver.Connector {
	return func(c driver.Connector) driver.Connector { return faultyConnector{c, ask} }
}

type faultyConnector struct {
	driver.Connector
	ask func(Call) (bool, error)
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: conn, ask: c.ask}, nil
}

type faultyConn struct {
	driver.Conn
	ask  func(Call) (bool, error)
	inTx bool
}

// ExecContext implements driver.ExecerContext.
func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if _, err := c.ask(Call{"exec", query, c.inTx}); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if _, err := c.ask(Call{"query", query, c.inTx}); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// BeginTx implements driver.ConnBeginTx.
func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if _, err := c.ask(Call{Op: "begin"}); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return faultyTx{tx, c}, nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type faultyTx struct {
	driver.Tx
	conn *faultyConn
}

// Commit implements driver.Tx.
func (t faultyTx) Commit() error {
	after, fault := t.conn.ask(Call{Op: "commit", InTx: true})
	t.conn.inTx = false
	if fault != nil && !after {
		return errors.Join(fault, t.Tx.Rollback())
	}
	return errors.Join(t.Tx.Commit(), fault)
}

// Rollback implements driver.Tx.
func (t faultyTx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}
