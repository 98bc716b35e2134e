package safehttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// MaxHeader is the largest accepted response header, in bytes.
const MaxHeader = 64 << 10

// connectTimeout limits look-up, connection and TLS handshake separately.
const connectTimeout = 10 * time.Second

// maxDialed is the maximum number of a name's addresses that are tried, so that
// a name with hundreds of dead addresses can't keep a worker busy.
const maxDialed = 4

// Resolver looks up the addresses of a name. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config configures a Client. Zero means public addresses, no redirects.
type Config struct {
	// Allow permits hosts that are otherwise refused: networks ("10.0.0.0/8"),
	// addresses, host names ("nas.lan", "*.corp"); all except networks may have
	// a ":port". An entry without a port permits all ports.
	Allow []string
	// Deny refuses hosts that are otherwise permitted, in the form of Allow.
	Deny []string
	// MaxRedirects is the maximum number of redirects that Get follows; with 0
	// it returns the 3xx response.
	MaxRedirects int
	// HeaderTimeout limits the wait for the response header; 0 = 30 s.
	HeaderTimeout time.Duration
	// IdleTimeout limits the pause between reads or writes; 0 means 60 s.
	IdleTimeout time.Duration
	// UserAgent is sent with requests without a User-Agent; "" = "otograph".
	UserAgent string
	// Resolver resolves names; nil = the system's resolver.
	Resolver Resolver

	// dial replaces the connection in tests; the address was checked.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// own replaces the addresses of this machine in tests.
	own func() []netip.Addr
	// tls replaces the TLS settings in tests.
	tls *tls.Config
}

// Doer makes outbound requests, as a Client does.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client sends requests to allowed addresses only, also concurrently.
type Client struct {
	cfg         Config
	allow, deny allowList
	transport   *http.Transport
}

// New returns a Client, or an error for an invalid entry of Allow or Deny.
func New(cfg Config) (*Client, error) {
	allow, err := parseList("allow-outbound", cfg.Allow)
	if err != nil {
		return nil, err
	}
	deny, err := parseList("deny-outbound", cfg.Deny)
	if err != nil {
		return nil, err
	}
	if cfg.own == nil {
		cfg.own = ownAddresses
	}
	cfg.HeaderTimeout, cfg.IdleTimeout = cmp.Or(cfg.HeaderTimeout, 30*time.Second), cmp.Or(cfg.IdleTimeout, time.Minute)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "otograph")
	cfg.Resolver = cmp.Or[Resolver](cfg.Resolver, net.DefaultResolver)
	c := &Client{cfg: cfg, allow: allow, deny: deny}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	c.transport = &http.Transport{
		Proxy:                  nil, // a proxy would resolve and dial unchecked
		DialContext:            c.dialChecked,
		TLSClientConfig:        cfg.tls,
		TLSHandshakeTimeout:    connectTimeout,
		ResponseHeaderTimeout:  cfg.HeaderTimeout,
		MaxResponseHeaderBytes: MaxHeader,
		DisableCompression:     true, // a small response must not expand into a big one
		DisableKeepAlives:      true, // each request dials, so each request is checked
		Protocols:              protocols,
	}
	return c, nil
}

// CheckURL applies every rule to a URL without sending a request: first to the
// text, then to the addresses to which the name currently resolves. The error
// wraps ErrRefused, unless the resolver does not answer, which may be
// temporary.
func (c *Client) CheckURL(ctx context.Context, raw string) error {
	t, err := c.parse(raw)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_, err = c.resolve(ctx, t.host, t.port)
	return err
}

// Do sends a request and accepts every status. GET and HEAD follow at most
// MaxRedirects redirects, each checked like the first URL. For other methods,
// or if MaxRedirects is 0, it returns the 3xx response. The header is sent to
// every hop, so it must not contain credentials. The caller must close the
// response's body.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if req.URL == nil {
		return nil, refuse("the URL is empty")
	}
	return c.do(req.Context(), req.Method, req.URL.String(), req.Header, req.Body, req.ContentLength)
}

