package tasks

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Request describes a task to create, with valid options and addresses.
type Request struct {
	Account              string // id
	Key                  string // id of the API key; "" for a user
	URL                  string // of the audio; "" with Audio
	Audio                *blob.Info
	Seconds              float64 // length of Audio; 0 if unknown (see Config.UnknownLength)
	Filename             string
	Options              spec.EffectiveOptions
	CallbackURL          string // "" for none
	CallbackSecret       string // "" for none
	Batch, AllowTraining bool
	Extras               Extras
	// Waits keeps the audio after ErrConcurrencyLimit, because the caller will
	// try again.
	Waits bool
	// Again marks a request that a client sends again by itself because it did
	// not wait for the response: it gets the first one's task, charged once.
	Again bool
	// ID is the task's id, a UUID of version 7; if empty, Create makes one.
	ID string
	// Refused is used by CreateBatch only: the reason why the caller refused
	// the item, which becomes the item's error.
	Refused error
}

// Item is the outcome of one item of a batch: a task or an error message. Its
// JSON is stored with idempotency keys.
type Item struct {
	Task  *Task  `json:"task,omitempty"`
	Error string `json:"error,omitempty"`
}

func on(b *bool) bool { return b == nil || *b }

// usage returns the usage that a task requests, without a tier.
func usage(t Task, seconds float64) billing.Usage {
	return billing.Usage{Seconds: seconds, Diarize: on(t.Options.EnableDiarize), Events: on(t.Options.EnableAudioEvents), Batch: t.BatchMode, Live: t.Extras.Live}
}

// possibleTiers returns the tiers that may run with any of the sets.
func possibleTiers(o spec.EffectiveOptions, sets []spec.Available) []spec.Tier {
	if tiers := spec.PossibleTiers(spec.Options(o), sets); len(tiers) > 0 {
		return tiers
	}
	return []spec.Tier{spec.TierStandard} // no transcription is charged like the standard tier
}

// Create accepts a task: the task and its hold are created in one transaction.
// If the idempotency key was used before for the same body, Create returns the
// first response (replayed is true) and has no other effect; for a different
// body the error wraps ErrIdempotencyConflict. An insufficient balance is
// billing.ErrInsufficientBalance, an exceeded task limit
// billing.ErrConcurrencyLimit. Audio uploaded for a refused or replayed request
// is deleted.
func (s *Owners) Create(ctx context.Context, r Request, idem Idempotency) (task Task, replayed bool, err error) {
	items, err := s.repeated(ctx, r)
	replayed = len(items) > 0
	if err == nil && !replayed {
		items, replayed, err = s.create(ctx, []Request{r}, idem, false)
	}
	again := r.Waits && errors.Is(err, billing.ErrConcurrencyLimit)
	if r.Audio != nil && (replayed || definite(err)) && !again {
		s.DropAudio(ctx, r.Audio.Key)
	}
	if err != nil {
		return Task{}, false, err
	}
	if len(items) == 1 && items[0].Error == ErrDeleted.Error() {
		return Task{}, false, fmt.Errorf("%w: %w", ErrIdempotencyConflict, ErrDeleted)
	}
	if len(items) != 1 || items[0].Task == nil {
		return Task{}, false, fmt.Errorf("%w: the key belongs to a batch", ErrIdempotencyConflict)
	}
	return *items[0].Task, replayed, nil
}

// repeatAge is the longest time between a request and its repetition: OpenAI's
// clients wait for ten minutes, and repeat a request twice.
const repeatAge = time.Hour

// repeated returns the newest task, unless it has failed, with the recording,
// key and options of a request that is sent again. Tasks with recordings of
// known speakers, which cannot be compared, are left out.
func (s *core) repeated(ctx context.Context, r Request) ([]Item, error) {
	if !r.Again || len(r.Extras.Voices) > 0 {
		return nil, nil
	}
	want, _ := json.Marshal([]any{r.Options, r.Extras})
	list, err := s.charged(ctx, "account_id = $1 AND created_at > $2 AND audio_md5 = $3 AND COALESCE(key_id, '') = $4 AND (status = 'done' OR finished_at IS NULL) ORDER BY created_at DESC, id DESC",
		db.Args{r.Account, db.Micros(s.now().Add(-repeatAge)), r.Audio.MD5, r.Key})
	for _, t := range list {
		if have, _ := json.Marshal([]any{t.Options, t.Extras}); bytes.Equal(have, want) {
			return []Item{{Task: &t}}, nil
		}
	}
	return nil, s.wrap("repeated", err)
}

