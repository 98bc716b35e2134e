package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/accounts"
)

// statement is one thing that the interface specification (or, marked with ≡,
// a documented decision on what it leaves open) says, and its check.
type statement struct {
	says  string
	check func(t *testing.T, s *specWorld)
}

// specWorld is a world in which some tasks have run.
type specWorld struct {
	*world
	idle      *world // another service, where no worker runs
	all       string // done, all capabilities, by Base64
	asr       string // done, transcription alone
	eventsAlo string // done, events alone
	lite      string // done, optimized tier
	segment   string // done, timestamp_level=segment
	byURL     string // done, by URL
	batch     string // done, batch
	refused   string // failed for good
	abandoned string // retries exhausted
	running   string // processing
}

// TestSpecification walks through the specification statement by statement, on
// both kinds of database where they are installed.
func TestSpecification(t *testing.T) {
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			s := newSpec(t, database)
			seen := map[string]bool{}
			for _, st := range statements {
				require.False(t, seen[st.says], "twice: %s", st.says)
				seen[st.says] = true
				t.Run(st.says, func(t *testing.T) {
					before := s.t
					s.t, s.idle.t = t, t
					defer func() { s.t, s.idle.t = before, before }()
					st.check(t, s)
				})
			}
			t.Logf("%d statements on %s", len(statements), database)
		})
	}
}

