package service

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/worker"
)

// openLive opens the live sessions, nil without any.
func (s *Service) openLive() (*sessions.Sessions, error) {
	l := s.config.Live
	if l.Process.N <= 0 {
		return nil, nil
	}
	l.Process.N = 1
	supervisor, err := s.processes(l.Process, 0)
	if err != nil {
		return nil, err
	}
	return sessions.New(sessions.Config{
		Tasks: s.state.Tasks, Permit: s.state.Accounts.Permit, Feed: func(f doors.Format) (sessions.Feed, error) { return audio.NewFeed(f.Encoding, f.Rate, f.Channels) },
		Socket: l.Socket, Process: supervisor.Run, Most: l.Sessions, Grace: s.config.Grace, Version: s.config.Version, Logger: s.config.Logger, Counts: s.counts.Live(),
	}), nil
}

// hostLive runs Live.Host in a process of the service until ctx is done.
func hostLive(ctx context.Context, c Config, s *state.State) error {
	_ = os.Remove(c.Live.Socket) // of a process that died
	l, err := net.Listen("unix", c.Live.Socket)
	if err != nil {
		return err
	}
	defer l.Close()
	id, supervisor := worker.Self()
	stop, joined := s.Tasks.Queue().Join(ctx, queue.Member{ID: id, Kind: queue.Live, Supervisor: supervisor, Version: c.Version}, 5*time.Second, nil)
	if !joined {
		return nil
	}
	defer stop()
	return c.Live.Host(ctx, l)
}
