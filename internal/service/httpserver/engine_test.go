package httpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/safehttp"
	"github.com/otograph/otograph/spec"
)

// mediaServer is a third party's server: it serves audio and receives
// callbacks.
type mediaServer struct {
	url     string
	address string // host:port
	mu      sync.Mutex
	got     []received
	fail    int // number of callbacks to answer with 500 first
}

// received is one callback that arrived.
type received struct {
	header http.Header
	body   []byte
}

func newMediaServer(t testing.TB) *mediaServer {
	m := &mediaServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		switch name := r.PathValue("name"); {
		case strings.HasPrefix(name, "missing"):
			http.NotFound(w, r)
		case strings.HasPrefix(name, "small"):
			_, _ = w.Write([]byte("RIFF"))
		default:
			_, _ = w.Write(wav(2))
		}
	})
	mux.HandleFunc("POST /callback", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.got = append(m.got, received{r.Header.Clone(), body})
		if m.fail > 0 {
			m.fail--
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	m.url, m.address = srv.URL, strings.TrimPrefix(srv.URL, "http://")
	return m
}

// callbacks returns the callbacks received for a task, oldest first.
func (m *mediaServer) callbacks(task string) []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []received
	for _, g := range m.got {
		if strings.Contains(string(g.body), task) {
			out = append(out, g)
		}
	}
	return out
}

// fakeEngine returns results for its options without reading the audio. The
// file's name determines its errors.
type fakeEngine struct{}

func (fakeEngine) ModelSet() string { return "fake" }

func (fakeEngine) Run(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
	if _, err := os.Stat(job.Path); err != nil {
		return tasks.Outcome{}, err
	}
	job.Progress("decode", 1)
	switch {
	case strings.HasPrefix(job.Filename, "broken"):
		return tasks.Outcome{}, spec.Permanent(errors.New("the audio is longer than 5 hours"))
	case strings.HasPrefix(job.Filename, "mixed"):
		return tasks.Outcome{}, spec.Permanent(errors.New(tasks.ReferenceRefusal(0, "two voices")))
	case strings.HasPrefix(job.Filename, "unlucky"):
		return tasks.Outcome{}, errors.New("the model is missing at the moment")
	case strings.HasPrefix(job.Filename, "slow"):
		<-ctx.Done()
		return tasks.Outcome{}, ctx.Err()
	}
	o := job.Options
	r := spec.Result{Ran: spec.Capabilities{ASR: *o.EnableASR, Diarize: *o.EnableDiarize, AudioEvents: *o.EnableAudioEvents}}
	out := tasks.Outcome{Seconds: 61.5, Waveform: []byte{0, 128, 255}}
	if strings.HasPrefix(job.Filename, "cut") {
		r.Stats.Truncated, r.Warnings = true, []spec.Warning{{Option: "vad_threshold", Reason: "not for customers"}, {Option: spec.WarnAudio, Reason: "“cut”"}}
	}
	if *o.EnableASR {
		lite := o.Optimize != nil && *o.Optimize
		out.Tier = spec.TierStandard
		if lite {
			out.Tier = spec.TierOptimized
		}
		r.Language, r.LanguageProbability = "en", 0.98
		seg := spec.Segment{Start: 0.5, End: 1.75, Text: "Hello there."}
		if !lite && *o.TimestampLevel == spec.TimestampWord {
			seg.Words = []spec.Word{{Word: " Hello", Start: 0.5, End: 1, Probability: 0.9}, {Word: " there.", Start: 1, End: 1.75, Probability: 0.8}}
		}
		if *o.EnableDiarize {
			seg.Speaker = spec.SpeakerName(0)
		}
		second := seg
		seg.Language, second.Language = "en", "de"
		second.ID, second.Start, second.End, second.Text, second.Words = 1, 2, 3, "Good <b>day</b> & bye.", nil
		if seg.Words != nil {
			second.Words = []spec.Word{{Word: " Good <b>day</b> & bye.", Start: 2, End: 3, Probability: 0.7, Interpolated: true}}
		}
		heat, silence := 0.2, 0.05
		seg.Measures = &spec.Measures{Seek: 0.25, Tokens: []int32{7, 8}, AvgLogProb: -0.25, NoSpeechProb: &silence}
		if !lite {
			seg.Measures.Temperature = &heat
		}
		for i, path := range job.Voices {
			if heard, err := os.ReadFile(path); err != nil || !bytes.Equal(heard, wav(2+i)) {
				return tasks.Outcome{}, fmt.Errorf("known voice %d: %w", i, err)
			}
			r.Names = map[string]string{spec.SpeakerName(0): job.Extras.Voices[0]}
		}
		if job.Extras.Model != "" {
			seg.Text = "By " + job.Extras.Model + "."
		}
		if job.Extras.Translate {
			second.Text = "In English."
		}
		if !job.Extras.Measures {
			seg.Measures = nil
		}
		r.Segments = []spec.Segment{seg, second}
		r.VADSegments = []spec.Interval{{Start: 0.5, End: 3}}
	}
	if *o.EnableDiarize {
		r.NumSpeakers = 1
		r.SpeakerEmbeddings = []spec.SpeakerEmbedding{{SpeakerID: spec.SpeakerName(0), Embedding: make([]float32, 192), SegmentCount: 1}}
		r.DiarizeSegments = []spec.Turn{{Start: 0.5, End: 3, Speaker: spec.SpeakerName(0)}}
	}
	if *o.EnableAudioEvents {
		r.AudioEvents = []spec.AudioEvent{{Start: 0, End: 2, Class: "Speech", Confidence: 0.9}}
	}
	job.Progress("transcribe", 1)
	out.Result = r
	return out, nil
}

