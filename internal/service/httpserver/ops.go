package httpserver

import (
	"context"
	"net/http"
	"time"
)

// healthz reports that the process is alive.
func (s *Server) healthz(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz reports whether requests can be answered: the stores respond and the
// process isn't about to stop.
func (s *Server) readyz(w http.ResponseWriter, r *request) error {
	if s.leaving.Err() != nil {
		return &apiError{Status: http.StatusServiceUnavailable, Code: codeUnavailable, Message: "the service is stopping", RetryAfter: 5}
	}
	if s.cfg.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if err := s.cfg.Ready(ctx); err != nil {
			return unavailable(err)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) getMetrics(w http.ResponseWriter, r *request) error {
	s.cfg.Metrics.Handler().ServeHTTP(w, r.Request)
	return nil
}

// fixed returns a handler that responds with JSON that may be cached.
func fixed(body []byte, cache string) handler {
	return func(w http.ResponseWriter, _ *request) error {
		w.Header().Set("Cache-Control", cache)
		writeBody(w, http.StatusOK, "application/json", body)
		return nil
	}
}

func (s *Server) getDocs(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.Header().Set("Content-Security-Policy", s.document.PagePolicy)
	writeBody(w, http.StatusOK, "text/html; charset=utf-8", s.document.HTML)
	return nil
}
