package ort_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/system/native"
)

// TestRuntimeStoresNoUsageReports checks that ONNX Runtime stores nothing below the home
// folder, where it would collect its usage reports. It runs in a separate
// process, because the environment is created only once.
func TestRuntimeStoresNoUsageReports(t *testing.T) {
	library, err := native.ONNXRuntime()
	if err != nil {
		t.Skip(err)
	}
	if os.Getenv("OTOGRAPH_TEST_HOME") != "" {
		_, err := ort.Version()
		require.NoError(t, err)
		return
	}
	home := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestRuntimeStoresNoUsageReports$")
	cmd.Env = []string{"HOME=" + home, "XDG_CACHE_HOME=" + home, "OTOGRAPH_TEST_HOME=1", "OTOGRAPH_NATIVE=" + filepath.Dir(library), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	assert.Empty(t, left, "what the library wrote")
}
