package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/spec"
)

// liveFlags configures live sessions.
type liveFlags struct {
	LiveSessions   int           `default:"-1" placeholder:"N" group:"Live" help:"Live sessions at the same time; 0: none; default: 8 for each core. Their process starts with the first one."`
	LiveLongest    time.Duration `default:"1h" placeholder:"DURATION" group:"Live" help:"Longest live session."`
	Wyoming        string        `placeholder:"HOST:PORT" group:"Live" help:"Address for Home Assistant (Wyoming protocol). It has no sign-in: everyone who reaches the address transcribes at the expense of --wyoming-account."`
	WyomingAccount string        `default:"local" placeholder:"NAME" group:"Live" help:"Account of the sessions at --wyoming."`
}

func (f *liveFlags) listenWyoming(l *service.Live, served bool) (err error) {
	switch {
	case f.Wyoming == "":
		return nil
	case !served:
		return &usageError{errors.New("--wyoming: expected workers and live sessions on this server")}
	}
	l.WyomingAccount = f.WyomingAccount
	if l.Wyoming, err = listen(f.Wyoming); err != nil {
		return fmt.Errorf("--wyoming: %w", err)
	}
	return nil
}

// liveSessions returns the live sessions of the service. The caller removes the
// folder of their socket.
func (c *serveCmd) liveSessions(dir string, work service.Workers) (l service.Live, err error) {
	l = service.Live{Sessions: c.LiveSessions, Longest: c.LiveLongest}
	if l.Sessions < 0 {
		l.Sessions = 8 * runtime.GOMAXPROCS(0)
	}
	served := l.Sessions > 0 && work.N > 0
	if err := c.listenWyoming(&l, served); err != nil || !served {
		return l, err
	}
	folder, err := os.MkdirTemp("", "otograph-live-")
	if err != nil {
		return l, err
	}
	l.Socket = filepath.Join(folder, "socket")
	l.Process = service.Workers{N: 1, Env: work.Env}
	if l.Process.Command, err = c.workCommand(dir, c.Device); err == nil && len(work.Fallback) > 0 {
		l.Process.Fallback, err = c.workCommand(dir, "cpu")
	}
	for _, command := range [][]string{l.Process.Command, l.Process.Fallback} {
		for i := range command {
			if strings.HasPrefix(command[i], "--nice=") { // texts must not wait for recordings
				command[i] = "--live=" + l.Socket
			}
		}
	}
	return l, err
}

func (*serveCmd) removeSocket(socket string) {
	if socket != "" {
		_ = os.RemoveAll(filepath.Dir(socket))
	}
}

// hostLive returns the function that serves live sessions with a pipeline.
func hostLive(p *otograph.Pipeline, log *slog.Logger) func(context.Context, net.Listener) error {
	return func(ctx context.Context, l net.Listener) error {
		return sessions.Host(ctx, l, func(ctx context.Context, set doors.Settings) (sessions.Engine, error) { return openServed(ctx, p, set) }, log)
	}
}

// servedSession is a live session of the service.
type servedSession struct {
	*live.Session
	feed   *audio.Feed
	format doors.Format
}

func openServed(ctx context.Context, p *otograph.Pipeline, set doors.Settings) (*servedSession, error) {
	feed, err := feedOf(set.Format)
	if err != nil {
		return nil, spec.Permanent(err)
	}
	s, err := live.Open(ctx, p, liveOptions(set))
	if err != nil {
		return nil, err
	}
	return &servedSession{s, feed, set.Format}, nil
}

func feedOf(f doors.Format) (*audio.Feed, error) {
	return audio.NewFeed(f.Encoding, f.Rate, f.Channels)
}

func liveOptions(set doors.Settings) live.Options {
	return live.Options{Options: set.Options, Extras: set.Extras, Revisable: set.Revisable, Silence: set.Silence, Manual: set.Manual, Careful: set.Careful}
}

// Write implements sessions.Engine.
func (s *servedSession) Write(data []byte) error { return s.Session.Write(s.feed.Convert(nil, data)) }

// Configure implements sessions.Engine.
func (s *servedSession) Configure(set doors.Settings) error {
	if set.Format != s.format {
		feed, err := feedOf(set.Format)
		if err != nil {
			return spec.Permanent(err)
		}
		if err := s.Session.Write(s.feed.Flush(nil)); err != nil {
			return err
		}
		s.feed, s.format = feed, set.Format
	}
	return s.Change(liveOptions(set))
}

// Clear implements sessions.Engine.
func (s *servedSession) Clear() error { return s.Discard() }

// Close implements sessions.Engine.
func (s *servedSession) Close() (*spec.Result, error) {
	_ = s.Session.Write(s.feed.Flush(nil)) // Close returns its error
	return s.Session.Close()
}
