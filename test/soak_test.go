//go:build long

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// T23: half an hour of mixed load. From the first third on, the following stay
// constant: memory, descriptors and goroutines of the serving process, and the
// size of a database whose tasks are deleted when they are done. OTOGRAPH_SOAK
// sets another duration.
func TestSoak(t *testing.T) {
	length := 30 * time.Minute
	if text := os.Getenv("OTOGRAPH_SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	out := newCustomer(t)
	audio := clip(t, 8, 1.5)
	out.files["/talk.wav"] = audio
	s := serve(t, t.TempDir(), "--allow-outbound", out.host()).unlimited()
	pid := s.cmd.Process.Pid
	type sample struct {
		memory      int64
		descriptors int
		goroutines  int
		database    int64
	}
	look := func() (x sample) {
		x.memory, x.descriptors = residentSet(t, pid), descriptors(t, pid)
		x.goroutines = int(s.metric("go_goroutines"))
		info, err := os.Stat(filepath.Join(s.data, "otograph.db"))
		require.NoError(t, err)
		x.database = info.Size()
		return x
	}
	var samples []sample
	var waiting []string
	made, deleted, requests := 0, 0, 0
	next := time.Now()
	for begun := time.Now(); time.Since(begun) < length; {
		body := upload(audio, quick, "callback_url", out.URL+"/hook")
		switch rand.IntN(5) {
		case 0:
			body = map[string]any{"audio_url": out.URL + "/talk.wav", "options": quick, "batch_mode": true}
		case 1:
			body = map[string]any{"audio_url": out.URL + "/gone.wav"}
		}
		if len(waiting) < 20 {
			waiting = append(waiting, s.create(body))
			made++
		}
		for range 20 {
			require.Equal(t, 200, s.do("GET", "/tasks/"+waiting[rand.IntN(len(waiting))], nil).status)
			s.do("GET", fmt.Sprintf("/tasks?page=%d", 1+rand.IntN(3)), nil)
			s.do("POST", "/tasks", `{"audio_url":`+oddValues[rand.IntN(len(oddValues))]+`}`)
			requests += 3
		}
		for i := 0; i < len(waiting); i++ {
			if task := s.task(waiting[i]); task["finished_at"] != nil {
				require.Contains(t, []any{"done", "failed"}, task["status"])
				require.Equal(t, 200, s.do("DELETE", "/tasks/"+waiting[i], nil).status)
				waiting = append(waiting[:i], waiting[i+1:]...)
				deleted++
				break
			}
		}
		if time.Now().After(next) {
			samples = append(samples, look())
			next = time.Now().Add(length / 30)
		}
		time.Sleep(20 * time.Millisecond)
	}
	samples = append(samples, look())
	exact(t, s.store())
	most := func(part []sample) (m sample) {
		for _, x := range part {
			m = sample{max(m.memory, x.memory), max(m.descriptors, x.descriptors), max(m.goroutines, x.goroutines), max(m.database, x.database)}
		}
		return m
	}
	third := len(samples) / 3
	early, late := most(samples[:2*third]), most(samples[2*third:])
	assert.Less(t, late.memory, early.memory+16<<20)
	assert.LessOrEqual(t, late.descriptors, early.descriptors+8)
	assert.LessOrEqual(t, late.goroutines, early.goroutines+16)
	// Ledger, settlements, finished jobs and callbacks are retained for a
	// while: a few KB per task.
	perTask := float64(late.database-early.database) / max(1, float64(deleted)/3)
	assert.Less(t, perTask, 8192.0)
	t.Logf("T23: %s: %d tasks, %d deleted, %d further requests; at most in the first two thirds and in the last: memory %.1f and %.1f MiB, descriptors %d and %d, goroutines %d and %d, database %.2f and %.2f MiB (%.0f bytes a task)",
		length, made, deleted, requests, float64(early.memory)/(1<<20), float64(late.memory)/(1<<20), early.descriptors, late.descriptors, early.goroutines, late.goroutines,
		float64(early.database)/(1<<20), float64(late.database)/(1<<20), perTask)
}

// descriptors returns the number of open files of a process.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skipf("the kernel does not tell: %v", err)
	}
	return len(list)
}
