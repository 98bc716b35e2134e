package otograph_test

import (
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
)

// These tests count work instead of timing it: a change that makes the pipeline
// do more (a second encoder pass, a copy of the recording, an allocation for
// each sample) fails them on any machine, even a busy one. Each bound is a
// measured count plus a stated margin.

// shaped returns the demo set with one recognizer, a small synthetic Whisper
// model that returns at most ten tokens per window.
func shaped(t *testing.T) *models.Set {
	t.Helper()
	return shapedWith(t, modeltest.ShapeOptions{Tokens: 10})
}

// shapedWith is like shaped with other options.
func shapedWith(t *testing.T, opt modeltest.ShapeOptions) *models.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shape.bin")
	f, err := os.Create(path)
	require.NoError(t, err)
	size, err := modeltest.FindSize("micro")
	require.NoError(t, err)
	require.NoError(t, modeltest.WriteModel(f, size, opt))
	require.NoError(t, f.Close())
	others := *demo.Models()
	others.Models = slices.DeleteFunc(slices.Clone(others.Models), func(m models.Model) bool { return m.Role == models.RoleOptimized }) // would time words
	set, err := library.Load{Files: map[models.Role]string{models.RoleStandard: path}, Fallback: &others}.Open()
	require.NoError(t, err)
	return set
}

// speechSeconds returns the duration of the speech that a run found.
func speechSeconds(res *otograph.Result) (sum float64) {
	for _, v := range res.VADSegments {
		sum += v.End - v.Start
	}
	return sum
}

