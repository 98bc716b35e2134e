package httpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/spec"
)

// form returns a multipart body with pairs of names and values, and "file" last
// or first.
func form(t testing.TB, filename string, fileFirst bool, pairs ...string) (io.Reader, http.Header) {
	t.Helper()
	var buf bytes.Buffer
	mw := multipart.NewWriter(&buf)
	file := func() {
		if filename == "" {
			return
		}
		part, err := mw.CreateFormFile("file", filename)
		require.NoError(t, err)
		_, _ = part.Write(wav(2))
	}
	if fileFirst {
		file()
	}
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(t, mw.WriteField(pairs[i], pairs[i+1]))
	}
	if !fileFirst {
		file()
	}
	require.NoError(t, mw.Close())
	return &buf, with("Content-Type", mw.FormDataContentType())
}

// openAIFailure reads an error in OpenAI's form.
func openAIFailure(t testing.TB, a answer) (message, param string) {
	t.Helper()
	var body struct {
		Error struct {
			Message, Type string
			Param, Code   *string
		}
	}
	require.NoError(t, json.Unmarshal(a.body, &body), "%s", a.body)
	require.NotEmpty(t, body.Error.Type)
	require.NotNil(t, body.Error.Code)
	if body.Error.Param != nil {
		param = *body.Error.Param
	}
	return body.Error.Message, param
}

func firstOf(message, _ string) string { return message }

// TestTranscriptions checks requests and responses of OpenAI's clients.
func TestTranscriptions(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(pairs ...string) answer {
		body, header := form(t, "talk.wav", len(pairs)%4 == 0, pairs...)
		return w.do("POST", "/audio/transcriptions", body, header, noKey, with("Authorization", "Bearer "+w.key))
	}
	const text = "Hello there. Good <b>day</b> & bye."

	a := post("model", "whisper-1")
	require.Equal(t, 200, a.status, "%s", a.body)
	english := []any{map[string]any{"code": "en"}}
	assert.Equal(t, map[string]any{"text": text, "languages": english, "usage": map[string]any{"type": "duration", "seconds": 62.0}}, a.object(t))
	id := a.header.Get("X-Task-Id")
	task := w.task(id)
	assert.Equal(t, "done", task["status"])
	assert.Equal(t, "talk.wav", task["audio_filename"])
	o := task["options"].(map[string]any)
	assert.Equal(t, []any{true, false, false, "segment"}, []any{o["enable_asr"], o["enable_diarize"], o["enable_audio_events"], o["timestamp_level"]})
	assert.Contains(t, string(w.do("GET", "/billing/transactions", nil).body), id, "charged like any task")

	a = post("model", "whisper-1", "response_format", "text")
	assert.Equal(t, text+"\n", string(a.body))
	assert.Contains(t, a.header.Get("Content-Type"), "text/plain")

	a = post("response_format", "srt")
	assert.Contains(t, string(a.body), "1\n00:00:00,500 --> 00:00:01,750\nHello there.")
	a = post("response_format", "vtt", "model", "otograph")
	assert.True(t, strings.HasPrefix(string(a.body), "WEBVTT"))

	a = post("response_format", "verbose_json")
	m := a.object(t)
	assert.Equal(t, []any{"transcribe", "english", 61.5, text}, []any{m["task"], m["language"], m["duration"], m["text"]})
	assert.Len(t, m["segments"], 2)
	assert.NotContains(t, m, "words")

	a = post("response_format", "verbose_json", "timestamp_granularities[]", "word")
	m = a.object(t)
	assert.NotContains(t, m, "segments")
	assert.Equal(t, map[string]any{"word": "Hello", "start": 0.5, "end": 1.0}, m["words"].([]any)[0])

	a = post("response_format", "verbose_json", "timestamp_granularities[]", "word", "timestamp_granularities[]", "segment")
	m = a.object(t)
	assert.Len(t, m["segments"], 2)
	assert.Len(t, m["words"], 3)

	a = post("language", "fr", "language", "de", "prompt", "Otograph", "temperature", "0.2", "model", "", "user", "someone")
	require.Equal(t, 200, a.status, "%s", a.body)
	o = w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)
	assert.Equal(t, []any{"de", "Otograph", 0.2}, []any{o["asr_language"], o["initial_prompt"], o["asr_temperature"]})

	for _, bad := range [][]string{
		{"response_format", "xml"},
		{"language", "klingon"},
		{"temperature", "hot"},
		{"temperature", "2"},
		{"keywords[]", "<b>"},
		{"keywords[]", strings.Repeat("x", 65)},
		{"languages[]", "klingon"},
		{"language", "de", "languages[]", "fr"},
		{"response_format", "verbose_json", "timestamp_granularities[]", "char"},
		{"stream", "maybe"},
		{"prompt", strings.Repeat("x", 100_000)},
		{"language", "a\x00"},
		{"temperature", "NaN"},
	} {
		a := post(bad...)
		assert.Equal(t, 400, a.status, "%q: %.200s", bad, a.body)
		message, param := openAIFailure(t, a)
		assert.Contains(t, message, bad[len(bad)-2])
		assert.Equal(t, bad[len(bad)-2], param)
	}
}

