package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
)

const metricsInterval = 5 * time.Second

// Work runs the tasks of a service with Config's Engine until ctx is done or
// the service that started this process is gone. A process of Config.Workers
// does nothing else; the tables must be up to date. The process must end when
// Work returns.
func Work(ctx context.Context, c Config) error {
	if c.KeepSchema = true; c.Engine == nil {
		return fmt.Errorf("service: %w", &ConfigError{"Engine", errors.New("is required")})
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	c = c.withDefaults()
	ctx, stop := worker.Supervised(ctx)
	defer stop()
	counts := describe(metrics.NewWorker("worker-"+strconv.Itoa(os.Getpid())), c.Version)
	s, err := openState(ctx, c, counts)
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := newWorker(c, s, counts)
	if err != nil {
		return err
	}
	written, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	if c.Folder != "" {
		writer.Go(func() {
			counts.WriteFiles(written, filepath.Join(c.Folder, state.MetricsFolder), metricsInterval, c.Logger)
		})
	}
	defer writer.Wait()
	defer cancel()
	return w.Run(ctx)
}

// ExitCode returns the code with which a process must end after Work returned
// an error. It lets the service distinguish an unavailable database or store
// from a crash.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case tasks.Outage(err):
		return worker.ExitAway
	}
	return 1
}
