package taskstest

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Answer is the response to a request, or a callback.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Object returns the body as a JSON object.
func (a Answer) Object(t *testing.T) map[string]any {
	t.Helper()
	m := map[string]any{}
	require.NoError(t, json.Unmarshal(a.Body, &m), "%d %.300s", a.Status, a.Body)
	return m
}

// Request sends a request with the key of an account with enough money and high
// limits, unless headers (name, value, …) contain another key. A body that is
// not a string is sent as JSON.
type Request func(t *testing.T, method, path string, body any, headers ...string) Answer

// World consists of two services: one on which tasks of every kind have ended,
// and one without workers.
type World struct {
	Do, Idle Request
	// Account creates an account with a balance on the service without workers and
	// returns the account's API key.
	Account func(t *testing.T, name, balance string, concurrency int) (key string)

	Host    string // a host of audio URLs; the service without workers never fetches them
	Audio   []byte // the recording of all tasks
	Seconds float64

	All, ASR, Events, ByURL, Batch string // finished tasks: all capabilities, only transcription, only events, …
	Failed, Abandoned              string
	Pending                        string // not final

	// Callbacks returns the callbacks received for a task, oldest first. All,
	// Failed and Abandoned have a callback signed with Secret, ByURL an
	// unsigned one.
	Callbacks func(task string) []Answer
	Secret    string
}

// Statement is a statement of the specification and its check. ≡ marks a
// documented decision about a point that the specification leaves open.
type Statement struct {
	Says  string
	Check func(t *testing.T, w *World)
}

// RunStatements checks every statement in a separate subtest, in the world that in
// returns for it.
func RunStatements[S ~struct {
	Says  string
	Check func(t *testing.T, w W)
}, W any](t *testing.T, statements []S, in func(t *testing.T) W,
) {
	seen, failed := map[string]bool{}, 0
	for _, statement := range statements {
		s := struct {
			Says  string
			Check func(t *testing.T, w W)
		}(statement)
		require.False(t, seen[s.Says], "twice: %s", s.Says)
		seen[s.Says] = true
		if !t.Run(s.Says, func(t *testing.T) { s.Check(t, in(t)) }) {
			failed++
		}
	}
	t.Logf("%d of %d statements hold", len(statements)-failed, len(statements))
}

func (w *World) anywhere() string { return w.Host + "/talk.wav" }

func (w *World) upload(options map[string]any, more ...any) map[string]any {
	m := map[string]any{"audio_filename": "clip.wav", "audio_base64": base64.StdEncoding.EncodeToString(w.Audio)}
	if options != nil {
		m["options"] = options
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

// option creates a task with one option on the service without workers.
func (w *World) option(t *testing.T, name string, v any) Answer {
	return w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "options": map[string]any{name: v}})
}

func (w *World) createIdle(t *testing.T, body any) string {
	t.Helper()
	a := w.Idle(t, "POST", "/tasks", body)
	require.Equal(t, 201, a.Status, "%.500s", a.Body)
	return a.Object(t)["id"].(string)
}

func (w *World) idleTask(t *testing.T, id string) map[string]any {
	t.Helper()
	return get(t, w.Idle, "/tasks/"+id)
}

func (w *World) task(t *testing.T, id string) map[string]any {
	t.Helper()
	return get(t, w.Do, "/tasks/"+id)
}

func (w *World) result(t *testing.T, id string) map[string]any {
	t.Helper()
	return get(t, w.Do, "/tasks/"+id+"/result")
}

// callback returns the only callback for a task.
func (w *World) callback(t *testing.T, id string) Answer {
	t.Helper()
	require.Eventually(t, func() bool { return len(w.Callbacks(id)) == 1 }, time.Minute, 25*time.Millisecond)
	return w.Callbacks(id)[0]
}

// span checks start and end of a part of the recording.
func (w *World) span(t *testing.T, v any) map[string]any {
	t.Helper()
	m := object(v)
	start, ok := m["start"].(float64)
	require.True(t, ok, "start of %v", v)
	end, ok := m["end"].(float64)
	require.True(t, ok, "end of %v", v)
	assert.GreaterOrEqual(t, start, 0.0)
	assert.Less(t, start, end)
	assert.LessOrEqual(t, end, w.Seconds+0.01)
	return m
}

// share checks a number from 0 to 1.
func share(t *testing.T, v any) {
	t.Helper()
	f, ok := v.(float64)
	require.True(t, ok, "%v", v)
	assert.GreaterOrEqual(t, f, 0.0)
	assert.LessOrEqual(t, f, 1.0)
}

func get(t *testing.T, request Request, path string) map[string]any {
	t.Helper()
	a := request(t, "GET", path, nil)
	require.Equal(t, 200, a.Status, "%s", a.Body)
	return a.Object(t)
}

// refusal checks a response's status and code.
func refusal(t *testing.T, a Answer, status int, code string) {
	t.Helper()
	assert.Equal(t, status, a.Status, "%.300s", a.Body)
	m := a.Object(t)
	assert.Equal(t, code, m["error_code"])
	assert.NotEmpty(t, m["error"])
	assert.Equal(t, "application/json", a.Header.Get("Content-Type"))
}

func names(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func sorted(names ...string) []string {
	slices.Sort(names)
	return names
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

var (
	stampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	uuidForm  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	moneyForm = regexp.MustCompile(`^-?\d+\.\d{4}$`)
	md5Form   = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// within sends an option's bounds, which must be accepted, and values beyond
// them.
func within(name string, low, high, below, above any) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		for _, v := range []any{low, high} {
			a := w.option(t, name, v)
			require.Equal(t, 201, a.Status, "%v: %s", v, a.Body)
			assert.EqualValues(t, v, object(a.Object(t)["options"])[name])
		}
		for _, v := range []any{below, above, "x", []any{}, map[string]any{}} {
			a := w.option(t, name, v)
			refusal(t, a, 400, "invalid_request")
			assert.Contains(t, string(a.Body), name)
		}
	}
}

// boolean tests a switch together with more options, which turn off the
// capabilities that require it.
func boolean(name string, more map[string]any) func(*testing.T, *World) {
	return func(t *testing.T, w *World) {
		for _, v := range []bool{true, false} {
			options := maps.Clone(more)
			options[name] = v
			a := w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "options": options})
			require.Equal(t, 201, a.Status, "%s", a.Body)
			assert.Equal(t, v, object(a.Object(t)["options"])[name])
		}
		for _, v := range []any{"true", 1, nil} {
			refusal(t, w.option(t, name, v), 400, "invalid_request")
		}
	}
}

// OptionDefaults are the specification's default values as JSON.
var OptionDefaults = map[string]string{
	"enable_asr": "true", "enable_diarize": "true", "enable_audio_events": "true", "optimize": "null", "timestamp_level": `"word"`,
	"asr_language": "null", "asr_beam_size": "5", "asr_temperature": "0", "asr_best_of": "null", "hotwords": "null", "initial_prompt": "null",
	"vad_threshold": "0.35", "vad_min_speech_ms": "250", "vad_min_silence_ms": "100", "vad_speech_pad_ms": "30", "no_speech_threshold": "0.6",
	"num_speakers": "null", "min_speakers": "1", "max_speakers": "10", "diarize_min_segment_sec": "0.5", "diarize_single_speaker_threshold": "0.05",
	"audio_events_threshold": "0.3", "audio_events_classes": "null",
}
