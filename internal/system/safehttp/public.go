package safehttp

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// notPublic lists the networks that are not globally reachable unicast: the
// IANA special-purpose registries for IPv4 and IPv6 (RFC 6890 and its updates),
// multicast, and one address that a large cloud reserves for its agents
// although it is in a public range.
var notPublic = prefixes(
	"0.0.0.0/8",        // this network (RFC 791); 0.0.0.0 is loopback on Linux
	"10.0.0.0/8",       // private (RFC 1918)
	"100.64.0.0/10",    // carrier-grade NAT (RFC 6598)
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's wire server
	"169.254.0.0/16",   // link-local and metadata services
	"172.16.0.0/12",    // private (RFC 1918)
	"192.0.0.0/24",     // IETF protocol assignments (RFC 6890)
	"192.0.2.0/24",     // documentation (RFC 5737)
	"192.88.99.0/24",   // 6to4 relay anycast, deprecated (RFC 7526)
	"192.168.0.0/16",   // private (RFC 1918)
	"198.18.0.0/15",    // benchmarking (RFC 2544)
	"198.51.100.0/24",  // documentation (RFC 5737)
	"203.0.113.0/24",   // documentation (RFC 5737)
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast included
	"2001::/23",        // IETF protocol assignments: Teredo, benchmarking, ORCHID
	"2001:db8::/32",    // documentation (RFC 3849)
	"3fff::/20",        // documentation (RFC 9637)
	"64:ff9b:1::/48",   // NAT64 for local use (RFC 8215)
)

var (
	globalUnicast6 = netip.MustParsePrefix("2000::/3")     // everything assigned as global unicast (RFC 4291)
	nat64          = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour      = netip.MustParsePrefix("2002::/16")    // RFC 3056
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

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