// TestVerboseSegments: a segment of verbose_json has the recognizer's measures,
// and 0 for missing measures, never null.
func TestVerboseSegments(t *testing.T) {
	w := newWorld(t)
	w.work()
	for model, heat := range map[string]any{"otograph-standard": 0.2, "otograph-optimized": 0.0} {
		body, header := form(t, "talk.wav", true, "model", model, "response_format", "verbose_json")
		a := w.do("POST", "/audio/transcriptions", body, header)
		segments := a.object(t)["segments"].([]any)
		assert.Equal(t, model, a.object(t)["model"], "the tier that ran")
		assert.Equal(t, map[string]any{
			"id": 0.0, "seek": 25.0, "start": 0.5, "end": 1.75, "text": "Hello there.", "tokens": []any{7.0, 8.0}, "temperature": heat,
			"avg_logprob": -0.25, "compression_ratio": 0.5, "no_speech_prob": 0.05,
		}, segments[0])
		second := segments[1].(map[string]any)
		assert.Equal(t, []any{0.0, []any{}, 0.0, 0.0, 0.0}, []any{second["seek"], second["tokens"], second["temperature"], second["avg_logprob"], second["no_speech_prob"]})
		result := w.do("GET", "/tasks/"+a.header.Get("X-Task-Id")+"/result", nil)
		assert.NotContains(t, string(result.body), "avg_logprob", "the specification's result is unchanged")
	}
}

// TestKeywordsLanguagesAndDatedModels: keywords become hotwords, languages
// reach the worker, a single language counts as given, and dated model names
// are accepted.
func TestKeywordsLanguagesAndDatedModels(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(pairs ...string) map[string]any {
		body, header := form(t, "talk.wav", true, pairs...)
		a := w.do("POST", "/audio/transcriptions", body, header)
		require.Equal(t, 200, a.status, "%s", a.body)
		return w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)
	}
	o := post("model", "gpt-transcribe", "keywords[]", "Otograph", "keywords[]", "Doe, John", "languages[]", "de", "languages[]", "en")
	assert.Equal(t, []any{"Otograph", "Doe, John"}, o["hotwords"])
	assert.Nil(t, o["asr_language"])
	assert.Equal(t, "de", post("model", "gpt-live-transcribe", "languages[]", "de", "language", "")["asr_language"])
	assert.Nil(t, post("model", "gpt-4o-mini-transcribe-2025-12-15", "language", "auto", "timestamp_granularities[]", "word")["asr_language"])

	stop, err := w.tasks.Queue().Enter(t.Context(), queue.Member{ID: "demo", Kind: queue.Worker, Available: spec.Available{Standard: true, StandardLanguages: []string{"en"}}}, time.Hour, nil)
	require.NoError(t, err)
	defer stop()
	for name, pairs := range map[string][]string{"languages[]": {"languages", "de,fr"}, "language": {"language", "de"}} {
		body, header := form(t, "talk.wav", true, pairs...)
		a := w.do("POST", "/audio/transcriptions", body, header)
		require.Equal(t, 400, a.status, name)
		message, param := openAIFailure(t, a)
		assert.Equal(t, name, param)
		assert.Contains(t, message, "installed: en")
	}
}

