package fairuse

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ConnectionLimits configures a Listener.
type ConnectionLimits struct {
	Total      int // connections in total; 0 = 4096
	PerAddress int // connections from one address (for IPv6, one network of 64 bits); 0 = 256
	// Proxies are exempt from PerAddress: their connections have many clients.
	Proxies Proxies
	// Refused is called for every refused connection; nil does nothing.
	Refused func(address string)
}

// Listener accepts connections within its limits. Connections beyond them are
// answered with HTTP 503 and closed.
type Listener struct {
	net.Listener
	limits ConnectionLimits
	places *Gate
}

// NewListener returns a listener over l.
func NewListener(l net.Listener, limits ConnectionLimits) *Listener {
	limits.Total = cmp.Or(max(limits.Total, 0), 4096)
	limits.PerAddress = cmp.Or(max(limits.PerAddress, 0), 256)
	if limits.Refused == nil {
		limits.Refused = func(string) {}
	}
	return &Listener{Listener: l, limits: limits, places: NewGate(limits.Total, limits.PerAddress, 0)}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := ParseAddress(c.RemoteAddr().String())
		key := Group(address)
		from := key
		if l.limits.Proxies.Trusts(address) {
			from = c.RemoteAddr().String() // the key of this connection alone
		}
		if leave, err := l.places.Enter(context.Background(), from); err == nil {
			return &conn{Conn: c, leave: leave}, nil
		}
		l.limits.Refused(key)
		// This must not block the listener: if the buffer is full, the rest is lost.
		_ = c.SetDeadline(time.Now().Add(time.Millisecond))
		_, _ = c.Write([]byte(busy))
		_ = c.Close()
	}
}

const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 79\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
	`{"error":"too many connections: close some, try again","error_code":"internal"}`

// conn frees its place when it is closed.
type conn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// CloseWrite closes the sending half. HTTP servers call it before they close a
// connection whose client is still sending.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Proxies are the networks whose X-Forwarded-For is trusted; nil trusts none.
type Proxies []netip.Prefix

// ParseProxies parses networks ("10.0.0.0/8") and addresses ("::1").
func ParseProxies(texts []string) (Proxies, error) {
	var out Proxies
	for _, text := range texts {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, addrErr := netip.ParseAddr(text)
			if addrErr != nil || a.Zone() != "" {
				return nil, fmt.Errorf("trusted proxy %q: expected a network (10.0.0.0/8) or an address", text)
			}
			a = a.Unmap()
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// Trusts reports whether a belongs to a trusted proxy.
func (p Proxies) Trusts(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(a) })
}

// Of returns the address of the client that sent r. That is the address of the
// connection or, if it is a trusted proxy, the last address in X-Forwarded-For
// that isn't a trusted proxy. Earlier addresses in the header are unverified
// claims of the client. The address is invalid if the connection has none.
func (p Proxies) Of(r *http.Request) netip.Addr {
	a := ParseAddress(r.RemoteAddr)
	if !a.IsValid() || !p.Trusts(a) {
		return a
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := ParseAddress(strings.TrimSpace(hops[i]))
		if !hop.IsValid() {
			break
		}
		a = hop
		if !p.Trusts(hop) {
			break
		}
	}
	return a
}

// ParseAddress parses an address, with or without a port; an invalid text
// yields an invalid address.
func ParseAddress(text string) netip.Addr {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// Group returns a key for all addresses that one client can choose from: the
// /64 network for IPv6, the address itself for IPv4, "" for an invalid one.
func Group(a netip.Addr) string {
	switch a = a.Unmap().WithZone(""); {
	case !a.IsValid():
		return ""
	case a.Is6():
		p, _ := a.Prefix(64)
		return p.String()
	}
	return a.String()
}
