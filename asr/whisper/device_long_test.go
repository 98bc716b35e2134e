//go:build long

package whisper

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// TestDevicesOnTenRecordings: on the first ten recordings of the evaluation set
// each device, including a CPU with a Vulkan driver, writes the CPU's text. It
// runs in a separate process because ggml reads the list of visible devices
// only once.
func TestDevicesOnTenRecordings(t *testing.T) {
	needLibrary(t)
	const visible = "GGML_VK_VISIBLE_DEVICES"
	if os.Getenv(visible) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestDevicesOnTenRecordings$", "-test.v", "-test.timeout=60m")
		child.Env = append(os.Environ(), visible+"=0")
		out, err := child.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
		return
	}
	devices, err := Devices()
	require.NoError(t, err)
	if len(devices) == 0 {
		t.Skip("no device: " + NoDevices())
	}
	recordings := evaluationSet(t, 10)
	transcribe := func(device string) (found []string) {
		e, err := openFile(demoModel(t), Options{Device: device})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		for _, r := range recordings {
			o := asr.DefaultOptions()
			o.Language, o.Parallel = r.Language, 2
			tr, err := e.Transcribe(context.Background(), r.pcm, r.speech(), o)
			require.NoError(t, err)
			found = append(found, texts(tr)...)
		}
		name, note := e.Device()
		assert.Equal(t, device, name)
		assert.Empty(t, note)
		return found
	}
	want := transcribe(DeviceCPU)
	for _, d := range devices {
		t.Log(d.Name, d.Description)
		assert.Equal(t, want, transcribe(d.Name), d.Description)
	}
}

// evaluation is a recording of the demo models' evaluation set.
type evaluation struct {
	File, Language string
	Sentences      []struct{ Start, End float64 }
	pcm            *audio.PCM
}

// speech returns the spans of the sentences, slightly widened.
func (r evaluation) speech() []audio.Span {
	const margin = 0.03
	return spans(r.Sentences[0].Start-margin, r.Sentences[len(r.Sentences)-1].End+margin)
}

// evaluationSet opens the first n recordings.
func evaluationSet(t *testing.T, n int) (list []evaluation) {
	t.Helper()
	dir := filepath.Join("..", "..", "testdata", "demo")
	manifest, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	require.NoError(t, err)
	defer manifest.Close()
	for lines := bufio.NewScanner(manifest); len(list) < n && lines.Scan(); {
		var r evaluation
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		r.pcm, err = audio.Open(context.Background(), audio.File(filepath.Join(dir, r.File)), audio.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.pcm.Close()) })
		list = append(list, r)
	}
	require.Len(t, list, n)
	return list
}
