package audio

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// opusFile has ffmpeg write three seconds of two tones and a pause.
func opusFile(t *testing.T, name string, channels string) []byte {
	t.Helper()
	data, err := os.ReadFile(ffmpegFile(t, name, "-f", "lavfi", "-i", "aevalsrc=0.3*sin(880*t)*gt(mod(t\\,1)\\,0.2)|0.2*sin(3000*t):s=48000:d=3", "-c:a", "libopus", "-page_duration", "20000", "-ac", channels))
	require.NoError(t, err)
	return data
}

// oggPackets returns the packets of an Ogg file, without its two headers. Each
// page must hold one packet of less than 255 × 255 bytes.
func oggPackets(data []byte) (packets [][]byte) {
	for len(data) > 0 {
		n := int(data[26])
		size := 0
		for _, lace := range data[27 : 27+n] {
			size += int(lace)
		}
		packets = append(packets, data[27+n:27+n+size])
		data = data[27+n+size:]
	}
	return packets[2:]
}

// pieces splits data.
func pieces(data []byte, n int) (list [][]byte) {
	for ; len(data) > n; data = data[n:] {
		list = append(list, data[:n])
	}
	return append(list, data)
}

// writer is a function as an io.Writer.
type writer func([]byte) error

func (w writer) Write(data []byte) (int, error) { return len(data), w(data) }

// unpack returns the samples of the pieces at SampleRate.
func unpack(t *testing.T, packets bool, list ...[]byte) (samples []float32, err error) {
	t.Helper()
	f, err := NewFeed("f32le", 48000, 1)
	require.NoError(t, err)
	in, ended := make(chan []byte), make(chan error)
	go func() {
		ended <- Unpack(t.Context(), in, packets, writer(func(data []byte) error {
			samples = f.Convert(samples, data)
			return nil
		}))
	}()
	for _, piece := range list {
		select {
		case in <- piece:
		case err := <-ended:
			close(in)
			return samples, err
		}
	}
	close(in)
	err = <-ended
	return f.Flush(samples), err
}

// TestUnpack checks that packets and streams, however they are split, are
// decoded to the samples of the file.
func TestUnpack(t *testing.T) {
	for _, channels := range []string{"1", "2"} {
		ogg := opusFile(t, "a.ogg", channels)
		pcm, err := Open(t.Context(), Reader(bytes.NewReader(ogg), "a.ogg"), Options{})
		require.NoError(t, err)
		defer pcm.Close()
		want := pcm.Samples(0, pcm.Len())
		for name, test := range map[string]struct {
			packets bool
			list    [][]byte
		}{
			"ogg": {false, pieces(ogg, 1000)}, "bytes": {false, pieces(ogg, 5)}, "webm": {false, pieces(opusFile(t, "a.webm", channels), 777)}, "packets": {true, oggPackets(ogg)},
		} {
			got, err := unpack(t, test.packets, test.list...)
			require.NoError(t, err, name)
			edge := 0
			if test.packets { // all encoded samples: also the pre-skip and the rest of the last packet
				const skip = 312 * SampleRate / 48000
				require.GreaterOrEqual(t, len(got), len(want)+skip)
				got, edge = got[skip:skip+len(want)], 50 // of the resampler
			}
			require.InDelta(t, len(want), len(got), 1, name)
			for i := edge; i < min(len(want), len(got))-edge; i++ {
				require.InDelta(t, want[i], got[i], 1e-4, "%s, %s channels, sample %d", name, channels, i)
			}
		}
	}
}

// TestUnpackAtOnce checks that a packet is decoded before the next one comes.
func TestUnpackAtOnce(t *testing.T) {
	packets := oggPackets(opusFile(t, "a.ogg", "1"))
	in, out, ended := make(chan []byte), make(chan int, 100), make(chan error)
	go func() {
		ended <- Unpack(t.Context(), in, true, writer(func(data []byte) error { out <- len(data); return nil }))
	}()
	for _, p := range packets[:5] {
		in <- p
		for got := 0; got < 4*960; {
			select {
			case n := <-out:
				got += n
			case <-time.After(20 * time.Second):
				t.Fatal("a packet waits for the next one")
			}
		}
	}
	close(in)
	require.NoError(t, <-ended)
	assert.Empty(t, out)
}

func TestUnpackFailures(t *testing.T) {
	ogg := opusFile(t, "a.ogg", "1")
	vorbis, err := os.ReadFile(ffmpegFile(t, "v.ogg", "-f", "lavfi", "-i", "sine=d=1", "-c:a", "flac"))
	require.NoError(t, err)
	broken := bytes.Clone(ogg)
	binary.LittleEndian.PutUint64(broken[3000:], 0)
	for name, test := range map[string]struct {
		packets bool
		list    [][]byte
		want    string
	}{
		"no container":  {false, [][]byte{[]byte("RIFF1234WAVE")}, "expected Opus in Ogg or WebM, got 524946463132"},
		"another codec": {false, [][]byte{vorbis}, "not Opus"},
		"no packet":     {true, [][]byte{{0xff, 0xff, 0xff}, {3}}, "not Opus"},
		"damaged":       {false, [][]byte{broken}, "CRC"},
	} {
		_, err := unpack(t, test.packets, test.list...)
		require.ErrorContains(t, err, test.want, name)
		assert.True(t, spec.IsPermanent(err), name)
	}
	samples, err := unpack(t, false)
	require.NoError(t, err, "nothing")
	assert.Empty(t, samples)

	t.Setenv("PATH", t.TempDir())
	_, err = unpack(t, true, []byte{1})
	require.ErrorIs(t, err, ErrDecoderMissing)
}

// TestUnpackStops checks that an error of out, or the end of the context, ends
// ffmpeg.
func TestUnpackStops(t *testing.T) {
	ogg := opusFile(t, "a.ogg", "1")
	packets := oggPackets(ogg)
	wrong := errors.New("wrong")
	in := make(chan []byte, len(packets))
	for _, p := range packets {
		in <- p
	}
	close(in)
	require.ErrorIs(t, Unpack(t.Context(), in, true, writer(func([]byte) error { return wrong })), wrong)
	for _, packets := range []bool{true, false} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, wrong)
		in := make(chan []byte, 1)
		in <- ogg[:100]
		require.ErrorIs(t, Unpack(ctx, in, packets, io.Discard), wrong)
		close(in)
		cancel()
	}
	assert.Empty(t, children(t))
}
