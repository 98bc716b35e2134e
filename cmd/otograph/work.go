package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/tasks/worker"
)

// audioRedirects is how many redirects a download of audio follows.
const audioRedirects = 5

// metricsInterval is how often a worker writes its metrics down.
const metricsInterval = 5 * time.Second

type workCmd struct {
	storeFlags
	modelFlags
	workStartFlags
	outboundFlags
	cageFlags
	Cores     int           `placeholder:"N" help:"Cores that this worker uses; default: all."`
	KeepAudio time.Duration `placeholder:"DURATION" help:"Keep audio this long after the end of its task; default: delete it then."`
	Grace     time.Duration `default:"25s" help:"How long a running task may go on when the worker is asked to end."`
	Nice      int           `placeholder:"N" help:"Give way to other processes: 1 to 19, as nice takes it."`
	LogLevel  slog.Level    `default:"info" env:"OTOGRAPH_LOG" help:"debug, info, warn or error."`
}

// Run works on tasks until it is told to end, or the supervisor that started it is gone.
func (c *workCmd) Run(ctx context.Context) error {
	ctx, stop := worker.Supervised(ctx)
	defer stop()
	log := newLog(c.LogLevel)
	if err := c.check(log); err != nil {
		return err
	}
	if c.Nice > 0 {
		if err := lowerPriority(min(c.Nice, 19)); err != nil {
			log.Warn("the worker runs at the usual priority", "error", err)
		}
	}
	metrics := httpapi.NewMetrics(nil)
	metrics.Build(version)
	s, err := c.storeFlags.open(ctx, opening{
		log: log, keepAudio: c.KeepAudio, wait: c.DatabaseWait, timeout: c.DatabaseLimit, files: true, metrics: metrics,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	set, err := c.modelFlags.open()
	if err != nil {
		return err
	}
	pipeline, err := otograph.Open(set, otograph.WithCores(c.Cores), otograph.WithLogger(log))
	if err != nil {
		return err
	}
	defer pipeline.Close()
	client, err := c.client(audioRedirects)
	if err != nil {
		return err
	}
	defer client.Close()
	written, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		metrics.WriteFiles(written, filepath.Join(s.folder, metricsFolder), "worker-"+strconv.Itoa(os.Getpid()), metricsInterval, log)
	})
	defer writer.Wait()
	defer cancel()
	w, err := worker.New(s.tasks, worker.Config{
		Engine: httpapi.MeasureEngine(&pipelineEngine{pipeline: pipeline, set: modelSetID(set)}, metrics), Prober: audioProber{audio.Options{}},
		HTTP: client, Version: version, Available: set.Available(), Grace: c.Grace,
	})
	if err != nil {
		return err
	}
	err = w.Run(ctx)
	if errors.Is(err, worker.ErrHung) {
		// Something native will never return: leave without waiting for it.
		log.Error("a native call did not come back", "error", err)
		os.Exit(exitFailed)
	}
	return err
}

func newLog(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
