package test

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/db/dbtest"
)

// walk is a service with a worker on which tasks of every kind have come to their end, and one on which none ever runs.
type walk struct {
	*server
	idle  *server
	out   *outside
	db    *db.DB
	audio []byte

	all, lite, events, segment, german, chinese, byURL, batch string // done
	refused, small, huge, garbage                             string // failed for good
	abandoned                                                 string
	waiting                                                   string // failed, to be tried again
}

// statement is one thing that the interface specification says (≡: a documented decision about what it leaves open).
type statement struct {
	says  string
	check func(t *testing.T, w *walk)
}

// TestSpecification walks through the specification with the built binary, statement by statement, on both databases.
func TestSpecification(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { walkThrough(t, func() []string { return nil }) })
	t.Run("postgres", func(t *testing.T) {
		walkThrough(t, func() []string { return []string{"--database", dbtest.PostgresSource(t)} })
	})
}

func walkThrough(t *testing.T, database func() []string) {
	w := newWalk(t, database)
	failed := 0
	seen := map[string]bool{}
	for _, s := range statements {
		require.False(t, seen[s.says], "twice: %s", s.says)
		seen[s.says] = true
		ok := t.Run(s.says, func(t *testing.T) {
			parent := w.t
			w.server.t, w.idle.t = t, t
			defer func() { w.server.t, w.idle.t = parent, parent }()
			s.check(t, w)
		})
		if !ok {
			failed++
		}
	}
	exact(t, w.db)
	t.Logf("%d of %d statements hold", len(statements)-failed, len(statements))
}

