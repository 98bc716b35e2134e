package whisper

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

func TestDeviceNames(t *testing.T) {
	for name, want := range map[string]string{
		"": "auto", "auto": "auto", "cpu": "cpu", "vulkan": "vulkan:0", "vulkan:7": "vulkan:7", "cuda:1": "cuda:1",
		"gpu": "", "vulkan:": "", "vulkan:-1": "", "vulkan:x": "", "vulkan:1000": "", "cpu:0": "", "Vulkan": "",
	} {
		got, err := parseDevice(name)
		assert.Equal(t, want, got, name)
		if want == "" {
			assert.ErrorContains(t, err, fmt.Sprintf("found %q", name))
		}
	}
	assert.Error(t, CheckDevice("tpu"))
	_, err := openFile(modelFile{Data: testModel()}, Options{Device: "tpu"})
	assert.ErrorContains(t, err, `found "tpu"`)
}

// If a device is missing, the CPU takes over, and the engine reports it.
func TestMissingDeviceFallsBackToTheCPU(t *testing.T) {
	needLibrary(t)
	e := open(t, testModel(), Options{Device: "vulkan:200"})
	name, note := e.Device()
	assert.Equal(t, DeviceCPU, name)
	assert.Contains(t, note, "vulkan:200 is not there")
	assert.Equal(t, []string{"Alpha beta."}, alphaBeta(t, e))

	name, note = open(t, testModel(), Options{Device: DeviceCPU}).Device()
	assert.Equal(t, DeviceCPU, name)
	assert.Empty(t, note)
}

// alphaBeta transcribes a second with the test model.
func alphaBeta(t *testing.T, e *Engine) []string {
	t.Helper()
	o := asr.DefaultOptions()
	o.Language = "en"
	tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, 20*second)), spans(0, 1), o)
	require.NoError(t, err)
	return texts(tr)
}

// failing is a device on which every call fails.
type failing struct{ backend }

func (failing) decode(context.Context, []*job, asr.Options, func(int)) error {
	return fmt.Errorf("%w: lost", ErrDevice)
}

// Work on a failed device is done again on the CPU, which also does all later
// work.
func TestFailedDeviceFallsBackToTheCPU(t *testing.T) {
	e := open(t, testModel(), Options{Device: DeviceCPU})
	onCPU := e.backend
	defer onCPU.free()
	e.backend, e.place, e.model.Data = failing{onCPU}, place{0, "vulkan:0"}, testModel() // as after Open with a device
	assert.Equal(t, []string{"Alpha beta."}, alphaBeta(t, e))
	name, note := e.Device()
	assert.Equal(t, DeviceCPU, name)
	assert.Contains(t, note, "vulkan:0 failed")
	assert.Contains(t, note, "lost")
	assert.Equal(t, []string{"Alpha beta."}, alphaBeta(t, e))
}

// A plug-in with a failed assertion or an exception does not end the program.
func TestFailingPluginsReturnErrors(t *testing.T) {
	needLibrary(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	_, err = Devices() // opens the library
	require.NoError(t, err)
	dir := t.TempDir()
	for name, body := range map[string]string{
		"assertion": `ggml_abort("plugin.c", 7, "out of luck");`,
		"exception": `_ZSt17__throw_bad_allocv();`,
		"nothing":   ``,
	} {
		source, lib := filepath.Join(dir, name+".c"), filepath.Join(dir, "lib"+name+".so")
		text := "void ggml_abort(const char *, int, const char *, ...);\nvoid _ZSt17__throw_bad_allocv(void);\n" +
			"void *ggml_backend_init(void) { " + body + " return 0; }\n"
		require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
		out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, source).CombinedOutput()
		require.NoError(t, err, string(out))
		err = loadPlugin(lib)
		require.Error(t, err, name)
		if name == "assertion" {
			assert.ErrorContains(t, err, "out of luck")
		}
	}
	assert.Error(t, loadPlugin(filepath.Join(dir, "absent.so")))
	_, err = Devices()
	require.NoError(t, err)
}

// The demo model writes the same text on each device as on the CPU.
func TestDevicesGiveTheSameText(t *testing.T) {
	needLibrary(t)
	devices, err := Devices()
	require.NoError(t, err)
	if len(devices) == 0 {
		t.Skip("no device: " + NoDevices())
	}
	transcribe := func(device string) (found []string) {
		e, err := openFile(demoModel(t), Options{Device: device})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		for _, c := range clips[:2] {
			o := asr.DefaultOptions()
			o.Language, o.Parallel = c.language, 2
			tr, err := e.Transcribe(context.Background(), read(t, c.name), c.speech(), o)
			require.NoError(t, err)
			found = append(found, texts(tr)...)
		}
		name, note := e.Device()
		assert.Equal(t, device, name)
		assert.Empty(t, note)
		return found
	}
	want := transcribe(DeviceCPU)
	for _, d := range devices {
		assert.Equal(t, want, transcribe(d.Name), d.Description)
	}
}
