package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/safehttp"
)

// OOMKills is used by the external tests.
var OOMKills = oomKills

// Work runs one claim to its end.
func (w *Worker) Work(drain, run context.Context, cancel context.CancelCauseFunc, c *tasks.Claim) error {
	return w.work(drain, run, cancel, c)
}

// FetchLimits bound a download.
type FetchLimits struct {
	Min, Max     int64
	Resumes      int
	Pause, Stall time.Duration
	Grace        time.Duration // default 1 min
	Rate         int64         // default 1
	Check        func(head []byte) error
}

// FetchAudio downloads url into a file.
func FetchAudio(ctx context.Context, client safehttp.Doer, blobs *blob.Store, url, key string, l FetchLimits) (blob.Info, error) {
	l.Grace = cmp.Or(l.Grace, time.Minute)
	l.Rate = cmp.Or(l.Rate, 1)
	c := &FetcherConfig{HTTP: client, MinBytes: l.Min, MaxBytes: l.Max, Resumes: l.Resumes, Pause: l.Pause, Stall: l.Stall, Slow: l.Grace, Rate: l.Rate}
	if l.Check != nil {
		c.Check = func(_ string, head []byte) error { return l.Check(head) }
	}
	return fetchAudio(ctx, c, blobs, url, key, "")
}

// RunOne starts one child and returns how it ended.
func (v *Supervisor) RunOne(ctx context.Context, id string, ooms int) (tasks.Ending, string, error) {
	return v.runOne(ctx, v.config.Command, id, ooms)
}

// Children returns the process numbers of the running workers.
func (v *Supervisor) Children() []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	var pids []int
	for _, p := range v.children {
		pids = append(pids, p.Pid)
	}
	return pids
}
