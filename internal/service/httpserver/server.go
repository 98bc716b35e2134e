// Package httpserver serves the HTTP interface of the service: the endpoints,
// fields, defaults, statuses, error codes and limits of the interface
// specification. Package httpapi has its contract.
//
// It only translates between HTTP and the packages internal/service/tasks,
// internal/service/accounts and billing. New returns a Server; its Handler
// serves everything, its OpsHandler only health and metrics. Package service
// connects a Server to its dependencies.
package httpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/doors/assemblyai"
	"github.com/otograph/otograph/internal/service/doors/deepgram"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// Config holds a Server's dependencies and settings.
type Config struct {
	// Tasks, Accounts, Money and Erasure implement the endpoints: the
	// service's own stores.
	Tasks    *tasks.Owners
	Accounts *accounts.Store
	Money    *billing.Store
	Erasure  *erasure.Eraser
	// TokenKey signs access tokens (HS256), at least 32 random bytes that all
	// front ends share.
	TokenKey []byte
	// CheckURL checks the audio or callback URL of a task before the task is
	// created; an error that wraps safehttp.ErrRefused is the client's fault.
	CheckURL func(ctx context.Context, url string) error
	// Hosts are the host names accepted in requests in addition to this
	// machine's; nil accepts every name.
	Hosts []string
	// Origins are the origins ("https://app.example.com") whose pages may call
	// the API; "*" allows all, nil only the service's own.
	Origins []string
	// TrustedProxies are the proxies whose X-Forwarded-For header is trusted;
	// nil trusts none.
	TrustedProxies []netip.Prefix
	// Rate holds the token buckets: Accounts in the database, *accounts.Buckets
	// in this process; nil is accounts.NewBuckets(1).
	Rate limiter
	// BasePath is the prefix of all endpoints; "" = "/v1".
	BasePath string
	// ModelAliases are further names of models on the endpoints of OpenAI's
	// interface.
	ModelAliases map[string]string
	// StrictModels refuses Whisper's sizes that no worker has.
	StrictModels bool
	// Ready returns an error if requests can't be answered, for /readyz; nil =
	// always ready.
	Ready func(context.Context) error
	// Metrics counts requests and serves /metrics; nil = metrics.New(nil).
	Metrics *metrics.Metrics
	// Web serves every other path that begins with neither the base path nor an
	// operator's path; nil responds with 404.
	Web http.Handler
	// Ops adds /healthz, /readyz and /metrics to Handler. Leave it false if
	// OpsHandler has a separate address.
	Ops bool
	// Logger logs one line per request, without secrets; nil discards it.
	Logger *slog.Logger
	// BodyGrace is how long a body may take to begin, and MinBodyRate (bytes
	// per second) its least speed after that; 0 = 30 s, 8 KiB/s.
	BodyGrace   time.Duration
	MinBodyRate int64
	// LimitWait is how long a request on an endpoint of OpenAI's interface
	// waits for its turn beyond the account's limits; 0 = 30 s.
	LimitWait time.Duration
	// Live runs live sessions, of at most LongestLive each (0 = 1 h); nil
	// responds with 404.
	Live        liveService
	LongestLive time.Duration
	Unpack      doors.Unpacker // for Live
	// Uploads limits the concurrent task-creating bodies of one account; 0 = 16.
	// Bodies of 64 KiB or less do not count.
	Uploads int
}

// limiter takes one token from an account's bucket, which holds l.Burst tokens
// and is refilled with l.TPS tokens per second. It returns 0 if the request may
// pass; otherwise it takes no token and returns the time until one is
// available.
type limiter interface {
	TakeToken(ctx context.Context, account string, l billing.Limits) (wait time.Duration, err error)
}

