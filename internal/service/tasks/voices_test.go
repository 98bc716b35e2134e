package tasks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// TestVoicesOfSpeakers gets a speaker's voice from a task's result.
func TestVoicesOfSpeakers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		model, vector := strings.Repeat("01", 32), []float32{0.6, 0.8}
		result := spec.Result{
			Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 1,
			SpeakerEmbeddings: []spec.SpeakerEmbedding{{SpeakerID: "SPEAKER_0", Embedding: vector, SegmentCount: 1}},
		}
		done := f.Add(nil).ID
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: result, Seconds: 30, VoiceModel: model}))
		old := f.Add(nil).ID
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: result, Seconds: 30}))
		waiting := f.Add(nil).ID

		v, err := f.SpeakerVoice(t.Context(), f.Account, done, "SPEAKER_0")
		require.NoError(t, err)
		assert.Equal(t, voices.Voice{Model: model, Vectors: [][]float32{vector}}, v)
		_, err = f.SpeakerVoice(t.Context(), f.Account, done, "SPEAKER_7")
		require.ErrorIs(t, err, voices.ErrVoice)
		assert.ErrorContains(t, err, `there is no "SPEAKER_7" in the task's speaker_embeddings`)
		_, err = f.SpeakerVoice(t.Context(), f.Account, old, "SPEAKER_0")
		require.ErrorIs(t, err, tasks.ErrNoVector)
		_, err = f.SpeakerVoice(t.Context(), f.Account, waiting, "SPEAKER_0")
		require.ErrorIs(t, err, tasks.ErrNotDone)
		_, err = f.SpeakerVoice(t.Context(), f.NewAccount("other", 0), done, "SPEAKER_0")
		require.ErrorIs(t, err, tasks.ErrForbidden)
	})
}
