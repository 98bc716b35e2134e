// Package db is the access layer of the service's relational store: SQLite in a
// file (the default) or PostgreSQL 14 and newer. It opens the store, migrates
// its tables, and runs transactions. Its callers use database/sql and the SQL
// that both databases understand ($1 placeholders, ON CONFLICT, RETURNING).
//
// Writes go through Write, which holds one connection on SQLite (one writer)
// and repeats a transaction that PostgreSQL rolled back in favor of another
// one. Times are stored as microseconds since 1970 (Micros, Time).
package db

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/otograph/otograph/internal/system/backoff"
)

// Errors that callers act upon.
var (
	// ErrUnavailable is returned when the store can't be reached or stays
	// locked: retry later (HTTP 503).
	ErrUnavailable = errors.New("database unavailable")
	// ErrFull is returned when the disk of the store is full (HTTP 507).
	ErrFull = errors.New("database full")
	// ErrLocked is returned if another process has the folder (LockFolder).
	ErrLocked = errors.New("data folder is in use")
)

// DataFile is the name of the SQLite database in a data folder and in a backup.
const DataFile = "otograph.db"

// Dialect names the kind of store.
type Dialect string

// The two kinds of store.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Options configures Open; the zero value suits the service.
type Options struct {
	// BusyTimeout is SQLite's longest wait for another process; 0 means 10 s.
	BusyTimeout time.Duration
	// MaxConns limits readers (SQLite) or connections (PostgreSQL); 0 means 16.
	MaxConns int
	// Timeout bounds every query and transaction, with the wait for a
	// connection; 0 means 30 s. For longer work, see Patient.
	Timeout time.Duration
	// Observe, when set, is called after every query ("read") and transaction
	// ("write") with its duration and outcome. Only failures of the store count
	// as errors.
	Observe func(op string, took time.Duration, err error)
	// Logger receives the log of migrations; nil discards it.
	Logger *slog.Logger
	// NoListen limits Subscribe to notifications of this process: for
	// connections that do not support PostgreSQL's LISTEN.
	NoListen bool
	// Wrap, if set, wraps the pools' driver, for tests that let calls fail.
	Wrap func(driver.Connector) driver.Connector
}

// DB is an open store. It is safe for concurrent use.
type DB struct {
	dialect     Dialect
	source      string // path (SQLite) or connection string
	write, read *sql.DB
	reader      *Reader
	config      *pgx.ConnConfig // nil on SQLite
	timeout     time.Duration
	observe     func(op string, took time.Duration, err error)
	logger      *slog.Logger
	closing     sync.Once
	closeErr    error

	noListen  bool
	listeners listeners
}

// keywords are the keywords of PostgreSQL's connection strings and the most
// common run-time parameters.
//
//go:embed keywords.txt
var keywords string

// notAPath matches addresses of database servers, which would otherwise create
// an empty SQLite file: another URL scheme, or PostgreSQL's keyword=value.
var notAPath = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9+.-]*://|(?i:` + strings.Join(strings.Fields(keywords), "|") + `)\s*=)`)

// errUnreadable refuses an address with a user or password not encoded.
var errUnreadable = errors.New("not an address: in a user name or password, " +
	"the characters / ? # @ % : are written as %2F %3F %23 %40 %25 %3A")

