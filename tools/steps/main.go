// Command steps runs the same steps as tools/ref/sherpa.js in sherpa-onnx, with
// the same models and number of threads:
//
//	go run -C tools ./steps [-threads 2] [-only-vad] VAD.onnx RECORDING
//
// Voice activity detection uses one thread and cuts segments at 20 s. demo-ctc
// recognizes the segments without a language model and with the smallest beam.
// demo-speaker embeds windows of 1.5 s, one every 0.75 s. The command prints
// wall-clock and processor seconds of every step as one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/tools/internal/checkout"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

func main() {
	threads := flag.Int("threads", 2, "threads of recognition and of the voice vectors")
	only := flag.Bool("only-vad", false, "voice activity detection alone")
	flag.Parse()
	if flag.NArg() != 2 || *threads < 1 {
		fmt.Fprintln(os.Stderr, "usage: steps [-threads 2] [-only-vad] VAD.onnx RECORDING")
		os.Exit(2)
	}
	s := steps{threads: *threads, out: map[string]any{}}
	err := checkout.Enter()
	if err == nil {
		err = s.run(context.Background(), flag.Arg(0), flag.Arg(1), *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(s.out)
}

// steps does the work and measures it.
type steps struct {
	threads  int
	out      map[string]any
	detector *silero.Model
	text     *onnx.Engine
	voices   *networks.Embedder
}

// step measures one step.
func (s *steps) step(name string, work func() error) error {
	start, used := time.Now(), host.ProcessorSeconds()
	err := work()
	s.out[name] = map[string]float64{"wall": time.Since(start).Seconds(), "cpu": host.ProcessorSeconds() - used}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (s *steps) run(ctx context.Context, detector, recording string, only bool) error {
	if err := s.step("load", func() error { return s.load(detector, only) }); err != nil {
		return err
	}
	var pcm *audio.PCM
	err := s.step("decode", func() (err error) {
		pcm, err = audio.Open(ctx, audio.File(recording), audio.Options{})
		return err
	})
	if err != nil {
		return err
	}
	defer pcm.Close()
	s.out["seconds"] = pcm.Duration()
	var speech []audio.Span
	err = s.step("vad", func() error {
		opt := vad.DefaultOptions()
		opt.MaxSpeech = 20
		probs, err := s.detector.Probabilities(ctx, pcm.Leveled())
		if err == nil {
			speech, err = vad.Refined(probs, pcm, opt)
		}
		return err
	})
	if err != nil {
		return err
	}
	samples := 0
	for _, part := range speech {
		samples += part.Len()
	}
	s.out["segments"], s.out["speech"] = len(speech), float64(samples)/audio.SampleRate
	if only {
		return nil
	}
	if err := s.step("recognize", func() error { return s.recognize(ctx, pcm, speech) }); err != nil {
		return err
	}
	return s.step("embed", func() error { return s.embed(ctx, pcm, speech) })
}

// load opens the models, the recognizer without its language model.
func (s *steps) load(detector string, only bool) error {
	m, err := library.OpenFile(models.RoleVAD, detector)
	if err != nil {
		return err
	}
	if s.detector, err = silero.Open(m, silero.Options{Threads: 1}); err != nil || only {
		return err
	}
	set := demo.Models()
	recognizer, found := set.Role(models.RoleOptimized)
	voices, has := set.Role(models.RoleEmbedder)
	if !found || !has {
		return errors.New("expected a recognizer and a speaker model in the demo set")
	}
	recognizer.Files = slices.DeleteFunc(slices.Clone(recognizer.Files), func(f models.File) bool { return f.Part == models.PartLM })
	if s.text, err = onnx.Open(recognizer); err != nil {
		return err
	}
	s.voices, err = networks.OpenEmbedder(voices, networks.Options{})
	return err
}

func (s *steps) recognize(ctx context.Context, pcm *audio.PCM, speech []audio.Span) error {
	opt := asr.DefaultOptions()
	opt.Language, opt.BeamSize, opt.Parallel, opt.WordTimestamps = "en", 1, s.threads, false
	t, err := s.text.Transcribe(ctx, pcm, speech, opt)
	if err != nil {
		return err
	}
	var texts []string
	for _, segment := range t.Segments {
		texts = append(texts, segment.Text)
	}
	s.out["characters"] = len([]rune(strings.Join(texts, " ")))
	return nil
}

// embed divides the windows among the threads.
func (s *steps) embed(ctx context.Context, pcm *audio.PCM, speech []audio.Span) error {
	const length, every = audio.SampleRate * 3 / 2, audio.SampleRate * 3 / 4
	var windows []audio.Span
	for _, part := range speech {
		for at := part.Start; at == part.Start || at+every < part.End; at += every {
			windows = append(windows, audio.Span{Start: at, End: min(at+length, part.End)})
		}
	}
	s.out["windows"] = len(windows)
	var work errgroup.Group
	for share := range slices.Chunk(windows, max(1, (len(windows)+s.threads-1)/s.threads)) {
		work.Go(func() error {
			_, err := s.voices.Embed(ctx, pcm, share)
			return err
		})
	}
	return work.Wait()
}