// TestTranslations: the text is English and charged at the standard tier; a
// translation's unsupported fields are refused by name, and so are models that
// cannot translate.
func TestTranslations(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(pairs ...string) answer {
		body, header := form(t, "talk.wav", true, pairs...)
		return w.do("POST", "/audio/translations", body, header)
	}
	const text = "Hello there. In English."
	a := post("model", "whisper-1", "prompt", "A talk.", "language", "de")
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, map[string]any{"text": text, "usage": map[string]any{"type": "duration", "seconds": 62.0}}, a.object(t))
	id := a.header.Get("X-Task-Id")
	o := w.task(id)["options"].(map[string]any)
	assert.Equal(t, []any{false, "de", "A talk.", false}, []any{o["optimize"], o["asr_language"], o["initial_prompt"], o["enable_diarize"]})
	bill := w.do("GET", "/tasks/"+id+"/result", nil).object(t)["billing"].(map[string]any)
	assert.Equal(t, "standard", bill["mode"])

	m := post("response_format", "verbose_json").object(t)
	assert.Equal(t, []any{"translate", "english", text}, []any{m["task"], m["language"], m["text"]})
	assert.Equal(t, -0.25, m["segments"].([]any)[0].(map[string]any)["avg_logprob"])
	assert.Equal(t, text+"\n", string(post("response_format", "text").body))
	assert.Contains(t, string(post("response_format", "srt").body), "In English.")

	for field, pair := range map[string][]string{
		"model":                   {"model", "otograph-optimized"},
		"response_format":         {"response_format", "diarized_json"},
		"stream":                  {"stream", "true"},
		"timestamp_granularities": {"timestamp_granularities[]", "word"},
		"include":                 {"include[]", "logprobs"},
		"known_speaker_names":     {"known_speaker_names[]", "Ann"},
	} {
		a := post(pair...)
		assert.Equal(t, 400, a.status)
		_, param := openAIFailure(t, a)
		assert.Equal(t, field, param)
	}
	assert.Equal(t, 400, post("model", "otograph-diarize").status)

	stop, err := w.tasks.Queue().Enter(t.Context(), queue.Member{ID: "demo", Kind: queue.Worker, Available: spec.Available{Standard: true}}, time.Hour, nil)
	require.NoError(t, err)
	defer stop()
	a = post("model", "whisper-1")
	require.Equal(t, 400, a.status)
	message, param := openAIFailure(t, a)
	assert.Equal(t, "model", param)
	assert.Contains(t, message, "not all installed models can translate")
}

