package safehttp

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// corpusRow is one line of testdata/ssrf.txt; the format is described there.
type corpusRow struct {
	line      int
	allow     bool
	url       string
	dns       map[string][][]netip.Addr // per name: the result of each look-up; the last one repeats
	cname     map[string]string
	redirects []redirect
	loop      bool
	category  string
	comment   string
}

type redirect struct {
	status   int
	location string
}

func readCorpus(t testing.TB) []corpusRow {
	t.Helper()
	f, err := os.Open("testdata/ssrf.txt")
	require.NoError(t, err)
	defer f.Close()
	var rows []corpusRow
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := sc.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		col := strings.Split(line, "\t")
		require.Len(t, col, 5, "line %d", n)
		require.Contains(t, []string{"allow", "deny"}, col[0], "line %d", n)
		r := corpusRow{
			line: n, allow: col[0] == "allow", url: unescape(col[1]), category: col[3], comment: col[4],
			dns: map[string][][]netip.Addr{}, cname: map[string]string{},
		}
		if col[2] != "-" {
			r.fixtures(t, col[2])
		}
		rows = append(rows, r)
	}
	require.NoError(t, sc.Err())
	return rows
}

func unescape(s string) string {
	if s == `""` {
		return ""
	}
	return strings.NewReplacer(`\\`, `\`, `\r`, "\r", `\n`, "\n", `\t`, "\t", `\0`, "\x00").Replace(s)
}

func (r *corpusRow) fixtures(t testing.TB, text string) {
	for _, part := range strings.Split(text, ";") {
		key, value, ok := strings.Cut(part, "=")
		if !ok { // an option of this corpus; locations contain no semicolons
			require.Failf(t, "fixture", "line %d: %q", r.line, part)
		}
		// "redirect=302://host/" leaves out the colon between status and a
		// scheme-relative location's slashes.
		name, rest, _ := strings.Cut(value, ":")
		switch key {
		case "dns":
			r.dns[name] = [][]netip.Addr{addrs(t, rest, ",")}
		case "rebind":
			for _, a := range strings.Split(rest, ">") {
				r.dns[name] = append(r.dns[name], addrs(t, a, ","))
			}
		case "cname":
			r.cname[name] = rest
		case "redirect":
			status, err := strconv.Atoi(name)
			require.NoError(t, err)
			r.redirects = append(r.redirects, redirect{status, rest})
		case "loop":
			r.loop = true
		default:
			require.Failf(t, "fixture", "line %d: unknown %q", r.line, key)
		}
	}
}

func addrs(t testing.TB, list, sep string) []netip.Addr {
	var out []netip.Addr
	for _, s := range strings.Split(list, sep) {
		if s != "" {
			a, err := netip.ParseAddr(s)
			require.NoError(t, err)
			out = append(out, a)
		}
	}
	return out
}

// fixtureResolver answers from a corpus row; every other name does not exist.
type fixtureResolver struct {
	mu    sync.Mutex
	row   *corpusRow
	asked map[string]int
}

func (f *fixtureResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.row.cname[host] != "" {
		host = f.row.cname[host]
	}
	answers := f.row.dns[host]
	n := f.asked[host]
	f.asked[host]++
	if len(answers) == 0 || len(answers[min(n, len(answers)-1)]) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return append([]netip.Addr(nil), answers[min(n, len(answers)-1)]...), nil
}

// redirector is the only server for all addresses: it speaks HTTP and TLS on
// the same port and sends the row's redirects, then 200 "audio".
type redirector struct {
	ln       net.Listener
	mu       sync.Mutex
	row      *corpusRow
	requests int
}

func newRedirector(t testing.TB) *redirector {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &redirector{ln: ln}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(&sniffListener{Listener: ln, tls: &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}})
	}()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return s
}

func (s *redirector) use(row *corpusRow) { s.mu.Lock(); s.row, s.requests = row, 0; s.mu.Unlock() }

func (s *redirector) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.requests
	s.requests++
	if s.row.loop && len(s.row.redirects) > 0 {
		n = min(n, len(s.row.redirects)-1)
	}
	if n < len(s.row.redirects) {
		w.Header()["Location"] = []string{s.row.redirects[n].location}
		w.WriteHeader(s.row.redirects[n].status)
		return
	}
	_, _ = w.Write([]byte("audio"))
}

type sniffListener struct {
	net.Listener
	tls *tls.Config
}

func (l *sniffListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffConn{Conn: c, cfg: l.tls}, nil
}

// sniffConn decides at the first read whether the client speaks TLS.
type sniffConn struct {
	net.Conn
	cfg   *tls.Config
	once  sync.Once
	inner net.Conn
}

func (c *sniffConn) open() {
	c.once.Do(func() {
		r := bufio.NewReader(c.Conn)
		first, _ := r.Peek(1)
		c.inner = peeked{c.Conn, r}
		if len(first) == 1 && first[0] == 0x16 {
			c.inner = tls.Server(c.inner, c.cfg)
		}
	})
}
func (c *sniffConn) Read(p []byte) (int, error)  { c.open(); return c.inner.Read(p) }
func (c *sniffConn) Write(p []byte) (int, error) { c.open(); return c.inner.Write(p) }

type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (c peeked) Read(p []byte) (int, error) { return c.r.Read(p) }

func selfSigned(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"test.example.com"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Get is Do for a GET request; header may be nil.
func (c *Client) Get(ctx context.Context, raw string, header http.Header) (*http.Response, error) {
	return c.do(ctx, http.MethodGet, raw, header, nil, 0)
}
