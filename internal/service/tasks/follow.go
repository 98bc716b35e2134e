package tasks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Snapshot is the state of a task at one moment.
type Snapshot struct {
	TaskID string
	Status Status
	// Final reports whether the task has ended, and Gone whether it was
	// deleted; if Gone is set, all other fields are zero.
	Final, Gone bool
	// Stage is the stage in the worker's last report, and Fraction the part of
	// the run done by then, 0 to 1; "" while no worker has reported.
	Stage    spec.Stage
	Fraction float64
	// Error is the task's error_message, "" for none.
	Error string
	// UpdatedAt is the time of the last change of the task's row, which
	// progress reports do not change. FinishedAt is zero until the state is
	// final.
	UpdatedAt, FinishedAt time.Time
	// Live holds the sentences that a running task's worker has reported, nil
	// for none. It is nil for a final task: the result has the text.
	Live *LiveSegments
}

// LiveSegments holds the sentences of one attempt, in order. It is immutable.
type LiveSegments struct {
	Attempt  int64
	Segments []spec.Segment
}

// Follow returns a channel that receives the state of an account's task,
// immediately and then after every change, until ctx is done. A state that was
// not received is replaced by the next, so that the last received state is the
// newest. Errors wrap ErrNotFound or ErrForbidden.
//
// One query serves all followed tasks of this process: after a notification,
// and otherwise every 100 ms on SQLite, where workers are other processes, and
// every 5 s on PostgreSQL.
func (s *Owners) Follow(ctx context.Context, account, id string) (<-chan Snapshot, error) {
	if _, err := s.Get(ctx, account, id); err != nil {
		return nil, err
	}
	f := &follower{task: id, states: make(chan Snapshot, 1)}
	s.watcher.add(s.core, f)
	context.AfterFunc(ctx, func() { s.watcher.remove(f) })
	return f.states, nil
}

// Report publishes the progress of the claim's task to its followers.
func (s *Runs) Report(ctx context.Context, c *Claim, p queue.Progress) error {
	p.TaskID, p.Attempt = c.ID, c.Held.Attempt
	return s.queue.Report(ctx, c.Held.Worker, p)
}

const (
	lookPause   = 100 * time.Millisecond // between two queries if other processes can't wake this one
	hearPause   = 5 * time.Second        // where they can
	lookGap     = 50 * time.Millisecond  // least pause after a query
	tasksInLook = 500                    // in one query
)

type follower struct {
	task   string
	told   bool
	last   Snapshot
	states chan Snapshot
}

// tell sends a state, in place of an earlier one that was not received.
func (f *follower) tell(state Snapshot) {
	if f.told && f.last == state {
		return
	}
	f.told, f.last = true, state
	select {
	case <-f.states:
	default:
	}
	f.states <- state
}

// watcher queries the tasks followed in this process. It runs while there are
// any.
type watcher struct {
	mu        sync.Mutex
	followers map[string][]*follower   // by task
	told      map[string]*LiveSegments // of followed tasks, by task
	stop      context.CancelFunc       // nil while the watcher does not run
	news      chan struct{}            // a follower came
}

func newWatcher() *watcher {
	return &watcher{followers: map[string][]*follower{}, told: map[string]*LiveSegments{}, news: make(chan struct{}, 1)}
}

func (w *watcher) add(s *core, f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.followers[f.task] = append(w.followers[f.task], f)
	if w.stop == nil {
		var ctx context.Context
		ctx, w.stop = context.WithCancel(context.Background())
		go w.run(ctx, s)
	}
	backoff.Signal(w.news)
}

func (w *watcher) remove(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.followers[f.task], func(x *follower) bool { return x == f })
	if w.followers[f.task] = left; len(left) == 0 {
		delete(w.followers, f.task)
		delete(w.told, f.task)
	}
	if len(w.followers) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *watcher) run(ctx context.Context, s *core) {
	changes, elsewhere := s.queue.Changes(ctx)
	pause := lookPause
	if elsewhere {
		pause = hearPause
	}
	for ctx.Err() == nil {
		if err := w.look(ctx, s); err != nil && ctx.Err() == nil {
			s.Config.Logger.WarnContext(ctx, "followed tasks not read", "error", err)
		}
		if backoff.Sleep(ctx, lookGap) {
			backoff.Wait(ctx, pause, changes, w.news)
		}
	}
}

