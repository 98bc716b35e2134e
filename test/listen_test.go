package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// raw returns a recording as 16-bit samples.
func raw(t *testing.T, path string) []byte {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	var out []byte
	for _, x := range pcm.Samples(0, pcm.Len()) {
		v := uint16(int16(math.Round(float64(x) * math.MaxInt16)))
		out = append(out, byte(v), byte(v>>8))
	}
	return out
}

// TestListen: events come one a line and the result last; the sound is saved as
// it came, once; Ctrl-C ends the recording, not the program.
func TestListen(t *testing.T) {
	t.Parallel()
	samples := raw(t, "../testdata/demo/short/en_00.flac")
	name := filepath.Join(t.TempDir(), "talk")
	args := []string{"listen", "-q", "--demo", "--input", "-", "--pcm", "16000", "-l", "en", "-f", "json"}
	cmd := exec.Command(binary, append(args, "--save", name)...)
	cmd.Stdin = bytes.NewReader(samples)
	out, err := cmd.Output()
	require.NoError(t, err)
	kinds, last := map[string]int{}, ""
	var result struct {
		Result struct {
			AudioDuration float64 `json:"audio_duration"`
			Segments      []struct{ Text string }
		}
	}
	text := ""
	for line := range strings.Lines(string(out)) {
		var e struct{ Event, Text string }
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		kinds[e.Event]++
		if last = e.Event; e.Event == "final" {
			text += e.Text
		}
	}
	require.NoError(t, json.Unmarshal(out[bytes.LastIndexByte(bytes.TrimSpace(out), 10)+1:], &result))
	assert.Equal(t, "result", last)
	assert.Equal(t, 1, kinds["result"])
	assert.Positive(t, kinds["final"])
	assert.NotEmpty(t, text)
	require.NotEmpty(t, result.Result.Segments)
	assert.InDelta(t, float64(len(samples))/2/audio.SampleRate, result.Result.AudioDuration, 1e-3)
	assert.Equal(t, samples, raw(t, name+".wav"))
	saved, err := os.ReadFile(name + ".json")
	require.NoError(t, err)
	assert.Contains(t, string(saved), result.Result.Segments[0].Text)

	cmd = exec.Command(binary, append(args, "--save", name)...)
	refused, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(refused), "exists")

	// A session gets all samples of a file, the first and the last one too.
	whole, err := exec.Command(binary, "listen", "-q", "--demo", "--input", "../testdata/demo/short/en_00.flac", "-l", "en", "-f", "json", "--save", name+"2").CombinedOutput()
	require.NoError(t, err, "%s", whole)
	assert.Len(t, raw(t, name+"2.wav"), len(samples))

	missing, err := exec.Command(binary, "listen", "--demo", "--input", name+".missing", "-l", "en", "-f", "json").Output()
	require.Error(t, err)
	assert.Empty(t, missing, "an input that cannot be read has no result")

	cmd = exec.Command(binary, args...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = in.Write(samples)
	require.NoError(t, err)
	lines := bufio.NewReader(pipe)
	for i := 0; ; i++ {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "the result comes before the end")
		if i == 0 { // it listens; the input stays open
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
		if strings.HasPrefix(line, `{"event":"result"`) {
			break
		}
	}
	require.NoError(t, cmd.Wait())
}
