package silero

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/vad"
)

func TestMain(m *testing.M) { outside.Main(m) }

func open(t testing.TB, src ort.Source, opt Options) *Model {
	t.Helper()
	m, err := openSource(src, "", opt)
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// embedded is the published network in the program.
func embedded(t testing.TB) ort.Source {
	t.Helper()
	m, ok := published.Models().Role(models.RoleVAD)
	require.True(t, ok)
	data, err := m.Main().Bytes()
	require.NoError(t, err)
	return ort.Source{Data: data, Name: m.Name, Role: "vad"}
}

// jfk is eleven seconds of speech.
func jfk(t testing.TB) []float32 {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File("../../testdata/real/jfk.flac"), audio.Options{})
	if errors.Is(err, audio.ErrDecoderMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer pcm.Close()
	return slices.Clone(pcm.Samples(0, pcm.Len()))
}

func fromInt16(raw []byte) []float32 {
	x := make([]float32, len(raw)/2)
	for i := range x {
		x[i] = float32(int16(binary.LittleEndian.Uint16(raw[2*i:]))) / 32768
	}
	return x
}

// recording returns speech of varying loudness with pauses and noise, of the
// given number of seconds.
func recording(t testing.TB, seconds int) []float32 {
	t.Helper()
	speech := jfk(t)
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, seconds*audio.SampleRate)
	for at := 0; at < len(x); {
		from := r.IntN(len(speech) / 2)
		n := r.IntN(len(speech) - from)
		gain := 0.2 + 0.8*r.Float32()
		for i := 0; i < n && at+i < len(x); i++ {
			x[at+i] = gain * speech[from+i]
		}
		at += n + r.IntN(3*audio.SampleRate)
	}
	for i := range x {
		x[i] += 0.002 * (r.Float32() - 0.5)
	}
	return x
}

func TestSpeechIsDetected(t *testing.T) {
	m := open(t, embedded(t), Options{})
	speech := jfk(t)
	pcm := audio.FromSamples(speech)
	probs, err := m.Probabilities(context.Background(), pcm)
	require.NoError(t, err)
	require.Len(t, probs, 344)
	heard := 0
	for _, p := range probs {
		if p > 0.5 {
			heard++
		}
	}
	// The published network is above 0.5 in 227 of the 344 windows.
	assert.InDelta(t, 227, heard, 30)

	segments, err := vad.Detect(context.Background(), m, pcm, vad.DefaultOptions())
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	start, _ := segments[0].Seconds()
	assert.Less(t, start, 0.6) // "And so, my fellow Americans"

	for name, quiet := range map[string][]float32{"silence": make([]float32, 10*audio.SampleRate), "noise": noise(10, 0.05)} {
		segments, err := vad.Detect(context.Background(), m, audio.FromSamples(quiet), vad.DefaultOptions())
		require.NoError(t, err)
		assert.Empty(t, segments, name)
	}
}

func noise(seconds int, level float32) []float32 {
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, seconds*audio.SampleRate)
	for i := range x {
		x[i] = level * (2*r.Float32() - 1)
	}
	return x
}

func TestShortInput(t *testing.T) {
	m := open(t, embedded(t), Options{})
	for _, n := range []int{0, 1, 511, 512, 513} {
		probs, err := m.Probabilities(context.Background(), audio.FromSamples(make([]float32, n)))
		require.NoError(t, err)
		assert.Len(t, probs, (n+511)/512)
	}
}

