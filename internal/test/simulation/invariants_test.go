package simulation_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// strangers are unrelated files in the same store, some of them with names
// similar to the service's.
var strangers = []string{"elsewhere/a.wav", "audio-of-others/x.wav", "results.old/1.json", "dump.sql", "audio/README.txt", "checkpoints/notes/today.txt", "results/summary.json"}

func (w *world) strangers() {
	for _, key := range strangers {
		w.must(blob.Over(w.bucket, "memory").Put(context.Background(), key, strings.NewReader("not yours")))
	}
}

// watch makes the database record every change of a task's state, in the order
// of the commits.
func (w *world) watch() {
	columns := "event, task, account, lane, attempt, was, phase, status, queued_at, claimed_at"
	table := "CREATE TABLE seen (seq %s PRIMARY KEY, event text, task text, account text, lane text, attempt bigint, was text, phase text, status text, queued_at bigint, claimed_at bigint)"
	values := map[string]string{
		"INSERT": "'insert', NEW.id, NEW.account_id, NEW.lane, NEW.attempt, '', NEW.phase, NEW.status, NEW.queued_at, NEW.claimed_at",
		"UPDATE": "'update', NEW.id, NEW.account_id, NEW.lane, NEW.attempt, OLD.phase, NEW.phase, NEW.status, NEW.queued_at, NEW.claimed_at",
		"DELETE": "'delete', OLD.id, OLD.account_id, OLD.lane, OLD.attempt, OLD.phase, '', OLD.status, OLD.queued_at, OLD.claimed_at",
	}
	var statements []string
	postgres := w.observer.Config.DB.Dialect() == db.Postgres
	serial := "integer"
	if postgres {
		serial = "bigserial"
	}
	statements = append(statements, fmt.Sprintf(table, serial))
	for event, list := range values {
		when := ""
		if event == "UPDATE" {
			when = "WHEN (OLD.phase <> NEW.phase OR OLD.attempt <> NEW.attempt)"
		}
		insert := fmt.Sprintf("INSERT INTO seen (%s) VALUES (%s);", columns, list)
		if postgres {
			statements = append(statements,
				fmt.Sprintf("CREATE FUNCTION see_%s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s RETURN NULL; END $$", event, insert),
				fmt.Sprintf("CREATE TRIGGER see_%s AFTER %s ON tasks FOR EACH ROW %s EXECUTE FUNCTION see_%s()", event, event, when, event))
		} else {
			statements = append(statements, fmt.Sprintf("CREATE TRIGGER see_%s AFTER %s ON tasks %s BEGIN %s END", event, event, when, insert))
		}
	}
	// Tasks of accounts without money do not take turns.
	stop := fmt.Sprintf("INSERT INTO seen (%s) VALUES ('stop', '', NEW.account_id, NEW.lane, CASE WHEN NEW.stopped THEN 1 ELSE 0 END, '', '', '', 0, 0);", columns)
	if postgres {
		statements = append(statements, fmt.Sprintf("CREATE FUNCTION see_stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s RETURN NULL; END $$", stop),
			"CREATE TRIGGER see_stop AFTER UPDATE OF stopped ON lane_accounts FOR EACH ROW WHEN (OLD.stopped <> NEW.stopped) EXECUTE FUNCTION see_stop()")
	} else {
		statements = append(statements, fmt.Sprintf("CREATE TRIGGER see_stop AFTER UPDATE OF stopped ON lane_accounts WHEN OLD.stopped <> NEW.stopped BEGIN %s END", stop))
	}
	for _, statement := range statements {
		require.NoError(w.t, w.observer.Config.DB.Write(context.Background(), func(tx *sql.Tx) error {
			_, err := tx.Exec(statement)
			return err
		}))
	}
}

// none fails the history if a query counts any rows.
func (w *world) none(what, query string, args ...any) {
	if n := w.count(query, args...); n > 0 {
		w.fail("%s: %d", what, n)
	}
}

