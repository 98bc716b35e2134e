package tasks_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// edge is a change of a task's state by a function of this package or of the
// queue.
type edge struct{ from, to, by string }

// documentedEdges reads the diagram in docs/task-states.md.
func documentedEdges(t *testing.T) map[edge]bool {
	t.Helper()
	page, err := os.ReadFile("../../../docs/task-states.md")
	require.NoError(t, err)
	edges := map[edge]bool{}
	for _, line := range regexp.MustCompile(`(?m)^    (\S+) --> (\S+): (.+)$`).FindAllStringSubmatch(string(page), -1) {
		for _, by := range strings.Split(line[3], ", ") {
			edges[edge{line[1], line[2], by}] = true
		}
	}
	require.Greater(t, len(edges), 10)
	return edges
}

// TestStatesOfATask calls the functions that move tasks, at random and out of
// turn, on several tasks. It takes every edge of docs/task-states.md and no
// other, and the accounts' money is exact after every step.
func TestStatesOfATask(t *testing.T) {
	want := documentedEdges(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := &stateWalk{random: rand.New(rand.NewPCG(5, 2)), clock: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), found: map[edge]bool{}}
		w.f = taskstest.New(t, d, func(c *tasks.Config) {
			c.Clock = func() time.Time { return w.clock }
			c.RetryDelays = []time.Duration{10 * time.Second}
			c.KeepAudio = time.Hour
		})
		w.rare()
		steps := 1600
		if testing.Short() {
			steps = 1000
		}
		for step := range steps {
			w.step()
			if step%20 == 0 {
				w.f.Exact()
			}
		}
		w.f.Exact()
		for e := range w.found {
			assert.True(t, want[e], "the page does not show %s → %s by %s", e.from, e.to, e.by)
		}
		for e := range want {
			t.Run(e.from+" to "+e.to+" by "+e.by, func(t *testing.T) { assert.True(t, w.found[e], "never seen") })
		}
		t.Logf("%d steps took %d of %d edges", steps, len(w.found), len(want))
	})
}

// outside is the state before a task's creation and after its deletion.
const outside = "[*]"

// stateWalk calls functions at random and records the resulting changes of the
// tasks' states.
type stateWalk struct {
	f      *taskstest.Fixture
	random *rand.Rand
	clock  time.Time
	claims []*tasks.Claim    // current and old claims
	order  []string          // IDs of all tasks in the order of their creation
	states map[string]string // of every task, after the last call
	found  map[edge]bool
}

// read reads the state of every task.
func (w *stateWalk) read() map[string]string {
	type task struct{ id, state string }
	list, err := db.Select(context.Background(), w.f.Config.DB.Read(), func(row db.Row, x *task) error { return row.Scan(&x.id, &x.state) },
		"SELECT id, CASE WHEN phase = 'final' THEN status ELSE phase END FROM tasks")
	require.NoError(w.f.T, err)
	states := map[string]string{}
	for _, x := range list {
		states[x.id] = x.state
	}
	return states
}

// do calls a function and records each change of a state.
func (w *stateWalk) do(by string, call func(ctx context.Context)) {
	before := w.states
	call(w.f.T.Context())
	w.states = w.read()
	for id, from := range before {
		if _, ok := w.states[id]; !ok {
			w.found[edge{from, outside, by}] = true
		}
	}
	for id, to := range w.states {
		from := cmp.Or(before[id], outside)
		if from == outside {
			w.order = append(w.order, id)
		}
		if from != to {
			w.found[edge{from, to, by}] = true
		}
	}
}

// any returns a random task in a random occupied state, "" if there is none.
// Tasks are in the order of their creation, so that the walk does not depend on
// their IDs.
func (w *stateWalk) any() string {
	byState := map[string][]string{}
	for _, id := range w.order {
		if state, ok := w.states[id]; ok {
			byState[state] = append(byState[state], id)
		}
	}
	if len(byState) == 0 {
		return ""
	}
	there := slices.Sorted(maps.Keys(byState))
	ids := byState[there[w.random.IntN(len(there))]]
	return ids[w.random.IntN(len(ids))]
}

