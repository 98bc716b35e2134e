package floors

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDemoModelsAreLeftOut checks that a program with its own models does not
// include the demo models: only OpenDefault refers to them.
func TestDemoModelsAreLeftOut(t *testing.T) {
	model, err := os.ReadFile("../../../models/demo/demo-whisper.bin.zst")
	require.NoError(t, err)
	excerpt := model[len(model)/2:][:256]
	for call, carried := range map[string]bool{"otograph.Open(nil)": false, "otograph.OpenDefault()": true} {
		dir := t.TempDir()
		source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		code := "package main\n\nimport \"" + module + "\"\n\nfunc main() {\n\tp, _ := " + call + "\n\t_, _ = p.Run(nil, nil, otograph.Options{})\n}\n"
		require.NoError(t, os.WriteFile(source, []byte(code), 0o600))
		cmd := exec.Command("go", "build", "-o", program, source)
		cmd.Dir = "../../.."
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		binary, err := os.ReadFile(program)
		require.NoError(t, err)
		t.Logf("%s: %d MB", call, len(binary)>>20)
		assert.Equal(t, carried, bytes.Contains(binary, excerpt), call)
	}
}
