package tasks

import (
	"context"
	"runtime"
	"time"

	"github.com/otograph/otograph/internal/service/gate"
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
func newProbing() *gate.Gate {
	places := max(2, runtime.GOMAXPROCS(0))
	return gate.NewGate(places, places-1, maxProbesWaiting) // one account leaves a slot to the others
}

// Probes reports whether there is a Prober.
func (s *Service) Probes() bool { return s.Prober != nil }

// Probe returns the length in seconds of the audio stored under key, if the
// Prober can determine it. Accounts take turns, because each probe may start a
// process.
func (s *Service) Probe(ctx context.Context, account, key, filename string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	leave, err := s.probing.Enter(ctx, account)
	if err != nil {
		return 0, err
	}
	defer leave()
	file, release, err := s.Blobs.Local(ctx, key, s.TempDir)
	if err != nil {
		return 0, err
	}
	defer release()
	seconds, err := s.Prober.Probe(ctx, file, filename)
	if err != nil || !(seconds >= 0) {
		return 0, err
	}
	// A container may state any length; audio beyond the limit is never
	// decoded.
	return min(seconds, spec.MaxAudioSeconds), nil
}
