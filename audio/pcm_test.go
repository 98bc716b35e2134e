package audio

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	s := Span{8000, 24000}
	start, end := s.Seconds()
	assert.Equal(t, []any{16000, 0.5, 1.5}, []any{s.Len(), start, end})
}

func TestPCM(t *testing.T) {
	samples := noise(1000, 0.9, 1)
	mapped, err := Open(t.Context(), Raw(samples, SampleRate, 1), Options{})
	require.NoError(t, err)
	for name, p := range map[string]*PCM{"slice": FromSamples(samples), "mapped": mapped} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, 1000, p.Len())
			assert.InDelta(t, 0.0625, p.Duration(), 1e-12)
			assert.Equal(t, 0.0625, p.Info().Duration)
			assert.Equal(t, samples, p.Samples(0, 1000))
			assert.Equal(t, samples[10:20], p.Samples(10, 20))
			assert.Equal(t, samples, p.Samples(-5, 5000))
			assert.Equal(t, samples[990:], p.Samples(990, 5000))
			assert.Empty(t, p.Samples(20, 10))
			assert.Empty(t, p.Samples(5000, 6000))
			assert.Empty(t, p.Samples(-10, -5))
			v := p.Samples(0, 10)
			assert.Equal(t, 10, cap(v), "an append must not write into the recording")
			require.NoError(t, p.Close())
			require.NoError(t, p.Close())
			assert.Zero(t, p.Len())
			assert.Empty(t, p.Samples(0, 10))
		})
	}
}

// residentKB reads a line of /proc/self/status, in KB.
func residentKB(t testing.TB, field string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, field+":") {
			n := 0
			for _, c := range l {
				if c >= '0' && c <= '9' {
					n = n*10 + int(c-'0')
				}
			}
			return n
		}
	}
	t.Skip("no ", field)
	return 0
}

// walk reads every sample window by window, like the models.
func walk(p *PCM) (sum float32) {
	for at := 0; at < p.Len(); at += 30 * SampleRate {
		for _, x := range p.Samples(at, at+30*SampleRate) {
			sum += x
		}
	}
	return sum
}

// checkFlatMemory decodes a recording of the given length and reads it; neither
// step may use memory that grows with the length.
func checkFlatMemory(t *testing.T, seconds int) {
	path := longWAV(t, seconds)
	runtime.GC()
	before := residentKB(t, "VmRSS")
	pcm, err := Open(t.Context(), File(path), Options{})
	require.NoError(t, err)
	defer pcm.Close()
	require.Equal(t, seconds*SampleRate, pcm.Len())
	walk(pcm)
	grown := residentKB(t, "VmRSS") - before
	t.Logf("%d s of audio, %d MB of samples: resident memory grew by %d MB", seconds, pcm.Len()*4>>20, grown>>10)
	assert.Less(t, grown, 48<<10)
}

func TestMemoryStaysFlat(t *testing.T) { checkFlatMemory(t, 25*60) }

// TestNothingLeaks opens and closes repeatedly and checks that the numbers of
// descriptors and mappings stay the same.
func TestNothingLeaks(t *testing.T) {
	needFFmpeg(t)
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return len(e) + 1000*strings.Count(string(maps), "(deleted)")
	}
	run := func(n int) {
		for i := range n {
			path := "testdata/formats/UPPER.WAV"
			if i%8 == 0 {
				path = "testdata/formats/wav_gsm_8k.wav"
			}
			pcm, err := Open(t.Context(), File(path), Options{})
			require.NoError(t, err)
			require.NoError(t, pcm.Close())
			_, err = Open(t.Context(), File("testdata/bad/wav_1_sample.wav"), Options{})
			require.ErrorIs(t, err, ErrTooSmall)
		}
	}
	run(8)
	before := count()
	run(64)
	assert.Equal(t, before, count())
	assert.Empty(t, children(t))
}

// longWAV writes a recording of noise of the given length without keeping it in
// memory.
func longWAV(t testing.TB, seconds int) string {
	t.Helper()
	block := s16(noise(SampleRate, 0.5, 9))
	head := wavFile{dataSize: size(uint32(seconds * len(block)))}.bytes()
	f, err := os.Create(t.TempDir() + "/long.wav")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(head)
	require.NoError(t, err)
	for range seconds {
		_, err := f.Write(block)
		require.NoError(t, err)
	}
	return f.Name()
}
