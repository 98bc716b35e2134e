//go:build long

package httpserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// residentSet returns this process's memory in bytes (Linux).
func residentSet(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// TestLongUpload sends 200 MB of Base64 over HTTP and measures the resident set
// of the process (server and client).
func TestLongUpload(t *testing.T) {
	w := newWorld(t)
	w.create(upload(nil)) // everything is there once
	before, peak := residentSet(t), int64(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				peak = max(peak, residentSet(t))
			}
		}
	})
	start := time.Now()
	a := w.do("POST", "/tasks", endless(maxSubmitBody-100))
	took := time.Since(start)
	close(stop)
	wg.Wait()
	require.Equal(t, 201, a.status, "%s", a.body)
	growth := peak - before
	assert.Less(t, growth, int64(32<<20))
	t.Logf("200 MiB of Base64 in %.1f s, resident set grew by at most %.1f MiB", took.Seconds(), float64(growth)/(1<<20))

	start = time.Now()
	a = w.do("POST", "/tasks", io.LimitReader(repeat(strings.Repeat(" ", 4096)), maxSubmitBody))
	assert.Equal(t, 400, a.status)
	t.Logf("T21: 200 MiB of spaces: %d after %.1f s", a.status, time.Since(start).Seconds())
}

// cpuTime returns the processor time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestLongLoad requests tasks 1,000 times a second on loopback and prints the
// distribution of response times.
func TestLongLoad(t *testing.T) {
	w := newWorld(t)
	id := w.create(upload(nil))
	const perSecond, seconds = 1000, 15
	req, err := http.NewRequest(http.MethodGet, w.url+"/v1/tasks/"+id, nil)
	require.NoError(t, err)
	req.Header.Set("X-API-Key", w.key)
	var mu sync.Mutex
	var times []time.Duration
	var failed atomic.Int64
	var wg sync.WaitGroup
	start, cpuBefore := time.Now(), cpuTime(t)
	for i := range perSecond * seconds {
		due := start.Add(time.Duration(i) * time.Second / perSecond)
		time.Sleep(time.Until(due))
		wg.Go(func() {
			resp, err := client.Do(req.Clone(req.Context()))
			if err != nil {
				failed.Add(1)
				return
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || !bytes.Contains(body, []byte(id)) {
				failed.Add(1)
			}
			took := time.Since(due) // from the planned time, so that a stall counts for all requests it delays
			mu.Lock()
			times = append(times, took)
			mu.Unlock()
		})
	}
	wg.Wait()
	took := time.Since(start)
	cpu := cpuTime(t) - cpuBefore
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))].Round(10 * time.Microsecond) }
	assert.Zero(t, failed.Load())
	t.Log(fmt.Sprintf("%d requests in %.1f s (%.0f/s): p50 %v, p99 %v, p99.9 %v, longest %v; %v of processor time for each, client included", len(times), took.Seconds(), float64(len(times))/took.Seconds(), at(.5), at(.99), at(.999), at(1), (cpu / time.Duration(len(times))).Round(time.Microsecond)))
}
