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

	"github.com/otograph/otograph/internal/backoff"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/spec"
)

// Kind is the kind of work that a member does.
type Kind string

// Kinds of processes that keep a heartbeat.
const (
	Worker     Kind = "worker"
	Fetcher    Kind = "fetcher"
	Notifier   Kind = "notifier"
	Supervisor Kind = "supervisor"
)

// Member describes one process among those that hold work.
type Member struct {
	ID         string
	Kind       Kind
	Supervisor string // id of the supervisor that started it, if one did
	Version    string // of the program
	ModelSet   string // workers only
	// Available describes what a worker's models can transcribe; the zero value
	// means that it is not known.
	Available spec.Available
	// Progress returns what the next heartbeat tells of the task at hand, nil for
	// nothing new. Workers only; nil tells nothing.
	Progress func() *Progress
	// Written hears how the write of what Progress returned ended; nil hears
	// nothing.
	Written func(*Progress, error)
}

// thisHost names the running system and its process numbers: a boot of a kernel and a PID namespace.
func thisHost() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		name, _ := os.Hostname()
		return "host:" + name
	}
	space, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + " " + space
}

// processStart returns what tells a process from a later one with the same number: its start time in the kernel's ticks.
// It is "" for a process that is gone or a zombie.
func processStart(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name may hold anything
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// beat writes a sign of life; the first one enters the member.
func (q *Queue) beat(ctx context.Context, m Member) error {
	now := db.Micros(q.now())
	var supervisor any
	if m.Supervisor != "" {
		supervisor = m.Supervisor
	}
	models, err := writeAvailable(m.Available)
	if err != nil {
		return err
	}
	var told *Progress
	if m.Progress != nil {
		told = m.Progress()
	}
	var late error // the sign of life does not wait for the task's row
	err = q.config.DB.Write(ctx, func(tx *sql.Tx) error {
		late = nil
		if told != nil {
			if late = told.writeSegments(ctx, tx, q.config.DB.SkipLocked()); late != nil && !errors.Is(late, errNotHeld) {
				return late
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO workers (id, kind, host, pid, pid_start, supervisor, version, model_set, available, beats, started_at, beat_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, 1, $9, $9)
			ON CONFLICT (id) DO UPDATE SET beats = workers.beats + 1, beat_at = excluded.beat_at`,
			m.ID, string(m.Kind), thisHost(), os.Getpid(), processStart(os.Getpid()), supervisor, m.Version, m.ModelSet, now, models)
		if err != nil || told == nil {
			return err
		}
		return told.write(ctx, tx, m.ID)
	})
	if told != nil {
		if err == nil {
			q.Changed(ctx)
		}
		if m.Written != nil {
			m.Written(told, cmp.Or(err, late))
		}
	}
	return q.wrap("heartbeat", err)
}

// leave removes a member that holds nothing any more.
func (q *Queue) leave(ctx context.Context, id string) error {
	return q.wrap("leave", q.config.DB.Write(ctx, func(tx *sql.Tx) error { return q.Leave(ctx, tx, id) }))
}

// Enter writes the first heartbeat of m and then one every interval, until stop is called, which removes m again. each,
// when set, is called after every beat that was written.
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
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			wait.Wait()
			last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer done()
			if err := q.leave(last, m.ID); err != nil {
				q.config.Logger.WarnContext(ctx, "worker not signed off", "worker", m.ID, "error", err)
			}
		})
	}, nil
}

// Join enters m as Enter does, and tries again while the database is not there. It reports false when ctx is done first.
func (q *Queue) Join(ctx context.Context, m Member, interval time.Duration, each func(ctx context.Context)) (stop func(), joined bool) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		stop, err := q.Enter(ctx, m, interval, each)
		if err == nil {
			return stop, true
		}
		q.config.Logger.WarnContext(ctx, "waiting for the database", "kind", string(m.Kind), "worker", m.ID, "error", err)
		if !backoff.Sleep(ctx, pause) {
			return nil, false
		}
	}
}

// Leave removes a member that holds nothing any more, in the transaction that took its work back.
func (q *Queue) Leave(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM workers WHERE id = $1", id)
	return err
}

// Held returns the tasks that a member holds.
func (q *Queue) Held(ctx context.Context, tx *sql.Tx, id string) ([]string, error) {
	return db.Column[string](tx.QueryContext(ctx, "SELECT id FROM tasks WHERE worker_id = $1 AND phase = 'running' ORDER BY id", id))
}

// Beats returns how often a member has beaten, -1 if it is not entered.
func (q *Queue) Beats(ctx context.Context, id string) (int64, error) {
	var beats int64
	err := q.config.DB.Read().QueryRowContext(ctx, "SELECT COALESCE((SELECT beats FROM workers WHERE id = $1), -1)", id).Scan(&beats)
	return beats, q.wrap("heartbeat", err)
}
