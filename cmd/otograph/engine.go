package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/worker"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// pipelineEngine lets the task worker run the pipeline.
type pipelineEngine struct {
	pipeline *otograph.Pipeline
	set      string
	voices   *voiceModel
	log      *slog.Logger
}

// Run implements worker.Engine.
func (e *pipelineEngine) Run(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	opt, ignored, err := spec.DecodeStored(job.Options)
	if err != nil {
		return tasks.Outcome{}, spec.Permanent(err)
	}
	if len(ignored) > 0 {
		e.log.WarnContext(ctx, "options of a newer release are ignored: upgrade workers before servers", "task", job.TaskID, "options", ignored)
	}
	report := func(otograph.Progress) {}
	if job.Progress != nil {
		report = func(p otograph.Progress) { job.Progress(string(p.Stage), p.Fraction) }
	}
	var waveform []byte
	runOptions := []otograph.RunOption{
		otograph.OnProgress(report), otograph.WithCheckpoints(job.Checkpoints),
		otograph.OnWaveform(func(peaks []byte) { waveform = peaks }),
		otograph.OnDecoded(job.Decoded), otograph.WithMaxDuration(time.Duration(job.MaxSeconds * float64(time.Second))),
	}
	if job.Segments != nil {
		runOptions = append(runOptions, otograph.OnSegments(job.Segments))
	}
	if job.Extras.Translate {
		runOptions = append(runOptions, otograph.Translated())
	}
	var voices []otograph.KnownVoice
	for i, path := range job.Voices {
		voices = append(voices, otograph.KnownVoice{Name: job.Extras.Voices[i], Recording: otograph.File(path)})
	}
	runOptions = append(runOptions, otograph.WithVoices(voices...))
	res, err := e.pipeline.Run(ctx, otograph.File(job.Path), opt, runOptions...)
	if bad := (*otograph.VoiceError)(nil); errors.As(err, &bad) && spec.IsPermanent(err) {
		return tasks.Outcome{}, spec.Permanent(errors.New(httpapi.ReferenceRefusal(bad.Index, strings.ReplaceAll(bad.Err.Error(), job.Voices[bad.Index], "the recording"))))
	}
	if err != nil {
		if errors.Is(err, audio.ErrTooLong) && job.MaxSeconds < audio.DefaultMaxDuration.Seconds() {
			err = fmt.Errorf("%w: %w", worker.ErrUnpaid, err)
		}
		return tasks.Outcome{}, err
	}
	out := tasks.Outcome{Tier: res.Tier, Seconds: res.AudioDuration, Waveform: waveform}
	if len(res.SpeakerEmbeddings) > 0 {
		if out.VoiceModel, err = e.voices.hash(); err != nil {
			e.log.WarnContext(ctx, "voices of this task cannot be saved", "task", job.TaskID, "error", err)
		}
	}
	if out.Result, err = e.written(ctx, job, res, out.VoiceModel); err != nil {
		return tasks.Outcome{}, err
	}
	if job.Extras.Measures || len(res.Names) > 0 {
		out.Additions = res.Additions()
	}
	return out, nil
}

// written returns a result as the service keeps it, with the names of the voices that the
// account knows at this moment if the task asks for them.
func (e *pipelineEngine) written(ctx context.Context, job worker.Job, res *otograph.Result, hash string) ([]byte, error) {
	if job.Known == nil {
		return json.Marshal(res)
	}
	register, err := job.Known(ctx)
	if err != nil {
		return nil, err
	}
	return e.voices.name(res, register, hash)
}

// ModelSet implements worker.Engine.
func (e *pipelineEngine) ModelSet() string { return e.set }

// modelFiles reports whether the files of a set can still be read and have kept
// their sizes.
func modelFiles(set *models.Set) func(context.Context) error {
	sizes := map[string]int64{}
	for _, m := range set.Models {
		for _, f := range m.Files {
			if info, err := os.Stat(f.Path); f.Path != "" && err == nil {
				sizes[f.Path] = info.Size()
			}
		}
	}
	return func(context.Context) error {
		for path, size := range sizes {
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
}

// modelSetID is a hash over the program's version and the files of a set, so
// that work begun with one set is never continued with another. A file without
// a known hash counts by its size and time.
func modelSetID(set *models.Set) string {
	sum := sha256.New()
	fmt.Fprintln(sum, version)
	for _, m := range set.Models {
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

// workID is modelSetID with what else decides a stage's result.
func workID(set *models.Set, optimizedWords, optimizedLanguages bool) string {
	id := modelSetID(set)
	if optimizedWords {
		id += "-words"
	}
	if optimizedLanguages {
		id += "-languages"
	}
	return id
}

// audioProber determines the length of a recording without the models.
type audioProber struct{ options audio.Options }

// Probe implements tasks.Prober.
func (p audioProber) Probe(ctx context.Context, path, _ string) (seconds float64, err error) {
	info, err := audio.Probe(ctx, audio.File(path), p.options)
	return info.Duration, err
}