// Open opens the store at source without touching its tables (see Migrate):
// "postgres://…" or "postgresql://…" for PostgreSQL, anything else is the path
// of a SQLite file (the prefixes "sqlite:" and "file:" are removed; the file is
// created, its folder is not). Other schemes and keyword=value strings are
// refused. Errors wrap ErrUnavailable if the store can't be reached.
func Open(ctx context.Context, source string, opt Options) (*DB, error) {
	opt.BusyTimeout = cmp.Or(max(opt.BusyTimeout, 0), 10*time.Second)
	opt.MaxConns = cmp.Or(max(opt.MaxConns, 0), 16)
	opt.Logger = cmp.Or(opt.Logger, slog.New(slog.DiscardHandler))
	opt.Timeout = cmp.Or(max(opt.Timeout, 0), 30*time.Second)
	if opt.Wrap == nil {
		opt.Wrap = func(c driver.Connector) driver.Connector { return c }
	}
	if opt.Observe == nil {
		opt.Observe = func(string, time.Duration, error) {}
	}
	d := &DB{
		source: source, logger: opt.Logger, timeout: opt.Timeout, observe: opt.Observe, noListen: opt.NoListen,
		listeners: listeners{subs: map[string]map[chan struct{}]bool{}, again: map[string]bool{}},
	}
	if strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://") {
		d.dialect = Postgres
		config, err := postgresConfig(source, opt.Timeout)
		if err != nil {
			if strings.Contains(source, "@") && certain(source) == nil {
				err = errUnreadable // err may quote a part of the password
			}
			return nil, fmt.Errorf("database %s: %w", Redact(source), err)
		}
		d.config = config
		pool := sql.OpenDB(opt.Wrap(stdlib.GetConnector(*config)))
		pool.SetMaxOpenConns(opt.MaxConns)
		pool.SetMaxIdleConns(opt.MaxConns)
		pool.SetConnMaxIdleTime(5 * time.Minute)
		d.write, d.read = pool, pool
	} else {
		d.dialect = SQLite
		d.source = strings.TrimPrefix(strings.TrimPrefix(source, "sqlite:"), "file:")
		if found := notAPath.FindString(d.source); found != "" {
			return nil, fmt.Errorf("database: expected postgres://… or the path of an SQLite file, found %s…", found)
		}
		busy := opt.BusyTimeout.Milliseconds()
		path := (&url.URL{Path: d.source}).EscapedPath()
		pragmas := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=secure_delete(1)", path, busy)
		open := func(dsn string, conns int) *sql.DB {
			pool := sql.OpenDB(opt.Wrap(sqliteConnector{dsn: dsn, busy: opt.BusyTimeout}))
			pool.SetMaxOpenConns(conns)
			pool.SetMaxIdleConns(conns)
			return pool
		}
		d.write = open(pragmas+"&_txlock=immediate", 1)
		d.read = open(pragmas+"&_pragma=query_only(1)", opt.MaxConns)
	}
	d.reader = &Reader{DB: d.read, d: d}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	if err := d.write.PingContext(ctx); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("database %s: open: %w", Redact(source), d.Classify(err))
	}
	return d, nil
}

// sqliteConnector opens connections of the registered driver with a fixed name.
type sqliteConnector struct {
	dsn  string
	busy time.Duration // the time to retry while others lock the file
}

var sqliteDriver = func() driver.Driver {
	pool, err := sql.Open("sqlite", ":memory:") // opens nothing; returns the registered driver
	if err != nil {
		return &sqlite.Driver{}
	}
	defer pool.Close()
	return pool.Driver()
}()

// Connect retries while the file is locked: SQLite's busy timeout does not
// apply when connections switch a new file to a write-ahead log concurrently.
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	for deadline := time.Now().Add(c.busy); ; {
		conn, err := sqliteDriver.Open(c.dsn)
		if sqliteCode(err)&0xff != sqlite3.SQLITE_BUSY || time.Now().After(deadline) {
			return conn, err
		}
		if !backoff.Sleep(ctx, 10*time.Millisecond) {
			return nil, err
		}
	}
}

func (c sqliteConnector) Driver() driver.Driver { return sqliteDriver }

// PostgreSQL's codes of errors that the program handles.
const (
	codeDeadlock    = "40P01"
	codeDiskFull    = "53100"
	codeLockTimeout = "55P03"
)

// outageCodes are the codes of PostgreSQL's errors, and their classes (the
// first two characters), that are failures of the store rather than of the
// statement. A read-only server is a standby during a failover.
var outageCodes = map[string]bool{
	"08": true, "28": true, "3D": true, "40": true, "53": true, "57": true, "58": true, "F0": true, "XX": true,
	"25006":         true, // read-only
	"25P03":         true, // too long idle in a transaction
	"25P04":         true, // transaction_timeout
	"42501":         true, // no privilege
	"42P01":         true, // no such table
	codeLockTimeout: true,
}

// outageResults are SQLite's primary result codes for failures of the store.
var outageResults = []int{
	sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
	sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL,
}

// secretPart matches user name and password, up to the last possible @.
var secretPart = regexp.MustCompile(`(?s)://.*@`)

// secretValue matches a password in parameters or PostgreSQL's keywords.
var secretValue = regexp.MustCompile(`(?is)(password *= *)('(?:[^'\\]|\\.)*'|[^&\s]+)`)

// Redact returns a connection string without its passwords, for logs. If the
// end of a password is uncertain, it hides more, such as the user name.
func Redact(source string) string {
	source = secretValue.ReplaceAllString(source, "${1}xxxxx")
	if u := certain(source); u != nil {
		return u.Redacted()
	}
	return secretPart.ReplaceAllString(source, "://xxxxx@")
}

