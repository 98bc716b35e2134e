package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/otograph/otograph/internal/openaicheck"
)

// openAICheckCmd is `otograph openai-check`.
type openAICheckCmd struct {
	BaseURL string        `arg:"" placeholder:"BASE_URL" help:"The server's, with its version: http://127.0.0.1:8080/v1."`
	Model   string        `default:"whisper-1" placeholder:"NAME" help:"Model of the requests that are not about models."`
	Timeout time.Duration `default:"2m" placeholder:"DURATION" help:"Time that a request may take."`
	JSON    bool          `help:"Print the verdicts as JSON."`
}

// keyVariable holds the key of the tested server, as OpenAI's clients expect
// it.
const keyVariable = "OPENAI_API_KEY"

// checkReport is the report in JSON.
type checkReport struct {
	BaseURL      string            `json:"base_url"`
	Model        string            `json:"model"`
	SchemaDate   string            `json:"schema_date"`
	SchemaSource string            `json:"schema_source"`
	Cases        []openaicheck.Row `json:"cases"`
	Faults       int               `json:"faults"`
}

// Run checks the server. It fails if a case is neither served nor refused
// clearly.
func (c *openAICheckCmd) Run(ctx context.Context) error {
	if u, err := url.Parse(c.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &usageError{fmt.Errorf("BASE_URL is %q, expected one like http://127.0.0.1:8080/v1", c.BaseURL)}
	}
	if err := notZero("timeout", c.Timeout); err != nil {
		return &usageError{err}
	}
	report := checkReport{BaseURL: c.BaseURL, Model: c.Model, Cases: []openaicheck.Row{}}
	report.SchemaDate, report.SchemaSource = openaicheck.Published()
	server := openaicheck.Server{Base: c.BaseURL, Key: os.Getenv(keyVariable), Model: c.Model, Timeout: c.Timeout, Client: http.DefaultClient}
	t := newTable(os.Stdout, "CASE", "VERDICT", "NOTE")
	stopped := server.Check(ctx, func(row openaicheck.Row) {
		report.Cases = append(report.Cases, row)
		if row.Verdict.Fault() {
			report.Faults++
		}
		t.row(row.Case, row.Verdict, row.Note)
	})
	if c.JSON {
		if err := printJSON(report); err != nil {
			return err
		}
	} else {
		if err := t.flush(); err != nil {
			return err
		}
		say("\n%d of %d cases are served or refused clearly. Answers were compared with OpenAI's description of %s.\n", len(report.Cases)-report.Faults, len(report.Cases), report.SchemaDate)
	}
	if report.Faults > 0 {
		return cmp.Or(stopped, errReported)
	}
	return stopped
}
