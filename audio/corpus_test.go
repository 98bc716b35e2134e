package audio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// formatCase is a line of testdata/formats/manifest.jsonl: one recording in a
// format that users upload.
type formatCase struct {
	File                     string
	Codec, Container, Expect string
	Rate, Channels           int
	Duration                 float64 `json:"duration_s"`
	Tolerance                float64 `json:"tolerance_s"`
	Delay                    float64 `json:"delay_tolerance_ms"`
	MinCorr                  float64 `json:"min_corr"`
	BestChannel              float64 `json:"best_channel_min_corr"`
	Unreliable               bool    `json:"header_duration_unreliable"`
	AudioTracks              int     `json:"audio_tracks"`
}

// badCase is a line of testdata/bad/manifest.jsonl: a hostile or broken input.
type badCase struct {
	File           *string
	Expect, Reason string
	MustNot        []string  `json:"must_not"`
	Decoded        float64   `json:"decoded_s"`
	DecodedAny     []float64 `json:"decoded_s_any"`
	NameHex        string    `json:"name_utf8_hex"`
	Symlink        string
	FIFO           bool `json:"fifo"`
	Directory      bool
}

func readManifest[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var all []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c), "%s: %s", path, lines.Text())
		all = append(all, c)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all)
	return all
}

// corpora calls f for the folder in this package and, if OTOGRAPH_SHARED is
// set, for the complete collection.
func corpora(t *testing.T, name string, f func(t *testing.T, dir string)) {
	t.Run("own", func(t *testing.T) { f(t, filepath.Join("testdata", name)) })
	t.Run("shared", func(t *testing.T) {
		shared := os.Getenv("OTOGRAPH_SHARED")
		if shared == "" {
			t.Skip("OTOGRAPH_SHARED is not set: the complete collection is not here")
		}
		f(t, filepath.Join(shared, "testdata", name))
	})
}

func needFFmpeg(t testing.TB) {
	t.Helper()
	if _, err := findFFmpeg(Options{}); err != nil {
		t.Skip(err)
	}
}

func TestFormats(t *testing.T) {
	needFFmpeg(t)
	reference, err := Open(t.Context(), File("testdata/formats/no_extension"), Options{})
	require.NoError(t, err)
	defer reference.Close()
	corpora(t, "formats", func(t *testing.T, dir string) {
		long := reference
		if p, err := Open(t.Context(), File(filepath.Join(dir, "wav_s16_16k_mono.wav")), Options{}); err == nil {
			long = p
			defer p.Close()
		}
		containers := map[string]bool{}
		for _, c := range readManifest[formatCase](t, filepath.Join(dir, "manifest.jsonl")) {
			t.Run(c.File, func(t *testing.T) {
				checkFormat(t, filepath.Join(dir, c.File), c, long, c.Container == "wav" || !containers[c.Container])
			})
			containers[c.Container] = true
		}
	})
}

