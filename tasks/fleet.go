package tasks

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/otograph/otograph/internal/db"
)

// Kinds of processes that keep a heartbeat.
const (
	kindWorker     = "worker"
	kindNotifier   = "notifier"
	kindSupervisor = "supervisor"
)

// member is one process's row among those that hold work.
type member struct {
	id, kind, host, start, supervisor, version, modelSet string
	pid                                                  int
}

// newMember describes this process.
func newMember(id, kind, supervisor, version, modelSet string) member {
	return member{id: id, kind: kind, host: thisHost(), pid: os.Getpid(), start: processStart(os.Getpid()), supervisor: supervisor, version: version, modelSet: modelSet}
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
func (s *Service) beat(ctx context.Context, m member) error {
	now := db.Micros(s.now())
	var supervisor any
	if m.supervisor != "" {
		supervisor = m.supervisor
	}
	return s.wrap("heartbeat", s.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO workers (id, kind, host, pid, pid_start, supervisor, version, model_set, beats, started_at, beat_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $9)
			ON CONFLICT (id) DO UPDATE SET beats = workers.beats + 1, beat_at = excluded.beat_at`,
			m.id, m.kind, m.host, m.pid, m.start, supervisor, m.version, m.modelSet, now)
		return err
	}))
}

// leave removes a member that holds nothing any more.
func (s *Service) leave(ctx context.Context, id string) error {
	return s.wrap("leave", s.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM workers WHERE id = $1", id)
		return err
	}))
}

// keepBeating enters m, beats every interval until stop is called, and then leaves. each, when set, is called after every
// beat that was written.
func (s *Service) keepBeating(ctx context.Context, m member, interval time.Duration, each func(ctx context.Context)) (stop func(), err error) {
	if err := s.beat(ctx, m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := s.beat(ctx, m); err != nil {
				if ctx.Err() == nil {
					s.log.WarnContext(ctx, "heartbeat not written", "worker", m.id, "error", err)
				}
				continue
			}
			if each != nil {
				each(ctx)
			}
		}
	})
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			wait.Wait()
			last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer done()
			if err := s.leave(last, m.id); err != nil {
				s.log.WarnContext(ctx, "worker not signed off", "worker", m.id, "error", err)
			}
		})
	}, nil
}

// reap ends what a dead member held: its tasks as how says, its callbacks to be sent again. It returns how many there were.
func (s *Service) reap(ctx context.Context, id string, how ending, message string) (int, error) {
	n := 0
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		n = 0
		held, err := column[string](tx.QueryContext(ctx, "SELECT id FROM tasks WHERE worker_id = $1 AND phase = 'running' ORDER BY id", id))
		if err != nil {
			return err
		}
		for _, task := range held {
			r, err := s.lockTask(ctx, tx, task)
			if errors.Is(err, sql.ErrNoRows) || (err == nil && (r.phase != "running" || r.worker != id)) {
				continue
			}
			if err != nil {
				return err
			}
			if err := s.end(ctx, tx, r, how, message); err != nil {
				return err
			}
			n++
		}
		callbacks, err := s.requeueCallbacks(ctx, tx, id)
		if err != nil {
			return err
		}
		n += callbacks
		_, err = tx.ExecContext(ctx, "DELETE FROM workers WHERE id = $1", id)
		return err
	})
	if err == nil && n > 0 {
		s.log.WarnContext(ctx, "work of a dead process taken back", "worker", id, "items", n, "reason", message)
	}
	return n, s.wrap("take back work of "+id, err)
}

// watch finds members that died. It goes by its own clock and by whether their counters move, so neither clocks that
// differ nor clocks that jump make a living worker look dead; times in which the database did not answer do not count.
// A process of the same system is known to be dead at once, unless its supervisor lives and will say so itself.
type watch struct {
	service *Service
	after   time.Duration // without a beat
	gap     time.Duration // between two looks; longer ones start the count anew
	seen    map[string]sighting
	last    time.Time
}

type sighting struct {
	beats   int64
	silence time.Duration
}

func newWatch(s *Service, after, interval time.Duration) *watch {
	return &watch{service: s, after: after, gap: 4*interval + time.Second, seen: map[string]sighting{}}
}

// look is called again and again; it takes back the work of those who died and returns how many members that were.
func (w *watch) look(ctx context.Context) (dead int, err error) {
	s := w.service
	now := time.Now() // monotonic
	elapsed := now.Sub(w.last)
	if w.last.IsZero() || elapsed > w.gap {
		elapsed = 0
		if !w.last.IsZero() {
			w.seen = map[string]sighting{}
		}
	}
	// Holders without a row among the workers are watched like silent ones.
	rows, err := s.db.Read().QueryContext(ctx, `SELECT id, host, pid, pid_start, COALESCE(supervisor, ''), beats FROM workers
		UNION ALL SELECT DISTINCT worker_id, '', 0, '', '', -1 FROM tasks WHERE phase = 'running' AND worker_id NOT IN (SELECT id FROM workers)
		UNION ALL SELECT DISTINCT worker_id, '', 0, '', '', -1 FROM callbacks WHERE phase = 'running' AND worker_id NOT IN (SELECT id FROM workers)`)
	if err != nil {
		return 0, s.wrap("watch", err)
	}
	type found struct {
		id, host, start, supervisor string
		pid                         int
		beats                       int64
	}
	members, err := collect(rows, func(rows *sql.Rows, m *found) error {
		return rows.Scan(&m.id, &m.host, &m.pid, &m.start, &m.supervisor, &m.beats)
	})
	if err != nil {
		return 0, s.wrap("watch", err)
	}
	alive := map[string]bool{}
	host := thisHost()
	w.last = now
	here := func(m found) bool { return m.host == host && m.start != "" }
	for _, m := range members {
		alive[m.id] = m.beats >= 0 && (!here(m) || processStart(m.pid) == m.start)
	}
	next := map[string]sighting{}
	for _, m := range members {
		before, known := w.seen[m.id]
		sight := sighting{beats: m.beats}
		if known && before.beats == m.beats {
			sight.silence = before.silence + elapsed
		}
		next[m.id] = sight
		var reason string
		switch {
		case here(m) && !alive[m.id] && (m.supervisor == "" || !alive[m.supervisor]):
			reason = fmt.Sprintf("process %d is gone", m.pid)
		case sight.silence >= w.after:
			reason = fmt.Sprintf("no heartbeat for %s", w.after)
		default:
			continue
		}
		if _, err := s.reap(ctx, m.id, endInterrupted, "the worker was lost: "+reason); err != nil {
			w.seen = next
			return dead, err
		}
		delete(next, m.id)
		dead++
	}
	w.seen = next
	return dead, nil
}

// kill ends a process at once; that it is gone already is no error.
func kill(p *os.Process) error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
