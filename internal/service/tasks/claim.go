package tasks

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Claim is a task that a worker has claimed.
type Claim struct {
	Task
	URL  string       // address of the audio, "" if it was uploaded
	Blob string       // key of the stored audio, "" before it is fetched
	Held *queue.Claim // the queue's claim, which fences the worker's writes
	// Ignored lists stored options that this release does not know.
	Ignored []string
	Seconds float64 // length of the audio as it was probed, 0 if unknown

	price int64 // id of the price list in force when the task was created
}

// errOverdrawn ends a claim if the balance no longer covers the holds.
var errOverdrawn = errors.New("account is overdrawn")

// Next claims the next task for worker and returns nil if there is none (see
// queue.Queue.Next). Tasks of an overdrawn account (billing.Store.Overdrawn)
// wait until it is in credit.
func (s *Runs) Next(ctx context.Context, worker, modelSet string) (*Claim, error) {
	for {
		var c *Claim
		held, err := s.queue.Next(ctx, worker, modelSet, func(tx *sql.Tx, held *queue.Claim) (err error) {
			c, err = s.readClaim(ctx, tx, held)
			return err
		})
		if errors.Is(err, errOverdrawn) {
			if err = s.stop(ctx, c.Task); err == nil {
				continue
			}
		}
		if held == nil || err != nil {
			return nil, s.wrap("claim", err)
		}
		return c, nil
	}
}

// stop makes claims skip the lane of a task's account if it is overdrawn.
func (s *core) stop(ctx context.Context, t Task) error {
	stopped := false
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) (err error) {
		if stopped, err = s.billing.LockOverdrawn(ctx, tx, t.AccountID, t.BatchMode); err != nil || !stopped {
			return err
		}
		return s.queue.Stop(ctx, tx, laneOf(t.BatchMode), t.AccountID)
	})
	if err == nil && stopped {
		s.Config.Logger.WarnContext(ctx, "account is overdrawn: its tasks wait until it has money again", "account", t.AccountID, "lane", laneOf(t.BatchMode))
	}
	return err
}

func laneOf(batch bool) string {
	if batch {
		return queue.LaneBatch
	}
	return queue.LaneTasks
}

// readClaim reads the task of a claim in its transaction. A claim that is not
// for a download ends with errOverdrawn if the account cannot pay for the task.
func (s *core) readClaim(ctx context.Context, tx *sql.Tx, held *queue.Claim) (*Claim, error) {
	c := &Claim{Held: held}
	var options string
	var err error
	c.Task, err = scanTask(tx.QueryRowContext(ctx, "SELECT "+taskColumns+", COALESCE(audio_url, ''), COALESCE(audio_blob, ''), price_id, options, COALESCE(sound_seconds, 0) FROM tasks WHERE id = $1", held.TaskID),
		&c.URL, &c.Blob, &c.price, &options, &c.Seconds)
	if err != nil {
		return c, err
	}
	if c.Ignored, err = unknownOptions(options); err != nil || held.Lane == queue.LaneFetch {
		return c, err
	}
	if overdrawn, err := s.billing.Overdrawn(ctx, tx, c.AccountID, c.BatchMode); overdrawn || err != nil {
		return c, cmp.Or(err, errOverdrawn)
	}
	return c, nil
}

// unknownOptions returns the stored options that this release does not know,
// sorted by name. A newer release may have stored them.
func unknownOptions(stored string) ([]string, error) {
	var names map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stored), &names); err != nil {
		return nil, err
	}
	for _, o := range spec.Table() {
		delete(names, o.Name)
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// row holds the columns that writers of a running task read under its lock.
type row struct {
	Task
	attempt, failures, crashes, interruptions   int64
	phase, worker, lane                         string
	price                                       int64
	audio, result                               string
	voiceModel                                  string // of the result that is about to be written
	callbackURL, callbackSecret, idempotencyKey string
	charged                                     billing.Receipt // of the end that is about to be written
}

func (s *core) lockTask(ctx context.Context, tx *sql.Tx, id string) (row, error) {
	var r row
	var err error
	r.Task, err = scanTask(tx.QueryRowContext(ctx, "SELECT "+taskColumns+`, attempt, failures, crashes, interruptions, phase, COALESCE(worker_id, ''), lane, price_id, COALESCE(audio_blob, ''),
		COALESCE(result_blob, ''), COALESCE(callback_url, ''), COALESCE(callback_secret, ''), COALESCE(idempotency_key, '') FROM tasks WHERE id = $1`+s.Config.DB.ForUpdate(), id),
		&r.attempt, &r.failures, &r.crashes, &r.interruptions, &r.phase, &r.worker, &r.lane, &r.price, &r.audio, &r.result, &r.callbackURL, &r.callbackSecret, &r.idempotencyKey)
	return r, err
}

// lockNamed is lockTask for a task that a caller names; the error wraps
// ErrNotFound if there is none.
func (s *core) lockNamed(ctx context.Context, tx *sql.Tx, id string) (row, error) {
	r, err := s.lockTask(ctx, tx, id)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %.40q", ErrNotFound, id)
	}
	return r, err
}

