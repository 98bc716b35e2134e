// Command shape writes a Whisper model of a published size with random weights,
// and synthetic speech, into a folder, to measure the cost of a size on a
// machine without a download:
//
//	go run -C tools ./shape [-size base] [-type q8_0] [-tokens 100] [-seconds 120] FOLDER
//	otograph bench FOLDER --tier standard --standard-model FOLDER/shape-base-q8_0-100.bin
//
// An existing model is kept. With -seconds 0 no speech is written.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	goaudio "github.com/go-audio/audio"
	"github.com/go-audio/wav"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	size := flag.String("size", "base", "micro, tiny, base, small or turbo")
	typ := flag.String("type", string(modeltest.F16), "f16, q8_0, q5_1 or q5_0")
	tokens := flag.Int("tokens", 100, "text tokens that the model generates for 30 s of speech, 1 to 170; 100 are about 75 words")
	seconds := flag.Float64("seconds", 120, "length of the speech, at most 18000; 0: none")
	flag.Parse()
	err := checkout.Enter()
	if err == nil {
		err = write(flag.Args(), *size, modeltest.ShapeOptions{Type: modeltest.Type(*typ), Tokens: *tokens}, *seconds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// write writes the model, unless it exists, and the speech into the folder that
// args names, and prints their paths.
func write(args []string, name string, opt modeltest.ShapeOptions, seconds float64) error {
	if len(args) != 1 {
		return errors.New("expected one FOLDER")
	}
	if !(seconds >= 0 && seconds <= 5*3600) {
		return fmt.Errorf("-seconds: expected 0 to 18000, found %g", seconds)
	}
	size, err := modeltest.FindSize(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[0], 0o777); err != nil {
		return err
	}
	model := filepath.Join(args[0], fmt.Sprintf("shape-%s-%s-%d.bin", name, opt.Type, opt.Tokens))
	if _, err := os.Stat(model); err != nil {
		if err := writeFile(model, func(w io.WriteSeeker) error { return modeltest.WriteModel(w, size, opt) }); err != nil {
			return err
		}
	}
	fmt.Println(model)
	if seconds == 0 {
		return nil
	}
	speech := filepath.Join(args[0], fmt.Sprintf("speech-%gs.wav", seconds))
	fmt.Println(speech)
	return writeFile(speech, func(w io.WriteSeeker) error { return writeWAV(w, modeltest.Speech(seconds, 2, 1)) })
}

// writeFile writes a file whole: an interrupted run leaves none with its name.
func writeFile(path string, content func(io.WriteSeeker) error) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(content(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeWAV writes mono samples at audio.SampleRate as 32-bit integers.
func writeWAV(w io.WriteSeeker, samples []float32) error {
	const bits, pcm, full = 32, 1, 1 << 31
	e := wav.NewEncoder(w, audio.SampleRate, bits, 1, pcm)
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
