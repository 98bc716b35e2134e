package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNewOptionTakesOneLine applies docs/architecture.md's example patch, which
// adds an option, builds the program and uses the option.
func TestNewOptionTakesOneLine(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git, which applies the diff, is not installed")
	}
	page, err := os.ReadFile("../docs/architecture.md")
	require.NoError(t, err)
	diff := regexp.MustCompile("(?s)```diff\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, diff, "the page shows a diff")
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	replace := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`).FindAllSubmatch(diff[1], -1) {
		name := string(m[1])
		source, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		changed := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(changed), 0o755))
		require.NoError(t, os.WriteFile(changed, source, 0o644))
		replace[filepath.Join(root, name)] = changed
	}
	require.Len(t, replace, 2, "the table, and the one place that uses it")
	apply := exec.Command("git", "apply", "-")
	apply.Dir, apply.Stdin = dir, bytes.NewReader(diff[1])
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)

	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file, changed := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "otograph")
	require.NoError(t, os.WriteFile(file, overlay, 0o644))
	out, err = exec.Command("go", "build", stripped, "-overlay", file, "-o", changed, "../cmd/otograph").CombinedOutput()
	require.NoError(t, err, "%s", out)

	help := func(program string) string {
		out, err := exec.Command(program, "transcribe", "--help").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	assert.Contains(t, help(changed), "--asr-parallel")
	assert.NotContains(t, help(binary), "--asr-parallel")
	out, err = exec.Command(changed, "transcribe", "--asr-parallel", "65", "../testdata/conversation.flac").CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "must be between 1 and 64", "the bounds are the table's")
}