func newWalk(t *testing.T, database func() []string) *walk {
	w := &walk{out: newOutside(t), audio: clip(t, 8, 3)}
	w.out.files["/talk.wav"] = w.audio
	w.out.files["/small.wav"] = w.audio[:1000]
	w.out.files["/garbage.wav"] = bytes.Repeat([]byte("no recording "), 500)
	w.server = serve(t, t.TempDir(), append(database(), "--allow-outbound", w.out.host())...).unlimited()
	w.idle = serve(t, t.TempDir(), append(database(), "--workers", "0", "--fetches", "0", "--allow-outbound", w.out.host())...).unlimited()
	w.db = w.server.store()
	hook := func(m map[string]any, secret string) map[string]any {
		m["callback_url"] = w.out.URL + "/hook"
		if secret != "" {
			m["callback_secret"] = secret
		}
		return m
	}
	with := func(more map[string]any) map[string]any {
		m := maps.Clone(quick)
		maps.Copy(m, more)
		return m
	}
	link := func(path string) map[string]any {
		return map[string]any{"audio_url": w.out.URL + path, "options": quick}
	}
	w.abandoned = w.create(hook(link("/broken.wav"), "a secret"))
	w.waiting = w.create(hook(link("/broken.wav?2"), ""))
	w.all = w.create(hook(upload(w.audio, map[string]any{"optimize": false, "asr_language": "en", "audio_events_threshold": 0.05}), "a secret"))
	w.lite = w.create(upload(w.audio, quick, "allow_training", true))
	w.events = w.create(upload(w.audio, map[string]any{"enable_asr": false, "enable_diarize": false}))
	w.segment = w.create(upload(w.audio, with(map[string]any{"optimize": false, "timestamp_level": "segment"})))
	w.german = w.create(upload(w.audio, with(map[string]any{"asr_language": "de"})))
	chinese := with(map[string]any{"optimize_zh": true})
	delete(chinese, "optimize")
	w.chinese = w.create(upload(w.audio, chinese))
	byURL := hook(link("/moved.wav"), "")
	delete(byURL, "options")
	w.byURL = w.create(byURL)
	w.refused = w.create(hook(link("/gone.wav"), "a secret"))
	w.small = w.create(link("/small.wav"))
	w.huge = w.create(link("/endless.wav"))
	w.garbage = w.create(link("/garbage.wav"))
	a := w.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": []string{w.out.URL + "/talk.wav"}, "options": quick})
	require.Equal(t, 201, a.status, "%s", a.body)
	w.batch = a.object(t)["results"].([]any)[0].(map[string]any)["task"].(map[string]any)["id"].(string)

	// A task that fails again and again is tried after 10 s, 1 min and 5 min: the plan is looked at, then brought forward.
	for i, planned := range []float64{10, 60, 300} {
		if i == 1 {
			park(t, w.db, w.waiting) // before it has failed for good, too
		}
		require.Eventually(t, func() bool {
			return count(t, w.db, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase IN ('queued', 'delayed') AND failures = $2", w.abandoned, i+1) == 1
		}, patience, 20*time.Millisecond, "attempt %d", i+1)
		delay := float64(count(t, w.db, "SELECT run_at - updated_at FROM tasks WHERE id = $1", w.abandoned)) / 1e6
		assert.InDelta(t, planned, delay, planned*0.2+0.001, "the pause before attempt %d", i+2)
		m := w.task(w.abandoned)
		assert.Equal(t, "failed", m["status"], "while it waits for attempt %d", i+2)
		assert.Nil(t, m["finished_at"])
		assert.NotEmpty(t, m["error_message"])
		assert.Empty(t, w.out.callbacks(w.abandoned), "an error that will be retried sends no callback")
		change(t, w.db, "UPDATE tasks SET run_at = 0 WHERE id = $1", w.abandoned)
	}
	for _, id := range []string{w.all, w.lite, w.events, w.segment, w.german, w.chinese, w.byURL, w.refused, w.small, w.huge, w.garbage, w.abandoned, w.batch} {
		w.wait(id)
	}
	return w
}

func names(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func sorted(names ...string) []string {
	slices.Sort(names)
	return names
}

// refusal asks for a status and a code.
func refusal(t *testing.T, a answer, status int, code string) {
	t.Helper()
	assert.Equal(t, status, a.status, "%.300s", a.body)
	assert.Equal(t, code, a.code(t))
	assert.Equal(t, "application/json", a.header.Get("Content-Type"))
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

// anywhere is a public address: a task there is accepted, and on the idle server nobody ever asks it.
const anywhere = "http://1.1.1.1/talk.wav"

func (w *walk) option(name string, v any) answer {
	return w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": map[string]any{name: v}})
}

// within tries an option at its bounds, where it is taken, and beyond.
func within(name string, low, high, below, above any) func(*testing.T, *walk) {
	return func(t *testing.T, w *walk) {
		for _, v := range []any{low, high} {
			a := w.option(name, v)
			require.Equal(t, 201, a.status, "%v: %s", v, a.body)
			assert.EqualValues(t, v, object(a.object(t)["options"])[name])
		}
		for _, v := range []any{below, above, "x", []any{}, map[string]any{}} {
			a := w.option(name, v)
			refusal(t, a, 400, "invalid_request")
			assert.Contains(t, string(a.body), name)
		}
	}
}

// boolean tries a switch. What depends on it is switched off with it.
func boolean(name string, more map[string]any) func(*testing.T, *walk) {
	return func(t *testing.T, w *walk) {
		for _, v := range []bool{true, false} {
			options := maps.Clone(more)
			options[name] = v
			a := w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": options})
			require.Equal(t, 201, a.status, "%s", a.body)
			assert.Equal(t, v, object(a.object(t)["options"])[name])
		}
		for _, v := range []any{"true", 1, nil} {
			refusal(t, w.option(name, v), 400, "invalid_request")
		}
	}
}

var (
	stampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	uuidForm  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	md5Form   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	moneyForm = regexp.MustCompile(`^-?\d+\.\d{4}$`)
)

const nobodysTask = "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"

// optionDefaults are the specification's, as JSON.
var optionDefaults = map[string]string{
	"enable_asr": "true", "enable_diarize": "true", "enable_audio_events": "true", "optimize": "null", "timestamp_level": `"word"`,
	"asr_language": "null", "asr_beam_size": "5", "asr_temperature": "0", "asr_best_of": "null", "hotwords": "null", "initial_prompt": "null",
	"vad_threshold": "0.35", "vad_min_speech_ms": "250", "vad_min_silence_ms": "100", "vad_speech_pad_ms": "30", "no_speech_threshold": "0.6",
	"num_speakers": "null", "min_speakers": "1", "max_speakers": "10", "diarize_min_segment_sec": "0.5", "diarize_single_speaker_threshold": "0.05",
	"audio_events_threshold": "0.3", "audio_events_classes": "null",
}

// span checks start and end of something in the recording.
func span(t *testing.T, v any) map[string]any {
	t.Helper()
	m := object(v)
	start, ok := m["start"].(float64)
	require.True(t, ok, "start of %v", v)
	end, ok := m["end"].(float64)
	require.True(t, ok, "end of %v", v)
	assert.GreaterOrEqual(t, start, 0.0)
	assert.Less(t, start, end)
	assert.LessOrEqual(t, end, 3.01)
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

// statements follow the order of the specification.
var statements = []statement{
	// What the service does
	{"All paths are relative to a base that ends with /v1", func(t *testing.T, w *walk) {
		assert.Equal(t, 200, w.do("GET", "/pricing", nil).status)
		refusal(t, w.do("GET", "//pricing", nil), 404, "not_found")
		refusal(t, w.do("GET", "//v2/pricing", nil), 404, "not_found")
	}},
	{"Response bodies are application/json", func(t *testing.T, w *walk) {
		for _, p := range []string{"/account", "/tasks", "/pricing", "/audio-event-classes", "/billing/transactions", "/tasks/" + w.all, "/tasks/" + w.all + "/result", "/tasks/x", "/nothing"} {
			assert.Equal(t, "application/json", w.do("GET", p, nil).header.Get("Content-Type"), p)
		}
	}},
	{"Request bodies are application/json, others are 415 ≡", func(t *testing.T, w *walk) {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			for _, p := range []string{"/tasks", "/tasks/batch", "/auth/login"} {
				refusal(t, w.do("POST", p, "{}", "Content-Type", kind), 415, "invalid_request")
			}
		}
	}},
	{"The creation call returns at once with a task that is processing", func(t *testing.T, w *walk) {
		a := w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere})
		require.Equal(t, 201, a.status)
		m := a.object(t)
		assert.Equal(t, "processing", m["status"])
		assert.Equal(t, "processing", w.idle.task(m["id"].(string))["status"])
	}},
	{"Every capability is switched by its option", func(t *testing.T, w *walk) {
		always := []string{"task_id", "audio_duration", "audio_md5", "billing"}
		asr := []string{"language", "language_probability", "segments", "vad_segments"}
		diarize := []string{"num_speakers", "speaker_embeddings", "diarize_segments"}
		assert.Equal(t, sorted(slices.Concat(always, asr, diarize, []string{"audio_events"})...), names(w.result(w.all)), "all three")
		assert.Equal(t, sorted(slices.Concat(always, asr)...), names(w.result(w.lite)), "transcription alone")
		assert.Equal(t, sorted(slices.Concat(always, []string{"audio_events"})...), names(w.result(w.events)), "events alone")
	}},
	{"Tier: optimize=false is the standard tier, with words", func(t *testing.T, w *walk) {
		assert.Equal(t, "standard", object(w.result(w.all)["billing"])["mode"])
	}},
	{"Tier: optimize=true is the optimized tier for an applicable language", func(t *testing.T, w *walk) {
		assert.Equal(t, "zh_lite", object(w.result(w.lite)["billing"])["mode"])
	}},
	{"Tier: optimize=true with another language falls back to the standard tier", func(t *testing.T, w *walk) {
		assert.Equal(t, "standard", object(w.result(w.german)["billing"])["mode"])
		assert.Equal(t, "de", w.result(w.german)["language"])
	}},
	{"Tier: optimize null chooses by the detected language", func(t *testing.T, w *walk) {
		r := w.result(w.byURL)
		want := "standard"
		if slices.Contains([]string{"zh", "en", "es", "fr", "pt"}, r["language"].(string)) {
			want = "zh_lite"
		}
		assert.Equal(t, want, object(r["billing"])["mode"])
	}},
	{"Earlier variant: optimize_zh=true leaves other languages to the standard tier", func(t *testing.T, w *walk) {
		assert.Equal(t, "standard", object(w.result(w.chinese)["billing"])["mode"])
		assert.Equal(t, true, object(w.task(w.chinese)["options"])["optimize_zh"], "echoed as given")
	}},
	{"timestamp_level=segment has the standard tier without words", func(t *testing.T, w *walk) {
		r := w.result(w.segment)
		assert.Equal(t, "standard", object(r["billing"])["mode"])
		require.NotEmpty(t, r["segments"])
		for _, s := range list(r["segments"]) {
			assert.NotContains(t, s, "words")
		}
	}},

	// Task
	{"Task: id is a UUID", func(t *testing.T, w *walk) { assert.Regexp(t, uuidForm, w.task(w.all)["id"]) }},
	{"Task: GET has exactly the documented fields in every state", func(t *testing.T, w *walk) {
		want := sorted("id", "status", "audio_filename", "audio_source_type", "audio_size", "audio_md5", "allow_training", "error_message", "options", "created_at", "updated_at", "finished_at")
		for _, id := range []string{w.all, w.byURL, w.refused, w.abandoned, w.waiting} {
			assert.Equal(t, want, names(w.task(id)))
		}
		assert.Equal(t, want, names(w.idle.task(w.idle.create(map[string]any{"audio_url": anywhere}))))
	}},
	{"Task: status is processing, done, failed or abandoned", func(t *testing.T, w *walk) {
		for id, status := range map[string]string{w.all: "done", w.refused: "failed", w.waiting: "failed", w.abandoned: "abandoned"} {
			assert.Equal(t, status, w.task(id)["status"])
		}
	}},
	{"Task: audio_filename includes the extension", func(t *testing.T, w *walk) {
		assert.Equal(t, "clip.wav", w.task(w.all)["audio_filename"])
		assert.Equal(t, "moved.wav", w.task(w.byURL)["audio_filename"])
	}},
	{"Task: audio_source_type is url for URL submissions, base64 for the others ≡", func(t *testing.T, w *walk) {
		assert.Equal(t, "url", w.task(w.byURL)["audio_source_type"])
		assert.Equal(t, "base64", w.task(w.all)["audio_source_type"])
	}},
	{"Task: audio_size is in bytes, null until a URL is fetched ≡", func(t *testing.T, w *walk) {
		assert.EqualValues(t, len(w.audio), w.task(w.all)["audio_size"])
		assert.EqualValues(t, len(w.audio), w.task(w.byURL)["audio_size"])
		v, there := w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere}).object(t)["audio_size"]
		assert.True(t, there)
		assert.Nil(t, v)
	}},
	{"Task: audio_md5 is the MD5 of the original audio", func(t *testing.T, w *walk) {
		sum := md5.Sum(w.audio)
		for _, id := range []string{w.all, w.byURL, w.batch} {
			assert.Equal(t, hex.EncodeToString(sum[:]), w.task(id)["audio_md5"])
		}
	}},
	{"Task: allow_training echoes the choice, default false", func(t *testing.T, w *walk) {
		assert.Equal(t, true, w.task(w.lite)["allow_training"])
		assert.Equal(t, false, w.task(w.all)["allow_training"])
	}},
	{"Task: error_message is the reason when failed, otherwise null", func(t *testing.T, w *walk) {
		for _, id := range []string{w.refused, w.small, w.huge, w.garbage, w.abandoned, w.waiting} {
			assert.NotEmpty(t, w.task(id)["error_message"])
		}
		assert.Contains(t, w.task(w.refused)["error_message"], "404")
		assert.Contains(t, w.task(w.abandoned)["error_message"], "500")
		assert.Nil(t, w.task(w.all)["error_message"])
	}},
	{"Task: options holds the effective options", func(t *testing.T, w *walk) {
		m := object(w.task(w.all)["options"])
		assert.Equal(t, slices.Sorted(maps.Keys(optionDefaults)), names(m))
		assert.Equal(t, false, m["optimize"])
		assert.Equal(t, "en", m["asr_language"])
		assert.EqualValues(t, 0.05, m["audio_events_threshold"])
		assert.EqualValues(t, 5, m["asr_beam_size"])
	}},
	{"Task: timestamps are ISO 8601 in UTC with milliseconds ≡", func(t *testing.T, w *walk) {
		m := w.task(w.all)
		for _, f := range []string{"created_at", "updated_at", "finished_at"} {
			assert.Regexp(t, stampForm, m[f])
			at, err := time.Parse(time.RFC3339, m[f].(string))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now(), at, 30*time.Minute)
		}
		assert.LessOrEqual(t, m["created_at"], m["finished_at"])
	}},
	{"Task: finished_at is null until the task is final", func(t *testing.T, w *walk) {
		assert.Nil(t, w.task(w.waiting)["finished_at"])
		assert.Nil(t, w.idle.task(w.idle.create(map[string]any{"audio_url": anywhere}))["finished_at"])
		for _, id := range []string{w.all, w.refused, w.abandoned} {
			assert.NotNil(t, w.task(id)["finished_at"])
		}
	}},
	{"Task: the creation response has its eight fields and omits error_message and finished_at", func(t *testing.T, w *walk) {
		want := sorted("id", "status", "audio_filename", "audio_source_type", "audio_size", "options", "created_at", "updated_at")
		assert.Equal(t, want, names(w.idle.do("POST", "/tasks", upload(w.audio, nil)).object(t)))
		assert.Equal(t, want, names(w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere}).object(t)))
	}},

	// Options
	{"Options: every default is the documented one", func(t *testing.T, w *walk) {
		for _, body := range []any{map[string]any{"audio_url": anywhere}, map[string]any{"audio_url": anywhere, "options": map[string]any{}}} {
			var m struct {
				Options map[string]json.RawMessage `json:"options"`
			}
			require.NoError(t, json.Unmarshal(w.idle.do("POST", "/tasks", body).body, &m))
			got := map[string]string{}
			for k, v := range m.Options {
				got[k] = string(v)
			}
			assert.Equal(t, optionDefaults, got)
		}
	}},
	{"Options: enable_diarize=true with enable_asr=false gives 400", func(t *testing.T, w *walk) {
		refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": map[string]any{"enable_asr": false, "enable_diarize": true}}), 400, "invalid_request")
		refusal(t, w.option("enable_asr", false), 400, "invalid_request")
	}},
	{"Options: all three capabilities false gives 400", func(t *testing.T, w *walk) {
		off := map[string]any{"enable_asr": false, "enable_diarize": false, "enable_audio_events": false}
		refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": off}), 400, "invalid_request")
	}},
	{"Options: enable_asr is a boolean", boolean("enable_asr", map[string]any{"enable_diarize": false})},
	{"Options: enable_diarize is a boolean", boolean("enable_diarize", map[string]any{})},
	{"Options: enable_audio_events is a boolean", boolean("enable_audio_events", map[string]any{})},
	{"Options: optimize is true, false or null", func(t *testing.T, w *walk) {
		for _, v := range []any{true, false, nil} {
			a := w.option("optimize", v)
			require.Equal(t, 201, a.status)
			assert.Equal(t, v, object(a.object(t)["options"])["optimize"])
		}
		refusal(t, w.option("optimize", "true"), 400, "invalid_request")
	}},
	{"Options: timestamp_level is word or segment", func(t *testing.T, w *walk) {
		for _, v := range []string{"word", "segment"} {
			assert.Equal(t, 201, w.option("timestamp_level", v).status)
		}
		for _, v := range []any{"Word", "character", "", nil, 1} {
			refusal(t, w.option("timestamp_level", v), 400, "invalid_request")
		}
	}},
	{"Options: asr_language takes ISO 639-1 and 639-3 codes and null", func(t *testing.T, w *walk) {
		for _, v := range []any{"zh", "en", "ja", "ko", "fr", "de", "es", "ru", "ar", "pt", "th", "vi", "hi", "deu", "eng", "zho", nil} {
			assert.Equal(t, 201, w.option("asr_language", v).status, v)
		}
		for _, v := range []any{"xx", "klingon", "", 1, []any{"en"}} {
			refusal(t, w.option("asr_language", v), 400, "invalid_request")
		}
	}},
	{"Options: asr_language that no model of the workers knows is refused with those that are installed ≡", func(t *testing.T, w *walk) {
		a := w.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": map[string]any{"asr_language": "th"}})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, string(a.body), "en")
		assert.Contains(t, string(a.body), "installed")
	}},
	{"Options: asr_beam_size from 1 to 20 ≡", within("asr_beam_size", 1, 20, 0, 21)},
	{"Options: asr_temperature from 0 to 1 ≡", within("asr_temperature", 0.0, 1.0, -0.1, 1.1)},
	{"Options: asr_best_of from 1 to 20", within("asr_best_of", 1, 20, 0, 21)},
	{"Options: vad_threshold from 0 to 1", within("vad_threshold", 0.0, 1.0, -0.01, 1.01)},
	{"Options: vad_min_speech_ms from 0 to 10,000 ≡", within("vad_min_speech_ms", 0, 10_000, -1, 10_001)},
	{"Options: vad_min_silence_ms from 0 to 10,000 ≡", within("vad_min_silence_ms", 0, 10_000, -1, 10_001)},
	{"Options: vad_speech_pad_ms from 0 to 2,000 ≡", within("vad_speech_pad_ms", 0, 2_000, -1, 2_001)},
	{"Options: no_speech_threshold from 0 to 1 ≡", within("no_speech_threshold", 0.0, 1.0, -0.01, 1.01)},
	{"Options: num_speakers from 1 to 50 ≡", within("num_speakers", 1, 50, 0, 51)},
	{"Options: min_speakers from 1 to 50 ≡", within("min_speakers", 1, 50, 0, 51)},
	{"Options: max_speakers from 1 to 50 ≡", within("max_speakers", 1, 50, 0, 51)},
	{"Options: diarize_min_segment_sec from 0.1 to 10 ≡", within("diarize_min_segment_sec", 0.1, 10.0, 0.09, 10.1)},
	{"Options: diarize_single_speaker_threshold from −1 to 1 ≡", within("diarize_single_speaker_threshold", -1.0, 1.0, -1.1, 1.1)},
	{"Options: audio_events_threshold from 0 to 1 ≡", within("audio_events_threshold", 0.0, 1.0, -0.01, 1.01)},
	{"Options: min_speakers is not above max_speakers ≡", func(t *testing.T, w *walk) {
		for high, status := range map[int]int{4: 400, 5: 201} {
			a := w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": map[string]any{"min_speakers": 5, "max_speakers": high}})
			assert.Equal(t, status, a.status, "%s", a.body)
		}
	}},
	{"Options: hotwords are at most 200 of at most 64 characters ≡", func(t *testing.T, w *walk) {
		many := slices.Repeat([]string{strings.Repeat("语", 64)}, 200)
		assert.Equal(t, 201, w.option("hotwords", many).status)
		assert.Equal(t, 201, w.option("hotwords", nil).status)
		for _, v := range []any{append(many, "x"), []string{strings.Repeat("x", 65)}, "x", []any{1}, []any{nil}} {
			refusal(t, w.option("hotwords", v), 400, "invalid_request")
		}
	}},
	{"Options: initial_prompt has at most 1,000 characters, or is null ≡", func(t *testing.T, w *walk) {
		assert.Equal(t, 201, w.option("initial_prompt", strings.Repeat("语", 1000)).status)
		assert.Equal(t, 201, w.option("initial_prompt", nil).status)
		refusal(t, w.option("initial_prompt", strings.Repeat("x", 1001)), 400, "invalid_request")
	}},
	{"Options: audio_events_classes are English class names, or null", func(t *testing.T, w *walk) {
		assert.Equal(t, 201, w.option("audio_events_classes", []string{"Speech", "Dog"}).status)
		assert.Equal(t, 201, w.option("audio_events_classes", nil).status)
		a := w.option("audio_events_classes", []string{"Speach"})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, a.object(t)["error"], "Speech", "the nearest name")
	}},
	{"Options: an unknown one is 400 and names the nearest ≡", func(t *testing.T, w *walk) {
		a := w.option("enable_diarise", true)
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, a.object(t)["error"], `"enable_diarize"`)
	}},

	// Result
	{"Result: task_id, audio_duration, audio_md5 and billing are always present", func(t *testing.T, w *walk) {
		for _, id := range []string{w.all, w.lite, w.events, w.segment, w.byURL, w.batch} {
			r := w.result(id)
			assert.Equal(t, id, r["task_id"])
			assert.EqualValues(t, 3, r["audio_duration"])
			assert.Regexp(t, md5Form, r["audio_md5"])
			assert.Equal(t, w.task(id)["audio_md5"], r["audio_md5"])
			assert.NotEmpty(t, r["billing"])
		}
	}},
	{"Result: nothing is null", func(t *testing.T, w *walk) {
		for _, id := range []string{w.all, w.lite, w.events} {
			assert.NotContains(t, string(w.do("GET", "/tasks/"+id+"/result", nil).body), "null")
		}
	}},
	{"Result: language is a code and language_probability from 0 to 1", func(t *testing.T, w *walk) {
		r := w.result(w.byURL)
		assert.Regexp(t, `^[a-z]{2,3}$`, r["language"])
		share(t, r["language_probability"])
		assert.Equal(t, "en", w.result(w.all)["language"])
	}},
	{"Result: segments have id from 0, start, end, text; speaker with diarization; words in the standard tier", func(t *testing.T, w *walk) {
		segments := list(w.result(w.all)["segments"])
		require.NotEmpty(t, segments)
		for i, s := range segments {
			m := span(t, s)
			assert.Equal(t, sorted("id", "start", "end", "text", "speaker", "words"), names(m))
			assert.EqualValues(t, i, m["id"])
			assert.NotEmpty(t, m["text"])
			assert.Regexp(t, `^SPEAKER_\d+$`, m["speaker"])
		}
		for _, s := range list(w.result(w.lite)["segments"]) {
			assert.Equal(t, sorted("id", "start", "end", "text"), names(span(t, s)))
		}
	}},
	{"Result: words have word, start, end and probability, and interpolated where they were not measured", func(t *testing.T, w *walk) {
		words := 0
		for _, s := range list(w.result(w.all)["segments"]) {
			for _, word := range list(object(s)["words"]) {
				words++
				m := object(word)
				if estimate, there := m["interpolated"]; there {
					assert.Equal(t, true, estimate)
					delete(m, "interpolated")
				}
				assert.Equal(t, sorted("word", "start", "end", "probability"), names(m))
				assert.NotEmpty(t, m["word"])
				assert.LessOrEqual(t, m["start"], m["end"])
				share(t, m["probability"])
			}
		}
		assert.NotZero(t, words)
	}},
	{"Result: vad_segments have start and end", func(t *testing.T, w *walk) {
		for _, id := range []string{w.all, w.lite} {
			require.NotEmpty(t, w.result(id)["vad_segments"])
			for _, s := range list(w.result(id)["vad_segments"]) {
				assert.Equal(t, sorted("start", "end"), names(span(t, s)))
			}
		}
	}},
	{"Result: speaker_embeddings have speaker_id, embedding of 192 floats and segment_count; num_speakers counts them", func(t *testing.T, w *walk) {
		r := w.result(w.all)
		speakers := list(r["speaker_embeddings"])
		assert.EqualValues(t, len(speakers), r["num_speakers"])
		require.NotEmpty(t, speakers)
		for i, s := range speakers {
			m := object(s)
			assert.Equal(t, sorted("speaker_id", "embedding", "segment_count"), names(m))
			assert.Equal(t, fmt.Sprintf("SPEAKER_%d", i), m["speaker_id"])
			assert.Len(t, m["embedding"], 192)
			assert.GreaterOrEqual(t, m["segment_count"], 1.0)
		}
	}},
	{"Result: diarize_segments have start, end and speaker; with one speaker all are SPEAKER_0", func(t *testing.T, w *walk) {
		r := w.result(w.all)
		require.EqualValues(t, 1, r["num_speakers"], "one voice in this clip")
		require.NotEmpty(t, r["diarize_segments"])
		for _, s := range list(r["diarize_segments"]) {
			m := span(t, s)
			assert.Equal(t, sorted("start", "end", "speaker"), names(m))
			assert.Equal(t, "SPEAKER_0", m["speaker"])
		}
	}},
	{"Result: audio_events are ordered by time, with start, end, class and confidence above the threshold", func(t *testing.T, w *walk) {
		known := map[any]bool{}
		var classes []map[string]any
		require.NoError(t, json.Unmarshal(w.do("GET", "/audio-event-classes", nil).body, &classes))
		for _, c := range classes {
			known[c["display_name"]] = true
		}
		last, n := 0.0, 0
		for _, e := range list(w.result(w.all)["audio_events"]) {
			m := span(t, e)
			n++
			assert.Equal(t, sorted("start", "end", "class", "confidence"), names(m))
			assert.True(t, known[m["class"]], m["class"])
			share(t, m["confidence"])
			assert.Greater(t, m["confidence"], 0.05)
			assert.GreaterOrEqual(t, m["start"], last)
			last = m["start"].(float64)
		}
		assert.NotZero(t, n)
	}},
	{"Billing block: mode, billable_minutes (rounded up, at least 1), detail, amount, balance", func(t *testing.T, w *walk) {
		for _, id := range []string{w.all, w.lite, w.events, w.batch} {
			b := object(w.result(id)["billing"])
			assert.Equal(t, sorted("mode", "billable_minutes", "detail", "amount", "balance"), names(b))
			assert.EqualValues(t, 1, b["billable_minutes"])
			assert.Equal(t, w.do("GET", "/account", nil).object(t)["balance"], b["balance"], "the current balance")
		}
	}},
	{"Billing detail: base, diarization and events when enabled; all numbers", func(t *testing.T, w *walk) {
		detail := func(id string) map[string]any {
			b := object(w.result(id)["billing"])
			d := object(b["detail"])
			assert.Equal(t, b["amount"], d["total"])
			for k, v := range d {
				assert.IsType(t, 0.0, v, k)
			}
			return d
		}
		base := []string{"base_price_per_hour", "base_amount", "subtotal", "total"}
		assert.Equal(t, sorted(slices.Concat(base, []string{"diarize_price_per_hour", "diarize_amount", "events_price_per_hour", "events_amount"})...), names(detail(w.all)))
		assert.Equal(t, sorted(slices.Clone(base)...), names(detail(w.lite)))
		assert.Equal(t, sorted(slices.Concat(base, []string{"events_price_per_hour", "events_amount"})...), names(detail(w.events)))
		assert.Equal(t, sorted(slices.Concat(base, []string{"batch_discount"})...), names(detail(w.batch)), "batch_discount only for batch tasks")
	}},
	{"Cost: (base + add-ons) / 60 × minutes, × batch_discount for batch tasks", func(t *testing.T, w *walk) {
		for id, want := range map[string]float64{
			w.all:   0.0133, // (0.60 + 0.10 + 0.10) / 60, rounded once to four digits
			w.lite:  0.0033,
			w.batch: 0.0017,
		} {
			d := object(object(w.result(id)["billing"])["detail"])
			sum := d["base_amount"].(float64)
			for _, k := range []string{"diarize_amount", "events_amount"} {
				if v, there := d[k].(float64); there {
					sum += v
				}
			}
			assert.InDelta(t, sum, d["subtotal"], 1e-9)
			assert.InDelta(t, want, d["total"], 1e-9)
		}
	}},

	// States
	{"States: an unrecoverable error (size, not found, not audio) is failed, final and never retried", func(t *testing.T, w *walk) {
		for _, id := range []string{w.refused, w.small, w.huge, w.garbage} {
			m := w.task(id)
			assert.Equal(t, "failed", m["status"])
			assert.NotNil(t, m["finished_at"])
			assert.Equal(t, 1, count(t, w.db, "SELECT attempt FROM tasks WHERE id = $1", id), m["error_message"])
		}
	}},
	{"States: repeated failures end in abandoned after 4 attempts ≡", func(t *testing.T, w *walk) {
		assert.Equal(t, "abandoned", w.task(w.abandoned)["status"])
		assert.Equal(t, 4, count(t, w.db, "SELECT attempt FROM tasks WHERE id = $1", w.abandoned))
	}},
	{"States: GET result is 404 in every state but done", func(t *testing.T, w *walk) {
		for _, id := range []string{w.refused, w.abandoned, w.waiting} {
			refusal(t, w.do("GET", "/tasks/"+id+"/result", nil), 404, "not_found")
		}
		refusal(t, w.idle.do("GET", "/tasks/"+w.idle.create(map[string]any{"audio_url": anywhere})+"/result", nil), 404, "not_found")
	}},
	{"States: DELETE in processing is 409", func(t *testing.T, w *walk) {
		id := w.idle.create(map[string]any{"audio_url": anywhere})
		refusal(t, w.idle.do("DELETE", "/tasks/"+id, nil), 409, "conflict")
		assert.Equal(t, "processing", w.idle.task(id)["status"])
	}},
	{"States: what failed costs nothing and holds nothing", func(t *testing.T, w *walk) {
		ledger := string(w.do("GET", "/billing/transactions?page_size=100", nil).body)
		for _, id := range []string{w.refused, w.abandoned, w.garbage} {
			assert.NotContains(t, ledger, id)
			assert.Zero(t, count(t, w.db, "SELECT COUNT(*) FROM holds WHERE task_id = $1", id))
		}
	}},

	// POST /tasks
	{"POST /tasks: one of audio_url and audio_base64, not both", func(t *testing.T, w *walk) {
		for _, body := range []any{map[string]any{}, map[string]any{"audio_filename": "a.wav"}, upload(w.audio, nil, "audio_url", anywhere), map[string]any{"audio_url": nil}, map[string]any{"audio_url": []string{anywhere}}} {
			refusal(t, w.idle.do("POST", "/tasks", body), 400, "invalid_request")
		}
	}},
	{"POST /tasks: audio_filename is required with audio_base64", func(t *testing.T, w *walk) {
		m := upload(w.audio, nil)
		delete(m, "audio_filename")
		a := w.idle.do("POST", "/tasks", m)
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, string(a.body), "audio_filename")
	}},
	{"POST /tasks: audio_filename defaults to the last segment of audio_url", func(t *testing.T, w *walk) {
		for u, want := range map[string]string{"http://1.1.1.1/x/talk.mp3?sig=1#t": "talk.mp3", "http://1.1.1.1/%E6%B5%8B%E8%AF%95.wav": "测试.wav"} {
			assert.Equal(t, want, w.idle.do("POST", "/tasks", map[string]any{"audio_url": u}).object(t)["audio_filename"], u)
		}
		assert.Equal(t, "mine.flac", w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "audio_filename": "mine.flac"}).object(t)["audio_filename"])
	}},
	{"POST /tasks: Base64 in the standard and the URL-safe alphabet", func(t *testing.T, w *walk) {
		data := append(slices.Clone(w.audio), 0xfb, 0xff, 0xfe)
		sum := md5.Sum(data)
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			id := w.idle.create(map[string]any{"audio_base64": e.EncodeToString(data), "audio_filename": "a.wav"})
			assert.Equal(t, hex.EncodeToString(sum[:]), w.idle.task(id)["audio_md5"])
		}
	}},
	{"POST /tasks: broken or empty Base64 is 400", func(t *testing.T, w *walk) {
		for _, text := range []string{"", "A", "not base64!", "AAAA=", "AA=A"} {
			refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_base64": text, "audio_filename": "a.wav"}), 400, "invalid_request")
		}
	}},
	{"POST /tasks: audio_url must be publicly reachable", func(t *testing.T, w *walk) {
		for _, u := range []string{
			"", "a.wav", "ftp://1.1.1.1/a", "file:///etc/passwd", "http://127.0.0.1/a.wav", "http://10.0.0.1/", "http://192.168.1.1/", "http://localhost/", "http://[::1]/",
			"http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest/meta-data/", "http://2130706433/", "http://0x7f.1/", "http://0/", "http://100.64.0.1/", "http://u:p@1.1.1.1/", "https://1.1.1.1:22/", "data:audio/wav,x",
		} {
			refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_url": u}), 400, "invalid_request")
		}
	}},
	{"POST /tasks: callback_url is checked like audio_url ≡", func(t *testing.T, w *walk) {
		a := w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "callback_url": "http://10.0.0.1/hook"})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, string(a.body), "callback_url")
	}},
	{"POST /tasks: unknown fields are 400 and name the nearest ≡", func(t *testing.T, w *walk) {
		a := w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "callbackurl": "x"})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, a.object(t)["error"], `"callback_url"`)
	}},
	{"POST /tasks: 402 insufficient_balance, counting what tasks in processing reserve", func(t *testing.T, w *walk) {
		poor := w.idle.account("poor", "0")
		refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere}, "X-API-Key", poor), 402, "insufficient_balance")
		w.idle.must("account", "credit", "poor", "0.02") // a minute of all three is 0.0133
		require.Equal(t, 201, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere}, "X-API-Key", poor).status)
		refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere}, "X-API-Key", poor), 402, "insufficient_balance")
		m := w.idle.do("GET", "/account", nil, "X-API-Key", poor).object(t)
		assert.EqualValues(t, 0.0133, m["held_amount"])
		assert.EqualValues(t, 0.0067, m["available_balance"])
	}},
	{"POST /tasks: 429 concurrency_limit_exceeded beyond concurrency_limit; batch tasks are exempt", func(t *testing.T, w *walk) {
		key := w.idle.account("two at once", "10")
		w.idle.must("account", "limits", "two at once", "--tps", "1000", "--burst", "1000")
		time.Sleep(250 * time.Millisecond)
		body := map[string]any{"audio_url": anywhere}
		for range 2 {
			require.Equal(t, 201, w.idle.do("POST", "/tasks", body, "X-API-Key", key).status)
		}
		refusal(t, w.idle.do("POST", "/tasks", body, "X-API-Key", key), 429, "concurrency_limit_exceeded")
		body["batch_mode"] = true
		assert.Equal(t, 201, w.idle.do("POST", "/tasks", body, "X-API-Key", key).status)
		m := w.idle.do("GET", "/account", nil, "X-API-Key", key).object(t)
		assert.EqualValues(t, 2, m["concurrency_limit"])
		assert.EqualValues(t, 2, m["active_tasks"])
		assert.EqualValues(t, 0, m["available_concurrency"])
		assert.EqualValues(t, 1, m["waiting_batch_tasks"])
	}},
	{"POST /tasks: the same Idempotency-Key and body give the first answer, another body 409 ≡", func(t *testing.T, w *walk) {
		body := `{"audio_url":"` + anywhere + `"}`
		first := w.idle.do("POST", "/tasks", body, "Idempotency-Key", "one")
		require.Equal(t, 201, first.status)
		again := w.idle.do("POST", "/tasks", body, "Idempotency-Key", "one")
		assert.Equal(t, 201, again.status)
		assert.Equal(t, string(first.body), string(again.body))
		refusal(t, w.idle.do("POST", "/tasks", body+" ", "Idempotency-Key", "one"), 409, "conflict")
	}},
	{"Limits: audio at most 5 hours: failed for good, or refused", func(t *testing.T, w *walk) {
		encode := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono", "-t", "18002", "-c:a", "flac", "-f", "flac", "-")
		long, err := encode.Output()
		if err != nil {
			t.Skipf("ffmpeg makes no recording of five hours here: %v", err)
		}
		m := upload(long, quick)
		m["audio_filename"] = "long.flac"
		task := w.wait(w.create(m))
		assert.Equal(t, "failed", task["status"])
		assert.Contains(t, task["error_message"], "18000")
	}},
	{"Limits: a request body over 200 MB is 413 ≡", func(t *testing.T, w *walk) {
		req, err := http.NewRequest("POST", w.url+"/tasks", http.NoBody)
		require.NoError(t, err)
		req.Header = http.Header{"X-Api-Key": {w.key}, "Content-Type": {"application/json"}, "Expect": {"100-continue"}}
		req.Body, req.ContentLength = &spaces{left: 201 << 20}, 201<<20
		res, err := client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		var m map[string]any
		require.NoError(t, json.NewDecoder(res.Body).Decode(&m))
		assert.Equal(t, 413, res.StatusCode)
		assert.Equal(t, "payload_too_large", m["error_code"])
	}},

	// POST /tasks/batch
	{"POST /tasks/batch: 400 and nothing created unless batch_mode is true ≡", func(t *testing.T, w *walk) {
		before := w.idle.do("GET", "/tasks", nil).object(t)["total"]
		for _, mode := range []any{false, nil, "true", 1} {
			refusal(t, w.idle.do("POST", "/tasks/batch", map[string]any{"audio_url": []string{anywhere}, "batch_mode": mode}), 400, "invalid_request")
		}
		refusal(t, w.idle.do("POST", "/tasks/batch", map[string]any{"audio_url": []string{anywhere}}), 400, "invalid_request")
		assert.Equal(t, before, w.idle.do("GET", "/tasks", nil).object(t)["total"])
	}},
	{"POST /tasks/batch: 1 to 100 URLs", func(t *testing.T, w *walk) {
		for n, status := range map[int]int{0: 400, 1: 201, 100: 201, 101: 400, 10_000: 400} {
			a := w.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{anywhere}, n)})
			require.Equal(t, status, a.status, "%d: %.300s", n, a.body)
			if status == 201 {
				assert.EqualValues(t, n, a.object(t)["created_count"])
			}
		}
	}},
	{"POST /tasks/batch: audio_filename is as long as audio_url", func(t *testing.T, w *walk) {
		urls := []string{anywhere, anywhere}
		for _, n := range [][]string{{"a.wav"}, {"a.wav", "b.wav", "c.wav"}, {}} {
			refusal(t, w.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "audio_filename": n}), 400, "invalid_request")
		}
		m := w.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "audio_filename": []string{"x.wav", "y.wav"}}).object(t)
		assert.Equal(t, "y.wav", object(object(list(m["results"])[1])["task"])["audio_filename"])
	}},
	{"POST /tasks/batch: items succeed or fail independently", func(t *testing.T, w *walk) {
		m := w.idle.do("POST", "/tasks/batch", map[string]any{
			"batch_mode": true, "options": map[string]any{"enable_diarize": false},
			"audio_url": []string{anywhere, "http://10.0.0.1/2.wav", "", anywhere},
		}).object(t)
		assert.Equal(t, sorted("results", "created_count", "failed_count"), names(m))
		assert.EqualValues(t, 2, m["created_count"])
		assert.EqualValues(t, 2, m["failed_count"])
		for i, r := range list(m["results"]) {
			item := object(r)
			assert.EqualValues(t, i, item["index"])
			if i == 0 || i == 3 {
				assert.Equal(t, sorted("index", "audio_url", "success", "task"), names(item))
				assert.Equal(t, true, item["success"])
				assert.Equal(t, false, object(object(item["task"])["options"])["enable_diarize"], "options are shared")
				assert.Len(t, item["task"], 8)
			} else {
				assert.Equal(t, sorted("index", "audio_url", "success", "error"), names(item))
				assert.Equal(t, false, item["success"])
				assert.IsType(t, "", item["error"])
			}
		}
	}},
	{"POST /tasks/batch: exhausted balance does not affect the items before; status is 201", func(t *testing.T, w *walk) {
		key := w.idle.account("some batch", "0.02") // half price: 0.0067 each
		a := w.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{anywhere}, 4)}, "X-API-Key", key)
		require.Equal(t, 201, a.status)
		m := a.object(t)
		assert.EqualValues(t, 2, m["created_count"])
		assert.EqualValues(t, 2, m["failed_count"])
		assert.Contains(t, object(list(m["results"])[3])["error"], "balance")
	}},

	// GET /tasks
	{"GET /tasks: tasks, total, page (1) and page_size (20) by default", func(t *testing.T, w *walk) {
		m := w.idle.do("GET", "/tasks", nil).object(t)
		assert.Equal(t, sorted("tasks", "total", "page", "page_size"), names(m))
		assert.EqualValues(t, 1, m["page"])
		assert.EqualValues(t, 20, m["page_size"])
		assert.Len(t, m["tasks"], 20)
		assert.Greater(t, m["total"], 100.0)
		assert.Len(t, w.idle.do("GET", "/tasks?page_size=100", nil).object(t)["tasks"], 100)
	}},
	{"GET /tasks: entries carry exactly seven fields", func(t *testing.T, w *walk) {
		for _, e := range list(w.do("GET", "/tasks", nil).object(t)["tasks"]) {
			assert.Equal(t, sorted("id", "status", "audio_filename", "audio_source_type", "created_at", "updated_at", "finished_at"), names(object(e)))
		}
	}},
	{"GET /tasks: status filters, another value is 400", func(t *testing.T, w *walk) {
		for status, least := range map[string]int{"processing": 0, "done": 8, "failed": 5, "abandoned": 1} {
			entries := list(w.do("GET", "/tasks?page_size=100&status="+status, nil).object(t)["tasks"])
			assert.GreaterOrEqual(t, len(entries), least)
			for _, e := range entries {
				assert.Equal(t, status, object(e)["status"])
			}
		}
		for _, status := range []string{"pending", "DONE", "", "done%00", "%ff"} {
			refusal(t, w.do("GET", "/tasks?status="+status, nil), 400, "invalid_request")
		}
	}},
	{"GET /tasks: newest first, each once over all pages ≡", func(t *testing.T, w *walk) {
		seen, last, total := map[any]bool{}, "9", 0.0
		for page := 1; ; page++ {
			m := w.do("GET", fmt.Sprintf("/tasks?page=%d&page_size=3", page), nil).object(t)
			assert.EqualValues(t, page, m["page"])
			assert.EqualValues(t, 3, m["page_size"])
			total = m["total"].(float64)
			if len(list(m["tasks"])) == 0 {
				break
			}
			for _, e := range list(m["tasks"]) {
				at := object(e)["created_at"].(string) + object(e)["id"].(string)
				assert.Less(t, at, last)
				last = at
				assert.False(t, seen[object(e)["id"]])
				seen[object(e)["id"]] = true
			}
		}
		assert.EqualValues(t, total, len(seen))
	}},
	{"GET /tasks and transactions: page from 1, page_size up to 100, else 400", func(t *testing.T, w *walk) {
		for _, path := range []string{"/tasks", "/billing/transactions"} {
			for _, q := range []string{"page=0", "page=-1", "page=x", "page=1.5", "page=99999999999999999999", "page=", "page=1&page=2", "page_size=0", "page_size=101", "page=%zz"} {
				refusal(t, w.do("GET", path+"?"+q, nil), 400, "invalid_request")
			}
		}
	}},

	// GET /tasks/:id, result, DELETE
	{"404 for a task that does not exist", func(t *testing.T, w *walk) {
		for _, id := range []string{nobodysTask, "x", "0", strings.Repeat("a", 5000), "%00", "%ff", "..%2f.."} {
			refusal(t, w.do("GET", "/tasks/"+id, nil), 404, "not_found")
			refusal(t, w.do("GET", "/tasks/"+id+"/result", nil), 404, "not_found")
			refusal(t, w.do("DELETE", "/tasks/"+id, nil), 404, "not_found")
		}
	}},
	{"T14: another account gets 403 for a task, its result and its deletion, and lists none of it", func(t *testing.T, w *walk) {
		key := w.account("someone else", "1")
		w.must("account", "limits", "someone else", "--tps", "1000", "--burst", "1000")
		n := 0
		for _, id := range []string{w.all, w.refused, w.abandoned, w.waiting} {
			for _, q := range [][2]string{{"GET", ""}, {"GET", "/result"}, {"DELETE", ""}} {
				refusal(t, w.do(q[0], "/tasks/"+id+q[1], nil, "X-API-Key", key), 403, "forbidden")
				n++
			}
		}
		assert.EqualValues(t, 0, w.do("GET", "/tasks", nil, "X-API-Key", key).object(t)["total"])
		m := w.do("GET", "/billing/transactions", nil, "X-API-Key", key).object(t)
		assert.EqualValues(t, 1, m["total"], "its own credit")
		assert.Equal(t, "done", w.task(w.all)["status"], "still there")
		t.Logf("T14: %d requests for another's tasks, %d times 403, 0 rows shown", n, n)
	}},
	{"DELETE: 200 with message; task and result are gone, the ledger stays", func(t *testing.T, w *walk) {
		id := w.create(upload(w.audio, quick))
		w.wait(id)
		a := w.do("DELETE", "/tasks/"+id, nil)
		require.Equal(t, 200, a.status)
		assert.Equal(t, []string{"message"}, names(a.object(t)))
		assert.IsType(t, "", a.object(t)["message"])
		for _, suffix := range []string{"", "/result"} {
			refusal(t, w.do("GET", "/tasks/"+id+suffix, nil), 404, "not_found")
		}
		refusal(t, w.do("DELETE", "/tasks/"+id, nil), 404, "not_found")
		assert.Contains(t, string(w.do("GET", "/billing/transactions", nil).body), id)
		assert.Eventually(t, func() bool {
			return !slices.ContainsFunc(files(t, w.data), func(name string) bool { return strings.Contains(name, id) })
		}, patience, 50*time.Millisecond, "audio and result are deleted")
	}},

	// Account
	{"GET /account: exactly the documented fields", func(t *testing.T, w *walk) {
		assert.Equal(t, sorted("balance", "held_amount", "resource_pack_equivalent", "available_balance", "tier", "concurrency_limit", "active_tasks", "available_concurrency", "waiting_batch_tasks", "tps_limit", "tps_burst"),
			names(w.do("GET", "/account", nil).object(t)))
	}},
	{"GET /account: available_balance = balance + resource_pack_equivalent − held_amount; packs raise concurrency", func(t *testing.T, w *walk) {
		key := w.idle.account("packed", "5")
		w.idle.must("account", "pack", "packed", "3", "--expires", "24h", "--concurrency", "7")
		require.Equal(t, 201, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "batch_mode": true}, "X-API-Key", key).status)
		m := w.idle.do("GET", "/account", nil, "X-API-Key", key).object(t)
		assert.EqualValues(t, 5, m["balance"])
		assert.EqualValues(t, 3, m["resource_pack_equivalent"])
		assert.EqualValues(t, 0.0067, m["held_amount"])
		assert.EqualValues(t, 7.9933, m["available_balance"])
		assert.EqualValues(t, 7, m["concurrency_limit"], "the higher of tier default and pack")
	}},
	{"GET /account: tiers 1 to 5 have their documented limits ≡", func(t *testing.T, w *walk) {
		key := w.idle.account("tiers", "1")
		for i, n := range []float64{50, 20, 10, 5, 2} {
			tier := 5 - i
			w.idle.must("account", "tier", "tiers", strconv.Itoa(tier))
			m := w.idle.do("GET", "/account", nil, "X-API-Key", key).object(t)
			assert.EqualValues(t, tier, m["tier"])
			assert.Equal(t, []any{n, n, 2 * n, n}, []any{m["concurrency_limit"], m["tps_limit"], m["tps_burst"], m["available_concurrency"]})
		}
		_, err := w.idle.run("account", "tier", "tiers", "6")
		assert.Error(t, err)
	}},

	// Classes, pricing, transactions
	{"GET /audio-event-classes: 521 records of six fields in 8 categories", func(t *testing.T, w *walk) {
		var classes []map[string]any
		require.NoError(t, json.Unmarshal(w.do("GET", "/audio-event-classes", nil).body, &classes))
		require.Len(t, classes, 521)
		categories := map[any]bool{}
		for i, c := range classes {
			assert.Equal(t, sorted("index", "mid", "display_name", "zh_name", "category", "category_zh"), names(c))
			assert.EqualValues(t, i, c["index"])
			categories[c["category"]] = true
		}
		assert.Len(t, categories, 8)
	}},
	{"GET /pricing: public, Cache-Control of 5 minutes, exactly the documented fields and default prices", func(t *testing.T, w *walk) {
		a := w.do("GET", "/pricing", nil, "X-API-Key", "")
		require.Equal(t, 200, a.status)
		assert.Equal(t, "public, max-age=300", a.header.Get("Cache-Control"))
		m := a.object(t)
		assert.Regexp(t, stampForm, m["updated_at"])
		delete(m, "updated_at")
		assert.Equal(t, map[string]any{"standard_price_per_hour": 0.6, "zh_lite_price_per_hour": 0.2, "diarize_price_per_hour": 0.1, "audio_events_price_per_hour": 0.1, "batch_discount": 0.5}, m)
	}},
	{"A price change does not touch tasks that exist, and holds for those that come", func(t *testing.T, w *walk) {
		key := w.idle.account("prices", "5")
		w.idle.must("account", "limits", "prices", "--tps", "1000", "--burst", "1000")
		time.Sleep(250 * time.Millisecond)
		held := func() any { return w.idle.do("GET", "/account", nil, "X-API-Key", key).object(t)["held_amount"] }
		submit := func() {
			require.Equal(t, 201, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": quick}, "X-API-Key", key).status)
		}
		submit()
		before := held()
		w.idle.must("pricing", "set", "--standard", "6", "--zh-lite", "6")
		defer w.idle.must("pricing", "set", "--standard", "0.6", "--zh-lite", "0.2")
		assert.Equal(t, before, held())
		submit()
		assert.InDelta(t, before.(float64)+0.1, held(), 1e-9)
	}},
	{"GET /billing/transactions: newest first, with the record's fields and forms", func(t *testing.T, w *walk) {
		w.must("account", "refund", "local", "1.5")
		m := w.do("GET", "/billing/transactions?page_size=100", nil).object(t)
		assert.Equal(t, sorted("transactions", "total", "page", "page_size"), names(m))
		records := list(m["transactions"])
		assert.EqualValues(t, len(records), m["total"])
		last, types := "9", map[any]int{}
		for _, e := range records {
			r := object(e)
			assert.Equal(t, sorted("id", "user_id", "task_id", "type", "amount", "balance_before", "balance_after", "description", "created_at"), names(r))
			assert.Regexp(t, uuidForm, r["id"])
			assert.Regexp(t, uuidForm, r["user_id"])
			for _, f := range []string{"amount", "balance_before", "balance_after"} {
				assert.Regexp(t, moneyForm, r[f])
			}
			assert.Regexp(t, stampForm, r["created_at"])
			assert.LessOrEqual(t, r["created_at"], last)
			last = r["created_at"].(string)
			types[r["type"]]++
			negative := strings.HasPrefix(r["amount"].(string), "-")
			switch r["type"] {
			case "deduction":
				assert.True(t, negative)
				assert.Regexp(t, uuidForm, r["task_id"])
			case "recharge":
				assert.False(t, negative)
				assert.Nil(t, r["task_id"])
			case "refund":
				assert.Equal(t, "-1.5000", r["amount"])
				assert.Nil(t, r["task_id"])
			}
		}
		assert.Equal(t, 1, types["recharge"])
		assert.Equal(t, 1, types["refund"])
		assert.GreaterOrEqual(t, types["deduction"], 8)
	}},

	// Authentication
	{"API key: asr_ and 44 characters", func(t *testing.T, w *walk) { assert.Regexp(t, `^asr_[0-9A-Za-z]{40}$`, w.key) }},
	{"T15: missing, malformed, foreign and revoked keys give one and the same 401", func(t *testing.T, w *walk) {
		revoked := w.must("key", "create", "local")
		require.Equal(t, 200, w.do("GET", "/account", nil, "X-API-Key", revoked).status)
		for line := range strings.Lines(w.must("key", "list", "local")) {
			if fields := strings.Fields(line); strings.HasPrefix(revoked, strings.TrimSuffix(fields[1], "…")) {
				w.must("key", "revoke", fields[0])
			}
		}
		texts := map[string]bool{}
		n := 0
		for name, key := range map[string]string{
			"missing": "", "revoked": revoked, "prefix alone": "asr_", "unknown": "asr_" + strings.Repeat("0", 40), "upper case": strings.ToUpper(w.key), "lower case": strings.ToLower(w.key),
			"shorter": w.key[:43], "longer": w.key + "0", "quoted": `"` + w.key + `"`, "sql": "asr_' OR '1'='1", "long": strings.Repeat("a", 50_000), "of the other server": w.idle.key,
		} {
			for _, path := range []string{"/account", "/tasks"} {
				a := w.do("GET", path, nil, "X-API-Key", key)
				refusal(t, a, 401, "unauthorized")
				texts[string(a.body)] = true
				assert.Less(t, len(a.body), 500, name)
				n++
			}
		}
		assert.Len(t, texts, 1)
		huge := w.do("GET", "/account", nil, "X-API-Key", strings.Repeat("a", 1<<20))
		assert.Equal(t, 431, huge.status, "the header is refused before a key is looked for")
		t.Logf("T15: %d requests with wrong keys, all 401 with one text", n)
	}},
	{"Every endpoint but GET /pricing needs authentication", func(t *testing.T, w *walk) {
		for _, q := range [][2]string{
			{"GET", "/tasks"},
			{"POST", "/tasks"},
			{"POST", "/tasks/batch"},
			{"GET", "/tasks/" + w.all},
			{"GET", "/tasks/" + w.all + "/result"},
			{"DELETE", "/tasks/" + w.all},
			{"GET", "/account"},
			{"GET", "/audio-event-classes"},
			{"GET", "/billing/transactions"},
		} {
			refusal(t, w.do(q[0], q[1], nil, "X-API-Key", ""), 401, "unauthorized")
		}
	}},
	{"Bearer token: a JWT from the login, good for an hour; 5 failures a minute, then 429 ≡", func(t *testing.T, w *walk) {
		w.must("user", "create", "local", "anna", "--password", "correct horse")
		a := w.do("POST", "/auth/login", map[string]any{"username": "anna", "password": "correct horse"}, "X-API-Key", "")
		require.Equal(t, 200, a.status, "%s", a.body)
		m := a.object(t)
		assert.Equal(t, sorted("access_token", "token_type", "expires_in"), names(m))
		assert.Equal(t, "Bearer", m["token_type"])
		assert.EqualValues(t, 3600, m["expires_in"])
		token := m["access_token"].(string)
		assert.Equal(t, w.do("GET", "/account", nil).object(t)["balance"], w.do("GET", "/account", nil, "X-API-Key", "", "Authorization", "Bearer "+token).object(t)["balance"])
		parts := strings.Split(token, ".")
		require.Len(t, parts, 3)
		none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
		for _, wrong := range []string{token[:len(token)-2], none, parts[0] + "." + parts[1] + ".", "x"} {
			refusal(t, w.do("GET", "/account", nil, "X-API-Key", "", "Authorization", "Bearer "+wrong), 401, "unauthorized")
		}
		for i := range 7 {
			a := w.do("POST", "/auth/login", map[string]any{"username": "anna", "password": "wrong"}, "X-API-Key", "")
			if i < 5 {
				refusal(t, a, 401, "unauthorized")
			} else {
				refusal(t, a, 429, "rate_limited")
				assert.Regexp(t, `^\d+$`, a.header.Get("Retry-After"))
			}
		}
	}},

	// Events
	{"Callback: one POST of application/json with five fields for done, failed and abandoned", func(t *testing.T, w *walk) {
		for id, status := range map[string]string{w.all: "done", w.byURL: "done", w.refused: "failed", w.abandoned: "abandoned"} {
			require.Eventually(t, func() bool { return len(w.out.callbacks(id)) == 1 }, patience, 20*time.Millisecond, status)
			c := w.out.callbacks(id)[0]
			assert.Equal(t, "application/json", c.header.Get("Content-Type"))
			var m map[string]any
			require.NoError(t, json.Unmarshal(c.body, &m))
			assert.Equal(t, sorted("task_id", "status", "created_at", "finished_at", "error_message"), names(m))
			assert.Equal(t, id, m["task_id"])
			assert.Equal(t, status, m["status"])
			task := w.task(id)
			for _, f := range []string{"created_at", "finished_at", "error_message"} {
				assert.Equal(t, task[f], m[f], f)
			}
		}
	}},
	{"Callback: none without callback_url, and none for an error that will be retried", func(t *testing.T, w *walk) {
		assert.Empty(t, w.out.callbacks(w.lite))
		assert.Empty(t, w.out.callbacks(w.waiting))
	}},
	{"Callback: X-Signature is the HMAC-SHA256 of the raw body in lowercase hex; absent without a secret", func(t *testing.T, w *walk) {
		for _, id := range []string{w.all, w.refused, w.abandoned} {
			c := w.out.callbacks(id)[0]
			mac := hmac.New(sha256.New, []byte("a secret"))
			mac.Write(c.body)
			assert.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), c.header.Get("X-Signature"))
		}
		assert.Empty(t, w.out.callbacks(w.byURL)[0].header.Values("X-Signature"))
	}},
	{"Callback: 4 attempts, 1, 5 and 30 s after the failure before, with the same bytes; then given up, and resent by an operator", func(t *testing.T, w *walk) {
		w.out.mu.Lock()
		w.out.fail["/deaf"] = true
		w.out.mu.Unlock()
		id := w.create(upload(w.audio, quick, "callback_url", w.out.URL+"/deaf", "callback_secret", "s"))
		for i, planned := range callbackPauses {
			require.Eventually(t, func() bool {
				return count(t, w.db, "SELECT COUNT(*) FROM callbacks WHERE task_id = $1 AND phase = 'queued' AND attempts = $2", id, i+1) == 1 || len(w.out.callbacks(id)) > i+1
			}, patience, 2*time.Millisecond)
			if plan := count(t, w.db, "SELECT COALESCE((SELECT next_at - updated_at FROM callbacks WHERE task_id = $1 AND phase = 'queued' AND attempts = $2), -1)", id, i+1); plan >= 0 { // else the next attempt has begun
				assert.EqualValues(t, planned*1e6, plan, "planned after attempt %d", i+1)
			}
			if !realTime {
				change(t, w.db, "UPDATE callbacks SET next_at = 0 WHERE task_id = $1 AND phase = 'queued'", id)
			}
		}
		require.Eventually(t, func() bool {
			return count(t, w.db, "SELECT COUNT(*) FROM callbacks WHERE task_id = $1 AND phase = 'given_up'", id) == 1
		}, patience, 20*time.Millisecond)
		got := w.out.callbacks(id)
		require.Len(t, got, 4)
		var pauses []string
		for i := 1; i < 4; i++ {
			assert.Equal(t, got[0].body, got[i].body)
			assert.Equal(t, got[0].header.Get("X-Signature"), got[i].header.Get("X-Signature"))
			assert.Equal(t, got[0].header.Get("Webhook-Id"), got[i].header.Get("Webhook-Id"))
			pause := got[i].at.Sub(got[i-1].at).Seconds()
			pauses = append(pauses, fmt.Sprintf("%.1f s", pause))
			if realTime {
				assert.GreaterOrEqual(t, pause, callbackPauses[i-1])
			}
		}
		assert.Contains(t, w.must("callback", "list"), id)
		w.out.mu.Lock()
		w.out.fail["/deaf"] = false
		w.out.mu.Unlock()
		w.must("callback", "resend", id)
		require.Eventually(t, func() bool { return len(w.out.callbacks(id)) == 5 }, patience, 20*time.Millisecond)
		t.Logf("T10: 4 attempts with pauses of %v (planned %v s, waited for: %v), then given up; the fifth after a resend", pauses, callbackPauses, realTime)
	}},

	// Errors and limits
	{"Errors: unknown paths are 404 and wrong methods 405, in JSON ≡", func(t *testing.T, w *walk) {
		for _, p := range []string{"", "/", "/nope", "/tasks/", "/tasks/a/b/c", "/tasks/" + w.all + "/result/"} {
			refusal(t, w.do("GET", p, nil), 404, "not_found")
		}
		for _, p := range []string{"/tasks", "/tasks/batch", "/tasks/" + w.all, "/account", "/pricing", "/auth/login"} {
			a := w.do("PATCH", p, nil)
			refusal(t, a, 405, "invalid_request")
			assert.NotEmpty(t, a.header.Get("Allow"))
		}
	}},
	{"T16: rate limit: tps_burst at once, then tps_limit a second; 429 rate_limited with Retry-After", func(t *testing.T, w *walk) {
		key := w.account("hasty", "1")
		w.must("account", "limits", "hasty", "--tps", "1", "--burst", "5")
		time.Sleep(300 * time.Millisecond)
		passed, limited := 0, 0
		begun := time.Now()
		var last answer
		for range 30 {
			a := w.do("GET", "/account", nil, "X-API-Key", key)
			if a.status == 200 {
				passed++
				continue
			}
			refusal(t, a, 429, "rate_limited")
			limited++
			last = a
		}
		elapsed := time.Since(begun)
		assert.GreaterOrEqual(t, passed, 5)
		assert.LessOrEqual(t, passed, 5+int(elapsed.Seconds()+1))
		require.NotZero(t, limited, "30 requests took %s", elapsed)
		wait, err := strconv.Atoi(last.header.Get("Retry-After"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, wait, 1)
		time.Sleep(time.Duration(wait) * time.Second)
		assert.Equal(t, 200, w.do("GET", "/account", nil, "X-API-Key", key).status, "after Retry-After")
		assert.Equal(t, 200, w.do("GET", "/account", nil).status, "another account has its own bucket")
		t.Logf("T16: burst 5, 1 a second: %d of 30 passed in %.1f s, Retry-After %d s", passed, elapsed.Seconds(), wait)
	}},
	{"T21: whatever a stranger sends is answered with a 4xx in JSON with error", func(t *testing.T, w *walk) {
		n, statuses := 0, map[int]int{}
		broke := w.idle.account("broke", "0")
		w.idle.must("account", "limits", "broke", "--tps", "100000", "--burst", "100000")
		time.Sleep(250 * time.Millisecond)
		send := func(method, path string, body any, headers ...string) {
			t.Helper()
			a := w.idle.do(method, path, body, append([]string{"X-API-Key", broke}, headers...)...)
			n++
			statuses[a.status]++
			if assert.True(t, a.status >= 400 && a.status < 500, "%s %s %.100v: %d %.200s", method, path, body, a.status, a.body) {
				a.code(t)
				assert.Less(t, len(a.body), 2000)
			}
		}
		for _, v := range oddValues {
			for _, f := range []string{"audio_url", "audio_base64", "audio_filename", "options", "callback_url", "callback_secret", "batch_mode", "allow_training", "unknown", ""} {
				send("POST", "/tasks", `{"`+f+`":`+v+`}`)
				if f != "audio_url" {
					send("POST", "/tasks", `{"audio_url":"`+anywhere+`","`+f+`":`+v+`}`)
				}
				if f != "batch_mode" && f != "audio_url" {
					a := w.idle.do("POST", "/tasks/batch", `{"batch_mode":true,"audio_url":["`+anywhere+`"],"`+f+`":`+v+`}`, "X-API-Key", broke)
					n++
					statuses[a.status]++
					assert.True(t, a.status == 400 || a.status == 201 && bytes.Contains(a.body, []byte(`"created_count":0`)), "%s %.60s: %d %.200s", f, v, a.status, a.body)
				}
			}
			for name := range optionDefaults {
				send("POST", "/tasks", `{"audio_url":"`+anywhere+`","options":{"`+name+`":`+v+`}}`)
			}
			for _, p := range []string{"/tasks", "/tasks/batch", "/auth/login"} {
				send("POST", p, v)
			}
		}
		send("POST", "/tasks", &spaces{left: 4 << 20})
		send("POST", "/tasks", `{"audio_url":"`+anywhere+`"} trailing`)
		send("POST", "/tasks", `{}`, "Content-Encoding", "gzip")
		send("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{anywhere}, 10_000)})
		assert.EqualValues(t, 0, w.idle.do("GET", "/tasks", nil, "X-API-Key", broke).object(t)["total"])
		t.Logf("T21: %d strange requests, statuses %v, no 5xx", n, statuses)
	}},

	// Operation
	{"OpenAPI 3.1 document, readable page, health, readiness and metrics ≡", func(t *testing.T, w *walk) {
		assert.Contains(t, w.do("GET", "//openapi.json", nil).object(t)["openapi"], "3.1")
		for _, p := range []string{"//docs", "//healthz", "//readyz", "//metrics"} {
			assert.Equal(t, 200, w.do("GET", p, nil).status, p)
		}
		metrics := string(w.do("GET", "//metrics", nil).body)
		for _, name := range []string{`otograph_queue_waiting{lane="tasks"}`, `otograph_http_requests_total`, `otograph_tasks{status="done"}`} {
			assert.Contains(t, metrics, name)
		}
		assert.Eventually(t, func() bool { // a worker writes its numbers down every few seconds
			return bytes.Contains(w.do("GET", "//metrics", nil).body, []byte(`otograph_real_time_factor_count{tier="standard",worker="`))
		}, patience, 100*time.Millisecond, "the workers' numbers are on the page")
	}},
	{"DELETE of a task that waits for a retry cancels it ≡", func(t *testing.T, w *walk) {
		require.Equal(t, 200, w.do("DELETE", "/tasks/"+w.waiting, nil).status)
		refusal(t, w.do("GET", "/tasks/"+w.waiting, nil), 404, "not_found")
		assert.Zero(t, count(t, w.db, "SELECT COUNT(*) FROM holds WHERE task_id = $1", w.waiting))
	}},
	{"Logs carry ids and no secrets", func(t *testing.T, w *walk) {
		log := w.logged()
		assert.Contains(t, log, w.all)
		for _, secret := range []string{w.key, w.idle.key, "a secret", "correct horse"} {
			assert.NotContains(t, log, secret)
		}
		assert.NotContains(t, log, "panic")
	}},
}

// callbackPauses are the specification's, in seconds.
var callbackPauses = []float64{1, 5, 30}

// oddValues are JSON values that are seldom the right ones.
var oddValues = []string{
	`0`, `-1`, `1e308`, `1e400`, `99999999999999999999999999`, `"x"`, `" "`, `"\u0000"`, `"\ud800"`, "\"\xff\"", `"` + strings.Repeat("a", 10_000) + `"`, `[[]]`, `[null]`,
	`[1,"a"]`, `{"a":{"a":{"a":{}}}}`, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000),
	`NaN`, `Infinity`, `0x10`, `01`, `'x'`, `undefined`, `True`, ``, `null`,
}

// spaces is a body of nothing but spaces.
type spaces struct{ left int }

func (s *spaces) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), s.left)
	for i := range n {
		p[i] = ' '
	}
	s.left -= n
	return n, nil
}

func (s *spaces) Close() error { return nil }
