package audio

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/mediafiles"
)

// id3 returns an ID3v2 tag with n bytes of padding.
func id3(n int) []byte {
	return append([]byte{'I', 'D', '3', 4, 0, 0, byte(n >> 21 & 127), byte(n >> 14 & 127), byte(n >> 7 & 127), byte(n & 127)}, make([]byte, n)...)
}

func TestSniff(t *testing.T) {
	mp3 := bytes.Repeat(append([]byte{0xff, 0xfb, 0x90, 0x00}, make([]byte, 413)...), 8) // MPEG-1 layer 3, 128 kbit/s, 44.1 kHz
	adts := bytes.Repeat(append([]byte{0xff, 0xf1, 0x60, 0x40, 0x04, 0x1f, 0xfc}, make([]byte, 25)...), 8)
	ts := bytes.Repeat(append([]byte{0x47}, make([]byte, 187)...), 20)
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name    string
		content []byte
		want    string // demuxer
	}{
		{"wav", []byte("RIFF\x00\x00\x00\x00WAVEfmt "), "wav"},
		{"rf64", []byte("RF64\xff\xff\xff\xffWAVEds64"), "wav"},
		{"avi", []byte("RIFF\x00\x00\x00\x00AVI LIST"), "avi"},
		{"aiff", []byte("FORM\x00\x00\x00\x00AIFFCOMM"), "aiff"},
		{"mp4", []byte("\x00\x00\x00\x20ftypisom"), "mov"},
		{"matroska", []byte("\x1a\x45\xdf\xa3\x01\x00\x00\x00"), "matroska"},
		{"ogg", []byte("OggS\x00\x02"), "ogg"},
		{"flac", []byte("fLaC\x00\x00\x00\x22"), "flac"},
		{"flac behind a tag", cat(id3(100), []byte("fLaC\x00\x00\x00\x22")), "flac"},
		{"mp3", mp3, "mp3"},
		{"mp3 behind a tag", cat(id3(300), mp3), "mp3"},
		{"mp3 behind a tag larger than the window", cat(id3(200000), mp3), "mp3"},
		{"mp3 behind many tags", cat(bytes.Repeat(id3(0), 5000), mp3), "mp3"},
		{"mp3 behind garbage", cat(bytes.Repeat([]byte{0xff, 0x00, 0x13}, 300), mp3), "mp3"},
		{"one mp3 frame and a tag", cat(mp3[:417], mp3[:417], []byte("TAG"), make([]byte, 125)), "mp3"},
		{"mp3 in a tag that lies", cat(id3(10 << 20)[:10], mp3), "mp3"},
		{"aac", adts, "aac"},
		{"aac behind a tag", cat(id3(50), adts), "aac"},
		{"ts", ts, "mpegts"},
		{"m2ts", bytes.Repeat(append([]byte{0, 0, 0, 0, 0x47}, make([]byte, 187)...), 20), "mpegts"},
		{"ac3", []byte("\x0b\x77\x00\x00\x14\x40\x00\x00"), "ac3"},
		{"eac3", []byte("\x0b\x77\x00\x00\x14\x80\x00\x00"), "eac3"},
		{"mxf", []byte("\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01\x02\x04\x00"), "mxf"},
		{"8svx", []byte("FORM\x00\x00\x00\x008SVXVHDR"), "iff"},
		{"dsdiff", []byte("FRM8\x00\x00\x00\x00\x00\x00\x37\x96DSD FVER"), "iff"},
		{"ilbm", []byte("FORM\x00\x00\x00\x00ILBMBMHD"), ""},
		{"qcp", []byte("RIFF\x00\x00\x00\x00QLCMfmt "), "qcp"},
		{"dss", append([]byte("\x02dss"), make([]byte, 2000)...), "dss"},
		{"ds2", append([]byte("\x03ds2"), make([]byte, 2000)...), ""},
		{"minidisc", []byte("ea3\x03\x00\x00\x00\x00\x17\x76"), "oma"},
		{"two frames in garbage", cat(make([]byte, 100), mp3[:834], bytes.Repeat([]byte{1}, 2000)), ""},
		{"playlist", []byte("#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n"), ""},
		{"concat", []byte("ffconcat version 1.0\nfile '/etc/passwd'\n"), ""},
		{"mpd", []byte(`<?xml version="1.0"?><MPD>`), ""},
		{"sdp", []byte("v=0\no=- 0 0 IN IP4 127.0.0.1\n"), ""},
		{"png", []byte("\x89PNG\r\n\x1a\n"), ""},
		{"jpeg", []byte("\xff\xd8\xff\xe0\x00\x10JFIF"), ""},
		{"zip", []byte("PK\x03\x04"), ""},
		{"gzip", []byte("\x1f\x8b\x08"), ""},
		{"subtitles", []byte("1\n00:00:00,000 --> 00:00:01,000\nx\n"), ""},
		{"empty", nil, ""},
		{"zeros", make([]byte, 100000), ""},
		{"text of G", []byte(strings.Repeat("GGGG", 50)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := sniff(bytes.NewReader(c.content))
			require.NoError(t, err)
			assert.Equal(t, c.want, got.demuxer)
		})
	}
	_, err := sniff(bytes.NewReader(id3(100)[:60]))
	assert.ErrorIs(t, err, errFarTag)
	assert.ErrorContains(t, CheckHead("a.ds2", []byte("\x03ds2\x00")), "it is a DS2 dictation, which ffmpeg cannot read")
}

