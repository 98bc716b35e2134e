package db

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/otograph/otograph/internal/system/backoff"
)

type listeners struct {
	mu    sync.Mutex
	subs  map[string]map[chan struct{}]bool
	again map[string]bool // channels whose notification is being sent; true if requested again meanwhile
}

// Notify wakes the subscribers of a channel: the ones in this process and, on
// PostgreSQL and on Linux, in every process on the database. Calls during a
// running notification cause a single further notification. A notification is a
// hint that may be lost; commit the change first.
func (d *DB) Notify(ctx context.Context, channel string) {
	l := &d.listeners
	l.mu.Lock()
	for sub := range l.subs[channel] {
		backoff.Signal(sub)
	}
	l.mu.Unlock()
	if d.dialect != Postgres {
		d.touch(channel)
		return
	}
	l.mu.Lock()
	_, sending := l.again[channel]
	l.again[channel] = sending
	l.mu.Unlock()
	if sending {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for again := true; again; {
		_, err := d.write.ExecContext(ctx, "SELECT pg_notify($1, '')", channel)
		l.mu.Lock()
		again = err == nil && l.again[channel]
		if l.again[channel] = false; !again {
			delete(l.again, channel)
		}
		l.mu.Unlock()
	}
}

// Subscribe returns a channel that receives after each Notify, until ctx is
// done. Several notifications may arrive as one. On SQLite it watches the
// channel's file, but only on Linux. On PostgreSQL a separate connection
// listens. If it breaks, it is opened again, and the channel then receives
// once, in case a notification was missed.
func (d *DB) Subscribe(ctx context.Context, channel string) <-chan struct{} {
	l := &d.listeners
	sub := make(chan struct{}, 1)
	l.mu.Lock()
	if l.subs[channel] == nil {
		l.subs[channel] = map[chan struct{}]bool{}
	}
	l.subs[channel][sub] = true
	l.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.subs[channel], sub)
	})
	switch {
	case d.noListen:
	case d.dialect == Postgres:
		go d.listen(ctx, channel, sub)
	default:
		if err := watch(ctx, d.touch(channel), sub); err != nil {
			d.logger.DebugContext(ctx, "other processes cannot notify; polling", "channel", channel, "error", err)
		}
	}
	return sub
}

// touch opens and closes the empty file of a channel, which watch notices, and
// returns its path.
func (d *DB) touch(channel string) (path string) {
	path = d.source + "-" + channel
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		f.Close()
	}
	return path
}

func (d *DB) listen(ctx context.Context, channel string, sub chan<- struct{}) {
	for pause := 100 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		err := func() error {
			conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
			if err != nil {
				return err
			}
			defer func() {
				last, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer done()
				_ = conn.Close(last)
			}()
			if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
				return err
			}
			for {
				pause = 100 * time.Millisecond
				backoff.Signal(sub)
				if _, err := conn.WaitForNotification(ctx); err != nil {
					return err
				}
			}
		}()
		if ctx.Err() != nil {
			return
		}
		d.logger.WarnContext(ctx, "database does not notify; polling until it does", "channel", channel, "error", err)
		backoff.Sleep(ctx, pause)
	}
}
