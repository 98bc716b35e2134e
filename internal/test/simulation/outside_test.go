package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
)

// recording is the content of a task's audio, which determines the course of
// its work.
type recording struct {
	Task    int     `json:"task"` // number of the submission
	Seconds float64 `json:"seconds"`
	Fate    string  `json:"fate"`
}

// Fates of recordings.
const (
	fateFine     = "fine"
	fateBad      = "bad"      // not audio: fails permanently
	fateFlaky    = "flaky"    // every other attempt fails
	fatePoison   = "poison"   // the engine panics
	fateHopeless = "hopeless" // every attempt fails
	fateGone     = "gone"     // no longer available at the source
)

// engine simulates work of random duration.
type engine struct{ p *process }

func (e engine) ModelSet() string { return "models-1" }

func (e engine) read(path string) (r recording, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// Probe implements tasks.Prober.
func (e engine) Probe(_ context.Context, path, _ string) (float64, error) {
	r, err := e.read(path)
	return r.Seconds, err
}

// Run implements worker.Engine.
func (e engine) Run(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	p := e.p
	r, err := e.read(job.Path)
	if err != nil {
		return tasks.Outcome{}, err
	}
	half := time.Duration(1+p.random.Int64N(int64(p.world.work))) / 2
	if !backoff.Sleep(ctx, half) {
		return tasks.Outcome{}, context.Cause(ctx)
	}
	if p.diskFull() {
		return tasks.Outcome{}, fmt.Errorf("temporary file: %w", syscall.ENOSPC)
	}
	if err := job.Checkpoints.Save(ctx, "half", []byte(job.TaskID)); err != nil {
		return tasks.Outcome{}, err
	}
	switch {
	case r.Fate == fateBad:
		return tasks.Outcome{}, spec.Permanent(errors.New("not audio"))
	case r.Fate == fatePoison:
		panic("poison")
	case r.Fate == fateHopeless, r.Fate == fateFlaky && p.random.IntN(2) == 0:
		return tasks.Outcome{}, errors.New("no luck")
	}
	if !backoff.Sleep(ctx, half) {
		return tasks.Outcome{}, context.Cause(ctx)
	}
	if saved, err := job.Checkpoints.Load(ctx, "half"); err != nil || string(saved) != job.TaskID {
		return tasks.Outcome{}, fmt.Errorf("checkpoint %q: %w", saved, err)
	}
	text, err := json.Marshal(r)
	return tasks.Outcome{Result: spec.Result{Segments: []spec.Segment{{Text: string(text)}}}, Tier: spec.TierOptimized, Seconds: r.Seconds, Waveform: []byte("peaks")}, err
}

// sources serves downloads: the address determines the recording.
type sources struct{ p *process }

// Do implements safehttp.Doer.
func (s sources) Do(r *http.Request) (*http.Response, error) {
	if s.p.dead.Load() {
		return nil, errKilled
	}
	if !backoff.Sleep(r.Context(), time.Duration(1+s.p.random.Int64N(int64(2*time.Second)))) {
		return nil, r.Context().Err()
	}
	text := r.URL.Query().Get("recording")
	if strings.Contains(text, `"fate":"`+fateGone+`"`) {
		return answer(r, 404, ""), nil
	}
	return answer(r, 200, text), nil
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// delivery is a callback that reached a receiver.
type delivery struct {
	id       string // webhook-id
	body     string
	accepted bool
}

// receivers accepts callbacks for the hosts of all customers.
type receivers struct{ p *process }

// Do implements safehttp.Doer.
func (v receivers) Do(r *http.Request) (*http.Response, error) {
	p, w := v.p, v.p.world
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	calm, host, dice := w.calm.Load(), r.URL.Host, p.random.IntN(100)
	patience := time.Duration(1 + p.random.Int64N(int64(3*time.Second)))
	if !calm && host == "slow.example" && dice < 30 {
		patience = time.Minute // longer than the notifier waits
	}
	if !backoff.Sleep(r.Context(), patience) {
		return nil, r.Context().Err()
	}
	if p.dead.Load() {
		return nil, errKilled
	}
	var d struct {
		TaskID string `json:"task_id"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&d); err != nil {
		w.fail("callback with body %q: %v", body, err)
	}
	refused := host == "down.example" || !calm && host == "flaky.example" && dice < 50
	w.mu.Lock()
	w.deliveries[d.TaskID] = append(w.deliveries[d.TaskID], delivery{r.Header.Get("Webhook-Id"), string(body), !refused})
	w.mu.Unlock()
	switch {
	case refused:
		return answer(r, 503, ""), nil
	case !calm && dice > 95:
		return nil, errBroken // the request arrived, but the response is lost
	}
	return answer(r, 200, "ok"), nil
}
