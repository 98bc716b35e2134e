package httpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	client.CloseIdleConnections()
	if left := outside.Leaks(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// world is a whole service in one process: the real stores, a real HTTP server,
// host names from a fixture, and a client that checks every response against
// the OpenAPI document.
type world struct {
	t        *testing.T
	db       *db.DB
	blobs    *blob.Store
	accounts *accounts.Store
	money    *billing.Store
	tasks    *tasks.Service
	api      *Server
	url      string // of the server, without the base path
	account  accounts.Account
	key      string // of account
	log      *lockedBuffer
	media    *mediaServer
}

// lockedBuffer holds the log.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// fixtureNames: *.example.com is public, except private.example.com; the
// resolver of trouble.example.com does not answer; all other names are unknown.
type fixtureNames struct{}

func (fixtureNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch {
	case host == "private.example.com":
		return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
	case host == "trouble.example.com":
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	case strings.HasSuffix(host, ".example.com"):
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// newWorld returns a world on SQLite with one account that has ample money and
// limits. change may alter the configuration.
func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	return newWorldOn(t, dbtest.SQLite(t, db.Options{}), change...)
}

func newWorldOn(t *testing.T, d *db.DB, change ...func(*Config)) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t, db: d, log: &lockedBuffer{}}
	var err error
	w.blobs, err = blob.Open(ctx, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { w.blobs.Close() })
	quick := []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}
	w.tasks, err = tasks.New(tasks.Config{DB: d, Blobs: w.blobs, RetryDelays: quick, CallbackDelays: quick})
	require.NoError(t, err)
	w.media = newMediaServer(t)
	w.money, w.accounts = w.tasks.Billing(), accounts.New(d, nil, nil)
	w.account, w.key = w.newAccount("local", "1000")
	outbound, err := safehttp.New(safehttp.Config{Resolver: fixtureNames{}, Allow: []string{w.media.address}})
	require.NoError(t, err)
	key, err := w.accounts.SigningKey(ctx)
	require.NoError(t, err)
	logger := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := Config{
		Tasks: w.tasks.Owners, Accounts: w.accounts, Money: w.money, Erasure: &erasure.Eraser{DB: d, Accounts: w.accounts, Tasks: w.tasks}, TokenKey: key, CheckURL: outbound.CheckURL, Ops: true,
		Ready:   d.Ping,
		Metrics: metrics.New(w.tasks.Stats),
		Logger:  logger,
	}
	for _, c := range change {
		c(&cfg)
	}
	w.api, err = New(cfg)
	require.NoError(t, err)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = HTTPServer(w.api.Handler(), cfg.Logger)
	srv.Start()
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// newAccount creates an account with a balance, high limits and a key.
func (w *world) newAccount(name, balance string) (accounts.Account, string) {
	w.t.Helper()
	ctx := context.Background()
	a, err := w.accounts.Create(ctx, name)
	require.NoError(w.t, err)
	amount, err := billing.ParseMoney(balance)
	require.NoError(w.t, err)
	if amount > 0 {
		_, err = w.money.Recharge(ctx, a.ID, amount, "test")
		require.NoError(w.t, err)
	}
	many, tps := 1000, 100_000.0
	require.NoError(w.t, w.accounts.SetLimits(ctx, a.ID, accounts.Overrides{Concurrency: &many, TPS: &tps}))
	key, _, err := w.accounts.CreateKey(ctx, a.ID, accounts.KeyOptions{})
	require.NoError(w.t, err)
	return a, key
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// object returns the body as a JSON object.
func (a answer) object(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(a.body, &m), "%s", a.body)
	return m
}

// code returns the error_code of a failed response.
func (a answer) code(t testing.TB) string {
	t.Helper()
	m := a.object(t)
	if e, ok := m["error"].(map[string]any); ok { // of OpenAI's shape
		return e["code"].(string)
	}
	require.Len(t, m, 2, "%s", a.body)
	require.NotEmpty(t, m["error"])
	code, _ := m["error_code"].(string)
	return code
}

func with(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// do sends a request to the API with the world's key, and checks the response
// against the contract.
func (w *world) do(method, path string, body any, headers ...http.Header) answer {
	w.t.Helper()
	h := with("X-API-Key", w.key)
	for _, more := range headers {
		for k, v := range more {
			h[k] = v
			if len(v) == 1 && v[0] == "" {
				delete(h, k)
			}
		}
	}
	return w.send(method, "/v1"+path, body, h)
}

// noKey removes the key.
var noKey = http.Header{"X-Api-Key": {""}}

func (w *world) send(method, path string, body any, header http.Header) answer {
	w.t.Helper()
	var r io.Reader
	sent := body
	switch b := body.(type) {
	case nil:
	case string:
		sent = []byte(b)
	case []byte:
	case io.Reader:
		r = b
	default:
		text, err := json.Marshal(b)
		require.NoError(w.t, err)
		sent = text
	}
	if text, ok := sent.([]byte); ok {
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, w.url+path, r)
	require.NoError(w.t, err)
	for k, v := range header {
		req.Header[k] = v
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	text, whole := sent.([]byte)
	checkContract(w.t, req, text, whole && a.status < 300, a)
	return a
}

var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 200, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// wav returns a WAV file of silence, n seconds at 8 kHz, 8 bits.
func wav(seconds int) []byte {
	n := 8000 * seconds
	b := make([]byte, 44+n)
	copy(b, "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data")
	put := func(at, v int) { b[at], b[at+1], b[at+2], b[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24) }
	put(4, 36+n)
	put(40, n)
	for i := 44; i < len(b); i++ {
		b[i] = 128
	}
	return b
}

// upload returns the body of a Base64 submission.
func upload(options any) map[string]any {
	m := map[string]any{"audio_base64": base64.StdEncoding.EncodeToString(wav(2)), "audio_filename": "silence.wav"}
	if options != nil {
		m["options"] = options
	}
	return m
}

// create creates a task and returns its id.
func (w *world) create(body any) string {
	w.t.Helper()
	a := w.do("POST", "/tasks", body)
	require.Equal(w.t, 201, a.status, "%s", a.body)
	return a.object(w.t)["id"].(string)
}

func (w *world) task(id string) map[string]any {
	w.t.Helper()
	a := w.do("GET", "/tasks/"+id, nil)
	require.Equal(w.t, 200, a.status, "%s", a.body)
	return a.object(w.t)
}

// openDatabase returns a fresh database of a kind, or skips the test.
func openDatabase(t *testing.T, kind string) *db.DB {
	t.Helper()
	if kind == "postgres" {
		return dbtest.Postgres(t, db.Options{})
	}
	return dbtest.SQLite(t, db.Options{})
}

// blobKeys returns the keys of the stored files.
func blobKeys(t *testing.T, w *world) []string {
	t.Helper()
	var keys []string
	require.NoError(t, w.blobs.List(context.Background(), "", func(o blob.Object) error {
		keys = append(keys, o.Key)
		return nil
	}))
	return keys
}
