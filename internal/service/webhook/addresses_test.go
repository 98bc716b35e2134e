package webhook_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// hanging is a postbox whose receivers below .slow.example never answer. It
// counts the deliveries that hang at the same time.
type hanging struct {
	postbox
	mu         sync.Mutex
	open, most int
}

func newHanging() *hanging {
	h := &hanging{}
	h.answer = func(_ int, r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Host, ".slow.example") {
			return respond(200, strings.NewReader("ok"))
		}
		h.mu.Lock()
		h.open++
		h.most = max(h.most, h.open)
		h.mu.Unlock()
		<-r.Context().Done()
		h.mu.Lock()
		h.open--
		h.mu.Unlock()
		return nil, r.Context().Err()
	}
	return h
}

// peak returns the highest number of hanging deliveries since the last call.
func (h *hanging) peak() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := h.most
	h.most = h.open
	return most
}

// host returns the host of a callback's URL.
func host(t *testing.T, raw string) string {
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u.Host
}

// TestNamesOfOneAddressCountTogether: an account that uses a different name for
// every callback, all of one address, occupies no more slots than with one
// name. Its callbacks keep their attempts, and another account with the same
// address is not delayed.
func TestNamesOfOneAddressCountTogether(t *testing.T) {
	for name, address := range map[string]func(host string) string{
		"IPv4": func(host string) string { return []string{"203.0.113.7", "::ffff:203.0.113.7"}[len(host)%2] },
		"one IPv6 network": func(host string) string {
			sum := fnv.New32()
			fmt.Fprint(sum, host)
			return fmt.Sprintf("2001:db8:0:1::%x:%x", sum.Sum32()>>16, sum.Sum32()&0xffff)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
				box := newHanging()
				for i := range 8 {
					finish(f, fmt.Sprintf("https://customer%d.slow.example/", i), "")
				}
				stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, PerHost: 3, Poll: time.Second, Heartbeat: time.Minute, Addresses: func(_ context.Context, raw string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(address(host(t, raw)))}, nil
				}})
				defer stop()
				time.Sleep(10 * time.Second)
				assert.Len(t, box.all(), 3, "one address, under any names")

				f.Account = f.NewAccount("other", 10*billing.Unit)
				finish(f, "https://good.example/", "")
				time.Sleep(5 * time.Second)
				assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'delivered'"), "another account behind the same address")

				time.Sleep(5 * time.Minute)
				assert.Equal(t, 3, box.peak())
				assert.Equal(t, 8, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up' AND attempts = 4"), "waiting costs no attempt")
				assert.Len(t, box.all(), 8*4+1)
			})
		})
	}
}

// TestAddressesThatTimeOutShareHalfOfTheSlots: a new name does not make a slow
// address count as fast.
func TestAddressesThatTimeOutShareHalfOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
		box := newHanging()
		addresses := func(_ context.Context, raw string) ([]netip.Addr, error) {
			var name, address int
			_, err := fmt.Sscanf(host(t, raw), "n%d.a%d.slow.example", &name, &address)
			require.NoError(t, err)
			return []netip.Addr{netip.AddrFrom4([4]byte{203, 0, 113, byte(address)})}, nil
		}
		for i := range 8 {
			finish(f, fmt.Sprintf("https://n%d.a%d.slow.example/", i, i), "")
		}
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, AtOnce: 8, Poll: time.Second, Heartbeat: time.Minute, Addresses: addresses})
		defer stop()
		time.Sleep(5 * time.Second)
		assert.Equal(t, 8, box.peak())
		time.Sleep(3 * time.Minute) // all are given up
		require.Equal(t, 8, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'"))
		box.peak()
		for i := range 8 {
			finish(f, fmt.Sprintf("https://n%d.a%d.slow.example/", 100+i, i), "")
		}
		time.Sleep(5 * time.Minute)
		assert.Equal(t, 4, box.peak())
		assert.Equal(t, 16, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up' AND attempts = 4"))
	})
}

// TestUnresolvedNamesAreDelivered: if the look-up fails, the delivery itself
// reports the error.
func TestUnresolvedNamesAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
		box := newHanging()
		finish(f, "https://good.example/", "")
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Addresses: func(context.Context, string) ([]netip.Addr, error) {
			return nil, fmt.Errorf("no such name")
		}})
		time.Sleep(5 * time.Second)
		stop()
		assert.Len(t, box.all(), 1)
	})
}
