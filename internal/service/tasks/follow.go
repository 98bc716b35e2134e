package tasks

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
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
	// UpdatedAt is the time at which the task's row last changed; progress does
	// not change the row. FinishedAt is zero until the state is final.
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
// immediately and then after every change, until ctx is done. The next state
// replaces one that was not received, so that the last received state is the
// newest. Errors wrap ErrNotFound or ErrForbidden.
//
// One query serves all followed tasks of this process: after a notification,
// and every 100 ms on SQLite or every 5 s on PostgreSQL.
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

// Pauses between two queries of the followed tasks.
const (
	pollPause   = 100 * time.Millisecond // if other processes can't wake this one
	notifyPause = 5 * time.Second        // if they can
	leastPause  = 50 * time.Millisecond
	pollSize    = 500 // tasks in one query
)

type follower struct {
	task   string
	last   *Snapshot // the last state sent, nil before the first
	states chan Snapshot
}

// send sends a state, in place of an earlier state that was not received.
func (f *follower) send(state Snapshot) {
	if f.last != nil && *f.last == state {
		return
	}
	f.last = &state
	select {
	case <-f.states:
	default:
	}
	f.states <- state
}

// followed is a task with followers in this process.
type followed struct {
	followers []*follower
	live      *LiveSegments // reported by the last query, nil for none
}

// watcher queries the tasks followed in this process, while there are any.
type watcher struct {
	mu    sync.Mutex
	tasks map[string]*followed // by id
	stop  context.CancelFunc   // nil while the watcher does not run
	added chan struct{}        // a follower was added
}

func (w *watcher) add(s *core, f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tasks[f.task]
	if t == nil {
		t = &followed{}
		w.tasks[f.task] = t
	}
	t.followers = append(t.followers, f)
	if w.stop == nil {
		var ctx context.Context
		ctx, w.stop = context.WithCancel(context.Background())
		go w.run(ctx, s)
	}
	backoff.Signal(w.added)
}

func (w *watcher) remove(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tasks[f.task]
	if t.followers = slices.DeleteFunc(t.followers, func(x *follower) bool { return x == f }); len(t.followers) == 0 {
		delete(w.tasks, f.task)
	}
	if len(w.tasks) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *watcher) run(ctx context.Context, s *core) {
	changes, elsewhere := s.queue.Changes(ctx)
	pause := pollPause
	if elsewhere {
		pause = notifyPause
	}
	for ctx.Err() == nil {
		if err := w.poll(ctx, s); err != nil && ctx.Err() == nil {
			s.Config.Logger.WarnContext(ctx, "followed tasks not read", "error", err)
		}
		if backoff.Sleep(ctx, leastPause) {
			backoff.Wait(ctx, pause, changes, w.added)
		}
	}
}

// poll reads the states of the followed tasks and sends those that changed.
func (w *watcher) poll(ctx context.Context, s *core) error {
	w.mu.Lock()
	ids := slices.Collect(maps.Keys(w.tasks))
	w.mu.Unlock()
	for part := range slices.Chunk(ids, pollSize) {
		states, err := s.snapshots(ctx, part)
		if err == nil {
			err = w.addLive(ctx, s, states)
		}
		if err != nil {
			return s.wrap("follow", err)
		}
		w.mu.Lock()
		for _, id := range part {
			state, exists := states[id]
			t := w.tasks[id]
			if t == nil {
				continue
			}
			if !exists {
				state = Snapshot{TaskID: id, Gone: true}
			}
			t.live = state.Live
			for _, f := range t.followers {
				f.send(state)
			}
		}
		w.mu.Unlock()
	}
	return nil
}

// addLive adds the workers' reports to the states of running tasks: the reports
// of the last query, and newer reports.
func (w *watcher) addLive(ctx context.Context, s *core, states map[string]Snapshot) error {
	live := map[string]*LiveSegments{}
	w.mu.Lock()
	for id, state := range states {
		if t := w.tasks[id]; t != nil && state.Stage != "" && !state.Final {
			live[id] = t.live
		}
	}
	w.mu.Unlock()
	if err := s.readLive(ctx, live); err != nil {
		return err
	}
	for id := range live {
		state := states[id]
		state.Live = live[id]
		states[id] = state
	}
	return nil
}

// readLive replaces the reports of tasks by those with the workers' newer
// sentences, up to the first gap.
func (s *core) readLive(ctx context.Context, live map[string]*LiveSegments) error {
	if len(live) == 0 {
		return nil
	}
	var args db.Args
	var from []string
	for id, reported := range live {
		reported = cmp.Or(reported, &LiveSegments{})
		from = append(from, "(CAST("+args.Add(id)+" AS text), CAST("+args.Add(reported.Attempt)+" AS bigint), CAST("+args.Add(len(reported.Segments))+" AS bigint))")
	}
	type batch struct {
		task     string
		attempt  int64
		first    int
		segments []spec.Segment
	}
	batches, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, b *batch) error {
		return row.Scan(&b.task, &b.attempt, &b.first, db.ScanJSON(&b.segments))
	}, `WITH f (id, attempt, next) AS (VALUES `+strings.Join(from, ", ")+`)
		SELECT t.task_id, t.attempt, t.first, t.segments FROM f
		JOIN live_segments t ON t.task_id = f.id AND (t.attempt > f.attempt OR t.attempt = f.attempt AND t.first >= f.next)
		ORDER BY t.task_id, t.attempt, t.first`, args...)
	for _, b := range batches {
		next := LiveSegments{Attempt: b.attempt}
		if before := live[b.task]; before != nil && before.Attempt == b.attempt {
			next.Segments = before.Segments
		}
		if b.first == len(next.Segments) {
			next.Segments = append(slices.Clip(next.Segments), b.segments...)
			live[b.task] = &next
		}
	}
	return err
}

// snapshots reads the states of tasks; tasks that do not exist are missing.
func (s *core) snapshots(ctx context.Context, ids []string) (map[string]Snapshot, error) {
	var args db.Args
	list, err := db.Select(ctx, s.Config.DB.Read(), func(row db.Row, state *Snapshot) error {
		err := row.Scan(&state.TaskID, &state.Status, &state.Error, db.ScanTime(&state.UpdatedAt), db.ScanTime(&state.FinishedAt), &state.Stage, &state.Fraction)
		state.Final = !state.FinishedAt.IsZero()
		return err
	}, `SELECT t.id, t.status, COALESCE(t.error_message, ''), t.updated_at, t.finished_at, COALESCE(w.stage, ''), COALESCE(w.fraction, 0)
		FROM tasks t LEFT JOIN workers w ON w.id = t.worker_id AND w.task_id = t.id WHERE t.id IN (`+args.AddTexts(ids)+`)`, args...)
	states := make(map[string]Snapshot, len(list))
	for _, state := range list {
		states[state.TaskID] = state
	}
	return states, err
}