// Server serves the service's HTTP requests. It is safe for concurrent use.
type Server struct {
	cfg    Config
	tokens *tokens
	login  func(ctx context.Context, username, password string) (accounts.User, error) // checks a password
	logins *accounts.Throttle
	// loginTurns limits the passwords checked at the same time, loginsDelayed
	// counts the logins that wait for their delay.
	loginTurns    *fairuse.Gate
	loginsDelayed atomic.Int64
	places        *fairuse.Gate // among an account's tasks, for the endpoints of OpenAI's interface
	uploads       *fairuse.Gate // bodies of an account
	exports       *fairuse.Gate // exports of an account
	limits        *cache[billing.Limits]
	prices        *cache[billing.Prices]
	document      httpapi.Document
	mux           *http.ServeMux
	log           *slog.Logger
	started       time.Time
	leaving       context.Context // ends when load balancers are to send requests elsewhere
	leave         context.CancelFunc
	draining      context.Context // ends when no request may wait any longer
	drain         context.CancelFunc
}

// New returns a Server, unless a dependency is missing or the token key weak.
func New(cfg Config) (*Server, error) {
	if cfg.Tasks == nil || cfg.Accounts == nil || cfg.Money == nil || cfg.Erasure == nil || cfg.CheckURL == nil {
		return nil, errors.New("httpserver: Config needs Tasks, Accounts, Money, Erasure and CheckURL")
	}
	cfg.BasePath = cmp.Or(cfg.BasePath, "/v1")
	if !strings.HasPrefix(cfg.BasePath, "/") || path.Clean(cfg.BasePath) != cfg.BasePath || cfg.BasePath == "/" || strings.ContainsAny(cfg.BasePath, "{}?# ") {
		return nil, fmt.Errorf("httpserver: base path %q; expected one like /v1", cfg.BasePath)
	}
	cfg.Rate = cmp.Or[limiter](cfg.Rate, accounts.NewBuckets(1))
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New(nil)
	}
	cfg.BodyGrace = cmp.Or(max(cfg.BodyGrace, 0), 30*time.Second)
	cfg.MinBodyRate = cmp.Or(max(cfg.MinBodyRate, 0), 8<<10)
	cfg.LimitWait = cmp.Or(max(cfg.LimitWait, 0), defaultLimitWait)
	cfg.LongestLive = cmp.Or(max(cfg.LongestLive, 0), time.Hour)
	cfg.Uploads = cmp.Or(max(cfg.Uploads, 0), 16)
	// A password hash costs 32 MiB and a tenth of a second of a core. Addresses
	// take turns, and one address leaves a slot to the others.
	hashes := max(2, min(4, runtime.GOMAXPROCS(0)))
	s := &Server{
		cfg: cfg, log: cfg.Logger, started: time.Now(), login: cfg.Accounts.Login, logins: accounts.NewThrottle(nil), loginTurns: fairuse.NewGate(hashes, hashes-1, maxLoginsWaiting),
		places: fairuse.NewGate(math.MaxInt, 1, maxLimitWaits), uploads: fairuse.NewGate(math.MaxInt, cfg.Uploads, 0), exports: fairuse.NewGate(math.MaxInt, 1, 0),
		prices: newCache(pricesAge, func(ctx context.Context, _ string) (billing.Prices, error) { return cfg.Money.Prices(ctx) }),
	}
	s.limits = newCache(limitsAge, func(ctx context.Context, account string) (billing.Limits, error) {
		a, err := cfg.Money.View(ctx, account)
		return a.Limits, err
	})
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.draining, s.drain = context.WithCancel(context.Background())
	var err error
	if s.tokens, err = newTokens(cfg.TokenKey); err != nil {
		return nil, err
	}
	if s.document, err = httpapi.Describe(cfg.BasePath); err != nil {
		return nil, err
	}
	classes, err := json.Marshal(spec.EventClasses())
	if err != nil {
		return nil, err
	}
	s.routes(classes)
	return s, nil
}

// request is a request on its way through the handlers.
type request struct {
	*http.Request
	id    string
	query url.Values // see checkQuery
	from  string     // client address, reduced to the part that identifies it; see fairuse.Group
	who   principal  // zero for endpoints without authentication
	route string     // pattern, for logs and metrics
}

