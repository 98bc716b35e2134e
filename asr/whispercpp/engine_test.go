package whispercpp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// emulated is set by test/arm64/run.sh: the CPU is a hundred times slower.
var emulated = os.Getenv("OTOGRAPH_EMULATED") != ""

func TestMain(m *testing.M) {
	if task := os.Getenv("OTOGRAPH_TEST_CHILD"); task != "" {
		os.Exit(child(task))
	}
	outside.Main(m)
}

// demoModel returns the embedded demo model.
func demoModel() *models.Model {
	m, _ := demo.Models().Role(models.RoleStandard)
	return m
}

// clip is a recording of one sentence.
type clip struct {
	language, text string
	pcm            *audio.PCM
	speech         []audio.Span
}

// clips opens recordings of asr/whisper's test data.
func clips(t testing.TB) (list []clip) {
	t.Helper()
	for name, text := range map[string]string{
		"en_29": "Have you seen my bottle?", "zh_00": "你要喝牛奶还是咖啡？",
	} {
		if emulated && name != "en_29" {
			continue
		}
		pcm, err := audio.Open(context.Background(), audio.File(filepath.Join("..", "whisper", "testdata", name+".wav")), audio.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, pcm.Close()) })
		list = append(list, clip{name[:2], text, pcm, []audio.Span{{Start: 3520, End: pcm.Len() - 3520}}})
	}
	return list
}

// needLibrary skips a test if libwhisper has not been fetched.
func needLibrary(t testing.TB) {
	t.Helper()
	if _, err := native.Whisper(); err != nil {
		t.Skipf("libwhisper is not there: %v", err)
	}
}