// TestKnownSpeakers: recordings of known speakers reach the worker, their names
// the response, and neither outlives the task. Invalid fields are refused by
// name and leave no files.
func TestKnownSpeakers(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Tasks.Config.Prober = fakeProber(func(path, _ string) (float64, error) {
			info, err := os.Stat(path)
			if err != nil {
				return 0, err
			}
			return float64(info.Size()-44) / 8000, nil
		})
	})
	w.work()
	url := func(audio []byte) string { return "data:audio/wav;base64," + base64.StdEncoding.EncodeToString(audio) }
	ann, bob := []string{"known_speaker_names[]", "Ann", "known_speaker_references[]", url(wav(2))}, []string{"known_speaker_references[]", url(wav(3)), "known_speaker_names[]", "Bob"}
	post := func(pairs ...string) answer {
		body, header := form(t, "talk.wav", false, append([]string{"model", "gpt-4o-transcribe-diarize", "response_format", "diarized_json"}, pairs...)...)
		return w.do("POST", "/audio/transcriptions", body, header)
	}
	references := func() (n int) {
		for _, key := range blobKeys(t, w) {
			if strings.HasPrefix(key, "checkpoints/") {
				n++
			}
		}
		return n
	}
	a := post(append(slices.Clone(ann), bob...)...)
	require.Equal(t, 200, a.status, "%s", a.body)
	for _, seg := range a.object(t)["segments"].([]any) {
		assert.Equal(t, "Ann", seg.(map[string]any)["speaker"])
	}
	id := a.header.Get("X-Task-Id")
	result := string(w.do("GET", "/tasks/"+id+"/result", nil).body)
	assert.Contains(t, result, "SPEAKER_0")
	assert.NotContains(t, result, "Ann")
	require.Eventually(t, func() bool { return references() == 0 }, 20*time.Second, 25*time.Millisecond, "they are deleted at the task's end")

	list, err := json.Marshal([]string{url(wav(2)), url(wav(3))})
	require.NoError(t, err)
	a = post("known_speaker_names", `["Ann","Bob"]`, "known_speaker_references", string(list))
	require.Equal(t, 200, a.status, "%s", a.body)
	assert.Equal(t, "Ann", a.object(t)["segments"].([]any)[0].(map[string]any)["speaker"])
	require.Eventually(t, func() bool { return references() == 0 }, 20*time.Second, 25*time.Millisecond)

	for _, bad := range []struct {
		want, param string
		form        []string
	}{
		{"expected a data URL or a JSON array of data URLs", "known_speaker_references[]", []string{"known_speaker_references", "[1]"}},
		{"number 1: expected a data URL", "known_speaker_references[]", []string{"known_speaker_references", `["","",""]`}},
		{"expected a data URL or a JSON array of data URLs", "known_speaker_references[]", []string{"known_speaker_references", `["` + url(wav(2))}},
		{"number 2: invalid base64", "known_speaker_references[]", []string{"known_speaker_references", `["` + url(wav(2)) + `","data:audio/wav;base64,A"]`}},
		{"expected 2 to 10 s of audio, found 1.0 s", "known_speaker_references[]", append(slices.Clone(ann), "known_speaker_names[]", "Bob", "known_speaker_references[]", url(wav(1)))},
		{"number 1: expected 2 to 10 s of audio, found 11.0 s", "known_speaker_references[]", []string{"known_speaker_names[]", "Bob", "known_speaker_references[]", url(wav(11))}},
		{"expected one for each of 2 names, found 1", "known_speaker_references[]", append(slices.Clone(ann), "known_speaker_names[]", "Bob")},
		{"expected one for each of 0 names, found 1", "known_speaker_references[]", ann[2:]},
		{"expected a data URL", "known_speaker_references[]", []string{"known_speaker_references[]", "https://example.com/a.wav"}},
		{"expected a data URL", "known_speaker_references[]", []string{"known_speaker_references[]", strings.Repeat("x", 1000)}},
		{"number 1: invalid base64", "known_speaker_references[]", []string{"known_speaker_references[]", "data:audio/wav;base64,A$$$"}},
		{"number 2 is given twice", "known_speaker_names[]", append(slices.Clone(ann), ann...)},
		{"number 1 must have 1 to 100 printable characters", "known_speaker_names[]", append([]string{"known_speaker_names[]", " "}, ann[2:]...)},
		{"at most 4 are taken", "known_speaker_references[]", slices.Repeat(ann[2:], 5)},
	} {
		a := post(bad.form...)
		assert.Equal(t, 400, a.status, "%.300s", a.body)
		message, param := openAIFailure(t, a)
		assert.Contains(t, message, bad.want)
		assert.Equal(t, bad.param, param)
	}
	body, header := form(t, "mixed.wav", true, append([]string{"response_format", "diarized_json"}, ann...)...)
	a = w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, 400, a.status, "errors that only the worker finds read like refusals of the form")
	message, param := openAIFailure(t, a)
	assert.Equal(t, []string{"known_speaker_references[]: number 1: two voices", "known_speaker_references[]"}, []string{message, param})
	require.Eventually(t, func() bool { return references() == 0 }, 20*time.Second, 25*time.Millisecond)
	body, header = form(t, "talk.wav", true, ann...)
	a = w.do("POST", "/audio/transcriptions", body, header)
	assert.Contains(t, firstOf(openAIFailure(t, a)), "needs response_format diarized_json")
	assert.Zero(t, references(), "refused requests leave nothing")
}