// handler responds to a request or returns an error; it must not have begun to
// respond when it returns an error.
type handler func(w http.ResponseWriter, r *request) error

// methods maps the methods of one path to their handlers.
type methods map[string]handler

func (s *Server) routes(classes []byte) {
	s.mux = http.NewServeMux()
	b := s.cfg.BasePath
	s.endpoint("/tasks", methods{"GET": s.private(s.listTasks), "POST": s.private(s.createTask)})
	s.endpoint("/tasks/batch", methods{"POST": s.private(s.createBatch)})
	s.endpoint("/tasks/{id}", methods{"GET": s.forTask(task(s.cfg.Tasks.Get)), "DELETE": s.forTask(s.deleteTask)})
	s.endpoint("/tasks/{id}/cancel", methods{"POST": s.forTask(task(s.cfg.Tasks.Withdraw))})
	s.endpoint("/tasks/{id}/result", methods{"GET": s.forTask(s.getResult)})
	s.endpoint("/tasks/{id}/events", methods{"GET": s.forTask(s.getEvents)})
	s.endpoint("/tasks/{id}/audio", methods{"GET": s.forTask(s.getAudio)})
	s.endpoint("/tasks/{id}/corrections", methods{"GET": s.forTask(s.getCorrections), "POST": s.forTask(s.createCorrection)})
	s.endpoint("/tasks/{id}/transcript", methods{"GET": s.forTask(s.getTranscript)})
	s.endpoint("/tasks/{id}/waveform", methods{"GET": s.forTask(s.getWaveform)})
	s.endpoint("/account", methods{"GET": s.private(s.getAccount)})
	s.endpoint("/account/keys", methods{"GET": s.person(list("keys", s.cfg.Accounts.Keys, keyRecordOf)), "POST": s.person(s.createKey)})
	s.endpoint("/account/keys/{id}", methods{"DELETE": s.person(s.revokeKey)})
	s.endpoint("/account/export", methods{"GET": s.private(s.getExport)})
	s.endpoint("/account/hook", methods{"GET": s.private(s.getHook), "PUT": s.private(s.setHook), "DELETE": s.private(s.removeHook)})
	s.endpoint("/account/hook/secret", methods{"POST": s.private(s.rotateHook)})
	s.endpoint("/voices", methods{"GET": s.private(list("voices", s.cfg.Accounts.Voices, voiceRecordOf)), "POST": s.private(s.createVoice)})
	s.endpoint("/voices/{id}", methods{"DELETE": s.private(s.deleteVoice)})
	s.endpoint("/receipts/key", methods{"GET": s.open(s.getReceiptKey)})
	s.endpoint("/audio-event-classes", methods{"GET": s.private(fixed(classes, "private, max-age=3600"))})
	s.endpoint("/billing/transactions", methods{"GET": s.private(s.listTransactions)})
	s.endpoint("/usage", methods{"GET": s.private(s.getUsage)})
	s.endpoint("/pricing", methods{"GET": s.open(s.getPricing)})
	s.endpoint("/auth/login", methods{"POST": s.createToken})
	s.endpoint("/audio/transcriptions", methods{"POST": s.waiting(s.transcribe)})
	s.endpoint("/audio/translations", methods{"POST": s.waiting(s.transcribe)})
	s.endpoint("/listen", methods{"GET": live(s, deepgram.NewLive), "POST": s.waiting(s.listenFile)})
	// Other vendors' interfaces for live sound, outside the base path:
	s.route(s.mux, s.folder()+"/v2/listen", methods{"GET": live(s, deepgram.NewFlux)})
	s.route(s.mux, s.folder()+"/v3/ws", methods{"GET": live(s, func(values url.Values, id string) (*assemblyai.Live, doors.Settings, error) {
		return assemblyai.New(values, id, s.cfg.LongestLive)
	})})
	s.endpoint("/realtime", methods{"GET": s.getRealtime})
	s.endpoint("/realtime/client_secrets", methods{"POST": s.private(s.createSecret)})
	s.endpoint("/models", methods{"GET": s.private(s.listModels)})
	s.endpoint("/models/{model...}", methods{"GET": s.private(s.getModel)})                     // a name may have slashes
	for _, folder := range slices.Compact([]string{"", strings.TrimSuffix(path.Dir(b), "/")}) { // the page is served at both
		s.route(s.mux, folder+"/openapi.json", methods{"GET": fixed(s.document.JSON, "public, max-age=300")})
		s.route(s.mux, folder+"/docs", methods{"GET": s.getDocs})
	}
	if s.cfg.Ops {
		s.opsRoutes(s.mux)
	}
	s.mux.Handle(b+"/", s.answer(b+"/", s.open(s.noSuchPath)))
	s.mux.Handle(b, s.answer(b, s.open(s.noSuchPath)))
	outside := s.answer("/", s.noSuchPath)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h := outside
		if s.cfg.Web != nil && s.meant(r.URL.Path) == "" {
			h = s.cfg.Web
		}
		h.ServeHTTP(w, r)
	})
}

