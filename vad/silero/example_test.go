package silero_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// The speech of a recording, with a model from a file.
func Example() {
	model, err := silero.Open(ort.Source{Path: "silero_vad.onnx", Role: "vad"}, silero.Options{Threads: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = model.Close() }()
	pcm, err := audio.Open(context.Background(), audio.File(os.Args[1]), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	segments, err := vad.Detect(context.Background(), model, pcm, vad.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range segments {
		start, end := s.Seconds()
		fmt.Printf("%.2f\t%.2f\n", start, end)
	}
}
