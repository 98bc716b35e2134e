package fairuse

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroup(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64", "[2001:db8::2]:80": "2001:db8::/64",
		"[::ffff:192.0.2.1]:80": "192.0.2.1", "[fe80::1%eth0]:80": "fe80::/64", "192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "@": "", "": "",
	} {
		assert.Equal(t, want, Group(ParseAddress(in)), in)
	}
}

// TestForwardedFor checks that only trusted proxies count, and only the part of
// the header that they added.
func TestForwardedFor(t *testing.T) {
	proxies, err := ParseProxies([]string{"10.0.0.0/8", " 192.0.2.7", "2001:db8::/32"})
	require.NoError(t, err)
	for _, tt := range []struct {
		remote  string
		headers []string
		want    string
	}{
		{"198.51.100.1:5", nil, "198.51.100.1"},
		{"198.51.100.1:5", []string{"203.0.113.9"}, "198.51.100.1"},
		{"10.1.2.3:5", nil, "10.1.2.3"},
		{"10.1.2.3:5", []string{"203.0.113.9"}, "203.0.113.9"},
		{"10.1.2.3:5", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"10.1.2.3:5", []string{"1.1.1.1", "203.0.113.9, 10.0.0.9"}, "203.0.113.9"},
		{"10.1.2.3:5", []string{"203.0.113.9, nonsense"}, "10.1.2.3"},
		{"10.1.2.3:5", []string{"203.0.113.9, nonsense, 10.0.0.9"}, "10.0.0.9"},
		{"10.1.2.3:5", []string{"10.0.0.8, 10.0.0.9"}, "10.0.0.8"},
		{"10.1.2.3:5", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"10.1.2.3:5", []string{"[2001:db9::1]:4711"}, "2001:db9::1"},
		{"192.0.2.7:5", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[2001:db8::1]:5", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"[::ffff:10.1.2.3]:5", []string{"203.0.113.9"}, "203.0.113.9"},
	} {
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{"X-Forwarded-For": tt.headers}}
		assert.Equal(t, tt.want, proxies.Of(r).String(), "%+v", tt)
	}
	r := &http.Request{RemoteAddr: "@", Header: http.Header{}}
	assert.False(t, proxies.Of(r).IsValid())
	for _, bad := range []string{"", "x", "10.0.0.0/33", "fe80::1%eth0", "proxy.lan"} {
		_, err := ParseProxies([]string{bad})
		assert.Error(t, err, bad)
	}
}
