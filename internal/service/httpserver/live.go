package httpserver

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/coder/websocket"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/doors/deepgram"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/internal/service/tasks"
)

// liveService runs live sessions; *sessions.Sessions satisfies it.
type liveService interface {
	Open(ctx context.Context, o sessions.Order, set doors.Settings) (doors.Session, error)
	// Enter counts a connection until leave is called. The context ends when the
	// account or the key loses its rights.
	Enter(ctx context.Context, account, key string) (_ context.Context, leave func())
}

// admitLive refuses a live session before its connection is upgraded.
func (s *Server) admitLive(w http.ResponseWriter, r *request) error {
	switch {
	case s.cfg.Live == nil:
		return noLive()
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		if r.ProtoMajor == 1 { // in HTTP/2, the header would end the connection with all its requests
			w.Header().Set("Upgrade", "websocket")
		}
		return &apiError{Status: http.StatusUpgradeRequired, Code: codeInvalidRequest, Message: "connect with a WebSocket, over HTTP/1.1"}
	case r.who.ReadOnly:
		return forbidden("this API key is read-only")
	case s.leaving.Err() != nil:
		return unavailable(s.leaving.Err())
	}
	return s.cfg.Tasks.Admit(r.Context(), r.who.Account, "")
}

func noLive() *apiError {
	return notFound("live sessions are not served here: the operator can allow them with serve --live-sessions, on a server with workers")
}

// liveSession is a session behind a door.
type liveSession struct {
	door     doors.Door
	settings doors.Settings
	order    func() sessions.Order // at the first sound
	protocol string                // WebSocket subprotocol, "" for none
	message  int64                 // largest message of the client, in bytes
}

// serveLive upgrades a request to a WebSocket and runs its session.
func (s *Server) serveLive(w http.ResponseWriter, r *request, l liveSession) error {
	accept := &websocket.AcceptOptions{OriginPatterns: s.cfg.Origins}
	if l.protocol != "" {
		accept.Subprotocols = []string{l.protocol}
	}
	answer := &contentWriter{ResponseWriter: w}
	conn, err := websocket.Accept(answer, r.Request, accept)
	if answer.status == http.StatusForbidden {
		return forbidden("pages of this origin may not connect; the operator can allow it with --allow-origin")
	}
	if err != nil {
		return &apiError{Status: answer.status, Code: codeInvalidRequest, Message: err.Error()}
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(l.message)
	ctx, release := doors.Drain(r.Context(), s.draining)
	defer release()
	ctx, leave := s.cfg.Live.Enter(ctx, r.who.Account, r.who.KeyID)
	defer leave()
	open := func(ctx context.Context, set doors.Settings) (doors.Session, error) {
		o := l.order()
		o.Account, o.Key = r.who.Account, r.who.KeyID
		if o.CallbackURL != "" {
			if err := s.checkURL(r, "callback_url", o.CallbackURL); err != nil {
				return nil, &doors.EndError{Reason: doors.Invalid, Text: s.translate(err).Message}
			}
		}
		return s.cfg.Live.Open(ctx, o, set)
	}
	var sound doors.Conn = doors.WebSocket{Conn: conn}
	if l.settings.Format.Opus != "" { // only Deepgram's clients send it
		decoding, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		sound = doors.Unpack(decoding, sound, l.settings.Format, deepgram.Closes, s.cfg.Unpack)
	}
	e := doors.Serve(ctx, sound, l.door, l.settings, open, doors.Limits{Longest: s.cfg.LongestLive})
	s.log.Info("live connection ends", "request", r.id, "account", r.who.Account, "close_code", e.Reason.Code(), "audio_seconds", e.Seconds)
	return nil
}

// folder returns the folder of the base path, in which other vendors'
// interfaces have their paths: "" for /v1.
func (s *Server) folder() string { return strings.TrimSuffix(path.Dir(s.cfg.BasePath), "/") }

// maxLiveMessage limits a message of a client, in bytes.
const maxLiveMessage = 4 << 20

// protocols returns the subprotocols that a client offers.
func protocols(r *request) (list []string) {
	for p := range strings.SplitSeq(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		list = append(list, strings.TrimSpace(p))
	}
	return list
}

// live returns the handler of an interface whose query has a session's terms.
// Browsers, which cannot set headers, send the key as the subprotocol after
// "token", or a login's token after "bearer"; others may follow.
func live[D doors.Door](s *Server, open func(values url.Values, id string) (D, doors.Settings, error)) handler {
	return func(w http.ResponseWriter, r *request) error {
		protocol := ""
		if p := protocols(r); len(p) > 1 && (p[0] == "token" || p[0] == "bearer") && r.Header.Get("Authorization") == "" {
			protocol = p[0]
			r.Header.Set("Authorization", protocol+" "+p[1])
		}
		return s.private(func(w http.ResponseWriter, r *request) error {
			if err := s.admitLive(w, r); err != nil {
				return err
			}
			id := tasks.NewID()
			door, set, err := open(r.query, id)
			if err != nil {
				return invalidBecause(err, "%v", err)
			}
			return s.serveLive(w, r, liveSession{door, set, func() sessions.Order { return sessions.Order{ID: id} }, protocol, maxLiveMessage})
		})(w, r)
	}
}
