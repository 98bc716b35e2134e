package tasks

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Complete stores a result and finishes its task: result, charge, ledger entry
// and callback in one transaction. It may be called again after a store error,
// and then accepts its earlier writes. It changes nothing if the claim is no
// longer current (queue.ErrSuperseded) or if the account cannot pay for the
// outcome's length (the error wraps an *UnpaidError).
func (s *Runs) Complete(ctx context.Context, c *Claim, o Outcome) error {
	o.Seconds = math.Round(o.Seconds*1e4) / 1e4 // so that the charge agrees with the result
	data, err := o.document()
	if err != nil {
		return err
	}
	key := fmt.Sprintf("results/%s-%d%s", c.ID, c.Held.Attempt, resultSuffix)
	if err := s.Config.Blobs.Put(ctx, key, bytes.NewReader(data)); err != nil {
		return err
	}
	return s.settle(ctx, c, o, key)
}

// settle is Complete with the result stored under key.
func (s *core) settle(ctx context.Context, c *Claim, o Outcome, key string) error {
	u := usage(c.Task, o.Seconds)
	u.Mode = cmp.Or(o.Tier, spec.TierStandard)
	warnings := spec.OfAudio(o.Result.Warnings)
	u.Partial = o.Result.Stats.Truncated
	var receipt billing.Receipt
	var audio string
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.guard(ctx, tx, c)
		audio = r.audio
		if r.Status == StatusDone && r.result == key {
			return nil // an earlier call committed this, but its caller got an error
		}
		if err != nil {
			return err
		}
		prices, err := s.billing.PricesByID(ctx, tx, r.price)
		if err != nil {
			return err
		}
		quote, err := prices.Quote(u)
		if err != nil {
			return err
		}
		if receipt, err = s.charge(ctx, tx, &r, quote, o.Seconds); err != nil {
			return unaffordable(err, o.Seconds)
		}
		if o.Audio.Key != "" {
			r.audio = o.Audio.Key
			if _, err := tx.ExecContext(ctx, "UPDATE tasks SET audio_size = $2, audio_md5 = $3 WHERE id = $1", r.ID, o.Audio.Size, o.Audio.MD5); err != nil {
				return err
			}
		}
		r.result, r.AudioDuration, r.voiceModel, r.Warnings = key, new(o.length()), o.VoiceModel, warnings
		if o.Result.Ran.ASR {
			r.Language = o.Result.Language
		}
		if o.Result.Ran.Diarize {
			r.Speakers = &o.Result.NumSpeakers
		}
		return s.finalize(ctx, tx, r, StatusDone, "")
	})
	if errors.Is(err, queue.ErrSuperseded) || errors.Is(err, billing.ErrInsufficientBalance) {
		s.DropAudio(ctx, key)
		if o.Audio.Key != "" {
			s.DropAudio(ctx, o.Audio.Key)
		}
	}
	if err == nil {
		for _, w := range warnings {
			s.Config.Logger.WarnContext(ctx, "task done with a warning", "task", c.ID, "account", c.AccountID, "warning", w.Reason)
		}
		s.Config.Logger.InfoContext(ctx, "task done", "task", c.ID, "account", c.AccountID, "attempt", c.Held.Attempt, "tier", u.Mode, "audio_seconds", o.Seconds, "amount", receipt.Quote.Total.String())
		s.sweepDone(ctx, c.ID, audio)
	}
	return s.wrap("finish "+c.ID, err)
}

// charge charges a task for a length, with its part of reports. announce adds
// the charge to the budget.
func (s *core) charge(ctx context.Context, tx *sql.Tx, r *row, q billing.Quote, seconds float64) (billing.Receipt, error) {
	receipt, err := s.billing.Settle(ctx, tx, r.AccountID, r.ID, q, r.BatchMode)
	if err != nil {
		return receipt, err
	}
	r.charged = receipt
	return receipt, s.recordWork(ctx, tx, *r, seconds)
}

// Ending is the way in which a claim ends without a result.
type Ending int

// The ways in which a claim ends without a result.
const (
	EndPermanent   Ending = iota // the input, the recording or its address, is at fault: the task fails for good
	EndRecoverable               // counts as an attempt
	EndCrash                     // counts as an attempt and as a crash of native code
	EndInterrupted               // the worker was killed from outside or its machine was lost: handed back uncounted, up to a limit
	EndHandedBack                // the worker drains: handed back uncounted
	EndOutage                    // failure of the service (store, disk, memory, database): retried later without counting an attempt, as often as necessary
)