// definite reports whether err shows that nothing was committed.
func definite(err error) bool {
	return errors.As(err, new(*LanguageError)) || slices.ContainsFunc([]error{
		billing.ErrInsufficientBalance, billing.ErrConcurrencyLimit, billing.ErrNoAccount, billing.ErrUsage, accounts.ErrUnauthorized, accounts.ErrSuspended, ErrIdempotencyConflict, ErrRequest, ErrTranslation, ErrModel,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// CreateBatch accepts several batch tasks in one transaction. Items are
// independent: an item that was refused or that the balance does not cover has
// an error, the others become tasks.
func (s *Owners) CreateBatch(ctx context.Context, requests []Request, idem Idempotency) (items []Item, replayed bool, err error) {
	return s.create(ctx, requests, idem, true)
}

func (s *core) create(ctx context.Context, requests []Request, idem Idempotency, batch bool) (items []Item, replayed bool, err error) {
	if err := checkRequests(requests, batch); err != nil {
		return nil, false, err
	}
	account := requests[0].Account
	err = s.Config.DB.Write(ctx, func(tx *sql.Tx) (err error) {
		replayed = false
		if idem.Key != "" {
			if items, replayed, err = s.claimKey(ctx, tx, account, idem); replayed || err != nil {
				return err
			}
		}
		if items, err = s.insertAll(ctx, tx, requests, idem.Key, batch); err != nil || idem.Key == "" {
			return err
		}
		return s.setAnswer(ctx, tx, account, idem.Key, items)
	})
	if err != nil {
		return nil, false, s.wrap("create", err)
	}
	if !replayed {
		s.queue.Wake(ctx)
	}
	for _, item := range items {
		if item.Task != nil && !replayed {
			s.Config.Logger.InfoContext(ctx, "task accepted", "task", item.Task.ID, "account", account, "source", item.Task.AudioSourceType, "batch", item.Task.BatchMode)
		}
	}
	return items, replayed, nil
}

// checkRequests makes the checks without a database. It skips refused items.
func checkRequests(requests []Request, batch bool) error {
	if len(requests) == 0 {
		return fmt.Errorf("%w: no items", ErrRequest)
	}
	for _, r := range requests {
		switch {
		case r.Refused != nil && batch:
		case r.Account != requests[0].Account:
			return fmt.Errorf("%w: items of several accounts", ErrRequest)
		case (r.URL == "") == (r.Audio == nil):
			return fmt.Errorf("%w: want either a URL or audio", ErrRequest)
		}
	}
	return nil
}

// insertAll writes tasks with their holds. In a batch, an item that the account
// cannot pay for has an error; a single task fails with it.
func (s *core) insertAll(ctx context.Context, tx *sql.Tx, requests []Request, idempotencyKey string, batch bool) (items []Item, err error) {
	prices, sets, err := s.terms(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if r.Refused != nil {
			items = append(items, Item{Error: r.Refused.Error()})
			continue
		}
		t, err := s.insert(ctx, tx, r, idempotencyKey, prices, sets)
		switch {
		case err == nil:
			items = append(items, Item{Task: &t})
		case batch && (errors.Is(err, billing.ErrInsufficientBalance) || errors.Is(err, billing.ErrConcurrencyLimit)):
			items = append(items, Item{Error: err.Error()}) // nothing was written for this item yet
		default:
			return nil, err
		}
	}
	return items, nil
}

// firstPrice returns the price to hold for a task before its audio is probed.
func (s *core) firstPrice(t Task, seconds float64, prices billing.Prices, sets []spec.Available) (billing.Money, error) {
	seconds = cmp.Or(seconds, s.Config.UnknownLength.Seconds())
	quote, err := prices.Dearest(usage(t, seconds), possibleTiers(t.Options, sets)...)
	return quote.Total, err
}

// insert writes a task after its hold, so that a refused hold leaves nothing.
func (s *core) insert(ctx context.Context, tx *sql.Tx, r Request, idempotencyKey string, prices billing.Prices, sets []spec.Available) (Task, error) {
	r.ID = cmp.Or(r.ID, NewID())
	sets, err := naming(r.Extras.Model, sets)
	if err != nil {
		return Task{}, err
	}
	if err := checkLanguage(spec.Options(r.Options), r.Extras.Languages, sets); err != nil {
		return Task{}, err
	}
	if r.Extras.Translate && slices.ContainsFunc(sets, func(a spec.Available) bool { return !a.Translates }) {
		return Task{}, ErrTranslation
	}
	now := s.now()
	t := Task{
		ID: r.ID, AccountID: r.Account, Status: StatusProcessing, AudioFilename: r.Filename, AudioSourceType: SourceURL,
		AllowTraining: r.AllowTraining, Options: r.Options, Extras: r.Extras, BatchMode: r.Batch, CreatedAt: now, UpdatedAt: now,
	}
	price, err := s.firstPrice(t, r.Seconds, prices, sets)
	if err != nil {
		return Task{}, err
	}
	var url, host, key, size, md5 any
	lane := laneOf(r.Batch)
	switch {
	case r.Extras.Live:
		t.AudioSourceType = SourceBase64
	case r.Audio != nil:
		t.AudioSourceType, t.AudioSize, t.AudioMD5 = SourceBase64, &r.Audio.Size, &r.Audio.MD5
		key, size, md5 = r.Audio.Key, r.Audio.Size, r.Audio.MD5
	default:
		url, host, lane = r.URL, queue.HostOf(r.URL), queue.LaneFetch
	}
	if err := s.billing.Hold(ctx, tx, r.Account, t.ID, price, r.Batch); err != nil {
		return Task{}, err
	}
	if err := accounts.Permitted(ctx, tx, now, r.Account, r.Key); err != nil { // the upload may have taken minutes
		return Task{}, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO tasks (id, account_id, status, phase, lane, run_at, queued_at,
		audio_filename, audio_source_type, audio_url, audio_blob, audio_size, audio_md5, allow_training, options,
		callback_url, callback_secret, batch_mode, price_id, audio_host, idempotency_key, extras, key_id, sound_seconds, created_at, updated_at)
		VALUES ($1, $2, 'processing', 'queued', $3, 0, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $4, $4)`,
		t.ID, t.AccountID, lane, db.Micros(now), t.AudioFilename, t.AudioSourceType, url, key, size, md5, t.AllowTraining, db.JSON{V: r.Options},
		db.Optional(r.CallbackURL), db.Optional(r.CallbackSecret), t.BatchMode, prices.ID, host, db.Optional(idempotencyKey), db.OptionalJSON(r.Extras), db.Optional(r.Key), db.Optional(r.Seconds))
	if err != nil {
		return Task{}, err
	}
	if r.Extras.Live {
		return t, nil
	}
	return t, s.queue.Added(ctx, tx, queue.Ref{TaskID: t.ID, AccountID: t.AccountID, Lane: lane})
}

// Idempotency identifies a request: sending it again within 24 hours returns
// its first response unless the task has been deleted. Zero disables this.
type Idempotency struct {
	Key      string
	BodyHash string // hash of method, path and body
}

// claimKey claims an idempotency key in this transaction. If the key was used
// before, replayed is true and items is the first response.
func (s *core) claimKey(ctx context.Context, tx *sql.Tx, account string, idem Idempotency) (items []Item, replayed bool, err error) {
	now := s.now()
	result, err := tx.ExecContext(ctx, `INSERT INTO idempotency (account_id, key, body_hash, answer, created_at) VALUES ($1, $2, $3, '', $4)
		ON CONFLICT (account_id, key) DO UPDATE SET body_hash = excluded.body_hash, answer = '', created_at = excluded.created_at
		WHERE idempotency.created_at < $5`, account, idem.Key, idem.BodyHash, db.Micros(now), db.Micros(now.Add(-idempotencyAge)))
	if err != nil {
		return nil, false, err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return nil, false, err
	}
	var hash string
	err = tx.QueryRowContext(ctx, "SELECT body_hash, answer FROM idempotency WHERE account_id = $1 AND key = $2", account, idem.Key).Scan(&hash, db.ScanJSON(&items))
	if err == nil && hash != idem.BodyHash {
		err = ErrIdempotencyConflict
	}
	return items, err == nil, err
}

// keyUsed reports whether a request with the idempotency key made tasks of the
// account in the last 24 hours.
func (s *core) keyUsed(ctx context.Context, account, key string) (bool, error) {
	var used bool
	err := s.Config.DB.Read().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM idempotency WHERE account_id = $1 AND key = $2 AND created_at >= $3)",
		account, key, db.Micros(s.now().Add(-idempotencyAge))).Scan(&used)
	return used, s.wrap("idempotency key", err)
}

// forgetAnswer removes a deleted task from the answer of its idempotency key.
// The key stays used: the same request makes no second task.
func (s *core) forgetAnswer(ctx context.Context, tx *sql.Tx, r row) error {
	if r.idempotencyKey == "" {
		return nil
	}
	var items []Item
	err := tx.QueryRowContext(ctx, "SELECT answer FROM idempotency WHERE account_id = $1 AND key = $2"+s.Config.DB.ForUpdate(), r.AccountID, r.idempotencyKey).Scan(db.ScanJSON(&items))
	if found, err := db.Found(err); !found {
		return err // its 24 hours are over
	}
	i := slices.IndexFunc(items, func(item Item) bool { return item.Task != nil && item.Task.ID == r.ID })
	if i < 0 {
		return nil // the key has been used again since
	}
	items[i] = Item{Error: ErrDeleted.Error()}
	return s.setAnswer(ctx, tx, r.AccountID, r.idempotencyKey, items)
}

func (s *core) setAnswer(ctx context.Context, tx *sql.Tx, account, key string, items []Item) error {
	return db.Do(ctx, tx, "UPDATE idempotency SET answer = $3 WHERE account_id = $1 AND key = $2", account, key, db.JSON{V: items})
}
