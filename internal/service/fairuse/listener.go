package fairuse

import (
	"cmp"
	"context"
	"net"
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
		refuse(c)
	}
}

const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 79\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
	`{"error":"too many connections: close some, try again","error_code":"internal"}`

// refuse must not block the listener: if the buffer is full, the rest is lost.
func refuse(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(time.Millisecond))
	_, _ = c.Write([]byte(busy))
	_ = c.Close()
}

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
