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

// Upload a recording and wait for its transcript.
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

// A receiver of callbacks.
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
