package test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
)

// balancer distributes connections in turn among the servers that were ready at
// the last probe.
type balancer struct {
	probe time.Duration
	mu    sync.Mutex
	ready []string
	next  int
}

// follow probes the servers at addresses repeatedly until the test ends.
func (b *balancer) follow(t *testing.T, addresses func() []string) {
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		asking := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		for {
			var ready []string
			for _, a := range addresses() {
				res, err := asking.Get("http://" + a + "/readyz")
				if err != nil {
					continue
				}
				res.Body.Close()
				if res.StatusCode == http.StatusOK {
					ready = append(ready, a)
				}
			}
			b.mu.Lock()
			b.ready = ready
			b.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(b.probe):
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		wait.Wait()
	})
}

func (b *balancer) serving() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ready)
}

func (b *balancer) dial() (net.Conn, error) {
	b.mu.Lock()
	if len(b.ready) == 0 {
		b.mu.Unlock()
		return nil, fmt.Errorf("no server is ready")
	}
	b.next++
	address := b.ready[b.next%len(b.ready)]
	b.mu.Unlock()
	return net.Dial("tcp", address)
}

// TestRollingRestartRefusesNoRequest restarts two servers behind a balancer one
// after the other, twice (once in the short form), under load with and without
// keep-alive connections: no request is refused.
func TestRollingRestartRefusesNoRequest(t *testing.T) {
	t.Parallel()
	source := dbtest.PostgresSource(t)
	flags := []string{"--workers", "0", "--database", source, "--blobs", t.TempDir() + "/blobs", "--drain-delay", "2s"}
	first := serve(t, t.TempDir(), flags...).unlimited()
	servers := []*server{first, serve(t, t.TempDir(), flags...)}
	servers[1].key = first.key
	address := func(s *server) string { return strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/v1") }
	var mu sync.Mutex
	b := &balancer{probe: 200 * time.Millisecond}
	b.follow(t, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return []string{address(servers[0]), address(servers[1])}
	})
	require.Eventually(t, func() bool { return b.serving() == 2 }, patience, 20*time.Millisecond)
	proxy := outside.NewProxy(t, b.dial)

	requests, rounds, pause := int64(5000), 2, 10*time.Millisecond
	if testing.Short() {
		requests, rounds, pause = 1000, 1, 25*time.Millisecond
	}
	var asked, refused atomic.Int64
	var failures sync.Map
	stop := make(chan struct{})
	var wait sync.WaitGroup
	ask := func(keep bool) {
		own := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: !keep}}
		defer own.CloseIdleConnections()
		for {
			select {
			case <-stop:
				return
			default:
			}
			req, err := http.NewRequest("GET", "http://"+proxy.Addr()+"/v1/account", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-API-Key", first.key)
			asked.Add(1)
			res, err := own.Do(req)
			if err != nil {
				refused.Add(1)
				failures.Store(err.Error(), true)
				continue
			}
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				refused.Add(1)
				failures.Store(res.Status, true)
			}
			time.Sleep(pause)
		}
	}
	for i := range 4 {
		wait.Go(func() { ask(i%2 == 0) })
	}
	restarts := 0
	for asked.Load() < requests || restarts < 2*rounds {
		n := restarts % 2
		require.NoError(t, servers[n].stop(), servers[n].logged())
		next := servers[n].again()
		mu.Lock()
		servers[n] = next
		mu.Unlock()
		restarts++
		require.Eventually(t, func() bool { return b.serving() == 2 }, patience, 20*time.Millisecond)
	}
	close(stop)
	wait.Wait()
	failures.Range(func(what, _ any) bool {
		t.Error(what)
		return true
	})
	assert.Zero(t, refused.Load())
	assert.Zero(t, proxy.Refused())
	t.Logf("%d rolling restarts, %d of %d requests refused", restarts, refused.Load(), asked.Load())
}
