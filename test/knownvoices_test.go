package test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	otoclient "github.com/otograph/otograph/client"
	"github.com/otograph/otograph/spec"
)

// TestServiceNamesKnownVoices: a speaker of one task is remembered and named in
// the next, and other speakers get no name; the service also accepts
// a voice exported by the command. A deleted voice names no speaker and is
// removed from the database and from backups.
func TestServiceNamesKnownVoices(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	t.Parallel()
	pcm, err := audio.Open(t.Context(), audio.File("../diarize/testdata/conv3.flac"), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	recording := wav(pcm.Samples(0, 32*audio.SampleRate)) // each of the three speakers, and the first one again
	data := t.TempDir()
	s := serve(t, data).unlimited()
	ctx := t.Context()
	c, err := otoclient.New(s.url, s.key)
	require.NoError(t, err)
	run := func(voices *bool) *otoclient.Result {
		task, err := c.Upload(ctx, bytes.NewReader(recording), otoclient.Submission{
			Filename: "conversation.wav", Options: spec.Options{EnableAudioEvents: new(false), ASRLanguage: new("en"), Optimize: new(true), Voices: voices},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		result, err := c.Wait(ctx, task.ID)
		require.NoError(t, err)
		return result
	}
	speakers := func(r *otoclient.Result) (names []string) {
		for _, turn := range r.DiarizeSegments {
			if !slices.Contains(names, turn.Speaker) {
				names = append(names, turn.Speaker)
			}
		}
		return names
	}
	plain := run(nil)
	assert.Equal(t, []string{"SPEAKER_0", "SPEAKER_1", "SPEAKER_2"}, speakers(plain))
	assert.Equal(t, []bool{true, true}, []bool{plain.Recognized == nil, plain.Notices == nil}, "nothing changes without the option")
	nobody := run(new(true))
	assert.Equal(t, speakers(plain), speakers(nobody))
	require.Len(t, nobody.Notices, 1)
	assert.Contains(t, nobody.Notices[0].Reason, "has no voices")

	ruth, err := c.AddVoice(ctx, otoclient.NewVoice{Name: "Ruth Unmistakable", Consent: "by mail", TaskID: plain.TaskID, Speaker: "SPEAKER_1"})
	require.NoError(t, err)
	known := run(new(true))
	assert.Equal(t, []string{"SPEAKER_0", "Ruth Unmistakable", "SPEAKER_2"}, speakers(known))
	assert.Equal(t, "SPEAKER_1", known.SpeakerEmbeddings[1].SpeakerID)
	require.Len(t, known.Recognized, 1)
	assert.Equal(t, []string{"SPEAKER_1", "Ruth Unmistakable"}, []string{known.Recognized[0].Speaker, known.Recognized[0].Name})
	assert.InDelta(t, 1, known.Recognized[0].Cosine, 1e-3)
	assert.Empty(t, known.Notices)

	list, err := c.Voices(ctx)
	require.NoError(t, err)
	assert.Equal(t, []otoclient.Voice{ruth}, list)
	require.NoError(t, c.DeleteVoice(ctx, ruth.ID))
	other := otoclient.NewVoice{Name: "Otto", Consent: "by mail", Model: strings.Repeat("0", 64), Vectors: [][]float32{plain.SpeakerEmbeddings[0].Embedding}}
	_, err = c.AddVoice(ctx, other)
	require.NoError(t, err)
	nobody = run(new(true))
	assert.Equal(t, speakers(plain), speakers(nobody))
	require.Len(t, nobody.Notices, 1)
	assert.Contains(t, nobody.Notices[0].Reason, "was made with the speaker model campplus-zh-en")

	other.Model = ruth.Model // the fields of `otograph voices list --json`
	_, err = c.AddVoice(ctx, other)
	require.NoError(t, err)
	assert.Equal(t, []string{"Otto", "SPEAKER_1", "SPEAKER_2"}, speakers(run(new(true))))

	require.NoError(t, c.Delete(ctx, known.TaskID)) // an existing result keeps its names
	vector, err := json.Marshal(other.Vectors[0])
	require.NoError(t, err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	s.must("backup", backup)
	holding := func(pattern string) (holding []string) {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if os.IsNotExist(err) {
				continue
			}
			require.NoError(t, err)
			if bytes.Contains(content, []byte("Ruth Unmistakable")) {
				holding = append(holding, file)
			}
		}
		return holding
	}
	for deadline := time.Now().Add(patience); len(holding(filepath.Join(data, "otograph.db*"))) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond) // the clean-up compacts the log once it is unused
	}
	assert.Empty(t, holding(filepath.Join(data, "otograph.db*")))
	assert.Empty(t, holding(backup))
	for _, secret := range []string{"Ruth", "by mail", string(vector[1:30])} {
		assert.NotContains(t, s.logged(), secret)
	}
}
