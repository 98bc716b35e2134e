package audio

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	goaudio "github.com/go-audio/audio"
	"github.com/go-audio/wav"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

var any1 = Options{MinBytes: -1} // test files are tiny

// encode writes samples in one of the encodings that this process reads itself.
func encode(samples []float32, tag uint16, bits int, order binary.AppendByteOrder) []byte {
	var b []byte
	for _, x := range samples {
		v := float64(x)
		switch {
		case tag == tagFloat && bits == 32:
			b = order.AppendUint32(b, math.Float32bits(x))
		case tag == tagFloat:
			b = order.AppendUint64(b, math.Float64bits(v))
		case bits == 8:
			b = append(b, byte(math.Round(v*127)+128))
		case bits == 16:
			b = order.AppendUint16(b, uint16(int16(math.Round(v*32767))))
		case bits == 24:
			w := order.AppendUint32(nil, uint32(int32(math.Round(v*8388607)))<<8)
			if order.String() == binary.BigEndian.String() {
				b = append(b, w[:3]...)
			} else {
				b = append(b, w[1:]...)
			}
		case bits == 32:
			b = order.AppendUint32(b, uint32(int32(math.Round(v*2147483647))))
		}
	}
	return b
}

func TestWAVForms(t *testing.T) {
	samples := tone(SampleRate, 440, 0.1)
	for _, c := range []struct {
		name    string
		file    wavFile
		codec   string
		epsilon float64
	}{
		{"u8", wavFile{bits: 8}, "pcm_u8", 1.0 / 60},
		{"s16", wavFile{}, "pcm_s16le", 1.0 / 20000},
		{"s24", wavFile{bits: 24}, "pcm_s24le", 1e-6},
		{"s32", wavFile{bits: 32}, "pcm_s32le", 1e-6},
		{"f32", wavFile{tag: tagFloat, bits: 32}, "pcm_f32le", 0},
		{"f64", wavFile{tag: tagFloat, bits: 64}, "pcm_f64le", 0},
		{"extensible s24", wavFile{bits: 24, extensible: true}, "pcm_s24le", 1e-6},
		{"extensible f32", wavFile{tag: tagFloat, bits: 32, extensible: true}, "pcm_f32le", 0},
		{"RIFX u8", wavFile{id: "RIFX", bits: 8}, "pcm_u8", 1.0 / 60},
		{"RIFX s16", wavFile{id: "RIFX"}, "pcm_s16be", 1.0 / 20000},
		{"RIFX s24", wavFile{id: "RIFX", bits: 24}, "pcm_s24be", 1e-6},
		{"RIFX s32", wavFile{id: "RIFX", bits: 32}, "pcm_s32be", 1e-6},
		{"RIFX f32", wavFile{id: "RIFX", tag: tagFloat, bits: 32}, "pcm_f32be", 0},
		{"RIFX f64", wavFile{id: "RIFX", tag: tagFloat, bits: 64}, "pcm_f64be", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			order := binary.AppendByteOrder(binary.LittleEndian)
			if c.file.id == "RIFX" {
				order = binary.BigEndian
			}
			bits := c.file.bits
			if bits == 0 {
				bits = 16
			}
			tag := c.file.tag
			if tag == 0 {
				tag = tagPCM
			}
			c.file.data = encode(samples, tag, bits, order)
			content := c.file.bytes()
			for _, cut := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
				pcm, err := Open(t.Context(), Reader(cut(bytes.NewReader(content)), c.name), any1)
				require.NoError(t, err)
				require.Equal(t, len(samples), pcm.Len())
				for i, x := range pcm.Samples(0, pcm.Len()) {
					if math.Abs(float64(samples[i]-x)) > c.epsilon+1e-20 {
						t.Fatalf("sample %d: expected %v, got %v", i, samples[i], x)
					}
				}
				assert.Equal(t, Info{
					Duration: 0.1, Container: map[bool]string{true: "rifx", false: "wav"}[c.file.id == "RIFX"], Codec: c.codec,
					SampleRate: SampleRate, Channels: 1, Size: int64(len(content)), MD5: md5Hex(content),
				}, pcm.Info())
				require.NoError(t, pcm.Close())
			}
		})
	}
}