// String returns the cause as the log and the metrics name it.
func (e Ending) String() string {
	return [...]string{"input", "error", "crash", "lost", "drain", "service"}[e]
}

// Release ends a claim without a result. If the claim is no longer current, it
// changes nothing and returns queue.ErrSuperseded.
func (s *Runs) Release(ctx context.Context, c *Claim, how Ending, message string) error {
	err := s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		r, err := s.guard(ctx, tx, c)
		if err != nil {
			return err
		}
		return s.end(ctx, tx, r, how, message)
	})
	if err == nil {
		s.Config.Ended(how)
		s.queue.Wake(ctx)
		s.sweepTask(ctx, c.ID)
	}
	return s.wrap("release "+c.ID, err)
}

// end moves a running task whose row is locked to its next state.
func (s *core) end(ctx context.Context, tx *sql.Tx, r row, how Ending, message string) error {
	if r.Extras.Live && how != EndPermanent {
		how, message = EndPermanent, lostSession
	}
	if how == EndInterrupted {
		if r.interruptions++; r.interruptions > maxInterruptions {
			how = EndRecoverable
		}
	}
	switch how {
	case EndPermanent:
		return s.finalize(ctx, tx, r, StatusFailed, message)
	case EndOutage:
		pause := min(time.Second<<min(max(r.attempt-r.failures-1, 0), 6), time.Minute) // 1 to 60 s
		s.Config.Logger.WarnContext(ctx, "task delayed by a failure of the service", "task", r.ID, "account", r.AccountID, "attempt", r.attempt, "retry_in", pause.String())
		return s.queue.Delay(ctx, tx, r.ref(), pause)
	case EndHandedBack, EndInterrupted:
		if _, err := tx.ExecContext(ctx, "UPDATE tasks SET interruptions = $2 WHERE id = $1", r.ID, r.interruptions); err != nil {
			return err
		}
		var err error
		if again := r.interruptions - 3; how == EndInterrupted && again > 0 { // other tasks run before the next attempt
			err = s.queue.Delay(ctx, tx, r.ref(), time.Duration(min(again, 30))*time.Second)
		} else {
			err = s.queue.Requeue(ctx, tx, r.ref())
		}
		if err != nil {
			return err
		}
		s.Config.Logger.InfoContext(ctx, "task handed back", "task", r.ID, "account", r.AccountID, "attempt", r.attempt, "cause", how.String())
		return nil
	}
	r.failures++
	abandon := r.failures > int64(len(s.Config.RetryDelays))
	if how == EndCrash {
		if r.crashes++; r.crashes >= MaxCrashes {
			abandon = true
			message = fmt.Sprintf("crashed the decoder %d times; last: %s", r.crashes, message)
		}
	}
	if _, err := tx.ExecContext(ctx, "UPDATE tasks SET failures = $2, crashes = $3, interruptions = $4 WHERE id = $1", r.ID, r.failures, r.crashes, r.interruptions); err != nil {
		return err
	}
	if abandon {
		return s.finalize(ctx, tx, r, StatusAbandoned, message)
	}
	delay := s.Config.RetryDelays[r.failures-1]
	delay = time.Duration(float64(delay) * (1 + retryJitter*(2*s.Config.Random()-1)))
	if _, err := tx.ExecContext(ctx, "UPDATE tasks SET status = 'failed', error_message = $2 WHERE id = $1", r.ID, message); err != nil {
		return err
	}
	if err := s.queue.Delay(ctx, tx, r.ref(), delay); err != nil {
		return err
	}
	s.Config.Logger.WarnContext(ctx, "attempt failed", "task", r.ID, "account", r.AccountID, "attempt", r.attempt, "failures", r.failures, "retry_in", delay.String(), "cause", how.String())
	return nil
}