// next claims a task whose audio has been downloaded.
func (w *stateWalk) next() *tasks.Claim {
	c, err := w.f.Next(w.f.T.Context(), "w", "m")
	w.only(err)
	return c
}

// claim returns any claim, current or not; nil before the first claim.
func (w *stateWalk) claim() *tasks.Claim {
	if len(w.claims) == 0 {
		return nil
	}
	if w.random.IntN(4) == 0 {
		return w.claims[w.random.IntN(len(w.claims))]
	}
	return w.claims[len(w.claims)-1]
}

func (w *stateWalk) step() {
	s := w.f.Service
	w.clock = w.clock.Add(time.Duration(1+w.random.IntN(1500)) * time.Millisecond)
	switch w.random.IntN(17) {
	case 0, 1:
		w.do("Create", func(context.Context) {
			w.f.Add(func(r *tasks.Request) {
				if w.random.IntN(2) == 0 {
					r.URL, r.CallbackURL = "https://source.example/a", "https://hooks.example/"
				}
			})
		})
	case 2, 3, 4:
		w.do("Sweep", func(ctx context.Context) { _, _ = s.Queue().Sweep(ctx) }) // Next would sweep, too
		w.do("Next", func(context.Context) {
			if c := w.next(); c != nil {
				w.claims = append(w.claims, c)
			}
		})
	case 5:
		if c := w.claim(); c != nil {
			w.do("Complete", func(ctx context.Context) {
				err := s.Complete(ctx, c, tasks.Outcome{Seconds: 3})
				w.only(err, queue.ErrSuperseded)
			})
		}
	case 6, 7:
		if c := w.claim(); c != nil {
			how := []tasks.Ending{tasks.EndPermanent, tasks.EndRecoverable, tasks.EndRecoverable, tasks.EndCrash, tasks.EndInterrupted, tasks.EndHandedBack, tasks.EndOutage}[w.random.IntN(7)]
			w.do("Release", func(ctx context.Context) { w.only(s.Release(ctx, c, how, "x"), queue.ErrSuperseded) })
		}
	case 8:
		if w.random.IntN(2) == 0 {
			w.do("Reap", func(ctx context.Context) {
				_, err := s.Reap(ctx, "w", tasks.EndInterrupted, "lost")
				w.only(err)
			})
		} else {
			w.do("HandBack", func(ctx context.Context) { w.only(s.HandBack(ctx, "w")) })
		}
	case 9:
		w.do("Cancel", func(ctx context.Context) {
			_, err := s.Cancel(ctx, w.any())
			w.only(err, tasks.ErrNotFound, tasks.ErrFinal)
		})
	case 10:
		w.do("Retry", func(ctx context.Context) {
			_, err := s.Retry(ctx, w.any())
			w.only(err, tasks.ErrNotFound, tasks.ErrNotRetryable)
		})
	case 11:
		w.do("Sweep", func(ctx context.Context) { _, _ = s.Queue().Sweep(ctx) })
	case 12, 13:
		w.do("Sweep", func(ctx context.Context) { _, _ = s.Queue().Sweep(ctx) }) // NextFetch would sweep, too
		w.do("NextFetch", func(ctx context.Context) {
			c, err := s.NextFetch(ctx, "w", queue.Busy{Ahead: 1000})
			w.only(err)
			if c != nil {
				w.claims = append(w.claims, c)
			}
		})
	case 14:
		if c := w.claim(); c != nil && c.URL != "" {
			audio := w.f.Audio("fetched")
			seconds := float64(w.random.IntN(3)) * 9000 // two of three lengths cost more than the hold
			w.do("Fetched", func(ctx context.Context) {
				w.only(s.Fetched(ctx, c, *audio, seconds), queue.ErrSuperseded)
			})
		}
	case 15:
		if c := w.claim(); c != nil && c.URL != "" {
			w.do("Refetch", func(ctx context.Context) { w.only(s.Refetch(ctx, c), queue.ErrSuperseded) })
		}
	case 16:
		w.do("Delete", func(ctx context.Context) {
			w.only(s.Delete(ctx, w.f.Account, w.any()), tasks.ErrNotFound, tasks.ErrProcessing)
		})
	}
}

