package tasks

import (
	"context"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/db"
)

// Lane is the state of one lane of the queue.
type Lane struct {
	Waiting int           // tasks that could run now
	Delayed int           // tasks that wait for a retry
	Running int           // tasks at a worker
	Oldest  time.Duration // how long the first waiting task has waited
}

// Stats is the state of the service, for metrics.
type Stats struct {
	Tasks, Batch      Lane
	Fetch             Lane // downloads of audio
	CallbacksWaiting  int
	CallbacksRunning  int
	CallbacksGivenUp  int
	OldestCallback    time.Duration // age of the oldest pending callback; 0 without one
	FilesToDelete     int           // files due for deletion
	TasksByFinalState map[Status]int
	ChoresDone        map[string]time.Time // time of each chore's last success
	PausedLanes       map[string]bool      // whether an operator paused the lane
}

// Stats returns the state of the service. It reads running sums and indexes of
// unfinished tasks, so that its cost does not grow with the number of finished
// tasks.
func (s *Operators) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	now := db.Micros(s.now())
	for name, lane := range map[string]*Lane{queue.LaneFetch: &st.Fetch, queue.LaneTasks: &st.Tasks, queue.LaneBatch: &st.Batch} {
		var oldest int64
		err := s.Config.DB.Read().QueryRowContext(ctx, `SELECT (SELECT CAST(COALESCE(SUM(waiting), 0) AS bigint) FROM lane_accounts WHERE lane = $1),
			(SELECT COUNT(*) FROM tasks WHERE phase = 'delayed' AND lane = $1), (SELECT COUNT(*) FROM tasks WHERE phase = 'running' AND lane = $1),
			COALESCE((SELECT queued_at FROM tasks WHERE phase = 'queued' AND lane = $1 ORDER BY queued_at, id LIMIT 1), $2)`, name, now).
			Scan(&lane.Waiting, &lane.Delayed, &lane.Running, &oldest)
		if err != nil {
			return st, s.wrap("stats", err)
		}
		lane.Oldest = max(0, time.Duration(now-oldest)*time.Microsecond)
	}
	var done, failed, abandoned int
	err := s.Config.DB.Read().QueryRowContext(ctx, `SELECT CAST(COALESCE(SUM(done), 0) AS bigint), CAST(COALESCE(SUM(failed), 0) AS bigint), CAST(COALESCE(SUM(abandoned), 0) AS bigint)
		FROM account_sums`).Scan(&done, &failed, &abandoned)
	if err != nil {
		return st, s.wrap("stats", err)
	}
	st.TasksByFinalState = map[Status]int{StatusDone: done, StatusFailed: failed, StatusAbandoned: abandoned}
	var oldest int64
	err = s.Config.DB.Read().QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM callbacks WHERE phase = 'queued'), (SELECT COUNT(*) FROM callbacks WHERE phase = 'running'),
		(SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'), (SELECT COUNT(*) FROM doomed_blobs WHERE due_at <= $1),
		COALESCE((SELECT MIN(created_at) FROM (SELECT created_at FROM callbacks WHERE phase = 'queued' UNION ALL SELECT created_at FROM callbacks WHERE phase = 'running') x), $1)`, now).
		Scan(&st.CallbacksWaiting, &st.CallbacksRunning, &st.CallbacksGivenUp, &st.FilesToDelete, &oldest)
	if err != nil {
		return st, s.wrap("stats", err)
	}
	st.OldestCallback = max(0, time.Duration(now-oldest)*time.Microsecond)
	if st.ChoresDone, err = s.queue.ChoresDone(ctx); err != nil {
		return st, s.wrap("stats", err)
	}
	st.PausedLanes, err = s.queue.Paused(ctx)
	return st, s.wrap("stats", err)
}
