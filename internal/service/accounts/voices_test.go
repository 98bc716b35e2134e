package accounts_test

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

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/voices"
)

// Hashes of two speaker models.
var (
	modelOne = strings.Repeat("01", 32)
	modelTwo = strings.Repeat("02", 32)
)

// voiceOf returns a voice with one vector along an axis.
func voiceOf(name string, axis int) voices.Voice {
	x := make([]float32, 192)
	x[axis], x[191] = 3, 0.123
	return voices.Voice{Name: name, Model: modelOne, Consent: "said yes on Monday", Vectors: [][]float32{x}}
}

// TestVoicesOfAnAccount stores, extends, lists and deletes voices: each account
// has its own, and vectors are normalized to unit length.
func TestVoicesOfAnAccount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		ctx, other := t.Context(), f.NewAccount("other", 0)
		ann, err := f.Accounts.AddVoice(ctx, f.Account, voiceOf(" Ann ", 0))
		require.NoError(t, err)
		assert.Equal(t, []any{"Ann", modelOne, "said yes on Monday", 1}, []any{ann.Name, ann.Model, ann.Consent, ann.Recordings})
		again := voiceOf("Ann", 1)
		again.Consent = "said yes on Tuesday"
		joined, err := f.Accounts.AddVoice(ctx, f.Account, again)
		require.NoError(t, err)
		assert.Equal(t, []any{ann.ID, 2, "said yes on Tuesday"}, []any{joined.ID, joined.Recordings, joined.Consent})
		joined, err = f.Accounts.AddVoice(ctx, f.Account, again)
		require.NoError(t, err)
		assert.Equal(t, []any{ann.ID, 2}, []any{joined.ID, joined.Recordings}, "existing vectors are not added again")
		anna, err := f.Accounts.AddVoice(ctx, f.Account, voiceOf("Ana\u00efs", 5))
		require.NoError(t, err)
		_, err = f.Accounts.MergeVoice(ctx, other, anna.ID, voices.Voice{Name: "Ann", Consent: "x"})
		require.ErrorIs(t, err, accounts.ErrNoVoice, "another account's")
		_, err = f.Accounts.MergeVoice(ctx, f.Account, anna.ID, voices.Voice{Name: "Ann"})
		require.ErrorIs(t, err, voices.ErrVoice, "without consent, which leaves both")
		_, err = f.Accounts.MergeVoice(ctx, f.Account, anna.ID, voices.Voice{Name: "ANAI\u0308S", Consent: "x"})
		require.ErrorIs(t, err, voices.ErrVoice, "with itself, in another case and Unicode form")
		_, err = f.Accounts.DenyVoice(ctx, f.Account, voiceOf("anai\u0308s", 5))
		require.ErrorIs(t, err, voices.ErrVoice, "a recording of hers")
		merged, err := f.Accounts.MergeVoice(ctx, f.Account, anna.ID, voices.Voice{Name: "Ann", Consent: "said yes on Tuesday"})
		require.NoError(t, err)
		assert.Equal(t, []any{ann.ID, 3}, []any{merged.ID, merged.Recordings})
		stranger := voiceOf("ann", 7)
		denied, err := f.Accounts.DenyVoice(ctx, f.Account, stranger)
		require.NoError(t, err)
		assert.Equal(t, []any{ann.ID, 3, 1, merged.AddedAt}, []any{denied.ID, denied.Recordings, denied.Denied, denied.AddedAt})
		_, err = f.Accounts.DenyVoice(ctx, other, stranger)
		require.ErrorIs(t, err, accounts.ErrNoVoice, "another account's")
		_, err = f.Accounts.DenyVoice(ctx, f.Account, voiceOf("Ann", 0))
		require.ErrorIs(t, err, voices.ErrVoice, "a recording of hers")
		_, err = f.Accounts.AddVoice(ctx, f.Account, stranger)
		require.NoError(t, err)
		back, err := f.Accounts.DenyVoice(ctx, f.Account, voiceOf("Ann", 8))
		require.NoError(t, err)
		assert.Equal(t, []int{4, 1}, []int{back.Recordings, back.Denied}, "the stranger was Ann after all")
		newer := voiceOf("Ann", 2)
		newer.Model = modelTwo
		_, err = f.Accounts.AddVoice(ctx, f.Account, newer)
		require.NoError(t, err, "another model's vectors are a separate voice")
		_, err = f.Accounts.AddVoice(ctx, other, voiceOf("Ann", 3))
		require.NoError(t, err)

		list, err := f.Accounts.Voices(ctx, f.Account)
		require.NoError(t, err)
		require.Len(t, list, 2)
		assert.Contains(t, list, back)
		register, err := f.Accounts.Register(ctx, f.Account)
		require.NoError(t, err)
		require.Len(t, register.Voices, 2)
		assert.Equal(t, 1, len(register.Voices[0].Denied)+len(register.Voices[1].Denied))
		for _, v := range register.Voices {
			for _, x := range append(v.Vectors, v.Denied...) {
				sum := 0.0
				for _, w := range x {
					sum += float64(w) * float64(w)
				}
				assert.InDelta(t, 1, sum, 1e-5)
			}
		}
		register.Clear()
		assert.Zero(t, register.Voices[0].Vectors[0][191], "cleared")

		require.ErrorIs(t, f.Accounts.DeleteVoice(ctx, other, ann.ID), accounts.ErrNoVoice, "another account's")
		require.NoError(t, f.Accounts.DeleteVoice(ctx, f.Account, ann.ID))
		require.ErrorIs(t, f.Accounts.DeleteVoice(ctx, f.Account, ann.ID), accounts.ErrNoVoice)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM voices WHERE account_id = $1", f.Account))
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM voices WHERE account_id = $1", other))
	})
}

