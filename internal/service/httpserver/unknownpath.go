package httpserver

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// noSuchPath refuses a path that is no endpoint, and proposes an endpoint.
func (s *Server) noSuchPath(_ http.ResponseWriter, r *request) error {
	if meant := s.meant(r.URL.Path); meant != "" {
		out := notFound("unknown path; did you mean " + meant + "?")
		out.meant = meant
		return out
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, s.cfg.BasePath+"/"), "/")
	switch {
	case first == "live":
		return notFound("unknown path: GPT-Live is a voice agent, which is not served; /realtime transcribes live")
	case first == "realtime" && rest == "calls":
		return notFound("unknown path: calls (WebRTC, SIP) are not served; /realtime is a WebSocket")
	case first == "realtime":
		return notFound("unknown path: the beta interface is not served; there are /realtime with session.type transcription, and /realtime/client_secrets")
	case s.openAIPath(r.URL.Path):
		return notFound("unknown path: of OpenAI's interface there are /audio/transcriptions, /audio/translations, /models and /realtime")
	}
	return notFound("unknown path")
}

// meant returns the endpoint at the end of a path, "" if there is none: a
// client's base URL may have /v1 twice or not at all, or another folder, and its
// path a slash at the end or capital letters.
func (s *Server) meant(from string) string {
	elements := strings.Split(strings.ToLower(path.Clean("/"+from)), "/")[1:]
	for elements = elements[max(0, len(elements)-4):]; len(elements) > 0; elements = elements[1:] { // endpoints have at most four
		rest := "/" + strings.Join(elements, "/")
		for _, p := range []string{rest, s.cfg.BasePath + rest, s.folder() + rest} {
			_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: p}})
			if !slices.Contains([]string{"/", s.cfg.BasePath, s.cfg.BasePath + "/"}, pattern) {
				return p
			}
		}
	}
	return ""
}
