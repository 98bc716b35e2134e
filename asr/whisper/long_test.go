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
	"github.com/otograph/otograph/audio"
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
	needLibrary(t)
	m := demoModel(t)
	pcm := read(t, "en_29")
	o := greedy()
	round := func() {
		e, err := Open(m, Options{})
		require.NoError(t, err)
		tr, err := e.Transcribe(context.Background(), pcm, clips[3].speech(), o)
		require.NoError(t, err)
		require.Equal(t, []string{clips[3].text}, texts(tr))
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

// TestHundredRuns transcribes the same sound 100 times with changing parallelism.
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

// TestMemoryDoesNotGrowWithLength compares five minutes with an hour of sound.
func TestMemoryDoesNotGrowWithLength(t *testing.T) {
	e := openWindows(t, testModel(), 10, Options{})
	run := func(minutes int) int {
		pcm := audio.FromSamples(make([]float32, 16000*60*minutes)) // untouched pages take no memory
		var speech []audio.Span
		for at := 0.0; at+8 < float64(60*minutes); at += 10 {
			speech = append(speech, spans(at, at+1)...)
		}
		o := greedy()
		o.Parallel = 2
		_, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		runtime.GC()
		return resident(t)
	}
	short := run(5)
	long := run(60)
	t.Logf("resident after 5 minutes %.1f MB, after 60 minutes %.1f MB", float64(short)/1e6, float64(long)/1e6)
	// reading an hour of silence maps its 230 MB; only windows' own memory is of interest
	assert.LessOrEqual(t, long, short+230e6+32<<20)
}