// TestReferencesAreProbedLast: recordings of known speakers are only probed if
// all other fields are valid and the account can pay; refused requests leave no
// files.
func TestReferencesAreProbedLast(t *testing.T) {
	var probed []string
	var mu sync.Mutex
	w := newWorld(t, func(c *Config) {
		c.Tasks.Config.Prober = fakeProber(func(_, name string) (float64, error) {
			mu.Lock()
			defer mu.Unlock()
			probed = append(probed, name)
			return 1, nil
		})
	})
	_, broke := w.newAccount("broke", "0")
	pairs := []string{
		"response_format", "diarized_json", "known_speaker_names[]", "Ann",
		"known_speaker_references[]", "data:audio/wav;base64," + base64.StdEncoding.EncodeToString(wav(1)),
	}
	for _, tt := range []struct {
		name, file, key string
		status          int
		probed          []string
	}{
		{"no file", "", w.key, 400, nil},
		{"no money", "talk.wav", broke, 402, nil},
		{"too short", "talk.wav", w.key, 400, []string{"talk.wav", "reference"}},
	} {
		body, header := form(t, tt.file, false, pairs...)
		a := w.do("POST", "/audio/transcriptions", body, header, with("X-Api-Key", tt.key))
		assert.Equal(t, tt.status, a.status, "%s: %s", tt.name, a.body)
		mu.Lock()
		assert.Equal(t, tt.probed, probed, tt.name)
		mu.Unlock()
		assert.Empty(t, blobKeys(t, w), tt.name)
	}
}

func TestTranscriptionRefusals(t *testing.T) {
	w := newWorld(t)
	w.work()
	body, header := form(t, "", true, "model", "whisper-1")
	a := w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, 400, a.status)
	assert.Contains(t, firstOf(openAIFailure(t, a)), "file: is required")
	for name, kind := range map[string]string{"json": "application/json", "no boundary": "multipart/form-data", "none": "x", "mixed": "multipart/mixed; boundary=x"} {
		assert.Equal(t, 415, w.do("POST", "/audio/transcriptions", "{}", with("Content-Type", kind)).status, name)
	}
	for name, raw := range map[string]string{
		"empty": "", "no parts": "--x--\r\n", "cut": "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF", "no name": "--x\r\n\r\nRIFF\r\n--x--\r\n",
		"empty file": "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n\r\n--x--\r\n",
		"many":       strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n", 100) + "--x--\r\n", "long header": "--x\r\nA: " + strings.Repeat("a", 20<<20),
		"two files": strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n", 2) + "--x--\r\n",
	} {
		a := w.do("POST", "/audio/transcriptions", raw, with("Content-Type", "multipart/form-data; boundary=x"))
		assert.Equal(t, 400, a.status, "%s: %s", name, a.body)
	}
	assert.Empty(t, blobKeys(t, w), "no upload is left")

	body, header = form(t, "broken.wav", true)
	a = w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, 400, a.status)
	assert.Contains(t, firstOf(openAIFailure(t, a)), "longer than 5 hours")
	assert.Equal(t, "false", a.header.Get("X-Should-Retry"), "another request would make another task")
	_, broke := w.newAccount("broke", "0")
	body, header = form(t, "talk.wav", true)
	a = w.do("POST", "/audio/transcriptions", body, header, with("X-Api-Key", broke))
	assert.Equal(t, 402, a.status)
}

