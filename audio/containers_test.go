package audio

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pairs lists the containers, by file extension, with the codecs that ffmpeg
// writes into them.
var pairs = map[string]string{
	"wav":  "pcm_s16le pcm_u8 pcm_s24le pcm_s32le pcm_f32le pcm_f64le pcm_alaw pcm_mulaw adpcm_ms adpcm_ima_wav adpcm_yamaha libmp3lame ac3 flac",
	"mkv":  "aac libmp3lame libopus libvorbis flac ac3 eac3 pcm_s16le mp2 alac wavpack tta dca",
	"webm": "libopus libvorbis", "mp4": "aac libmp3lame ac3 alac libopus flac", "mov": "aac pcm_s16le pcm_s16be alac pcm_alaw", "m4a": "aac alac",
	"ts": "aac libmp3lame mp2 ac3 eac3 libopus", "mpg": "mp2 ac3", "avi": "libmp3lame ac3 pcm_s16le aac", "flv": "aac libmp3lame", "asf": "wmav1 libmp3lame", "wma": "wmav2",
	"ogg": "libvorbis libopus flac libspeex", "flac": "flac", "mp3": "libmp3lame", "mp2": "mp2", "aac": "aac", "ac3": "ac3", "eac3": "eac3",
	"aiff": "pcm_s16be pcm_s24be pcm_mulaw", "au": "pcm_s16be pcm_mulaw", "caf": "pcm_s16be alac", "w64": "pcm_s16le", "wv": "wavpack", "tta": "tta", "voc": "pcm_u8",
	"rm": "ac3", "latm": "aac", "sf": "pcm_mulaw pcm_s16le", "nut": "libopus pcm_s16le", "3gp": "aac",
}

// timed lists the containers whose times depend on time stamps, edit lists or
// samples that an encoder puts before the sound.
var timed = []string{"mkv", "webm", "mp4", "m4a", "ts", "mpg", "avi", "flv", "wma", "ogg", "mp3", "aac", "caf"}

// broadcast lists the formats of which TestTimesOfBroadcasts writes files too.
var broadcast = []string{"ts", "mpg", "flv", "wma"}

// lateTone is a second of silence followed by a tone of three seconds.
var lateTone = []string{"-f", "lavfi", "-i", "aevalsrc='if(gt(t,1),0.5*sin(3000*t),0)':s=48000:d=4"}

// TestContainerTimesMatchFFmpeg has ffmpeg write over 60 pairs of container and
// codec, including tracks that begin late, missing packets, and edit lists that
// omit a part. The length and the time of the first sound must equal ffmpeg's
// own, read from the time stamps. The short form has one codec for each
// container whose times need more than its number of samples.
func TestContainerTimesMatchFFmpeg(t *testing.T) {
	needFFmpeg(t)
	picture := []string{"-f", "lavfi", "-i", "color=s=16x16:r=5:d=7", "-itsoffset", "2.5"}
	both := []string{"-map", "0", "-map", "1", "-c:v"}
	count := 0
	for ending, codecs := range pairs {
		for i, codec := range strings.Fields(codecs) {
			name := codec + "." + ending
			args := append(append([]string{}, lateTone...), "-c:a", codec, "-strict", "-2", "-ac", "1")
			count++
			if testing.Short() && (i > 0 || !slices.Contains(timed, ending) || slices.Contains(broadcast, ending)) {
				continue
			}
			t.Run(name, func(t *testing.T) { sameTimes(t, codec, ffmpegFile(t, name, args...)) })
			if i > 0 || testing.Short() && !slices.Contains([]string{"mkv", "mp4", "m4a"}, ending) {
				continue
			}
			gap := append(append([]string{}, args...), "-bsf:a", "noise=drop='between(n,70,110)'")
			late := append(append(append(append([]string{}, picture...), lateTone...), both...), "mpeg4", "-c:a", codec)
			switch ending {
			case "mkv", "mp4", "mov", "ts", "asf", "flv":
				t.Run("gap/"+name, func(t *testing.T) { sameTimes(t, codec, ffmpegFile(t, name, gap...)) })
				if ending != "flv" {
					t.Run("late/"+name, func(t *testing.T) { sameTimes(t, codec, ffmpegFile(t, name, late...)) })
				}
			case "m4a":
				whole := ffmpegFile(t, name, args...)
				t.Run("edited/"+name, func(t *testing.T) { sameTimes(t, codec, ffmpegFile(t, name, "-ss", "0.7", "-i", whole, "-c", "copy")) })
			}
		}
	}
	assert.GreaterOrEqual(t, count, 60)
}

