package safehttp

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ErrRefused is matched by every error for a URL that is never requested. The
// caller must not retry.
var ErrRefused = errors.New("address refused")

// refusal is an error with the reason why a URL is not requested.
type refusal struct{ reason string }

// Error implements error.
func (e *refusal) Error() string { return ErrRefused.Error() + ": " + e.reason }

// Is implements errors.Is for ErrRefused.
func (e *refusal) Is(target error) bool { return target == ErrRefused }

// Permanent returns true, because retrying doesn't help.
func (e *refusal) Permanent() bool { return true }

// errNotPublic is the only error for all refusals that depend on the network: a
// private address, a mixed result and a name that does not exist have the same
// text, so that it reveals nothing about the internal network.
var errNotPublic error = &refusal{"the host is not a public address that this service may access"}

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// MaxURL is the longest accepted URL, in bytes.
const MaxURL = 8192

// standardPorts are the ports that need no permission from the operator.
var standardPorts = map[uint16]bool{80: true, 443: true, 8080: true, 8443: true}

// insideNames are names and suffixes that never denote a public host (RFC 6761,
// RFC 6762, RFC 8375, ICANN's reserved and commonly squatted private suffixes).
var insideNames = []string{
	"localhost", "localdomain", "local", "internal", "intranet", "private",
	"lan", "corp", "home", "home.arpa", "invalid", "onion", "svc",
}

// target is a URL whose text has passed the rules that need no resolver.
type target struct {
	url  *url.URL
	host string     // lower-case ASCII name without trailing dot, or the address in canonical form
	addr netip.Addr // valid if host is a literal
	port uint16
	// needsAllow is set if only an entry of the allow list can permit the URL:
	// an unusual port or a name that is never public.
	needsAllow bool
}

// lookupProfile is UTS 46 processing for look-ups without transitional mapping.
var lookupProfile = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.Transitional(false),
	idna.VerifyDNSLength(true),
	idna.StrictDomainName(false), // underscores exist in real host names; checkName restricts the alphabet
)

// parseTarget checks the text of a URL. Its errors wrap ErrRefused and name the
// violated rule; they depend only on the text.
func parseTarget(raw string) (*target, error) {
	if raw == "" {
		return nil, refuse("the URL is empty")
	}
	if len(raw) > MaxURL {
		return nil, refuse("the URL is longer than %d bytes", MaxURL)
	}
	if !utf8.ValidString(raw) {
		return nil, refuse("the URL is not valid UTF-8")
	}
	if i := strings.IndexFunc(raw, func(r rune) bool { return r <= 0x20 || r == 0x7f || r == '\\' || r == 0x85 || r == 0xa0 }); i >= 0 {
		return nil, refuse("the URL contains a space, a control character or a backslash")
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case !ok:
		return nil, refuse("the URL must begin with http:// or https://")
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return nil, refuse("only http and https URLs are supported")
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if strings.ContainsRune(authority, '@') {
		return nil, refuse("a URL must not carry credentials")
	}
	if strings.ContainsRune(authority, '%') {
		return nil, refuse("the host must not contain a percent sign")
	}
	t := &target{}
	host, port, err := splitAuthority(authority)
	if err != nil {
		return nil, err
	}
	t.port = port
	if port == 0 {
		t.port = 80
		if strings.EqualFold(scheme, "https") {
			t.port = 443
		}
	}
	if strings.HasPrefix(authority, "[") {
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is6() || a.Zone() != "" {
			return nil, refuse("the text in brackets is not an IPv6 address")
		}
		t.addr, t.host = a, a.String()
	} else if t.host, t.addr, err = canonicalHost(host); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.User != nil || u.Host == "" {
		return nil, refuse("the URL cannot be parsed")
	}
	// The requested URL is built from the checked parts, so that no later
	// parser can find a different host in it.
	hostPart := t.host
	if t.addr.Is6() {
		hostPart = "[" + hostPart + "]"
	}
	if port != 0 {
		hostPart += ":" + strconv.Itoa(int(port))
	}
	u.Scheme, u.Host, u.Fragment, u.RawFragment = strings.ToLower(scheme), hostPart, "", ""
	t.url = u
	t.needsAllow = !standardPorts[t.port] || (!t.addr.IsValid() && insideName(t.host))
	return t, nil
}

// splitAuthority splits "host[:port]"; port is 0 if it is missing.
func splitAuthority(authority string) (host string, port uint16, err error) {
	portText, hasPort := "", false
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", 0, refuse("the bracket of the IPv6 address is not closed")
		}
		host = authority[1:end]
		if after := authority[end+1:]; after != "" {
			if after[0] != ':' {
				return "", 0, refuse("the host cannot be parsed")
			}
			portText, hasPort = after[1:], true
		}
	} else {
		host, portText, hasPort = strings.Cut(authority, ":")
		if strings.ContainsRune(portText, ':') {
			return "", 0, refuse("the host has more than one colon; enclose IPv6 addresses in brackets")
		}
	}
	if host == "" {
		return "", 0, refuse("the URL has no host")
	}
	if !hasPort {
		return host, 0, nil
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || n == 0 || portText[0] == '0' || portText[0] == '+' {
		return "", 0, refuse("the port is not a number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// canonicalHost converts a host, not a bracketed address, to ASCII.
func canonicalHost(host string) (string, netip.Addr, error) {
	name := host
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		ascii, err := lookupProfile.ToASCII(strings.TrimSuffix(host, "."))
		// A name of non-ASCII characters that maps to plain ASCII uses
		// look-alikes (full-width digits, circled letters, soft hyphens).
		if err != nil || !strings.Contains("."+ascii, ".xn--") {
			return "", netip.Addr{}, refuse("the host is not a valid internationalized name")
		}
		name = ascii
	}
	name = strings.ToLower(name)
	if a, err := netip.ParseAddr(name); err == nil && a.Is4() && a.String() == name {
		return name, a, nil
	}
	name = strings.TrimSuffix(name, ".")
	if err := checkName(name); err != nil {
		return "", netip.Addr{}, err
	}
	if strings.Contains("."+name, ".xn--") {
		if _, err := lookupProfile.ToASCII(name); err != nil {
			return "", netip.Addr{}, refuse("the host is not a valid internationalized name")
		}
	}
	return name, netip.Addr{}, nil
}

func checkName(name string) error {
	if len(name) == 0 || len(name) > 253 {
		return refuse("the host name must have 1 to 253 characters")
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if len(l) == 0 || len(l) > 63 {
			return refuse("each part of the host name must have 1 to 63 characters")
		}
		for i := range len(l) {
			c := l[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return refuse("the host name contains a character that is not allowed in host names")
			}
		}
		if l[0] == '-' || l[len(l)-1] == '-' {
			return refuse("a part of the host name begins or ends with a hyphen")
		}
	}
	// No top-level domain begins with a digit. If the last label begins with
	// one, the name is an address in one of the notations that only C resolvers
	// accept (127.1, 0x7f.1, 2130706433).
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return refuse("the host is neither a name nor an address in canonical form")
	}
	return nil
}

// insideName reports whether a name can only be internal: a single label
// (completed by search domains) or one with a private suffix.
func insideName(name string) bool {
	if !strings.Contains(name, ".") {
		return true
	}
	return slices.ContainsFunc(insideNames, func(s string) bool { return name == s || strings.HasSuffix(name, "."+s) })
}