// counted runs a pipeline and returns the run's allocations.
func counted(t *testing.T, p *otograph.Pipeline, src otograph.Source, opt otograph.Options) (res *otograph.Result, objects, bytes uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	res, err := p.Run(t.Context(), src, opt)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	return res, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// TestCountsStandardTier counts the passes, windows and allocations of a run.
func TestCountsStandardTier(t *testing.T) {
	p := open(t, shaped(t))
	opt := otograph.Options{Optimize: new(false), ASRBeamSize: new(1), ASRLanguage: new("en")}
	const seconds = 100.0
	sound := modeltest.Speech(seconds, 2, 1)
	start := audio.Raw(sound[:30*audio.SampleRate], audio.SampleRate, 1)
	counted(t, p, start, opt) // loads the engines and fills the pools
	// The garbage collector is off, because it empties pools at unpredictable
	// moments.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	short, objects1, bytes1 := counted(t, p, start, opt)
	long, objects2, bytes2 := counted(t, p, audio.Raw(sound, audio.SampleRate, 1), opt)

	require.Equal(t, otograph.TierStandard, long.Tier)
	speech, s := speechSeconds(long), long.Stats
	t.Logf("%.0f s of speech in %.0f s: %+v", speech, seconds, s)
	require.Greater(t, speech, 0.6*seconds, "the detector takes the made-up speech for speech")
	assert.Equal(t, s.ASR.Windows, s.ASR.EncoderPasses, "each window is encoded once")
	assert.Zero(t, s.ASR.Fallbacks+s.ASR.Loops)
	assert.LessOrEqual(t, float64(s.ASR.EncoderPasses)/(seconds/60), 2.4, "encoder passes for a minute: 2 would be windows filled to the brim")
	assert.LessOrEqual(t, s.ASR.DecoderSteps, s.ASR.Windows*20, "ten tokens, time marks and prompt")
	assert.Equal(t, int(seconds*audio.SampleRate+511)/512, s.VADWindows, "one probability for each 512 samples, each once")
	assert.LessOrEqual(t, float64(s.EmbeddingWindows)/(speech/60), 80.0, "embedded windows for a minute of speech")
	assert.Positive(t, s.EmbeddingWindows)
	assert.InDelta(t, seconds/0.48, float64(s.EventFrames), 3, "one frame of events each 0.48 s")

	windows := float64(s.ASR.Windows - short.Stats.ASR.Windows)
	require.Positive(t, windows)
	t.Logf("for each window more: %.0f objects, %.0f KiB", float64(objects2-objects1)/windows, float64(bytes2-bytes1)/windows/1024)
	assert.Less(t, float64(objects2-objects1)/windows, maxObjectsPerWindow)
	assert.Less(t, float64(bytes2-bytes1)/windows, maxBytesPerWindow)
}

// A model's text influences the work: it may fail, end before the speech does,
// or skip some of it. Such a text, or noise taken for speech, must not multiply
// the encoder's passes.
func TestCountsRepair(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	demoSet := demo.Models()
	sets := map[string]*models.Set{"demo": demoSet, "passing over": shapedWith(t, modeltest.ShapeOptions{Tokens: 40}), "long texts": shapedWith(t, modeltest.ShapeOptions{Tokens: 150})}
	recordings := map[string]otograph.Source{"conversation": otograph.File(conversation)}
	for _, name := range []string{"music_piano.opus", "siren.opus"} {
		path := filepath.Join("testdata", "demo", "nonspeech", name)
		recordings[name] = otograph.File(path)
		recordings["conversation over "+name] = mixed(t, conversation, path)
	}
	people := map[string]otograph.Source{}
	if shared := os.Getenv("OTOGRAPH_SHARED"); shared != "" {
		list, err := filepath.Glob(filepath.Join(shared, "testdata", "real", "*.flac"))
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, path := range list {
			people[filepath.Base(path)] = otograph.File(path)
		}
	}
	// With a low threshold, noise counts as speech.
	opt := otograph.Options{
		Optimize: new(false), ASRBeamSize: new(1), ASRLanguage: new("en"), VADThreshold: new(0.05),
		EnableDiarize: new(false), EnableAudioEvents: new(false),
	}
	// The recording that each model hears without the tag long.
	pairs := map[string]string{"demo": "conversation over music_piano.opus", "passing over": "conversation over siren.opus", "long texts": "conversation"}
	var sum asr.Stats
	for model, set := range sets {
		p := open(t, set)
		sources := maps.Clone(recordings)
		if model == "demo" {
			maps.Copy(sources, people)
		}
		for name, src := range sources {
			if !everyPair && name != pairs[model] && people[name] == nil {
				continue
			}
			res, err := p.Run(t.Context(), src, opt)
			require.NoError(t, err)
			s := res.Stats.ASR
			sum.Add(s)
			assert.LessOrEqual(t, s.EncoderPasses, s.Windows+(s.Windows+3)/4+(s.Windows+3)/8, "%s, %s: %+v", model, name, s)
		}
	}
	t.Logf("%+v", sum)
	assert.Positive(t, sum.Skipped, "speech was passed over")
	assert.Positive(t, sum.Continued, "texts ended early")
}

// mixed adds two recordings at the same loudness and repeats the second one.
func mixed(t *testing.T, first, second string) otograph.Source {
	t.Helper()
	var sounds [2][]float32
	for i, path := range []string{first, second} {
		pcm, err := audio.Open(t.Context(), otograph.File(path), audio.Options{})
		require.NoError(t, err)
		defer pcm.Close()
		sounds[i] = slices.Clone(pcm.Samples(0, pcm.Len()))
		var power float64
		for _, v := range sounds[i] {
			power += float64(v) * float64(v)
		}
		level := float32(0.05 / math.Sqrt(power/float64(len(sounds[i]))))
		for j := range sounds[i] {
			sounds[i][j] *= level
		}
	}
	for i := range sounds[0] {
		sounds[0][i] += sounds[1][i%len(sounds[1])]
	}
	return audio.Raw(sounds[0], audio.SampleRate, 1)
}

func TestCountsOptimizedTier(t *testing.T) {
	p := open(t, demo.Models())
	opt := otograph.Options{ASRLanguage: new("en"), EnableAudioEvents: new(false)}
	seconds := 60.0
	if testing.Short() {
		seconds = 30
	}
	res, _, _ := counted(t, p, audio.Raw(modeltest.Speech(seconds, 2, 1), audio.SampleRate, 1), opt)
	require.Equal(t, otograph.TierOptimized, res.Tier)
	speech := speechSeconds(res)
	t.Logf("%.0f s of speech in %.0f s: %+v", speech, seconds, res.Stats)
	assert.Equal(t, res.Stats.ASR.Windows, res.Stats.ASR.EncoderPasses)
	assert.Zero(t, res.Stats.ASR.DecoderSteps)
	assert.LessOrEqual(t, float64(res.Stats.ASR.Windows)/(speech/60), 25.0, "windows for a minute of speech")
}

// A recording is mapped, never copied to memory: allocations do not grow with
// its length, and only a small part of the mapping is resident at any time.
func TestCountsLongRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skip("peak memory is read from /proc")
	}
	p := open(t, demo.Models())
	opt := otograph.Options{ASRLanguage: new("en")}
	short, long := mostlyQuiet(t, 3*60), mostlyQuiet(t, 20*60)
	counted(t, p, otograph.File(short), opt)
	// The resident size depends on the collector's timing, but a copy would
	// always be visible.
	var resident, mapped int64
	for range 3 {
		peak1, _, bytes1 := peakOf(t, p, short, opt)
		peak2, res, bytes2 := peakOf(t, p, long, opt)
		resident, mapped = peak2-peak1, int64(res.AudioDuration*audio.SampleRate*4)
		t.Logf("20 min against 3 min: %.1f MiB more allocated, %.1f MiB more at the peak; the samples are %.0f MiB", float64(bytes2-bytes1)/(1<<20), float64(resident)/(1<<20), float64(mapped)/(1<<20))
		assert.Less(t, float64(bytes2)-float64(bytes1), float64(mapped)/4, "bytes allocated for 17 min more of silence")
		if resident < mapped/2 {
			break
		}
	}
	assert.Less(t, resident, mapped/2, "resident memory for 17 min more")
}

