package ort

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/native"
)

// TestLibraryMissing runs in separate processes, because the environment is
// created once and kept.
func TestLibraryMissing(t *testing.T) {
	if os.Getenv("ORT_TEST_CHILD") != "" {
		_, err := Open(Source{Data: linear().Bytes(), Name: "linear.onnx", Role: "vad"}, Options{})
		fmt.Println(errors.Is(err, native.ErrMissing), err)
		// A failure is not cached: the library may have been installed
		// meanwhile.
		t.Setenv(native.EnvONNXRuntime, os.Getenv("ORT_TEST_GOOD"))
		s, err := Open(Source{Data: linear().Bytes()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		require.NoError(t, s.Close())
		return
	}
	good, err := native.ONNXRuntime()
	if err != nil {
		t.Skip(err)
	}
	text := filepath.Join(t.TempDir(), "libonnxruntime.so.1")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o644))
	for _, lib := range []string{text, filepath.Join(t.TempDir(), "absent.so")} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLibraryMissing$")
		cmd.Env = append(os.Environ(), "ORT_TEST_CHILD=1", "ORT_TEST_GOOD="+good, native.EnvONNXRuntime+"="+lib)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "true vad model linear.onnx: native library missing: ")
		assert.Contains(t, string(out), lib)
	}
}
