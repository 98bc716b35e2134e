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

// TestEmbeddedModelsAreLeftOut checks that a program with its own models does
// not include the embedded networks: only OpenDefault refers to the published
// networks, and no package to the demo models.
func TestEmbeddedModelsAreLeftOut(t *testing.T) {
	excerpt := func(file string) []byte {
		model, err := os.ReadFile("../../../models/" + file)
		require.NoError(t, err)
		return model[len(model)/2:][:256]
	}
	published, demo := excerpt("published/campplus-zh-en.onnx.zst"), excerpt("demo/demo-whisper.bin.zst")
	for call, carried := range map[string]bool{"otograph.Open(nil)": false, "otograph.OpenDefault()": true} {
		dir := t.TempDir()
		source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		code := "package main\n\nimport \"" + module + "\"\n\nfunc main() {\n\tp, _ := " + call + "\n\t_, _ = p.Run(nil, nil, otograph.Options{})\n}\n"
		require.NoError(t, os.WriteFile(source, []byte(code), 0o600))
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, source)
		cmd.Dir = "../../.."
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		binary, err := os.ReadFile(program)
		require.NoError(t, err)
		t.Logf("%s: %d MB", call, len(binary)>>20)
		assert.Equal(t, carried, bytes.Contains(binary, published), call)
		assert.False(t, bytes.Contains(binary, demo), call)
	}
}
