package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/service/engine"
)

type workCmd struct {
	Cores int `placeholder:"N" help:"Cores that this worker uses; default: all."`
	taskFlags
	Grace    time.Duration `default:"25s" help:"Time that a running task may take to finish at shutdown."`
	Live     string        `hidden:"" placeholder:"SOCKET" help:"Serve the live sessions of a service instead of tasks."`
	Nice     int           `placeholder:"N" help:"Lower the worker's priority by 1 to 19, as nice does."`
	LogLevel slog.Level    `default:"info" env:"OTOGRAPH_LOG" help:"debug, info, warn or error."`
	deviceFlag
	cageFlags
	storeFlags
	modelFlags
	servedModelFlags
	choiceFlags
	workStartFlags
}

// taskFlags configures the result, the audio and the time limit of a task.
type taskFlags struct {
	KeepAudio      time.Duration `placeholder:"DURATION" help:"Keep audio for this time after its task ends; default: delete it immediately."`
	StallTimeout   time.Duration `default:"20m" placeholder:"DURATION" help:"End an attempt, and replace its worker, after this time and a tenth of the audio's length without a sign of progress; also the longest start of a worker."`
	OptimizedWords bool          `help:"Also include words with their times in the results of the optimized tier, which the specification limits to segments."`
}

// Run processes tasks until it is stopped or its service is gone.
func (c *workCmd) Run(ctx context.Context) error {
	log := newLog(c.LogLevel)
	if err := cmp.Or(notZero("grace", c.Grace), notZero("stall-timeout", c.StallTimeout)); err != nil {
		return &usageError{err}
	}
	if err := c.check(log); err != nil {
		return err
	}
	if c.Nice > 0 {
		if err := lowerPriority(min(c.Nice, 19)); err != nil {
			log.Warn("the worker runs at normal priority", "error", err)
		}
	}
	state, err := c.storeFlags.config(false)
	if err != nil {
		return err
	}
	set, err := c.modelFlags.open()
	if err != nil {
		return err
	}
	if err := c.checkModels(set, log); err != nil {
		return err
	}
	choice, err := c.choice(c.modelFlags, log)
	if err != nil {
		return err
	}
	pipeline, err := otograph.Open(set, otograph.Config{
		Choice: choice, Cores: c.Cores, Device: string(c.Device), Logger: log,
		OptimizedWords: c.OptimizedWords, OptimizedLanguages: c.languages(), Cascade: new(0.0), NoConfidences: true,
	})
	if err != nil {
		return err
	}
	defer pipeline.Close()
	config := service.Config{
		Folder: state.Folder, Database: c.Database, Files: c.Blobs, DatabaseWait: c.DatabaseWait, DatabaseLimit: c.DatabaseLimit,
		Engine:    engine.New(pipeline, version, log),
		KeepAudio: c.KeepAudio, StallTimeout: c.StallTimeout, Grace: c.Grace, Version: version, Logger: log,
	}
	if c.Live != "" {
		config.Live = service.Live{Socket: c.Live, Host: hostLive(pipeline, log)}
	}
	err = service.Work(ctx, config)
	switch {
	case errors.Is(err, service.ErrHung):
		// A native call hangs: exit without waiting for it.
		log.Error("a native call did not return", "error", err)
		os.Exit(exitFailed)
	case err != nil && service.ExitCode(err) != exitFailed:
		return &awayError{flagError(err)}
	}
	return flagError(err)
}

// awayError marks an unavailable database or store. By its exit code the
// supervisor distinguishes it from a crash.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }
