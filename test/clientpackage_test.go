package test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	otoclient "github.com/otograph/otograph/client"
	"github.com/otograph/otograph/spec"
)

// TestClientPackage takes package client through a task's life, against the real
// service: submitted, refused, done, read, called back, paid, deleted.
func TestClientPackage(t *testing.T) {
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
