package httpserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/otograph/otograph/internal/service/erasure"
)

// deletion is the response to the deletion of a task or voice.
type deletion struct {
	Message string `json:"message"`
	Receipt string `json:"receipt,omitempty"` // an addition to the specification
}

// erased deletes an object, with proof if the request asks for a receipt.
func (s *Server) erased(w http.ResponseWriter, r *request, id, message string, plain func(ctx context.Context, account, id string) error,
	proved func(ctx context.Context, account, id string) (string, error),
) error {
	q := queryOf(r)
	wanted := q.bool("receipt")
	if q.err != nil {
		return q.err
	}
	var err error
	out := deletion{Message: message}
	if wanted {
		out.Receipt, err = proved(r.Context(), r.who.Account, id)
		if errors.Is(err, erasure.ErrUnproved) {
			s.log.Warn("no receipt", "request", r.id, "account", r.who.Account, "error", err)
			out.Message, err = message+", without a receipt: parts may be readable until the next clean-up", nil
		}
	} else {
		err = plain(r.Context(), r.who.Account, id)
	}
	return respond(w, out, err)
}

func (s *Server) deleteTask(w http.ResponseWriter, r *request, id string) error {
	return s.erased(w, r, id, "the task was deleted", s.cfg.Tasks.Delete, s.cfg.Erasure.Task)
}

// getReceiptKey handles GET /receipts/key, an addition to the specification.
func (s *Server) getReceiptKey(w http.ResponseWriter, r *request) error {
	key, err := s.cfg.Erasure.Key(r.Context())
	return respond(w, key, err)
}
