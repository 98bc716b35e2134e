package fairuse

import (
	"net"
	"sync"
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

	mu    sync.Mutex
	total int
	by    map[string]int
}

// NewListener returns a listener over l.
func NewListener(l net.Listener, limits ConnectionLimits) *Listener {
	if limits.Total <= 0 {
		limits.Total = 4096
	}
	if limits.PerAddress <= 0 {
		limits.PerAddress = 256
	}
	if limits.Refused == nil {
		limits.Refused = func(string) {}
	}
	return &Listener{Listener: l, limits: limits, by: map[string]int{}}
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
		if l.take(key, l.limits.Proxies.Trusts(address)) {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.give(key) })}, nil
		}
		l.limits.Refused(key)
		refuse(c)
	}
}

func (l *Listener) take(key string, exempt bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.limits.Total || (!exempt && l.by[key] >= l.limits.PerAddress) {
		return false
	}
	l.total++
	l.by[key]++
	return true
}

func (l *Listener) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.by[key]--; l.by[key] == 0 {
		delete(l.by, key)
	}
}

const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 79\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
	`{"error":"too many connections: close some, try again","error_code":"internal"}`

// refuse must not block the listener: bytes beyond the buffer are lost.
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

// CloseWrite closes the sending half. HTTP servers do that before they close a
// connection whose client is still sending.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
