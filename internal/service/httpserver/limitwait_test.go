package httpserver

import (
	"context"
	"errors"
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
	require.Eventually(t, func() bool { return w.do("GET", "/account", nil).object(t)["active_tasks"] == 1.0 }, 10*time.Second, 10*time.Millisecond)
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

// unclear is a task store whose connection breaks during the commit of a task,
// while the client disconnects.
type unclear struct {
	taskStore
	disconnect context.CancelFunc
	dropped    []string
}

func (u *unclear) Create(context.Context, tasks.Request, tasks.Idempotency) (tasks.Task, bool, error) {
	u.disconnect()
	return tasks.Task{}, false, errors.New("the outcome of the commit is unknown")
}

func (u *unclear) DropAudio(_ context.Context, key string) { u.dropped = append(u.dropped, key) }

// TestAudioOfAnUnclearTaskStays: the audio is kept if the task may exist.
func TestAudioOfAnUnclearTaskStays(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	u := &unclear{taskStore: w.api.cfg.Tasks, disconnect: cancel}
	w.api.cfg.Tasks = u
	_, err := w.api.createInOrder(ctx, tasks.Request{Account: w.account.ID, Audio: &blob.Info{Key: "audio/x"}})
	require.ErrorContains(t, err, "unknown")
	assert.Empty(t, u.dropped)
	_, err = w.api.createInOrder(ctx, tasks.Request{Account: w.account.ID, Audio: &blob.Info{Key: "audio/y"}})
	require.ErrorIs(t, err, billing.ErrConcurrencyLimit)
	assert.Equal(t, []string{"audio/y"}, u.dropped, "it was not tried")
}