// certain returns the parsed source if its only @ ends the password, else nil.
func certain(source string) *url.URL {
	u, err := url.Parse(source)
	if err != nil || u.User == nil || strings.Count(source, "@") > 1 {
		return nil
	}
	return u
}

// Dialect returns the kind of store.
func (d *DB) Dialect() Dialect { return d.dialect }

// Source returns the path of the SQLite file or the PostgreSQL connection
// string without its password.
func (d *DB) Source() string { return Redact(d.source) }

// Close closes every connection. It may be called more than once.
func (d *DB) Close() error {
	d.closing.Do(func() {
		pools := []*sql.DB{d.read, d.write}
		if d.dialect == Postgres {
			pools = pools[:1]
		}
		for _, pool := range pools {
			if pool != nil {
				d.closeErr = errors.Join(d.closeErr, pool.Close())
			}
		}
	})
	return d.closeErr
}

// Ping checks that the store answers.
func (d *DB) Ping(ctx context.Context) error {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	return d.Classify(d.read.PingContext(ctx))
}

// Read returns the pool for queries; SQLite's connections refuse writes.
func (d *DB) Read() *Reader { return d.reader }

// maxTries limits the number of times that Write runs a transaction that the
// server rolls back in favor of another one.
const maxTries = 8

// Write runs fn in a transaction and commits it. On SQLite the transaction
// holds the write lock from its beginning. On PostgreSQL it is READ COMMITTED
// (take row locks with ForUpdate) and is repeated if the server rolled it back
// because of a deadlock or a serialization failure. fn may thus run more than
// once and must not keep state of an earlier run. An error of fn rolls
// everything back and is returned. Errors of the store wrap ErrUnavailable or
// ErrFull. After an error of the commit itself the outcome is unknown.
//
// The transaction has the store's time limit (Options.Timeout, or the limit set
// by Patient). A statement that exceeds it ends with its connection, and the
// error wraps ErrUnavailable.
func (d *DB) Write(ctx context.Context, fn func(tx *sql.Tx) error) error {
	begun := time.Now()
	bounded, cancel := d.bound(ctx)
	defer cancel()
	err := d.tryWrite(bounded, fn)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: no answer within %s: %w", ErrUnavailable, time.Since(begun).Round(time.Millisecond), err)
	}
	d.observe("write", time.Since(begun), d.trouble(err))
	return err
}

func (d *DB) tryWrite(ctx context.Context, fn func(tx *sql.Tx) error) error {
	for try := 1; ; try++ {
		err := d.once(ctx, fn)
		if err == nil {
			return nil
		}
		if d.dialect == SQLite && errors.Is(d.Classify(err), ErrFull) && try == 1 {
			// The write-ahead log may fill the disk: merging it may free space.
			if _, folding := d.write.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); folding == nil {
				continue
			}
		}
		undone := slices.Contains([]string{"40001", codeDeadlock}, postgresCode(err)) // for certain, and to be repeated
		pause := time.Duration(try*(1+rand.IntN(10))) * time.Millisecond
		if !undone || try == maxTries || ctx.Err() != nil || !backoff.Sleep(ctx, pause) {
			return d.Classify(err)
		}
	}
}

// forgetWait is the longest wait of Forget for others, or of others for it.
const forgetWait = 200 * time.Millisecond

// Forget merges SQLite's write-ahead log into the file and empties it, so that
// deleted data cannot be read from the log either. It fails soon if the log is
// being read; then call it again later. On PostgreSQL it does nothing.
func (d *DB) Forget(ctx context.Context) error {
	if d.dialect != SQLite {
		return nil
	}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	// A separate connection, because the pools' connections wait longer and
	// meanwhile block the writers.
	pool := sql.OpenDB(sqliteConnector{
		dsn:  fmt.Sprintf("file:%s?mode=rw&_pragma=busy_timeout(%d)", (&url.URL{Path: d.source}).EscapedPath(), forgetWait.Milliseconds()),
		busy: forgetWait,
	})
	defer pool.Close()
	var busy, pages, folded int
	err := pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &folded)
	if err == nil && busy != 0 {
		err = fmt.Errorf("%w: the write-ahead log is in use", ErrUnavailable)
	}
	return d.Classify(err)
}