// check checks the invariants that hold at any time.
func (w *world) check() {
	w.observer.Exact()
	w.none("final tasks that want a callback and have none", "SELECT COUNT(*) FROM tasks WHERE phase = 'final' AND audio_filename = $2 AND id NOT IN (SELECT task_id FROM callbacks) AND finished_at > $1",
		db.Micros(time.Now().Add(-12*time.Hour)), tellingFile) // callbacks are deleted after days; clocks differ by hours
	w.none("callbacks of tasks that are not final or want none", "SELECT COUNT(*) FROM callbacks WHERE task_id NOT IN (SELECT id FROM tasks WHERE phase = 'final' AND audio_filename = $1)", tellingFile)
	w.none("final tasks that know where their callback goes", "SELECT COUNT(*) FROM tasks WHERE phase = 'final' AND (callback_url IS NOT NULL OR callback_secret IS NOT NULL)")
	w.none("running tasks without a worker", "SELECT COUNT(*) FROM tasks WHERE (phase = 'running') <> (worker_id IS NOT NULL)")
	w.none("tasks with the result of a claim that was over", "SELECT COUNT(*) FROM tasks WHERE status = 'done' AND result_blob <> 'results/' || id || '-' || attempt || '.json.zst'")
	ids, err := db.Column[string](context.Background(), w.observer.Config.DB.Read(), "SELECT id FROM tasks")
	w.must(err)
	there := map[string]bool{}
	for _, id := range ids {
		there[id] = true
	}
	w.mu.Lock()
	var lost []int
	for _, sub := range w.submissions {
		switch {
		case sub.id != "" && !sub.deleting && !there[sub.id]:
			lost = append(lost, sub.number)
		case sub.deleted && there[sub.id]:
			lost = append(lost, -sub.number)
		}
	}
	w.mu.Unlock()
	if len(lost) > 0 {
		w.fail("accepted and lost (negative: deleted and still there): %v", lost)
	}
	for _, key := range strangers {
		if _, err := w.bucket.Open(context.Background(), key, 0); err != nil {
			w.fail("the stranger's file %s is gone (%v)", key, err)
		}
	}
}

// stuck describes the work that does not end.
func (w *world) stuck() string {
	lines, err := db.Column[string](context.Background(), w.observer.Config.DB.Read(), `SELECT 'task ' || id || ' ' || phase || ' ' || status || ' worker ' || COALESCE(worker_id, '-') FROM tasks WHERE phase <> 'final'
		UNION ALL SELECT 'callback ' || id || ' ' || phase || ' notifier ' || COALESCE(worker_id, '-') FROM callbacks WHERE phase IN ('queued', 'running')`)
	w.must(err)
	return strings.Join(lines, "; ")
}

// finalCheck checks the invariants that hold when all work has ended.
func (w *world) finalCheck() {
	if w.failed() {
		return
	}
	w.check()
	w.none("holds without a task", "SELECT COUNT(*) FROM holds")
	w.turns()
	w.charges()
	w.mu.Lock()
	balances := w.balances
	w.mu.Unlock()
	for account, least := range balances {
		// Transactions whose response was lost are in the ledger as well.
		if n := w.count("SELECT COUNT(*) FROM ledger WHERE account_id = $1 AND type <> 'deduction'", account); n == 0 {
			w.fail("account %s has no movements (%s answered)", account, least)
		}
	}
	keys := w.observer.Files()
	kept, err := w.observer.Referenced(context.Background(), keys)
	w.must(err)
	orphans := 0
	for _, key := range keys {
		if !kept[key] && !slices.Contains(strangers, key) {
			orphans++
		}
	}
	w.scheduler.disturbs["orphaned file"] += orphans
	w.observer.Exec("UPDATE orphans SET marked_at = $1 WHERE marked_at > $1", db.Micros(time.Now())) // marked by servers whose clock was ahead
	for range 2 {                                                                                    // only unreferenced files are found and deleted
		time.Sleep(time.Second)
		_, err := w.observer.Collect(context.Background(), tasks.CollectConfig{MinAge: time.Nanosecond, Marked: time.Nanosecond, MaxFiles: 1 << 30, MaxShare: 1})
		w.must(err)
	}
	for _, key := range w.observer.Files() {
		if !kept[key] && !slices.Contains(strangers, key) {
			w.fail("the collector left %s", key)
		}
	}
	w.check()
}

