package httpserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

var _ limiter = (*accounts.Store)(nil)

func TestNewRequiresDependencies(t *testing.T) {
	w := newWorld(t)
	good := w.api.cfg
	for name, change := range map[string]func(*Config){
		"no tasks": func(c *Config) { c.Tasks = nil }, "no accounts": func(c *Config) { c.Accounts = nil }, "no money": func(c *Config) { c.Money = nil },
		"no URL check": func(c *Config) { c.CheckURL = nil }, "short key": func(c *Config) { c.TokenKey = make([]byte, 16) },
		"base path": func(c *Config) { c.BasePath = "v1" }, "root": func(c *Config) { c.BasePath = "/" }, "slash": func(c *Config) { c.BasePath = "/v1/" }, "wildcard": func(c *Config) { c.BasePath = "/{x}" },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		assert.Error(t, err, name)
	}
}

func TestEndpointsFollowTheBasePath(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BasePath = "/asr/v1" })
	assert.Equal(t, 200, w.send("GET", "/asr/v1/account", nil, with("X-API-Key", w.key)).status)
	assert.Equal(t, 404, w.send("GET", "/v1x/account", nil, with("X-API-Key", w.key)).status)
	assert.Contains(t, string(w.send("GET", "/docs", nil, nil).body), "/asr/v1")
	assert.Contains(t, string(w.send("GET", "/openapi.json", nil, nil).body), `"url":"/asr/v1"`)
}

func TestWebServesOtherPaths(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Web = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) })
	})
	assert.Equal(t, "page /", string(w.send("GET", "/", nil, nil).body))
	assert.Equal(t, "page /app.js", string(w.send("GET", "/app.js", nil, nil).body))
	assert.Equal(t, 404, w.send("GET", "/v1/nope", nil, nil).status, "the API still serves its own paths")
}

func TestOpsHandlerIsSeparate(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Ops = false })
	assert.Equal(t, 404, w.send("GET", "/metrics", nil, nil).status)
	srv := httptest.NewServer(w.api.OpsHandler())
	defer srv.Close()
	w.url = srv.URL
	for _, p := range []string{"/metrics", "/healthz", "/readyz"} {
		assert.Equal(t, 200, w.send("GET", p, nil, nil).status, p)
	}
	assert.Equal(t, 404, w.send("GET", "/v1x/account", nil, with("X-API-Key", w.key)).status)
	assert.Equal(t, 405, w.send("POST", "/metrics", nil, nil).status)
}

// faults fails calls of the limiter.
type faults struct{ err atomic.Pointer[error] }

func (f *faults) TakeToken(context.Context, string, billing.Limits) (time.Duration, error) {
	if err := f.err.Load(); err != nil {
		if *err == nil {
			panic("something broke")
		}
		return 0, *err
	}
	return 0, nil
}

// TestInternalErrorsAreHidden: an internal error has the same form as any other
// and reveals no internals.
func TestInternalErrorsAreHidden(t *testing.T) {
	f := &faults{}
	w := newWorld(t, func(c *Config) { c.Rate = f })
	for _, tt := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("dial tcp 10.1.2.3:5432: %w", db.ErrUnavailable), 503},
		{fmt.Errorf("x: %w", db.ErrFull), 507},
		{context.DeadlineExceeded, 503},
		{errors.New("secret at 10.1.2.3"), 500},
		{nil, 500}, // a panic
	} {
		f.err.Store(&tt.err)
		a := w.do("GET", "/account", nil)
		assert.Equal(t, tt.status, a.status)
		code := codeInternal
		if tt.status == 503 {
			code = codeUnavailable
		}
		assert.Equal(t, code, a.code(t))
		assert.NotContains(t, string(a.body), "10.1.2.3")
		assert.Equal(t, tt.status == 503, a.header.Get("Retry-After") != "")
	}
	assert.Contains(t, w.log.String(), "secret at 10.1.2.3", "the log has the cause")
	assert.Contains(t, w.log.String(), "something broke")
	f.err.Store(nil)
	assert.Equal(t, 200, w.do("GET", "/account", nil).status)
}

// TestFullDiskIs507: a submission to a full disk gets 507 in JSON and leaves
// nothing; afterwards the service continues. It covers T2 of test/README.md.
func TestFullDiskIs507(t *testing.T) {
	var full atomic.Bool
	for _, op := range []string{"create", "write", "commit"} {
		w2 := newWorld(t)
		w2.blobs.Inject(func(o, _ string) error {
			if o == op && full.Load() {
				return syscall.ENOSPC
			}
			return nil
		})
		full.Store(true)
		a := w2.do("POST", "/tasks", upload(nil))
		assert.Equal(t, 507, a.status, op)
		assert.Equal(t, codeInternal, a.code(t))
		full.Store(false)
		assert.EqualValues(t, 0, w2.do("GET", "/tasks", nil).object(t)["total"])
		assert.EqualValues(t, 0, w2.do("GET", "/account", nil).object(t)["held_amount"])
		assert.Equal(t, 201, w2.do("POST", "/tasks", upload(nil)).status)
	}
	t.Log("T2: 3 of 3 places without room gave 507, 0 tasks, 0 holds; then 201")
}

