package service

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/doors/wyoming"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
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

// wyomingServer serves the Wyoming protocol.
type wyomingServer struct{ *Service }

// Run implements runner. One account owns all sessions, because clients have no
// credentials.
func (s wyomingServer) Run(ctx context.Context) error {
	account, err := s.state.Accounts.Find(ctx, s.config.Live.WyomingAccount)
	if err != nil {
		return fmt.Errorf("wyoming: %w", err)
	}
	l := fairuse.NewListener(s.config.Live.Wyoming, fairuse.ConnectionLimits{Total: s.config.MaxConnections, PerAddress: s.config.ConnectionsPerAddress})
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // for example, too many open files
			s.config.Logger.WarnContext(ctx, "wyoming: a connection was not accepted", "error", err)
			backoff.Sleep(ctx, time.Second)
			continue
		}
		open.Go(func() { s.serve(ctx, conn, account.ID) })
	}
}

func (s wyomingServer) serve(ctx context.Context, conn net.Conn, account string) {
	defer conn.Close()
	languages := spec.Available{Standard: true}.Languages(spec.Options{}) // until workers report theirs
	if sets, err := s.state.Tasks.Available(ctx); err == nil && len(sets) > 0 {
		languages = sets[0].Languages(spec.Options{})
	}
	open := func(ctx context.Context, set doors.Settings) (doors.Session, error) {
		return s.sessions.Open(ctx, sessions.Order{ID: tasks.NewID(), Account: account}, set)
	}
	running, release := doors.Drain(ctx, ctx)
	defer release()
	running, leave := s.sessions.Enter(running, account, "")
	defer leave()
	door, set := wyoming.NewDoor(languages)
	e := doors.Serve(running, wyoming.NewConn(conn), door, set, open, doors.Limits{Longest: s.config.Live.Longest})
	if e.Seconds > 0 || e.Text != "" {
		s.config.Logger.Info("live connection ends", "account", account, "interface", "wyoming", "close_code", e.Reason.Code(), "audio_seconds", e.Seconds)
	}
}