// checkFormat decodes one file, also as a stream if stream is set.
func checkFormat(t *testing.T, path string, c formatCase, reference *PCM, stream bool) {
	pcm, err := Open(t.Context(), File(path), Options{})
	if c.Expect == "error" {
		require.ErrorIs(t, err, ErrNoAudio)
		assert.True(t, spec.IsPermanent(err))
		t.Log(err)
		return
	}
	require.NoError(t, err)
	defer pcm.Close()
	info := pcm.Info()
	assert.InDelta(t, c.Duration, pcm.Duration(), c.Tolerance, "duration")
	assert.Equal(t, pcm.Duration(), info.Duration)
	assert.Equal(t, c.Rate, info.SampleRate, "rate")
	assert.Equal(t, c.Channels, info.Channels, "channels")
	assert.Equal(t, c.Codec, info.Codec, "codec")
	assert.Zero(t, info.NonFinite)
	if c.File != "mp3_leading_garbage.mp3" { // cut in the middle of a frame
		assert.False(t, info.Truncated, "nothing is missing")
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, md5Hex(content), info.MD5)
	assert.EqualValues(t, len(content), info.Size)

	n := min(int(c.Duration*SampleRate), reference.Len())
	heard := pcm.Samples(0, pcm.Len())
	if c.Duration > reference.Duration() { // the reference has only the beginning
		heard = pcm.Samples(0, n)
		c.MinCorr -= 0.05
	}
	corr, lag := correlate(heard, reference.Samples(0, n))
	want := max(c.MinCorr, c.BestChannel)
	if strings.Contains(c.File, "delayed_right") {
		want = c.MinCorr // the mean is comb-filtered, but does not cancel
	}
	assert.GreaterOrEqual(t, corr, want, "correlation")
	assert.LessOrEqual(t, float64(max(lag, -lag))/SampleRate*1000, c.Delay, "delay in ms")

	if stream {
		r, err := Open(t.Context(), Reader(bytes.NewReader(content), c.File), Options{})
		require.NoError(t, err)
		defer r.Close()
		assert.Equal(t, info, r.Info(), "a reader gives the same as the path")
		assert.Equal(t, pcm.Samples(0, pcm.Len()), r.Samples(0, r.Len()))
	}

	p, err := Probe(t.Context(), File(path), Options{})
	require.NoError(t, err)
	assert.InDelta(t, c.Duration, p.Duration, c.Tolerance+0.05, "probed duration")
	assert.Equal(t, []any{info.Container, info.Codec, info.SampleRate, info.Channels, info.Size}, []any{p.Container, p.Codec, p.SampleRate, p.Channels, p.Size})
}

func TestBadFiles(t *testing.T) {
	needFFmpeg(t)
	corpora(t, "bad", func(t *testing.T, dir string) {
		for _, c := range readManifest[badCase](t, filepath.Join(dir, "manifest.jsonl")) {
			if c.File == nil {
				continue // TestNamesAreOnlyLabels, TestOnlyRegularFilesAreOpened
			}
			t.Run(*c.File, func(t *testing.T) { checkBad(t, filepath.Join(dir, *c.File), c) })
		}
	})
}

func checkBad(t *testing.T, path string, c badCase) {
	opt := Options{MinBytes: -1, TempDir: t.TempDir()} // with the lower limit, most files would be rejected unread
	begin := time.Now()
	pcm, err := Open(t.Context(), File(path), opt)
	took := time.Since(begin)
	_, probeErr := Probe(t.Context(), File(path), opt)
	left, readErr := os.ReadDir(opt.TempDir)
	require.NoError(t, readErr)
	assert.Empty(t, left, "temporary files")
	if err != nil {
		t.Logf("%v: %v", took.Round(time.Millisecond), err)
		assert.Contains(t, c.Expect, "error", "must be decoded: %s", c.Reason)
		assert.True(t, spec.IsPermanent(err), "the input's fault, not the machine's: %v", err)
		assert.Contains(t, err.Error(), filepath.Base(path))
		assert.NotContains(t, err.Error(), "/proc/", "our name for the input")
		assert.NotContains(t, err.Error(), "root:", "content of another file")
		if probeErr != nil {
			assert.True(t, spec.IsPermanent(probeErr))
		}
		return
	}
	defer pcm.Close()
	t.Logf("%v: %+v", took.Round(time.Millisecond), pcm.Info())
	assert.NotEqual(t, "error", c.Expect, "must be refused: %s", c.Reason)
	for _, x := range pcm.Samples(0, pcm.Len()) {
		if !(x >= -1 && x <= 1) {
			t.Fatalf("sample %v", x)
		}
	}
	switch {
	case len(c.DecodedAny) > 0:
		assert.Contains(t, c.DecodedAny, pcm.Duration())
	case c.Decoded > 0:
		assert.InDelta(t, c.Decoded, pcm.Duration(), 0.1)
	}
	if !strings.Contains(c.Expect, "ok") || strings.Contains(strings.Join(c.MustNot, ","), "stopping without a mark") {
		assert.True(t, pcm.Info().Truncated)
	}
}