// TestDatabaseOutageIs503: while the store is closed, every request that needs
// it gets 503, and the health check fails. It covers T3 of test/README.md.
func TestDatabaseOutageIs503(t *testing.T) {
	var gone atomic.Bool
	d := openFaulty(t, &gone)
	w := newWorldOn(t, d)
	id := w.create(upload(nil))
	gone.Store(true)
	for _, q := range [][2]string{{"GET", "/account"}, {"GET", "/tasks"}, {"GET", "/tasks/" + id}, {"GET", "/tasks/" + id + "/result"}, {"DELETE", "/tasks/" + id}, {"GET", "/billing/transactions"}} {
		a := w.do(q[0], q[1], nil)
		assert.Equal(t, 503, a.status, "%v %s", q, a.body)
		assert.Equal(t, codeUnavailable, a.code(t))
		assert.Equal(t, "5", a.header.Get("Retry-After"))
	}
	assert.Equal(t, 503, w.do("POST", "/tasks", upload(nil)).status)
	assert.Equal(t, 503, w.send("GET", "/readyz", nil, nil).status)
	assert.Equal(t, 200, w.send("GET", "/healthz", nil, nil).status)
	assert.Contains(t, string(w.send("GET", "/metrics", nil, nil).body), "otograph_queue_up 0")
	gone.Store(false)
	assert.Equal(t, 200, w.do("GET", "/tasks/"+id, nil).status)
	assert.Equal(t, 200, w.send("GET", "/readyz", nil, nil).status)
	t.Log("T3: 7 kinds of request gave 503 while the database was gone, 200 after it came back")
}

// openFaulty opens a SQLite store whose connections fail while gone is set.
func openFaulty(t *testing.T, gone *atomic.Bool) *db.DB {
	return dbtest.SQLite(t, db.Options{Wrap: func(c driver.Connector) driver.Connector { return faultyConnector{c, gone} }})
}

type faultyConnector struct {
	driver.Connector
	gone *atomic.Bool
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.gone.Load() {
		return nil, driver.ErrBadConn
	}
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return faultyConn{conn, c.gone}, nil
}

// faultyConn hides the driver's optional interfaces, so that every use calls
// IsValid.
type faultyConn struct {
	driver.Conn
	gone *atomic.Bool
}

func (c faultyConn) IsValid() bool { return !c.gone.Load() }

func (c faultyConn) ResetSession(context.Context) error {
	if c.gone.Load() {
		return driver.ErrBadConn
	}
	return nil
}

func (c faultyConn) Ping(context.Context) error {
	if c.gone.Load() {
		return driver.ErrBadConn
	}
	return nil
}

func (c faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c faultyConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c faultyConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c faultyConn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, q)
}

// TestUnreadableResultCutsTheConnection: if a result can't be read to its end,
// the connection is cut, so that no response looks complete.
func TestUnreadableResultCutsTheConnection(t *testing.T) {
	w := newWorld(t)
	w.work()
	id := w.create(upload(nil))
	w.final(id)
	var result string
	for _, k := range blobKeys(t, w) {
		if strings.HasPrefix(k, "results/") {
			result = k
		}
	}
	require.NotEmpty(t, result)
	file := filepath.Join(w.blobs.Name(), result)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data[:len(data)/2], 0o600))
	req, err := http.NewRequest(http.MethodGet, w.url+"/v1/tasks/"+id+"/result", nil)
	require.NoError(t, err)
	req.Header.Set("X-API-Key", w.key)
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		if resp.StatusCode >= 500 {
			return
		}
	}
	assert.Error(t, err)
}

// TestRoutesMatchTheDocument: every route is in the document, and every path of
// the document is a route.
func TestRoutesMatchTheDocument(t *testing.T) {
	source, err := os.ReadFile("server.go")
	require.NoError(t, err)
	doc := readDocument(t)
	inCode := map[string]bool{}
	for _, m := range regexp.MustCompile(`s\.endpoint\("([^"]+)", methods\{(.*)\}\)`).FindAllStringSubmatch(string(source), -1) {
		for _, method := range regexp.MustCompile(`"([A-Z]+)":`).FindAllStringSubmatch(m[2], -1) {
			inCode[method[1]+" "+strings.ReplaceAll(m[1], "...}", "}")] = true
		}
	}
	inDoc := map[string]bool{}
	for path, item := range doc.Paths {
		for method := range item {
			if method = strings.ToUpper(method); method != "PARAMETERS" {
				inDoc[method+" "+path] = true
			}
		}
	}
	assert.Equal(t, inDoc, inCode)
	assert.GreaterOrEqual(t, len(inDoc), 15)
}
