package httpserver

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/internal/service/tasks"
)

// folder returns the folder of the base path, in which other vendors'
// interfaces have their paths: "" for /v1.
func (s *Server) folder() string { return strings.TrimSuffix(path.Dir(s.cfg.BasePath), "/") }

// maxLiveMessage limits a message of a client, in bytes.
const maxLiveMessage = 4 << 20

// live returns the handler of an interface whose query has a session's terms.
// Browsers, which cannot set headers, send the key as the second subprotocol
// after "token".
func live[D doors.Door](s *Server, open func(values url.Values, id string) (D, doors.Settings, error)) handler {
	return func(w http.ResponseWriter, r *request) error {
		protocol := ""
		if first, key, ok := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), ","); ok && first == "token" && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Token "+strings.TrimSpace(key))
			protocol = first
		}
		return s.private(func(w http.ResponseWriter, r *request) error {
			if err := s.admitLive(w, r); err != nil {
				return err
			}
			id := tasks.NewID()
			door, set, err := open(r.URL.Query(), id)
			if err != nil {
				return invalidBecause(err, "%v", err)
			}
			s.serveLive(w, r, liveSession{door, set, func() sessions.Order { return sessions.Order{ID: id} }, protocol, maxLiveMessage})
			return nil
		})(w, r)
	}
}
