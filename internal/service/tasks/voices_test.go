package tasks_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// Hashes of two speaker models.
var (
	modelOne = strings.Repeat("01", 32)
	modelTwo = strings.Repeat("02", 32)
)

// voiceOf returns a voice with one vector along an axis.
func voiceOf(name string, axis int) diarize.Voice {
	x := make([]float32, 192)
	x[axis], x[191] = 3, 0.123
	return diarize.Voice{Name: name, Model: modelOne, Consent: "said yes on Monday", Vectors: [][]float32{x}}
}

// TestVoicesOfAnAccount stores, extends, lists and deletes voices: each account
// has its own, and vectors are normalized to unit length.
func TestVoicesOfAnAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		ctx, other := t.Context(), f.NewAccount("other", 0)
		ann, err := f.AddVoice(ctx, f.Account, voiceOf(" Ann ", 0))
		require.NoError(t, err)
		assert.Equal(t, []any{"Ann", modelOne, "said yes on Monday", 1}, []any{ann.Name, ann.Model, ann.Consent, ann.Recordings})
		again := voiceOf("Ann", 1)
		again.Consent = "said yes on Tuesday"
		joined, err := f.AddVoice(ctx, f.Account, again)
		require.NoError(t, err)
		assert.Equal(t, []any{ann.ID, 2, "said yes on Tuesday"}, []any{joined.ID, joined.Recordings, joined.Consent})
		joined, err = f.AddVoice(ctx, f.Account, again)
		require.NoError(t, err)
		assert.Equal(t, []any{ann.ID, 2}, []any{joined.ID, joined.Recordings}, "existing vectors are not added again")
		newer := voiceOf("Ann", 2)
		newer.Model = modelTwo
		_, err = f.AddVoice(ctx, f.Account, newer)
		require.NoError(t, err, "another model's vectors are a separate voice")
		_, err = f.AddVoice(ctx, other, voiceOf("Ann", 3))
		require.NoError(t, err)

		list, err := f.Voices(ctx, f.Account)
		require.NoError(t, err)
		require.Len(t, list, 2)
		assert.Contains(t, list, joined)
		register, err := f.KnownVoices(ctx, f.Account)
		require.NoError(t, err)
		require.Len(t, register.Voices, 2)
		for _, v := range register.Voices {
			for _, x := range v.Vectors {
				sum := 0.0
				for _, w := range x {
					sum += float64(w) * float64(w)
				}
				assert.InDelta(t, 1, sum, 1e-5)
			}
		}
		tasks.ForgetVoices(register)
		assert.Zero(t, register.Voices[0].Vectors[0][191], "cleared")

		require.ErrorIs(t, f.DeleteVoice(ctx, other, ann.ID), tasks.ErrNoVoice, "another account's")
		require.NoError(t, f.DeleteVoice(ctx, f.Account, ann.ID))
		require.ErrorIs(t, f.DeleteVoice(ctx, f.Account, ann.ID), tasks.ErrNoVoice)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM voices WHERE account_id = $1", f.Account))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM voices WHERE account_id = $1", other))
	})
}