// finalize moves a task whose row is locked to a final state, with its hold,
// callback and audio. From then on the callback alone keeps its URL and secret,
// and they are deleted with it.
func (s *core) finalize(ctx context.Context, tx *sql.Tx, r row, status Status, message string) error {
	now := s.now()
	if status != StatusDone { // the charge of a done task has ended the hold
		if err := s.billing.Release(ctx, tx, r.ID); err != nil {
			return err
		}
	}
	var audio any // the column
	if r.audio != "" {
		if s.Config.KeepAudio > 0 {
			audio = r.audio // the row keeps the key until the file is deleted
		}
		if err := s.scheduleDeletion(ctx, tx, r.audio, now.Add(s.Config.KeepAudio)); err != nil {
			return err
		}
	}
	if err := s.scheduleDeletion(ctx, tx, CheckpointPrefix(r.ID), now); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM live_segments WHERE task_id = $1", r.ID); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE tasks SET phase = 'final', status = $2, error_message = $3, audio_blob = $4, worker_id = NULL, updated_at = $5, finished_at = $5,
		result_blob = $6, audio_seconds = $7, voice_model = $8, warnings = $9, language = $10, speakers = $11, callback_url = NULL, callback_secret = NULL WHERE id = $1`,
		r.ID, string(status), db.Optional(message), audio, db.Micros(now), db.Optional(r.result), r.AudioDuration, db.Optional(r.voiceModel), db.OptionalJSON(r.Warnings), db.Optional(r.Language), r.Speakers); err != nil {
		return err
	}
	r.Status, r.FinishedAt, r.ErrorMessage = status, &now, nil
	if message != "" {
		r.ErrorMessage = &message
	}
	if err := s.announce(ctx, tx, r); err != nil {
		return err
	}
	if status != StatusDone {
		s.Config.Logger.WarnContext(ctx, "task "+string(status), "task", r.ID, "account", r.AccountID, "attempt", r.attempt)
	}
	return nil
}

// Reap ends the claims of a dead member in the way how and schedules its
// callbacks again. It returns their number.
func (s *Runs) Reap(ctx context.Context, id string, how Ending, message string) (int, error) {
	n, err := s.takeBack(ctx, id, how, message, true)
	if err == nil && n > 0 {
		s.Config.Logger.WarnContext(ctx, "work of a dead process taken back", "worker", id, "items", n, "reason", message)
	}
	return n, s.wrap("take back work of "+id, err)
}

// HandBack returns, uncounted, a living member's claims that are not in keep:
// the member does not know them, because their commit was not confirmed.
func (s *Runs) HandBack(ctx context.Context, id string, keep ...string) error {
	_, err := s.takeBack(ctx, id, EndHandedBack, "the claim was not confirmed", false, keep...)
	return s.wrap("hand back work of "+id, err)
}

func (s *core) takeBack(ctx context.Context, id string, how Ending, message string, leave bool, keep ...string) (n int, err error) {
	ended := 0
	err = s.Config.DB.Write(ctx, func(tx *sql.Tx) error {
		n, ended = 0, 0
		held, err := s.queue.Held(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, task := range held {
			if slices.Contains(keep, task) {
				continue
			}
			r, err := s.lockTask(ctx, tx, task)
			if errors.Is(err, sql.ErrNoRows) || (err == nil && (r.phase != "running" || r.worker != id)) {
				continue
			}
			if err != nil {
				return err
			}
			if err := s.end(ctx, tx, r, how, message); err != nil {
				return err
			}
			ended++
		}
		n = ended
		callbacks, err := s.outbox.Return(ctx, tx, id)
		if err != nil {
			return err
		}
		n += callbacks
		if !leave {
			return nil
		}
		return s.queue.Leave(ctx, tx, id)
	})
	if err == nil && n > 0 {
		for range ended {
			s.Config.Ended(how)
		}
		s.queue.Wake(ctx)
		s.queue.Changed(ctx)
	}
	return n, err
}

// announce writes the callback of a task that became final and the messages to
// its account's hook, in its transaction.
func (s *core) announce(ctx context.Context, tx *sql.Tx, r row) error {
	end := struct {
		TaskID       string  `json:"task_id"`
		Status       Status  `json:"status"`
		CreatedAt    string  `json:"created_at"`
		FinishedAt   string  `json:"finished_at"`
		ErrorMessage *string `json:"error_message"`
	}{r.ID, r.Status, r.CreatedAt.Format(spec.TimeFormat), r.FinishedAt.Format(spec.TimeFormat), r.ErrorMessage}
	if err := s.outbox.Announce(ctx, tx, r.AccountID, r.ID, "task."+string(r.Status), end, r.charged); err != nil || r.callbackURL == "" {
		return err
	}
	body, err := json.Marshal(end)
	if err != nil {
		return err
	}
	return s.outbox.Add(ctx, tx, webhook.Message{TaskID: r.ID, AccountID: r.AccountID, URL: r.callbackURL, Secret: r.callbackSecret, Body: body, Warning: WarningHeader(r.Warnings)})
}
