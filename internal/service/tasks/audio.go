package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
)

// Audio is the recording of a task, as it was submitted. It is an
// io.ReadSeekCloser; a read after a seek opens the stored file at the new
// offset.
type Audio struct {
	Task Task

	at, size int64
	open     func(offset int64) (io.ReadCloser, error)
	file     io.ReadCloser // nil before the first read and after a seek
}

// Audio opens the recording of a task. The service keeps it until the task is
// final and for Config.KeepAudio after that. The caller closes it. Errors wrap
// ErrNotFound or ErrForbidden, or ErrNoAudio if the recording was deleted.
func (s *Service) Audio(ctx context.Context, account, id string) (*Audio, error) {
	t, err := s.Get(ctx, account, id)
	if err != nil {
		return nil, err
	}
	var key sql.NullString
	err = s.DB.Read().QueryRowContext(ctx, "SELECT audio_blob FROM tasks WHERE id = $1", id).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) || (err == nil && (key.String == "" || t.AudioSize == nil)) {
		return nil, fmt.Errorf("%w: %s", ErrNoAudio, id)
	}
	if err != nil {
		return nil, s.wrap("audio", err)
	}
	return &Audio{Task: t, size: *t.AudioSize, open: func(offset int64) (io.ReadCloser, error) { return s.Blobs.OpenAt(ctx, key.String, offset) }}, nil
}

// Size returns the recording's length in bytes.
func (a *Audio) Size() int64 { return a.size }

// Read implements io.Reader.
func (a *Audio) Read(p []byte) (int, error) {
	if a.at >= a.size {
		return 0, io.EOF
	}
	if a.file == nil {
		file, err := a.open(a.at)
		if err != nil {
			return 0, err
		}
		a.file = file
	}
	n, err := a.file.Read(p)
	a.at += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (a *Audio) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += a.at
	case io.SeekEnd:
		offset += a.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("tasks: seek to %d", offset)
	}
	if offset != a.at && a.file != nil {
		a.file.Close()
		a.file = nil
	}
	a.at = offset
	return offset, nil
}

// Close implements io.Closer.
func (a *Audio) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
