package main

import (
	"errors"
	"time"

	"github.com/otograph/otograph/service"
)

// fetchFlags limits the downloads of audio.
type fetchFlags struct {
	Fetches           int           `default:"32" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads; 0 leaves downloads to other servers."`
	FetchesPerAccount int           `default:"4" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads per account."`
	FetchesPerHost    int           `default:"8" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads per host."`
	FetchLimit        time.Duration `default:"1h" group:"Network" help:"Timeout of one download attempt."`
}

// fetches copies the flags into a configuration, where 0 means the default.
func (f *fetchFlags) fetches(c *service.Config) error {
	if f.FetchesPerAccount < 1 || f.FetchesPerHost < 1 || f.FetchLimit <= 0 {
		return &usageError{errors.New("--fetches-per-account, --fetches-per-host and --fetch-limit must be positive")}
	}
	c.Fetches, c.FetchesPerAccount, c.FetchesPerHost, c.FetchLimit = f.Fetches, f.FetchesPerAccount, f.FetchesPerHost, f.FetchLimit
	if f.Fetches == 0 {
		c.Fetches = -1
	}
	return nil
}
