package outside

import (
	"net"
	"sync"
	"testing"
	"time"
)

// mode selects how a Proxy handles traffic.
type mode int

const (
	passing mode = iota
	dropping
	cutting
)

// Proxy is a TCP proxy in this process, with which tests partition a network: it
// passes traffic, drops it, or cuts its connections. Its zero mode passes everything.
type Proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu      sync.Mutex
	mode    mode
	changed *sync.Cond // the mode
	conns   map[net.Conn]bool
	refused int
}

// NewProxy starts a proxy to the connections that dial opens. It stops at the
// end of the test.
func NewProxy(t testing.TB, dial func() (net.Conn, error)) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, dial: dial, conns: map[net.Conn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	go p.accept()
	t.Cleanup(func() {
		listener.Close()
		p.Cut()
	})
	return p
}

// Addr returns the address that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Pass lets traffic through again, starting with the traffic that was held
// back.
func (p *Proxy) Pass() { p.set(passing) }

// Drop holds back all traffic: connections stay open and new ones are accepted,
// but no data arrives, as if packets were dropped.
func (p *Proxy) Drop() { p.set(dropping) }

// Cut closes all connections, and new ones immediately.
func (p *Proxy) Cut() { p.set(cutting) }

// Refused returns the number of connections that were not forwarded because the
// proxy is cut or dial failed.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (p *Proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	p.changed.Broadcast()
	if m == cutting {
		for c := range p.conns {
			c.Close()
		}
	}
}

// pass waits while traffic is dropped and reports whether it may flow.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == dropping {
		p.changed.Wait()
	}
	return p.mode == passing
}

// keep registers an open connection and reports whether it may stay open.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == cutting {
		p.refused++
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	if !p.pass() {
		return
	}
	server, err := p.dial()
	if err != nil {
		p.mu.Lock()
		p.refused++
		p.mu.Unlock()
		return
	}
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client) })
	both.Go(func() { p.pump(client, server) })
	both.Wait()
}

// pump copies bytes in one direction; at their end it closes the sending half
// of the other side.
func (p *Proxy) pump(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !p.pass() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	} else {
		to.Close()
	}
	_ = to.SetReadDeadline(time.Now().Add(time.Minute)) // the other direction may end later, but it must end
}