// TestInvalidVoicesAreRefused: a voice must be one that a register accepts, with
// vectors as long as the account's others, and within the account's limits.
func TestInvalidVoicesAreRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		wrong := voiceOf("Ann", 0)
		wrong.Consent = " "
		_, err := f.Accounts.AddVoice(t.Context(), f.Account, wrong)
		require.ErrorIs(t, err, voices.ErrVoice)
		assert.ErrorContains(t, err, "consent: must be a note of 1 to 1000 printable")
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, voiceOf("Ann", 0))
		require.NoError(t, err)
		short := voiceOf("Bob", 0)
		short.Vectors[0] = short.Vectors[0][:64]
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, short)
		assert.ErrorContains(t, err, "vectors: those of this model have 192 numbers, found 64")
		short.Name = "Ann"
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, short)
		assert.ErrorContains(t, err, "vectors: those of this model have 192 numbers, found 64")
		many := voiceOf("Ann", 1)
		for axis := 2; axis <= 20; axis++ {
			many.Vectors = append(many.Vectors, voiceOf("", axis).Vectors[0])
		}
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, many)
		assert.ErrorContains(t, err, "the voice would have 21, and 0 denied ones, and the limit is 20")
		for axis := 1; axis <= 20; axis++ {
			_, err = f.Accounts.DenyVoice(t.Context(), f.Account, voiceOf("Ann", axis))
			require.NoError(t, err)
		}
		_, err = f.Accounts.DenyVoice(t.Context(), f.Account, voiceOf("Ann", 21))
		assert.ErrorContains(t, err, "and 21 denied ones, and the limit is 20")
		f.Exec(`INSERT INTO voices (id, account_id, name, model, consent, dimension, vectors, added_at)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 199)
			SELECT 'v' || n.i, v.account_id, 'voice ' || n.i, v.model, v.consent, v.dimension, v.vectors, 1 FROM n, voices v`)
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, voiceOf("Cid", 0))
		require.ErrorIs(t, err, accounts.ErrTooManyVoices)
		_, err = f.Accounts.AddVoice(t.Context(), f.Account, voiceOf("Ann", 0))
		require.NoError(t, err, "a known voice does not count again")
	})
}

// TestADeletedVoiceLeavesTheLogLater: while a reader holds the database, a
// deleted voice may stay in its write-ahead log; Fold removes it later.
func TestADeletedVoiceLeavesTheLogLater(t *testing.T) {
	path := dbtest.SQLitePath(t)
	f := taskstest.New(t, dbtest.Open(t, path, db.Options{}))
	kept, err := f.Accounts.AddVoice(t.Context(), f.Account, voiceOf("Annabella Unmistakable", 3))
	require.NoError(t, err)
	holds := func() bool {
		data, err := os.ReadFile(path + "-wal")
		require.NoError(t, err)
		return bytes.Contains(data, []byte("Annabella Unmistakable"))
	}
	reader, err := f.Config.DB.Read().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, reader.QueryRow("SELECT COUNT(*) FROM voices").Scan(&n))
	require.NoError(t, f.Accounts.DeleteVoice(t.Context(), f.Account, kept.ID))
	assert.Equal(t, 0, f.Count("SELECT COUNT(*) FROM voices"))
	require.True(t, holds(), "the search finds existing copies")
	require.Error(t, f.Accounts.FoldVoices(t.Context()))
	assert.True(t, holds(), "somebody still reads")
	require.NoError(t, reader.Rollback())
	require.NoError(t, f.Accounts.FoldVoices(t.Context()))
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
	kept, err := f.Accounts.AddVoice(t.Context(), f.Account, voice)
	require.NoError(t, err)
	_, err = f.Accounts.AddVoice(t.Context(), f.Account, voiceOf("Bob Remains", 9))
	require.NoError(t, err)
	register, err := f.Accounts.Register(t.Context(), f.Account)
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
	require.NoError(t, f.Accounts.DeleteVoice(t.Context(), f.Account, kept.ID))
	for _, trace := range traces {
		assert.False(t, holds(trace))
	}
	backup := filepath.Join(dbtest.Dir(t), "backup.db")
	require.NoError(t, f.Config.DB.Backup(t.Context(), backup))
	data, err := os.ReadFile(backup)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(data, []byte("Bob Remains")), "voices are in the backup")
	for _, trace := range traces {
		assert.False(t, bytes.Contains(data, trace))
	}
}
