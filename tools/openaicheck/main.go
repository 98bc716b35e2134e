// Command openaicheck calls a server that speaks OpenAI's audio interface, ours
// or another, with every documented parameter and format, and prints which
// work, are refused clearly, are ignored silently, or have a wrong shape:
//
//	OPENAI_API_KEY=KEY go run -C tools ./openaicheck [-model whisper-1] [-json] http://127.0.0.1:8080/v1
//
// It exits with 1 if a case is neither served nor refused clearly.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the report in JSON.
type report struct {
	BaseURL      string `json:"base_url"`
	Model        string `json:"model"`
	SchemaDate   string `json:"schema_date"`
	SchemaSource string `json:"schema_source"`
	Cases        []Row  `json:"cases"`
	Faults       int    `json:"faults"`
}

func main() {
	model := flag.String("model", "whisper-1", "model of the requests that are not about models")
	timeout := flag.Duration("timeout", 2*time.Minute, "time that a request may take")
	asJSON := flag.Bool("json", false, "print the verdicts as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, Server{Base: flag.Arg(0), Key: os.Getenv("OPENAI_API_KEY"), Model: *model, Timeout: *timeout, Client: http.DefaultClient}, *asJSON)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "openaicheck:", err)
		os.Exit(1)
	}
}

// run checks the server and prints the report.
func run(ctx context.Context, server Server, asJSON bool) error {
	if u, err := url.Parse(server.Base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("expected one base URL like http://127.0.0.1:8080/v1, found %q", server.Base)
	}
	if server.Timeout <= 0 {
		return fmt.Errorf("-timeout is %v, expected more than 0", server.Timeout)
	}
	r := report{BaseURL: server.Base, Model: server.Model, Cases: []Row{}}
	r.SchemaDate, r.SchemaSource = Published()
	stopped := server.Check(ctx, func(row Row) {
		r.Cases = append(r.Cases, row)
		if row.Verdict.Fault() {
			r.Faults++
		}
	})
	if err := r.print(asJSON); err != nil {
		return err
	}
	if stopped == nil && r.Faults > 0 {
		stopped = errors.New("a case is neither served nor refused clearly")
	}
	return stopped
}

// print writes the report to standard output.
func (r *report) print(asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CASE\tVERDICT\tNOTE")
	for _, row := range r.Cases {
		fmt.Fprintf(t, "%s\t%s\t%s\n", row.Case, row.Verdict, strings.Join(strings.Fields(row.Note), " "))
	}
	fmt.Fprintf(t, "\n%d of %d cases are served or refused clearly. Answers were compared with OpenAI's description of %s.\n", len(r.Cases)-r.Faults, len(r.Cases), r.SchemaDate)
	return t.Flush()
}
