//go:build unix

package audio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// BenchmarkOpenWAV decodes a minute of sound from the page cache, including the
// MD5 and the samples on disk.
func BenchmarkOpenWAV(b *testing.B) {
	for _, c := range []struct {
		rate, channels int
	}{{16000, 1}, {8000, 1}, {44100, 2}, {48000, 2}} {
		b.Run(fmt.Sprintf("%d_%dch", c.rate, c.channels), func(b *testing.B) {
			const seconds = 60
			data := s16(noise(c.rate*c.channels, 0.5, 1))
			var all []byte
			for range seconds {
				all = append(all, data...)
			}
			path := filepath.Join(b.TempDir(), "a.wav")
			require.NoError(b, os.WriteFile(path, wavFile{data: all, rate: c.rate, channels: c.channels}.bytes(), 0o600))
			for b.Loop() {
				pcm, err := Open(b.Context(), File(path), Options{})
				require.NoError(b, err)
				pcm.Close()
			}
			b.ReportMetric(seconds*float64(b.N)/b.Elapsed().Seconds(), "xrealtime")
		})
	}
}

// BenchmarkOpenFFmpeg measures the cost of the child process: for a 3-second
// file, mostly the time to start it.
func BenchmarkOpenFFmpeg(b *testing.B) {
	needFFmpeg(b)
	for b.Loop() {
		pcm, err := Open(b.Context(), File("testdata/formats/no_extension"), Options{})
		require.NoError(b, err)
		pcm.Close()
	}
}

// BenchmarkFormats decodes ten minutes of speech in each common format and
// reports seconds of sound per second of wall-clock time and per second of CPU
// time, including the child's. For comparison it also runs ffmpeg alone,
// without resampling.
func BenchmarkFormats(b *testing.B) {
	bin, err := findFFmpeg(Options{})
	if err != nil {
		b.Skip(err)
	}
	const source, loops = "../testdata/conversation.flac", 10
	for _, c := range []struct {
		name string
		args []string
	}{
		{"16k.wav", nil},
		{"44k1_stereo.wav", []string{"-ar", "44100", "-ac", "2"}},
		{"16k.flac", nil},
		{"44k1_stereo.flac", []string{"-ar", "44100", "-ac", "2"}},
		{"44k1.mp3", []string{"-ar", "44100", "-c:a", "libmp3lame", "-b:a", "128k"}},
		{"44k1_stereo.mp3", []string{"-ar", "44100", "-ac", "2", "-c:a", "libmp3lame", "-b:a", "128k"}},
		{"44k1_stereo.m4a", []string{"-ar", "44100", "-ac", "2", "-c:a", "aac", "-b:a", "128k"}},
		{"48k.opus", []string{"-ar", "48000", "-c:a", "libopus", "-b:a", "32k"}},
		{"vorbis.ogg", []string{"-ar", "44100", "-c:a", "libvorbis", "-q:a", "4"}},
	} {
		path := filepath.Join(b.TempDir(), c.name)
		args := append([]string{"-v", "error", "-nostdin", "-stream_loop", strconv.Itoa(loops - 1), "-i", source, "-map_metadata", "-1"}, c.args...)
		if out, err := exec.Command(bin, append(args, path)...).CombinedOutput(); err != nil {
			b.Logf("%s: this ffmpeg cannot write it: %s", c.name, out)
			continue
		}
		measure := func(b *testing.B, decode func() float64) {
			seconds, before := 0.0, processorTime(b)
			for b.Loop() {
				seconds += decode()
			}
			b.ReportMetric(seconds/b.Elapsed().Seconds(), "x_clock")
			b.ReportMetric(seconds/(processorTime(b)-before), "x_processor")
		}
		seconds := 0.0
		b.Run(c.name, func(b *testing.B) {
			measure(b, func() float64 {
				pcm, err := Open(b.Context(), File(path), Options{})
				require.NoError(b, err)
				defer pcm.Close()
				seconds = pcm.Duration()
				return seconds
			})
		})
		b.Run(c.name+"/ffmpeg", func(b *testing.B) {
			measure(b, func() float64 {
				require.NoError(b, exec.Command(bin, "-v", "error", "-nostdin", "-threads", "1", "-i", path, "-f", "f32le", "-y", os.DevNull).Run())
				return seconds
			})
		})
	}
}

// processorTime returns the CPU time, in seconds, of this process and the
// children that it has waited for.
func processorTime(b *testing.B) float64 {
	var sum float64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		require.NoError(b, unix.Getrusage(who, &u))
		for _, t := range []unix.Timeval{u.Utime, u.Stime} {
			sum += float64(t.Nano()) / 1e9
		}
	}
	return sum
}

// BenchmarkBareFFmpeg runs the same child without the sandbox and our code, for
// comparison.
func BenchmarkBareFFmpeg(b *testing.B) {
	bin, err := findFFmpeg(Options{})
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		_, err := exec.Command(bin, "-v", "error", "-nostdin", "-i", "testdata/formats/no_extension", "-f", "f32le", "-").Output()
		require.NoError(b, err)
	}
}

func BenchmarkProbe(b *testing.B) {
	needFFmpeg(b)
	for _, name := range []string{"UPPER.WAV", "no_extension"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := Probe(b.Context(), File("testdata/formats/"+name), Options{})
				require.NoError(b, err)
			}
		})
	}
}
