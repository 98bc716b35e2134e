package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// checkHost refuses requests for a host name that is neither this machine's nor
// in Config.Hosts. A service for local programs must not respond to a browser
// that a foreign name led to a loopback address (DNS rebinding).
func (s *Server) checkHost(h http.Handler) http.Handler {
	if s.cfg.Hosts == nil {
		return h
	}
	names := make([]string, len(s.cfg.Hosts))
	for i, n := range s.cfg.Hosts {
		names[i] = strings.ToLower(strings.TrimSuffix(n, "."))
	}
	refuse := s.answer("host", func(http.ResponseWriter, *request) error {
		return &apiError{Status: http.StatusMisdirectedRequest, Code: codeForbidden, Message: "this host name is not served; the operator can add it with --host"}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
		a, _ := netip.ParseAddr(name)
		if slices.Contains(names, name) || a.IsLoopback() || name == "localhost" || strings.HasSuffix(name, ".localhost") {
			h.ServeHTTP(w, r)
			return
		}
		refuse.ServeHTTP(w, r)
	})
}