// opsPaths are the paths of probes and metrics.
var opsPaths = []string{"/healthz", "/readyz", "/metrics"}

func (s *Server) opsRoutes(mux *http.ServeMux) {
	for i, h := range []handler{s.healthz, s.readyz, s.getMetrics} {
		s.route(mux, opsPaths[i], methods{"GET": h})
	}
}

func (s *Server) route(mux *http.ServeMux, pattern string, m methods) {
	mux.Handle(pattern, s.answer(pattern, m.serve(m.refuse)))
}

// endpoint routes a path of the API. The rate limit applies to every request:
// even a request with a wrong method takes a token.
func (s *Server) endpoint(path string, m methods) {
	pattern := s.cfg.BasePath + path
	s.mux.Handle(pattern, s.answer(pattern, m.serve(s.open(m.refuse))))
}

// serve returns a handler that calls the handler of the request's method, or
// refuse without one. HEAD uses GET's handler.
func (m methods) serve(refuse handler) handler {
	return func(w http.ResponseWriter, r *request) error {
		h := m[r.Method]
		if r.Method == http.MethodHead {
			h = m[http.MethodGet]
		}
		if h == nil {
			h = refuse
		}
		return h(w, r)
	}
}

// refuse responds to a wrong method with the allowed ones.
func (m methods) refuse(w http.ResponseWriter, r *request) error {
	allowed := make([]string, 0, len(m)+1)
	for k := range m {
		allowed = append(allowed, k)
		if k == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	w.Header().Set("Allow", allow)
	return &apiError{Status: http.StatusMethodNotAllowed, Code: codeInvalidRequest, Message: fmt.Sprintf("method %s is not allowed here, only %s", spec.Shorten(r.Method), allow)}
}

// Handler serves the endpoints, the document and its page, and the other paths
// that Config names.
func (s *Server) Handler() http.Handler {
	return s.guardBodies(s.checkHost(s.allowOrigins(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// ServeMux would redirect an unclean path with a response that is not
		// JSON; here it is a path that does not exist.
		if clean := path.Clean("/" + r.URL.Path); r.Method == http.MethodConnect || r.URL.Path != clean && r.URL.Path != clean+"/" || !strings.HasPrefix(r.URL.Path, "/") {
			unknown := s.noSuchPath
			if strings.HasPrefix(clean+"/", s.cfg.BasePath+"/") {
				unknown = s.open(s.noSuchPath)
			}
			s.answer("/", unknown).ServeHTTP(w, r)
			return
		}
		s.mux.ServeHTTP(w, r)
	}))))
}

// OpsHandler serves /healthz, /readyz and /metrics, for a separate address.
func (s *Server) OpsHandler() http.Handler {
	mux := http.NewServeMux()
	s.opsRoutes(mux)
	mux.Handle("/", s.answer("/", s.noSuchPath))
	return s.guardBodies(mux)
}