func (w *watcher) look(ctx context.Context, s *core) error {
	w.mu.Lock()
	ids := slices.Collect(maps.Keys(w.followers))
	w.mu.Unlock()
	for part := range slices.Chunk(ids, tasksInLook) {
		states, err := s.snapshots(ctx, part)
		if err != nil {
			return err
		}
		if err := w.listen(ctx, s, states); err != nil {
			return err
		}
		w.mu.Lock()
		for _, id := range part {
			state, ok := states[id]
			if !ok {
				state = Snapshot{TaskID: id, Gone: true}
			}
			for _, f := range w.followers[id] {
				f.tell(state)
			}
		}
		w.mu.Unlock()
	}
	return nil
}

// listen reads the workers' reports since the last query, and adds all known
// reports to the states.
func (w *watcher) listen(ctx context.Context, s *core, states map[string]Snapshot) error {
	known := map[string]*LiveSegments{}
	w.mu.Lock()
	for id, state := range states {
		if state.Stage != "" && !state.Final {
			known[id] = w.told[id]
		}
	}
	w.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	if err := s.told(ctx, known); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, told := range known {
		state := states[id]
		state.Live = told
		states[id] = state
		if len(w.followers[id]) > 0 && told != nil {
			w.told[id] = told
		}
	}
	return nil
}

// told adds the workers' newer reports to the known ones, up to the first gap.
func (s *core) told(ctx context.Context, known map[string]*LiveSegments) error {
	type position struct {
		ID      string `json:"id"`
		Attempt int64  `json:"attempt"`
		Next    int    `json:"next"`
	}
	var from []position
	for id, told := range known {
		p := position{ID: id}
		if told != nil {
			p.Attempt, p.Next = told.Attempt, len(told.Segments)
		}
		from = append(from, p)
	}
	list, err := json.Marshal(from)
	if err != nil {
		return err
	}
	each := "(SELECT json_extract(value, '$.id') AS id, json_extract(value, '$.attempt') AS attempt, json_extract(value, '$.next') AS next FROM json_each($1))"
	if s.Config.DB.Dialect() == db.Postgres {
		each = "json_to_recordset($1::json) AS (id text, attempt bigint, next bigint)"
	}
	type batch struct {
		task     string
		attempt  int64
		first    int
		segments []spec.Segment
	}
	batches, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, b *batch) error {
		return row.Scan(&b.task, &b.attempt, &b.first, db.ScanJSON(&b.segments))
	},
		`SELECT t.task_id, t.attempt, t.first, t.segments FROM (SELECT * FROM `+each+`) f
		JOIN live_segments t ON t.task_id = f.id AND (t.attempt > f.attempt OR t.attempt = f.attempt AND t.first >= f.next)
		ORDER BY t.task_id, t.attempt, t.first`, string(list))
	if err != nil {
		return s.wrap("follow", err)
	}
	for _, b := range batches {
		told := LiveSegments{Attempt: b.attempt}
		if before := known[b.task]; before != nil && before.Attempt == b.attempt {
			told.Segments = before.Segments
		}
		if b.first != len(told.Segments) {
			continue
		}
		told.Segments = append(slices.Clip(told.Segments), b.segments...)
		known[b.task] = &told
	}
	return nil
}

// snapshots reads the states of tasks; tasks that do not exist are missing.
func (s *core) snapshots(ctx context.Context, ids []string) (map[string]Snapshot, error) {
	list, err := json.Marshal(ids) // one statement for any number of ids
	if err != nil {
		return nil, err
	}
	each := "SELECT value FROM json_each($1)"
	if s.Config.DB.Dialect() == db.Postgres {
		each = "SELECT json_array_elements_text($1::json)"
	}
	found, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, state *Snapshot) error {
		err := row.Scan(&state.TaskID, &state.Status, &state.Error, db.ScanTime(&state.UpdatedAt), db.ScanTime(&state.FinishedAt), &state.Stage, &state.Fraction)
		state.Final = !state.FinishedAt.IsZero()
		return err
	}, `SELECT t.id, t.status, COALESCE(t.error_message, ''), t.updated_at, t.finished_at, COALESCE(w.stage, ''), COALESCE(w.fraction, 0)
		FROM tasks t LEFT JOIN workers w ON w.id = t.worker_id AND w.task_id = t.id WHERE t.id IN (`+each+`)`, string(list))
	states := make(map[string]Snapshot, len(found))
	for _, state := range found {
		states[state.TaskID] = state
	}
	return states, s.wrap("follow", err)
}