// TestMPEGFrame checks frame lengths against known results of the formula.
func TestMPEGFrame(t *testing.T) {
	for _, c := range []struct {
		head [4]byte
		size int
	}{
		{[4]byte{0xff, 0xfb, 0x90, 0x00}, 417}, // MPEG-1 layer 3, 128 kbit/s, 44.1 kHz
		{[4]byte{0xff, 0xfb, 0x92, 0x00}, 418}, // padded
		{[4]byte{0xff, 0xfb, 0xe4, 0x00}, 960}, // 320 kbit/s, 48 kHz
		{[4]byte{0xff, 0xf3, 0x48, 0x00}, 144}, // MPEG-2 layer 3, 32 kbit/s, 16 kHz
		{[4]byte{0xff, 0xe3, 0x38, 0x00}, 216}, // MPEG-2.5 layer 3, 24 kbit/s, 8 kHz
		{[4]byte{0xff, 0xfd, 0x88, 0x00}, 576}, // MPEG-1 layer 2, 128 kbit/s, 32 kHz
		{[4]byte{0xff, 0xff, 0xc4, 0x00}, 384}, // MPEG-1 layer 1, 384 kbit/s, 48 kHz
		{[4]byte{0xff, 0xfb, 0x00, 0x00}, 0},   // free format
		{[4]byte{0xff, 0xfb, 0xf0, 0x00}, 0},   // no bit rate
		{[4]byte{0xff, 0xfb, 0x9c, 0x00}, 0},   // no sample rate
		{[4]byte{0xff, 0xeb, 0x90, 0x00}, 0},   // no version
		{[4]byte{0xff, 0xf9, 0x90, 0x00}, 0},   // no layer
	} {
		got, _ := mpegFrame(c.head[:])
		assert.Equal(t, c.size, got, "%x", c.head)
	}
}

// FuzzSniff checks that no input crashes or stalls recognition, and that
// scripts are never taken for media.
func FuzzSniff(f *testing.F) {
	for _, dir := range []string{"testdata/formats", "testdata/bad"} {
		entries, err := os.ReadDir(dir)
		require.NoError(f, err)
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(f, err)
			f.Add(b[:min(len(b), 2048)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := sniff(bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, errFarTag)
			return
		}
		for _, text := range []string{"#EXTM3U", "ffconcat", "<?xml", "v=0\n", "[playlist]"} {
			if bytes.HasPrefix(b, []byte(text)) && c.name != "" && c.name != "mp3" && c.name != "aac" && c.name != "mpegts" {
				t.Fatalf("%s for %q", c.name, b)
			}
		}
		again, err := sniff(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

// TestExtensionsOfContainers: mediafiles knows the extensions of exactly the
// recognized containers.
func TestExtensionsOfContainers(t *testing.T) {
	known := map[string]bool{"wav": true, "mp3": true, "aac": true, "avi": true, "xwma": true, "qcp": true, "svx": true, "aiff": true, "mpegts": true, "ac3": true, "eac3": true}
	for _, m := range magics {
		known[m.name] = true
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(known)), slices.Collect(maps.Keys(mediafiles.Endings)))
	seen := map[string]string{}
	for container, endings := range mediafiles.Endings {
		for _, e := range endings {
			assert.Empty(t, seen[e], "%s of %s", e, container)
			seen[e] = container
		}
	}
}
