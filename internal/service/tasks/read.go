package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
)

const taskColumns = `id, account_id, status, audio_filename, audio_source_type, audio_size, audio_md5, audio_seconds, allow_training,
	error_message, warnings, language, speakers, options, extras, batch_mode, created_at, updated_at, finished_at`

type scanner interface{ Scan(...any) error }

func scanTask(row scanner, more ...any) (Task, error) {
	var t Task
	var warnings, language, extras sql.NullString
	var options string
	var created, updated int64
	var finished *int64
	err := row.Scan(append([]any{
		&t.ID, &t.AccountID, &t.Status, &t.AudioFilename, &t.AudioSourceType, &t.AudioSize, &t.AudioMD5, &t.AudioDuration, &t.AllowTraining,
		&t.ErrorMessage, &warnings, &language, &t.Speakers, &options, &extras, &t.BatchMode, &created, &updated, &finished,
	}, more...)...)
	if err != nil {
		return t, err
	}
	if warnings.Valid {
		if err := json.Unmarshal([]byte(warnings.String), &t.Warnings); err != nil {
			return t, fmt.Errorf("warnings of %s: %w", t.ID, err)
		}
	}
	t.Language = language.String
	t.CreatedAt, t.UpdatedAt = db.Time(created), db.Time(updated)
	if finished != nil {
		t.FinishedAt = new(db.Time(*finished))
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
	var result string
	t, err := scanTask(s.DB.Read().QueryRowContext(ctx, "SELECT "+taskColumns+", COALESCE(result_blob, '') FROM tasks WHERE id = $1", id), &result)
	if errors.Is(err, sql.ErrNoRows) {
		return Task{}, "", fmt.Errorf("%w: %.40q", ErrNotFound, id)
	}
	if err != nil {
		return Task{}, "", s.wrap("get", err)
	}
	if t.AccountID != account {
		return Task{}, "", fmt.Errorf("%w: %s", ErrForbidden, id)
	}
	return t, result, nil
}

// Wait waits until the task's state is final and returns the task, or ctx's
// error.
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