// openStandIn opens the demo model with libwhisper on the CPU, which stands in
// for a device.
func openStandIn(t testing.TB, log *slog.Logger) *engine {
	t.Helper()
	needLibrary(t)
	require.NoError(t, openLibrary())
	d, err := openDevice(demoModel(), -1, log)
	require.NoError(t, err)
	e := &engine{model: *demoModel(), opt: recognizers.Options{Logger: log}, device: d, name: "stand-in:0"}
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

var discard = slog.New(slog.DiscardHandler)

func transcribe(t testing.TB, e asr.Transcriber, c clip, change ...func(*asr.Options)) *asr.Transcript {
	t.Helper()
	o := asr.DefaultOptions()
	o.Language = c.language
	for _, f := range change {
		f(&o)
	}
	tr, err := e.Transcribe(t.Context(), c.pcm, c.speech, o)
	require.NoError(t, err)
	return tr
}

func text(tr *asr.Transcript) string {
	var list []string
	for _, s := range tr.Segments {
		list = append(list, s.Text)
	}
	return strings.Join(list, " ")
}

// TestSameTextAsOurNetwork: libwhisper writes the text of our own network, with
// words within the speech, and detects the same language.
func TestSameTextAsOurNetwork(t *testing.T) {
	e := openStandIn(t, discard)
	ours, err := whisper.Open(demoModel(), whisper.Options{})
	require.NoError(t, err)
	defer ours.Close()
	assert.Equal(t, ours.Languages(), e.Languages())
	for _, c := range clips(t) {
		var progress []float64
		tr := transcribe(t, e, c, func(o *asr.Options) {
			o.Progress = func(done, total float64) { progress = append(progress, done/total) }
		})
		assert.Equal(t, c.text, text(tr))
		assert.Equal(t, c.text, text(transcribe(t, ours, c)))
		assert.Equal(t, []float64{1}, progress)
		assert.Equal(t, 1, tr.Stats.Windows)
		assert.Positive(t, tr.Stats.EncoderPasses)
		assert.Positive(t, tr.Stats.DecoderSteps)
		words := tr.Segments[0].Words
		require.NotEmpty(t, words)
		from, to := c.speech[0].Seconds()
		for _, w := range words {
			assert.True(t, w.Interpolated)
			assert.LessOrEqual(t, from, w.Start)
			assert.Less(t, w.Start, w.End)
			assert.LessOrEqual(t, w.End, to+1e-9)
			from = w.Start
		}
		if testing.Short() && c.language == "en" {
			continue
		}
		language, p, err := e.DetectLanguage(t.Context(), c.pcm, c.speech, asr.Detection{})
		require.NoError(t, err)
		assert.Equal(t, c.language, language)
		assert.True(t, p > 0.5 && p <= 1, "%g", p)
		language, _, err = e.DetectLanguage(t.Context(), c.pcm, c.speech, asr.Detection{Among: []string{"fr"}})
		require.NoError(t, err)
		assert.Equal(t, "fr", language)
	}
}

// TestSameProbabilitiesAsOurNetwork: both networks give each token nearly the
// same probability after "start of transcript". The short form has one clip.
func TestSameProbabilitiesAsOurNetwork(t *testing.T) {
	e := openStandIn(t, discard)
	f, err := whispernet.OpenFile(demoModel())
	require.NoError(t, err)
	defer f.Close()
	m, err := whispernet.Open(f.Checked, whispernet.Options{})
	require.NoError(t, err)
	defer m.Close()
	v := m.Vocabulary()
	for _, c := range clips(t) {
		if testing.Short() && c.language != "en" {
			continue
		}
		x := samples(decode.Pack(c.speech, c.pcm, f.Packing)[0], c.pcm)
		w, err := m.Encode(x, 1, 2, nil)
		require.NoError(t, err)
		ours := make([]float32, v.Size)
		d := m.NewDecoder(2)
		require.NoError(t, d.Step([]whispernet.Column{{Window: w, Token: v.SOT, Logits: ours}}, nil))
		d.Free()
		w.Free()
		whispernet.Normalize(ours, v.Begin)
		var theirs []float32
		require.NoError(t, e.device.run(t.Context(), false, func(_ context.Context, s *state) (err error) {
			if _, err = s.detect(x); err == nil {
				theirs, err = s.first()
			}
			return err
		}))
		require.Len(t, theirs, len(ours))
		for i := range ours {
			assert.InDelta(t, math.Exp(float64(theirs[i])), math.Exp(float64(ours[i])), 0.05, v.Text(int32(i)))
		}
	}
}

func TestOptionsReachLibwhisper(t *testing.T) {
	e := openStandIn(t, discard)
	c := clips(t)[0]
	o := asr.DefaultOptions()
	for want, change := range map[string]func(){
		"language":          func() { o.Language = "tlh" },
		"temperature":       func() { o.Temperature = 2 },
		"cannot translate":  func() { o.Translate = true },
		"context canceled:": nil,
	} {
		o = asr.DefaultOptions()
		o.Language = c.language
		ctx, cancel := context.WithCancelCause(t.Context())
		if change == nil {
			cancel(errors.New("context canceled: by the test"))
		} else {
			change()
		}
		_, err := e.Transcribe(ctx, c.pcm, c.speech, o)
		assert.ErrorContains(t, err, want)
		cancel(nil)
	}
	drawn := transcribe(t, e, c, func(o *asr.Options) { o.Temperature, o.BestOf = 0.2, 2 })
	assert.Equal(t, drawn, transcribe(t, e, c, func(o *asr.Options) { o.Temperature, o.BestOf = 0.2, 2 }), "earlier runs leave no trace")
	assert.InDelta(t, 0.2, drawn.Segments[0].Temperature, 1e-6)
}

// TestCloseDuringATranscription: callers get whisper.ErrClosed.
func TestCloseDuringATranscription(t *testing.T) {
	e := openStandIn(t, discard)
	c := clips(t)[0]
	begun, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		assert.ErrorIs(t, e.device.run(context.Background(), false, func(ctx context.Context, _ *state) error {
			close(begun)
			<-ctx.Done()
			<-release
			return context.Cause(ctx)
		}), whisper.ErrClosed)
	})
	<-begun
	group.Go(func() { assert.NoError(t, e.Close()) })
	group.Go(func() {
		_, err := e.Transcribe(context.Background(), c.pcm, c.speech, asr.Options{Language: c.language})
		assert.ErrorIs(t, err, whisper.ErrClosed)
		close(release)
	})
	group.Wait()
	require.NoError(t, e.Close())
}

