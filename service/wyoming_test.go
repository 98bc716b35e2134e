package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/sessions"
)

// busyListener fails once, as when too many files are open.
type busyListener struct {
	net.Listener
	failed bool
}

func (l *busyListener) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

// TestWyomingGoesOn: an error of Accept does not end the service, and a
// suspended account transcribes nothing.
func TestWyomingGoesOn(t *testing.T) {
	s, err := Open(t.Context(), Config{Folder: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	account, err := s.state.Accounts.Create(t.Context(), "home")
	require.NoError(t, err)
	require.NoError(t, s.state.Accounts.Suspend(t.Context(), account.ID))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.sessions = sessions.New(sessions.Config{Permit: s.state.Accounts.Permit, Most: 1, Logger: slog.New(slog.DiscardHandler)})
	s.config.Live = Live{Wyoming: &busyListener{Listener: l}, WyomingAccount: "home"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- wyomingServer{s}.Run(ctx) }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(c, `{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}`+"\n"+`{"type":"audio-chunk","payload_length":2}`+"\n\x00\x00")
	require.NoError(t, err)
	reply, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Contains(t, string(reply), "the account is suspended")
	stop()
	require.NoError(t, <-ended)
}