// TestG711 compares the tables with the values of ITU-T G.711 (tables 1a and
// 2a, scaled to 16 bits) at the ends of the segments.
func TestG711(t *testing.T) {
	for code, want := range map[byte]int{0xd5: 8, 0x55: -8, 0xaa: 32256, 0x2a: -32256, 0xd4: 24, 0xc5: 264, 0x80 ^ 0x55 ^ 0x70: 16896} {
		assert.Equal(t, float32(want)/32768, aLaw[code], "A-law %02x", code)
	}
	for code, want := range map[byte]int{0xff: 0, 0x7f: 0, 0x80: 32124, 0x00: -32124, 0xfe: 8, 0x7e: -8, 0xef: 132, 0x8f: 16764} {
		assert.Equal(t, float32(want)/32768, muLaw[code], "µ-law %02x", code)
	}
}

func TestWrongSizesInWAVHeaders(t *testing.T) {
	samples := tone(8000, 300, 0.5)
	data := s16(samples)
	le := binary.AppendByteOrder(binary.LittleEndian)
	list := chunk(le, "LIST", []byte("INFOISFT\x04\x00\x00\x00test"))
	ds64 := func(data uint64) []byte {
		b := binary.LittleEndian.AppendUint64(nil, 0)
		b = binary.LittleEndian.AppendUint64(b, data)
		return chunk(le, "ds64", append(b, make([]byte, 12)...))
	}
	for _, c := range []struct {
		name      string
		file      wavFile
		seconds   float64
		truncated bool
	}{
		{"exact", wavFile{data: data}, 0.5, false},
		{"never patched", wavFile{data: data, formSize: size(0), dataSize: size(0)}, 0.5, false},
		{"only the form patched, as for an empty recording", wavFile{data: data, formSize: size(36), dataSize: size(0)}, 0.5, false},
		{"a pipe", wavFile{data: data, formSize: size(math.MaxUint32), dataSize: size(math.MaxUint32)}, 0.5, false},
		{"a pipe, signed", wavFile{data: data, dataSize: size(0x7fffffff - 44)}, 0.5, false},
		{"more announced than there is", wavFile{data: data, dataSize: size(16000)}, 0.5, true},
		{"half a sample at the end", wavFile{data: data[:len(data)-1], dataSize: size(uint32(len(data)))}, 0.5 - 1.0/8000, true},
		{"a size that is no whole frame", wavFile{data: append(data[:len(data):len(data)], 7)}, 0.5, false},
		{"list before", wavFile{data: data, before: list}, 0.5, false},
		{"list behind", wavFile{data: data, after: list}, 0.5, false},
		{"odd chunk before", wavFile{data: data, before: chunk(le, "junk", []byte("abc"))}, 0.5, false},
		{"odd data and list behind", wavFile{data: data, after: list, bits: 8}, 1, false},
		{"garbage behind", wavFile{data: data, after: bytes.Repeat([]byte{0x55, 0xaa}, 999)}, 0.5, false},
		{"samples behind a size that was not patched again", wavFile{data: data, after: bytes.Repeat([]byte{0x55, 0xaa}, 40_000)}, 0.5, true},
		{"zeros behind", wavFile{data: data, after: make([]byte, 80_000)}, 0.5, false},
		{"an empty list behind", wavFile{data: data, after: chunk(le, "LIST", nil)}, 0.5, false},
		{"a second data chunk", wavFile{data: data, after: chunk(le, "data", data)}, 1, false},
		{"a list between data chunks", wavFile{data: data, after: slices.Concat(list, chunk(le, "data", data), list)}, 1, false},
		{"odd data chunks", wavFile{data: append(data[:len(data):len(data)], 7), after: slices.Concat(chunk(le, "data", append(data[:len(data):len(data)], 7)), list)}, 1, false},
		{"an empty data chunk before", wavFile{after: chunk(le, "data", data)}, 0.5, false},
		{"a second data chunk that is cut", wavFile{data: data, after: chunk(le, "data", data)[:8+len(data)/2]}, 0.75, true},
		{"a second data chunk of a pipe", wavFile{id: "RIFF", data: data, after: append([]byte("data\xff\xff\xff\xff"), data...)}, 1, false},
		{"a second data chunk that was never patched", wavFile{data: data, after: append([]byte("data\x00\x00\x00\x00"), data...)}, 0.5, true},
		{"another file behind", wavFile{data: data, after: wavFile{data: data}.bytes()}, 0.5, true},
		{"an empty data chunk behind", wavFile{data: data, after: chunk(le, "data", nil)}, 0.5, false},
		{"100,000 empty data chunks", wavFile{data: data, after: bytes.Repeat(chunk(le, "data", nil), 100_000)}, 0.5, true},
		{"20,000 chunks before", wavFile{data: data, before: bytes.Repeat(chunk(le, "none", nil), 20000)}, 0.5, false},
		{"RF64", wavFile{id: "RF64", data: data, before: ds64(uint64(len(data))), formSize: size(math.MaxUint32), dataSize: size(math.MaxUint32), after: list}, 0.5, false},
		{"RF64 that lies", wavFile{id: "RF64", data: data, before: ds64(1 << 63), dataSize: size(math.MaxUint32)}, 0.5, false},
		{"RF64 cut", wavFile{id: "RF64", data: data, before: ds64(uint64(2 * len(data))), dataSize: size(math.MaxUint32)}, 0.5, true},
		{"BW64", wavFile{id: "BW64", data: data, before: ds64(uint64(len(data))), dataSize: size(math.MaxUint32), after: list}, 0.5, false},
		{"16 bits with a wrong alignment", wavFile{data: data, align: 4}, 0.5, false},
		{"a wider container", wavFile{data: encode(samples, tagPCM, 32, le), bits: 20, align: 4}, 0.5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.file.rate = 8000
			content := c.file.bytes()
			path := filepath.Join(t.TempDir(), "a.wav")
			require.NoError(t, os.WriteFile(path, content, 0o600))
			for _, src := range []Source{File(path), reader(content, "a.wav")} {
				pcm, err := Open(t.Context(), src, any1)
				require.NoError(t, err)
				assert.InDelta(t, c.seconds, pcm.Duration(), 1e-4)
				assert.Equal(t, c.truncated, pcm.Info().Truncated)
				assert.Equal(t, md5Hex(content), pcm.Info().MD5, "every byte counts, including bytes after the samples")
				assert.EqualValues(t, len(content), pcm.Info().Size)
				require.NoError(t, pcm.Close())
			}
			for _, src := range []Source{File(path), reader(content, "a.wav")} {
				info, err := Probe(t.Context(), src, any1)
				require.NoError(t, err)
				assert.InDelta(t, c.seconds, info.Duration, 1e-4)
				assert.Equal(t, c.truncated, info.Truncated)
			}
		})
	}
}

