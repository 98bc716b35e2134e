package httpserver

import (
	"mime"
	"net/http"

	"github.com/otograph/otograph/internal/service/doors/deepgram"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
)

// deepgramPath reports whether a path belongs to Deepgram's interface, whose
// errors have a different form.
func (s *Server) deepgramPath(path string) bool {
	return path == s.cfg.BasePath+"/listen" || path == s.folder()+"/v2/listen"
}

// listenFile handles POST /listen, as Deepgram's clients call it: the recording
// becomes an ordinary task, and the response waits until it is done.
func (s *Server) listenFile(w http.ResponseWriter, r *request) error {
	q, err := deepgram.ReadQuery(r.query)
	if err != nil {
		return invalidBecause(err, "%v", err)
	}
	req := tasks.Request{Account: r.who.Account, Key: r.who.KeyID, Filename: "audio", Options: q.Effective, Extras: tasks.Extras{Extras: q.Extras}}
	if err := s.recording(w, r, &req); err != nil {
		return err
	}
	t, err := s.createInOrder(r.Context(), req)
	if err != nil {
		return err
	}
	w.Header().Set("X-Task-Id", t.ID)
	result, err := s.finished(r.Context(), r, t.ID)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, q.Response(t.ID, t.CreatedAt, result))
}

// recording reads the recording in a request, or the recording's address.
func (s *Server) recording(w http.ResponseWriter, r *request, req *tasks.Request) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" || kind == "application/json" && r.ContentLength > maxSmallBody {
		return unsupported("Content-Type: the body must be a recording, with its type or none, or JSON with its url")
	}
	if kind == "application/json" {
		err := readBody(w, r, maxSmallBody, jsonstream.Fields{"url": text(&req.URL, maxURL)})
		if err == nil && req.URL == "" {
			err = invalid("url: is required")
		}
		if err != nil {
			return err
		}
		req.Filename = lastSegment(req.URL)
		return s.checkURL(r, "url", req.URL)
	}
	body, err := limitedBody(w, r, maxUploadBody)
	if err != nil {
		return err
	}
	leave, err := s.admitInTurn(r)
	if err != nil {
		return err
	}
	defer leave()
	audio, err := s.storeAudio(r.Context(), req.Filename, jsonstream.Reader(body, "the body cannot be read to its end"))
	if audio != nil {
		defer audio.Abort() // does nothing after Commit
	}
	if err != nil {
		return err
	}
	return s.commitAudio(r, "body", audio, req)
}