// TestFilmContainers has ffmpeg write containers of films, broadcasters and
// recorders that it writes only with a picture or with its own codec.
func TestFilmContainers(t *testing.T) {
	needFFmpeg(t)
	picture := append([]string{"-f", "lavfi", "-i", "testsrc=s=720x576:r=25:d=4"}, lateTone...)
	for name, args := range map[string][]string{
		"a.mxf": append(slices.Clone(picture), "-c:v", "mpeg2video", "-c:a", "pcm_s16le"), "a.dv": append(slices.Clone(picture), "-target", "pal-dv"),
		"a.mlp": append(slices.Clone(lateTone), "-strict", "-2"), "a.mmf": append(slices.Clone(lateTone), "-ar", "22050"), "a.sox": lateTone,
		"a.spdif": append(slices.Clone(lateTone), "-c:a", "ac3"),
	} {
		t.Run(name, func(t *testing.T) { sameTimes(t, "", ffmpegFile(t, name, args...)) })
	}
}

// sameTimes compares a file's length and first sound with ffmpeg's.
func sameTimes(t *testing.T, codec, path string) {
	pcm, err := Open(t.Context(), File(path), Options{})
	require.NoError(t, err)
	defer pcm.Close()
	assert.False(t, pcm.Info().Truncated)
	out, err := exec.Command("ffmpeg", "-nostdin", "-v", "error", "-i", path, "-vn", "-af", "aresample=async=1:first_pts=0", "-ac", "1", "-ar", "16000", "-f", "f32le", "-").Output()
	require.NoError(t, err)
	reference := make([]float32, len(out)/4)
	require.NoError(t, binary.Read(bytes.NewReader(out), binary.LittleEndian, reference))
	line := pcm.Timeline()
	length, heard := float64(len(reference))/SampleRate, onset(reference)
	switch ending := filepath.Ext(path); {
	case strings.HasPrefix(codec, "wmav") && !hasPicture(t, path): // the encoder's primer, which its time stamps don't show
		length, heard = length-2048./48000, heard-2048./48000
	case ending == ".ts" && hasPicture(t, path): // ffmpeg counts from the first packet of audio
		length, heard = length+2.479, heard+2.479
	}
	assert.InDelta(t, length, line.End(pcm.Duration()), 0.03, "length of %s", filepath.Base(path))
	assert.InDelta(t, heard, line.Start(onset(pcm.Samples(0, pcm.Len()))), 0.03, "first sound, %v", line)
}