func TestInvalidWAVIsRefused(t *testing.T) {
	data := s16(tone(8000, 300, 0.5))
	le := binary.AppendByteOrder(binary.LittleEndian)
	good := wavFile{data: data}.bytes()
	patch := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		name, says string
		content    []byte
		kind       error
	}{
		{"cut in the RIFF header", "its content is not that of an audio or video file", good[:9], ErrUnsupported},
		{"cut in fmt", "inside the fmt chunk", good[:30], ErrCorrupt},
		{"no data chunk", "no data chunk", good[:36], ErrCorrupt},
		{"no sample", "no sample", good[:44], ErrNoAudio},
		{"empty data", "no sample", wavFile{}.bytes(), ErrNoAudio},
		{"empty data, list behind", "no sample", wavFile{after: chunk(le, "LIST", []byte("INFO"))}.bytes(), ErrNoAudio},
		{"rate 0", "0 samples per second", wavFile{data: data}.with(func(b []byte) { copy(b[24:], "\x00\x00\x00\x00") }), ErrCorrupt},
		{"rate 1", "1 samples per second", wavFile{data: data, rate: 1}.bytes(), ErrCorrupt},
		{"rate -8000", "4294959296 samples per second", wavFile{data: data, rate: -8000}.bytes(), ErrCorrupt},
		{"channels 0", "0 channels", patch(22, 0, 0), ErrCorrupt},
		{"channels 65535", "65535 channels", patch(22, 0xff, 0xff), ErrCorrupt},
		{"bits 0", "0 bits", patch(34, 0, 0), ErrCorrupt},
		{"bits 7", "7 bits", patch(34, 7, 0), ErrCorrupt},
		{"bits 65535", "65535 bits", patch(34, 0xff, 0xff), ErrCorrupt},
		{"align 1 for 16 bits", "1 bytes per frame", wavFile{data: data, align: 1}.bytes(), ErrCorrupt},
		{"fmt of 2 GiB", "announces 2147483647 bytes", patch(16, 0xff, 0xff, 0xff, 0x7f), ErrCorrupt},
		{"fmt of 2 bytes", "announces 2 bytes", patch(16, 2, 0, 0, 0), ErrCorrupt},
		{"unknown tag", "0x4242", wavFile{data: data, tag: 0x4242}.bytes(), ErrUnsupported},
		{"unknown sub-format", "sub-format", wavFile{data: data, extensible: true}.with(func(b []byte) { b[50] ^= 1 }), ErrUnsupported},
		{"short extensible", "expected 40", patch(20, 0xfe, 0xff), ErrCorrupt},
		{"float of 16 bits", "format 0x0003 in 2 bytes", wavFile{data: data, tag: tagFloat}.bytes(), ErrUnsupported},
		{"ADPCM with blocks of 0", "blocks of 0 bytes", wavFile{data: data, tag: 0x11, bits: 4}.with(func(b []byte) { copy(b[32:], "\x00\x00") }), ErrCorrupt},
		{"data before fmt", "before any fmt", append([]byte("RIFF\x00\x00\x00\x00WAVE"), chunk(le, "data", data)...), ErrCorrupt},
		{"a chunk of 4 GiB", "announces 4294967295", append([]byte("RIFF\x00\x00\x00\x00WAVELIST\xff\xff\xff\xff"), data...), ErrCorrupt},
		{"a header without end", "within the first 16 MiB", wavFile{data: data, before: bytes.Repeat(chunk(le, "none", make([]byte, 1<<20)), 17)}.bytes(), ErrCorrupt},
		{"a list of samples and silence", "LIST wavl", wavFile{data: data, before: chunk(le, "LIST", slices.Concat([]byte("wavl"), chunk(le, "data", data), chunk(le, "slnt", make([]byte, 4))))}.bytes(), ErrUnsupported},
		{"compressed RIFX", "adpcm_ms", wavFile{id: "RIFX", data: data, tag: 2, bits: 4}.bytes(), ErrUnsupported},
		{"another form", "not that of an audio or video file", []byte("RIFF\x10\x00\x00\x00sfbk" + strings.Repeat("x", 100)), ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "upload.wav")
			require.NoError(t, os.WriteFile(path, c.content, 0o600))
			for _, src := range []Source{File(path), reader(c.content, "upload.wav")} {
				_, err := Open(t.Context(), src, any1)
				require.ErrorIs(t, err, c.kind)
				assert.True(t, spec.IsPermanent(err))
				assert.ErrorContains(t, err, c.says)
				assert.ErrorContains(t, err, "upload.wav")
				_, err = Probe(t.Context(), src, any1)
				require.Error(t, err)
			}
		})
	}
}

