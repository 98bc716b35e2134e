package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// faultingDriver is a device plug-in that faults in its own thread.
const faultingDriver = `#include <pthread.h>
static void *fault(void *at) { *(volatile int *)at = 1; return 0; }
void *ggml_backend_init(void)
{
	pthread_t thread;
	if (!pthread_create(&thread, 0, fault, 0)) pthread_join(thread, 0);
	return 0;
}
`

// A GPU driver that faults in its own thread causes a warning: the CPU takes
// over.
func TestFaultingDriver(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	libraries := os.Getenv("OTOGRAPH_NATIVE")
	if libraries == "" {
		t.Skip("the native libraries are the system's")
	}
	dir := t.TempDir()
	entries, err := os.ReadDir(libraries)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "vulkan" {
			require.NoError(t, os.Symlink(filepath.Join(libraries, e.Name()), filepath.Join(dir, e.Name())))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "vulkan"), 0o755))
	source := filepath.Join(t.TempDir(), "driver.c")
	require.NoError(t, os.WriteFile(source, []byte(faultingDriver), 0o600))
	out, err := exec.Command(cc, "-shared", "-fPIC", "-pthread", "-o", filepath.Join(dir, "vulkan", "libggml-vulkan.so"), source).CombinedOutput()
	require.NoError(t, err, string(out))

	const recording = "../testdata/demo/short/en_00.flac"
	run := func(input, device string) (stdout, stderr string, err error) {
		cmd := exec.Command(binary, "transcribe", "--demo", "--optimize=false", "--no-cascade", "-l", "en",
			"--enable-diarize=false", "--enable-audio-events=false", "--device", device, input)
		cmd.Env = append(os.Environ(), "OTOGRAPH_NATIVE="+dir)
		var o, e bytes.Buffer
		cmd.Stdout, cmd.Stderr = &o, &e
		if input == "-" {
			sound, err := os.ReadFile(recording)
			require.NoError(t, err)
			cmd.Stdin = bytes.NewReader(sound)
		}
		err = cmd.Run()
		return o.String(), e.String(), err
	}
	want, _, err := run(recording, "cpu")
	require.NoError(t, err)
	got, said, err := run(recording, "vulkan:0")
	require.NoError(t, err, said)
	assert.Equal(t, want, got)
	assert.Contains(t, said, "otograph: the driver of the device crashed (segmentation fault); the CPU computes\n")
	assert.Contains(t, said, "--device: vulkan:0 is not there (no device is known: the driver crashed: segmentation fault); the CPU computes")

	got, said, err = run("-", "auto")
	require.NoError(t, err, said)
	assert.Equal(t, want, got)

	cmd := exec.Command(binary, "doctor")
	cmd.Env = append(os.Environ(), "OTOGRAPH_NATIVE="+dir)
	out, _ = cmd.CombinedOutput() // doctor fails if anything is missing
	assert.Contains(t, string(out), "the driver crashed: segmentation fault")
}
