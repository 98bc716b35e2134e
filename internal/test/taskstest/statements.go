package taskstest

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Statements are in the order of the specification.
var Statements = []Statement{
	{"Response bodies are application/json", func(t *testing.T, w *World) {
		for _, p := range []string{"/account", "/tasks", "/pricing", "/audio-event-classes", "/billing/transactions", "/tasks/" + w.All, "/tasks/" + w.All + "/result", "/tasks/x", "/nothing"} {
			assert.Equal(t, "application/json", w.Do(t, "GET", p, nil).Header.Get("Content-Type"), p)
		}
	}},
	{"Request bodies are application/json; another type is 415 ≡", func(t *testing.T, w *World) {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "application/json; charset=latin1", ";;"} {
			for _, p := range []string{"/tasks", "/tasks/batch", "/auth/login"} {
				refusal(t, w.Do(t, "POST", p, "{}", "Content-Type", kind), 415, "invalid_request")
			}
		}
		assert.Equal(t, 201, w.Idle(t, "POST", "/tasks", `{"audio_url":"`+w.anywhere()+`"}`, "Content-Type", "Application/JSON; Charset=UTF-8").Status)
		refusal(t, w.Idle(t, "POST", "/tasks", `{}`, "Content-Encoding", "gzip"), 415, "invalid_request")
	}},
	{"The creation call returns immediately with a task that is processing", func(t *testing.T, w *World) {
		a := w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere()})
		require.Equal(t, 201, a.Status)
		m := a.Object(t)
		assert.Equal(t, "processing", m["status"])
		assert.Equal(t, "processing", w.idleTask(t, m["id"].(string))["status"])
	}},
	{"Every capability is switched by its option", func(t *testing.T, w *World) {
		always := []string{"task_id", "audio_duration", "audio_md5", "billing"}
		asr := []string{"language", "language_probability", "segments", "vad_segments"}
		diarize := []string{"num_speakers", "speaker_embeddings", "diarize_segments"}
		assert.Equal(t, sorted(slices.Concat(always, asr, diarize, []string{"audio_events"})...), names(w.result(t, w.All)), "all three")
		assert.Equal(t, sorted(slices.Concat(always, asr)...), names(w.result(t, w.ASR)), "transcription alone")
		assert.Equal(t, sorted(slices.Concat(always, []string{"audio_events"})...), names(w.result(t, w.Events)), "events alone")
	}},
	{"Task: id is a UUID", func(t *testing.T, w *World) { assert.Regexp(t, uuidForm, w.task(t, w.All)["id"]) }},
	{"Task: GET has exactly the documented fields in every state", func(t *testing.T, w *World) {
		want := sorted("id", "status", "audio_filename", "audio_source_type", "audio_size", "audio_md5", "allow_training", "error_message", "options", "created_at", "updated_at", "finished_at")
		for _, id := range []string{w.All, w.ByURL, w.Failed, w.Abandoned, w.Pending} {
			assert.Equal(t, want, names(w.task(t, id)))
		}
		assert.Equal(t, want, names(w.idleTask(t, w.createIdle(t, map[string]any{"audio_url": w.anywhere()}))))
	}},
	{"Task: audio_source_type is url for URL submissions, base64 for the others ≡", func(t *testing.T, w *World) {
		assert.Equal(t, "url", w.task(t, w.ByURL)["audio_source_type"])
		assert.Equal(t, "base64", w.task(t, w.All)["audio_source_type"])
	}},
	{"Task: audio_size is in bytes, null until a URL is fetched ≡", func(t *testing.T, w *World) {
		assert.EqualValues(t, len(w.Audio), w.task(t, w.All)["audio_size"])
		assert.EqualValues(t, len(w.Audio), w.task(t, w.ByURL)["audio_size"])
		v, there := w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere()}).Object(t)["audio_size"]
		assert.True(t, there)
		assert.Nil(t, v)
	}},
	{"Task: audio_md5 is the MD5 of the original audio", func(t *testing.T, w *World) {
		sum := md5.Sum(w.Audio)
		for _, id := range []string{w.All, w.ByURL, w.Batch} {
			assert.Equal(t, hex.EncodeToString(sum[:]), w.task(t, id)["audio_md5"])
		}
	}},
	{"Task: timestamps are ISO 8601 in UTC with milliseconds ≡", func(t *testing.T, w *World) {
		m := w.task(t, w.All)
		for _, f := range []string{"created_at", "updated_at", "finished_at"} {
			assert.Regexp(t, stampForm, m[f])
			at, err := time.Parse(time.RFC3339, m[f].(string))
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now(), at, 30*time.Minute)
		}
		assert.LessOrEqual(t, m["created_at"], m["finished_at"])
	}},
	{"Task: finished_at is null until the task is final", func(t *testing.T, w *World) {
		assert.Nil(t, w.task(t, w.Pending)["finished_at"])
		assert.Nil(t, w.idleTask(t, w.createIdle(t, map[string]any{"audio_url": w.anywhere()}))["finished_at"])
		for _, id := range []string{w.All, w.Failed, w.Abandoned} {
			assert.NotNil(t, w.task(t, id)["finished_at"])
		}
	}},
	{"Task: the creation response has its eight fields and omits error_message and finished_at", func(t *testing.T, w *World) {
		want := sorted("id", "status", "audio_filename", "audio_source_type", "audio_size", "options", "created_at", "updated_at")
		assert.Equal(t, want, names(w.Idle(t, "POST", "/tasks", w.upload(nil)).Object(t)))
		assert.Equal(t, want, names(w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere()}).Object(t)))
	}},
	{"Options: every default is the documented one", func(t *testing.T, w *World) {
		for _, body := range []any{map[string]any{"audio_url": w.anywhere()}, map[string]any{"audio_url": w.anywhere(), "options": map[string]any{}}} {
			var m struct {
				Options map[string]json.RawMessage `json:"options"`
			}
			require.NoError(t, json.Unmarshal(w.Idle(t, "POST", "/tasks", body).Body, &m))
			got := map[string]string{}
			for k, v := range m.Options {
				got[k] = string(v)
			}
			assert.Equal(t, OptionDefaults, got)
		}
	}},
	{"Options: the task echoes the effective options", func(t *testing.T, w *World) {
		m := object(w.idleTask(t, w.createIdle(t, w.upload(map[string]any{"asr_language": "de", "hotwords": []string{"Otograph"}, "vad_threshold": 0.5})))["options"])
		assert.Equal(t, slices.Sorted(maps.Keys(OptionDefaults)), names(m))
		assert.Equal(t, "de", m["asr_language"])
		assert.Equal(t, []any{"Otograph"}, m["hotwords"])
		assert.EqualValues(t, 0.5, m["vad_threshold"])
		assert.EqualValues(t, 5, m["asr_beam_size"])
	}},
	{"Options: enable_diarize=true with enable_asr=false gives 400", func(t *testing.T, w *World) {
		refusal(t, w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "options": map[string]any{"enable_asr": false, "enable_diarize": true}}), 400, "invalid_request")
		refusal(t, w.option(t, "enable_asr", false), 400, "invalid_request")
	}},
	{"Options: all three capabilities false gives 400", func(t *testing.T, w *World) {
		off := map[string]any{"enable_asr": false, "enable_diarize": false, "enable_audio_events": false}
		refusal(t, w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "options": off}), 400, "invalid_request")
	}},
	{"Options: enable_asr is a boolean", boolean("enable_asr", map[string]any{"enable_diarize": false})},
	{"Options: enable_diarize is a boolean", boolean("enable_diarize", map[string]any{})},
	{"Options: enable_audio_events is a boolean", boolean("enable_audio_events", map[string]any{})},
	{"Options: optimize is true, false or null", func(t *testing.T, w *World) {
		for _, v := range []any{true, false, nil} {
			a := w.option(t, "optimize", v)
			require.Equal(t, 201, a.Status)
			assert.Equal(t, v, object(a.Object(t)["options"])["optimize"])
		}
		refusal(t, w.option(t, "optimize", "true"), 400, "invalid_request")
	}},
	{"Options: timestamp_level is word or segment", func(t *testing.T, w *World) {
		for _, v := range []string{"word", "segment"} {
			assert.Equal(t, 201, w.option(t, "timestamp_level", v).Status)
		}
		for _, v := range []any{"Word", "character", "", nil, 1} {
			refusal(t, w.option(t, "timestamp_level", v), 400, "invalid_request")
		}
	}},
	{"Options: asr_language takes ISO 639-1 and 639-3 codes and null", func(t *testing.T, w *World) {
		for _, v := range []any{"zh", "en", "ja", "ko", "fr", "de", "es", "ru", "ar", "pt", "th", "vi", "hi", "deu", "eng", "zho", nil} {
			assert.Equal(t, 201, w.option(t, "asr_language", v).Status, v)
		}
		for _, v := range []any{"xx", "klingon", "", 1, []any{"en"}} {
			refusal(t, w.option(t, "asr_language", v), 400, "invalid_request")
		}
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
	{"Options: min_speakers is not above max_speakers ≡", func(t *testing.T, w *World) {
		for high, status := range map[int]int{4: 400, 5: 201} {
			a := w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "options": map[string]any{"min_speakers": 5, "max_speakers": high}})
			assert.Equal(t, status, a.Status, "%s", a.Body)
		}
	}},
	{"Options: hotwords are at most 200 of at most 64 characters ≡", func(t *testing.T, w *World) {
		many := slices.Repeat([]string{strings.Repeat("语", 64)}, 200)
		assert.Equal(t, 201, w.option(t, "hotwords", many).Status)
		assert.Equal(t, 201, w.option(t, "hotwords", nil).Status)
		for _, v := range []any{append(many, "x"), []string{strings.Repeat("x", 65)}, "x", []any{1}, []any{nil}} {
			refusal(t, w.option(t, "hotwords", v), 400, "invalid_request")
		}
	}},
	{"Options: initial_prompt has at most 1,000 characters, or is null ≡", func(t *testing.T, w *World) {
		assert.Equal(t, 201, w.option(t, "initial_prompt", strings.Repeat("语", 1000)).Status)
		assert.Equal(t, 201, w.option(t, "initial_prompt", nil).Status)
		refusal(t, w.option(t, "initial_prompt", strings.Repeat("x", 1001)), 400, "invalid_request")
	}},
	{"Options: audio_events_classes are English class names, or null", func(t *testing.T, w *World) {
		assert.Equal(t, 201, w.option(t, "audio_events_classes", []string{"Speech", "Dog"}).Status)
		assert.Equal(t, 201, w.option(t, "audio_events_classes", nil).Status)
		a := w.option(t, "audio_events_classes", []string{"Speach"})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, a.Object(t)["error"], "Speech", "the nearest name")
	}},
	{"Options: an unknown one is 400 and names the nearest ≡", func(t *testing.T, w *World) {
		a := w.option(t, "enable_diarise", true)
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, a.Object(t)["error"], `"enable_diarize"`)
	}},
	{"Result: task_id, audio_duration, audio_md5 and billing are always present", func(t *testing.T, w *World) {
		for _, id := range []string{w.All, w.ASR, w.Events, w.ByURL, w.Batch} {
			r := w.result(t, id)
			assert.Equal(t, id, r["task_id"])
			assert.EqualValues(t, w.Seconds, r["audio_duration"])
			assert.Regexp(t, md5Form, r["audio_md5"])
			assert.Equal(t, w.task(t, id)["audio_md5"], r["audio_md5"])
			assert.NotEmpty(t, r["billing"])
		}
	}},
	{"Result: nothing is null", func(t *testing.T, w *World) {
		for _, id := range []string{w.All, w.ASR, w.Events} {
			assert.NotContains(t, string(w.Do(t, "GET", "/tasks/"+id+"/result", nil).Body), "null")
		}
	}},
	{"Result: speaker_embeddings have speaker_id, embedding of 192 floats and segment_count; num_speakers counts them", func(t *testing.T, w *World) {
		r := w.result(t, w.All)
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
	{"Result: segments have id from 0, start, end, text, speaker with diarization, and words in the standard tier", func(t *testing.T, w *World) {
		segments := list(w.result(t, w.All)["segments"])
		require.NotEmpty(t, segments)
		for i, s := range segments {
			m := w.span(t, s)
			assert.Equal(t, sorted("id", "start", "end", "text", "speaker", "words"), names(m))
			assert.EqualValues(t, i, m["id"])
			assert.NotEmpty(t, m["text"])
			assert.Regexp(t, `^SPEAKER_\d+$`, m["speaker"])
		}
		for _, s := range list(w.result(t, w.ASR)["segments"]) {
			assert.NotContains(t, w.span(t, s), "speaker")
		}
	}},
	{"Result: words have word, start, end and probability", func(t *testing.T, w *World) {
		words := 0
		for _, s := range list(w.result(t, w.All)["segments"]) {
			for _, word := range list(object(s)["words"]) {
				words++
				m := object(word)
				assert.Equal(t, sorted("word", "start", "end", "probability"), names(m))
				assert.NotEmpty(t, m["word"])
				assert.LessOrEqual(t, m["start"], m["end"])
				share(t, m["probability"])
			}
		}
		assert.NotZero(t, words)
	}},
	{"Result: vad_segments have start and end", func(t *testing.T, w *World) {
		for _, id := range []string{w.All, w.ASR} {
			require.NotEmpty(t, w.result(t, id)["vad_segments"])
			for _, s := range list(w.result(t, id)["vad_segments"]) {
				assert.Equal(t, sorted("start", "end"), names(w.span(t, s)))
			}
		}
	}},
	{"Result: diarize_segments have start, end and speaker; with one speaker all are SPEAKER_0", func(t *testing.T, w *World) {
		r := w.result(t, w.All)
		require.EqualValues(t, 1, r["num_speakers"])
		require.NotEmpty(t, r["diarize_segments"])
		for _, s := range list(r["diarize_segments"]) {
			m := w.span(t, s)
			assert.Equal(t, sorted("start", "end", "speaker"), names(m))
			assert.Equal(t, "SPEAKER_0", m["speaker"])
		}
	}},
	{"Result: audio_events are ordered by time, with start, end, class and confidence above the threshold", func(t *testing.T, w *World) {
		threshold := object(w.task(t, w.All)["options"])["audio_events_threshold"]
		known := map[any]bool{}
		var classes []map[string]any
		require.NoError(t, json.Unmarshal(w.Do(t, "GET", "/audio-event-classes", nil).Body, &classes))
		for _, c := range classes {
			known[c["display_name"]] = true
		}
		events, last := list(w.result(t, w.All)["audio_events"]), 0.0
		require.NotEmpty(t, events)
		for _, e := range events {
			m := w.span(t, e)
			assert.Equal(t, sorted("start", "end", "class", "confidence"), names(m))
			assert.True(t, known[m["class"]], m["class"])
			share(t, m["confidence"])
			assert.Greater(t, m["confidence"], threshold)
			assert.GreaterOrEqual(t, m["start"], last)
			last = m["start"].(float64)
		}
	}},
	{"Billing block: mode, billable_minutes (rounded up, at least 1), detail, amount, balance", func(t *testing.T, w *World) {
		for _, id := range []string{w.All, w.ASR, w.Events, w.Batch} {
			b := object(w.result(t, id)["billing"])
			assert.Equal(t, sorted("mode", "billable_minutes", "detail", "amount", "balance"), names(b))
			assert.EqualValues(t, math.Ceil(w.Seconds/60), b["billable_minutes"])
			assert.Equal(t, w.Do(t, "GET", "/account", nil).Object(t)["balance"], b["balance"], "the current balance")
		}
	}},
	{"Billing detail: base, diarization and events when enabled; all numbers", func(t *testing.T, w *World) {
		detail := func(id string) map[string]any {
			b := object(w.result(t, id)["billing"])
			d := object(b["detail"])
			assert.Equal(t, b["amount"], d["total"])
			for k, v := range d {
				assert.IsType(t, 0.0, v, k)
			}
			return d
		}
		base := []string{"base_price_per_hour", "base_amount", "subtotal", "total"}
		assert.Equal(t, sorted(slices.Concat(base, []string{"diarize_price_per_hour", "diarize_amount", "events_price_per_hour", "events_amount"})...), names(detail(w.All)))
		assert.Equal(t, sorted(slices.Clone(base)...), names(detail(w.ASR)))
		assert.Equal(t, sorted(slices.Concat(base, []string{"events_price_per_hour", "events_amount"})...), names(detail(w.Events)))
		assert.Equal(t, sorted(slices.Concat(base, []string{"batch_discount"})...), names(detail(w.Batch)), "batch_discount only for batch tasks")
		batch := detail(w.Batch)
		assert.EqualValues(t, 0.5, batch["batch_discount"])
		assert.InDelta(t, batch["subtotal"].(float64)/2, batch["total"], 0.00006)
	}},
	{"States: GET result is 404 in every state but done", func(t *testing.T, w *World) {
		for _, id := range []string{w.Failed, w.Abandoned, w.Pending} {
			refusal(t, w.Do(t, "GET", "/tasks/"+id+"/result", nil), 404, "not_found")
		}
		refusal(t, w.Idle(t, "GET", "/tasks/"+w.createIdle(t, map[string]any{"audio_url": w.anywhere()})+"/result", nil), 404, "not_found")
	}},
	{"States: DELETE in processing is 409", func(t *testing.T, w *World) {
		id := w.createIdle(t, map[string]any{"audio_url": w.anywhere()})
		refusal(t, w.Idle(t, "DELETE", "/tasks/"+id, nil), 409, "conflict")
		assert.Equal(t, "processing", w.idleTask(t, id)["status"])
	}},
	{"POST /tasks: one of audio_url and audio_base64, not both", func(t *testing.T, w *World) {
		for _, body := range []any{map[string]any{}, map[string]any{"audio_filename": "a.wav"}, w.upload(nil, "audio_url", w.anywhere()), map[string]any{"audio_url": nil}, map[string]any{"audio_url": []string{w.anywhere()}}} {
			refusal(t, w.Idle(t, "POST", "/tasks", body), 400, "invalid_request")
		}
	}},
	{"POST /tasks: audio_filename is required with audio_base64", func(t *testing.T, w *World) {
		m := w.upload(nil)
		delete(m, "audio_filename")
		a := w.Idle(t, "POST", "/tasks", m)
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, string(a.Body), "audio_filename")
	}},
	{"POST /tasks: audio_filename defaults to the last segment of audio_url", func(t *testing.T, w *World) {
		for u, want := range map[string]string{"/x/talk.mp3?sig=1#t": "talk.mp3", "/%E6%B5%8B%E8%AF%95.wav": "测试.wav", "/": "audio", "": "audio", "/x/": "x"} {
			assert.Equal(t, want, w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.Host + u}).Object(t)["audio_filename"], u)
		}
		assert.Equal(t, "mine.flac", w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "audio_filename": "mine.flac"}).Object(t)["audio_filename"])
	}},
	{"POST /tasks: Base64 in the standard and the URL-safe alphabet", func(t *testing.T, w *World) {
		data := append(slices.Clone(w.Audio), 0xfb, 0xff, 0xfe)
		sum := md5.Sum(data)
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			id := w.createIdle(t, map[string]any{"audio_base64": e.EncodeToString(data), "audio_filename": "a.wav"})
			assert.Equal(t, hex.EncodeToString(sum[:]), w.idleTask(t, id)["audio_md5"])
		}
	}},
	{"POST /tasks: broken or empty Base64 is 400", func(t *testing.T, w *World) {
		for _, text := range []string{"", "A", "not base64!", "AAAA=", "AA=A"} {
			refusal(t, w.Idle(t, "POST", "/tasks", map[string]any{"audio_base64": text, "audio_filename": "a.wav"}), 400, "invalid_request")
		}
	}},
	{"POST /tasks: callback_url is checked like audio_url ≡", func(t *testing.T, w *World) {
		a := w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "callback_url": "http://10.0.0.1/hook"})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, string(a.Body), "callback_url")
	}},
	{"POST /tasks: unknown fields are 400 and name the nearest ≡", func(t *testing.T, w *World) {
		a := w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere(), "callbackurl": "x"})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, a.Object(t)["error"], `"callback_url"`)
	}},
	{"POST /tasks: 402 insufficient_balance, counting what tasks in processing reserve", func(t *testing.T, w *World) {
		none := w.Account(t, "none", "0", 5)
		refusal(t, w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere()}, "X-API-Key", none), 402, "insufficient_balance")
		poor := w.Account(t, "poor", "0.02", 5) // a minute of all three costs 0.0133
		require.Equal(t, 201, w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere()}, "X-API-Key", poor).Status)
		refusal(t, w.Idle(t, "POST", "/tasks", map[string]any{"audio_url": w.anywhere()}, "X-API-Key", poor), 402, "insufficient_balance")
		m := w.Idle(t, "GET", "/account", nil, "X-API-Key", poor).Object(t)
		assert.EqualValues(t, 0.0133, m["held_amount"])
		assert.EqualValues(t, 0.0067, m["available_balance"])
	}},
	{"POST /tasks: 429 concurrency_limit_exceeded beyond concurrency_limit; batch tasks are exempt", func(t *testing.T, w *World) {
		key := w.Account(t, "limited to two", "10", 2)
		body := map[string]any{"audio_url": w.anywhere()}
		for range 2 {
			require.Equal(t, 201, w.Idle(t, "POST", "/tasks", body, "X-API-Key", key).Status)
		}
		refusal(t, w.Idle(t, "POST", "/tasks", body, "X-API-Key", key), 429, "concurrency_limit_exceeded")
		body["batch_mode"] = true
		assert.Equal(t, 201, w.Idle(t, "POST", "/tasks", body, "X-API-Key", key).Status)
		m := w.Idle(t, "GET", "/account", nil, "X-API-Key", key).Object(t)
		assert.EqualValues(t, 2, m["concurrency_limit"])
		assert.EqualValues(t, 2, m["active_tasks"])
		assert.EqualValues(t, 0, m["available_concurrency"])
		assert.EqualValues(t, 1, m["waiting_batch_tasks"])
	}},
	{"POST /tasks/batch: 400 and nothing created unless batch_mode is true ≡", func(t *testing.T, w *World) {
		before := w.Idle(t, "GET", "/tasks", nil).Object(t)["total"]
		for _, mode := range []any{false, nil, "true", 1} {
			refusal(t, w.Idle(t, "POST", "/tasks/batch", map[string]any{"audio_url": []string{w.anywhere()}, "batch_mode": mode}), 400, "invalid_request")
		}
		refusal(t, w.Idle(t, "POST", "/tasks/batch", map[string]any{"audio_url": []string{w.anywhere()}}), 400, "invalid_request")
		assert.Equal(t, before, w.Idle(t, "GET", "/tasks", nil).Object(t)["total"])
	}},
	{"POST /tasks/batch: 1 to 100 URLs", func(t *testing.T, w *World) {
		for n, status := range map[int]int{0: 400, 1: 201, 100: 201, 101: 400, 10_000: 400} {
			a := w.Idle(t, "POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{w.anywhere()}, n)})
			require.Equal(t, status, a.Status, "%d: %.300s", n, a.Body)
			if status == 201 {
				assert.EqualValues(t, n, a.Object(t)["created_count"])
			}
		}
	}},
	{"POST /tasks/batch: audio_filename is as long as audio_url", func(t *testing.T, w *World) {
		urls := []string{w.anywhere(), w.anywhere()}
		for _, n := range [][]string{{"a.wav"}, {"a.wav", "b.wav", "c.wav"}, {}} {
			refusal(t, w.Idle(t, "POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "audio_filename": n}), 400, "invalid_request")
		}
		m := w.Idle(t, "POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "audio_filename": []string{"x.wav", "y.wav"}}).Object(t)
		assert.Equal(t, "y.wav", object(object(list(m["results"])[1])["task"])["audio_filename"])
	}},
	{"POST /tasks/batch: items succeed or fail independently", func(t *testing.T, w *World) {
		m := w.Idle(t, "POST", "/tasks/batch", map[string]any{
			"batch_mode": true, "options": map[string]any{"enable_diarize": false},
			"audio_url": []string{w.anywhere(), "http://10.0.0.1/2.wav", "", w.anywhere()},
		}).Object(t)
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
	{"POST /tasks/batch: exhausted balance does not affect the items before; status is 201", func(t *testing.T, w *World) {
		key := w.Account(t, "some batch", "0.02", 5) // half price: 0.0067 each
		a := w.Idle(t, "POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": slices.Repeat([]string{w.anywhere()}, 4)}, "X-API-Key", key)
		require.Equal(t, 201, a.Status)
		m := a.Object(t)
		assert.EqualValues(t, 2, m["created_count"])
		assert.EqualValues(t, 2, m["failed_count"])
		assert.Contains(t, object(list(m["results"])[3])["error"], "balance")
	}},
	{"GET /tasks: tasks, total, page (1) and page_size (20) by default", func(t *testing.T, w *World) {
		m := w.Idle(t, "GET", "/tasks", nil).Object(t)
		assert.Equal(t, sorted("tasks", "total", "page", "page_size"), names(m))
		assert.EqualValues(t, 1, m["page"])
		assert.EqualValues(t, 20, m["page_size"])
		assert.Len(t, m["tasks"], 20)
		assert.Greater(t, m["total"], 100.0)
		assert.Len(t, w.Idle(t, "GET", "/tasks?page_size=100", nil).Object(t)["tasks"], 100)
	}},
	{"GET /tasks: entries carry exactly seven fields", func(t *testing.T, w *World) {
		for _, e := range list(w.Do(t, "GET", "/tasks", nil).Object(t)["tasks"]) {
			assert.Equal(t, sorted("id", "status", "audio_filename", "audio_source_type", "created_at", "updated_at", "finished_at"), names(object(e)))
		}
	}},
	{"GET /tasks: status filters, another value is 400", func(t *testing.T, w *World) {
		for _, status := range []string{"processing", "done", "failed", "abandoned"} {
			entries := list(w.Do(t, "GET", "/tasks?page_size=100&status="+status, nil).Object(t)["tasks"])
			assert.True(t, status == "processing" || len(entries) > 0, status)
			for _, e := range entries {
				assert.Equal(t, status, object(e)["status"])
			}
		}
		for _, status := range []string{"pending", "DONE", "", "done%00", "%ff"} {
			refusal(t, w.Do(t, "GET", "/tasks?status="+status, nil), 400, "invalid_request")
		}
	}},
	{"GET /tasks: newest first, each once over all pages ≡", func(t *testing.T, w *World) {
		seen, last, total := map[any]bool{}, "9", 0.0
		for page := 1; ; page++ {
			m := get(t, w.Do, fmt.Sprintf("/tasks?page=%d&page_size=3", page))
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
	{"GET /tasks and transactions: page from 1, page_size up to 100, else 400 ≡", func(t *testing.T, w *World) {
		for _, path := range []string{"/tasks", "/billing/transactions"} {
			for _, q := range []string{"page=0", "page=-1", "page=x", "page=1.5", "page=99999999999999999999", "page=", "page=+1", "page=1&page=2", "page_size=0", "page_size=101", "page_size=1e2", "page=%zz"} {
				refusal(t, w.Do(t, "GET", path+"?"+q, nil), 400, "invalid_request")
			}
			m := get(t, w.Do, path+"?page=2&page_size=1")
			assert.EqualValues(t, 2, m["page"])
			assert.EqualValues(t, 1, m["page_size"])
			assert.Equal(t, 200, w.Do(t, "GET", path+"?page=1000000000&page_size=100", nil).Status, "beyond the end is empty")
		}
	}},
	{"GET /tasks/:id: 404 for a task that does not exist or an id that is none", func(t *testing.T, w *World) {
		for _, id := range []string{"01a1fe6c-4156-7cc0-98a4-f4501faaa7d1", "x", "0", strings.Repeat("a", 5000), "%00", "%ff", "..%2f..", "{" + w.All + "}", strings.ReplaceAll(w.All, "-", "")} {
			for _, q := range [][2]string{{"GET", ""}, {"GET", "/result"}, {"DELETE", ""}} {
				refusal(t, w.Do(t, q[0], "/tasks/"+id+q[1], nil), 404, "not_found")
			}
		}
		assert.Equal(t, 200, w.Do(t, "GET", "/tasks/"+strings.ToUpper(w.All), nil).Status, "a UUID in capitals is the same")
	}},
	{"GET /account: exactly the documented fields", func(t *testing.T, w *World) {
		assert.Equal(t, sorted("balance", "held_amount", "resource_pack_equivalent", "available_balance", "tier", "concurrency_limit", "active_tasks", "available_concurrency", "waiting_batch_tasks", "tps_limit", "tps_burst"),
			names(get(t, w.Do, "/account")))
	}},
	{"GET /audio-event-classes: 521 records with the six fields, in 8 categories", func(t *testing.T, w *World) {
		var classes []map[string]any
		require.NoError(t, json.Unmarshal(w.Do(t, "GET", "/audio-event-classes", nil).Body, &classes))
		require.Len(t, classes, 521)
		categories := map[any]bool{}
		for i, c := range classes {
			assert.Equal(t, sorted("index", "mid", "display_name", "zh_name", "category", "category_zh"), names(c))
			assert.EqualValues(t, i, c["index"])
			categories[c["category"]] = true
		}
		assert.Len(t, categories, 8)
	}},
	{"GET /pricing: public, cacheable for 5 minutes, exactly the documented fields and default prices", func(t *testing.T, w *World) {
		a := w.Do(t, "GET", "/pricing", nil, "X-API-Key", "")
		require.Equal(t, 200, a.Status)
		assert.Equal(t, "public, max-age=300", a.Header.Get("Cache-Control"))
		m := a.Object(t)
		assert.Regexp(t, stampForm, m["updated_at"])
		delete(m, "updated_at")
		assert.Equal(t, map[string]any{"standard_price_per_hour": 0.6, "zh_lite_price_per_hour": 0.2, "diarize_price_per_hour": 0.1, "audio_events_price_per_hour": 0.1, "batch_discount": 0.5}, m)
		assert.Equal(t, 200, w.Do(t, "GET", "/pricing", nil, "X-API-Key", "nonsense").Status, "credentials are ignored")
	}},
	{"GET /billing/transactions: newest first, with the record's fields and forms", func(t *testing.T, w *World) {
		m := get(t, w.Do, "/billing/transactions")
		assert.Equal(t, sorted("transactions", "total", "page", "page_size"), names(m))
		last := "9"
		for _, e := range list(m["transactions"]) {
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
		}
	}},
	{"All endpoints but GET /pricing and the login need authentication: 401", func(t *testing.T, w *World) {
		for _, q := range [][2]string{
			{"GET", "/tasks"},
			{"POST", "/tasks"},
			{"POST", "/tasks/batch"},
			{"GET", "/tasks/" + w.All},
			{"GET", "/tasks/" + w.All + "/result"},
			{"DELETE", "/tasks/" + w.All},
			{"GET", "/account"},
			{"GET", "/audio-event-classes"},
			{"GET", "/billing/transactions"},
		} {
			refusal(t, w.Do(t, q[0], q[1], nil, "X-API-Key", ""), 401, "unauthorized")
		}
	}},
	{"Callback: sent once when the task is final, a POST of application/json with five fields", func(t *testing.T, w *World) {
		for id, status := range map[string]string{w.All: "done", w.ByURL: "done", w.Failed: "failed", w.Abandoned: "abandoned"} {
			c := w.callback(t, id)
			assert.Equal(t, "application/json", c.Header.Get("Content-Type"))
			m := c.Object(t)
			assert.Equal(t, sorted("task_id", "status", "created_at", "finished_at", "error_message"), names(m))
			assert.Equal(t, id, m["task_id"])
			assert.Equal(t, status, m["status"])
			task := w.task(t, id)
			for _, f := range []string{"created_at", "finished_at", "error_message"} {
				assert.Equal(t, task[f], m[f], f)
			}
		}
	}},
	{"Callback: X-Signature is sha256= and the lowercase hex of HMAC-SHA256 over the raw body; absent without a secret", func(t *testing.T, w *World) {
		for _, id := range []string{w.All, w.Failed, w.Abandoned} {
			c := w.callback(t, id)
			mac := hmac.New(sha256.New, []byte(w.Secret))
			mac.Write(c.Body)
			assert.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), c.Header.Get("X-Signature"))
		}
		assert.Empty(t, w.callback(t, w.ByURL).Header.Values("X-Signature"))
	}},
}
