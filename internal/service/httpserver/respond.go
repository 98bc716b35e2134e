package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/otograph/otograph/internal/service/doors/deepgram"
	"github.com/otograph/otograph/spec"
)

// writeJSON responds with a value and forbids caching.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	writeBody(w, status, "application/json", buf.Bytes())
	return nil
}

// respond is writeJSON with status 200, unless there is an error.
func respond(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}

func writeBody(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}

// records returns the records of a list, which is not null in JSON.
func records[T, R any](list []T, record func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = record(v)
	}
	return out
}

// list returns a handler that responds with a list of the account's.
func list[T, R any](name string, of func(ctx context.Context, account string) ([]T, error), record func(T) R) handler {
	return func(w http.ResponseWriter, r *request) error {
		all, err := of(r.Context(), r.who.Account)
		return respond(w, map[string]any{name: records(all, record)}, err)
	}
}

// writeError responds with an error in the form of the path's interface.
func (s *Server) writeError(w http.ResponseWriter, e *apiError, path string) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="otograph"`)
	}
	w.Header().Del("Cache-Control")
	w.Header().Del("Content-Disposition")
	var body any = map[string]string{"error": e.Message, "error_code": e.Code}
	switch {
	case s.openAIPath(path):
		body = e.openAI()
	case s.deepgramPath(path):
		body = deepgram.NewErrorBody(e.Status, e.Message, w.Header().Get("X-Request-Id"))
	}
	_ = writeJSON(w, e.Status, body)
}

// stamp formats a time as in the interface: RFC 3339, UTC, milliseconds.
func stamp(t time.Time) string { return t.UTC().Format(spec.TimeFormat) }

// retrySeconds returns a wait for Retry-After: whole seconds, rounded up.
func retrySeconds(wait time.Duration) int { return max(1, int(math.Ceil(wait.Seconds()))) }

// stampOrNull formats a time that may be missing.
func stampOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(stamp(*t))
}