// with applies a change to the finished bytes.
func (w wavFile) with(change func([]byte)) []byte {
	b := w.bytes()
	change(b)
	return b
}

func TestNonFiniteSamplesAreZero(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	want := []float32{0, 0.5, 0, 0, 1, -1, 0}
	samples := []float32{nan, 0.5, inf, -inf, 1e30, -1e30, 1e-40}
	for _, bits := range []int{32, 64} {
		pcm, err := Open(t.Context(), reader(wavFile{tag: tagFloat, bits: bits, data: encode(samples, tagFloat, bits, binary.LittleEndian)}.bytes(), "f"), any1)
		require.NoError(t, err)
		assert.Equal(t, want, pcm.Samples(0, pcm.Len()))
		assert.EqualValues(t, 3, pcm.Info().NonFinite)
		require.NoError(t, pcm.Close())
		_, err = Open(t.Context(), reader(wavFile{tag: tagFloat, bits: bits, data: encode([]float32{3000, -25000}, tagFloat, bits, binary.LittleEndian)}.bytes(), "f"), any1)
		require.ErrorIs(t, err, ErrUnsupported)
		assert.ErrorContains(t, err, "in the range of integers")
	}
	pcm, err := Open(t.Context(), Raw(samples, SampleRate, 1), Options{})
	require.NoError(t, err)
	defer pcm.Close()
	assert.Equal(t, want, pcm.Samples(0, pcm.Len()))
	assert.EqualValues(t, 3, pcm.Info().NonFinite)
}

