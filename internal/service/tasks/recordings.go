package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
)

// Audio is the recording of a task, as it was submitted. It is an
// io.ReadSeekCloser; a read after a seek opens the file there.
type Audio struct {
	Task Task
	Size int64 // bytes

	at   int64
	open func(offset int64) (io.ReadCloser, error)
	file io.ReadCloser // nil before the first read and after a seek
}

// Audio opens the recording of a task. The service keeps it until the task is
// final and for Config.KeepAudio after that. The caller closes it. Errors wrap
// ErrNotFound or ErrForbidden, or ErrNoAudio if the recording was deleted.
func (s *Owners) Audio(ctx context.Context, account, id string) (*Audio, error) {
	t, key, _, err := s.get(ctx, account, id)
	if err != nil {
		return nil, err
	}
	if key == "" || t.AudioSize == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoAudio, id)
	}
	return &Audio{Task: t, Size: *t.AudioSize, open: func(offset int64) (io.ReadCloser, error) { return s.Config.Blobs.OpenAt(ctx, key, offset) }}, nil
}

// Read implements io.Reader.
func (a *Audio) Read(p []byte) (int, error) {
	if a.at >= a.Size {
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
	if errors.Is(err, io.EOF) && a.at < a.Size {
		err = fmt.Errorf("tasks: the stored recording of %s ends early: %w", a.Task.ID, io.ErrUnexpectedEOF)
	}
	return n, err
}

// Seek implements io.Seeker.
func (a *Audio) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += a.at
	case io.SeekEnd:
		offset += a.Size
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

// ReferenceKey returns the key of the recording of a task's n-th known voice.
// The recording is deleted when the task ends, like the checkpoints.
func ReferenceKey(task string, n int) string {
	return fmt.Sprintf("%svoices/%d", CheckpointPrefix(task), n)
}

// ReferencesField is the form field with the recordings of known speakers.
const ReferencesField = "known_speaker_references[]"

// ReferenceRefusal returns the error message of a task whose n-th recording
// (from 0) of a known speaker is unusable, like for an invalid field.
func ReferenceRefusal(n int, why string) string {
	return fmt.Sprintf("%s: number %d: %s", ReferencesField, n+1, why)
}

// NewReference begins the file of the n-th known voice of a task to be created
// with the given id. The caller commits or aborts it.
func (s *Owners) NewReference(ctx context.Context, task string, n int) (*blob.Writer, error) {
	return s.Config.Blobs.Create(ctx, ReferenceKey(task, n))
}

// DropReferences deletes the recordings of n known voices of a task that was
// not created. Failures are logged; the clean-up deletes remaining files.
func (s *Owners) DropReferences(ctx context.Context, task string, n int) {
	for i := range n {
		s.DropAudio(ctx, ReferenceKey(task, i))
	}
}

// Prober reads a file's length without decoding all of it.
type Prober interface {
	Probe(ctx context.Context, path, filename string) (seconds float64, err error)
}

const (
	probeTimeout = 30 * time.Second // limits the probe of one recording

	// maxProbesWaiting limits the recordings that wait for a probe; further
	// recordings get the hold of tasks of unknown length.
	maxProbesWaiting = 256
)

// Admit refuses a request of an account that cannot pay for any task, before its
// audio is read or probed, unless its idempotency key, "" for none, has a
// response. The error wraps billing.ErrInsufficientBalance.
func (s *Owners) Admit(ctx context.Context, account, idempotencyKey string) error {
	err := s.billing.Solvent(ctx, account)
	if idempotencyKey == "" || !errors.Is(err, billing.ErrInsufficientBalance) {
		return err
	}
	used, failed := s.keyUsed(ctx, account, idempotencyKey)
	if used || failed != nil {
		return failed
	}
	return err
}

// Measure admits an account's upload and returns its Length, at most
// spec.MaxAudioSeconds. It returns Admit's errors, or the context's error.
func (s *Owners) Measure(ctx context.Context, account, idempotencyKey, key, filename string) (float64, error) {
	if s.Config.Prober == nil {
		return 0, nil
	}
	if err := s.Admit(ctx, account, idempotencyKey); err != nil {
		return 0, err
	}
	seconds := s.Length(ctx, account, key, filename)
	// A container may state any length; audio beyond the limit is not decoded.
	return min(seconds, spec.MaxAudioSeconds), ctx.Err()
}

// Length returns the length in seconds of the audio stored under key, 0 if it
// is unknown: the worker reports defects. Accounts take turns, because a probe
// may start a process.
func (s *core) Length(ctx context.Context, account, key, filename string) float64 {
	if s.Config.Prober == nil || ctx.Err() != nil {
		return 0
	}
	seconds, err := s.probe(ctx, account, key, filename)
	if err != nil || !(seconds >= 0) {
		s.Config.Logger.DebugContext(ctx, "recording not probed", "account", account, "key", key, "error", err)
		return 0
	}
	return seconds
}

func (s *core) probe(ctx context.Context, account, key, filename string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	leave, err := s.probing.Enter(ctx, account)
	if err != nil {
		return 0, err
	}
	defer leave()
	file, release, err := s.Config.Blobs.Local(ctx, key, s.Config.TempDir)
	if err != nil {
		return 0, err
	}
	defer release()
	return s.Config.Prober.Probe(ctx, file, filename)
}
