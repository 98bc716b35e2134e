// Package engine runs the tasks of a service with a pipeline:
//
//	s, err := service.Open(ctx, service.Config{Folder: dir, Engine: engine.New(p, "1.0", nil)})
//
// It links the native libraries; package service does not.
package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/spec"
)

// Engine runs the tasks of a service with a pipeline. It implements
// service.Engine and service.Prober, and reports the capabilities of its models
// and whether their files can still be read.
type Engine struct {
	Recordings
	pipeline *otograph.Pipeline
	id       string
	voices   *voiceModel
	files    map[string]int64 // sizes of the models' files
	log      *slog.Logger
}

// New returns the engine of a pipeline, which the caller closes after the
// service. Programs of another version do not continue its work. It logs why
// voices cannot be recognized, unless log is nil. Call it before Pipeline.Load
// and the first run: it records the state of the models' files.
//
// To follow the interface's specification exactly, open the pipeline with
// Cascade 0, NoConfidences and the OptimizedLanguages of package spec.
func New(p *otograph.Pipeline, version string, log *slog.Logger) *Engine {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Engine{pipeline: p, id: workID(p, version), voices: newVoiceModel(p.Models(), log), files: sizes(p.Models()), log: log}
}

// Available returns the capabilities of the models.
func (e *Engine) Available() spec.Available { return e.pipeline.Available() }

// ModelSet identifies models, program and settings that affect a result.
func (e *Engine) ModelSet() string { return e.id }

// Run implements service.Engine.
func (e *Engine) Run(ctx context.Context, job service.Job) (service.Outcome, error) {
	opt := spec.Options(job.Options)
	opt.Voices = nil // this engine names voices itself, with job.Register
	var waveform []byte
	var voices []otograph.KnownVoice
	for i, path := range job.Voices {
		voices = append(voices, otograph.KnownVoice{Name: job.Extras.Voices[i], Recording: otograph.File(path)})
	}
	res, err := e.pipeline.Run(ctx, otograph.File(job.Path), opt, otograph.RunOptions{
		Extras: job.Extras.Extras, Voices: voices, MaxSeconds: job.MaxSeconds, Checkpoints: job.Checkpoints,
		Decoded: job.Decoded, Segments: job.Segments, Waveform: func(peaks []byte) { waveform = peaks },
		Progress: func(p otograph.Progress) { job.Progress(string(p.Stage), p.Fraction) }, Working: job.Working,
	})
	if bad := (*otograph.VoiceError)(nil); errors.As(err, &bad) && spec.IsPermanent(err) {
		return service.Outcome{}, spec.Permanent(errors.New(tasks.ReferenceRefusal(bad.Index, strings.ReplaceAll(bad.Err.Error(), job.Voices[bad.Index], "the recording"))))
	}
	if err != nil {
		if errors.Is(err, audio.ErrTooLong) && job.MaxSeconds < spec.MaxAudioSeconds {
			err = fmt.Errorf("%w: %w", service.ErrUnpaid, err)
		}
		return service.Outcome{}, err
	}
	for i := range res.Segments {
		res.Segments[i].Confidence = nil // the interface's specification has no confidence
		if !job.Extras.Measures {
			res.Segments[i].Measures = nil
		}
	}
	out := service.Outcome{Tier: res.Tier, Seconds: res.Stats.DecodedSeconds, Waveform: waveform}
	if len(res.SpeakerEmbeddings) > 0 {
		if out.VoiceModel, err = e.voices.hash(); err != nil {
			e.log.WarnContext(ctx, "voices of this task cannot be saved", "task", job.TaskID, "error", err)
		}
	}
	if job.Register != nil {
		register, err := job.Register(ctx)
		if err != nil {
			return service.Outcome{}, err
		}
		res, out.Recognized = e.voices.name(res, register, out.VoiceModel)
	}
	out.Result = *res
	return out, nil
}

// Recordings examines recordings without models. It implements service.Prober.
type Recordings struct{}

// Probe determines the length of a recording.
func (Recordings) Probe(ctx context.Context, path, _ string) (seconds float64, err error) {
	info, err := audio.Probe(ctx, audio.File(path), audio.Options{})
	return info.Duration, err
}

// CheckHead returns a permanent error if head does not begin a recording.
func (Recordings) CheckHead(filename string, head []byte) error {
	return spec.Permanent(audio.CheckHead(filename, head))
}

func sizes(set *models.Set) map[string]int64 {
	sizes := map[string]int64{}
	for _, m := range set.Models {
		for _, f := range m.Files {
			if info, err := os.Stat(f.Path); f.Path != "" && err == nil {
				sizes[f.Path] = info.Size()
			}
		}
	}
	return sizes
}

// CheckModels returns an error if a model file can no longer be read or has
// changed its size, or without the library that every set of models needs.
func (e *Engine) CheckModels(context.Context) error {
	if _, err := ort.Version(); err != nil {
		return err
	}
	for path, size := range e.files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		var readErr error
		if size > 0 {
			_, readErr = f.ReadAt(make([]byte, 1), size-1)
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && info.Size() != size {
			err = fmt.Errorf("%s: expected %d bytes, found %d", path, size, info.Size())
		}
		if err = cmp.Or(err, readErr); err != nil {
			return err
		}
	}
	return nil
}

// workID returns a hash of the program's version, the settings and the models'
// files (their sizes and times, if they have no hash). Only work of the same ID is
// continued.
func workID(p *otograph.Pipeline, version string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, version)
	fmt.Fprintln(sum, p.Settings())
	for _, m := range p.Models().Models {
		fmt.Fprintln(sum, m.Role, m.Name, m.Contract)
		for _, f := range m.Files {
			fmt.Fprintln(sum, f.Part, f.Name, f.SHA256)
			if info, err := os.Stat(f.Path); err == nil && f.SHA256 == "" {
				fmt.Fprintln(sum, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
