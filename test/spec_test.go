package test

import (
	"bytes"
	"encoding/base64"
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

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// walk is a service with finished tasks of every kind, and another one that
// never runs any.
type walk struct {
	*server
	idle  *server
	out   *customer
	db    *db.DB
	audio []byte

	all, lite, events, segment, german, chinese, byURL, batch string // done
	refused, small, huge, garbage                             string // failed for good
	abandoned                                                 string
	waiting                                                   string // failed, with a retry scheduled
}

// statement is a statement of the specification that only this test checks.
type statement struct {
	Says  string
	Check func(t *testing.T, w *walk)
}

// TestSpecification checks the specification with the built binary, statement
// by statement, on both databases. The short form has SQLite: package
// httpserver checks the shared statements on PostgreSQL.
func TestSpecification(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		walkThrough(t, func() []string { return nil })
	})
	t.Run("postgres", func(t *testing.T) {
		if testing.Short() {
			t.Skip("at length: make test-extent")
		}
		t.Parallel()
		walkThrough(t, func() []string { return []string{"--database", dbtest.PostgresSource(t)} })
	})
}

func walkThrough(t *testing.T, database func() []string) {
	w := newWalk(t, database)
	shared := w.world()
	taskstest.RunStatements(t, taskstest.Statements, func(*testing.T) *taskstest.World { return shared })
	taskstest.RunStatements(t, statements, func(sub *testing.T) *walk {
		w.server.t, w.idle.t = sub, sub
		sub.Cleanup(func() { w.server.t, w.idle.t = t, t })
		return w
	})
	exact(t, w.db)
}