// TestInvalidVoicesAreRefused: each refusal names the field, the expected value
// and the received one.
func TestInvalidVoicesAreRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		for want, change := range map[string]func(*diarize.Voice){
			`name: "Speaker_3" is reserved for`:                          func(v *diarize.Voice) { v.Name = "Speaker_3" },
			"consent: must be a note of 1 to 1000 printable":             func(v *diarize.Voice) { v.Consent = " " },
			"vectors: must be 1 to 20, found 0":                          func(v *diarize.Voice) { v.Vectors = nil },
			"vectors: number 1 must have 1 to 1024 numbers, found 1025":  func(v *diarize.Voice) { v.Vectors = [][]float32{make([]float32, 1025)} },
			"vectors: must all have 192 finite numbers that are not all": func(v *diarize.Voice) { v.Vectors = [][]float32{make([]float32, 192)} },
			"vectors: must be 1 to 20, found 21": func(v *diarize.Voice) {
				for range 20 {
					v.Vectors = append(v.Vectors, v.Vectors[0])
				}
			},
		} {
			v := voiceOf("Ann", 0)
			change(&v)
			_, err := f.AddVoice(t.Context(), f.Account, v)
			require.ErrorIs(t, err, tasks.ErrVoice, want)
			assert.ErrorContains(t, err, want)
		}
		for _, name := range []string{"", " ", "A\nB", strings.Repeat("ä", 65)} {
			_, err := f.AddVoice(t.Context(), f.Account, voiceOf(name, 0))
			assert.ErrorContains(t, err, "voice not accepted: name: must be 1 to 64 printable characters", name)
		}
		for _, model := range []string{"", "model one", modelOne + "0", strings.ToUpper(strings.Repeat("ab", 32))} {
			v := voiceOf("Ann", 0)
			v.Model = model
			_, err := f.AddVoice(t.Context(), f.Account, v)
			assert.ErrorContains(t, err, "model: must be the SHA-256 of the speaker model's file", model)
		}
		_, err := f.AddVoice(t.Context(), f.Account, voiceOf("Ann", 0))
		require.NoError(t, err)
		short := voiceOf("Bob", 0)
		short.Vectors[0] = short.Vectors[0][:64]
		_, err = f.AddVoice(t.Context(), f.Account, short)
		assert.ErrorContains(t, err, "vectors: those of this model have 192 numbers, found 64")
		short.Name = "Ann"
		_, err = f.AddVoice(t.Context(), f.Account, short)
		assert.ErrorContains(t, err, "vectors: those of this model have 192 numbers, found 64")
		many := voiceOf("Ann", 1)
		for axis := 2; axis <= 20; axis++ {
			many.Vectors = append(many.Vectors, voiceOf("", axis).Vectors[0])
		}
		_, err = f.AddVoice(t.Context(), f.Account, many)
		assert.ErrorContains(t, err, "the voice would have 21, and the limit is 20")
		f.Exec(`INSERT INTO voices (id, account_id, name, model, consent, dimension, vectors, added_at)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 199)
			SELECT 'v' || n.i, v.account_id, 'voice ' || n.i, v.model, v.consent, v.dimension, v.vectors, 1 FROM n, voices v`)
		_, err = f.AddVoice(t.Context(), f.Account, voiceOf("Cid", 0))
		require.ErrorIs(t, err, tasks.ErrVoices)
		_, err = f.AddVoice(t.Context(), f.Account, voiceOf("Ann", 0))
		require.NoError(t, err, "a known voice does not count again")
	})
}

// TestSpeakersAreRemembered stores a voice from a task's result.
func TestSpeakersAreRemembered(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		vector := voiceOf("", 5).Vectors[0]
		result := spec.Result{
			Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 1,
			SpeakerEmbeddings: []spec.SpeakerEmbedding{{SpeakerID: "SPEAKER_0", Embedding: vector, SegmentCount: 1}},
		}
		done := f.Add(nil).ID
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: result, Seconds: 30, VoiceModel: modelOne}))
		old := f.Add(nil).ID
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Result: result, Seconds: 30}))
		waiting := f.Add(nil).ID

		kept, err := f.RememberSpeaker(t.Context(), f.Account, done, "SPEAKER_0", "Ann", "said yes")
		require.NoError(t, err)
		assert.Equal(t, []any{"Ann", modelOne, 1}, []any{kept.Name, kept.Model, kept.Recordings})
		register, err := f.KnownVoices(t.Context(), f.Account)
		require.NoError(t, err)
		match := register.Identify(modelOne, []diarize.Speaker{{Embedding: register.Voices[0].Vectors[0]}}, diarize.Matching{Alike: 0.9})
		assert.Equal(t, "Ann", match[0].Name)

		_, err = f.RememberSpeaker(t.Context(), f.Account, done, "SPEAKER_7", "Ann", "said yes")
		assert.ErrorContains(t, err, `there is no "SPEAKER_7" in the task's speaker_embeddings`)
		_, err = f.RememberSpeaker(t.Context(), f.Account, old, "SPEAKER_0", "Ann", "said yes")
		require.ErrorIs(t, err, tasks.ErrNoVector)
		_, err = f.RememberSpeaker(t.Context(), f.Account, waiting, "SPEAKER_0", "Ann", "said yes")
		require.ErrorIs(t, err, tasks.ErrNotDone)
		_, err = f.RememberSpeaker(t.Context(), f.NewAccount("other", 0), done, "SPEAKER_0", "Ann", "said yes")
		require.ErrorIs(t, err, tasks.ErrForbidden)
	})
}

