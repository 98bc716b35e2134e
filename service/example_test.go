package service_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/client"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/spec"
)

// parrot is an Engine that returns the same words for every recording.
type parrot struct{}

// ModelSet implements service.Engine.
func (parrot) ModelSet() string { return "parrot 1" }

// Run implements service.Engine.
func (parrot) Run(_ context.Context, job service.Job) (service.Outcome, error) {
	audio, err := os.ReadFile(job.Path)
	if err != nil {
		return service.Outcome{}, err
	}
	seconds := float64(len(audio)) / 32000 // 16 bits at 16 kHz
	if err := job.Decoded(seconds); err != nil {
		return service.Outcome{}, err
	}
	result := spec.Result{
		Ran: spec.Capabilities{ASR: true}, Language: "en", LanguageProbability: 1,
		Segments: []spec.Segment{{End: seconds, Text: "Pretty Polly."}},
	}
	return service.Outcome{Result: result, Tier: spec.TierStandard, Seconds: seconds}, nil
}

// A program mounts the service in its own server, beside its other paths, and
// calls it like any customer.
func Example() {
	folder, err := os.MkdirTemp("", "service")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(context.Background())
	s, err := service.Open(ctx, service.Config{Folder: folder, Engine: parrot{}})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			log.Print(err)
		}
	})
	defer running.Wait()
	defer stop()

	mux := http.NewServeMux()
	mux.Handle("/v1/", s.Handler())
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	server := httptest.NewServer(mux)
	defer server.Close()

	key, err := s.CreateAccount(ctx, "ann", 10*billing.Unit)
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(server.URL+"/v1", key)
	if err != nil {
		log.Fatal(err)
	}
	task, err := c.Upload(ctx, bytes.NewReader(make([]byte, 64_000)), client.Submission{Filename: "polly.raw"})
	if err != nil {
		log.Fatal(err)
	}
	result, err := c.Wait(ctx, task.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Segments[0].Text)
	account, err := c.Account(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance", account.Balance)
	// Output:
	// Pretty Polly.
	// balance 9.9867
}
