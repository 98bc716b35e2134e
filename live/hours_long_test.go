//go:build long

package live

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
)

// TestTenHours: a session of ten hours (ten minutes of speech, music and silence,
// again and again) with speakers and sounds takes at most 20 MB more than after
// its first hour, and leaves nothing.
func TestTenHours(t *testing.T) {
	p := demoPipeline(t)
	const minutes = 10
	block := tenMinutes(t, minutes)
	dir := t.TempDir()
	before := stateOf(t)
	s, err := Open(t.Context(), p, Options{Options: otograph.Options{ASRLanguage: new("en"), Optimize: new(true)}, TempDir: dir})
	require.NoError(t, err)
	count := map[spec.LiveKind]int{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for e, err := range s.Events() {
			assert.NoError(t, err)
			count[e.Kind]++
		}
	}()
	var first, last, most state
	for hour := 1; hour <= 10; hour++ {
		for range 60 / minutes {
			for at := 0; at < len(block); at += audio.SampleRate {
				require.NoError(t, s.Write(block[at:at+audio.SampleRate]))
				for s.Behind() > 20 {
					time.Sleep(time.Millisecond)
				}
			}
		}
		s.settle()
		last = stateOf(t)
		if hour == 1 {
			first = last
		}
		most.heap, most.resident = max(most.heap, last.heap), max(most.resident, last.resident)
		t.Logf("hour %2d: %v", hour, last)
	}
	assert.LessOrEqual(t, most.heap, first.heap+20, "MB")
	assert.LessOrEqual(t, most.resident, first.resident+20, "MB")
	res, err := s.Close()
	require.NoError(t, err)
	<-read
	t.Logf("%v; %d sentences", count, len(res.Segments))
	assert.InDelta(t, 36000, res.AudioDuration, 0.01)
	assert.NotZero(t, count[spec.LiveFinal])
	assert.NotZero(t, count[spec.LiveSound])
	after := stateOf(t)
	t.Logf("before: %v; after: %v", before, after)
	assert.LessOrEqual(t, after.goroutines, before.goroutines)
	assert.LessOrEqual(t, after.files, before.files+8, "the models' files")
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, list)
}

// tenMinutes returns a part of each: speech, music, silence.
func tenMinutes(t *testing.T, minutes int) []float32 {
	t.Helper()
	out := make([]float32, minutes*60*audio.SampleRate)
	fill := func(from, to int, pattern string) {
		list, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, list)
		at := from * audio.SampleRate
		for i := 0; at < to*audio.SampleRate; i = (i + 1) % len(list) {
			pcm := decoded(t, list[i])
			at += copy(out[at:to*audio.SampleRate], pcm.Samples(0, pcm.Len())) + audio.SampleRate
		}
	}
	fill(0, 60, "../testdata/demo/short/en_*")
	fill(70, 90, "../testdata/real/nospeech_*")
	return out
}

// state is the size of a process: MB of heap and of memory, goroutines, open
// files.
type state struct {
	heap, resident    float64
	goroutines, files int
}

func (s state) String() string {
	return fmt.Sprintf("heap %.1f MB, memory %.1f MB, %d goroutines, %d files", s.heap, s.resident, s.goroutines, s.files)
}

func stateOf(t *testing.T) (s state) {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.heap, s.goroutines = float64(m.HeapAlloc)/(1<<20), runtime.NumGoroutine()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "RssAnon: %f kB", &kb); n == 1 {
			s.resident = kb / 1024
		}
	}
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	s.files = len(list)
	return s
}