// TestListedModelsCanBeSent: every listed model can be retrieved and sent.
func TestListedModelsCanBeSent(t *testing.T) {
	w := newWorld(t)
	w.work()
	list := w.do("GET", "/models", nil).object(t)
	assert.Equal(t, "list", list["object"])
	for _, m := range list["data"].([]any) {
		id := m.(map[string]any)["id"].(string)
		assert.Equal(t, m, w.do("GET", "/models/"+id, nil).object(t))
		body, header := form(t, "talk.wav", true, "model", id)
		assert.Equal(t, 200, w.do("POST", "/audio/transcriptions", body, header).status, id)
	}
	for model, tier := range map[string]any{"otograph-standard": false, "otograph-optimized": true, "otograph": nil} {
		body, header := form(t, "talk.wav", true, "model", model)
		id := w.do("POST", "/audio/transcriptions", body, header).header.Get("X-Task-Id")
		assert.Equal(t, tier, w.task(id)["options"].(map[string]any)["optimize"], model)
	}
	a := w.do("GET", "/models/whisper-9", nil)
	message, param := openAIFailure(t, a)
	assert.Equal(t, []any{404, "model"}, []any{a.status, param})
	assert.Contains(t, message, "otograph-standard")
	body, header := form(t, "talk.wav", true, "model", "whisper-9")
	assert.Equal(t, 404, w.do("POST", "/audio/transcriptions", body, header).status)
	for _, path := range []string{"/realtime/calls", "/live/sessions", "/audio/speech"} {
		a := w.send("GET", "/v1"+path, nil, nil)
		assert.Equal(t, 404, a.status, path)
		openAIFailure(t, a)
	}
}

// TestNamedModels: a task keeps its model of the folder, in the model's tier;
// the error for an unknown name lists the known ones.
func TestNamedModels(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ModelAliases = map[string]string{"house": "whisper-base-q8_0"} })
	known := []spec.NamedModel{{Name: "whisper-base-q8_0", Tier: spec.TierStandard}, {Name: "tiny.en", Tier: spec.TierStandard, Languages: []string{"en"}}}
	body, header := form(t, "talk.wav", true, "model", "tiny.en")
	early := w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, []any{404, "true"}, []any{early.status, early.header.Get("X-Should-Retry")}, "no worker has reported its models")
	stop, err := w.tasks.Queue().Enter(t.Context(), queue.Member{ID: "one", Kind: queue.Worker, Available: spec.Available{Standard: true, Translates: true, Models: known}}, time.Hour, nil)
	require.NoError(t, err)
	defer stop()
	texts := map[string]string{"house": "By whisper-base-q8_0.", "Systran/faster-whisper-base": "By whisper-base-q8_0.", "tiny.en": "By tiny.en.", "whisper-1": "Hello there."}
	var wg sync.WaitGroup
	for model, begin := range texts {
		wg.Go(func() {
			body, header := form(t, "talk.wav", true, "model", model)
			a := w.do("POST", "/audio/transcriptions", body, header)
			assert.Equal(t, 200, a.status, "%s: %s", model, a.body)
			assert.True(t, strings.HasPrefix(a.object(t)["text"].(string), begin), "%s: %s", model, a.body)
			assert.Equal(t, map[bool]any{true: nil, false: false}[model == "whisper-1"], w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)["optimize"])
		})
	}
	require.Eventually(t, func() bool { return w.do("GET", "/account", nil).object(t)["active_tasks"] == float64(len(texts)) }, 20*time.Second, 25*time.Millisecond)
	w.work() // started late: the tasks were accepted with the names as sent
	wg.Wait()

	m := w.do("GET", "/models/tiny.en", nil).object(t)
	assert.Equal(t, []any{[]any{"en"}, true, false}, []any{m["languages"], m["word_times"], m["translates"]})
	assert.Equal(t, "Systran/faster-whisper-base", w.do("GET", "/models/Systran%2Ffaster-whisper-base", nil).object(t)["id"])
	body, header = form(t, "talk.wav", true, "model", "whisper-9")
	a := w.do("POST", "/audio/transcriptions", body, header)
	assert.Equal(t, 404, a.status)
	assert.Contains(t, firstOf(openAIFailure(t, a)), "house, whisper-base-q8_0, tiny.en")
	for param, pairs := range map[string][]string{"language": {"model", "tiny.en", "language", "de"}, "model": {"model", "tiny.en"}} {
		path := map[string]string{"language": "/audio/transcriptions", "model": "/audio/translations"}[param]
		body, header := form(t, "talk.wav", true, pairs...)
		a := w.do("POST", path, body, header)
		_, got := openAIFailure(t, a)
		assert.Equal(t, []any{400, param}, []any{a.status, got})
	}
}

