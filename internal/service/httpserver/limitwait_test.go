package httpserver

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
)

// TestRequestsWaitTheirTurn: on OpenAI's endpoints a request beyond the
// account's limits waits for a limited time, and leaves nothing if it is then
// refused; the specification's endpoints refuse it immediately.
func TestRequestsWaitTheirTurn(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.LimitWait = time.Second })
	one, many := 1, 1000
	limit := func(tps float64, burst int) {
		require.NoError(t, w.accounts.SetLimits(t.Context(), w.account.ID, accounts.Overrides{Concurrency: &one, TPS: &tps, Burst: &burst}))
		time.Sleep(limitsAge)
	}
	limit(1000, many)
	post := func() answer {
		body, header := form(t, "talk.wav", true)
		return w.do("POST", "/audio/transcriptions", body, header)
	}
	var first answer
	var wg sync.WaitGroup
	wg.Go(func() { first = post() })
	require.Eventually(t, func() bool { return w.do("GET", "/account", nil).object(t)["active_tasks"] == 1.0 }, 10*time.Second, 25*time.Millisecond)
	files := len(blobKeys(t, w))
	assert.Equal(t, http.StatusTooManyRequests, w.do("POST", "/tasks", upload(nil)).status)
	begin := time.Now()
	assert.Equal(t, http.StatusTooManyRequests, post().status)
	assert.GreaterOrEqual(t, time.Since(begin), time.Second)
	assert.Len(t, blobKeys(t, w), files, "refused requests leave nothing")

	w.api.cfg.LimitWait = time.Minute
	statuses := make(chan int, 5)
	for range cap(statuses) {
		wg.Go(func() { statuses <- post().status })
	}
	w.work()
	wg.Wait()
	assert.Equal(t, 200, first.status)
	for range cap(statuses) {
		assert.Equal(t, 200, <-statuses)
	}
	limit(20, 1)
	for range 3 {
		assert.Equal(t, 200, post().status, "the rate, too")
	}
}

// TestAudioOfAnUnclearTaskStays: the audio is kept if the task may exist, and
// deleted if no creation was tried.
func TestAudioOfAnUnclearTaskStays(t *testing.T) {
	w := newWorld(t)
	request := func() tasks.Request {
		audio, err := w.tasks.NewAudio(t.Context(), "a.wav")
		require.NoError(t, err)
		info, err := audio.Commit()
		require.NoError(t, err)
		return tasks.Request{Account: w.account.ID, Audio: &info}
	}
	stored := func(r tasks.Request) bool {
		file, err := w.tasks.Config.Blobs.Open(t.Context(), r.Audio.Key)
		if err == nil {
			file.Close()
		}
		return !errors.Is(err, blob.ErrNotFound)
	}
	unclear := request()
	unclear.Options.ASRTemperature = new(math.NaN()) // no error by which the task certainly does not exist
	_, err := w.api.createInOrder(t.Context(), unclear)
	require.ErrorContains(t, err, "NaN")
	assert.True(t, stored(unclear))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	untried := request()
	_, err = w.api.createInOrder(ctx, untried)
	require.ErrorIs(t, err, billing.ErrConcurrencyLimit)
	assert.False(t, stored(untried))
}
