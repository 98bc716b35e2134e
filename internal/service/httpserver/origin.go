package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// anyOrigin allows the pages of every origin.
const anyOrigin = "*"

// exposed lists the response headers that pages of other origins may read.
const exposed = "X-Task-Id, Warning, X-Request-Id, X-Should-Retry, Retry-After, Idempotency-Replayed, ETag, Content-Disposition, Content-Range, Accept-Ranges, Content-Length, Location"

// allowOrigins handles preflight requests for pages of other origins (CORS),
// and lets the pages of Config.Origins read the API's responses. Credentials
// are sent only in headers, which a page must set itself, never in cookies.
func (s *Server) allowOrigins(h http.Handler) http.Handler {
	if len(s.cfg.Origins) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || !strings.HasPrefix(r.URL.Path, s.cfg.BasePath+"/") {
			h.ServeHTTP(w, r)
			return
		}
		header := w.Header()
		header.Add("Vary", "Origin")
		if !slices.Contains(s.cfg.Origins, origin) && !slices.Contains(s.cfg.Origins, anyOrigin) {
			h.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
		header.Set("Access-Control-Expose-Headers", exposed)
		asked := r.Header.Get("Access-Control-Request-Method")
		if r.Method != http.MethodOptions || asked == "" {
			h.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE")
		if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
			header.Set("Access-Control-Allow-Headers", headers)
		}
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	})
}

// checkHost refuses requests for a host name that is neither this machine's nor
// in Config.Hosts. A service for local programs must not respond to a page
// whose foreign name resolves to a loopback address (DNS rebinding).
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
