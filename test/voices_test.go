package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestVoicesAreNamed: a voice that was added from one part of a recording is
// named everywhere in it, until it is removed.
func TestVoicesAreNamed(t *testing.T) {
	t.Parallel()
	pcm, err := audio.Open(t.Context(), audio.File("../diarize/testdata/conv3.flac"), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	dir := t.TempDir()
	part := func(name string, from, to float64) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, wav(pcm.Samples(int(from*audio.SampleRate), int(to*audio.SampleRate))), 0o600))
		return path
	}
	alone, conversation := part("alone.wav", 0.7, 9.7), part("conversation.wav", 0, 15) // of two voices
	register := filepath.Join(dir, "voices.json")
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "OTOGRAPH_VOICES="+register)
		return cmd.CombinedOutput()
	}

	out, err := run("voices", "add", "Ruth", alone, "--consent", "by mail, 2026-11-20")
	require.NoError(t, err, string(out))
	out, err = run("voices", "list")
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "by mail, 2026-11-20")
	info, err := os.Stat(register)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	out, err = run("transcribe", "-q", "--demo", "--no-cascade", "--asr-language", "en", "--enable-audio-events=false", "--format", "json", "--voices", register, conversation)
	require.NoError(t, err, string(out))
	var result struct {
		Segments []struct {
			Start   float64
			Speaker string
		}
		Voices []struct {
			Speaker, Name string
			Cosine        float64
		}
	}
	require.NoError(t, json.Unmarshal(out, &result))
	require.Len(t, result.Voices, 1)
	assert.Equal(t, "Ruth", result.Voices[0].Name)
	assert.Equal(t, result.Segments[0].Speaker, result.Voices[0].Speaker, "the specification's speakers stay in JSON")
	out, err = run("transcribe", "-q", "--demo", "--no-cascade", "--asr-language", "en", "--enable-audio-events=false", "--format", "rttm", "--voices", register, conversation)
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), " Ruth ")
	assert.Contains(t, string(out), " SPEAKER_1 ")

	out, err = run("voices", "add", "Two", conversation, "--consent", "x")
	require.Error(t, err)
	assert.Contains(t, string(out), "conversation.wav: expected one voice, found ")
	out, err = run("voices", "list", "--remove", "Ruth")
	require.NoError(t, err, string(out))
	raw, err := os.ReadFile(register)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "Ruth")
	out, err = run("transcribe", "-q", "--demo", "--voices", register, conversation)
	require.Error(t, err)
	assert.Contains(t, string(out), "expected voices of the speaker model campplus-zh-en")
}
