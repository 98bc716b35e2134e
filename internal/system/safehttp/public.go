package safehttp

import (
	_ "embed"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
)

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
