package tasks

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/spec"
)

// Prober reads a file's length without decoding all of it.
type Prober interface {
	Probe(ctx context.Context, path, filename string) (seconds float64, err error)
}

const (
	probeTimeout = 30 * time.Second // limits the probe of one upload

	// maxProbesWaiting limits the uploads that wait for a probe; further ones
	// are held for as tasks of unknown length.
	maxProbesWaiting = 256
)

// newProbing returns the gate at which uploads wait for a probe.
func newProbing() *fairuse.Gate {
	places := max(2, runtime.GOMAXPROCS(0))
	return fairuse.NewGate(places, places-1, maxProbesWaiting) // one account leaves a slot to the others
}

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

// Measure returns the length in seconds of the audio stored under key, 0 if it
// is unknown: the worker reports the defects of a recording. Accounts take
// turns, because each probe may start a process. Errors are those of Admit, or
// the context's.
func (s *Owners) Measure(ctx context.Context, account, idempotencyKey, key, filename string) (float64, error) {
	if s.Config.Prober == nil {
		return 0, nil
	}
	if err := s.Admit(ctx, account, idempotencyKey); err != nil {
		return 0, err
	}
	seconds, err := s.probe(ctx, account, key, filename)
	if gone := ctx.Err(); gone != nil {
		return 0, gone
	}
	if err != nil || !(seconds >= 0) {
		s.Config.Logger.DebugContext(ctx, "upload not probed", "account", account, "key", key, "error", err)
		return 0, nil
	}
	// A container may state any length; audio beyond the limit is never
	// decoded.
	return min(seconds, spec.MaxAudioSeconds), nil
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
