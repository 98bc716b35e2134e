package tasks

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/otograph/otograph/internal/db"
	"github.com/riverqueue/river"
)

// Queues of River that the jobs stand in.
const (
	laneTasks        = "tasks"
	laneBatch        = "batch"
	queueCallbacks   = "callbacks"
	queueMaintenance = "maintenance"
)

// transcribeArgs is the job of one task.
type transcribeArgs struct {
	TaskID string `json:"task_id"`
}

// Kind implements river.JobArgs.
func (transcribeArgs) Kind() string { return "transcribe" }

// callbackArgs is the job of one callback.
type callbackArgs struct {
	CallbackID string `json:"callback_id"`
	TaskID     string `json:"task_id"`
}

// Kind implements river.JobArgs.
func (callbackArgs) Kind() string { return "callback" }

// cleanupArgs is the periodic job that removes what is no longer needed.
type cleanupArgs struct{}

// Kind implements river.JobArgs.
func (cleanupArgs) Kind() string { return "cleanup" }

// jobAttempts is the bound that River shows; the rules of this package end a job long before.
const jobAttempts = 1000

// jobAdd inserts a job with River's client into the transaction.
func (s *Service) jobAdd(ctx context.Context, tx *sql.Tx, args river.JobArgs, queue string) (int64, error) {
	result, err := s.river.InsertTx(ctx, tx, args, &river.InsertOpts{Queue: queue, MaxAttempts: jobAttempts})
	if err != nil {
		return 0, err
	}
	return result.Job.ID, nil
}

// jobRuns shows a job as running at worker.
func (s *Service) jobRuns(ctx context.Context, tx *sql.Tx, job, attempt int64, worker string) error {
	by := "json_array($4)"
	if s.db.Dialect() == db.Postgres {
		by = "ARRAY[$4]::text[]"
	}
	_, err := tx.ExecContext(ctx, "UPDATE river_job SET state = 'running', attempt = $2, attempted_at = $3, attempted_by = "+by+
		" WHERE id = $1 AND finalized_at IS NULL", job, min(attempt, math.MaxInt16), s.db.RiverTime(s.now()), worker)
	return err
}

// jobWaits shows a job as waiting until at.
func (s *Service) jobWaits(ctx context.Context, tx *sql.Tx, job int64, at time.Time) error {
	state := "available"
	if at.After(s.now()) {
		state = "retryable"
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE river_job SET state = '%s', scheduled_at = $2 WHERE id = $1 AND finalized_at IS NULL", state), job, s.db.RiverTime(at))
	return err
}

// Final states of River's jobs.
const (
	jobCompleted = "completed"
	jobDiscarded = "discarded"
	jobCancelled = "cancelled"
)

// jobEnds shows a job as ended.
func (s *Service) jobEnds(ctx context.Context, tx *sql.Tx, job int64, state string) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE river_job SET state = '%s', finalized_at = $2 WHERE id = $1 AND finalized_at IS NULL", state), job, s.db.RiverTime(s.now()))
	return err
}
