package test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var shellBlock = regexp.MustCompile("(?s)```sh( refused)?\n(.*?)```")

// Every sh block of the documentation works as written, on a fresh service. A
// block marked "refused" must be answered with an error that a client can
// parse.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	recording, err := os.ReadFile("../testdata/conversation.flac")
	require.NoError(t, err)
	s := serve(t, t.TempDir())
	out, err := s.run("account", "limits", "local", "--tps", "1000", "--burst", "1000")
	require.NoError(t, err, out)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "recording.flac"), recording, 0o666))
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			blocks++
			cmd := exec.Command("bash", "-euo", "pipefail", "-c", block[2])
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"),
				"URL="+s.url, "KEY="+s.key, "OTOGRAPH_DATA="+s.data, "XDG_DATA_HOME="+dir)
			out, err := cmd.CombinedOutput()
			if !assert.NoError(t, err, "%s:\n%s\n%s", page, block[2], out) {
				continue
			}
			if block[1] != "" {
				assert.Contains(t, string(out), `"error_code":"invalid_request"`, "%s:\n%s", page, block[2])
			} else {
				assert.NotContains(t, string(out), `"error_code"`, "%s:\n%s", page, block[2])
			}
		}
	}
	assert.GreaterOrEqual(t, blocks, 10, "the pages' blocks were found")
}

// signature returns the X-Signature that a receiver expects.
func signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + strings.ToLower(hex.EncodeToString(mac.Sum(nil)))
}