func hasPicture(t *testing.T, path string) bool {
	out, err := exec.Command("ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "stream=index", "-of", "csv=p=0", path).Output()
	require.NoError(t, err)
	return len(bytes.TrimSpace(out)) > 0 // ffprobe prints an empty line for a program without a picture
}

// TestTimesOfBroadcasts compares the times of tones, a second long and two
// seconds apart, with their times in ffmpeg's input: sound that begins 4.9 s
// after the picture, a hole of half a minute, and clocks that wrap (every
// 95443.7 s in transport streams) or start again.
func TestTimesOfBroadcasts(t *testing.T) {
	needFFmpeg(t)
	tones := []string{"-f", "lavfi", "-i", "aevalsrc='if(lt(mod(t,2),1),0,0.5*sin(3000*t))':s=48000:d=6"}
	late := append([]string{"-f", "lavfi", "-i", "color=s=64x64:r=5:d=11", "-itsoffset", "4.9"}, append(tones, "-map", "0", "-map", "1")...)
	film := func(codec string, more ...string) []string {
		return append(append(slices.Clone(late), "-c:v", "mpeg2video", "-r", "25", "-c:a", codec), more...)
	}
	for name, c := range map[string]struct {
		args []string
		want []float64
	}{
		"late.ts":      {film("aac"), []float64{5.9, 7.9, 9.9}},
		"late.m2ts":    {film("ac3"), []float64{5.9, 7.9, 9.9}},
		"late.mpg":     {film("mp2"), []float64{5.9, 7.9, 9.9}},
		"late.wmv":     {append(slices.Clone(late), "-c:v", "wmv2", "-c:a", "wmav2"), []float64{5.9, 7.9, 9.9}},
		"late.flv":     {append(slices.Clone(late), "-c:v", "flv", "-ar", "44100", "-c:a", "libmp3lame"), []float64{5.9, 7.9, 9.9}},
		"late wrap.ts": {film("mp2", "-output_ts_offset", "95441"), []float64{5.9, 7.9, 9.9}},
		"wrap.ts":      {append(slices.Clone(tones), "-output_ts_offset", "95439.5"), []float64{1, 3, 5}},
		"hole.ts":      {append(slices.Clone(tones), "-c:a", "mp2", "-af", "asetpts='PTS+if(gt(T,2),30/TB,0)'"), []float64{1, 33, 35}},
	} {
		t.Run(name, func(t *testing.T) { tonesAt(t, ffmpegFile(t, name, c.args...), c.want, 0.03) })
	}
	for _, ending := range []string{"mp3", "aac"} { // files without time stamps, one after another, at two rates
		both := filepath.Join(t.TempDir(), "both."+ending)
		for _, rate := range []string{"16000", "48000"} {
			part, err := os.ReadFile(ffmpegFile(t, rate+"."+ending, append(slices.Clone(tones), "-ar", rate)...))
			require.NoError(t, err)
			before, _ := os.ReadFile(both)
			require.NoError(t, os.WriteFile(both, append(before, part...), 0o600))
		}
		tonesAt(t, both, []float64{1, 3, 5, 7, 9, 11}, 0.2) // with the encoder's padding
	}
	damaged := ffmpegFile(t, "damaged.aac", tones...)
	frames, err := os.ReadFile(damaged)
	require.NoError(t, err)
	for at, n := 0, 0; at < len(frames); n++ {
		length := int(frames[at+3]&3)<<11 | int(frames[at+4])<<3 | int(frames[at+5]>>5)
		for i := at + 7; n > 105 && n < 120 && i < at+length; i++ { // 0.3 s of frames that cannot be decoded
			frames[i] = 0xff
		}
		at += length
	}
	require.NoError(t, os.WriteFile(damaged, frames, 0o600))
	tonesAt(t, damaged, []float64{1, 3, 5}, 0.05)
	joined := filepath.Join(t.TempDir(), "joined.ts")
	out, err := os.Create(joined)
	require.NoError(t, err)
	for _, start := range []string{"1000", "100"} {
		part, err := os.ReadFile(ffmpegFile(t, start+".ts", append(slices.Clone(tones), "-c:a", "mp2", "-output_ts_offset", start)...))
		require.NoError(t, err)
		_, err = out.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, out.Close())
	tonesAt(t, joined, []float64{1, 3, 5, 7, 9, 11}, 0.03)
	info, err := Probe(t.Context(), File(joined), Options{})
	require.NoError(t, err, "the difference of the time stamps is 26 h")
	assert.InDelta(t, 12, info.Duration, 0.1)
}

// films lists containers with time stamps, the codec of the picture, and the
// codecs of sound that ffmpeg writes with it.
var films = map[string]string{
	"mkv": "mpeg4 aac libmp3lame libopus libvorbis flac ac3 eac3 pcm_s16le mp2 alac wavpack tta dca", "webm": "libvpx libopus libvorbis",
	"mp4": "mpeg4 aac libmp3lame ac3 eac3 alac libopus flac", "mov": "mpeg4 aac pcm_s16le pcm_s16be alac pcm_alaw libmp3lame ac3", "m4v": "mpeg4 aac ac3",
	"3gp": "mpeg4 aac", "3g2": "mpeg4 aac", "ismv": "mpeg4 aac", "f4v": "libx264 aac libmp3lame",
	"ts": "mpeg2video aac libmp3lame mp2 ac3 eac3 libopus", "m2ts": "mpeg2video aac mp2 ac3 eac3", "mpg": "mpeg2video mp2 ac3", "vob": "mpeg2video mp2 ac3 pcm_dvd",
	"flv": "flv libmp3lame aac", "asf": "wmv2 wmav1 wmav2 libmp3lame", "wmv": "wmv2 wmav2", "nut": "mpeg4 libopus pcm_s16le libmp3lame aac flac", "ogv": "libtheora libvorbis libopus flac",
	"wtv": "mpeg2video mp2 ac3", "avi": "mpeg4 libmp3lame ac3 pcm_s16le aac mp2",
}

// TestTimesOfContainers compares the times of tones in over 60 pairs of
// container and codec with their times in ffmpeg's input, within 50 ms: sound
// that begins 4.9 s after the picture, and a hole of 6 s.
func TestTimesOfContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	needFFmpeg(t)
	tones := []string{"-f", "lavfi", "-i", "aevalsrc='if(lt(mod(t,2),1),0,0.5*sin(3000*t))':s=48000:d=6"}
	late, hole := 0, 0
	for ending, line := range films {
		codecs := strings.Fields(line)
		for _, codec := range codecs[1:] {
			film := func(name string, seconds int, more ...string) string {
				args := append([]string{"-f", "lavfi", "-i", "color=s=64x64:r=25:d=" + strconv.Itoa(seconds)}, more...)
				return ffmpegFile(t, name+"."+ending, append(args, "-map", "0", "-map", "1", "-c:v", codecs[0], "-c:a", codec, "-strict", "-2", "-ac", "2")...)
			}
			t.Run("late start/"+codec+"."+ending, func(t *testing.T) {
				path := film("late", 11, append([]string{"-itsoffset", "4.9"}, tones...)...)
				if first, _ := packets(t, path); first < 4 {
					t.Skip("ffmpeg writes no late start into it")
				}
				late++
				tonesAt(t, path, []float64{5.9, 7.9, 9.9}, 0.05)
			})
			t.Run("gap/"+codec+"."+ending, func(t *testing.T) {
				path := film("hole", 12, append(slices.Clone(tones), "-af", "asetpts='PTS+if(gt(T,2),6/TB,0)'")...)
				if _, gap := packets(t, path); gap < 5 {
					t.Skip("ffmpeg writes no hole into it")
				}
				hole++
				tonesAt(t, path, []float64{1, 9, 11}, 0.05) // WMA: 44 ms
			})
		}
	}
	t.Logf("late: %d pairs, a hole: %d pairs", late, hole)
	assert.GreaterOrEqual(t, late, 60)
	assert.GreaterOrEqual(t, hole, 50)
}

