package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Part is a resource that every task needs and that can fail.
type Part string

// Resources that can fail.
const (
	PartDisk     Part = "disk"     // this machine's
	PartMemory   Part = "memory"   // this machine's memory or file descriptors
	PartStore    Part = "store"    // the file store
	PartDatabase Part = "database" //
	PartModels   Part = "models"   // the files of the engine's models
)

// Parts lists all resources that can fail.
var Parts = []Part{PartDisk, PartMemory, PartStore, PartDatabase, PartModels}

// Pauses between probes of a failing resource: the first, doubled to the last.
const (
	firstProbe   = time.Second
	longestProbe = time.Minute
)

// probeSize is the bytes that the disk must accept before the next claim.
const probeSize = 1 << 20

// partOf returns the resource that caused an error, or other.
func partOf(err error, other Part) Part {
	switch {
	case errors.As(err, new(modelsError)):
		return PartModels
	case db.Outage(err):
		return PartDatabase
	case blob.Outage(err):
		return PartStore
	}
	for part, errs := range map[Part][]error{
		PartDisk:   {syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO},
		PartMemory: {syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE},
	} {
		if slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) }) {
			return part
		}
	}
	return other
}

// modelsError is the error of an attempt while the models were unreadable.
type modelsError struct{ error }

func (e modelsError) Unwrap() error { return e.error }

// breaker stops a member of the queue from claiming while a resource fails. It
// is for use by one goroutine.
type breaker struct {
	service *tasks.Runs
	id      string                      // of the member
	dir     string                      // on the disk that is probed
	models  func(context.Context) error // nil if this member has no models
	report  func(Part, time.Time)       // called at each change; the zero time means that the resource works again
	part    Part                        // "" if nothing fails
	since   time.Time
}

func (b *breaker) open(part Part) {
	if b.part == part {
		return
	}
	if b.part == "" {
		b.since = time.Now()
	} else {
		b.report(b.part, time.Time{})
	}
	b.part = part
	b.report(part, b.since)
}

// wait returns true immediately if nothing fails; otherwise it waits until all
// resources can be used again. It returns false if ctx is done first.
func (b *breaker) wait(ctx context.Context) bool {
	log := b.service.Config.Logger
	for pause := firstProbe; b.part != ""; pause = min(2*pause, longestProbe) {
		log.WarnContext(ctx, "claiming paused by a failure", "member", b.id, "part", string(b.part), "since", b.since.UTC().Format(spec.TimeFormat), "next_probe", pause.String())
		if !backoff.Sleep(ctx, pause) {
			return false
		}
		part, err := b.probe(ctx)
		if err == nil {
			log.InfoContext(ctx, "failure is over: claiming again", "member", b.id, "part", string(b.part), "lasted", time.Since(b.since).Round(time.Second).String())
			b.report(b.part, time.Time{})
			b.part = ""
			return true
		}
		log.WarnContext(ctx, "probe failed", "member", b.id, "part", string(part), "error", err)
		b.open(part)
	}
	return true
}

// claim returns the claim of next, nil if there is none. Before, if a claim may
// have been made without confirmation, it hands back the member's claims but for
// the tasks in progress. A failure opens the breaker.
func (b *breaker) claim(ctx context.Context, unconfirmed bool, inProgress []string, next func() (*tasks.Claim, error)) (c *tasks.Claim, err error) {
	if unconfirmed {
		err = b.service.HandBack(ctx, b.id, inProgress...)
	}
	if err == nil {
		c, err = next()
	}
	if err != nil && ctx.Err() == nil {
		b.service.Config.Logger.WarnContext(ctx, "nothing claimed", "member", b.id, "error", err)
		b.open(partOf(err, PartDatabase))
	}
	return c, err
}

// probe writes to the disk and to the file store, reads the database and checks
// the models. It returns the resource that failed.
func (b *breaker) probe(ctx context.Context) (Part, error) {
	if err := probeDisk(b.dir); err != nil {
		return partOf(err, PartDisk), fmt.Errorf("disk: %w", err)
	}
	blobs, key := b.service.Config.Blobs, tasks.CheckpointPrefix(b.id)+"probe"
	err := blobs.Put(ctx, key, bytes.NewReader(make([]byte, probeSize)))
	if err == nil {
		err = blobs.Delete(ctx, key)
	}
	if err != nil {
		return partOf(err, PartStore), fmt.Errorf("file store: %w", err)
	}
	if _, _, err := b.service.Queue().NextDue(ctx); err != nil {
		return PartDatabase, fmt.Errorf("database: %w", err)
	}
	if b.models != nil {
		if err := b.models(ctx); err != nil {
			return PartModels, fmt.Errorf("models: %w", err)
		}
	}
	return "", nil
}

func probeDisk(dir string) error {
	f, err := os.CreateTemp(dir, "otograph-probe-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Close())
}
