package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/otograph/otograph/client"
	"github.com/otograph/otograph/spec"
)

// This example uploads a recording and waits for its transcript.
func Example() {
	c, err := client.New("http://127.0.0.1:8080/v1", os.Getenv("OTOGRAPH_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	f, err := os.Open("meeting.m4a")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	ctx := context.Background()
	task, err := c.Upload(ctx, f, client.Submission{Filename: "meeting.m4a", Options: spec.Options{NumSpeakers: new(2)}})
	if err != nil {
		log.Fatal(err)
	}
	result, err := c.Wait(ctx, task.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range result.Segments {
		fmt.Println(s.Start, s.Speaker, s.Text)
	}
}

// This example is a receiver of callbacks.
func ExampleReadCallback() {
	http.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		done, err := client.ReadCallback(r, os.Getenv("OTOGRAPH_CALLBACK_SECRET"))
		switch {
		case errors.Is(err, client.ErrSignature):
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			log.Println("task", done.TaskID, "is", done.Status)
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// This example prints sentences while a recording is transcribed.
func ExampleClient_Follow() {
	c, err := client.New("http://127.0.0.1:8080/v1", os.Getenv("OTOGRAPH_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range c.Follow(context.Background(), "a task's id") {
		switch {
		case err != nil:
			log.Fatal(err)
		case e.Segment != nil:
			fmt.Println(e.Segment.Start, e.Segment.Text)
		case e.State.Final:
			fmt.Println(e.State.Status)
		}
	}
}

// This example names a speaker and gets subtitles with the name.
func ExampleClient_Correct() {
	c, err := client.New("http://127.0.0.1:8080/v1", os.Getenv("OTOGRAPH_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, id := context.Background(), "a task's id"
	name := client.Correction{Op: "annotate", Speakers: map[string]*string{"SPEAKER_0": new("Ruth")}}
	if _, err := c.Correct(ctx, id, name, 0); err != nil { // the first correction
		log.Fatal(err)
	}
	subtitles, err := c.Transcript(ctx, id, "srt")
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(subtitles)
}
