package httpserver

import (
	"encoding/json"
	"net/http"
	"time"
)

// streamBeat is the pause between two comments of an idle stream: proxies close
// connections that are silent for a minute.
const streamBeat = 15 * time.Second

// eventStream writes server-sent events (WHATWG HTML, section 9.2).
type eventStream struct{ w http.ResponseWriter }

func newEventStream(w http.ResponseWriter) *eventStream {
	eventStreamHeader(w)
	w.WriteHeader(http.StatusOK)
	return &eventStream{w}
}

func eventStreamHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx forwards events one by one
}

// send writes one event with v as its data. An empty name or id is omitted.
func (e *eventStream) send(name, id string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return e.write(name + id + "data: " + string(data) + "\n\n")
}

// beat writes a comment, which clients ignore.
func (e *eventStream) beat() error { return e.write(": still working\n\n") }

func (e *eventStream) write(text string) error {
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}