// work starts two workers, a fetcher and a notifier, as `serve` would, until
// the test ends.
func (w *world) work() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	audio, err := safehttp.New(safehttp.Config{MaxRedirects: 5, Allow: []string{w.media.address}, Resolver: fixtureNames{}})
	require.NoError(w.t, err)
	callbacks, err := safehttp.New(safehttp.Config{Allow: []string{w.media.address}, Resolver: fixtureNames{}})
	require.NoError(w.t, err)
	var workers []*worker.Worker
	for _, id := range []string{"worker-1", "worker-2"} { // one worker may be busy with a slow task
		one, err := worker.New(w.tasks.Runs, worker.Config{
			Engine: w.api.cfg.Metrics.MeasureEngine(fakeEngine{}), ID: id, Poll: 25 * time.Millisecond, Grace: time.Millisecond,
		})
		require.NoError(w.t, err)
		workers = append(workers, one)
	}
	notifier, err := webhook.NewNotifier(w.tasks.Outbox(), w.tasks.Queue(), webhook.NotifierConfig{
		HTTP: w.api.cfg.Metrics.MeasureCallbacks(callbacks), Poll: 25 * time.Millisecond, Grace: time.Millisecond,
	})
	require.NoError(w.t, err)
	fetcher, err := worker.NewFetcher(w.tasks.Runs, worker.FetcherConfig{HTTP: audio, Poll: 25 * time.Millisecond, Grace: time.Millisecond})
	require.NoError(w.t, err)
	var wg sync.WaitGroup
	wg.Go(func() { _ = fetcher.Run(ctx) })
	for _, one := range workers {
		wg.Go(func() { _ = one.Run(ctx) })
	}
	wg.Go(func() { _ = notifier.Run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
}

// final waits until a task has ended and returns it.
func (w *world) final(id string) map[string]any {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		if t := w.task(id); t["finished_at"] != nil {
			return t
		}
		require.True(w.t, time.Now().Before(deadline), "task %s does not end: %v", id, w.task(id))
		time.Sleep(25 * time.Millisecond)
	}
}
