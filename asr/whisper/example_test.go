package whisper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

// The whole recording is one stretch of speech; package vad normally finds it.
func Example() {
	ctx := context.Background()
	model, err := library.OpenFile(models.RoleStandard, "ggml-base.bin")
	if err != nil {
		log.Fatal(err)
	}
	engine, err := whisper.Open(model, whisper.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	pcm, err := audio.Open(ctx, audio.File("talk.wav"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pcm.Close()
	speech := []audio.Span{{End: pcm.Len()}}

	opt := asr.DefaultOptions()
	if opt.Language, _, err = engine.DetectLanguage(ctx, pcm, speech, asr.Detection{}); err != nil {
		log.Fatal(err)
	}
	transcript, err := engine.Transcribe(ctx, pcm, speech, opt)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range transcript.Segments {
		fmt.Printf("%7.2f %7.2f %s\n", s.Start, s.End, s.Text)
	}
}
