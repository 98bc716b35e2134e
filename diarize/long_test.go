//go:build long

package diarize_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/vad"
)

// anonymous returns the process's resident memory, in MB, except page cache.
func anonymous(t *testing.T) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "RssAnon: %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	t.Skip("the kernel does not tell RssAnon")
	return 0
}

// Diarizing five hours, with the segmenter, takes at most 80 MB more than five
// minutes: 58 MB were measured, with the vectors of all windows and the
// similarities of a sample.
func TestFiveHoursOfVoices(t *testing.T) {
	l := newListener(t)
	segmenter, err := networks.OpenSegmenter(demoModel(t, models.RoleSegmenter), networks.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { assert.NoError(t, segmenter.Close()) }()
	run := func(seconds int) float64 {
		path := filepath.Join(t.TempDir(), "tiled.wav")
		cmd := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-stream_loop", "-1", "-i", "testdata/conv3.flac", "-t", fmt.Sprint(seconds), "-c:a", "pcm_s16le", path)
		log, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", log)
		pcm := open(t, path)
		speech, err := vad.Detect(t.Context(), l.vad, pcm, vad.DefaultOptions())
		require.NoError(t, err)
		most, stop, done := 0.0, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				most = max(most, anonymous(t))
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		before := used(t)
		opt := diarize.DefaultOptions()
		opt.Segmenter = segmenter
		r, err := diarize.Diarize(t.Context(), l.voice, pcm, speech, opt)
		close(stop)
		<-done
		require.NoError(t, err)
		t.Logf("%d s: peak %.0f MB anonymous, %.1f s of processor time, %d turns", seconds, most, used(t)-before, len(r.Turns))
		assert.Len(t, r.Speakers, 3)
		return most
	}
	short := run(300)
	assert.LessOrEqual(t, run(5*3600), short+80, "MB")
}

// used returns the CPU time of this process in seconds.
func used(t *testing.T) float64 {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
