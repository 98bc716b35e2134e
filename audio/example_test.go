package audio_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// Open decodes any supported format; the samples are read window by window.
func ExampleOpen() {
	pcm, err := audio.Open(context.Background(), audio.File("testdata/formats/UPPER.WAV"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pcm.Close()
	info := pcm.Info()
	fmt.Printf("%.1f s, %s at %d Hz, now %d samples at %d Hz\n", info.Duration, info.Codec, info.SampleRate, pcm.Len(), audio.SampleRate)
	fmt.Println(len(pcm.Samples(0, 30*audio.SampleRate)), "samples in the first 30 s")
	// Output:
	// 3.0 s, pcm_mulaw at 8000 Hz, now 48000 samples at 16000 Hz
	// 48000 samples in the first 30 s
}

// Errors name the defect of the input, and IsPermanent distinguishes them from
// errors of the machine.
func ExamplePermanent() {
	_, err := audio.Open(context.Background(), audio.File("testdata/bad/wav_rate_1hz.wav"), audio.Options{})
	fmt.Println(err)
	fmt.Println(errors.Is(err, audio.ErrCorrupt), spec.IsPermanent(err))
	// Output:
	// audio: "testdata/bad/wav_rate_1hz.wav": damaged or incomplete recording: the fmt chunk says 1 samples per second, expected 1000 to 768000
	// true true
}

// Probe reads only the header.
func ExampleProbe() {
	info, err := audio.Probe(context.Background(), audio.File("testdata/formats/UPPER.WAV"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Duration, info.Container, info.Codec, info.Channels)
	// Output: 3 wav pcm_mulaw 1
}

// A Resampler accepts its input in pieces of any length.
func ExampleResampler() {
	r, err := audio.NewResampler(44100, audio.SampleRate)
	if err != nil {
		log.Fatal(err)
	}
	var out []float32
	for second := range 3 {
		piece := make([]float32, 44100)
		for i := range piece {
			piece[i] = float32(math.Sin(2 * math.Pi * 440 * (float64(second) + float64(i)/44100)))
		}
		out = r.Process(out, piece)
	}
	out = r.Flush(out)
	fmt.Println(len(out))
	// Output: 48000
}