// packets returns the time of the first packet of sound after the file's start,
// and the longest time from a packet to the next, as ffprobe reads them.
func packets(t *testing.T, path string) (first, gap float64) {
	out, err := exec.Command("ffprobe", "-v", "error", "-select_streams", "a", "-show_entries", "packet=pts_time:format=start_time", "-of", "default=nk=1:nw=1", path).Output()
	require.NoError(t, err)
	var times []float64
	for _, line := range strings.Fields(string(out)) {
		if v, err := strconv.ParseFloat(line, 64); err == nil {
			times = append(times, v)
		}
	}
	require.Greater(t, len(times), 2)
	start := times[len(times)-1]
	times = times[:len(times)-1]
	for i := range times[1:] {
		gap = max(gap, times[i+1]-times[i])
	}
	return times[0] - start, gap
}

// tonesAt compares the times at which a recording's tones begin, within delta
// seconds.
func tonesAt(t *testing.T, path string, want []float64, delta float64) {
	pcm, err := Open(t.Context(), File(path), Options{})
	require.NoError(t, err)
	defer pcm.Close()
	assert.False(t, pcm.Info().BadTimes)
	var got []float64
	quiet := SampleRate
	for i, s := range pcm.Samples(0, pcm.Len()) {
		if quiet++; math.Abs(float64(s)) > 0.1 {
			if quiet > SampleRate/2 {
				got = append(got, pcm.Timeline().Start(float64(i)/SampleRate))
			}
			quiet = 0
		}
	}
	assert.InDeltaSlice(t, want, got, delta, "%v", pcm.Timeline())
}