func TestTranscriptionWithSpeakersAndLogprobs(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(pairs ...string) answer {
		body, header := form(t, "talk.wav", true, pairs...)
		return w.do("POST", "/audio/transcriptions", body, header)
	}
	for _, pairs := range [][]string{{"model", "gpt-4o-transcribe-diarize", "response_format", "diarized_json"}, {"response_format", "diarized_json", "chunking_strategy", "auto"}} {
		m := post(pairs...).object(t)
		assert.Equal(t, map[string]any{
			"type": "transcript.text.segment", "id": "seg_0", "start": 0.5, "end": 1.75, "text": "Hello there.", "speaker": "SPEAKER_0",
		}, m["segments"].([]any)[0])
	}
	m := post("include[]", "logprobs").object(t)
	first := m["logprobs"].([]any)[0].(map[string]any)
	assert.Equal(t, " Hello", first["token"])
	assert.InDelta(t, math.Log(0.9), first["logprob"], 1e-9)
	assert.Equal(t, []any{32.0, 72.0, 101.0, 108.0, 108.0, 111.0}, first["bytes"])

	a := post("chunking_strategy[type]", "server_vad", "chunking_strategy[threshold]", "0.7", "chunking_strategy[silence_duration_ms]", "300", "chunking_strategy[prefix_padding_ms]", "40")
	o := w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)
	assert.Equal(t, []any{0.7, 300.0, 40.0}, []any{o["vad_threshold"], o["vad_min_silence_ms"], o["vad_speech_pad_ms"]})
	a = post("chunking_strategy", `{"type": "server_vad", "threshold": 0.6}`)
	assert.Equal(t, 0.6, w.task(a.header.Get("X-Task-Id"))["options"].(map[string]any)["vad_threshold"])

	for _, bad := range []struct {
		param string
		form  []string
	}{
		{"include[]", []string{"include[]", "tokens"}},
		{"include[]", []string{"include[]", "logprobs", "response_format", "text"}},
		{"model", []string{"include[]", "logprobs", "model", "otograph-optimized"}},
		{"stream", []string{"stream", "true", "response_format", "srt"}},
		{"chunking_strategy", []string{"chunking_strategy", "fixed"}},
		{"chunking_strategy", []string{"chunking_strategy", "{"}},
		{"chunking_strategy", []string{"chunking_strategy", "{} {}"}},
		{"temperature", []string{"temperature", "0", "temperature", "warm"}},
		{"chunking_strategy", []string{"chunking_strategy", `{"type": "client"}`}},
		{"chunking_strategy.threshold", []string{"chunking_strategy[threshold]", "loud"}},
		{"chunking_strategy", []string{"chunking_strategy[length]", "3"}},
		{"chunking_strategy.threshold", []string{"chunking_strategy[threshold]", "3"}},
	} {
		a := post(bad.form...)
		assert.Equal(t, 400, a.status, "%q: %s", bad.form, a.body)
		message, param := openAIFailure(t, a)
		assert.Equal(t, bad.param, param, message)
	}
}

