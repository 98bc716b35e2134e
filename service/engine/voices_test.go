package engine

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// TestHashOfTheSpeakerModel: the hash belongs to the file with which the worker
// began. An error is reported with its cause, and the result only lacks the
// names.
func TestHashOfTheSpeakerModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "voices.onnx")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, begun, begun))
	set := &models.Set{Models: []models.Model{{
		Role: models.RoleEmbedder, Name: "voices", Contract: models.ContractWeSpeaker,
		Files: []models.File{{Part: models.PartModel, Name: "voices.onnx", Path: path}},
	}}}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	var log bytes.Buffer
	m := newVoiceModel(set, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Empty(t, log.String())
	hash := func(m *voiceModel) string {
		sum, err := m.hash()
		require.NoError(t, err)
		return sum
	}
	assert.Equal(t, want, hash(m))

	moved := path + ".moved"
	require.NoError(t, os.Rename(path, moved))
	_, err := m.hash()
	require.ErrorIs(t, err, os.ErrNotExist)
	gone := newVoiceModel(set, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Contains(t, log.String(), "not hashed")
	_, err = gone.hash()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Rename(moved, path))
	assert.Equal(t, want, hash(m), "errors are not cached")

	require.NoError(t, os.WriteFile(path, []byte("xyz"), 0o600))
	_, err = m.hash()
	require.ErrorContains(t, err, "changed after the worker started")
	require.NoError(t, os.Chtimes(path, begun, begun))

	res := &otograph.Result{Ran: spec.Capabilities{Diarize: true}, SpeakerEmbeddings: []spec.SpeakerEmbedding{{SpeakerID: "SPEAKER_0", Embedding: []float32{1}}}}
	register := &voices.Register{Voices: []voices.Voice{{Name: "Ann", Model: want, Vectors: [][]float32{{1}}}}}
	_, found := m.name(res, register, "")
	assert.Contains(t, found.Warnings[0].Reason, "could not identify its speaker model")
	_, found = m.name(res, register, want)
	assert.Equal(t, []voices.Match{{Speaker: "SPEAKER_0", Name: "Ann", Cosine: 1, Probability: 1}}, found.Voices)
	assert.Empty(t, found.Warnings)
	assert.NotNil(t, newVoiceModel(&models.Set{}, nil), "a set without a speaker model")
}
