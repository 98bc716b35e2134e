package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/otograph/otograph/internal/backoff"
	"github.com/otograph/otograph/tasks"
)

// Pauses of a worker in trouble between two probes: the first, doubled up to the
// longest.
const (
	firstProbe   = time.Second
	longestProbe = time.Minute
)

// probeSize is how many bytes a disk must take before tasks are claimed again.
const probeSize = 1 << 20

// ours reports an error that is trouble of the service and not of the task: the
// database, the file store, a disk, memory or descriptors.
func ours(err error) bool {
	if tasks.Outage(err) {
		return true
	}
	for _, known := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// recover waits until disk, file store and database can be used again. It
// reports false when ctx is done before.
func (w *Worker) recover(ctx context.Context) bool {
	log := w.service.Log()
	for pause := firstProbe; ; pause = min(2*pause, longestProbe) {
		if !backoff.Sleep(ctx, pause) {
			return false
		}
		err := w.probe(ctx)
		if err == nil {
			log.InfoContext(ctx, "trouble is over: claiming again", "worker", w.config.ID)
			w.troubled = false
			return true
		}
		log.WarnContext(ctx, "in trouble: nothing is claimed", "worker", w.config.ID, "error", err)
	}
}

// probe writes to the disk and to the file store and reads the database.
func (w *Worker) probe(ctx context.Context) error {
	if err := probeDisk(w.config.TempDir); err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	blobs := w.service.Blobs()
	file, err := blobs.Create(ctx, tasks.CheckpointPrefix(w.config.ID)+"probe")
	if err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	defer file.Abort()
	if _, err := file.Write(make([]byte, probeSize)); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	info, err := file.Commit()
	if err == nil {
		err = blobs.Delete(ctx, info.Key)
	}
	if err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	_, _, err = w.service.Queue().NextDue(ctx)
	return err
}

// probeDisk writes a file to dir and removes it.
func probeDisk(dir string) error {
	f, err := os.CreateTemp(dir, "otograph-probe-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Close())
}
