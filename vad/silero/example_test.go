package silero_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/vad/silero"
)

// Voice activity detection alone: find the speech in a recording.
func Example() {
	file, err := published.Models().Need(models.RoleVAD)
	if err != nil {
		log.Fatal(err)
	}
	detector, err := silero.Open(file, silero.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = detector.Close() }()
	speech, err := detector.Detect(context.Background(), audio.File("../../testdata/real/jfk.flac"))
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range speech {
		start, end := s.Seconds()
		fmt.Printf("%.1f s to %.1f s\n", start, end)
	}
	// Output:
	// 0.3 s to 2.1 s
	// 3.3 s to 4.3 s
	// 5.4 s to 7.6 s
	// 8.2 s to 10.2 s
}

// A published network from a file.
func ExampleOpenFile() {
	data, err := modelData()
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "otograph-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "silero.onnx")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		log.Fatal(err)
	}

	detector, err := silero.OpenFile(file)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = detector.Close() }()
	speech, err := detector.Detect(context.Background(), audio.File("../../testdata/real/jfk.flac"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(speech), "stretches of speech")
	// Output: 4 stretches of speech
}

// modelData returns the bytes of the embedded network.
func modelData() ([]byte, error) {
	file, err := published.Models().Need(models.RoleVAD)
	if err != nil {
		return nil, err
	}
	return file.Main().Bytes()
}