// mostlyQuiet writes a WAV file with 30 s of speech and then faint noise.
func mostlyQuiet(t *testing.T, seconds int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quiet.wav")
	n := seconds * audio.SampleRate
	data := make([]byte, 0, 44+2*n)
	data = append(data, "RIFF"...)
	data = binary.LittleEndian.AppendUint32(data, uint32(36+2*n))
	data = append(data, "WAVEfmt "...)
	for _, v := range []uint32{16, 1 | 1<<16, audio.SampleRate, 2 * audio.SampleRate, 2 | 16<<16} {
		data = binary.LittleEndian.AppendUint32(data, v)
	}
	data = append(data, "data"...)
	data = binary.LittleEndian.AppendUint32(data, uint32(2*n))
	speech := modeltest.Speech(30, 1, 1)
	for i := range n {
		v := uint32(i) * 2654435761 >> 29 // faint noise
		if i < len(speech) {
			v = uint32(int32(speech[i] * 32767))
		}
		data = binary.LittleEndian.AppendUint16(data, uint16(v))
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// peakOf processes a file and returns the peak resident memory in bytes.
func peakOf(t *testing.T, p *otograph.Pipeline, path string, opt otograph.Options) (peak int64, res *otograph.Result, allocated uint64) {
	t.Helper()
	debug.FreeOSMemory()
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	res, _, allocated = counted(t, p, otograph.File(path), opt)
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			require.NoError(t, err)
			return kb << 10, res, allocated
		}
	}
	require.Fail(t, "no VmHWM in /proc/self/status")
	return 0, nil, 0
}

// Bounds on the cost of each further window of 30 s in the standard tier,
// including the other stages from VAD to events.
const (
	maxObjectsPerWindow = 3150.0           // counted 1,900 to 2,160
	maxBytesPerWindow   = 15.0 * (1 << 20) // counted 11.0 to 12.0 MiB: 4.3 for the search for repeated sound (once a run), 1.8 for the window's samples, most of the rest for word times
)
