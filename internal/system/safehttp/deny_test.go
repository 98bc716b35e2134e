package safehttp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwnAddressesAreNotPublic checks that the machine's addresses are refused
// in every form, as literals and by name, unless the operator allows them.
func TestOwnAddressesAreNotPublic(t *testing.T) {
	own := func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("2001:4860:4860::8844")}
	}
	dialled := 0
	client := func(allow ...string) *Client {
		c, err := New(Config{
			Allow: allow, own: own,
			Resolver: resolverFunc(func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("8.8.4.4")}, nil }),
			dial: func(context.Context, string, string) (net.Conn, error) {
				dialled++
				return nil, fmt.Errorf("no network in tests")
			},
		})
		require.NoError(t, err)
		return c
	}
	for _, url := range []string{
		"http://8.8.4.4/", "http://[::ffff:8.8.4.4]/", "http://[2001:4860:4860::8844]/", "http://own.example.com/",
		"http://[64:ff9b::808:404]/", "http://[2002:808:404::1]/", "http://[2a00::5efe:808:404]/",
	} {
		c := client()
		assert.ErrorIs(t, c.CheckURL(t.Context(), url), ErrRefused, url)
		_, err := c.Get(t.Context(), url, nil)
		assert.ErrorIs(t, err, ErrRefused, url)
		assert.Zero(t, dialled, url)
	}
	assert.NoError(t, client().CheckURL(t.Context(), "http://8.8.8.8/"))
	assert.NoError(t, client("8.8.4.4").CheckURL(t.Context(), "http://8.8.4.4/"))
	assert.NoError(t, client("own.example.com").CheckURL(t.Context(), "http://own.example.com/"))

	// The last check, on the address that the kernel will connect to.
	c, err := New(Config{own: own})
	require.NoError(t, err)
	_, err = c.connect(t.Context(), netip.MustParseAddr("8.8.4.4"), 80, false)
	assert.ErrorIs(t, err, ErrRefused)

	loopback := netip.MustParseAddr("127.0.0.1")
	assert.Contains(t, ownAddresses(), loopback)
}

// TestDenyWins checks that Deny takes precedence over every permission.
func TestDenyWins(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	for _, tt := range []struct {
		allow, deny, url string
		ok               bool
	}{
		{"127.0.0.1", "10.0.0.0/8", "http://127.0.0.1:" + port + "/", true},
		{"127.0.0.1", "127.0.0.0/8", "http://127.0.0.1:" + port + "/", false},
		{"nas.lan", "127.0.0.1", "http://nas.lan:" + port + "/", false},
		{"nas.lan", "nas.lan", "http://nas.lan:" + port + "/", false},
		{"*.lan", "nas.lan", "http://nas.lan:" + port + "/", false},
		{"*.lan", "other.lan", "http://nas.lan:" + port + "/", true},
		{"127.0.0.1", "127.0.0.1:" + port, "http://127.0.0.1:" + port + "/", false},
		{"127.0.0.1", "127.0.0.1:1", "http://127.0.0.1:" + port + "/", true},
	} {
		c, err := New(Config{Allow: []string{tt.allow}, Deny: []string{tt.deny}, Resolver: resolverFunc(func() ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		})})
		require.NoError(t, err)
		check := c.CheckURL(t.Context(), tt.url)
		resp, err := c.Get(t.Context(), tt.url, nil)
		if tt.ok {
			assert.NoError(t, check, tt)
			if assert.NoError(t, err, tt) {
				resp.Body.Close()
			}
		} else {
			assert.ErrorIs(t, check, ErrRefused, tt)
			assert.ErrorIs(t, err, ErrRefused, tt)
		}
		c.Close()
	}
	c, err := New(Config{Deny: []string{"8.8.8.0/24"}})
	require.NoError(t, err)
	for _, url := range []string{"http://8.8.8.8/", "http://[64:ff9b::808:808]/", "http://[2002:808:808::1]/"} {
		assert.ErrorIs(t, c.CheckURL(t.Context(), url), ErrRefused, "%s: a public address, too", url)
	}
	_, err = New(Config{Deny: []string{"x/"}})
	assert.ErrorContains(t, err, "deny-outbound")
}

// TestFailuresRevealNoAddresses checks that the text of a failure contains no address
// and does not distinguish a closed port from a silent one.
func TestFailuresRevealNoAddresses(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed.Close()
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				serve(c)
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	answer := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte(text))
		}
	}
	client := allowLoopback(t, Config{HeaderTimeout: 100 * time.Millisecond})
	for name, tt := range map[string]struct{ address, text string }{
		"closed":      {closed.Addr().String(), failedReach},
		"hangs up":    {listen(func(net.Conn) {}), failedAnswer},
		"no HTTP":     {listen(answer("SSH-2.0-OpenSSH_9.2\r\n")), failedAnswer},
		"silent":      {listen(func(c net.Conn) { time.Sleep(300 * time.Millisecond) }), failedAnswer},
		"broken body": {listen(answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")), failedBody},
	} {
		resp, err := client.Get(t.Context(), "http://"+tt.address+"/", nil)
		if err == nil {
			_, err = resp.Body.Read(make([]byte, 10))
			for err == nil {
				_, err = resp.Body.Read(make([]byte, 10))
			}
			resp.Body.Close()
		}
		require.Error(t, err, name)
		assert.Equal(t, tt.text, err.Error(), name)
		assert.NotErrorIs(t, err, ErrRefused, name)
		if !strings.HasPrefix(name, "broken") {
			assert.NotEqual(t, tt.text, Class(err), "the operator's log has more details")
			assert.NotContains(t, Class(err), "127.0.0.1", "and no address")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Get(ctx, "http://"+closed.Addr().String()+"/", nil)
	assert.ErrorIs(t, err, context.Canceled)
}