func (c *Client) do(ctx context.Context, method, raw string, header http.Header, body io.ReadCloser, length int64) (*http.Response, error) {
	follows := (method == http.MethodGet || method == http.MethodHead || method == "") && c.cfg.MaxRedirects > 0
	t, err := c.parse(raw)
	if err != nil {
		if body != nil {
			_ = body.Close()
		}
		return nil, err
	}
	for hop := 0; ; hop++ {
		resp, err := c.send(ctx, method, t, header, body, length)
		if err != nil {
			return nil, err
		}
		location := resp.Header.Get("Location")
		if !follows || !slices.Contains(redirections, resp.StatusCode) || location == "" {
			return resp, nil
		}
		_ = resp.Body.Close()
		if hop == c.cfg.MaxRedirects {
			return nil, refuse("more than %d redirects", c.cfg.MaxRedirects)
		}
		if t, err = c.follow(t, location); err != nil {
			return nil, err
		}
		body, length = nil, 0
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// parse checks the text of a URL. Before the name is resolved, it refuses URLs
// that no entry of the allow list can permit.
func (c *Client) parse(raw string) (*target, error) {
	t, err := parseTarget(raw)
	if err != nil {
		return nil, err
	}
	// A rule with an address can only refuse a name that is resolved.
	addresses := slices.ContainsFunc(c.allow, func(e allowEntry) bool { return e.prefix.IsValid() })
	if t.needsAllow && !addresses && !c.allow.host(t.host, t.port) {
		if !standardPorts[t.port] {
			return nil, refuse("only ports 80, 443, 8080 and 8443 are allowed")
		}
		return nil, errNotPublic
	}
	return t, nil
}

var redirections = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

func (c *Client) follow(from *target, location string) (*target, error) {
	if strings.ContainsFunc(location, func(r rune) bool { return r <= 0x20 || r == 0x7f || r == '\\' }) {
		return nil, refuse("the redirect contains a space, a control character or a backslash")
	}
	u, err := from.url.Parse(location)
	if err != nil {
		return nil, refuse("the redirect cannot be parsed")
	}
	next, err := c.parse(u.String())
	if err != nil {
		return nil, err
	}
	if from.url.Scheme == "https" && next.url.Scheme != "https" {
		return nil, refuse("a redirect leads from https to http")
	}
	return next, nil
}

func (c *Client) send(ctx context.Context, method string, t *target, header http.Header, body io.ReadCloser, length int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.url.String(), nil)
	if err != nil {
		return nil, refuse("the URL cannot be parsed")
	}
	req.Body, req.ContentLength = body, length
	for k, v := range header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, explain(err, failedAnswer)
	}
	resp.Body = answerBody{resp.Body}
	return resp, nil
}

// dialChecked resolves a name, checks every address, and connects to the
// checked addresses as literals, so that nothing is looked up a second time.
func (c *Client) dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errNotPublic
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, errNotPublic
	}
	lookup, cancel := context.WithTimeout(ctx, connectTimeout)
	addrs, err := c.resolve(lookup, host, uint16(port))
	cancel()
	if err != nil {
		return nil, err
	}
	var last error
	for _, a := range addrs[:min(len(addrs), maxDialed)] {
		conn, err := c.connect(ctx, a, uint16(port), c.allow.host(host, uint16(port)))
		if err == nil {
			return &idleConn{Conn: conn, idle: c.cfg.IdleTimeout}, nil
		}
		last = explain(err, failedReach)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

func (c *Client) connect(ctx context.Context, a netip.Addr, port uint16, hostAllowed bool) (net.Conn, error) {
	address := netip.AddrPortFrom(a, port).String()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if c.cfg.dial != nil {
		return c.cfg.dial(ctx, "tcp", address)
	}
	d := net.Dialer{
		// The last check, on the exact address that the kernel will connect to.
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || c.denied(ap.Addr(), ap.Port()) || !(hostAllowed || c.addrAllowed(ap.Addr(), ap.Port())) {
				return errNotPublic
			}
			return nil
		},
	}
	return d.DialContext(ctx, "tcp", address)
}

// addrAllowed reports whether requests to a at port are allowed. This machine's
// addresses are not, even if they are public, because services that listen
// there for internal use trust local clients.
func (c *Client) addrAllowed(a netip.Addr, port uint16) bool {
	if c.denied(a, port) {
		return false
	}
	own := func(a netip.Addr) bool { return slices.Contains(c.cfg.own(), a) }
	return c.allow.addr(a, port) || (Public(a) && standardPorts[port] && !slices.ContainsFunc(carried(a), own))
}

// denied reports whether the operator denied a, or an IPv4 address in it.
func (c *Client) denied(a netip.Addr, port uint16) bool {
	return slices.ContainsFunc(carried(a), func(a netip.Addr) bool { return c.deny.addr(a, port) })
}

// ownAddresses returns the addresses of this machine's interfaces.
func ownAddresses() []netip.Addr {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, i := range interfaces {
		if n, ok := i.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, a.Unmap())
			}
		}
	}
	return out
}

// resolve returns the addresses of host, all of which must be allowed at port.
func (c *Client) resolve(ctx context.Context, host string, port uint16) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" || !c.addrAllowed(a, port) {
			return nil, errNotPublic
		}
		return []netip.Addr{a.Unmap()}, nil
	}
	if c.deny.host(host, port) {
		return nil, errNotPublic
	}
	hostAllowed := c.allow.host(host, port)
	addrs, err := c.cfg.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
			return nil, errNotPublic
		}
		return nil, fmt.Errorf("the name of the host could not be resolved now: %w", temporary(err))
	}
	if len(addrs) == 0 {
		return nil, errNotPublic
	}
	inside := insideName(host)
	for i, a := range addrs {
		a = a.Unmap()
		addrs[i] = a
		switch {
		case c.denied(a, port):
			return nil, errNotPublic
		case hostAllowed:
		case inside && !c.allow.addr(a, port):
			return nil, errNotPublic
		case !c.addrAllowed(a, port):
			return nil, errNotPublic
		}
	}
	return addrs, nil
}

// ErrResolver is matched if the resolver failed to answer (timeout, server
// failure): a problem of the network, not of the URL.
var ErrResolver = errors.New("resolver did not answer")

// temporary removes the resolver's address and search path from its error,
// because they describe the internal network.
func temporary(err error) error {
	for _, e := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return e
		}
	}
	return ErrResolver
}

// idleConn closes a connection on which no data moves.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *idleConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
