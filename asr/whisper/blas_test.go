package whisper

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/internal/native"
)

// needBLAS skips a test where OpenBLAS has not been fetched.
func needBLAS(t testing.TB) {
	t.Helper()
	needLibrary(t)
	require.NoError(t, openLibrary())
	if err := openBLAS(); err != nil {
		t.Skipf("OpenBLAS is not there: %v", err)
	}
}

// TestBLASGivesTheSameText opens engines with and without OpenBLAS again and again, some
// of them at the same time, and closes them while others decode: the words are the same,
// and their probabilities up to rounding.
func TestBLASGivesTheSameText(t *testing.T) {
	needBLAS(t)
	if os.Getenv("OTOGRAPH_TEST_PLAIN") == "" {
		again(t, withoutPacking(t))
		return
	}
	model := demoModel(t)
	pcm, speech := together(t, 1, clips[:3]...)
	o := asr.DefaultOptions()
	o.Language, o.BeamSize, o.Parallel = "en", 2, 2

	transcribe := func() *asr.Transcript {
		// Windows of one sentence or two, so that several states work side by side.
		m := model
		m.WindowSeconds = 5
		e, err := openFile(m, Options{Context: ContextShort})
		if !assert.NoError(t, err) {
			return nil
		}
		tr, err := e.Transcribe(context.Background(), pcm, speech, o)
		assert.NoError(t, err)
		assert.NoError(t, e.Close())
		return tr
	}
	t.Setenv(EnvBLAS, "off")
	want := transcribe()
	require.NotEmpty(t, want.Segments)
	for _, setting := range []string{"on", "off", "on"} {
		t.Setenv(EnvBLAS, setting)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if got := transcribe(); got != nil {
					sameText(t, want, got)
				}
			})
		}
		wg.Wait()
	}

	// Engines of both kinds live at the same time, and end in either order.
	t.Setenv(EnvBLAS, "on")
	with, err := openFile(model, Options{})
	require.NoError(t, err)
	t.Setenv(EnvBLAS, "off")
	without, err := openFile(model, Options{})
	require.NoError(t, err)
	assert.True(t, with.weights.blas)
	assert.False(t, without.weights.blas)
	one, speechOfOne := read(t, clips[0].name), clips[0].speech()
	a, err := with.Transcribe(context.Background(), one, speechOfOne, o)
	require.NoError(t, err)
	b, err := without.Transcribe(context.Background(), one, speechOfOne, o)
	require.NoError(t, err)
	sameText(t, a, b)
	assert.NotEqual(t, a.Segments[0].Words[0].Probability, b.Segments[0].Words[0].Probability, "equal to the last bit: the same code")
	require.NoError(t, with.Close())
	require.NoError(t, without.Close())
}

// again runs the calling test in a process of its own, with these native libraries.
func again(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "OTOGRAPH_TEST_PLAIN=1", native.EnvDir+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: "+t.Name(), "it did not run")
}

// withoutPacking returns a folder with the native libraries, less ggml's code for
// processors whose code keeps weights in a layout of its own.
func withoutPacking(t *testing.T) string {
	t.Helper()
	dir := linkNative(t, "ggml")
	plugins, err := filepath.Glob(filepath.Join(nativeDir(t), "ggml", "*"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ggml"), 0o755))
	for _, p := range plugins {
		if !strings.Contains(p, "sapphirerapids") {
			require.NoError(t, os.Symlink(p, filepath.Join(dir, "ggml", filepath.Base(p))))
		}
	}
	return dir
}

// linkNative returns a folder with links to the native libraries, less one.
func linkNative(t *testing.T, without string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(nativeDir(t))
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != without {
			require.NoError(t, os.Symlink(filepath.Join(nativeDir(t), e.Name()), filepath.Join(dir, e.Name())))
		}
	}
	return dir
}

// sameText compares transcripts whose numbers may differ by rounding.
func sameText(t *testing.T, want, got *asr.Transcript) {
	t.Helper()
	assert.Equal(t, texts(want), texts(got))
	if !assert.Len(t, got.Segments, len(want.Segments)) {
		return
	}
	for i, s := range want.Segments {
		if !assert.Len(t, got.Segments[i].Words, len(s.Words)) {
			return
		}
		for k, w := range s.Words {
			other := got.Segments[i].Words[k]
			assert.InDelta(t, w.Probability, other.Probability, 0.02, w.Text)
			assert.InDelta(t, w.Start, other.Start, 0.1, w.Text) // time marks are 20 ms apart, and close in probability
		}
	}
}

func TestBLASSettingIsChecked(t *testing.T) {
	needLibrary(t)
	t.Setenv(EnvBLAS, "yes")
	_, err := openFile(modelFile{Data: testModel()}, Options{})
	assert.ErrorContains(t, err, `OTOGRAPH_BLAS: expected on or off, found "yes"`)
	_, err = InspectBLAS()
	assert.ErrorContains(t, err, "OTOGRAPH_BLAS")
}

// TestMeasurementsAreRemembered checks that a measurement is made once for a machine
// and a type of weights, and that what is remembered decides.
func TestMeasurementsAreRemembered(t *testing.T) {
	needBLAS(t)
	t.Setenv(EnvBLAS, "")
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv(native.EnvDir, nativeDir(t)) // which may be in the data folder
	forget := func() { races = memory{} }
	forget()
	t.Cleanup(forget)
	b, err := InspectBLAS()
	require.NoError(t, err)
	require.NoError(t, b.Missing)
	assert.NotEmpty(t, b.Kernel)
	assert.Equal(t, filepath.Join(data, "otograph", "blas.json"), b.File)
	for name, r := range b.Races {
		assert.Equal(t, r.Packed == "", r.CPU > 0 && r.BLAS > 0, "%s: %+v", name, r)
		assert.Equal(t, r.Packed == "" && float64(r.BLAS) < 0.9*float64(r.CPU), b.Used(name), name)
	}

	forget()
	again, err := InspectBLAS()
	require.NoError(t, err)
	assert.Equal(t, b.Races, again.Races, "measured a second time")

	for _, c := range []struct {
		race Race
		used bool
	}{
		{Race{CPU: 10 * time.Millisecond, BLAS: 8 * time.Millisecond}, true},
		{Race{CPU: 10 * time.Millisecond, BLAS: 9500 * time.Microsecond}, false},
		{Race{Packed: "AMX"}, false},
	} {
		races.remember(1, c.race)
		forget()
		used, err := useBLAS(1)
		require.NoError(t, err)
		assert.Equal(t, c.used, used, "%+v", c.race)
	}

	// A damaged file is not believed, and a folder that cannot be written does not matter.
	require.NoError(t, os.WriteFile(b.File, []byte(`{"x":`), 0o600))
	forget()
	_, err = useBLAS(1)
	require.NoError(t, err)
	t.Setenv("XDG_DATA_HOME", filepath.Join(b.File, "no folder"))
	forget()
	_, err = useBLAS(1)
	require.NoError(t, err)
}

func nativeDir(t *testing.T) string {
	t.Helper()
	dir, err := native.Dir()
	require.NoError(t, err)
	return dir
}

// TestBLASIsNotNeeded checks that everything works where OpenBLAS is absent.
func TestBLASIsNotNeeded(t *testing.T) {
	needLibrary(t)
	t.Setenv(EnvBLAS, "")
	dir := linkNative(t, "blas")
	startChild(t, "quiet", dir)
	t.Setenv(EnvBLAS, "on")
	startChild(t, "no blas", dir)
}
