package silero_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// Only voice activity detection: find the speech in a recording.
func Example() {
	file, err := demo.Models().Need(models.RoleVAD)
	if err != nil {
		log.Fatal(err)
	}
	detector, err := silero.Open(file, silero.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = detector.Close() }()
	pcm, err := audio.Open(context.Background(), audio.File("testdata/jfk.wav"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	speech, err := vad.Detect(context.Background(), detector, pcm, vad.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range speech {
		start, end := s.Seconds()
		fmt.Printf("%.1f s to %.1f s\n", start, end)
	}
	// Output:
	// 0.0 s to 2.1 s
	// 3.3 s to 4.9 s
	// 5.4 s to 7.6 s
	// 8.2 s to 10.2 s
}

// A published network from a file.
func ExampleOpen() {
	file, err := library.OpenFile(models.RoleVAD, "silero_vad.onnx")
	if err != nil {
		log.Fatal(err)
	}
	detector, err := silero.Open(file, silero.Options{Threads: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = detector.Close() }()
	pcm, err := audio.Open(context.Background(), audio.File(os.Args[1]), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	probabilities, err := detector.Probabilities(context.Background(), pcm)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(probabilities), "windows of 32 ms")
}