// onset returns the position of the first sound in seconds.
func onset(samples []float32) float64 {
	for i, s := range samples {
		if math.Abs(float64(s)) > 0.1 {
			return float64(i) / SampleRate
		}
	}
	return math.NaN()
}

// TestEncryptedTrackIsRefused checks purchased recordings, whose packets would be
// decoded as noise: FairPlay and Audible name them so, Common Encryption has boxes,
// and for Matroska and Windows Media ffmpeg's description shows it.
func TestEncryptedTrackIsRefused(t *testing.T) {
	tone := []string{"-f", "lavfi", "-i", "sine=duration=1"}
	key := strings.Repeat("0f", 16)
	paths := []string{ffmpegFile(t, "cenc.mp4", append(tone, "-encryption_scheme", "cenc-aes-ctr", "-encryption_key", key, "-encryption_kid", key)...)}
	whole, err := os.ReadFile(ffmpegFile(t, "a.m4a", tone...))
	require.NoError(t, err)
	for _, tag := range []string{"drms", "aavd"} {
		path := filepath.Join(t.TempDir(), tag+".m4p")
		require.NoError(t, os.WriteFile(path, bytes.Replace(whole, []byte("mp4a"), []byte(tag), 1), 0o600))
		paths = append(paths, path)
	}
	for _, path := range paths {
		_, err := Open(t.Context(), File(path), Options{})
		require.ErrorIs(t, err, ErrUnsupported, path)
		require.ErrorContains(t, err, "encrypted")
	}
	for _, text := range []string{"[info]   Stream #0:0: Audio: opus, 48000 Hz\n[info]       enc_key_id      : AAEC", "[warning] DRM protected stream detected, decoding will likely fail!"} {
		r := &report{mapped: -1}
		for line := range strings.Lines(text + "\n[info]   Stream #0:0 -> #0:0 (opus (native) -> pcm_f32le (native))") {
			r.line(line)
		}
		require.ErrorContains(t, r.refusal(&input{}, Options{}, attempt{track: -1}), "encrypted", text)
	}
}

// TestTrackIsChosen decodes each track of a film in German and English; the
// error for a missing track names both, and so does Info without a chosen track
// or with a number below 1.
func TestTrackIsChosen(t *testing.T) {
	needFFmpeg(t)
	path := ffmpegFile(t, "film.mkv", "-f", "lavfi", "-i", "sine=d=1", "-f", "lavfi", "-i", "sine=d=2", "-map", "0", "-map", "1", "-c:a", "flac",
		"-metadata:s:a:0", "language=ger", "-metadata:s:a:1", "language=eng", "-disposition:a:0", "default")
	for track, seconds := range map[int]float64{-1: 1, 0: 1, 1: 1, 2: 2} {
		pcm, err := Open(t.Context(), File(path), Options{Track: track})
		require.NoError(t, err)
		assert.InDelta(t, seconds, pcm.Duration(), 0.01, "track %d", track)
		assert.False(t, pcm.Info().Truncated, "track %d: the file is as long as the longer track", track)
		if track > 0 {
			assert.Empty(t, pcm.Info().Tracks, "track %d was chosen", track)
		} else {
			assert.Equal(t, []string{"1 (flac) ger", "2 (flac) eng"}, pcm.Info().Tracks)
		}
		require.NoError(t, pcm.Close())
	}
	_, err := Open(t.Context(), File(path), Options{Track: 3})
	require.ErrorIs(t, err, ErrNoAudio)
	assert.ErrorContains(t, err, "audio track 3 is not there, expected one of: 1 (flac) ger, 2 (flac) eng")
}

