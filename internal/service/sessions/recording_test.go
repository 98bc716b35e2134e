package sessions

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/spec"
)

func keeping(c *tasks.Config) { c.KeepAudio = time.Hour }

// The sound of a stored session is its task's recording, in all formats that
// the session had, also if the process of the models dies; it is deleted with
// the task.
func TestSoundIsKept(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d, keeping)
		for _, end := range []string{"not stored", "orderly", "dead"} {
			o := Order{ID: tasks.NewID(), Store: end != "not stored", CallbackURL: "https://example.com/"}
			s := w.begin(t, o)
			next, ended := listen(s)
			require.NoError(t, s.Write(t.Context(), make([]byte, 8000)))
			require.NoError(t, s.Configure(t.Context(), doors.Settings{Format: doors.Format{Encoding: "s16le", Rate: audio.SampleRate, Channels: 1}}))
			require.NoError(t, s.Write(t.Context(), bytes.Repeat([]byte{0x34, 0x12}, audio.SampleRate)))
			require.NoError(t, s.Commit(t.Context()))
			next()
			if end == "dead" {
				w.kill()
				require.Error(t, <-ended)
			}
			_, err := s.Close()
			assert.Equal(t, end == "dead", err != nil)
			kept, err := w.Service.Audio(t.Context(), w.Account, o.ID)
			if end == "not stored" {
				require.ErrorIs(t, err, tasks.ErrNoAudio)
				continue
			}
			require.NoError(t, err)
			pcm, err := audio.Open(t.Context(), audio.Reader(kept, "live.wav"), audio.Options{})
			require.NoError(t, errors.Join(err, kept.Close()))
			assert.Equal(t, 2*audio.SampleRate, pcm.Len())
			assert.Equal(t, float32(0x1234)/(1<<15), pcm.Samples(2*audio.SampleRate-1, 2*audio.SampleRate)[0])
			require.NoError(t, pcm.Close())
			require.NoError(t, w.Delete(t.Context(), w.Account, o.ID))
		}
		assert.Len(t, w.Files(), 1, "the result of the session with a callback")
	})
}

// A session of a server that died leaves no sound; if sound cannot be written,
// the session's result has a warning.
func TestSoundIsLost(t *testing.T) {
	d := dbtest.SQLite(t, db.Options{})
	w := open(t, d, keeping)
	o := Order{ID: tasks.NewID(), Store: true}
	s := w.begin(t, o)
	_, ended := listen(s)
	require.NoError(t, speak(t, s, 1))
	assert.Len(t, w.Files(), 1)
	_, err := w.Reap(t.Context(), w.member, tasks.EndInterrupted, "gone")
	require.NoError(t, err)
	w.Tidy()
	assert.Empty(t, w.Files())
	_, err = s.Close()
	require.Error(t, err)
	<-ended
	assert.Empty(t, w.Files())

	w.Config.Blobs.Inject(func(op, _ string) error {
		if op == "write" {
			return blob.ErrFull
		}
		return nil
	})
	o.ID = tasks.NewID()
	s = w.begin(t, o)
	_, ended = listen(s)
	require.NoError(t, speak(t, s, 1))
	w.Config.Blobs.Inject(func(string, string) error { return nil })
	_, err = s.Close()
	require.NoError(t, errors.Join(err, <-ended))
	res, _ := w.ReadResult(o.ID)
	assert.Equal(t, []spec.Warning{{Option: spec.WarnAudio, Reason: "the sound was not kept: the file store failed"}}, res.Warnings)
	assert.Len(t, w.Files(), 1)
}

// A session that cannot be settled for long is settled once the store works
// again.
func TestSettledLater(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := open(t, d, keeping)
		w.patience = time.Millisecond
		before := w.balance(t, w.Account)
		o := Order{ID: tasks.NewID(), Store: true}
		s := w.begin(t, o)
		_, ended := listen(s)
		require.NoError(t, speak(t, s, 61))
		var works atomic.Bool
		w.Config.Blobs.Inject(func(op, key string) error {
			if op == "create" && !works.Load() {
				return blob.ErrUnavailable
			}
			return nil
		})
		_, err := s.Close()
		require.ErrorIs(t, err, blob.ErrUnavailable)
		<-ended
		assert.Equal(t, tasks.StatusProcessing, w.Row(o.ID).Status)
		works.Store(true)
		require.Eventually(t, func() bool { return w.inside.Load() == 0 }, time.Minute, 10*time.Millisecond)
		assert.Equal(t, tasks.StatusDone, w.Row(o.ID).Status)
		assert.Equal(t, before-200, w.balance(t, w.Account))
		assert.Zero(t, w.open.Load())
		w.Exact()
		assert.Empty(t, w.Orphans())
	})
}

// A connection ends soon after its key is revoked or its account suspended, and
// then cannot begin a session.
func TestRightsEnd(t *testing.T) {
	d := dbtest.SQLite(t, db.Options{})
	w := open(t, d)
	w.permitEvery = 5 * time.Millisecond
	_, key, err := w.Accounts.CreateKey(t.Context(), w.Account, accounts.KeyOptions{})
	require.NoError(t, err)
	for _, of := range []string{key.ID, ""} {
		ctx, leave := w.Enter(t.Context(), w.Account, of)
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, ctx.Err())
		if of != "" {
			require.NoError(t, w.Accounts.RevokeKey(t.Context(), "", of))
		} else {
			require.NoError(t, w.Accounts.Suspend(t.Context(), w.Account))
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatal("the connection did not end")
		}
		assert.Equal(t, doors.Canceled, reason(t, context.Cause(ctx)))
		_, err := w.Open(t.Context(), Order{ID: tasks.NewID(), Account: w.Account, Key: of}, doors.Settings{Format: telephone})
		assert.Equal(t, doors.Canceled, reason(t, err))
		leave()
	}
	assert.Zero(t, w.inside.Load())
}

// In S3 the sound is uploaded in parts while it comes; until the session ends,
// there is no file.
func TestSoundIsKeptInS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	store, err := blob.Open(t.Context(), outside.S3Store(outside.S3(t, "files"), "files"))
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	w := open(t, dbtest.SQLite(t, db.Options{}), keeping, func(c *tasks.Config) { c.Blobs = store })
	o := Order{ID: tasks.NewID(), Store: true}
	s := w.begin(t, o)
	_, ended := listen(s)
	const seconds = 170 // more than 5 MiB, the length of a part
	require.NoError(t, speak(t, s, seconds))
	assert.Empty(t, w.Files())
	_, err = s.Close()
	require.NoError(t, errors.Join(err, <-ended))
	kept, err := w.Service.Audio(t.Context(), w.Account, o.ID)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, kept)
	require.NoError(t, errors.Join(err, kept.Close()))
	assert.Equal(t, int64(44+2*audio.SampleRate*seconds), n)
	assert.Empty(t, w.Orphans())
	require.NoError(t, w.Delete(t.Context(), w.Account, o.ID))
	assert.Empty(t, w.Files())
}
