package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	goaudio "github.com/go-audio/audio"
	"github.com/go-audio/wav"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/shape"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
)

type benchShapeCmd struct {
	Size     []string `default:"tiny,base" placeholder:"SIZE" help:"micro, tiny, base, small, turbo; default: tiny,base."`
	Type     []string `enum:"f16,q8_0,q5_1,q5_0" default:"f16" placeholder:"TYPE" help:"f16, q8_0, q5_1, q5_0."`
	Tokens   int      `default:"100" placeholder:"N" help:"Text tokens that the models generate for 30 s of speech, 1 to 170; 100 are about 75 words."`
	Seconds  float64  `default:"120" placeholder:"N" help:"Length of the synthetic speech."`
	Audio    string   `placeholder:"FILE" help:"Measure on this recording instead of synthetic speech."`
	BeamSize int      `name:"asr-beam-size" default:"5" placeholder:"5" help:"Beam width, 1 to 20."`
	Only     bool     `help:"Transcribe only: no speakers, no events."`
	Repeat   int      `default:"1" placeholder:"N" help:"Measure N times and report the median."`
	Stages   bool     `default:"true" negatable:"" help:"Run once more, stage by stage, to measure the processor time of each stage."`
	Keep     string   `placeholder:"DIR" help:"Create models and audio in this folder and keep them; existing models are reused."`
	Format   string   `short:"f" enum:"table,json,csv,html" default:"table" help:"Output format: table, json, csv or html."`
	Output   string   `short:"o" placeholder:"DIR" help:"Write the report in all formats into this folder."`
	Quiet    bool     `short:"q" help:"No progress."`
	Cores    int      `placeholder:"N" help:"Cores to use; default: all."`

	deviceFlag
}

func (c *benchShapeCmd) Run(ctx context.Context) error {
	if c.Repeat < 1 || !(c.Seconds >= 1 && c.Seconds <= 5*3600) {
		return &usageError{errors.New("--repeat must be at least 1, --seconds between 1 and 18000")}
	}
	options := otograph.Options{Optimize: new(false), ASRBeamSize: &c.BeamSize}
	if c.Only {
		options.EnableDiarize, options.EnableAudioEvents = new(false), new(false)
	}
	if _, err := options.Effective(); err != nil {
		return &usageError{err}
	}
	if c.Output != "" {
		if err := checkDistinct(reportFiles(c.Output), []string{c.Audio}); err != nil {
			return err
		}
	}
	dir := c.Keep
	if dir == "" {
		made, err := os.MkdirTemp("", "otograph-shape-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	for _, d := range []string{dir, c.Output} {
		if d == "" {
			continue
		}
		if err := os.MkdirAll(d, 0o777); err != nil {
			return err
		}
	}
	item := bench.Item{Name: "made-up speech", Path: c.Audio}
	if c.Audio == "" {
		item.Path = filepath.Join(dir, fmt.Sprintf("speech-%gs.wav", c.Seconds))
		if err := writeWhole(item.Path, func(w io.Writer) error { return writeWAV(w, shape.Speech(c.Seconds, 2, 1)) }); err != nil {
			return err
		}
	} else {
		item.Name = filepath.Base(c.Audio)
	}
	line := newStatusLine(os.Stderr, c.Quiet)
	config := bench.Config{
		Items: []bench.Item{item}, Repeat: c.Repeat, Stages: c.Stages, Cores: c.Cores, Device: string(c.Device), Seed: 1,
		Audio: audio.Options{FollowLinks: true}, Progress: benchProgress(line),
	}
	for _, name := range c.Size {
		for _, typ := range c.Type {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			path, err := c.model(dir, name, typ)
			if err != nil {
				return err
			}
			set, err := library.Load{Files: map[models.Role]string{models.RoleStandard: path}, Fallback: demo.Models()}.Open()
			if err != nil {
				return err
			}
			config.Systems = append(config.Systems, bench.System{Name: name + " " + typ, Set: set, Options: options})
		}
	}
	report, err := bench.Run(ctx, config)
	line.clear()
	if err != nil {
		return err
	}
	return writeReport(report, c.Format, c.Output)
}

// model creates the model of a size unless it exists.
func (c *benchShapeCmd) model(dir, name, typ string) (string, error) {
	size, err := shape.Find(name)
	if err != nil {
		return "", &usageError{err}
	}
	path := filepath.Join(dir, fmt.Sprintf("shape-%s-%s-%d.bin", name, typ, c.Tokens))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, writeWhole(path, func(w io.Writer) error {
		return shape.WriteModel(w, size, shape.Options{Type: shape.Type(typ), Tokens: c.Tokens})
	})
}

// writeWAV writes mono samples at audio.SampleRate as 32-bit integers.
func writeWAV(w io.Writer, samples []float32) error {
	const bits, pcm, full = 32, 1, 1 << 31
	file, ok := w.(io.WriteSeeker)
	if !ok {
		return errors.New("a WAV file's sizes are written last: expected a regular file")
	}
	e := wav.NewEncoder(file, audio.SampleRate, bits, 1, pcm)
	for part := range slices.Chunk(samples, audio.SampleRate) { // one second per write
		b := goaudio.IntBuffer{Format: &goaudio.Format{NumChannels: 1, SampleRate: audio.SampleRate}, Data: make([]int, len(part))}
		for i, v := range part {
			b.Data[i] = int(max(-full, min(math.Round(float64(v)*full), full-1)))
		}
		if err := e.Write(&b); err != nil {
			return err
		}
	}
	return e.Close()
}
