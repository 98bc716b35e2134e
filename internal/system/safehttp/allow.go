package safehttp

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// allowEntry is a rule of the operator, for every port if it has no port.
type allowEntry struct {
	prefix netip.Prefix // networks and addresses
	host   string       // canonical name; if suffix is set, all names below it
	suffix bool
	port   uint16 // 0 = any
}

// allowList is a list of rules, to allow or to deny; nil matches nothing.
type allowList []allowEntry

// parseList parses entries such as "10.0.0.0/8", "192.168.1.20",
// "192.168.1.20:9000", "[::1]:9000", "nas.lan", "nas.lan:9000", "*.corp".
func parseList(option string, entries []string) (allowList, error) {
	var list allowList
	for _, text := range entries {
		e, err := parseAllowEntry(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", option, text, err)
		}
		list = append(list, e)
	}
	return list, nil
}

func parseAllowEntry(text string) (allowEntry, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return allowEntry{prefix: p.Masked()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return allowEntry{prefix: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())}, nil
	}
	if ap, err := netip.ParseAddrPort(text); err == nil && ap.Addr().Zone() == "" && ap.Port() != 0 {
		a := ap.Addr().Unmap()
		return allowEntry{prefix: netip.PrefixFrom(a, a.BitLen()), port: ap.Port()}, nil
	}
	var e allowEntry
	host := text
	if h, p, ok := strings.Cut(text, ":"); ok {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return e, fmt.Errorf("the port is not a number from 1 to 65535")
		}
		host, e.port = h, uint16(n)
	}
	if h, ok := strings.CutPrefix(host, "*."); ok {
		host, e.suffix = h, true
	}
	name, addr, err := canonicalHost(host)
	if err != nil || addr.IsValid() {
		return e, fmt.Errorf("expected a network (10.0.0.0/8), an address or a host name, each with an optional :port")
	}
	e.host = name
	return e, nil
}

func (l allowList) host(name string, port uint16) bool {
	return slices.ContainsFunc(l, func(e allowEntry) bool {
		return e.host != "" && (e.port == 0 || e.port == port) && (!e.suffix && name == e.host || e.suffix && strings.HasSuffix(name, "."+e.host))
	})
}

func (l allowList) addr(a netip.Addr, port uint16) bool {
	return slices.ContainsFunc(l, func(e allowEntry) bool {
		return e.prefix.IsValid() && (e.port == 0 || e.port == port) && e.prefix.Contains(a.Unmap())
	})
}

//go:embed notpublic.txt
var notPublicList string

// notPublic lists the networks that are not globally reachable unicast: the
// IANA special-purpose registries for IPv4 and IPv6 (RFC 6890 and its updates),
// multicast, and one address that a large cloud reserves for its agents
// although it is in a public range.
var notPublic = func() (networks []netip.Prefix) {
	for line := range strings.Lines(notPublicList) {
		networks = append(networks, netip.MustParsePrefix(strings.Fields(line)[0]))
	}
	return networks
}()

var (
	globalUnicast6 = netip.MustParsePrefix("2000::/3")     // everything assigned as global unicast (RFC 4291)
	nat64          = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour      = netip.MustParsePrefix("2002::/16")    // RFC 3056
)

// carried returns addr and any IPv4 address embedded (NAT64, 6to4, ISATAP).
func carried(addr netip.Addr) []netip.Addr {
	addr = addr.Unmap().WithZone("")
	out := []netip.Addr{addr}
	if !addr.Is6() {
		return out
	}
	b := addr.As16()
	if nat64.Contains(addr) {
		return append(out, netip.AddrFrom4([4]byte(b[12:16])))
	}
	if sixToFour.Contains(addr) {
		out = append(out, netip.AddrFrom4([4]byte(b[2:6])))
	}
	// ISATAP (RFC 5214): the interface identifier 0000:5efe or 0200:5efe is
	// followed by the IPv4 address of the tunnel's end.
	if id := binary.BigEndian.Uint32(b[8:12]); id == 0x00005efe || id == 0x02005efe {
		out = append(out, netip.AddrFrom4([4]byte(b[12:16])))
	}
	return out
}

// Public reports whether addr is a globally reachable unicast address. For IPv6
// addresses that embed an IPv4 address (mapped, NAT64, 6to4, ISATAP), that
// address must be public as well. An address with a zone is never public.
func Public(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	return !slices.ContainsFunc(carried(addr), func(a netip.Addr) bool {
		return a.Is6() && !globalUnicast6.Contains(a) && !nat64.Contains(a) ||
			slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
	})
}
