package onnx_test

import (
	"context"
	"fmt"
	"log"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// This example runs only a recognizer of the optimized tier, over the whole of
// a short recording.
func Example() {
	file, err := demo.Models().Need(models.RoleOptimized)
	if err != nil {
		log.Fatal(err)
	}
	recognizer, err := onnx.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = recognizer.Close() }()
	pcm, err := audio.Open(context.Background(), audio.File("../../testdata/demo/short/en_01.flac"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	opt := asr.DefaultOptions()
	opt.Language = "en"
	transcript, err := recognizer.Transcribe(context.Background(), pcm, []audio.Span{{End: pcm.Len()}}, opt)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range transcript.Segments {
		fmt.Println(s.Text)
	}
	// Output: It will be sunny tomorrow at three fifteen.
}