// change is a row of the table seen.
type change struct {
	event, task, account, lane, was, phase, status string
	attempt, queuedAt, claimedAt                   int64
}

func (w *world) changes() []change {
	list, err := db.Select(context.Background(), w.observer.Config.DB.Read(), func(row db.Row, c *change) error {
		return row.Scan(&c.event, &c.task, &c.account, &c.lane, &c.attempt, &c.was, &c.phase, &c.status, &c.queuedAt, &c.claimedAt)
	}, "SELECT event, task, account, lane, attempt, was, phase, status, queued_at, COALESCE(claimed_at, 0) FROM seen ORDER BY seq")
	w.must(err)
	return list
}

// edges are the permitted transitions of a task; the last ones are an
// operator's.
var edges = []string{" queued", "queued running", "running queued", "running delayed", "running final", "delayed queued", "delayed ", "queued ", "final ", "queued final", "delayed final", "final queued"}

// turns replays all changes and checks the following. Tasks only make permitted
// transitions. The fencing number rises exactly with claims. No task leaves the
// final phase. Between two turns of an account in a lane, every other account
// that waited all the time and had money had a turn. A download needs money in
// its target lane; an account without money in either of the two lanes is left
// out.
func (w *world) turns() {
	type place struct {
		waiting int
		since   int // number of the change at which the account began to wait
		served  int // number of the change that was the account's last turn
		stopped bool
	}
	lanes := map[string]map[string]*place{queue.LaneFetch: {}, queue.LaneTasks: {}, queue.LaneBatch: {}}
	stopped := func(lane, account string) bool {
		p := lanes[lane][account]
		return p != nil && p.stopped
	}
	poor := func(lane, account string) bool {
		if lane == queue.LaneFetch {
			return stopped(queue.LaneTasks, account) || stopped(queue.LaneBatch, account)
		}
		return stopped(lane, account)
	}
	attempts := map[string]int64{}
	waiting := map[string]change{}
	claims := 0
	for at, c := range w.changes() {
		accounts := lanes[c.lane]
		mine := accounts[c.account]
		if mine == nil {
			mine = &place{served: -1}
			accounts[c.account] = mine
		}
		if c.event == "stop" {
			if mine.stopped = c.attempt == 1; !mine.stopped {
				mine.since = at
				if downloads := lanes[queue.LaneFetch][c.account]; downloads != nil {
					downloads.since = at
				}
			}
			continue
		}
		if !slices.Contains(edges, c.was+" "+c.phase) {
			w.fail("task %s went from %q to %q", c.task, c.was, c.phase)
		}
		claim := c.was == "queued" && c.phase == "running"
		if before := attempts[c.task]; c.event == "update" && (claim && c.attempt != before+1 || !claim && c.attempt != before) {
			w.fail("task %s went from attempt %d to %d, %s to %s", c.task, before, c.attempt, c.was, c.phase)
		}
		attempts[c.task] = c.attempt
		if claim {
			claims++
			aged := c.lane == queue.LaneBatch && c.claimedAt-c.queuedAt >= w.batchWait.Microseconds() && oldest(waiting, func(account string) bool { return stopped(c.lane, account) }, c)
			for account, other := range accounts {
				if other != mine && !aged && mine.served >= 0 && other.waiting > 0 && !poor(c.lane, account) && other.since < mine.served && other.served < mine.served {
					w.fail("account %s had a turn in lane %s at change %d and another at %d; account %s has waited since %d, its last turn was at %d",
						c.account, c.lane, mine.served, at, account, other.since, other.served)
				}
			}
			mine.served = at
		}
		if c.was == "queued" {
			mine.waiting--
			delete(waiting, c.task)
		}
		if c.phase == "queued" {
			if mine.waiting++; mine.waiting == 1 {
				mine.since = at
			}
			waiting[c.task] = c
		}
	}
	w.scheduler.disturbs["claim"] += claims
}