// rare takes the edges that random calls seldom reach. A task whose worker is
// lost repeatedly is abandoned, retried, and deleted while it waits for its
// retry. Another task is abandoned and deleted. Waiting retries are run early,
// deleted and canceled. A download turns out to be longer than its account can
// pay for.
func (w *stateWalk) rare() {
	claim := func() (c *tasks.Claim) {
		w.clock = w.clock.Add(time.Minute)
		w.do("Sweep", func(ctx context.Context) { _, _ = w.f.Queue().Sweep(ctx) })
		w.do("Next", func(context.Context) { c = w.next() })
		return c
	}
	create := func() string {
		w.do("Create", func(context.Context) { w.f.Add(nil) })
		return w.order[len(w.order)-1]
	}
	release := func(c *tasks.Claim, how tasks.Ending) {
		w.do("Release", func(ctx context.Context) { w.only(w.f.Release(ctx, c, how, "x")) })
	}
	retry := func(id string) {
		w.do("Retry", func(ctx context.Context) {
			_, err := w.f.Retry(ctx, id)
			w.only(err)
		})
	}
	remove := func(id string) {
		w.do("Delete", func(ctx context.Context) { w.only(w.f.Delete(ctx, w.f.Account, id)) })
	}

	id := create()
	for claim() != nil {
		w.do("Reap", func(ctx context.Context) {
			_, err := w.f.Reap(ctx, "w", tasks.EndInterrupted, "lost")
			w.only(err)
		})
	}
	retry(id)
	release(claim(), tasks.EndRecoverable)
	w.clock = w.clock.Add(time.Minute)
	w.do("Sweep", func(ctx context.Context) { _, _ = w.f.Queue().Sweep(ctx) })
	remove(id)

	id = create()
	for c := claim(); c != nil; c = claim() {
		release(c, tasks.EndInterrupted)
	}
	remove(id)

	id = create()
	release(claim(), tasks.EndRecoverable)
	retry(id)
	release(claim(), tasks.EndPermanent)

	id = create()
	release(claim(), tasks.EndRecoverable)
	remove(id)

	id = create()
	release(claim(), tasks.EndRecoverable)
	w.do("Cancel", func(ctx context.Context) {
		_, err := w.f.Cancel(ctx, id)
		w.only(err)
	})

	poor := w.f.NewAccount("poor", 300)
	w.do("Create", func(context.Context) {
		w.f.Add(func(r *tasks.Request) { r.Account, r.URL = poor, "https://source.example/a" })
	})
	var c *tasks.Claim
	w.do("NextFetch", func(ctx context.Context) {
		var err error
		c, err = w.f.NextFetch(ctx, "w", queue.Busy{Ahead: 1000})
		w.only(err)
	})
	audio := w.f.Audio("more than the account can pay")
	w.do("Fetched", func(ctx context.Context) { w.only(w.f.Fetched(ctx, c, *audio, 9000)) })
	w.do("Delete", func(ctx context.Context) { w.only(w.f.Delete(ctx, poor, c.ID)) })

	w.do("OpenLive", func(ctx context.Context) {
		_, err := w.f.OpenLive(ctx, tasks.Request{Account: w.f.Account, Seconds: 60, Options: taskstest.AllOptions()}, "server")
		w.only(err)
	})
	w.do("Reap", func(ctx context.Context) {
		_, err := w.f.Reap(ctx, "server", tasks.EndInterrupted, "lost")
		w.only(err)
	})
}

// only requires that an error, if any, wraps one of the reasons.
func (w *stateWalk) only(err error, reasons ...error) {
	w.f.T.Helper()
	for _, reason := range reasons {
		if errors.Is(err, reason) {
			return
		}
	}
	require.NoError(w.f.T, err)
}
