package httpserver

import (
	"net/http"
	"slices"
	"strings"
)

// anyOrigin allows the pages of every origin.
const anyOrigin = "*"

// exposed lists the response headers that pages of other origins may read.
const exposed = "X-Task-Id, Warning, X-Request-Id, X-Should-Retry, Retry-After, Idempotency-Replayed, ETag, Content-Disposition"

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
		header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PATCH, DELETE")
		if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
			header.Set("Access-Control-Allow-Headers", headers)
		}
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	})
}
