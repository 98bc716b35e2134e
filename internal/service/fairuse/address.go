package fairuse

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

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
