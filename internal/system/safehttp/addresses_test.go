package safehttp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAddresses checks that allowed addresses are returned and refused ones are
// not.
func TestAddresses(t *testing.T) {
	answer := []netip.Addr{}
	for i := range byte(6) {
		answer = append(answer, netip.AddrFrom4([4]byte{8, 8, 8, i}))
	}
	c, err := New(Config{Resolver: resolverFunc(func() ([]netip.Addr, error) { return answer, nil })})
	require.NoError(t, err)
	for url, want := range map[string][]netip.Addr{
		"https://receiver.example.com/": answer[:maxDialed],
		"https://8.8.4.4/":              {netip.MustParseAddr("8.8.4.4")},
		"https://[::ffff:8.8.4.4]/":     {netip.MustParseAddr("8.8.4.4")},
	} {
		got, err := c.Addresses(t.Context(), url)
		require.NoError(t, err, url)
		assert.Equal(t, want, got, url)
	}
	answer = append(answer, netip.MustParseAddr("10.0.0.1"))
	for _, url := range []string{"https://receiver.example.com/", "https://10.0.0.1/", "ftp://8.8.4.4/", "::"} {
		got, err := c.Addresses(t.Context(), url)
		assert.ErrorIs(t, err, ErrRefused, url)
		assert.Empty(t, got, url)
	}
}
