//go:build long

package whisper

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
)

// resident returns the process's resident memory in bytes.
func resident(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func threads(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	return len(list)
}

// TestLoadRunClose opens, uses and closes the demo model 200 times.
func TestLoadRunClose(t *testing.T) {
	m := demoModel(t)
	pcm := read(t, "en_00")
	o := greedy()
	round := func() {
		e, err := openFile(m, Options{})
		require.NoError(t, err)
		tr, err := e.Transcribe(context.Background(), pcm, clips[0].speech(), o)
		require.NoError(t, err)
		require.Equal(t, []string{clips[0].text}, textsOf(tr))
		require.NoError(t, e.Close())
	}
	var memory, files, natives, goroutines int
	for i := range 200 {
		round()
		if i == 49 {
			runtime.GC()
			memory, files, natives, goroutines = resident(t), descriptors(t), threads(t), runtime.NumGoroutine()
		}
	}
	runtime.GC()
	after := resident(t)
	t.Logf("resident after 50 rounds %.1f MB, after 200 %.1f MB; descriptors %d, %d; threads %d, %d",
		float64(memory)/1e6, float64(after)/1e6, files, descriptors(t), natives, threads(t))
	assert.LessOrEqual(t, after, memory+16<<20, "150 models of 23 MB leave nothing behind")
	assert.Equal(t, files, descriptors(t))
	assert.Equal(t, goroutines, runtime.NumGoroutine())
}

// TestHundredRuns transcribes the same sound 100 times with changing
// parallelism.
func TestHundredRuns(t *testing.T) {
	e := openDemo(t)
	pcm, speech := together(t, 2.5, clips[0], clips[1], clips[2], clips[3], clips[0], clips[2])
	o := asr.DefaultOptions()
	o.Language = "en"
	var first *asr.Transcript
	for i := range 100 {
		o.Parallel = 1 + i%3
		tr, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		if first == nil {
			first = tr
			require.Greater(t, tr.Stats.Windows, 1)
		}
		require.Equal(t, first, tr, "run %d", i)
	}
}
