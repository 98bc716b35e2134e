package safehttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) { outside.Main(m) }

// world is a Client whose resolver and connections are fixtures. It records
// every dialed address.
type world struct {
	resolver *fixtureResolver
	server   *redirector
	client   *Client
	mu       sync.Mutex
	dialled  []netip.AddrPort
}

func newWorld(t testing.TB, server *redirector, row *corpusRow, maxRedirects int) *world {
	w := &world{server: server, resolver: &fixtureResolver{row: row, asked: map[string]int{}}}
	server.use(row)
	c, err := New(Config{
		MaxRedirects: maxRedirects, Resolver: w.resolver,
		tls: &tls.Config{InsecureSkipVerify: true},
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.mu.Lock()
			w.dialled = append(w.dialled, netip.MustParseAddrPort(address))
			w.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, server.ln.Addr().String())
		},
	})
	require.NoError(t, err)
	w.client = c
	return w
}

// verdict submits the URL, then fetches it three times, as retries would.
func (w *world) verdict(url string) error {
	ctx := context.Background()
	if err := w.client.CheckURL(ctx, url); err != nil {
		return err
	}
	for range 3 {
		w.server.mu.Lock()
		w.server.requests = 0
		w.server.mu.Unlock()
		resp, err := w.client.Get(ctx, url, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
	}
	return nil
}

// TestForbiddenAddressesAreNotDialed runs every row of the corpus: denied URLs
// are refused with ErrRefused, allowed URLs are fetched, and no forbidden
// address is dialed. It covers T9 of test/README.md.
func TestForbiddenAddressesAreNotDialed(t *testing.T) {
	server := newRedirector(t)
	rows := readCorpus(t)
	var denied, allowed, dials, forbidden int
	for i := range rows {
		row := &rows[i]
		w := newWorld(t, server, row, 5)
		err := w.verdict(row.url)
		if row.allow {
			allowed++
			assert.NoError(t, err, "line %d %q (%s)", row.line, row.url, row.comment)
		} else {
			denied++
			assert.ErrorIs(t, err, ErrRefused, "line %d %q (%s)", row.line, row.url, row.comment)
		}
		for _, a := range w.dialled {
			dials++
			if !Public(a.Addr()) || !standardPorts[a.Port()] {
				forbidden++
				t.Errorf("line %d %q: dialled %v", row.line, row.url, a)
			}
		}
	}
	assert.Equal(t, 308, denied)
	assert.Equal(t, 49, allowed)
	t.Logf("T9: %d denied, %d allowed, %d connections, %d requests to a forbidden address", denied, allowed, dials, forbidden)
}

// post sends a request as a callback would.
func post(c *Client, url string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
	if err != nil { // not even Go's parser accepts the URL
		return c.do(context.Background(), http.MethodPost, url, nil, nil, 0)
	}
	return c.Do(req)
}

// TestCallbacksFollowNoRedirects posts to every row with a redirect: at most one
// request is sent, and the redirect is returned as a failure.
// It covers T9 of test/README.md.
func TestCallbacksFollowNoRedirects(t *testing.T) {
	server := newRedirector(t)
	rows := readCorpus(t)
	n := 0
	for i := range rows {
		row := &rows[i]
		if len(row.redirects) == 0 {
			continue
		}
		n++
		w := newWorld(t, server, row, 5)
		resp, err := post(w.client, row.url)
		require.NoError(t, err, row.url)
		resp.Body.Close()
		assert.Equal(t, row.redirects[0].status, resp.StatusCode)
		assert.Len(t, w.dialled, 1, row.url)
	}
	require.Greater(t, n, 15)
}

// TestLiteralsNeverReachTheResolver shows that differences between Go's and C's
// resolver don't matter, because addresses in any notation are checked before a
// resolver is asked. It covers T9 of test/README.md.
func TestLiteralsNeverReachTheResolver(t *testing.T) {
	server := newRedirector(t)
	rows := readCorpus(t)
	n := 0
	for i := range rows {
		row := &rows[i]
		switch row.category {
		case "loopback", "unspecified", "ipv4-in-ipv6", "private", "special", "scheme", "port":
			n++
			w := newWorld(t, server, row, 5)
			assert.ErrorIs(t, w.client.CheckURL(context.Background(), row.url), ErrRefused)
			assert.Empty(t, w.resolver.asked, row.url)
		}
	}
	require.Greater(t, n, 150)
}

// TestRealResolversRealSockets uses the real dialer and both resolvers of Go
// with a server on loopback that must receive nothing.
// It covers T9 of test/README.md.
func TestRealResolversRealSockets(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	port := srv.URL[strings.LastIndex(srv.URL, ":"):]
	for _, preferGo := range []bool{true, false} {
		// Internal names are only resolved if a network is allowed.
		c, err := New(Config{Allow: []string{"192.0.2.0/24"}, Resolver: &net.Resolver{PreferGo: preferGo}})
		require.NoError(t, err)
		for _, host := range []string{"localhost", "localhost.", "127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
			_, err := c.Get(context.Background(), "http://"+host+port+"/", nil)
			assert.ErrorIs(t, err, ErrRefused, "PreferGo=%v %s", preferGo, host)
			_, err = post(c, "http://"+host+port+"/")
			assert.ErrorIs(t, err, ErrRefused, "PreferGo=%v %s", preferGo, host)
		}
		c.Close()
	}
	assert.Zero(t, hits.Load())
	t.Logf("T9: %d requests reached the loopback server", hits.Load())
}

// TestControlIsTheLastCheck bypasses the resolver: the dialer's control refuses
// even a connection that is requested directly.
func TestControlIsTheLastCheck(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	c, err := New(Config{})
	require.NoError(t, err)
	a := netip.MustParseAddrPort(ln.Addr().String())
	_, err = c.connect(context.Background(), a.Addr(), a.Port(), false)
	assert.ErrorIs(t, err, ErrRefused)
	conn, err := c.connect(context.Background(), a.Addr(), a.Port(), true)
	require.NoError(t, err)
	conn.Close()
}

// TestMixedAnswerIsRefused checks that one private address among public ones refuses
// the name.
// It covers T35 of test/README.md.
func TestMixedAnswerIsRefused(t *testing.T) {
	server := newRedirector(t)
	for _, list := range []string{"8.8.8.8,10.0.0.1", "10.0.0.1,8.8.8.8", "8.8.8.8,::1", "8.8.8.8,1.1.1.1,169.254.169.254"} {
		row := &corpusRow{dns: map[string][][]netip.Addr{"mixed.example.com": {addrs(t, list, ",")}}}
		w := newWorld(t, server, row, 5)
		assert.ErrorIs(t, w.client.CheckURL(context.Background(), "http://mixed.example.com/"), ErrRefused, list)
		_, err := w.client.Get(context.Background(), "http://mixed.example.com/", nil)
		assert.ErrorIs(t, err, ErrRefused, list)
		assert.Empty(t, w.dialled, list)
	}
	t.Log("T35: 4 mixed names, 0 connections")
}

// TestRefusalsRevealNoInternalNames checks that private, mixed and missing
// names yield the same text.
func TestRefusalsRevealNoInternalNames(t *testing.T) {
	server := newRedirector(t)
	row := &corpusRow{dns: map[string][][]netip.Addr{
		"private.example.com": {addrs(t, "10.0.0.1", ",")},
		"mixed.example.com":   {addrs(t, "8.8.8.8,10.0.0.1", ",")},
	}}
	w := newWorld(t, server, row, 5)
	texts := map[string]bool{}
	for _, u := range []string{"http://private.example.com/", "http://mixed.example.com/", "http://missing.example.com/", "http://10.0.0.1/", "http://intranet/"} {
		err := w.client.CheckURL(context.Background(), u)
		require.ErrorIs(t, err, ErrRefused)
		texts[err.Error()] = true
	}
	assert.Len(t, texts, 1, "%v", texts)
}

func TestResolverFailureIsNotARefusal(t *testing.T) {
	c, err := New(Config{Resolver: resolverFunc(func() ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "server misbehaving", Name: "a.example.com", Server: "10.9.8.7:53", IsTemporary: true}
	})})
	require.NoError(t, err)
	err = c.CheckURL(context.Background(), "http://a.example.com/")
	assert.ErrorIs(t, err, ErrResolver)
	assert.NotErrorIs(t, err, ErrRefused)
	assert.NotContains(t, err.Error(), "10.9.8.7")
}