// TestAgainstGoAudio reads files written by another implementation, and lets it
// read ours.
func TestAgainstGoAudio(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, bits := range []int{8, 16, 24, 32} {
		for _, channels := range []int{1, 2} {
			ints := make([]int, 4000*channels)
			for i := 0; i < len(ints); i += channels {
				v := rnd.IntN(1<<bits) - 1<<(bits-1)
				if bits == 8 { // unsigned in WAV
					v += 128
				}
				for c := range channels {
					ints[i+c] = v
				}
			}
			path := filepath.Join(t.TempDir(), "theirs.wav")
			f, err := os.Create(path)
			require.NoError(t, err)
			enc := wav.NewEncoder(f, SampleRate, bits, channels, 1)
			require.NoError(t, enc.Write(&goaudio.IntBuffer{Format: &goaudio.Format{NumChannels: channels, SampleRate: SampleRate}, Data: ints, SourceBitDepth: bits}))
			require.NoError(t, enc.Close())
			require.NoError(t, f.Close())
			pcm, err := Open(t.Context(), File(path), any1)
			require.NoError(t, err)
			require.Equal(t, 4000, pcm.Len())
			for i, x := range pcm.Samples(0, pcm.Len()) {
				v := ints[i*channels]
				if bits == 8 {
					v -= 128
				}
				require.InDelta(t, float64(v)/float64(int64(1)<<(bits-1)), x, 1e-6, "%d bits, %d channels, sample %d", bits, channels, i)
			}
			require.NoError(t, pcm.Close())
		}
	}
	ours := wavFile{data: s16(tone(8000, 440, 0.25)), rate: 8000}.bytes()
	d := wav.NewDecoder(bytes.NewReader(ours))
	buf, err := d.FullPCMBuffer()
	require.NoError(t, err)
	h, err := readWAVHeader(&tape{r: bufioReader(ours)})
	require.NoError(t, err)
	assert.Equal(t, []int{int(d.SampleRate), int(d.NumChans), int(d.BitDepth), len(buf.Data)}, []int{h.rate, h.channels, h.width * 8, int(h.data) / h.align})
}

// FuzzWAV checks that no input crashes the reader, yields samples out of range
// or depends on the sizes of reads.
func FuzzWAV(f *testing.F) {
	data := s16(tone(8000, 300, 0.01))
	f.Add(wavFile{data: data}.bytes())
	f.Add(wavFile{data: data, id: "RIFX", channels: 2}.bytes())
	f.Add(wavFile{data: data, id: "RF64", dataSize: size(math.MaxUint32)}.bytes())
	f.Add(wavFile{data: data, tag: tagFloat, bits: 64, extensible: true, rate: 44100, channels: 3}.bytes())
	f.Add(wavFile{data: data, tag: tagMuLaw, bits: 8, rate: 12345}.bytes())
	f.Add(wavFile{data: data, tag: 0x55, bits: 16}.bytes())
	f.Add([]byte("RIFF\x00\x00\x00\x00WAVELIST\xff\xff\xff\xff"))
	opt := Options{MinBytes: -1, MaxSeconds: 10, FFmpeg: "/nonexistent/ffmpeg", TempDir: f.TempDir()}
	f.Fuzz(func(t *testing.T, content []byte) {
		pcm, err := Open(t.Context(), reader(content, "fuzz"), opt)
		again, err2 := Open(t.Context(), Reader(iotest.HalfReader(bytes.NewReader(content)), "fuzz"), opt)
		require.Equal(t, err == nil, err2 == nil, "%v, %v", err, err2)
		if err != nil {
			require.Equal(t, err.Error(), err2.Error())
			return
		}
		defer pcm.Close()
		defer again.Close()
		require.Positive(t, pcm.Len())
		require.Equal(t, pcm.Info(), again.Info())
		require.Equal(t, pcm.Samples(0, pcm.Len()), again.Samples(0, again.Len()))
		for _, x := range pcm.Samples(0, pcm.Len()) {
			require.True(t, x >= -1 && x <= 1, "%v", x)
		}
		if info, err := Probe(t.Context(), reader(content, "fuzz"), opt); assert.NoError(t, err) {
			require.InDelta(t, pcm.Duration(), info.Duration, 1.0/SampleRate+1e-9)
		}
	})
}
