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
	"github.com/otograph/otograph/internal/metrics"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/worker"
	"github.com/otograph/otograph/internal/terminal"
)

// metricsInterval is how often a worker writes its metrics down.
const metricsInterval = 5 * time.Second

type workCmd struct {
	storeFlags
	modelFlags
	servedModelFlags
	workStartFlags
	cageFlags
	deviceFlag
	Cores          int           `placeholder:"N" help:"Cores that this worker uses; default: all."`
	KeepAudio      time.Duration `placeholder:"DURATION" help:"Keep audio for this time after its task ends; default: delete it immediately."`
	OptimizedWords bool          `help:"Also include words with their times in the results of the optimized tier, which the specification limits to segments."`
	Grace          time.Duration `default:"25s" help:"Time that a running task may take to finish at shutdown."`
	Nice           int           `placeholder:"N" help:"Lower the worker's priority by 1 to 19, as nice does."`
	LogLevel       slog.Level    `default:"info" env:"OTOGRAPH_LOG" help:"debug, info, warn or error."`
}

// Run works on tasks until it is told to end, or the supervisor that started it is gone.
func (c *workCmd) Run(ctx context.Context) error {
	err := c.work(ctx)
	if tasks.Outage(err) {
		return &awayError{err}
	}
	return err
}

// awayError is an error of a database or store that is away. The supervisor
// tells it by the exit code from a worker that crashed.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

func (c *workCmd) work(ctx context.Context) error {
	ctx, stop := worker.Supervised(ctx)
	defer stop()
	log := newLog(c.LogLevel)
	if err := c.check(log); err != nil {
		return err
	}
	if c.Nice > 0 {
		if err := lowerPriority(min(c.Nice, 19)); err != nil {
			log.Warn("the worker runs at normal priority", "error", err)
		}
	}
	counts := metrics.New(nil)
	counts.Build(version)
	counts.Cage(cageParts(audio.Sandbox()))
	s, err := c.storeFlags.open(ctx, opening{
		log: log, keepAudio: c.KeepAudio, wait: c.DatabaseWait, timeout: c.DatabaseLimit, files: true, metrics: counts,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	set, err := c.modelFlags.open()
	if err != nil {
		return err
	}
	if err := c.checkModels(set, log); err != nil {
		return err
	}
	voices := newVoiceModel(set, log)
	pipeline, err := otograph.Open(set, otograph.WithCores(c.Cores), otograph.WithDevice(string(c.Device)),
		otograph.WithLogger(log), otograph.WithOptimizedWords(c.OptimizedWords),
		otograph.WithOptimizedLanguages(c.languages()...), otograph.WithCascade(0), otograph.WithConfidences(false))
	if err != nil {
		return err
	}
	defer pipeline.Close()
	written, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		counts.WriteFiles(written, filepath.Join(s.folder, metricsFolder), "worker-"+strconv.Itoa(os.Getpid()), metricsInterval, log)
	})
	defer writer.Wait()
	defer cancel()
	w, err := worker.New(s.tasks, worker.Config{
		Engine: counts.MeasureEngine(&pipelineEngine{pipeline: pipeline, set: workID(set, c.OptimizedWords, c.OptimizedLanguages), voices: voices, log: log}), Prober: audioProber{audio.Options{}},
		Version: version, Available: set.Available(c.languages()...), Grace: c.Grace, Models: modelFiles(set), Trouble: counts.Trouble("worker"),
	})
	if err != nil {
		return err
	}
	err = w.Run(ctx)
	if errors.Is(err, worker.ErrHung) {
		// Something native will never return: leave without waiting for it.
		log.Error("a native call did not return", "error", err)
		os.Exit(exitFailed)
	}
	return err
}

func newLog(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(terminal.JSON(os.Stderr), &slog.HandlerOptions{Level: level}))
}
