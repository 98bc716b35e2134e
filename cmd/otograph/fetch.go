package main

import (
	"errors"
	"time"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/metrics"
	"github.com/otograph/otograph/internal/safehttp"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/worker"
	"github.com/otograph/otograph/spec"
)

// fetchFlags bound the downloads of audio.
type fetchFlags struct {
	Fetches           int           `default:"32" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads; 0 leaves downloads to other servers."`
	FetchesPerAccount int           `default:"4" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads per account."`
	FetchesPerHost    int           `default:"8" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads per host."`
	FetchLimit        time.Duration `default:"1h" group:"Network" help:"Timeout of one download attempt."`
}

// fetcher returns what downloads the audio of tasks that name a URL.
func (f *fetchFlags) fetcher(s *tasks.Service, c *safehttp.Client, m *metrics.Metrics, grace time.Duration) (*worker.Fetcher, error) {
	if f.FetchesPerAccount < 1 || f.FetchesPerHost < 1 || f.FetchLimit <= 0 {
		return nil, &usageError{errors.New("--fetches-per-account, --fetches-per-host and --fetch-limit must be positive")}
	}
	return worker.NewFetcher(s, worker.FetcherConfig{
		HTTP: c, Check: checkHead, Prober: audioProber{audio.Options{}}, Version: version, Trouble: m.Trouble("fetcher"),
		AtOnce: f.Fetches, PerAccount: f.FetchesPerAccount, PerHost: f.FetchesPerHost, Limit: f.FetchLimit, Grace: grace,
	})
}

// checkHead ends the download of what is no recording.
func checkHead(filename string, head []byte) error {
	return spec.Permanent(audio.CheckHead(filename, head))
}