// guard locks the claim's task and checks that the claim is current; otherwise
// the error wraps queue.ErrSuperseded.
func (s *core) guard(ctx context.Context, tx *sql.Tx, c *Claim) (row, error) {
	r, err := s.lockTask(ctx, tx, c.ID)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (r.phase != "running" || r.attempt != c.Held.Attempt) {
		return r, queue.ErrSuperseded
	}
	return r, err
}

func (r row) ref() queue.Ref { return queue.Ref{TaskID: r.ID, AccountID: r.AccountID, Lane: r.lane} }

// NextFetch claims for worker a task whose audio needs to be downloaded, and
// returns nil if there is none (see queue.Queue.NextFetch).
func (s *Runs) NextFetch(ctx context.Context, worker string, busy queue.Busy) (*Claim, error) {
	var c *Claim
	held, err := s.queue.NextFetch(ctx, worker, busy, func(tx *sql.Tx, held *queue.Claim) (err error) {
		c, err = s.readClaim(ctx, tx, held)
		return err
	})
	if held == nil || err != nil {
		return nil, s.wrap("claim download", err)
	}
	return c, nil
}

// Fetched records the downloaded audio and queues the task for a worker. It may
// be called again after a store error, and then accepts its earlier writes. If
// the audio's length in seconds is known, its price is held in the same
// transaction; a task that its account cannot pay for fails there. If pricing
// fails, the worker holds the price (see Probed).
func (s *Runs) Fetched(ctx context.Context, c *Claim, audio blob.Info, seconds float64) error {
	var price billing.Money
	if seconds > 0 {
		t, err := s.tariff(ctx, c, seconds)
		if err != nil && Outage(s.Config.DB.Classify(err)) {
			return s.wrap("price of "+c.ID, err)
		}
		if err == nil {
			price = t.quote.Total
		}
	}
	unpaid := false
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		unpaid = false
		r, err := s.guard(ctx, tx, c)
		if r.audio == audio.Key {
			return nil // an earlier call committed this without confirmation
		}
		if err != nil {
			return err
		}
		r.audio, r.lane = audio.Key, laneOf(r.BatchMode)
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = $2, audio_size = $3, audio_md5 = $4, lane = $5, updated_at = $6, sound_seconds = $7 WHERE id = $1",
			c.ID, audio.Key, audio.Size, audio.MD5, r.lane, db.Micros(s.now()), db.Optional(seconds)); err != nil {
			return err
		}
		if price > 0 {
			err := unaffordable(s.billing.Raise(ctx, tx, c.ID, price), seconds)
			if unpaid = errors.As(err, new(*UnpaidError)); unpaid {
				return s.end(ctx, tx, r, EndPermanent, err.Error())
			}
			if err != nil {
				return err
			}
		}
		return s.queue.Requeue(ctx, tx, r.ref())
	})
	switch {
	case err == nil && unpaid:
		s.Config.Ended(EndPermanent)
		s.sweepTask(ctx, c.ID)
	case err == nil:
		s.queue.Wake(ctx)
	}
	return s.wrap("note audio of "+c.ID, err)
}

// Refetch returns a claimed task to the fetchers because its audio is missing.
func (s *Runs) Refetch(ctx context.Context, c *Claim) error {
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.guard(ctx, tx, c)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_blob = NULL, lane = $2 WHERE id = $1", r.ID, queue.LaneFetch); err != nil {
			return err
		}
		return s.queue.Requeue(ctx, tx, queue.Ref{TaskID: r.ID, AccountID: r.AccountID, Lane: queue.LaneFetch})
	})
	if err == nil {
		s.queue.Wake(ctx)
	}
	return s.wrap("download audio of "+c.ID+" again", err)
}
