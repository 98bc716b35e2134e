package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/spec"
)

const taskColumns = `id, account_id, status, audio_filename, audio_source_type, audio_size, audio_md5, audio_seconds, allow_training,
	error_message, options, extras, batch_mode, created_at, updated_at, finished_at`

type scanner interface{ Scan(...any) error }

func scanTask(row scanner, more ...any) (Task, error) {
	var t Task
	var size, finished sql.NullInt64
	var md5, message, extras sql.NullString
	var seconds sql.NullFloat64
	var options string
	var created, updated int64
	err := row.Scan(append([]any{
		&t.ID, &t.AccountID, &t.Status, &t.AudioFilename, &t.AudioSourceType, &size, &md5, &seconds, &t.AllowTraining,
		&message, &options, &extras, &t.BatchMode, &created, &updated, &finished,
	}, more...)...)
	if err != nil {
		return t, err
	}
	if size.Valid {
		t.AudioSize = &size.Int64
	}
	if md5.Valid {
		t.AudioMD5 = &md5.String
	}
	if seconds.Valid {
		t.AudioDuration = &seconds.Float64
	}
	if message.Valid {
		t.ErrorMessage = &message.String
	}
	t.CreatedAt, t.UpdatedAt = db.Time(created), db.Time(updated)
	if finished.Valid {
		at := db.Time(finished.Int64)
		t.FinishedAt = &at
	}
	if t.Extras, err = readExtras(extras); err != nil {
		return t, err
	}
	if err := json.Unmarshal([]byte(options), &t.Options); err != nil {
		return t, fmt.Errorf("options of %s: %w", t.ID, err)
	}
	return t, nil
}

// Get returns a task of an account. Errors wrap ErrNotFound or ErrForbidden.
func (s *Service) Get(ctx context.Context, account, id string) (Task, error) {
	t, _, err := s.get(ctx, account, id)
	return t, err
}

func (s *Service) get(ctx context.Context, account, id string) (Task, string, error) {
	var result sql.NullString
	t, err := scanTask(s.db.Read().QueryRowContext(ctx, "SELECT "+taskColumns+", result_blob FROM tasks WHERE id = $1", id), &result)
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, "", fmt.Errorf("%w: %.40q", ErrNotFound, id)
	}
	if err != nil {
		return Task{}, "", s.wrap("get", err)
	}
	if t.AccountID != account {
		return Task{}, "", fmt.Errorf("%w: %s", ErrForbidden, id)
	}
	return t, result.String, nil
}

// Wait returns the task once its state is final, or with ctx's error.
func (s *Service) Wait(ctx context.Context, account, id string) (Task, error) {
	t, err := s.Get(ctx, account, id)
	if err != nil || t.Final() {
		return t, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	states, err := s.Follow(following, account, id)
	if err != nil {
		return t, err
	}
	for {
		select {
		case <-ctx.Done():
			return t, context.Cause(ctx)
		case state := <-states:
			if state.Final || state.Gone {
				return s.Get(ctx, account, id)
			}
		}
	}
}

// Result is the result of a done task, open for reading. Close it.
type Result struct {
	Task Task
	Bill billing.Bill
	file io.ReadCloser
	body *zstd.Decoder
}

// Result opens the result of a done task. Errors wrap ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Service) Result(ctx context.Context, account, id string) (*Result, error) {
	t, key, err := s.done(ctx, account, id)
	if err != nil {
		return nil, err
	}
	bill, err := s.billing.Bill(ctx, account, id)
	if err != nil {
		return nil, err
	}
	file, err := s.blobs.Open(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		if _, err := s.Get(ctx, account, id); err != nil {
			return nil, err // deleted at this moment
		}
	}
	if err != nil {
		return nil, s.wrap("result", err)
	}
	body, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		file.Close()
		return nil, s.wrap("result", err)
	}
	return &Result{Task: t, Bill: bill, file: file, body: body}, nil
}

// done returns a task that is done, and the key of its result. Errors wrap
// ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Service) done(ctx context.Context, account, id string) (t Task, key string, err error) {
	t, key, err = s.get(ctx, account, id)
	if err == nil && t.Status != StatusDone {
		err = fmt.Errorf("%w: it is %s", ErrNotDone, t.Status)
	}
	return t, key, err
}

// Waveform opens the waveform of a done task: audio.PeaksPerSecond bytes a second,
// 255 being the loudest of all. Close it. Errors wrap ErrNotFound (also for a task
// whose worker left none), ErrForbidden or ErrNotDone.
func (s *Service) Waveform(ctx context.Context, account, id string) (io.ReadCloser, error) {
	_, key, err := s.done(ctx, account, id)
	if err != nil {
		return nil, err
	}
	file, err := s.blobs.Open(ctx, waveformKey(key))
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%w: no waveform of %s", ErrNotFound, id)
	}
	return file, s.wrap("waveform", err)
}

// Additions returns what a done task's result has beside the specification's, nil
// for nothing. Errors wrap ErrNotFound, ErrForbidden or ErrNotDone.
func (s *Service) Additions(ctx context.Context, account, id string) (*spec.Additions, error) {
	_, key, err := s.done(ctx, account, id)
	if err != nil {
		return nil, err
	}
	file, err := s.blobs.Open(ctx, additionsKey(key))
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.wrap("additions", err)
	}
	defer file.Close()
	var a spec.Additions
	if err := json.NewDecoder(file).Decode(&a); err != nil {
		return nil, fmt.Errorf("tasks: additions to the result of %s: %w", id, err)
	}
	return &a, nil
}

// billRecord is the specification's billing block of a task result.
type billRecord struct {
	Mode            spec.Tier      `json:"mode"`
	BillableMinutes int64          `json:"billable_minutes"`
	Detail          billing.Detail `json:"detail"`
	Amount          billing.Money  `json:"amount"`
	Balance         billing.Money  `json:"balance"`
}

// WriteTo writes the specification's Task result as JSON, streaming. It can be called once.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	bill, err := json.Marshal(billRecord(r.Bill))
	if err != nil {
		return 0, err
	}
	out := &countingWriter{w: w}
	duration, md5 := 0.0, ""
	if r.Task.AudioDuration != nil {
		duration = *r.Task.AudioDuration
	}
	if r.Task.AudioMD5 != nil {
		md5 = *r.Task.AudioMD5
	}
	fmt.Fprintf(out, `{"task_id":%q,"audio_duration":%s,"audio_md5":%q,"billing":%s`, r.Task.ID, formatSeconds(duration), md5, bill)
	// The stored result is a JSON object without spaces: additions go before
	// its first key.
	var brace [2]byte
	if _, err := io.ReadFull(r.body, brace[:]); err != nil {
		return out.n, fmt.Errorf("tasks: result of %s: %w", r.Task.ID, err)
	}
	if brace[1] != '}' {
		_, _ = out.Write([]byte{','})
	}
	_, _ = out.Write(brace[1:])
	if out.err != nil {
		return out.n, out.err
	}
	_, err = io.Copy(out, r.body)
	return out.n, err
}

// Close closes the file.
func (r *Result) Close() error {
	r.body.Close()
	return r.file.Close()
}

// formatSeconds writes a length as exactly as it is billed: 60.004 s are two
// minutes.
func formatSeconds(seconds float64) string {
	return strconv.FormatFloat(math.Round(seconds*1e4)/1e4, 'f', -1, 64)
}

type countingWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}
