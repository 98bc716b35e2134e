package audio

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInheritedLimits decodes, and calls Sandbox, in processes whose hard
// limits are below a decoder's.
func TestInheritedLimits(t *testing.T) {
	needFFmpeg(t)
	const variable = "OTOGRAPH_TEST_LIMITED"
	if os.Getenv(variable) != "" {
		pcm, err := Open(t.Context(), File("testdata/formats/"+os.Getenv(variable)), Options{})
		require.NoError(t, err)
		require.NoError(t, pcm.Close())
		assert.True(t, Sandbox().Works)
		return
	}
	entries, err := os.ReadDir("testdata/formats")
	require.NoError(t, err)
	file := ""
	for _, e := range entries {
		if c, err := sniffFile("testdata/formats/" + e.Name()); err == nil && c.name == "ogg" {
			file = e.Name()
		}
	}
	require.NotEmpty(t, file)
	for _, limit := range []string{"-t 600", "-n 40", "-c 0", "-l 0"} {
		cmd := exec.Command("bash", "-c", "ulimit "+limit+`; exec "$0" -test.run '^TestInheritedLimits$'`, os.Args[0])
		cmd.Env = append(os.Environ(), variable+"="+file)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "ulimit %s: %s", limit, out)
	}
}

func sniffFile(path string) (container, error) {
	f, err := os.Open(path)
	if err != nil {
		return container{}, err
	}
	defer f.Close()
	return sniff(f)
}