// within compares long results faster than InDeltaSlice.
func within(t *testing.T, want, got []float32, delta float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if d := math.Abs(float64(want[i] - got[i])); !(d <= delta) {
			require.Failf(t, "not the same", "window %d: expected %v within %v, got %v", i, want[i], delta, got[i])
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	m := open(t, embedded(t), Options{})
	pcm := audio.FromSamples(jfk(t))
	want, err := m.Probabilities(context.Background(), pcm)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := m.Probabilities(context.Background(), pcm)
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	wg.Wait()
}

// countingContext is canceled after its error was requested a number of times.
type countingContext struct {
	context.Context
	left, asked int
}

func (c *countingContext) Err() error {
	c.asked++
	if c.asked > c.left {
		return context.Canceled
	}
	return nil
}

func TestCloseStopsAndWaits(t *testing.T) {
	m := open(t, embedded(t), Options{})
	pcm := audio.FromSamples(make([]float32, 1200*audio.SampleRate))
	result := make(chan error, 1)
	go func() {
		_, err := m.Probabilities(context.Background(), pcm)
		result <- err
	}()
	time.Sleep(20 * time.Millisecond) // either order is valid; usually the run has begun
	require.NoError(t, m.Close())
	assert.ErrorIs(t, <-result, ort.ErrClosed)
	require.NoError(t, m.Close())
	_, err := m.Probabilities(context.Background(), pcm)
	assert.ErrorIs(t, err, ort.ErrClosed)
}

// TestEqualsThePublishedNetwork compares with the output of the published
// network in the published code.
func TestEqualsThePublishedNetwork(t *testing.T) {
	shared := os.Getenv("OTOGRAPH_SHARED")
	if shared == "" {
		t.Skip("OTOGRAPH_SHARED names no folder with the recordings")
	}
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg, which unpacks the recordings, is missing")
	}
	m := open(t, embedded(t), Options{})
	files, err := filepath.Glob("../testdata/published/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			var p struct {
				Recording  string    `json:"recording"`
				Samples    int       `json:"samples"`
				Probs      []float32 `json:"probs"`
				Timestamps map[string]struct {
					Options map[string]float64 `json:"options"`
				} `json:"timestamps"`
			}
			require.NoError(t, json.Unmarshal(raw, &p))
			cmd := exec.Command(ffmpeg, "-v", "error", "-i", filepath.Join(shared, "testdata/real", p.Recording), "-f", "s16le", "-")
			decoded, err := cmd.Output()
			require.NoError(t, err)
			pcm := audio.FromSamples(fromInt16(decoded))
			require.Equal(t, p.Samples, pcm.Len())
			probs, err := m.Probabilities(context.Background(), pcm)
			require.NoError(t, err)
			within(t, p.Probs, probs, 1e-3)
			require.Len(t, p.Timestamps, 6)
			for name, c := range p.Timestamps {
				// The rules compare probabilities with two thresholds alone; package vad tests them with p.Probs.
				enter := c.Options["threshold"]
				exit := cmp.Or(c.Options["neg_threshold"], max(enter-0.15, 0.01))
				for i, want := range p.Probs {
					for _, limit := range []float64{enter, exit} {
						assert.Equal(t, float64(want) >= limit, float64(probs[i]) >= limit, "%s: window %d", name, i)
					}
				}
			}
		})
	}

	t.Run("context is fed", func(t *testing.T) { // without it v6.2 never passes 0.008
		probs, err := m.Probabilities(context.Background(), audio.FromSamples(jfk(t)))
		require.NoError(t, err)
		highest := 0.0
		for _, p := range probs {
			highest = math.Max(highest, float64(p))
		}
		assert.Greater(t, highest, 0.99)
	})
}

func BenchmarkProbabilities(b *testing.B) {
	const seconds = 3600
	pcm := audio.FromSamples(recording(b, seconds))
	m := open(b, embedded(b), Options{})
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if _, err := m.Probabilities(context.Background(), pcm); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(seconds*float64(b.N)/b.Elapsed().Seconds(), "x_real_time")
}

func TestOtherModelsAreRefused(t *testing.T) {
	m, ok := published.Models().Role(models.RoleTagger)
	require.True(t, ok)
	data, err := m.Main().Bytes()
	require.NoError(t, err)
	_, err = openSource(ort.Source{Data: data, Name: "tagger.onnx", Role: "vad"}, "", Options{})
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.ErrorIs(t, err, ort.ErrContract)
	for _, want := range []string{"vad model tagger.onnx", "role vad: expected one of silero-v5", "found a model for role tagger (yamnet-patches)", "it has inputs"} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, strings.ToLower(err.Error()), "\n")
}
