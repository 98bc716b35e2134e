//go:build long

package otograph_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models/demo"
)

// everyPair: each model hears each recording in TestCountsRepair.
const everyPair = true

// writeTiled writes the bundled recording repeatedly, as a WAV file of the
// given length.
func writeTiled(t *testing.T, path string, seconds int) {
	t.Helper()
	pcm, err := audio.Open(t.Context(), otograph.File(conversation), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	n := seconds * audio.SampleRate
	header := []any{
		[]byte("RIFF"), uint32(36 + 2*n), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1),
		uint32(audio.SampleRate), uint32(2 * audio.SampleRate), uint16(2), uint16(16), []byte("data"), uint32(2 * n),
	}
	for _, v := range header {
		require.NoError(t, binary.Write(w, binary.LittleEndian, v))
	}
	samples := pcm.Samples(0, pcm.Len())
	for i := range n {
		s := int16(samples[i%len(samples)] * 32767)
		_, err := w.Write([]byte{byte(s), byte(s >> 8)})
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
}

// anonymous returns the resident memory of this process, in MB, without the
// page cache.
func anonymous(t testing.TB) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		var kb float64
		if n, _ := fmt.Sscanf(line, "RssAnon: %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	t.Skip("the kernel does not tell RssAnon")
	return 0
}

// peak runs f and returns its highest anonymous resident memory, in MB.
func peak(t testing.TB, f func()) float64 {
	done := make(chan struct{})
	result := make(chan float64)
	go func() {
		most := 0.0
		for {
			most = max(most, anonymous(t))
			select {
			case <-done:
				result <- most
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return <-result
}

// Five hours with all stages need at most 64 MB more than five minutes.
func TestFiveHours(t *testing.T) {
	p := open(t, demo.Models())
	dir := t.TempDir()
	run := func(seconds int) float64 {
		path := filepath.Join(dir, fmt.Sprint(seconds, ".wav"))
		writeTiled(t, path, seconds)
		runtime.GC()
		var res *otograph.Result
		start := time.Now()
		mb := peak(t, func() {
			var err error
			res, err = p.Run(t.Context(), otograph.File(path), otograph.Options{})
			require.NoError(t, err)
		})
		t.Logf("%d s of audio: peak %.0f MB anonymous, %.0f × real time, %d segments, %d speakers, stages %v",
			seconds, mb, float64(seconds)/time.Since(start).Seconds(), len(res.Segments), res.NumSpeakers, res.Stats.StageSeconds)
		assert.Equal(t, 2, res.NumSpeakers)
		return mb
	}
	short := run(300)
	long := run(5 * 3600)
	assert.LessOrEqual(t, long, short+64, "MB")
}

// Aligning a text of five hours needs at most 64 MB more than a text of five
// minutes.
func TestFiveHoursAligned(t *testing.T) {
	p := open(t, demo.Models())
	dir := t.TempDir()
	once, err := p.Run(t.Context(), otograph.File(conversation), otograph.Options{Optimize: new(true), ASRLanguage: new("en")})
	require.NoError(t, err)
	run := func(seconds int) float64 {
		path := filepath.Join(dir, fmt.Sprint(seconds, ".wav"))
		writeTiled(t, path, seconds)
		var text strings.Builder
		for range int(float64(seconds) / once.AudioDuration) {
			for _, s := range once.Segments {
				text.WriteString(s.Text + " ")
			}
		}
		runtime.GC()
		var a *otograph.Alignment
		start, before := time.Now(), processorTime(t)
		mb := peak(t, func() {
			var err error
			a, err = p.Align(t.Context(), otograph.File(path), text.String(), otograph.AlignOptions{Language: "en"})
			require.NoError(t, err)
		})
		t.Logf("%d s of audio: peak %.0f MB anonymous, %.0f × real time, %.1f s of processor time, %d words, score %.3f",
			seconds, mb, float64(seconds)/time.Since(start).Seconds(), processorTime(t)-before, len(a.Words), a.Score)
		assert.True(t, a.Fits())
		return mb
	}
	short := run(300)
	long := run(5 * 3600)
	assert.LessOrEqual(t, long, short+64, "MB")
}

// processorTime returns the seconds of processor time that this process has
// used.
func processorTime(t testing.TB) float64 {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// Repeated loading, running and closing leaks nothing.
func TestOpenRunCloseRounds(t *testing.T) {
	const rounds = 200
	source := excerpt(t)
	type footprint struct {
		mb                      float64
		descriptors, goroutines int
	}
	measure := func() footprint {
		debug.FreeOSMemory()
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return footprint{anonymous(t), len(entries), runtime.NumGoroutine()}
	}
	var warm footprint
	for i := range rounds {
		p, err := otograph.Open(demo.Models(), otograph.Config{Cascade: new(0.0)})
		require.NoError(t, err)
		optimize := new(i%2 == 0)
		_, err = p.Run(t.Context(), source, otograph.Options{Optimize: optimize})
		require.NoError(t, err)
		require.NoError(t, p.Close())
		if i == rounds/4 {
			warm = measure()
		}
	}
	last := measure()
	t.Logf("after %d rounds %+v, after %d rounds %+v", rounds/4, warm, rounds, last)
	// ONNX Runtime itself keeps some 7 KB for every model that was ever open.
	assert.LessOrEqual(t, last.mb, warm.mb+32, "MB")
	assert.Equal(t, warm.descriptors, last.descriptors)
	assert.Equal(t, warm.goroutines, last.goroutines)
}