type resolverFunc func() ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return f() }

// TestRulesApplyToOtherRequests checks that the same rules apply to a request
// created elsewhere, and that refusals are permanent.
func TestRulesApplyToOtherRequests(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = r.Method + " " + string(b) + " " + r.Header.Get("X-Signature")
		w.Header().Set("Location", "http://127.0.0.1/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader("body"))
	require.NoError(t, err)
	req.Header.Set("X-Signature", "sha256=1")
	resp, err := allowLoopback(t, Config{MaxRedirects: 5}).Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode)
	assert.Equal(t, "POST body sha256=1", got)

	c, err := New(Config{})
	require.NoError(t, err)
	_, err = c.Do(req)
	require.ErrorIs(t, err, ErrRefused)
	var p interface{ Permanent() bool }
	require.ErrorAs(t, err, &p)
	assert.True(t, p.Permanent())
}

func TestAllowedPrivateAddresses(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hits.Add(1) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	for _, tt := range []struct {
		allow string
		host  string
		ok    bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.0/8", "127.0.0.1", true},
		{"127.0.0.1:" + port, "127.0.0.1", true},
		{"127.0.0.1:1", "127.0.0.1", false},
		{"127.0.0.2", "127.0.0.1", false},
		{"10.0.0.0/8", "127.0.0.1", false},
		{"nas.lan", "nas.lan", true},
		{"NAS.lan", "nas.lan", true},
		{"nas.lan:" + port, "nas.lan", true},
		{"nas.lan:1", "nas.lan", false},
		{"*.lan", "nas.lan", true},
		{"*.lan", "lan", false},
		{"127.0.0.0/8", "nas.lan", true},
		{"nas.lan", "other.lan", false},
		{"127.0.0.1", "[::ffff:127.0.0.1]", true},
	} {
		t.Run(tt.allow+" "+tt.host, func(t *testing.T) {
			hits.Store(0)
			c, err := New(Config{Allow: []string{tt.allow}, Resolver: resolverFunc(func() ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			})})
			require.NoError(t, err)
			defer c.Close()
			url := "http://" + tt.host + ":" + port + "/a.wav"
			check := c.CheckURL(context.Background(), url)
			resp, err := c.Get(context.Background(), url, nil)
			if tt.ok {
				require.NoError(t, check)
				require.NoError(t, err)
				resp.Body.Close()
				assert.EqualValues(t, 1, hits.Load())
				return
			}
			assert.ErrorIs(t, check, ErrRefused)
			assert.ErrorIs(t, err, ErrRefused)
			assert.Zero(t, hits.Load())
		})
	}
	for _, bad := range []string{"", "10.0.0.0/33", "http://nas.lan", "nas.lan:0", "nas.lan:x", "a b", "fe80::1%eth0", "127.1"} {
		_, err := New(Config{Allow: []string{bad}})
		assert.Error(t, err, bad)
	}
}