// TestDecodedTrackIsNamedFirst: the second track is the default one.
func TestDecodedTrackIsNamedFirst(t *testing.T) {
	needFFmpeg(t)
	file := File("testdata/formats/mp4_two_audio_default_second.mp4")
	pcm, err := Open(t.Context(), file, Options{})
	require.NoError(t, err)
	defer pcm.Close()
	assert.Equal(t, []string{"2 (aac)", "1 (aac)"}, pcm.Info().Tracks)
	probed, err := Probe(t.Context(), file, Options{})
	require.NoError(t, err)
	assert.Equal(t, pcm.Info().Tracks, probed.Tracks)
}

// TestOddLanguagesAreNotShown: a language is a code, or is left out.
func TestOddLanguagesAreNotShown(t *testing.T) {
	for declared, language := range map[string]string{"ger": "ger", "pt-BR": "pt-BR", "und": "", "": "", "a": "", "g\x1b[31m": "", "a language": ""} {
		r := report{}
		r.line("[info]   Stream #0:1(" + declared + "): Audio: flac, 48000 Hz, mono")
		require.Len(t, r.tracks, 1)
		assert.Equal(t, language, r.tracks[0].language, "%q", declared)
	}
}

// TestNISTSphere reads NIST SPHERE through ffmpeg.
func TestNISTSphere(t *testing.T) {
	needFFmpeg(t)
	sphere := func(fields string, samples []byte) []byte {
		head := "NIST_1A\n   1024\nchannel_count -i 1\nsample_rate -i 8000\n" + fields + "end_head\n"
		return append([]byte(head+strings.Repeat(" ", 1024-len(head))), samples...)
	}
	second := bytes.Repeat([]byte{0x40, 0x00}, 8000)
	for codec, fields := range map[string]string{
		"pcm_s16be": "sample_n_bytes -i 2\nsample_byte_format -s2 10\nsample_coding -s3 pcm\nsample_count -i 8000\n",
		"pcm_s16le": "sample_n_bytes -i 2\nsample_byte_format -s2 01\n",
		"pcm_mulaw": "sample_n_bytes -i 1\nsample_coding -s4 ulaw\nsample_count -i 16000\n",
	} {
		file := sphere(fields, second)
		pcm, err := Open(t.Context(), Reader(bytes.NewReader(file), "x.WAV"), Options{})
		require.NoError(t, err)
		defer pcm.Close()
		assert.Equal(t, []any{"sphere", codec, false}, []any{pcm.Info().Container, pcm.Info().Codec, pcm.Info().Truncated})
		cut, err := Open(t.Context(), Reader(bytes.NewReader(file[:4000]), "x.WAV"), Options{})
		require.NoError(t, err)
		defer cut.Close()
		assert.Equal(t, strings.Contains(fields, "sample_count"), cut.Info().Truncated)
	}
	shorten := sphere("sample_n_bytes -i 2\nsample_byte_format -s2 10\nsample_coding -s26 pcm,embedded-shorten-v2.00\n", second)
	_, err := Open(t.Context(), Reader(bytes.NewReader(shorten), "x.sph"), Options{})
	require.ErrorIs(t, err, ErrCorrupt)
	assert.ErrorContains(t, err, "shorten")
}