// TestFailedDeviceFallsBackToTheCPU: the CPU transcribes the windows that a
// failed device left, and all later recordings.
func TestFailedDeviceFallsBackToTheCPU(t *testing.T) {
	e := openStandIn(t, discard)
	d := e.device
	defer d.close()
	c := clips(t)[0]
	d.lost = true
	assert.Equal(t, c.text, text(transcribe(t, e, c)))
	name, note := e.Device()
	assert.Equal(t, recognizers.DeviceCPU, name)
	assert.Contains(t, note, "stand-in:0 failed")
	language, _, err := e.DetectLanguage(t.Context(), c.pcm, c.speech, asr.Detection{})
	require.NoError(t, err)
	assert.Equal(t, c.language, language)
	assert.True(t, e.Abilities().Hotwords, "the CPU's")
	d.lost = false // nothing failed: its memory is freed
}

// TestMissingDeviceFallsBackToTheCPU also checks a wrong name.
func TestMissingDeviceFallsBackToTheCPU(t *testing.T) {
	needLibrary(t)
	e, err := open(demoModel(), recognizers.Options{Device: "vulkan:200"})
	require.NoError(t, err)
	defer e.Close()
	name, note := e.Device()
	assert.Equal(t, recognizers.DeviceCPU, name)
	assert.Contains(t, note, "vulkan:200 is not there")
	_, err = open(demoModel(), recognizers.Options{Device: "tpu"})
	assert.ErrorContains(t, err, `found "tpu"`)
}

// TestDevicesGiveTheSameText: the demo model writes the same text on each
// device as on the CPU.
func TestDevicesGiveTheSameText(t *testing.T) {
	needLibrary(t)
	devices, err := Devices()
	require.NoError(t, err)
	if len(devices) == 0 {
		t.Skip("no device: " + NoDevices())
	}
	for _, d := range devices {
		e, err := open(demoModel(), recognizers.Options{Device: d.Name})
		require.NoError(t, err)
		for _, c := range clips(t) {
			assert.Equal(t, c.text, text(transcribe(t, e, c)), d.Description)
		}
		name, note := e.Device()
		assert.Equal(t, d.Name, name)
		assert.Empty(t, note)
		require.NoError(t, e.Close())
	}
}

func TestNativeLogGoesToTheLogger(t *testing.T) {
	var b bytes.Buffer
	var mu sync.Mutex
	openStandIn(t, slog.New(slog.NewTextHandler(lockedWriter{&mu, &b}, &slog.HandlerOptions{Level: slog.LevelDebug})))
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, b.String(), "level=DEBUG")
	assert.Contains(t, b.String(), "n_vocab")
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// child is run by the test program when a test starts it again: for actions
// that a process can do only once, or that concern everything it prints.
func child(task string) int {
	_, err := OpenLibrary()
	switch task {
	case "missing":
		if !errors.Is(err, native.ErrMissing) {
			break
		}
		var e *engine
		if e, err = open(demoModel(), recognizers.Options{Device: "vulkan"}); err != nil {
			break
		}
		if _, note := e.Device(); strings.Contains(note, "libwhisper") {
			return 0
		}
	case "unusable":
		if errors.Is(err, errLibrary) {
			return 0
		}
	case "quiet":
		var d *onDevice
		if err != nil {
			break
		}
		if d, err = openDevice(demoModel(), -1, discard); err != nil {
			break
		}
		if _, _, err = d.detect(context.Background(), audio.FromSamples(make([]float32, 16000)), nil, asr.Detection{}); err == nil {
			d.close()
			return 0
		}
	}
	println(task, "found", err)
	return 1
}

func startChild(t *testing.T, task, dir string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "OTOGRAPH_TEST_CHILD="+task)
	if dir != "" {
		cmd.Env = append(cmd.Env, native.EnvDir+"="+dir)
	}
	out, err := cmd.CombinedOutput()
	if emulated && errors.Is(err, syscall.ENOEXEC) {
		t.Skipf("the emulator cannot start the tests' program a second time: %v", err)
	}
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out), "the library prints nothing")
}

func TestMissingLibraryIsAnError(t *testing.T) {
	startChild(t, "missing", t.TempDir())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, native.WhisperFile), []byte("no library"), 0o600))
	startChild(t, "unusable", dir)
}

func TestTheLibraryPrintsNothing(t *testing.T) {
	needLibrary(t)
	startChild(t, "quiet", "")
}

func TestOpenLibrary(t *testing.T) {
	needLibrary(t)
	version, err := OpenLibrary()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(version, "1.9."), version)
}
