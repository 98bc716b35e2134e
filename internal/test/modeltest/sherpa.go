//go:build families

package modeltest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RunSherpa runs testdata/sherpa.js with a folder and args and reads the folder's
// result.json. It skips the test if sherpa-onnx is not installed.
func RunSherpa(t testing.TB, result any, folder string, args ...string) {
	t.Helper()
	installed := os.Getenv("SHERPA_ONNX")
	if installed == "" {
		t.Skip("SHERPA_ONNX names no folder with sherpa-onnx-node: make test-families")
	}
	cmd := exec.Command("node", append([]string{filepath.Join("testdata", "sherpa.js"), folder}, args...)...)
	modules := filepath.Join(installed, "node_modules")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "LD_LIBRARY_PATH="+filepath.Join(modules, "sherpa-onnx-linux-x64"))
	log, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", log)
	answer, err := os.ReadFile(filepath.Join(folder, "result.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer, result))
}

// AssertFamilyRow reports an error unless docs/measurements/families.md has a
// row for the family that names the compared values and states whether they are
// equal.
func AssertFamilyRow(t testing.TB, family, compared string, equal bool) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "measurements", "families.md"))
	require.NoError(t, err)
	for line := range strings.Lines(string(doc)) {
		if rest, ok := strings.CutPrefix(line, "| "+family+" | "+compared+" | "); ok {
			theirs, _, _ := strings.Cut(rest, "|")
			assert.Equal(t, equal, strings.HasPrefix(theirs, "equal"), "docs/measurements/families.md: %s", line)
			return
		}
	}
	t.Errorf("docs/measurements/families.md has no row %q", "| "+family+" | "+compared+" |")
}