func newWalk(t *testing.T, database func() []string) *walk {
	w := &walk{out: newCustomer(t), audio: clip(t, 8, 3)}
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

	// A task that fails repeatedly is retried after 10 s, 1 min and 5 min: the
	// test checks the scheduled time, then moves it forward.
	for i, planned := range []float64{10, 60, 300} {
		if i == 1 {
			park(t, w.db, w.waiting) // also before the final failure
		}
		require.Eventually(t, func() bool {
			return count(t, w.db, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase IN ('queued', 'delayed') AND failures = $2", w.abandoned, i+1) == 1
		}, patience, 20*time.Millisecond, "attempt %d", i+1)
		delay := float64(count(t, w.db, "SELECT run_at - updated_at FROM tasks WHERE id = $1", w.abandoned)) / 1e6
		assert.InDelta(t, planned, delay, planned*0.2+1e-6, "the pause before attempt %d", i+2)
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

// world returns the walk as the statements that only need requests see it.
func (w *walk) world() *taskstest.World {
	request := func(s *server) taskstest.Request {
		return func(t *testing.T, method, path string, body any, headers ...string) taskstest.Answer {
			before := s.t
			s.t = t
			defer func() { s.t = before }()
			a := s.do(method, path, body, headers...)
			return taskstest.Answer{Status: a.status, Header: a.header, Body: a.body}
		}
	}
	return &taskstest.World{
		Do: request(w.server), Idle: request(w.idle),
		Account: func(t *testing.T, name, balance string, concurrency int) string {
			key := w.idle.account(name, balance)
			w.idle.must("account", "limits", name, "--tps", "1000", "--burst", "1000", "--concurrency", strconv.Itoa(concurrency))
			time.Sleep(250 * time.Millisecond) // until the service reloads the limits
			return key
		},
		Host: "http://1.1.1.1", Audio: w.audio, Seconds: 3,
		All: w.all, ASR: w.lite, Events: w.events, ByURL: w.byURL, Batch: w.batch, Failed: w.refused, Abandoned: w.abandoned, Pending: w.waiting,
		Callbacks: func(task string) (list []taskstest.Answer) {
			for _, c := range w.out.callbacks(task) {
				list = append(list, taskstest.Answer{Header: c.header, Body: c.body})
			}
			return list
		},
		Secret: "a secret",
	}
}

// refusal asserts a status and an error code.
func refusal(t *testing.T, a answer, status int, code string) {
	t.Helper()
	assert.Equal(t, status, a.status, "%.300s", a.body)
	assert.Equal(t, code, a.code(t))
	assert.Equal(t, "application/json", a.header.Get("Content-Type"))
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

// anywhere is a public address: a task with it is accepted, and the idle server
// never fetches it.
const anywhere = "http://1.1.1.1/talk.wav"

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// statements follow the order of the specification.
var statements = []statement{
	// What the service does
	{"All paths are relative to a base that ends with /v1", func(t *testing.T, w *walk) {
		assert.Equal(t, 200, w.do("GET", "/pricing", nil).status)
		refusal(t, w.do("GET", "//pricing", nil), 404, "not_found")
		refusal(t, w.do("GET", "//v2/pricing", nil), 404, "not_found")
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
	{"Task: status is processing, done, failed or abandoned", func(t *testing.T, w *walk) {
		for id, status := range map[string]string{w.all: "done", w.refused: "failed", w.waiting: "failed", w.abandoned: "abandoned"} {
			assert.Equal(t, status, w.task(id)["status"])
		}
	}},
	{"Task: audio_filename includes the extension", func(t *testing.T, w *walk) {
		assert.Equal(t, "clip.wav", w.task(w.all)["audio_filename"])
		assert.Equal(t, "moved.wav", w.task(w.byURL)["audio_filename"])
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

	// Options
	{"Options: an asr_language that no worker's model supports is refused, and the error lists the installed languages ≡", func(t *testing.T, w *walk) {
		a := w.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": map[string]any{"asr_language": "th"}})
		refusal(t, a, 400, "invalid_request")
		assert.Contains(t, string(a.body), "en")
		assert.Contains(t, string(a.body), "installed")
	}},

	// Result
	{"Result: language is a code and language_probability from 0 to 1", func(t *testing.T, w *walk) {
		r := w.result(w.byURL)
		assert.Regexp(t, `^[a-z]{2,3}$`, r["language"])
		assert.InDelta(t, 0.5, r["language_probability"], 0.5)
		assert.Equal(t, "en", w.result(w.all)["language"])
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
	{"States: what failed costs nothing and holds nothing", func(t *testing.T, w *walk) {
		ledger := string(w.do("GET", "/billing/transactions?page_size=100", nil).body)
		for _, id := range []string{w.refused, w.abandoned, w.garbage} {
			assert.NotContains(t, ledger, id)
			assert.Zero(t, count(t, w.db, "SELECT COUNT(*) FROM holds WHERE task_id = $1", id))
		}
	}},

	// POST /tasks
	{"POST /tasks: audio_url must be publicly reachable", func(t *testing.T, w *walk) {
		for _, u := range []string{
			"", "a.wav", "ftp://1.1.1.1/a", "file:///etc/passwd", "http://127.0.0.1/a.wav", "http://10.0.0.1/", "http://192.168.1.1/", "http://localhost/", "http://[::1]/",
			"http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest/meta-data/", "http://2130706433/", "http://0x7f.1/", "http://0/", "http://100.64.0.1/", "http://u:p@1.1.1.1/", "https://1.1.1.1:22/", "data:audio/wav,x",
		} {
			refusal(t, w.idle.do("POST", "/tasks", map[string]any{"audio_url": u}), 400, "invalid_request")
		}
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
		if testing.Short() && w.database != "" {
			t.Skip("at length: make test-extent")
		}
		encode := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "anullsrc=r=1000:cl=mono", "-t", "18002", "-c:a", "flac", "-f", "flac", "-")
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

	// GET /tasks

	// GET /tasks/:id, result, DELETE
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
		assert.Len(t, a.object(t), 1)
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
	{"GET /account: available_balance = balance + resource_pack_equivalent − held_amount; packs raise concurrency", func(t *testing.T, w *walk) {
		key := w.idle.account("packed", "5")
		w.idle.must("account", "credit", "packed", "3", "--expires", "24h", "--concurrency", "7")
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
			w.idle.must("account", "limits", "tiers", "--tier", strconv.Itoa(tier))
			m := w.idle.do("GET", "/account", nil, "X-API-Key", key).object(t)
			assert.EqualValues(t, tier, m["tier"])
			assert.Equal(t, []any{n, n, 2 * n, n}, []any{m["concurrency_limit"], m["tps_limit"], m["tps_burst"], m["available_concurrency"]})
		}
		_, err := w.idle.run("account", "limits", "tiers", "--tier", "6")
		assert.Error(t, err)
	}},

	// Classes, pricing, transactions
	{"A price change applies to new tasks, not to existing ones", func(t *testing.T, w *walk) {
		key := w.idle.account("prices", "5")
		w.idle.must("account", "limits", "prices", "--tps", "1000", "--burst", "1000")
		time.Sleep(250 * time.Millisecond)
		held := func() any { return w.idle.do("GET", "/account", nil, "X-API-Key", key).object(t)["held_amount"] }
		submit := func() {
			require.Equal(t, 201, w.idle.do("POST", "/tasks", map[string]any{"audio_url": anywhere, "options": quick}, "X-API-Key", key).status)
		}
		submit()
		before := held()
		w.idle.must("pricing", "--standard", "6", "--optimized", "6")
		defer w.idle.must("pricing", "--standard", "0.6", "--optimized", "0.2")
		assert.Equal(t, before, held())
		submit()
		assert.InDelta(t, before.(float64)+0.1, held(), 1e-9)
	}},
	{"Transactions: deduction negative with task_id, recharge positive and refund negative without", func(t *testing.T, w *walk) {
		w.must("account", "credit", "local", "1.5", "--refund")
		m := w.do("GET", "/billing/transactions?page_size=100", nil).object(t)
		records := list(m["transactions"])
		assert.EqualValues(t, len(records), m["total"])
		types := map[any]int{}
		for _, e := range records {
			r := object(e)
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
		var account struct{ Keys []struct{ ID, Key string } }
		require.NoError(t, json.Unmarshal([]byte(w.must("account", "list", "local")), &account))
		for _, k := range account.Keys {
			if strings.HasPrefix(revoked, strings.TrimSuffix(k.Key, "…")) {
				w.must("key", "revoke", k.ID)
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
		assert.Equal(t, 431, huge.status, "the header is refused before the key is looked up")
		t.Logf("T15: %d requests with wrong keys, all 401 with one text", n)
	}},
	{"Bearer token: a JWT from the login, good for an hour; 5 failures a minute, then 429 ≡", func(t *testing.T, w *walk) {
		w.must("user", "create", "local", "anna", "--password", "correct horse")
		a := w.do("POST", "/auth/login", map[string]any{"username": "anna", "password": "correct horse"}, "X-API-Key", "")
		require.Equal(t, 200, a.status, "%s", a.body)
		m := a.object(t)
		assert.Len(t, m, 3)
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
	{"Callback: none without callback_url, and none for an error that will be retried", func(t *testing.T, w *walk) {
		assert.Empty(t, w.out.callbacks(w.lite))
		assert.Empty(t, w.out.callbacks(w.waiting))
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
			if plan := count(t, w.db, "SELECT COALESCE((SELECT next_at - updated_at FROM callbacks WHERE task_id = $1 AND phase = 'queued' AND attempts = $2), -1)", id, i+1); plan >= 0 { // otherwise the next attempt has begun
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
		assert.Contains(t, w.must("queue", "list", "callbacks"), id)
		w.out.mu.Lock()
		w.out.fail["/deaf"] = false
		w.out.mu.Unlock()
		w.must("queue", "retry", id, "--callback")
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
		w.must("account", "limits", "hasty", "--tps", "0.5", "--burst", "5")
		time.Sleep(300 * time.Millisecond)
		passed, limited := 0, 0
		begun := time.Now()
		var last answer
		for limited < 10 { // however long a request takes, few pass
			a := w.do("GET", "/account", nil, "X-API-Key", key)
			if a.status == 200 {
				passed++
				require.LessOrEqual(t, passed, 5+int(0.5*time.Since(begun).Seconds()+1))
				continue
			}
			refusal(t, a, 429, "rate_limited")
			limited++
			last = a
		}
		elapsed := time.Since(begun)
		assert.GreaterOrEqual(t, passed, 5)
		wait, err := strconv.Atoi(last.header.Get("Retry-After"))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, wait, 1)
		time.Sleep(time.Duration(wait) * time.Second)
		assert.Equal(t, 200, w.do("GET", "/account", nil, "X-API-Key", key).status, "after Retry-After")
		assert.Equal(t, 200, w.do("GET", "/account", nil).status, "another account has its own bucket")
		t.Logf("T16: burst 5, 1 in 2 seconds: %d of %d passed in %.1f s, Retry-After %d s", passed, passed+limited, elapsed.Seconds(), wait)
	}},
	{"T21: any invalid request is answered with a 4xx in JSON with error", func(t *testing.T, w *walk) {
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
			for name := range taskstest.OptionDefaults {
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
		assert.Eventually(t, func() bool { // a worker writes its metrics every few seconds
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

// callbackPauses lists the specification's pauses in seconds.
var callbackPauses = []float64{1, 5, 30}

// oddValues lists JSON values that are rarely valid.
var oddValues = []string{
	`0`, `-1`, `1e308`, `1e400`, `99999999999999999999999999`, `"x"`, `" "`, `"\u0000"`, `"\ud800"`, "\"\xff\"", `"` + strings.Repeat("a", 10_000) + `"`, `[[]]`, `[null]`,
	`[1,"a"]`, `{"a":{"a":{"a":{}}}}`, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000),
	`NaN`, `Infinity`, `0x10`, `01`, `'x'`, `undefined`, `True`, ``, `null`,
}

// spaces is a body of spaces only.
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
