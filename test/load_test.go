package test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A thousand requests per second for a task's state while a worker transcribes.
// The test logs the times; it only asserts that each request is answered.
func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	s := serve(t, t.TempDir(), "--grace", "1s").unlimited()
	whole := clip(t, 0, 60)
	for range 20 {
		s.create(upload(whole, map[string]any{"optimize": false}))
	}
	id := s.create(upload(clip(t, 8, 1.5), quick))
	d := s.store()
	require.Eventually(t, func() bool { return count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase = 'running'") == 1 }, patience, 20*time.Millisecond)
	req, err := http.NewRequest("GET", s.url+"/tasks/"+id, nil)
	require.NoError(t, err)
	req.Header.Set("X-API-Key", s.key)

	const perSecond = 1000
	times := make([]time.Duration, perSecond*loadSeconds)
	var failed atomic.Int64
	var wait sync.WaitGroup
	due := make(chan int, len(times))
	begun := time.Now()
	for range 64 { // limits concurrent requests
		wait.Go(func() {
			for i := range due {
				at := begun.Add(time.Duration(i) * time.Second / perSecond)
				time.Sleep(time.Until(at))
				res, err := client.Do(req.Clone(t.Context()))
				if err != nil {
					failed.Add(1)
					continue
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 || !bytes.Contains(body, []byte(id)) {
					failed.Add(1)
				}
				times[i] = time.Since(at) // from the scheduled time, so that a stall counts for every delayed request
			}
		})
	}
	for i := range times {
		due <- i
	}
	close(due)
	wait.Wait()
	took := time.Since(begun)
	running := count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase = 'running'")
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))].Round(10 * time.Microsecond) }
	assert.Zero(t, failed.Load())
	assert.Equal(t, 1, running, "the worker was busy throughout")
	t.Logf("%d requests in %.1f s (%.0f/s) while a worker transcribes: 0 errors, p50 %v, p99 %v, p99.9 %v, longest %v", len(times), took.Seconds(), float64(len(times))/took.Seconds(), at(.5), at(.99), at(.999), at(1))
}

// A large upload passes through the serving process without staying in its
// memory.
func TestUploadMemory(t *testing.T) {
	s := serve(t, t.TempDir(), "--workers", "0").unlimited()
	s.create(upload(clip(t, 0, 10), quick)) // initializes everything once
	head, tail := `{"audio_filename":"big.wav","audio_base64":"`, `"}`
	size := (uploadBytes - len(head) - len(tail)) / 4 * 4
	var status int
	begun := time.Now()
	growth := peakOver(t, s.cmd.Process.Pid, func() {
		body := io.MultiReader(bytes.NewBufferString(head), &base64Noise{left: size}, bytes.NewBufferString(tail))
		status = s.do("POST", "/tasks", body).status
	})
	require.Equal(t, 201, status)
	assert.Less(t, growth, int64(32<<20))
	spaced := 0
	growthOfSpaces := peakOver(t, s.cmd.Process.Pid, func() { spaced = s.do("POST", "/tasks", &spaces{left: uploadBytes}).status })
	assert.Equal(t, 400, spaced)
	assert.Less(t, growthOfSpaces, int64(32<<20))
	t.Logf("%d MB of Base64 in %.1f s: resident set of the server grew by %.1f MiB at most; T21: as many spaces: %d, grew by %.1f MiB",
		uploadBytes>>20, time.Since(begun).Seconds(), float64(growth)/(1<<20), spaced, float64(growthOfSpaces)/(1<<20))
}

// base64Noise is a Base64 body that never repeats within a megabyte.
type base64Noise struct {
	left  int
	block []byte
	at    int
}

func (b *base64Noise) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.block == nil {
		raw := make([]byte, 3<<18)
		x := uint32(1)
		for i := range raw {
			x = x*1664525 + 1013904223
			raw[i] = byte(x >> 24)
		}
		b.block = []byte(base64.StdEncoding.EncodeToString(raw))
	}
	n := min(len(p), b.left, len(b.block)-b.at)
	copy(p, b.block[b.at:b.at+n])
	b.at = (b.at + n) % len(b.block)
	b.left -= n
	return n, nil
}
