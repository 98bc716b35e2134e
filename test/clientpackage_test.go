package test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	otoclient "github.com/otograph/otograph/client"
	"github.com/otograph/otograph/spec"
)

// TestClientPackage uses package client for a task's whole life with the real
// service: submitted, refused, done, read, called back, paid, deleted.
func TestClientPackage(t *testing.T) {
	t.Parallel()
	const secret = "a secret of the receiver"
	callbacks := make(chan otoclient.Callback, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := otoclient.ReadCallback(r, secret)
		if assert.NoError(t, err) {
			callbacks <- c
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	s := serve(t, t.TempDir(), "--allow-outbound", receiver.Listener.Addr().String()).unlimited()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := otoclient.New(s.url, s.key)
	require.NoError(t, err)

	raw := clip(t, 8, 3)
	want := otoclient.Submission{
		Filename: "clip.wav", CallbackURL: receiver.URL, CallbackSecret: secret, IdempotencyKey: "once",
		Options: spec.Options{EnableAudioEvents: new(false), EnableDiarize: new(false), ASRLanguage: new("en")},
	}
	task, err := c.Upload(ctx, bytes.NewReader(raw), want)
	require.NoError(t, err)
	assert.Equal(t, otoclient.Processing, task.Status)
	assert.EqualValues(t, len(raw), *task.Size)
	again, err := c.Upload(ctx, bytes.NewReader(raw), want)
	require.NoError(t, err)
	assert.Equal(t, task.ID, again.ID, "the same key gives the same task")

	result, err := c.Wait(ctx, task.ID)
	require.NoError(t, err)
	assert.NotEmpty(t, result.Segments)
	assert.Equal(t, "en", result.Language)
	assert.Equal(t, []any{task.ID, 1.0, result.Billing.Detail.Total}, []any{result.TaskID, result.Billing.BillableMinutes, result.Billing.Amount})
	select {
	case called := <-callbacks:
		assert.Equal(t, []any{task.ID, otoclient.Done}, []any{called.TaskID, called.Status})
	case <-time.After(patience):
		t.Fatal("no callback")
	}
	full, err := c.Task(ctx, task.ID)
	require.NoError(t, err)
	assert.False(t, *full.Options.EnableDiarize)
	assert.NotNil(t, full.FinishedAt)

	list, total, err := c.Tasks(ctx, otoclient.Done, 1, 10)
	require.NoError(t, err)
	assert.Equal(t, []any{1, task.ID}, []any{total, list[0].ID})
	account, err := c.Account(ctx)
	require.NoError(t, err)
	assert.InDelta(t, result.Billing.Balance, account.Balance, 1e-9)
	entries, _, err := c.Transactions(ctx, 0, 0)
	require.NoError(t, err)
	assert.Equal(t, task.ID, *entries[0].TaskID)
	prices, err := c.Pricing(ctx)
	require.NoError(t, err)
	assert.Positive(t, prices.Standard)

	items, err := c.SubmitBatch(ctx, []string{"http://127.0.0.1:1/a.wav"}, nil, otoclient.Submission{})
	require.NoError(t, err)
	assert.Equal(t, []any{false, true}, []any{items[0].Success, items[0].Error != ""})
	var failed *otoclient.Error
	_, err = c.Submit(ctx, "ftp://example.com/a.wav", otoclient.Submission{})
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []any{400, "invalid_request"}, []any{failed.Status, failed.Code})

	noise, err := c.Upload(ctx, bytes.NewReader(bytes.Repeat([]byte("no audio"), 500)), otoclient.Submission{Filename: "a.wav"})
	require.NoError(t, err)
	var ended *otoclient.TaskError
	_, err = c.Wait(ctx, noise.ID)
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, otoclient.Failed, ended.Task.Status)

	require.NoError(t, c.Delete(ctx, task.ID))
	_, err = c.Result(ctx, task.ID)
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 404, failed.Status)
}

// TestClientPackageAdditions uses package client for the service's additions to
// the specification: events, files, corrections, and keys.
func TestClientPackageAdditions(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--keep-audio", "1h").unlimited()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := otoclient.New(s.url, s.key)
	require.NoError(t, err)
	raw := clip(t, 8, 3)
	task, err := c.Upload(ctx, bytes.NewReader(raw), otoclient.Submission{
		Filename: "clip.wav", Options: spec.Options{EnableAudioEvents: new(false), ASRLanguage: new("en")},
	})
	require.NoError(t, err)
	var last otoclient.State
	told := map[int]string{}
	for e, err := range c.Follow(ctx, task.ID) {
		require.NoError(t, err)
		if e.Segment != nil {
			told[e.Segment.Index] = e.Segment.Text
			continue
		}
		last = *e.State
	}
	assert.Equal(t, []any{task.ID, otoclient.Done, true, 100}, []any{last.TaskID, last.Status, last.Final, *last.Percent})
	result, err := c.Result(ctx, task.ID)
	require.NoError(t, err)
	for i, text := range told { // the end may arrive before the sentences are read
		assert.Equal(t, result.Segments[i].Text, text)
	}

	audio, err := c.Audio(ctx, task.ID)
	require.NoError(t, err)
	defer audio.Close()
	kept, err := io.ReadAll(audio)
	require.NoError(t, err)
	assert.Equal(t, raw, kept)
	waveform, err := c.Waveform(ctx, task.ID)
	require.NoError(t, err)
	assert.Equal(t, byte(255), slices.Max(waveform))

	named := func(speaker, name string) otoclient.Correction {
		return otoclient.Correction{Op: "annotate", Speakers: map[string]*string{speaker: &name}}
	}
	changed, err := c.Correct(ctx, task.ID, named("SPEAKER_0", "Ruth"), 0)
	require.NoError(t, err)
	assert.Equal(t, []any{int64(1), "Ruth"}, []any{changed.Version, *changed.Speakers["SPEAKER_0"]})
	var failed *otoclient.Error
	corrected, err := c.Correct(ctx, task.ID, otoclient.Correction{Op: "assign", Segment: new(0), Speaker: "SPEAKER_7"}, changed.Version)
	require.NoError(t, err)
	log, err := c.Corrections(ctx, task.ID)
	require.NoError(t, err)
	assert.Equal(t, corrected, log[len(log)-1])
	assert.Equal(t, []any{changed.Version + 1, "SPEAKER_7", len(log)}, []any{corrected.Version, corrected.Speaker, int(corrected.Version)})
	_, err = c.Correct(ctx, task.ID, otoclient.Correction{Op: "undo"}, changed.Version)
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 409, failed.Status)
	_, err = c.Correct(ctx, task.ID, named("SPEAKER_7", "Ann"), corrected.Version)
	require.NoError(t, err)
	subtitles, err := c.Transcript(ctx, task.ID, "srt")
	require.NoError(t, err)
	assert.Contains(t, string(subtitles), "[Ann] ")
	_, err = c.Transcript(ctx, task.ID, "pdf")
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 400, failed.Status)
}