// TestADeletedVoiceLeavesTheLogLater: while a reader holds the database, a
// deleted voice may stay in its write-ahead log; the next clean-up removes it.
func TestADeletedVoiceLeavesTheLogLater(t *testing.T) {
	path := dbtest.SQLitePath(t)
	f := taskstest.New(t, dbtest.Open(t, path, db.Options{}))
	f.Tidy()
	kept, err := f.AddVoice(t.Context(), f.Account, voiceOf("Annabella Unmistakable", 3))
	require.NoError(t, err)
	holds := func() bool {
		data, err := os.ReadFile(path + "-wal")
		require.NoError(t, err)
		return bytes.Contains(data, []byte("Annabella Unmistakable"))
	}
	reader, err := f.DB.Read().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, reader.QueryRow("SELECT COUNT(*) FROM voices").Scan(&n))
	require.NoError(t, f.DeleteVoice(t.Context(), f.Account, kept.ID))
	assert.Equal(t, 0, f.Count("SELECT COUNT(*) FROM voices"))
	require.True(t, holds(), "the search finds existing copies")
	clean := func() {
		require.NoError(t, tasks.NewMaintainer(f.Service, tasks.MaintainerConfig{}).Cleanup(t.Context()))
	}
	clean()
	assert.True(t, holds(), "somebody still reads")
	require.NoError(t, reader.Rollback())
	clean()
	assert.False(t, holds())
}

// TestADeletedVoiceIsGone: neither the files of an SQLite database nor a later
// backup hold its vectors, its name or its consent note.
func TestADeletedVoiceIsGone(t *testing.T) {
	path := dbtest.SQLitePath(t)
	f := taskstest.New(t, dbtest.Open(t, path, db.Options{}))
	voice := voiceOf("Annabella Unmistakable", 3)
	voice.Consent = "agreed in a letter of her own"
	for i := range voice.Vectors[0] {
		voice.Vectors[0][i] = float32(math.Sin(float64(i) + 0.5))
	}
	kept, err := f.AddVoice(t.Context(), f.Account, voice)
	require.NoError(t, err)
	_, err = f.AddVoice(t.Context(), f.Account, voiceOf("Bob Remains", 9))
	require.NoError(t, err)
	register, err := f.KnownVoices(t.Context(), f.Account)
	require.NoError(t, err)
	var vector []byte
	for _, w := range register.Voices[0].Vectors[0][10:30] {
		vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(w))
	}
	holds := func(text []byte) bool {
		files, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		found := false
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			found = found || bytes.Contains(data, text)
		}
		return found
	}
	traces := [][]byte{vector, []byte(voice.Name), []byte(voice.Consent)}
	for _, trace := range traces {
		require.True(t, holds(trace), "the search finds existing copies")
	}
	require.NoError(t, f.DeleteVoice(t.Context(), f.Account, kept.ID))
	for _, trace := range traces {
		assert.False(t, holds(trace))
	}
	backup := filepath.Join(dbtest.Dir(t), "backup.db")
	require.NoError(t, f.DB.Backup(t.Context(), backup))
	data, err := os.ReadFile(backup)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(data, []byte("Bob Remains")), "voices are in the backup")
	for _, trace := range traces {
		assert.False(t, bytes.Contains(data, trace))
	}
}
