package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/otograph/otograph/internal/system/db"
)

// Watch detects members that died. It uses only its own clock and checks
// whether the members' counters move, so neither different clocks nor clock
// jumps make a living worker look dead. Times without an answer from the
// database do not count. A process of the same system is recognized as dead
// immediately, unless its supervisor lives and will report it.
type Watch struct {
	queue *Queue
	lost  func(ctx context.Context, id, reason string) error
	after time.Duration // without a beat
	gap   time.Duration // between two checks; a longer gap restarts the count
	seen  map[string]sighting
	last  time.Time

	living atomic.Int64
}

// Living returns the number of living workers at the last check: workers whose
// processes exist, if they are of this system, and whose silence is at most two
// fifths of the time after which they count as dead.
func (w *Watch) Living() int { return int(w.living.Load()) }

type sighting struct {
	beats   int64
	silence time.Duration
}

// NewWatch returns a watch that checks every interval and considers a member
// dead after the given silence. lost takes back the work of a dead member.
func (q *Queue) NewWatch(after, interval time.Duration, lost func(ctx context.Context, id, reason string) error) *Watch {
	return &Watch{queue: q, lost: lost, after: after, gap: 4*interval + time.Second, seen: map[string]sighting{}}
}

// Look takes back the work of dead members. It must be called repeatedly.
func (w *Watch) Look(ctx context.Context) (dead int, err error) {
	now := time.Now() // monotonic
	elapsed := now.Sub(w.last)
	if elapsed > w.gap { // also at the first check
		elapsed, w.seen = 0, map[string]sighting{}
	}
	type member struct {
		id, kind, host, start, supervisor string
		pid                               int
		beats                             int64
	}
	// Holders without a row among the workers are treated like silent ones.
	members, err := db.Select(ctx, w.queue.config.DB.Read(), func(row db.Row, m *member) error {
		return row.Scan(&m.id, &m.kind, &m.host, &m.pid, &m.start, &m.supervisor, &m.beats)
	}, `SELECT id, kind, host, pid, pid_start, COALESCE(supervisor, ''), beats FROM workers
		UNION ALL SELECT DISTINCT worker_id, '', '', 0, '', '', -1 FROM tasks WHERE phase = 'running' AND worker_id NOT IN (SELECT id FROM workers)
		UNION ALL SELECT DISTINCT worker_id, '', '', 0, '', '', -1 FROM callbacks WHERE phase = 'running' AND worker_id NOT IN (SELECT id FROM workers)`)
	if err != nil {
		return 0, w.queue.wrap("watch", err)
	}
	alive := map[string]bool{}
	host := thisHost()
	w.last = now
	here := func(m member) bool { return m.host == host && m.start != "" }
	for _, m := range members {
		alive[m.id] = m.beats >= 0 && (!here(m) || processStart(m.pid) == m.start)
	}
	next := map[string]sighting{}
	living := 0
	for _, m := range members {
		before, seen := w.seen[m.id]
		sight := sighting{beats: m.beats}
		if seen && before.beats == m.beats {
			sight.silence = before.silence + elapsed
		}
		next[m.id] = sight
		if m.kind == string(Worker) && alive[m.id] && sight.silence <= w.after*2/5 {
			living++
		}
		var reason string
		switch {
		case here(m) && !alive[m.id] && (m.supervisor == "" || !alive[m.supervisor]):
			reason = fmt.Sprintf("process %d is gone", m.pid)
		case sight.silence >= w.after:
			reason = fmt.Sprintf("no heartbeat for %s", w.after)
		default:
			continue
		}
		if err := w.lost(ctx, m.id, reason); err != nil {
			w.seen = next
			return dead, err
		}
		delete(next, m.id)
		dead++
	}
	w.seen = next
	w.living.Store(int64(living))
	return dead, nil
}
