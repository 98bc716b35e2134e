package tasks

import (
	"context"
	"time"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/tasks/queue"
)

// Lane is the state of one lane of the queue.
type Lane struct {
	Waiting int           // tasks that could run now
	Delayed int           // tasks that wait for a retry
	Running int           // tasks at a worker
	Oldest  time.Duration // how long the first of the waiting has waited
}

// Stats is the state of the service, for metrics.
type Stats struct {
	Tasks, Batch      Lane
	CallbacksWaiting  int
	CallbacksRunning  int
	CallbacksGivenUp  int
	Workers           int // worker processes with a heartbeat row
	DoomedFiles       int // files that wait for their deletion
	TasksByFinalState map[Status]int
	// What was done in the last hour: seconds of audio, and seconds of work on it. Work by audio is the real-time factor.
	RecentAudio, RecentWork float64
}

// Stats counts what there is.
func (s *Service) Stats(ctx context.Context) (Stats, error) {
	st := Stats{TasksByFinalState: map[Status]int{}}
	now := db.Micros(s.now())
	if err := s.countLanes(ctx, &st, now); err != nil {
		return st, s.wrap("stats", err)
	}
	states, err := s.db.Read().QueryContext(ctx, "SELECT status, COUNT(*) FROM tasks WHERE phase = 'final' GROUP BY status")
	if err != nil {
		return st, s.wrap("stats", err)
	}
	defer states.Close()
	for states.Next() {
		var status Status
		var n int
		if err := states.Scan(&status, &n); err != nil {
			return st, s.wrap("stats", err)
		}
		st.TasksByFinalState[status] = n
	}
	if err := states.Err(); err != nil {
		return st, s.wrap("stats", err)
	}
	err = s.db.Read().QueryRowContext(ctx, "SELECT COALESCE(SUM(audio_seconds), 0.0), COALESCE(SUM(finished_at - claimed_at), 0) / 1e6 FROM tasks WHERE status = 'done' AND finished_at > $1",
		now-time.Hour.Microseconds()).Scan(&st.RecentAudio, &st.RecentWork)
	if err != nil {
		return st, s.wrap("stats", err)
	}
	err = s.db.Read().QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM callbacks WHERE phase = 'queued'), (SELECT COUNT(*) FROM callbacks WHERE phase = 'running'),
		(SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'), (SELECT COUNT(*) FROM workers WHERE kind = 'worker'), (SELECT COUNT(*) FROM doomed_blobs)`).
		Scan(&st.CallbacksWaiting, &st.CallbacksRunning, &st.CallbacksGivenUp, &st.Workers, &st.DoomedFiles)
	return st, s.wrap("stats", err)
}

// countLanes fills in what waits and runs in the two lanes.
func (s *Service) countLanes(ctx context.Context, st *Stats, now int64) error {
	rows, err := s.db.Read().QueryContext(ctx, `SELECT lane, SUM(CASE WHEN phase = 'queued' THEN 1 ELSE 0 END), SUM(CASE WHEN phase = 'delayed' THEN 1 ELSE 0 END),
		SUM(CASE WHEN phase = 'running' THEN 1 ELSE 0 END), COALESCE(MIN(CASE WHEN phase = 'queued' THEN queued_at END), $1)
		FROM tasks WHERE phase <> 'final' GROUP BY lane`, now)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var l Lane
		var oldest int64
		if err := rows.Scan(&name, &l.Waiting, &l.Delayed, &l.Running, &oldest); err != nil {
			return err
		}
		l.Oldest = max(0, time.Duration(now-oldest)*time.Microsecond)
		if name == queue.LaneBatch {
			st.Batch = l
		} else {
			st.Tasks = l
		}
	}
	return rows.Err()
}