func newSpec(t *testing.T, database string) *specWorld {
	s := &specWorld{world: newWorldOn(t, openDatabase(t, database)), idle: newWorldOn(t, openDatabase(t, database))}
	s.work()
	callback := map[string]any{"callback_url": s.media.url + "/callback", "callback_secret": "shh"}
	add := func(m map[string]any, more map[string]any) map[string]any {
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	s.all = s.create(add(upload(nil), callback))
	s.asr = s.create(upload(map[string]any{"enable_diarize": false, "enable_audio_events": false}))
	s.eventsAlo = s.create(upload(map[string]any{"enable_asr": false, "enable_diarize": false}))
	s.lite = s.create(upload(map[string]any{"optimize": true}))
	s.segment = s.create(upload(map[string]any{"timestamp_level": "segment"}))
	s.byURL = s.create(map[string]any{"audio_url": s.media.url + "/talk.wav?sig=1", "callback_url": s.media.url + "/callback"})
	s.batch = s.create(map[string]any{"audio_url": s.media.url + "/later.wav", "batch_mode": true})
	s.refused = s.create(add(upload(nil), add(map[string]any{"audio_filename": "broken.wav"}, callback)))
	s.abandoned = s.create(add(upload(nil), add(map[string]any{"audio_filename": "unlucky.wav"}, callback)))
	for _, id := range []string{s.all, s.asr, s.eventsAlo, s.lite, s.segment, s.byURL, s.batch, s.refused, s.abandoned} {
		s.final(id)
	}
	s.running = s.create(add(upload(nil), map[string]any{"audio_filename": "slow.wav"}))
	return s
}

func (s *specWorld) result(id string) map[string]any {
	s.t.Helper()
	a := s.do("GET", "/tasks/"+id+"/result", nil)
	require.Equal(s.t, 200, a.status, "%s", a.body)
	return a.object(s.t)
}

func keys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func sorted(names ...string) []string { slices.Sort(names); return names }

// refusedWith asks for a refusal with a status and a code.
func (s *specWorld) refusedWith(a answer, status int, code string) {
	s.t.Helper()
	assert.Equal(s.t, status, a.status, "%s", a.body)
	assert.Equal(s.t, code, a.code(s.t))
}

func (s *specWorld) bad(body any) {
	s.t.Helper()
	s.refusedWith(s.do("POST", "/tasks", body), 400, codeInvalidRequest)
}

func (s *specWorld) option(name string, v any) answer {
	return s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/a.wav", "options": map[string]any{name: v}})
}

var (
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

const unknownTask = "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"

// checkBounds tries an option at its bounds, where it is taken, and beyond.
func checkBounds(name string, low, high, below, above any) func(*testing.T, *specWorld) {
	return func(t *testing.T, s *specWorld) {
		for _, v := range []any{low, high} {
			a := s.option(name, v)
			require.Equal(t, 201, a.status, "%v: %s", v, a.body)
			assert.EqualValues(t, v, a.object(t)["options"].(map[string]any)[name])
		}
		for _, v := range []any{below, above, "x", []any{}} {
			a := s.option(name, v)
			s.refusedWith(a, 400, codeInvalidRequest)
			assert.Contains(t, a.object(t)["error"], name)
		}
	}
}

// defaults are the specification's, as JSON.
var defaults = map[string]string{
	"enable_asr": "true", "enable_diarize": "true", "enable_audio_events": "true", "optimize": "null", "timestamp_level": `"word"`,
	"asr_language": "null", "asr_beam_size": "5", "asr_temperature": "0", "asr_best_of": "null", "hotwords": "null", "initial_prompt": "null",
	"vad_threshold": "0.35", "vad_min_speech_ms": "250", "vad_min_silence_ms": "100", "vad_speech_pad_ms": "30", "no_speech_threshold": "0.6",
	"num_speakers": "null", "min_speakers": "1", "max_speakers": "10", "diarize_min_segment_sec": "0.5", "diarize_single_speaker_threshold": "0.05",
	"audio_events_threshold": "0.3", "audio_events_classes": "null",
}

// statements is the list. It follows the order of the specification.
var statements = []statement{
	// General
	{"All paths are relative to a base URL that ends with /v1", func(t *testing.T, s *specWorld) {
		assert.Equal(t, 200, s.send("GET", "/v1/pricing", nil, nil).status)
		assert.Equal(t, 404, s.send("GET", "/pricing", nil, nil).status)
		assert.Equal(t, 404, s.send("GET", "/v2/pricing", nil, nil).status)
	}},
	{"All response bodies are application/json", func(t *testing.T, s *specWorld) {
		for _, p := range []string{"/account", "/tasks", "/pricing", "/audio-event-classes", "/billing/transactions", "/tasks/" + s.all, "/tasks/" + s.all + "/result", "/tasks/x"} {
			assert.Equal(t, "application/json", s.do("GET", p, nil).header.Get("Content-Type"), p)
		}
	}},
	{"All request bodies are application/json; another type is 415 ≡", func(t *testing.T, s *specWorld) {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "application/json; charset=latin1", ";;"} {
			for _, p := range []string{"/tasks", "/tasks/batch"} {
				s.refusedWith(s.do("POST", p, "{}", with("Content-Type", kind)), 415, codeInvalidRequest)
			}
		}
		assert.Equal(t, 201, s.idle.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav"}`, with("Content-Type", "Application/JSON; Charset=UTF-8")).status)
		s.refusedWith(s.idle.do("POST", "/tasks", `{}`, with("Content-Encoding", "gzip")), 415, codeInvalidRequest)
	}},
	{"The creation call returns at once with a task that is processing", func(t *testing.T, s *specWorld) {
		a := s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/x.wav"})
		require.Equal(t, 201, a.status)
		assert.Equal(t, "processing", a.object(t)["status"])
	}},
	{"The client polls the task until it is done and fetches the result", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "done", s.task(s.all)["status"])
		assert.Equal(t, s.all, s.result(s.all)["task_id"])
	}},

	// Task
	{"Task: id is a UUID", func(t *testing.T, s *specWorld) { assert.Regexp(t, uuidForm, s.task(s.all)["id"]) }},
	{"Task: GET has exactly the documented fields", func(t *testing.T, s *specWorld) {
		want := sorted("id", "status", "audio_filename", "audio_source_type", "audio_size", "audio_md5", "allow_training", "error_message", "options", "created_at", "updated_at", "finished_at")
		for _, id := range []string{s.all, s.byURL, s.refused, s.abandoned, s.running} {
			assert.Equal(t, want, keys(s.task(id)))
		}
	}},
	{"Task: audio_filename includes the extension", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "silence.wav", s.task(s.all)["audio_filename"])
	}},
	{"Task: audio_source_type is url for URL submissions, base64 for the others ≡", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "url", s.task(s.byURL)["audio_source_type"])
		assert.Equal(t, "base64", s.task(s.all)["audio_source_type"])
	}},
	{"Task: audio_size is in bytes, and null in a URL task until it is fetched ≡", func(t *testing.T, s *specWorld) {
		assert.EqualValues(t, len(wav(2)), s.task(s.all)["audio_size"])
		assert.EqualValues(t, len(wav(2)), s.task(s.byURL)["audio_size"])
		a := s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/a.wav"}).object(t)
		v, there := a["audio_size"]
		assert.True(t, there)
		assert.Nil(t, v)
	}},
	{"Task: audio_md5 is the MD5 of the original audio, 32 hex characters", func(t *testing.T, s *specWorld) {
		sum := md5.Sum(wav(2))
		for _, id := range []string{s.all, s.byURL, s.running} {
			assert.Equal(t, hex.EncodeToString(sum[:]), s.task(id)["audio_md5"])
		}
	}},
	{"Task: allow_training echoes the choice, default false", func(t *testing.T, s *specWorld) {
		assert.Equal(t, false, s.task(s.all)["allow_training"])
		m := upload(nil)
		m["allow_training"] = true
		assert.Equal(t, true, s.idle.task(s.idle.create(m))["allow_training"])
	}},
	{"Task: error_message is the reason when failed, otherwise null", func(t *testing.T, s *specWorld) {
		assert.Nil(t, s.task(s.all)["error_message"])
		assert.Nil(t, s.task(s.running)["error_message"])
		assert.Contains(t, s.task(s.refused)["error_message"], "longer than 5 hours")
		assert.Contains(t, s.task(s.abandoned)["error_message"], "model is missing")
	}},
	{"Task: created_at, updated_at and finished_at are ISO 8601 in UTC with milliseconds ≡", func(t *testing.T, s *specWorld) {
		m := s.task(s.all)
		for _, f := range []string{"created_at", "updated_at", "finished_at"} {
			assert.Regexp(t, timeForm, m[f])
			at, err := time.Parse(time.RFC3339, m[f].(string))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now(), at, 10*time.Minute)
		}
		assert.LessOrEqual(t, m["created_at"], m["finished_at"])
	}},
	{"Task: finished_at is null until the task is final", func(t *testing.T, s *specWorld) {
		assert.Nil(t, s.task(s.running)["finished_at"])
		for _, id := range []string{s.all, s.refused, s.abandoned} {
			assert.NotNil(t, s.task(id)["finished_at"])
		}
	}},
	{"Task: the creation response has id, status, audio_filename, audio_source_type, audio_size, options, created_at, updated_at and omits error_message and finished_at", func(t *testing.T, s *specWorld) {
		want := sorted("id", "status", "audio_filename", "audio_source_type", "audio_size", "options", "created_at", "updated_at")
		assert.Equal(t, want, keys(s.idle.do("POST", "/tasks", upload(nil)).object(t)))
		assert.Equal(t, want, keys(s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/a.wav"}).object(t)))
	}},

	// Options
	{"Options: all fields are optional and every default is the documented one", func(t *testing.T, s *specWorld) {
		for _, body := range []any{upload(nil), upload(map[string]any{})} {
			var m struct {
				Options map[string]json.RawMessage `json:"options"`
			}
			require.NoError(t, json.Unmarshal(s.idle.do("POST", "/tasks", body).body, &m))
			got := map[string]string{}
			for k, v := range m.Options {
				got[k] = string(v)
			}
			assert.Equal(t, defaults, got)
		}
	}},
	{"Options: the task echoes the effective options", func(t *testing.T, s *specWorld) {
		m := s.idle.task(s.idle.create(upload(map[string]any{"asr_language": "de", "hotwords": []string{"Otograph"}, "vad_threshold": 0.5})))["options"].(map[string]any)
		assert.Equal(t, "de", m["asr_language"])
		assert.Equal(t, []any{"Otograph"}, m["hotwords"])
		assert.EqualValues(t, 0.5, m["vad_threshold"])
		assert.EqualValues(t, 5, m["asr_beam_size"])
	}},
	{"Options: enable_diarize=true with enable_asr=false gives 400", func(t *testing.T, s *specWorld) {
		s.bad(upload(map[string]any{"enable_diarize": true, "enable_asr": false}))
		s.bad(upload(map[string]any{"enable_asr": false}))
	}},
	{"Options: all three capabilities false gives 400", func(t *testing.T, s *specWorld) {
		s.bad(upload(map[string]any{"enable_asr": false, "enable_diarize": false, "enable_audio_events": false}))
	}},
	{"Options: optimize is true, false or null", func(t *testing.T, s *specWorld) {
		for _, v := range []any{true, false, nil} {
			a := s.option("optimize", v)
			require.Equal(t, 201, a.status)
			assert.Equal(t, v, a.object(t)["options"].(map[string]any)["optimize"])
		}
		s.refusedWith(s.option("optimize", "true"), 400, codeInvalidRequest)
	}},
	{"Options: timestamp_level is word or segment", func(t *testing.T, s *specWorld) {
		for _, v := range []string{"word", "segment"} {
			assert.Equal(t, 201, s.option("timestamp_level", v).status)
		}
		for _, v := range []any{"Word", "char", "", nil, 1} {
			s.refusedWith(s.option("timestamp_level", v), 400, codeInvalidRequest)
		}
	}},
	{"Options: asr_language takes ISO 639-1 and 639-3 codes and null", func(t *testing.T, s *specWorld) {
		for _, v := range []any{"zh", "en", "ja", "ko", "fr", "de", "es", "ru", "ar", "pt", "th", "vi", "hi", "deu", "eng", nil} {
			assert.Equal(t, 201, s.option("asr_language", v).status, v)
		}
		for _, v := range []any{"xx", "klingon", "", 1} {
			s.refusedWith(s.option("asr_language", v), 400, codeInvalidRequest)
		}
	}},
	{"Options: asr_beam_size from 1 to 20 ≡", checkBounds("asr_beam_size", 1, 20, 0, 21)},
	{"Options: asr_temperature from 0 to 1 ≡", checkBounds("asr_temperature", 0.0, 1.0, -0.1, 1.1)},
	{"Options: asr_best_of from 1 to 20", checkBounds("asr_best_of", 1, 20, 0, 21)},
	{"Options: vad_threshold from 0 to 1", checkBounds("vad_threshold", 0.0, 1.0, -0.01, 1.01)},
	{"Options: vad_min_speech_ms from 0 to 10,000 ≡", checkBounds("vad_min_speech_ms", 0, 10_000, -1, 10_001)},
	{"Options: vad_min_silence_ms from 0 to 10,000 ≡", checkBounds("vad_min_silence_ms", 0, 10_000, -1, 10_001)},
	{"Options: vad_speech_pad_ms from 0 to 2,000 ≡", checkBounds("vad_speech_pad_ms", 0, 2_000, -1, 2_001)},
	{"Options: no_speech_threshold from 0 to 1 ≡", checkBounds("no_speech_threshold", 0.0, 1.0, -0.01, 1.01)},
	{"Options: num_speakers from 1 to 50 ≡", checkBounds("num_speakers", 1, 50, 0, 51)},
	{"Options: max_speakers from 1 to 50 ≡", checkBounds("max_speakers", 1, 50, 0, 51)},
	{"Options: diarize_min_segment_sec from 0.1 to 10 ≡", checkBounds("diarize_min_segment_sec", 0.1, 10.0, 0.09, 10.1)},
	{"Options: diarize_single_speaker_threshold from −1 to 1 ≡", checkBounds("diarize_single_speaker_threshold", -1.0, 1.0, -1.1, 1.1)},
	{"Options: audio_events_threshold from 0 to 1 ≡", checkBounds("audio_events_threshold", 0.0, 1.0, -0.01, 1.01)},
	{"Options: min_speakers is not above max_speakers ≡", func(t *testing.T, s *specWorld) {
		s.bad(upload(map[string]any{"min_speakers": 5, "max_speakers": 4}))
		assert.Equal(t, 201, s.idle.do("POST", "/tasks", upload(map[string]any{"min_speakers": 4, "max_speakers": 4})).status)
	}},
	{"Options: hotwords are at most 200 of at most 64 characters ≡", func(t *testing.T, s *specWorld) {
		many := slices.Repeat([]string{strings.Repeat("语", 64)}, 200)
		assert.Equal(t, 201, s.option("hotwords", many).status)
		for _, v := range []any{append(many, "x"), []string{strings.Repeat("x", 65)}, "x", []any{1}, []any{nil}} {
			s.refusedWith(s.option("hotwords", v), 400, codeInvalidRequest)
		}
	}},
	{"Options: initial_prompt has at most 1,000 characters ≡", func(t *testing.T, s *specWorld) {
		assert.Equal(t, 201, s.option("initial_prompt", strings.Repeat("语", 1000)).status)
		s.refusedWith(s.option("initial_prompt", strings.Repeat("x", 1001)), 400, codeInvalidRequest)
	}},
	{"Options: audio_events_classes are English class names", func(t *testing.T, s *specWorld) {
		assert.Equal(t, 201, s.option("audio_events_classes", []string{"Speech"}).status)
		a := s.option("audio_events_classes", []string{"Speechh"})
		s.refusedWith(a, 400, codeInvalidRequest)
		assert.Contains(t, a.object(t)["error"], "Speech")
	}},
	{"Options: an unknown one is 400 and names the nearest ≡", func(t *testing.T, s *specWorld) {
		a := s.option("enable_diarise", true)
		s.refusedWith(a, 400, codeInvalidRequest)
		assert.Contains(t, a.object(t)["error"], "enable_diarise")
		assert.Contains(t, a.object(t)["error"], `"enable_diarize"`)
	}},
	{"Earlier variant: optimize_zh is accepted and echoed as given ≡", func(t *testing.T, s *specWorld) {
		for _, v := range []bool{true, false} {
			a := s.option("optimize_zh", v)
			require.Equal(t, 201, a.status)
			assert.Equal(t, v, a.object(t)["options"].(map[string]any)["optimize_zh"])
		}
		s.refusedWith(s.option("optimize_zh", "x"), 400, codeInvalidRequest)
	}},

	// Result
	{"Result: task_id, audio_duration, audio_md5 and billing are always present", func(t *testing.T, s *specWorld) {
		for _, id := range []string{s.all, s.asr, s.eventsAlo, s.lite, s.segment, s.byURL, s.batch} {
			m := s.result(id)
			assert.Equal(t, id, m["task_id"])
			assert.EqualValues(t, 61.5, m["audio_duration"])
			assert.Equal(t, s.task(id)["audio_md5"], m["audio_md5"])
			assert.Contains(t, m, "billing")
		}
	}},
	{"Result: the fields of a capability are present only when it was enabled, never null", func(t *testing.T, s *specWorld) {
		always := []string{"task_id", "audio_duration", "audio_md5", "billing"}
		asr := []string{"language", "language_probability", "segments", "vad_segments"}
		diarize := []string{"num_speakers", "speaker_embeddings", "diarize_segments"}
		events := []string{"audio_events"}
		assert.Equal(t, sorted(slices.Concat(always, asr, diarize, events)...), keys(s.result(s.all)))
		assert.Equal(t, sorted(slices.Concat(always, asr)...), keys(s.result(s.asr)))
		assert.Equal(t, sorted(slices.Concat(always, events)...), keys(s.result(s.eventsAlo)))
		for _, id := range []string{s.all, s.asr, s.eventsAlo} {
			for k, v := range s.result(id) {
				assert.NotNil(t, v, k)
			}
		}
	}},
	{"Result: segments have id from 0, start, end, text, and speaker only with diarization", func(t *testing.T, s *specWorld) {
		for i, seg := range s.result(s.all)["segments"].([]any) {
			assert.Equal(t, sorted("id", "start", "end", "text", "speaker", "words"), keys(seg.(map[string]any)))
			assert.EqualValues(t, i, seg.(map[string]any)["id"])
		}
		for _, seg := range s.result(s.asr)["segments"].([]any) {
			assert.NotContains(t, seg, "speaker")
		}
	}},
	{"Result: words have word, start, end and probability, in the standard tier only", func(t *testing.T, s *specWorld) {
		word := s.result(s.all)["segments"].([]any)[0].(map[string]any)["words"].([]any)[0].(map[string]any)
		assert.Equal(t, sorted("word", "start", "end", "probability"), keys(word))
		for _, id := range []string{s.lite, s.segment} {
			for _, seg := range s.result(id)["segments"].([]any) {
				assert.NotContains(t, seg, "words")
			}
		}
	}},
	{"Result: speaker_embeddings have speaker_id, embedding of 192 floats and segment_count", func(t *testing.T, s *specWorld) {
		e := s.result(s.all)["speaker_embeddings"].([]any)[0].(map[string]any)
		assert.Equal(t, sorted("speaker_id", "embedding", "segment_count"), keys(e))
		assert.Len(t, e["embedding"], 192)
	}},
	{"Result: with one speaker diarize_segments belong to SPEAKER_0", func(t *testing.T, s *specWorld) {
		turns := s.result(s.all)["diarize_segments"].([]any)
		require.NotEmpty(t, turns)
		assert.Equal(t, "SPEAKER_0", turns[0].(map[string]any)["speaker"])
	}},
	{"Result: audio_events have start, end, class and confidence", func(t *testing.T, s *specWorld) {
		assert.Equal(t, sorted("start", "end", "class", "confidence"), keys(s.result(s.all)["audio_events"].([]any)[0].(map[string]any)))
	}},
	{"Result: text arrives as it was, whatever characters it has", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "Good <b>day</b> & bye.", s.result(s.all)["segments"].([]any)[1].(map[string]any)["text"])
	}},
	{"Billing block: mode, billable_minutes (rounded up, at least 1), detail, amount, balance", func(t *testing.T, s *specWorld) {
		b := s.result(s.all)["billing"].(map[string]any)
		assert.Equal(t, sorted("mode", "billable_minutes", "detail", "amount", "balance"), keys(b))
		assert.Equal(t, "standard", b["mode"])
		assert.EqualValues(t, 2, b["billable_minutes"], "61.5 s")
		assert.Equal(t, "zh_lite", s.result(s.lite)["billing"].(map[string]any)["mode"])
	}},
	{"Billing detail: components only when enabled, batch_discount only for batch tasks, total equals amount", func(t *testing.T, s *specWorld) {
		detail := func(id string) map[string]any {
			b := s.result(id)["billing"].(map[string]any)
			d := b["detail"].(map[string]any)
			assert.Equal(t, b["amount"], d["total"])
			return d
		}
		base := []string{"base_price_per_hour", "base_amount", "subtotal", "total"}
		assert.Equal(t, sorted(slices.Concat(base, []string{"diarize_price_per_hour", "diarize_amount", "events_price_per_hour", "events_amount"})...), keys(detail(s.all)))
		assert.Equal(t, sorted(slices.Clone(base)...), keys(detail(s.asr)))
		d := detail(s.batch)
		assert.EqualValues(t, 0.5, d["batch_discount"])
		assert.InDelta(t, d["subtotal"].(float64)/2, d["total"], 0.00006)
	}},
	{"Cost rule: (base + add-ons) / 60 × billable minutes, rounded once", func(t *testing.T, s *specWorld) {
		d := s.result(s.all)["billing"].(map[string]any)["detail"].(map[string]any)
		assert.EqualValues(t, 0.02, d["base_amount"])
		assert.EqualValues(t, 0.0034, d["diarize_amount"], "0.00333…, and what is left of the rounded sum")
		assert.EqualValues(t, 0.0033, d["events_amount"])
		assert.EqualValues(t, 0.0267, d["total"])
	}},
	{"Billing balance is the account's current balance", func(t *testing.T, s *specWorld) {
		assert.Equal(t, s.do("GET", "/account", nil).object(t)["balance"], s.result(s.asr)["billing"].(map[string]any)["balance"])
	}},

	// States
	{"States: an unrecoverable error is failed, final and never retried", func(t *testing.T, s *specWorld) {
		m := s.task(s.refused)
		assert.Equal(t, "failed", m["status"])
		assert.NotNil(t, m["finished_at"])
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, m, s.task(s.refused))
	}},
	{"States: repeated failures end in abandoned", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "abandoned", s.task(s.abandoned)["status"])
	}},
	{"States: GET result is 404 in every state but done", func(t *testing.T, s *specWorld) {
		for _, id := range []string{s.refused, s.abandoned, s.running} {
			s.refusedWith(s.do("GET", "/tasks/"+id+"/result", nil), 404, codeNotFound)
		}
	}},
	{"States: DELETE in processing is 409", func(t *testing.T, s *specWorld) {
		s.refusedWith(s.do("DELETE", "/tasks/"+s.running, nil), 409, codeConflict)
		assert.Equal(t, "processing", s.task(s.running)["status"])
	}},
	{"States: a failed or abandoned task costs nothing and holds nothing", func(t *testing.T, s *specWorld) {
		for _, id := range []string{s.refused, s.abandoned} {
			_, held, err := s.money.Held(context.Background(), id)
			require.NoError(t, err)
			assert.False(t, held)
			assert.NotContains(t, string(s.do("GET", "/billing/transactions?page_size=100", nil).body), id)
		}
	}},

	// POST /tasks
	{"POST /tasks: one of audio_url and audio_base64 is required, not both", func(t *testing.T, s *specWorld) {
		s.bad(map[string]any{})
		s.bad(map[string]any{"audio_filename": "a.wav"})
		both := upload(nil)
		both["audio_url"] = "https://a.example.com/a.wav"
		s.bad(both)
	}},
	{"POST /tasks: audio_filename is required with audio_base64", func(t *testing.T, s *specWorld) {
		m := upload(nil)
		delete(m, "audio_filename")
		s.bad(m)
	}},
	{"POST /tasks: audio_filename defaults to the last segment of audio_url", func(t *testing.T, s *specWorld) {
		for u, want := range map[string]string{
			"https://a.example.com/x/talk.mp3?sig=1#t": "talk.mp3", "https://a.example.com/%E6%B5%8B%E8%AF%95.wav": "测试.wav",
			"https://a.example.com/": "audio", "https://a.example.com": "audio", "https://a.example.com/x/": "x",
		} {
			assert.Equal(t, want, s.idle.do("POST", "/tasks", map[string]any{"audio_url": u}).object(t)["audio_filename"], u)
		}
		m := map[string]any{"audio_url": "https://a.example.com/x.wav", "audio_filename": "mine.flac"}
		assert.Equal(t, "mine.flac", s.idle.do("POST", "/tasks", m).object(t)["audio_filename"])
	}},
	{"POST /tasks: Base64 in the standard and the URL-safe alphabet", func(t *testing.T, s *specWorld) {
		data := append(wav(1), 0xfb, 0xff, 0xfe)
		sum := md5.Sum(data)
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			id := s.idle.create(map[string]any{"audio_base64": e.EncodeToString(data), "audio_filename": "a.wav"})
			assert.Equal(t, hex.EncodeToString(sum[:]), s.idle.task(id)["audio_md5"])
		}
	}},
	{"POST /tasks: broken or empty Base64 is 400", func(t *testing.T, s *specWorld) {
		for _, text := range []string{"", "A", "not base64!", "AAAA="} {
			s.bad(map[string]any{"audio_base64": text, "audio_filename": "a.wav"})
		}
	}},
	{"POST /tasks: Base64 of less than 1 KB is 400", func(t *testing.T, s *specWorld) {
		send := func(n int) answer {
			return s.idle.do("POST", "/tasks", map[string]any{"audio_base64": base64.StdEncoding.EncodeToString(wav(1)[:n]), "audio_filename": "a.wav"})
		}
		a := send(1023)
		s.refusedWith(a, 400, codeInvalidRequest)
		assert.Equal(t, "audio_base64: must decode to at least 1024 bytes of audio, found 1023", a.object(t)["error"])
		assert.Equal(t, 201, send(1024).status)
	}},
	{"POST /tasks: audio_url must be a public http or https URL", func(t *testing.T, s *specWorld) {
		for _, u := range []string{
			"", "a.wav", "ftp://a.example.com/a", "file:///etc/passwd", "http://127.0.0.1/a.wav", "http://10.0.0.1/", "http://private.example.com/", "http://localhost/",
			"http://[::1]/", "http://169.254.169.254/", "http://2130706433/", "http://u:p@a.example.com/", "https://a.example.com:22/", "http://nosuch.test/", "data:audio/wav,x", "https://" + strings.Repeat("a", 9000),
		} {
			s.bad(map[string]any{"audio_url": u})
		}
		assert.Equal(t, 201, s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://trouble.example.com/a.wav"}).status, "a resolver that fails is no fault of the URL")
	}},
	{"POST /tasks: callback_url is checked like audio_url ≡", func(t *testing.T, s *specWorld) {
		m := upload(nil)
		m["callback_url"] = "http://10.0.0.1/hook"
		a := s.idle.do("POST", "/tasks", m)
		s.refusedWith(a, 400, codeInvalidRequest)
		assert.Contains(t, a.object(t)["error"], "callback_url")
	}},
	{"POST /tasks: unknown fields are 400 and name the nearest ≡", func(t *testing.T, s *specWorld) {
		a := s.idle.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav","callbackurl":"x"}`)
		s.refusedWith(a, 400, codeInvalidRequest)
		assert.Contains(t, a.object(t)["error"], `"callback_url"`)
	}},
	{"POST /tasks: 402 insufficient_balance when the available balance is insufficient", func(t *testing.T, s *specWorld) {
		_, poor := s.idle.newAccount("poor", "0.01")
		s.refusedWith(s.idle.do("POST", "/tasks", upload(nil), with("X-Api-Key", poor)), 402, codeInsufficientBalance)
		_, none := s.idle.newAccount("none", "0")
		s.refusedWith(s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/a.wav"}, with("X-Api-Key", none)), 402, codeInsufficientBalance)
	}},
	{"POST /tasks: 402 of a batch task says that resource packs do not pay for it", func(t *testing.T, s *specWorld) {
		a, k := s.idle.newAccount("packs alone", "0.001")
		_, err := s.idle.money.AddPack(context.Background(), a.ID, billing.Pack{Value: billing.Unit, ExpiresAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		task := map[string]any{"audio_url": "https://a.example.com/slow.wav"}
		require.Equal(t, 201, s.idle.do("POST", "/tasks", task, with("X-Api-Key", k)).status)
		task["batch_mode"] = true
		refused := s.idle.do("POST", "/tasks", task, with("X-Api-Key", k))
		s.refusedWith(refused, 402, codeInsufficientBalance)
		assert.Contains(t, refused.object(t)["error"], "resource packs do not pay for batch tasks")
	}},
	{"POST /tasks: 402 counts what is reserved by tasks in processing", func(t *testing.T, s *specWorld) {
		_, k := s.idle.newAccount("one task", "0.02") // one minute of all three costs 0.0133
		slow := upload(nil)
		slow["audio_filename"] = "slow.wav"
		require.Equal(t, 201, s.idle.do("POST", "/tasks", slow, with("X-Api-Key", k)).status)
		s.refusedWith(s.idle.do("POST", "/tasks", upload(nil), with("X-Api-Key", k)), 402, codeInsufficientBalance)
	}},
	{"POST /tasks: 429 concurrency_limit_exceeded beyond concurrency_limit; batch tasks are exempt", func(t *testing.T, s *specWorld) {
		a, k := s.idle.newAccount("two at once", "10")
		two, tps := 2, 1000.0
		require.NoError(t, s.idle.accounts.SetLimits(context.Background(), a.ID, accounts.Overrides{Concurrency: &two, TPS: &tps}))
		slow := map[string]any{"audio_url": "https://a.example.com/slow.wav"}
		for range 2 {
			require.Equal(t, 201, s.idle.do("POST", "/tasks", slow, with("X-Api-Key", k)).status)
		}
		s.refusedWith(s.idle.do("POST", "/tasks", slow, with("X-Api-Key", k)), 429, codeConcurrencyLimit)
		slow["batch_mode"] = true
		assert.Equal(t, 201, s.idle.do("POST", "/tasks", slow, with("X-Api-Key", k)).status)
		m := s.idle.do("GET", "/account", nil, with("X-Api-Key", k)).object(t)
		assert.EqualValues(t, 2, m["concurrency_limit"])
		assert.EqualValues(t, 2, m["active_tasks"])
		assert.EqualValues(t, 0, m["available_concurrency"])
		assert.EqualValues(t, 1, m["waiting_batch_tasks"])
	}},

	// POST /tasks/batch
	{"POST /tasks/batch: 400 and nothing created unless batch_mode is true ≡", func(t *testing.T, s *specWorld) {
		before := s.idle.do("GET", "/tasks", nil).object(t)["total"]
		for _, body := range []string{`{"audio_url":["https://a.example.com/a.wav"]}`, `{"audio_url":["https://a.example.com/a.wav"],"batch_mode":false}`, `{"audio_url":["https://a.example.com/a.wav"],"batch_mode":null}`} {
			s.refusedWith(s.idle.do("POST", "/tasks/batch", body), 400, codeInvalidRequest)
		}
		assert.Equal(t, before, s.idle.do("GET", "/tasks", nil).object(t)["total"])
	}},
	{"POST /tasks/batch: 1 to 100 URLs", func(t *testing.T, s *specWorld) {
		hundred := slices.Repeat([]string{"https://a.example.com/a.wav"}, 100)
		a := s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": hundred})
		require.Equal(t, 201, a.status)
		assert.EqualValues(t, 100, a.object(t)["created_count"])
		for _, n := range []int{0, 101, 10_000} {
			s.refusedWith(s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{"https://a.example.com/a.wav"}, n)}), 400, codeInvalidRequest)
		}
	}},
	{"POST /tasks/batch: audio_filename is as long as audio_url", func(t *testing.T, s *specWorld) {
		urls := []string{"https://a.example.com/a.wav", "https://b.example.com/b.wav"}
		for _, names := range []any{[]string{"a.wav"}, []string{"a.wav", "b.wav", "c.wav"}, []string{}} {
			s.refusedWith(s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "audio_filename": names}), 400, codeInvalidRequest)
		}
		m := s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "audio_filename": []string{"x.wav", "y.wav"}}).object(t)
		assert.Equal(t, "y.wav", m["results"].([]any)[1].(map[string]any)["task"].(map[string]any)["audio_filename"])
	}},
	{"POST /tasks/batch: items succeed or fail independently; results, created_count, failed_count", func(t *testing.T, s *specWorld) {
		m := s.idle.do("POST", "/tasks/batch", map[string]any{
			"batch_mode": true, "options": map[string]any{"enable_diarize": false},
			"audio_url": []string{"https://a.example.com/1.wav", "http://10.0.0.1/2.wav", "", "https://a.example.com/4.wav"},
		}).object(t)
		assert.Equal(t, sorted("results", "created_count", "failed_count"), keys(m))
		assert.EqualValues(t, 2, m["created_count"])
		assert.EqualValues(t, 2, m["failed_count"])
		for i, r := range m["results"].([]any) {
			item := r.(map[string]any)
			assert.EqualValues(t, i, item["index"])
			if ok := i == 0 || i == 3; ok {
				assert.Equal(t, sorted("index", "audio_url", "success", "task"), keys(item))
				assert.Equal(t, false, item["task"].(map[string]any)["options"].(map[string]any)["enable_diarize"])
			} else {
				assert.Equal(t, sorted("index", "audio_url", "success", "error"), keys(item))
			}
		}
	}},
	{"POST /tasks/batch: exhausted balance does not affect the other items", func(t *testing.T, s *specWorld) {
		_, k := s.idle.newAccount("some batch", "0.0200") // half price: 0.0067 each
		m := s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{"https://a.example.com/a.wav"}, 4)}, with("X-Api-Key", k)).object(t)
		assert.EqualValues(t, 2, m["created_count"])
		assert.EqualValues(t, 2, m["failed_count"])
		assert.Contains(t, m["results"].([]any)[3].(map[string]any)["error"], "balance")
	}},
	{"POST /tasks/batch: a broken shared option or callback_url is 400 for the whole", func(t *testing.T, s *specWorld) {
		urls := []string{"https://a.example.com/a.wav"}
		s.refusedWith(s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "options": map[string]any{"enable_asr": false}}), 400, codeInvalidRequest)
		s.refusedWith(s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "callback_url": "http://10.0.0.1/"}), 400, codeInvalidRequest)
	}},

	// GET /tasks
	{"GET /tasks: tasks, total, page (1) and page_size (20) by default", func(t *testing.T, s *specWorld) {
		m := s.idle.do("GET", "/tasks", nil).object(t)
		assert.Equal(t, sorted("tasks", "total", "page", "page_size"), keys(m))
		assert.EqualValues(t, 1, m["page"])
		assert.EqualValues(t, 20, m["page_size"])
		assert.Len(t, m["tasks"], 20)
		assert.Greater(t, m["total"], 100.0)
	}},
	{"GET /tasks: list entries carry exactly seven fields", func(t *testing.T, s *specWorld) {
		for _, e := range s.idle.do("GET", "/tasks", nil).object(t)["tasks"].([]any) {
			assert.Equal(t, sorted("id", "status", "audio_filename", "audio_source_type", "created_at", "updated_at", "finished_at"), keys(e.(map[string]any)))
		}
	}},
	{"GET /tasks: status filters", func(t *testing.T, s *specWorld) {
		for _, status := range []string{"processing", "done", "failed", "abandoned"} {
			list := s.do("GET", "/tasks?status="+status, nil).object(t)["tasks"].([]any)
			if status == "abandoned" {
				assert.NotEmpty(t, list)
			}
			for _, e := range list {
				assert.Equal(t, status, e.(map[string]any)["status"])
			}
		}
		for _, status := range []string{"pending", "DONE", "", "done%00", "%ff"} {
			s.refusedWith(s.do("GET", "/tasks?status="+status, nil), 400, codeInvalidRequest)
		}
	}},
	{"GET /tasks: newest first ≡", func(t *testing.T, s *specWorld) {
		last := "9"
		for _, e := range s.idle.do("GET", "/tasks?page_size=100", nil).object(t)["tasks"].([]any) {
			at := e.(map[string]any)["created_at"].(string) + e.(map[string]any)["id"].(string)
			assert.Less(t, at, last)
			last = at
		}
	}},
	{"GET /tasks and transactions: page from 1, page_size up to 100, else 400 ≡", func(t *testing.T, s *specWorld) {
		for _, path := range []string{"/tasks", "/billing/transactions"} {
			for _, q := range []string{"page=0", "page=-1", "page=x", "page=1.5", "page=99999999999999999999", "page=", "page=+1", "page=1&page=2", "page_size=0", "page_size=101", "page_size=1e2", "page=%zz"} {
				s.refusedWith(s.do("GET", path+"?"+q, nil), 400, codeInvalidRequest)
			}
			m := s.do("GET", path+"?page=2&page_size=1", nil).object(t)
			assert.EqualValues(t, 2, m["page"])
			assert.EqualValues(t, 1, m["page_size"])
			assert.Equal(t, 200, s.do("GET", path+"?page=1000000000&page_size=100", nil).status, "beyond the end is empty")
		}
	}},
	{"GET /tasks: pages hold each task once", func(t *testing.T, s *specWorld) {
		_, k := s.idle.newAccount("pages", "10")
		for range 5 {
			require.Equal(t, 201, s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/a.wav", "batch_mode": true}, with("X-Api-Key", k)).status)
		}
		seen := map[any]bool{}
		for page := 1; page <= 4; page++ {
			for _, e := range s.idle.do("GET", fmt.Sprintf("/tasks?page=%d&page_size=2", page), nil, with("X-Api-Key", k)).object(t)["tasks"].([]any) {
				assert.False(t, seen[e.(map[string]any)["id"]])
				seen[e.(map[string]any)["id"]] = true
			}
		}
		assert.Len(t, seen, 5)
	}},

	// GET /tasks/:id, result, DELETE
	{"GET /tasks/:id: 404 for a task that does not exist or an id that is none", func(t *testing.T, s *specWorld) {
		for _, id := range []string{unknownTask, "x", "0", strings.Repeat("a", 5000), "%00", "%ff", "..%2f..", "{" + s.all + "}", strings.ReplaceAll(s.all, "-", "")} {
			for _, suffix := range []string{"", "/result"} {
				s.refusedWith(s.do("GET", "/tasks/"+id+suffix, nil), 404, codeNotFound)
			}
			s.refusedWith(s.do("DELETE", "/tasks/"+id, nil), 404, codeNotFound)
		}
		assert.Equal(t, 200, s.do("GET", "/tasks/"+strings.ToUpper(s.all), nil).status, "a UUID in capitals is the same")
	}},
	{"403 for another user's task", func(t *testing.T, s *specWorld) {
		_, k := s.newAccount("someone else", "1")
		for _, q := range [][2]string{{"GET", ""}, {"GET", "/result"}, {"DELETE", ""}} {
			s.refusedWith(s.do(q[0], "/tasks/"+s.all+q[1], nil, with("X-Api-Key", k)), 403, codeForbidden)
		}
	}},
	{"DELETE /tasks/:id: 200 with message; the task, its audio and result are gone, the ledger stays", func(t *testing.T, s *specWorld) {
		id := s.create(upload(nil))
		s.final(id)
		a := s.do("DELETE", "/tasks/"+id, nil)
		require.Equal(t, 200, a.status)
		assert.Equal(t, []string{"message"}, keys(a.object(t)))
		assert.NotEmpty(t, a.object(t)["message"])
		for _, suffix := range []string{"", "/result"} {
			s.refusedWith(s.do("GET", "/tasks/"+id+suffix, nil), 404, codeNotFound)
		}
		s.refusedWith(s.do("DELETE", "/tasks/"+id, nil), 404, codeNotFound)
		assert.Contains(t, string(s.do("GET", "/billing/transactions", nil).body), id)
	}},
	{"DELETE works for failed and abandoned tasks", func(t *testing.T, s *specWorld) {
		m := upload(nil)
		m["audio_filename"] = "broken.wav"
		id := s.create(m)
		s.final(id)
		assert.Equal(t, 200, s.do("DELETE", "/tasks/"+id, nil).status)
	}},

	// Account
	{"GET /account: exactly the documented fields", func(t *testing.T, s *specWorld) {
		assert.Equal(t, sorted("balance", "held_amount", "resource_pack_equivalent", "available_balance", "tier", "concurrency_limit", "active_tasks", "available_concurrency", "waiting_batch_tasks", "tps_limit", "tps_burst"),
			keys(s.do("GET", "/account", nil).object(t)))
	}},
	{"GET /account: available_balance = balance + resource_pack_equivalent − held_amount", func(t *testing.T, s *specWorld) {
		a, k := s.idle.newAccount("packed", "5")
		_, err := s.idle.money.AddPack(context.Background(), a.ID, billing.Pack{Value: 3 * billing.Unit, Concurrency: 2000, ExpiresAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		require.Equal(t, 201, s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://a.example.com/slow.wav", "batch_mode": true}, with("X-Api-Key", k)).status)
		m := s.idle.do("GET", "/account", nil, with("X-Api-Key", k)).object(t)
		assert.EqualValues(t, 5, m["balance"])
		assert.EqualValues(t, 3, m["resource_pack_equivalent"])
		assert.EqualValues(t, 0.0067, m["held_amount"])
		assert.EqualValues(t, 7.9933, m["available_balance"])
		assert.EqualValues(t, 2000, m["concurrency_limit"], "the higher of tier default and bonus")
	}},
	{"GET /account: tiers 1 to 5 have their documented limits ≡", func(t *testing.T, s *specWorld) {
		a, k := s.idle.newAccount("tiers", "1")
		require.NoError(t, s.idle.accounts.SetLimits(context.Background(), a.ID, accounts.Overrides{}))
		for tier, n := range map[int]int{1: 2, 2: 5, 3: 10, 4: 20, 5: 50} {
			require.NoError(t, s.idle.accounts.SetTier(context.Background(), a.ID, tier))
			l, err := s.idle.accounts.Limits(context.Background(), a.ID)
			require.NoError(t, err)
			assert.Equal(t, accounts.Limits{Tier: tier, Concurrency: n, TPS: float64(n), Burst: 2 * n}, l)
		}
		m := s.idle.do("GET", "/account", nil, with("X-Api-Key", k)).object(t)
		assert.GreaterOrEqual(t, m["tps_burst"], m["tps_limit"])
	}},
	{"GET /account is computed in real time and not cached", func(t *testing.T, s *specWorld) {
		a, k := s.idle.newAccount("fresh", "1")
		assert.EqualValues(t, 1, s.idle.do("GET", "/account", nil, with("X-Api-Key", k)).object(t)["balance"])
		_, err := s.idle.money.Recharge(context.Background(), a.ID, billing.Unit, "more")
		require.NoError(t, err)
		got := s.idle.do("GET", "/account", nil, with("X-Api-Key", k))
		assert.EqualValues(t, 2, got.object(t)["balance"])
		assert.Equal(t, "no-store", got.header.Get("Cache-Control"))
	}},

	// Classes, pricing, transactions
	{"GET /audio-event-classes: 521 records with the six fields, in 8 categories", func(t *testing.T, s *specWorld) {
		var list []map[string]any
		require.NoError(t, json.Unmarshal(s.do("GET", "/audio-event-classes", nil).body, &list))
		require.Len(t, list, 521)
		categories := map[any]bool{}
		for i, c := range list {
			assert.Equal(t, sorted("index", "mid", "display_name", "zh_name", "category", "category_zh"), keys(c))
			assert.EqualValues(t, i, c["index"])
			categories[c["category"]] = true
		}
		assert.Len(t, categories, 8)
	}},
	{"GET /pricing: public, cacheable for 5 minutes, exactly the documented fields", func(t *testing.T, s *specWorld) {
		a := s.do("GET", "/pricing", nil, noKey)
		require.Equal(t, 200, a.status)
		assert.Equal(t, "public, max-age=300", a.header.Get("Cache-Control"))
		m := a.object(t)
		assert.Equal(t, sorted("standard_price_per_hour", "zh_lite_price_per_hour", "diarize_price_per_hour", "audio_events_price_per_hour", "batch_discount", "updated_at"), keys(m))
		assert.EqualValues(t, 0.6, m["standard_price_per_hour"])
		assert.EqualValues(t, 0.2, m["zh_lite_price_per_hour"])
		assert.EqualValues(t, 0.1, m["diarize_price_per_hour"])
		assert.EqualValues(t, 0.1, m["audio_events_price_per_hour"])
		assert.EqualValues(t, 0.5, m["batch_discount"])
		assert.Equal(t, 200, s.do("GET", "/pricing", nil, with("X-Api-Key", "nonsense")).status, "credentials are not looked at")
	}},
	{"GET /pricing: the server caches too; a change applies from the next uncached request", func(t *testing.T, s *specWorld) {
		c := newClock()
		s.api.prices.now, s.api.prices.read = c.now, time.Time{}
		defer func() { s.api.prices.now = time.Now }()
		price := func() any { return s.do("GET", "/pricing", nil, noKey).object(t)["standard_price_per_hour"] }
		require.EqualValues(t, 0.6, price())
		p, err := s.money.Prices(context.Background())
		require.NoError(t, err)
		defer func() { _, _ = s.money.SetPrices(context.Background(), p, time.Time{}) }()
		dearer := p
		dearer.Standard = billing.Unit
		_, err = s.money.SetPrices(context.Background(), dearer, time.Time{})
		require.NoError(t, err)
		c.move(pricesAge - time.Second)
		assert.EqualValues(t, 0.6, price())
		c.move(time.Second)
		assert.EqualValues(t, 1, price())
	}},
	{"GET /billing/transactions: transactions (newest first), total, page, page_size and the record's fields", func(t *testing.T, s *specWorld) {
		m := s.do("GET", "/billing/transactions", nil).object(t)
		assert.Equal(t, sorted("transactions", "total", "page", "page_size"), keys(m))
		list := m["transactions"].([]any)
		last := "9"
		for _, e := range list {
			r := e.(map[string]any)
			assert.Equal(t, sorted("id", "user_id", "task_id", "type", "amount", "balance_before", "balance_after", "description", "created_at"), keys(r))
			assert.Regexp(t, uuidForm, r["id"])
			assert.Regexp(t, uuidForm, r["user_id"])
			assert.Regexp(t, `^-?\d+\.\d{4}$`, r["amount"])
			assert.LessOrEqual(t, r["created_at"], last)
			last = r["created_at"].(string)
		}
	}},
	{"Transactions: deduction negative with task_id, recharge positive and refund negative without", func(t *testing.T, s *specWorld) {
		a, k := s.newAccount("ledger", "2")
		_, err := s.money.Refund(context.Background(), a.ID, billing.Unit/2, "back")
		require.NoError(t, err)
		at := s.do("POST", "/tasks", upload(nil), with("X-Api-Key", k)).object(t)["id"].(string)
		require.Eventually(t, func() bool {
			return s.do("GET", "/tasks/"+at, nil, with("X-Api-Key", k)).object(t)["status"] == "done"
		}, 20*time.Second, 10*time.Millisecond)
		list := s.do("GET", "/billing/transactions", nil, with("X-Api-Key", k)).object(t)["transactions"].([]any)
		require.Len(t, list, 3)
		get := func(i int, f string) any { return list[i].(map[string]any)[f] }
		assert.Equal(t, []any{"deduction", "-0.0267", "1.5000", "1.4733", at}, []any{get(0, "type"), get(0, "amount"), get(0, "balance_before"), get(0, "balance_after"), get(0, "task_id")})
		assert.Equal(t, []any{"refund", "-0.5000", nil}, []any{get(1, "type"), get(1, "amount"), get(1, "task_id")})
		assert.Equal(t, []any{"recharge", "2.0000", nil}, []any{get(2, "type"), get(2, "amount"), get(2, "task_id")})
	}},

	// Authentication and errors
	{"All endpoints but GET /pricing and the login need authentication: 401", func(t *testing.T, s *specWorld) {
		for _, q := range [][2]string{
			{"GET", "/tasks"},
			{"POST", "/tasks"},
			{"POST", "/tasks/batch"},
			{"GET", "/tasks/" + s.all},
			{"GET", "/tasks/" + s.all + "/result"},
			{"DELETE", "/tasks/" + s.all},
			{"GET", "/account"},
			{"GET", "/audio-event-classes"},
			{"GET", "/billing/transactions"},
			{"POST", "/audio/transcriptions"},
			{"POST", "/audio/translations"},
		} {
			code := codeUnauthorized
			if strings.HasPrefix(q[1], "/audio/t") { // OpenAI's interface has codes of its own
				code = "invalid_api_key"
			}
			s.refusedWith(s.do(q[0], q[1], nil, noKey), 401, code)
		}
	}},
	{"Error responses are JSON with error, and error_code beside it, also for unknown paths and wrong methods ≡", func(t *testing.T, s *specWorld) {
		for _, p := range []string{"/v1", "/v1/", "/v1/nope", "/v1/tasks/", "/v1//tasks", "//v1/tasks", "/v1/../v1/account", "/v1/tasks/a/b/c", "/x", "/v1/tasks/" + s.all + "/result/"} {
			a := s.send("GET", p, nil, with("X-API-Key", s.key))
			s.refusedWith(a, 404, codeNotFound)
		}
		for p, allow := range map[string]string{"/tasks": "GET, HEAD, POST", "/tasks/batch": "POST", "/tasks/" + s.all: "DELETE, GET, HEAD", "/account": "GET, HEAD", "/pricing": "GET, HEAD", "/auth/login": "POST"} {
			for _, method := range []string{"PUT", "PATCH", "OPTIONS", "TRACE", "BREW"} {
				a := s.do(method, p, nil)
				s.refusedWith(a, 405, codeInvalidRequest)
				assert.Equal(t, allow, a.header.Get("Allow"))
			}
		}
	}},
	{"HEAD is answered like GET, without a body", func(t *testing.T, s *specWorld) {
		for _, p := range []string{"/account", "/tasks/" + s.all, "/tasks/" + s.all + "/result", "/pricing"} {
			a := s.do("HEAD", p, nil)
			assert.Equal(t, 200, a.status, p)
			assert.Empty(t, a.body)
		}
	}},
	{"A body over 200 MB is 413 ≡", func(t *testing.T, s *specWorld) {
		req, err := http.NewRequest(http.MethodPost, s.url+"/v1/tasks", endless(maxSubmitBody))
		require.NoError(t, err)
		req.ContentLength = maxSubmitBody + 45
		req.Header = with("X-API-Key", s.key, "Content-Type", "application/json", "Expect", "100-continue")
		resp, err := (&http.Client{Transport: &http.Transport{ExpectContinueTimeout: 10 * time.Second}}).Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		assert.Equal(t, 413, resp.StatusCode)
		var e map[string]string
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&e))
		assert.Equal(t, codePayloadTooLarge, e["error_code"])
	}},

	// Callbacks
	{"Callback: sent once when the task is final, a POST of application/json with five fields", func(t *testing.T, s *specWorld) {
		for id, status := range map[string]string{s.all: "done", s.byURL: "done", s.refused: "failed", s.abandoned: "abandoned"} {
			require.Eventually(t, func() bool { return len(s.media.callbacks(id)) == 1 }, 10*time.Second, 10*time.Millisecond, status)
			c := s.media.callbacks(id)[0]
			assert.Equal(t, "application/json", c.header.Get("Content-Type"))
			var m map[string]any
			require.NoError(t, json.Unmarshal(c.body, &m))
			assert.Equal(t, sorted("task_id", "status", "created_at", "finished_at", "error_message"), keys(m))
			assert.Equal(t, id, m["task_id"])
			assert.Equal(t, status, m["status"])
			task := s.task(id)
			for _, f := range []string{"created_at", "finished_at", "error_message"} {
				assert.Equal(t, task[f], m[f], f)
			}
		}
	}},
	{"Callback: X-Signature is sha256= and the lowercase hex of HMAC-SHA256 over the raw body; absent without a secret", func(t *testing.T, s *specWorld) {
		require.Eventually(t, func() bool { return len(s.media.callbacks(s.all)) == 1 && len(s.media.callbacks(s.byURL)) == 1 }, 10*time.Second, 10*time.Millisecond)
		c := s.media.callbacks(s.all)[0]
		mac := hmac.New(sha256.New, []byte("shh"))
		mac.Write(c.body)
		assert.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), c.header.Get("X-Signature"))
		assert.Empty(t, s.media.callbacks(s.byURL)[0].header.Get("X-Signature"))
	}},
	{"Callback: no callback without callback_url", func(t *testing.T, s *specWorld) { assert.Empty(t, s.media.callbacks(s.asr)) }},
	{"Callback: a delivery that fails is tried again with the same bytes and signature", func(t *testing.T, s *specWorld) {
		s.media.mu.Lock()
		s.media.fail = 2
		s.media.mu.Unlock()
		m := upload(nil)
		m["callback_url"], m["callback_secret"] = s.media.url+"/callback", "k"
		id := s.create(m)
		require.Eventually(t, func() bool { return len(s.media.callbacks(id)) == 3 }, 10*time.Second, 10*time.Millisecond)
		got := s.media.callbacks(id)
		for _, c := range got[1:] {
			assert.Equal(t, got[0].body, c.body)
			assert.Equal(t, got[0].header.Get("X-Signature"), c.header.Get("X-Signature"))
		}
	}},

	// The document and operation
	{"OpenAPI 3.1 document at /openapi.json, readable page at /docs ≡", func(t *testing.T, s *specWorld) {
		a := s.send("GET", "/openapi.json", nil, nil)
		require.Equal(t, 200, a.status)
		assert.Contains(t, a.object(t)["openapi"], "3.1")
		page := s.send("GET", "/docs", nil, nil)
		require.Equal(t, 200, page.status)
		assert.NotContains(t, string(page.body), "<script")
		assert.NotRegexp(t, `(src|href)="(https?:)?//`, string(page.body))
		assert.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'none'")
		for _, path := range []string{"/tasks/batch", "/audio-event-classes", "audio_events_threshold", "X-Signature"} {
			assert.Contains(t, string(page.body), path)
		}
	}},
	{"/healthz, /readyz and /metrics outside /v1 ≡", func(t *testing.T, s *specWorld) {
		assert.Equal(t, 200, s.send("GET", "/healthz", nil, nil).status)
		assert.Equal(t, 200, s.send("GET", "/readyz", nil, nil).status)
		m := string(s.send("GET", "/metrics", nil, nil).body)
		for _, name := range []string{
			`otograph_queue_waiting{lane="tasks"}`, `otograph_queue_oldest_seconds{lane="batch"}`, `otograph_real_time_factor_count{tier="standard"}`, `otograph_stage_seconds_count{stage="transcribe"}`,
			`otograph_callback_attempts_total{outcome="delivered"}`, `otograph_http_requests_total{method="GET",route="/v1/account",status="200"}`, "go_goroutines", "otograph_queue_up 1",
			`otograph_tasks{status="abandoned"}`,
		} {
			assert.Contains(t, m, name)
		}
	}},
	{"No secret is logged", func(t *testing.T, s *specWorld) {
		log := s.log.String()
		for _, secret := range []string{s.key, "shh", "sig=1"} {
			assert.NotContains(t, log, secret)
		}
		assert.Contains(t, log, s.account.ID)
		assert.Contains(t, log, s.all)
	}},
}
