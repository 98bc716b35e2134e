package tasks

import (
	"context"
	"database/sql"
	"time"

	"github.com/otograph/otograph/internal/db"
)

// Upkeep shows whether the service keeps up with its own chores.
type Upkeep struct {
	OldestCallback time.Duration        // age of the oldest pending callback; 0 without one
	ChoresDone     map[string]time.Time // time of each chore's last success
	PausedLanes    map[string]bool      // whether an operator paused the lane
}

// Upkeep reads the state of callbacks, chores and lanes.
func (s *Service) Upkeep(ctx context.Context) (Upkeep, error) {
	var u Upkeep
	var oldest sql.NullInt64
	err := s.db.Read().QueryRowContext(ctx, `SELECT MIN(created_at) FROM (SELECT created_at FROM callbacks WHERE phase = 'queued'
		UNION ALL SELECT created_at FROM callbacks WHERE phase = 'running') x`).Scan(&oldest)
	if err != nil {
		return u, s.wrap("upkeep", err)
	}
	if oldest.Valid {
		u.OldestCallback = max(0, s.now().Sub(db.Time(oldest.Int64)))
	}
	if u.ChoresDone, err = s.queue.ChoresDone(ctx); err != nil {
		return u, s.wrap("upkeep", err)
	}
	u.PausedLanes, err = s.queue.Paused(ctx)
	return u, s.wrap("upkeep", err)
}
