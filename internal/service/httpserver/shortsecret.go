package httpserver

import (
	"net/http"
	"unicode/utf8"
)

// goodSecret is the recommended length of a callback's secret, in characters.
// The interface sets no minimum, so a shorter secret is accepted with a
// warning.
const goodSecret = 16

// warnShort warns the client, in a header, and the operator about a secret that
// can be guessed.
func (s *Server) warnShort(w http.ResponseWriter, r *request, secret string) {
	length := utf8.RuneCountInString(secret)
	if length == 0 || length >= goodSecret {
		return
	}
	w.Header().Set("Warning", `299 - "callback_secret has fewer than 16 characters and can be guessed"`)
	s.log.Warn("short callback secret", "request", r.id, "account", r.who.Account, "characters", length)
}