// readEvents reads a stream to its end.
func readEvents(t testing.TB, a answer) []map[string]any {
	t.Helper()
	require.Equal(t, "text/event-stream; charset=utf-8", a.header.Get("Content-Type"))
	var out []map[string]any
	for _, block := range strings.Split(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(block, "data: ")
		if !ok {
			require.True(t, strings.HasPrefix(block, ":"), block)
			continue
		}
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(data), &m))
		out = append(out, m)
	}
	return out
}

func TestStreamedTranscription(t *testing.T) {
	w := newWorld(t)
	w.work()
	post := func(file string, pairs ...string) []map[string]any {
		body, header := form(t, file, true, append(pairs, "stream", "true")...)
		return readEvents(t, w.do("POST", "/audio/transcriptions", body, header))
	}
	const text = "Hello there. Good <b>day</b> & bye."
	got := post("talk.wav")
	require.Len(t, got, 3)
	assert.Equal(t, text, got[0]["delta"].(string)+got[1]["delta"].(string), "the deltas together are the text")
	assert.Equal(t, map[string]any{"type": "transcript.text.done", "text": text, "languages": []any{map[string]any{"code": "en"}}}, got[2], "without usage, which OpenAI counts in tokens")

	got = post("talk.wav", "response_format", "diarized_json")
	require.Len(t, got, 5)
	assert.Equal(t, []any{"transcript.text.segment", "SPEAKER_0", "seg_0"}, []any{got[2]["type"], got[2]["speaker"], got[2]["id"]}, "after all text")

	got = post("talk.wav", "include[]", "logprobs")
	assert.Len(t, got[len(got)-1]["logprobs"], 3)

	got = post("broken.wav")
	require.Len(t, got, 1)
	assert.Contains(t, got[0]["error"].(map[string]any)["message"], "longer than 5 hours")
}

// TestDrainEndsWaits: a server that is about to stop does not wait for a task.
func TestDrainEndsWaits(t *testing.T) {
	w := newWorld(t) // no worker: the task never ends
	body, header := form(t, "talk.wav", true)
	got := make(chan answer)
	go func() { got <- w.do("POST", "/audio/transcriptions", body, header) }()
	require.Eventually(t, func() bool {
		return w.do("GET", "/account", nil).object(t)["active_tasks"] == 1.0
	}, 10*time.Second, 25*time.Millisecond)
	assert.Equal(t, 200, w.send("GET", "/readyz", nil, nil).status)
	w.api.Drain()
	w.api.Drain()
	a := <-got
	assert.Equal(t, 503, a.status)
	assert.Contains(t, firstOf(openAIFailure(t, a)), "GET /tasks/")
	assert.Equal(t, 503, w.send("GET", "/readyz", nil, nil).status)
	assert.Equal(t, 200, w.send("GET", "/healthz", nil, nil).status)
}

// TestClientGoesAway: the task of a client that disconnects continues.
func TestClientGoesAway(t *testing.T) {
	w := newWorld(t)
	body, header := form(t, "talk.wav", true)
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/audio/transcriptions", body)
	require.NoError(t, err)
	req.Header = header
	req.Header.Set("X-API-Key", w.key)
	done := make(chan error, 1)
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	require.Eventually(t, func() bool {
		return w.do("GET", "/account", nil).object(t)["active_tasks"] == 1.0
	}, 10*time.Second, 25*time.Millisecond)
	cancel()
	assert.Error(t, <-done)
	require.Eventually(t, func() bool { return strings.Contains(w.log.String(), `"status":499`) }, 10*time.Second, 25*time.Millisecond)
	list := w.do("GET", "/tasks?status=processing", nil).object(t)
	assert.EqualValues(t, 1, list["total"])
}
