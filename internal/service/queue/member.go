package queue

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Kind is the kind of work that a member does.
type Kind string

// The kinds of processes that keep a heartbeat.
const (
	Worker     Kind = "worker"
	Fetcher    Kind = "fetcher"
	Notifier   Kind = "notifier"
	Supervisor Kind = "supervisor"
	Live       Kind = "live" // a server with live sessions, and the process of their models
)

// Member describes a process that holds work.
type Member struct {
	ID         string
	Kind       Kind
	Supervisor string // id of the supervisor that started the member, if any
	Version    string // of the program
	ModelSet   string // workers only
	// Available are the tiers and languages of the models; zero means unknown.
	Available spec.Available
	// Progress returns the task's progress for the next heartbeat, or nil if it
	// has not changed. Only workers have it; nil reports nothing.
	Progress func() *Progress
	// Written, if not nil, gets the outcome of writing Progress's result.
	Written func(*Progress, error)
}

// thisHost identifies the running system and its process numbers: the kernel's
// boot and the PID namespace.
func thisHost() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		return "host:" + name
	}
	space, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + " " + space
}

// processStart returns a value that distinguishes a process from a later one
// with the same number: its start time in the kernel's ticks. It is "" for a
// process that is gone or a zombie.
func processStart(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name may contain any characters
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// beat writes a heartbeat; the first one adds the member.
func (q *Queue) beat(ctx context.Context, m Member) error {
	now := db.Micros(q.now())
	var progress *Progress
	if m.Progress != nil {
		progress = m.Progress()
	}
	var late error // the heartbeat does not wait for the task's row
	err := q.config.DB.Write(ctx, func(tx *sql.Tx) error {
		late = nil
		if progress != nil {
			if late = progress.writeSegments(ctx, tx, q.config.DB.SkipLocked()); late != nil && !errors.Is(late, errNotHeld) {
				return late
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO workers (id, kind, host, pid, pid_start, supervisor, version, model_set, available, beats, started_at, beat_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, 1, $9, $9)
			ON CONFLICT (id) DO UPDATE SET beats = workers.beats + 1, beat_at = excluded.beat_at`,
			m.ID, string(m.Kind), thisHost(), os.Getpid(), processStart(os.Getpid()), db.Optional(m.Supervisor), m.Version, m.ModelSet, now, db.OptionalJSON(m.Available))
		if err != nil || progress == nil {
			return err
		}
		return progress.write(ctx, tx, m.ID)
	})
	if progress != nil {
		if err == nil {
			q.Changed(ctx)
		}
		if m.Written != nil {
			m.Written(progress, cmp.Or(err, late))
		}
	}
	return q.wrap("heartbeat", err)
}

// Enter writes a heartbeat of m now and every interval, until stop is called,
// which removes m. each, if not nil, is called after every heartbeat.
func (q *Queue) Enter(ctx context.Context, m Member, interval time.Duration, each func(ctx context.Context)) (stop func(), err error) {
	if err := q.beat(ctx, m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = backoff.Every(ctx, interval, func() error { // a missed beat does not stop the loop
			if err := q.beat(ctx, m); err != nil {
				if ctx.Err() == nil {
					q.config.Logger.WarnContext(ctx, "heartbeat not written", "worker", m.ID, "error", err)
				}
				return nil
			}
			if each != nil {
				each(ctx)
			}
			return nil
		})
	})
	return sync.OnceFunc(func() {
		cancel()
		wait.Wait()
		last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if err := q.config.DB.Write(last, func(tx *sql.Tx) error { return q.Leave(last, tx, m.ID) }); err != nil {
			q.config.Logger.WarnContext(ctx, "worker not signed off", "worker", m.ID, "error", err)
		}
	}), nil
}

// Join enters m as Enter does, and retries while the database is unavailable.
// It returns false if ctx is done first.
func (q *Queue) Join(ctx context.Context, m Member, interval time.Duration, each func(ctx context.Context)) (stop func(), joined bool) {
	err := backoff.Retry(ctx, func(error) bool { return true }, func(ctx context.Context) (err error) {
		if stop, err = q.Enter(ctx, m, interval, each); err != nil {
			q.config.Logger.WarnContext(ctx, "waiting for the database", "kind", string(m.Kind), "worker", m.ID, "error", err)
		}
		return err
	})
	return stop, err == nil
}

// Leave removes a member in the transaction that has taken back its work.
func (q *Queue) Leave(ctx context.Context, tx *sql.Tx, id string) error {
	return db.Do(ctx, tx, "DELETE FROM workers WHERE id = $1", id)
}

// Held returns the tasks that a member holds.
func (q *Queue) Held(ctx context.Context, tx *sql.Tx, id string) ([]string, error) {
	return db.Column[string](ctx, tx, "SELECT id FROM tasks WHERE worker_id = $1 AND phase = 'running' ORDER BY id", id)
}

// Beats returns the number of a member's heartbeats, -1 if it is not entered.
func (q *Queue) Beats(ctx context.Context, id string) (int64, error) {
	var beats int64
	err := q.config.DB.Read().QueryRowContext(ctx, "SELECT COALESCE((SELECT beats FROM workers WHERE id = $1), -1)", id).Scan(&beats)
	return beats, q.wrap("heartbeat", err)
}

// Available returns the tiers and languages of the registered workers' models,
// each once; empty while no worker has reported: then nothing is excluded.
func (q *Queue) Available(ctx context.Context, from db.Querier) ([]spec.Available, error) {
	return db.Select(ctx, from, func(row db.Row, a *spec.Available) error { return row.Scan(db.ScanJSON(a)) },
		"SELECT DISTINCT available FROM workers WHERE kind = $1 AND available IS NOT NULL ORDER BY available", string(Worker))
}

// ErrDraining is the cause with which a Loop's work ends after its grace.
var ErrDraining = errors.New("the member ends")

// Loop is the life of a member that works on several claims at a time: one
// goroutine claims, and each claim has a goroutine for its work.
type Loop[C any] struct {
	AtOnce int           // claims worked on at a time
	Grace  time.Duration // time that work may take to finish at the end
	// Claim returns the next claim, or nil if there is none now or claiming
	// fails. It is never called concurrently.
	Claim func(ctx context.Context) *C
	// Idle waits after a Claim without a result, until there may be a claim, at
	// the latest until freed receives because some work has ended.
	Idle func(ctx context.Context, freed <-chan struct{})
	// Work works on a claim. Its context ends Grace after the Loop's, with the
	// cause ErrDraining.
	Work func(ctx context.Context, c *C)
}

// Run claims and works until ctx is done, and returns when all work has ended.
func (l Loop[C]) Run(ctx context.Context) {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	slots, freed := make(chan struct{}, l.AtOnce), make(chan struct{}, 1)
	var wait sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		c := l.Claim(ctx)
		if c == nil {
			<-slots
			l.Idle(ctx, freed)
			continue
		}
		wait.Go(func() {
			l.Work(work, c)
			<-slots
			backoff.Signal(freed)
		})
	}
	defer time.AfterFunc(l.Grace, func() { end(ErrDraining) }).Stop()
	wait.Wait()
}