func (d *DB) once(ctx context.Context, fn func(tx *sql.Tx) error) (err error) {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer conn.Close()
	defer cutAt(ctx, conn)()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// ForUpdate returns the clause that locks the rows of a SELECT on PostgreSQL;
// SQLite's write lock needs none.
func (d *DB) ForUpdate() string { return d.onPostgres(" FOR UPDATE") }

// SkipLocked returns the clause that locks the rows of a SELECT on PostgreSQL
// and skips rows that others have locked.
func (d *DB) SkipLocked() string { return d.onPostgres(" FOR UPDATE SKIP LOCKED") }

func (d *DB) onPostgres(clause string) string {
	if d.dialect == Postgres {
		return clause
	}
	return ""
}

// Micros returns t in the tables' format, microseconds since 1970.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time is the reverse of Micros, in UTC.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// postgresCode returns the code of PostgreSQL's error, "" if err is none.
func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// sqliteCode returns the extended code of SQLite's error, 0 if err is none.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

// Wrap adds the action to an error, which it classifies; nil stays nil.
func (d *DB) Wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, d.Classify(err))
}

// Classify adds ErrUnavailable or ErrFull to errors of the store.
func (d *DB) Classify(err error) error {
	if err == nil || Outage(err) {
		return err
	}
	full := errors.Is(err, syscall.ENOSPC)
	away := slices.ContainsFunc([]error{context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone, io.ErrUnexpectedEOF, io.EOF, syscall.EMFILE, syscall.ENFILE},
		func(cause error) bool { return errors.Is(err, cause) }) || errors.As(err, new(*pgconn.ConnectError)) || errors.As(err, new(*net.OpError)) ||
		pgconn.SafeToRetry(err) // the connection was closed before it was used
	if code := postgresCode(err); code != "" {
		full, away = code == codeDiskFull, outageCodes[code] || len(code) > 2 && outageCodes[code[:2]]
	} else if code := sqliteCode(err) & 0xff; code != sqlite3.SQLITE_OK {
		full, away = code == sqlite3.SQLITE_FULL, slices.Contains(outageResults, code)
	}
	switch {
	case full:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case away:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// Refused reports whether err is a permanent outage: the server refuses the
// user, the password or the database's name, or the file is not a database.
func Refused(err error) bool {
	code, result := postgresCode(err), sqliteCode(err)&0xff
	return strings.HasPrefix(code, "28") || strings.HasPrefix(code, "3D") || result == sqlite3.SQLITE_NOTADB || result == sqlite3.SQLITE_CORRUPT
}

// Outage reports whether err is the store's temporary failure, or full disk.
func Outage(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) }

// Unique reports whether err violates a unique or primary-key constraint.
func Unique(err error) bool {
	code := sqliteCode(err)
	return postgresCode(err) == "23505" || code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// Backup writes a consistent copy of a SQLite store to the new file at path
// while the service keeps running, and flushes it to the disk. For PostgreSQL,
// which has its own tools, it returns an error.
func (d *DB) Backup(ctx context.Context, path string) error {
	if d.dialect != SQLite {
		return errors.New("backup: the database is PostgreSQL; use pg_dump or its continuous archiving")
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("backup: %s exists already", path)
	}
	partial := path + ".partial"
	_ = os.Remove(partial)
	// VACUUM INTO reads one snapshot here and does not block the writer.
	pool := sql.OpenDB(sqliteConnector{dsn: fmt.Sprintf("file:%s?_pragma=busy_timeout(10000)", (&url.URL{Path: d.source}).EscapedPath())})
	defer pool.Close()
	// A backup contains the token key, password hashes, and callback secrets:
	// no other user may read it, not even while it is being written.
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	f.Close()
	if _, err := pool.ExecContext(ctx, "VACUUM INTO $1", partial); err != nil {
		_ = os.Remove(partial)
		return fmt.Errorf("backup to %s: %w", path, d.Classify(err))
	}
	if err := syncFile(partial); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	if err := os.Rename(partial, path); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	return syncFile(filepath.Dir(path))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// CheckCopy checks that a SQLite file, such as a backup, is undamaged and that
// this program knows its tables.
func (d *DB) CheckCopy(ctx context.Context) error {
	var verdict string
	if err := d.Read().QueryRowContext(Patient(ctx, time.Hour), "PRAGMA integrity_check").Scan(&verdict); err != nil {
		return d.Classify(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("the database is damaged: %.200s", verdict)
	}
	if err := d.CheckSchema(ctx); !errors.Is(err, ErrSchemaOld) {
		return err
	}
	if version, err := d.Version(ctx); err != nil || version == 0 {
		return errors.Join(err, errors.New("the file is not a database of the service"))
	}
	return nil // it will be migrated
}
