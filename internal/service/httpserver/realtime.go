package httpserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/doors/realtime"
	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/internal/service/sessions"
	"github.com/otograph/otograph/internal/service/tasks"
)

// keyProtocol is the prefix of the WebSocket subprotocol with which browsers,
// which cannot set headers, send a key.
const keyProtocol = "openai-insecure-api-key."

// getRealtime is GET /realtime, the WebSocket of OpenAI's realtime interface.
func (s *Server) getRealtime(w http.ResponseWriter, r *request) error {
	for _, p := range protocols(r) {
		if key, ok := strings.CutPrefix(p, keyProtocol); ok && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	secret, ok := strings.CutPrefix(strings.TrimSpace(token), secretPrefix)
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return s.private(func(w http.ResponseWriter, r *request) error { return s.startRealtime(w, r, nil) })(w, r)
	}
	var c secretClaims
	if s.tokens.parse(secret, &c, secretAudience, maxSecret) != nil {
		return accounts.ErrUnauthorized
	}
	if err := s.cfg.Accounts.Permit(r.Context(), c.Account, c.Key); err != nil { // a secret ends with its key and its account
		return err
	}
	r.who = principal{Account: c.Account, KeyID: c.Key}
	if err := cmp.Or(s.takeToken(r.Context(), c.Account), s.checkQuery(r)); err != nil {
		return err
	}
	return s.startRealtime(w, r, c.Session)
}

// startRealtime runs a session; session is that of the client secret, if any.
func (s *Server) startRealtime(w http.ResponseWriter, r *request, session json.RawMessage) error {
	if err := s.admitLive(w, r); err != nil {
		return err
	}
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	id := tasks.NewID()
	door, err := realtime.New(id, r.query.Get("model"), session, names.Live, s.cfg.LongestLive)
	if err != nil {
		return realtimeRefusal(err)
	}
	order := func() sessions.Order {
		t := door.Terms()
		return sessions.Order{ID: id, Store: t.Store, CallbackURL: t.CallbackURL, CallbackSecret: t.CallbackSecret}
	}
	return s.serveLive(w, r, liveSession{door, door.Settings(), order, "realtime", realtime.MaxMessage})
}

// realtimeRefusal returns the response to the terms of a session.
func realtimeRefusal(err error) error {
	e, ok := errors.AsType[*realtime.Error](err)
	if !ok {
		return err
	}
	out := &openai.Error{Status: http.StatusBadRequest, Message: e.Message, Param: e.Param, Code: e.Code}
	if e.Code == "model_not_found" {
		out.Status, out.Message = http.StatusNotFound, e.Message+"; conversations are not served, only transcription"
	}
	return out
}

// A client secret is a token for realtime sessions, without the rights of the
// key that made it.
const (
	secretPrefix   = "ek_"
	secretAudience = "otograph-realtime"
	maxSecret      = 8192 // bytes
	maxSecretTerms = 4096 // bytes of the session
)

type secretClaims struct {
	Account string          `json:"account"`
	Key     string          `json:"key,omitempty"` // id of the API key that made it
	Session json.RawMessage `json:"session,omitempty"`
	jwt.RegisteredClaims
}

// createSecret is POST /realtime/client_secrets.
func (s *Server) createSecret(w http.ResponseWriter, r *request) error {
	if s.cfg.Live == nil {
		return noLive()
	}
	body, err := jsonBody(w, r, maxSmallBody)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return readError(err, "the body cannot be read")
	}
	var in struct {
		Expires struct {
			Seconds *int `json:"seconds"`
		} `json:"expires_after"`
		Session json.RawMessage `json:"session"`
	}
	if len(data) > 0 && json.Unmarshal(data, &in) != nil {
		return invalid("the body: must be an object with expires_after and session")
	}
	seconds := *cmp.Or(in.Expires.Seconds, new(600))
	if seconds < 10 || seconds > 7200 {
		return invalid("expires_after.seconds: must be 10 to 7200, not %d", seconds)
	}
	if len(in.Session) > maxSecretTerms {
		return invalid("session: has %d bytes, more than %d", len(in.Session), maxSecretTerms)
	}
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	if len(in.Session) == 0 {
		in.Session = json.RawMessage(`{"type":"transcription"}`)
	}
	var readable struct {
		Otograph realtime.Terms `json:"otograph"`
	}
	if json.Unmarshal(in.Session, &readable) == nil && readable.Otograph.CallbackSecret != "" {
		return invalid("session.otograph.callback_secret: whoever has the client secret could read it; leave it out")
	}
	c := secretClaims{r.who.Account, r.who.KeyID, in.Session, s.tokens.registered(secretAudience, time.Duration(seconds)*time.Second)}
	shown, err := realtime.Session("sess_"+tasks.NewID(), in.Session, names.Live, c.ExpiresAt.Unix())
	if err != nil {
		return realtimeRefusal(err)
	}
	value, err := s.tokens.sign(c)
	return respond(w, doors.Object{"value": secretPrefix + value, "expires_at": c.ExpiresAt.Unix(), "session": shown}, err)
}
