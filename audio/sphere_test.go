package audio

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sphere returns a SPHERE file with these fields and samples.
func sphere(fields string, samples []byte) []byte {
	head := sphereMagic + "   1024\n" + fields + "end_head\n"
	return append([]byte(head+strings.Repeat(" ", 1024-len(head))), samples...)
}

func TestSphere(t *testing.T) {
	second := bytes.Repeat([]byte{0x40, 0x00}, 8000)
	for name, c := range map[string]struct {
		fields string
		want   float32
		length float64
		codec  string
	}{
		"big-endian":    {"sample_rate -i 8000\nsample_n_bytes -i 2\nsample_byte_format -s2 10\nsample_coding -s3 pcm\nsample_count -i 8000\n", 0.5, 1, "pcm_s16be"},
		"little-endian": {"channel_count -i 1\nsample_rate -i 8000\nsample_n_bytes -i 2\nsample_byte_format -s2 01\n", 64. / 32768, 1, "pcm_s16le"},
		"alaw":          {"sample_rate -i 8000\nsample_n_bytes -i 1\nsample_coding -s4 alaw\nchannel_count -i 2\n", (aLaw[0x40] + aLaw[0]) / 2, 1, "pcm_alaw"},
		"ulaw":          {"sample_rate -i 16000\nsample_n_bytes -i 1\nsample_coding -s4 ulaw\nsample_count -i 8000\n", 0, 0.5, "pcm_mulaw"},
	} {
		t.Run(name, func(t *testing.T) {
			file := sphere(c.fields, second)
			pcm, err := Open(t.Context(), Reader(bytes.NewReader(file), "x.WAV"), Options{})
			require.NoError(t, err)
			defer pcm.Close()
			assert.Equal(t, []any{"sphere", c.codec, c.length, false}, []any{pcm.Info().Container, pcm.Info().Codec, pcm.Info().Duration, pcm.Info().Truncated})
			if c.want != 0 {
				assert.InDelta(t, c.want, pcm.Samples(pcm.Len()/2, pcm.Len()/2+1)[0], 0.01)
			}
			info, err := Probe(t.Context(), Reader(bytes.NewReader(file), "x.WAV"), Options{})
			require.NoError(t, err)
			assert.Equal(t, c.length, info.Duration)
			cut, err := Open(t.Context(), Reader(bytes.NewReader(file[:4000]), "x.WAV"), Options{})
			require.NoError(t, err)
			defer cut.Close()
			assert.Equal(t, strings.Contains(c.fields, "sample_count"), cut.Info().Truncated)
		})
	}
	for fields, want := range map[string]string{
		"sample_rate -i 8000\nsample_n_bytes -i 2\nsample_coding -s26 pcm,embedded-shorten-v2.00\n": "pcm,embedded-shorten-v2.00",
		"sample_n_bytes -i 2\n":                     "sample_rate",
		"sample_rate -i 8000\n":                     "sample_n_bytes",
		"sample_rate -i 8000\nchannel_count -i x\n": "channel_count",
	} {
		_, err := Open(t.Context(), Reader(bytes.NewReader(sphere(fields, second)), "x.sph"), Options{})
		assert.ErrorContains(t, err, want)
	}
}

func FuzzSphere(f *testing.F) {
	f.Add(sphere("sample_rate -i 8000\nsample_n_bytes -i 2\n", make([]byte, 100)))
	f.Add([]byte(fmt.Sprintf("%s%8d\n", sphereMagic, -1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := readSphereHeader(&tape{r: bufioReader(append([]byte(sphereMagic), data...))}); err == nil {
			assert.True(t, h.align > 0 && h.rate >= minWAVRate && h.rate <= maxWAVRate && h.convert != nil)
		}
	})
}
