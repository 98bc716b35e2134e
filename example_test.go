package otograph_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/subtitle"
)

// Use the models that `otograph models pull` downloaded and the embedded ones,
// and write the result as subtitles. It does not run in tests, which download
// nothing.
func ExampleOpenDefault() {
	ctx := context.Background()
	p, err := otograph.OpenDefault()
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	res, err := p.Run(ctx, otograph.File("meeting.m4a"), otograph.Options{})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "otograph-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err = subtitle.WriteFile(filepath.Join(dir, "meeting.srt"), res); err != nil {
		log.Fatal(err)
	}
}

// Use the models of a folder, and the demonstration models for the roles
// without one.
func ExampleOpen() {
	set, err := library.Load{Dir: "models", DirOptional: true, Fallback: demo.Models()}.Open()
	if err != nil {
		log.Fatal(err)
	}
	p, err := otograph.Open(set, otograph.Config{Cores: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	res, err := p.Run(context.Background(), otograph.File("meeting.m4a"), otograph.Options{ASRLanguage: new("en")})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range res.Segments {
		fmt.Println(s.Start, s.Speaker, s.Text)
	}
}

// Reports come one at a time, and the fraction never falls.
func ExampleRunOptions_progress() {
	p, err := otograph.Open(demo.Models())
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	last := 0.0
	options := otograph.Options{EnableAudioEvents: new(false), EnableDiarize: new(false)}
	_, err = p.Run(context.Background(), otograph.File("testdata/demo/short/en_00.flac"), options,
		otograph.RunOptions{Progress: func(report otograph.Progress) {
			if report.Fraction < last {
				fmt.Println("it fell")
			}
			last = report.Fraction
		}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f %%\n", 100*last)
	// Output: 100 %
}

// A loop reads the sentences while the recording is transcribed; leaving it ends
// the run.
func ExamplePipeline_Segments() {
	p, err := otograph.Open(demo.Models())
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	options := otograph.Options{EnableAudioEvents: new(false), EnableDiarize: new(false)}
	for sentence, err := range p.Segments(context.Background(), otograph.File("testdata/demo/short/en_00.flac"), options) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(sentence.Text)
	}
	// Output: Can we meet next month?
}

// files keeps the finished stages of one run in a folder.
type files struct{ dir string }

func (f files) Load(_ context.Context, stage string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(f.dir, stage))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (f files) Save(_ context.Context, stage string, data []byte) error {
	return os.WriteFile(filepath.Join(f.dir, stage), data, 0o600)
}

// An interrupted run continues after its last finished stage.
func ExampleCheckpoints() {
	dir, err := os.MkdirTemp("", "otograph-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p, err := otograph.Open(demo.Models())
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	recording := otograph.File("testdata/demo/short/en_00.flac")
	for range 2 { // the second run loads the checkpoints of the first
		res, err := p.Run(context.Background(), recording, otograph.Options{}, otograph.RunOptions{Checkpoints: files{dir}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Segments[0].Text)
	}
	// Output:
	// Can we meet next month?
	// Can we meet next month?
}

// Many goroutines can share one pipeline: the models are loaded once, and the
// cores are shared.
func ExamplePipeline_Run() {
	p, err := otograph.Open(demo.Models())
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	recordings := []string{"testdata/demo/short/en_00.flac", "testdata/demo/short/en_01.flac"}
	texts := make([]string, len(recordings))
	var wg sync.WaitGroup
	for i, name := range recordings {
		wg.Go(func() {
			res, err := p.Run(context.Background(), otograph.File(name), otograph.Options{EnableAudioEvents: new(false)})
			if err != nil {
				log.Print(err)
				return
			}
			texts[i] = res.Segments[0].Text
		})
	}
	wg.Wait()
	for _, text := range texts {
		fmt.Println(text)
	}
	// Output:
	// Can we meet next month?
	// It will be sunny tomorrow at three fifteen.
}

// Samples in memory need no file.
func ExamplePipeline_Run_samples() {
	p, err := otograph.Open(demo.Models(), otograph.Config{Audio: audio.Options{MinBytes: 1}})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	silence := make([]float32, 2*48000)
	res, err := p.Run(context.Background(), audio.Raw(silence, 48000, 1), otograph.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.AudioDuration, "s,", len(res.Segments), "segments")
	// Output: 2 s, 0 segments
}

// The error for an option out of range names it; nothing is decoded.
func ExampleOptionError() {
	p, err := otograph.Open(demo.Models())
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	_, err = p.Run(context.Background(), otograph.File("none.wav"), otograph.Options{ASRBeamSize: new(50)})
	var wrong *otograph.OptionError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Field)
	}
	// Output: asr_beam_size
}
