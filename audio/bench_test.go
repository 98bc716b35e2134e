package audio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkOpenWAV decodes a minute of sound from the page cache, MD5 and samples on disk included.
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

// BenchmarkOpenFFmpeg shows what the child costs: a 3-second file is mostly its start.
func BenchmarkOpenFFmpeg(b *testing.B) {
	needFFmpeg(b)
	for b.Loop() {
		pcm, err := Open(b.Context(), File("testdata/formats/no_extension"), Options{})
		require.NoError(b, err)
		pcm.Close()
	}
}

// BenchmarkBareFFmpeg is the same child without cage and without us, for comparison.
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
