// Package clientaddr finds the address that a request comes from, behind the
// proxies that an operator trusts, and the group of addresses that one client
// can choose from.
package clientaddr

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks whose X-Forwarded-For is believed. The zero value
// believes nobody.
type Proxies []netip.Prefix

// ParseProxies reads networks ("10.0.0.0/8") and addresses ("::1").
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
	for _, network := range p {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

// Of returns the address of the client that sent r: that of the connection, or,
// where this is a trusted proxy, the last address in X-Forwarded-For that no
// trusted proxy has. What stands before it in the header is the client's own
// claim. The address is invalid for connections that have none.
func (p Proxies) Of(r *http.Request) netip.Addr {
	a := Parse(r.RemoteAddr)
	if !a.IsValid() || !p.Trusts(a) {
		return a
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := Parse(strings.TrimSpace(hops[i]))
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

// Parse reads an address with or without a port; it is invalid for anything else.
func Parse(text string) netip.Addr {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// Group returns what stands for all addresses that a client has for the taking:
// the network of 64 bits for IPv6, the address itself for IPv4, "" for an
// invalid one.
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