// oldest reports whether c is the batch task that has waited longest, ignoring
// accounts that are stopped.
func oldest(waiting map[string]change, stopped func(account string) bool, c change) bool {
	for _, other := range waiting {
		if !stopped(other.account) && other.lane == c.lane && other.queuedAt < c.queuedAt {
			return false
		}
	}
	return true
}

// charges compares the charges with the recordings' lengths, and the states of
// the tasks with their recordings' fates.
func (w *world) charges() {
	w.mu.Lock()
	subs := slices.Clone(w.submissions)
	w.mu.Unlock()
	for _, sub := range subs {
		if sub.id == "" || sub.deleting {
			continue
		}
		task, err := w.observer.Get(context.Background(), sub.account, sub.id)
		if err != nil {
			w.fail("submission %d: %v", sub.number, err)
			return
		}
		w.scheduler.disturbs["task "+string(task.Status)]++
		want := map[string][]tasks.Status{
			fateFine: {tasks.StatusDone}, fateFlaky: {tasks.StatusDone, tasks.StatusAbandoned}, fateBad: {tasks.StatusFailed},
			fatePoison: {tasks.StatusAbandoned}, fateHopeless: {tasks.StatusAbandoned}, fateGone: {tasks.StatusFailed, tasks.StatusAbandoned},
		}[sub.recording.Fate]
		message := ""
		if task.ErrorMessage != nil {
			message = *task.ErrorMessage
		}
		if !slices.Contains(want, task.Status) && !w.explained(sub.id, task.Status, message) {
			w.fail("submission %d, whose recording is %s, is %s: %s", sub.number, sub.recording.Fate, task.Status, message)
		}
		if n := w.count("SELECT failures FROM tasks WHERE id = $1", sub.id); n > 0 && sub.recording.Fate == fateFine {
			w.fail("%d attempts of submission %d are counted, and nothing is wrong with it", n, sub.number)
		}
		if task.Status != tasks.StatusDone {
			continue
		}
		bill, err := w.observer.Billing().Bill(context.Background(), sub.account, sub.id)
		if err != nil {
			w.fail("submission %d: %v", sub.number, err)
			return
		}
		if want := max(1, int64(math.Ceil(sub.recording.Seconds/60))); bill.BillableMinutes != want {
			w.fail("submission %d of %.2f s is charged for %d minutes", sub.number, sub.recording.Seconds, bill.BillableMinutes)
		}
	}
}

// explained reports whether a customer's or operator's request explains a
// failure.
func (w *world) explained(id string, status tasks.Status, message string) bool {
	if status != tasks.StatusFailed {
		return false
	}
	w.scheduler.disturbs["failed: "+strings.SplitN(message, ":", 2)[0]]++
	return strings.HasPrefix(message, "insufficient_balance") || w.canceled[id] && strings.HasPrefix(message, "canceled") || w.retried[id] && strings.HasPrefix(message, "audio gone")
}

// callbacks compares the received callbacks with the rows.
func (w *world) callbacks() {
	list, err := w.observer.Outbox().List(context.Background(), webhookAll)
	w.must(err)
	for _, c := range list {
		seen := w.deliveries[c.TaskID]
		accepted := slices.ContainsFunc(seen, func(d delivery) bool { return d.accepted })
		if c.Phase == "delivered" && !accepted {
			w.fail("callback of task %s counts as delivered, and no receiver took it", c.TaskID)
		}
		if c.Attempts > len(w.callbackDelays)+1 {
			w.fail("callback of task %s was tried %d times", c.TaskID, c.Attempts)
		}
		for _, d := range seen {
			if !w.retried[c.TaskID] && d.id != c.ID || d.id == seen[0].id && d.body != seen[0].body {
				w.fail("callbacks of task %s differ: %v", c.TaskID, seen)
			}
		}
		w.scheduler.disturbs["callback "+c.Phase]++
	}
}