func allowLoopback(t *testing.T, cfg Config) *Client {
	cfg.Allow = []string{"127.0.0.1"}
	c, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestResponseHeaderIsBounded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Big", strings.Repeat("a", MaxHeader+1))
	}))
	defer srv.Close()
	_, err := allowLoopback(t, Config{}).Get(context.Background(), srv.URL, nil)
	assert.Error(t, err)
}

func TestCompressedResponsesAreNotExpanded(t *testing.T) {
	var accept string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accept = r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("\x1f\x8bnot really"))
	}))
	defer srv.Close()
	resp, err := allowLoopback(t, Config{}).Get(context.Background(), srv.URL, nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "\x1f\x8bnot really", string(body))
	assert.Equal(t, "identity", accept)
}

func TestSilenceEndsARequest(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = w.Write([]byte("a"))
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	defer srv.Close()
	defer close(release)
	c := allowLoopback(t, Config{HeaderTimeout: 50 * time.Millisecond, IdleTimeout: 100 * time.Millisecond})
	_, err := c.Get(context.Background(), srv.URL+"/header", nil)
	assert.Error(t, err)
	assert.NotErrorIs(t, err, ErrRefused)
	resp, err := c.Get(context.Background(), srv.URL+"/body", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	assert.Error(t, err)
}

func TestEnvironmentProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	resp, err := allowLoopback(t, Config{}).Get(context.Background(), srv.URL, nil)
	require.NoError(t, err)
	resp.Body.Close()
}

func TestHeadersAreKeptAcrossRedirects(t *testing.T) {
	var ranges []string
	mux := http.NewServeMux()
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/b", http.StatusFound) })
	mux.HandleFunc("/b", func(w http.ResponseWriter, r *http.Request) { ranges = append(ranges, r.Header.Get("Range")) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	resp, err := allowLoopback(t, Config{MaxRedirects: 5}).Get(context.Background(), srv.URL+"/a", http.Header{"Range": {"bytes=5-"}})
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, []string{"bytes=5-"}, ranges)
}

// FuzzCheckURL checks that every accepted URL leads to a public address on a
// standard port in the exact form that the transport will parse.
func FuzzCheckURL(f *testing.F) {
	for _, r := range readCorpus(f) {
		f.Add(r.url)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		tg, err := parseTarget(raw)
		if err != nil {
			assert.ErrorIs(t, err, ErrRefused)
			return
		}
		again, err := parseTarget(tg.url.String())
		require.NoError(t, err, "%q → %q", raw, tg.url)
		assert.Equal(t, tg.host, again.host)
		assert.Equal(t, tg.port, again.port)
		assert.Equal(t, tg.host, tg.url.Hostname())
	})
}