// maxHeader limits a request's header, in bytes. An API key or token, a proxy's
// additions and a long URL fit easily; Go's HTTP server holds a header in
// memory several times, even before authentication.
const maxHeader = 64 << 10

// maxStreams limits the concurrent requests of one HTTP/2 connection. A proxy
// opens another connection for more.
const maxStreams = 100

// HTTPServer returns an http.Server with the limits that fit h: time to send
// the header, size of the header, idle time. Bodies and responses have their
// own limits.
func HTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	protocols := new(http.Protocols) // a proxy may use HTTP/2 without TLS
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:                      h,
		Protocols:                    protocols,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout:            15 * time.Second,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Leave makes /readyz fail, so that load balancers send their requests
// elsewhere, and closes each connection after its response. Requests are served
// as before. Further calls have no effect.
func (s *Server) Leave() { s.leave() }

// Drain is Leave, and ends the waits of POST /audio/transcriptions. Call it
// before http.Server.Shutdown. Further calls have no effect.
func (s *Server) Drain() {
	s.leave()
	s.drain()
}

// SetTokenKey replaces the key that signs access tokens: all tokens issued
// before are invalid.
func (s *Server) SetTokenKey(key []byte) error { return s.tokens.setKey(key) }

// answer wraps a handler with a request id, recovery from panics, errors as
// JSON, one log line and metrics.
func (s *Server) answer(route string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		start := time.Now()
		r := &request{Request: hr, id: uuid.NewString(), from: fairuse.Group(fairuse.Proxies(s.cfg.TrustedProxies).Of(hr)), route: route}
		rec := &recorder{ResponseWriter: w}
		rec.Header().Set("X-Request-Id", r.id)
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		if s.leaving.Err() != nil {
			rec.Header().Set("Connection", "close")
		}
		var failure *apiError
		func() {
			defer func() {
				if p := recover(); p != nil {
					if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
						panic(p)
					}
					s.log.Error("panic", "request", r.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
					failure = s.translate(fmt.Errorf("panic: %v", p))
				}
			}()
			if err := h(rec, r); err != nil {
				failure = s.translate(err)
			}
		}()
		if failure != nil {
			if rec.status != 0 {
				// The response has begun, so only cutting the connection can
				// show that it is incomplete.
				s.log.Error("answer broke off", "request", r.id, "error", failure.Error())
				panic(http.ErrAbortHandler)
			}
			s.writeError(rec, failure, cmp.Or(failure.meant, hr.URL.Path))
		}
		took := time.Since(start)
		s.cfg.Metrics.Request(route, hr.Method, rec.status, took)
		s.logRequest(r, rec, failure, took)
	})
}

func (s *Server) logRequest(r *request, rec *recorder, failure *apiError, took time.Duration) {
	level := slog.LevelInfo
	if failure == nil && slices.Contains(opsPaths, r.route) { // requested every few seconds
		level = slog.LevelDebug
	}
	attrs := []any{
		"request", r.id, "method", r.Method, "route", r.route, "status", rec.status,
		"bytes", rec.bytes, "took_ms", float64(took.Microseconds()) / 1000, "from", r.from,
	}
	if r.who.Account != "" {
		attrs = append(attrs, "account", r.who.Account)
	}
	if id := r.PathValue("id"); id != "" {
		if _, ok := canonicalID(id); ok {
			kind := "task"
			if strings.HasPrefix(r.route, s.cfg.BasePath+"/voices/") {
				kind = "voice"
			}
			attrs = append(attrs, kind, id)
		}
	}
	if failure != nil {
		attrs = append(attrs, "error_code", failure.Code)
		if failure.Status >= 500 {
			level = slog.LevelError
			attrs = append(attrs, "error", failure.Error())
		}
	}
	s.log.Log(r.Context(), level, "request", attrs...)
}

// recorder records the status and size of the response.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. Each write has its own time limit, so
// that a client that reads nothing doesn't keep a connection forever.
func (w *recorder) Write(p []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(time.Minute))
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
