package httpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// statement is a statement of the specification that only this test checks.
type statement struct {
	Says  string
	Check func(t *testing.T, s *specWorld)
}

// specWorld is a world in which some tasks have run.
type specWorld struct {
	*world
	idle      *world // another service without a worker
	all       string // done, all capabilities, submitted as Base64
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

// TestSpecification checks the specification statement by statement, on both
// kinds of database if they are installed. The short form has PostgreSQL then:
// package test runs the built program on SQLite.
func TestSpecification(t *testing.T) {
	for _, database := range []string{"sqlite", "postgres"} {
		t.Run(database, func(t *testing.T) {
			if testing.Short() && database == "sqlite" && dbtest.Programs() != "" {
				t.Skip("at length: make test-extent")
			}
			s := newSpec(t, database)
			shared := s.shared()
			taskstest.RunStatements(t, taskstest.Statements, func(*testing.T) *taskstest.World { return shared })
			taskstest.RunStatements(t, statements, func(sub *testing.T) *specWorld {
				s.t, s.idle.t = sub, sub
				sub.Cleanup(func() { s.t, s.idle.t = t, t })
				return s
			})
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
	s.batch = s.create(map[string]any{"audio_url": s.media.url + "/later.wav", "batch_mode": true, "options": map[string]any{"enable_diarize": false, "enable_audio_events": false}})
	s.refused = s.create(add(upload(nil), add(map[string]any{"audio_filename": "broken.wav"}, callback)))
	s.abandoned = s.create(add(upload(nil), add(map[string]any{"audio_filename": "unlucky.wav"}, callback)))
	for _, id := range []string{s.all, s.asr, s.eventsAlo, s.lite, s.segment, s.byURL, s.batch, s.refused, s.abandoned} {
		s.final(id)
	}
	s.running = s.create(add(upload(nil), map[string]any{"audio_filename": "slow.wav"}))
	return s
}

// shared returns the world for the statements that requests alone can check.
func (s *specWorld) shared() *taskstest.World {
	request := func(w *world) taskstest.Request {
		return func(t *testing.T, method, path string, body any, headers ...string) taskstest.Answer {
			before := w.t
			w.t = t
			defer func() { w.t = before }()
			a := w.do(method, path, body, with(headers...))
			return taskstest.Answer{Status: a.status, Header: a.header, Body: a.body}
		}
	}
	return &taskstest.World{
		Do: request(s.world), Idle: request(s.idle),
		Account: func(t *testing.T, name, balance string, concurrency int) string {
			a, key := s.idle.newAccount(name, balance)
			tps := 1000.0
			require.NoError(t, s.idle.accounts.SetLimits(t.Context(), a.ID, accounts.Overrides{Concurrency: &concurrency, TPS: &tps}))
			return key
		},
		Host: "https://a.example.com", Audio: wav(2), Seconds: 61.5, // as the engine says
		All: s.all, ASR: s.asr, Events: s.eventsAlo, ByURL: s.byURL, Batch: s.batch, Failed: s.refused, Abandoned: s.abandoned, Pending: s.running,
		Callbacks: func(task string) (list []taskstest.Answer) {
			for _, c := range s.media.callbacks(task) {
				list = append(list, taskstest.Answer{Header: c.header, Body: c.body})
			}
			return list
		},
		Secret: "shh",
	}
}

func (s *specWorld) result(id string) map[string]any {
	s.t.Helper()
	a := s.do("GET", "/tasks/"+id+"/result", nil)
	require.Equal(s.t, 200, a.status, "%s", a.body)
	return a.object(s.t)
}

// refusedWith requires a refusal with a status and a code.
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

const unknownTask = "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"

// statements lists the statements in the order of the specification.
var statements = []statement{
	// General
	{"All paths are relative to a base URL that ends with /v1", func(t *testing.T, s *specWorld) {
		assert.Equal(t, 200, s.send("GET", "/v1/pricing", nil, nil).status)
		assert.Equal(t, 404, s.send("GET", "/pricing", nil, nil).status)
		assert.Equal(t, 404, s.send("GET", "/v2/pricing", nil, nil).status)
	}},
	{"The client polls the task until it is done and fetches the result", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "done", s.task(s.all)["status"])
		assert.Equal(t, s.all, s.result(s.all)["task_id"])
	}},

	// Task
	{"Task: audio_filename includes the extension", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "silence.wav", s.task(s.all)["audio_filename"])
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
		assert.Equal(t, "internal error", s.task(s.abandoned)["error_message"], "the details are for the log")
	}},

	// Options
	{"Earlier variant: optimize_zh is accepted and echoed as given ≡", func(t *testing.T, s *specWorld) {
		for _, v := range []bool{true, false} {
			a := s.option("optimize_zh", v)
			require.Equal(t, 201, a.status)
			assert.Equal(t, v, a.object(t)["options"].(map[string]any)["optimize_zh"])
		}
		s.refusedWith(s.option("optimize_zh", "x"), 400, codeInvalidRequest)
	}},

	// Result
	{"Result: words are in the standard tier only", func(t *testing.T, s *specWorld) {
		for _, id := range []string{s.lite, s.segment} {
			for _, seg := range s.result(id)["segments"].([]any) {
				assert.NotContains(t, seg, "words")
			}
		}
	}},
	{"Result: text arrives as it was, whatever characters it has", func(t *testing.T, s *specWorld) {
		assert.Equal(t, "Good <b>day</b> & bye.", s.result(s.all)["segments"].([]any)[1].(map[string]any)["text"])
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
	{"States: a failed or abandoned task costs nothing and holds nothing", func(t *testing.T, s *specWorld) {
		for _, id := range []string{s.refused, s.abandoned} {
			held, most, err := s.money.HoldLimit(context.Background(), id)
			require.NoError(t, err)
			assert.Zero(t, held+most)
			assert.NotContains(t, string(s.do("GET", "/billing/transactions?page_size=100", nil).body), id)
		}
	}},

	// POST /tasks
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
		assert.Equal(t, 201, s.idle.do("POST", "/tasks", map[string]any{"audio_url": "https://trouble.example.com/a.wav"}).status, "a failing resolver does not count against the URL")
	}},
	{"POST /tasks: 402 insufficient_balance for an upload", func(t *testing.T, s *specWorld) {
		_, poor := s.idle.newAccount("poorer", "0.01")
		s.refusedWith(s.idle.do("POST", "/tasks", upload(nil), with("X-Api-Key", poor)), 402, codeInsufficientBalance)
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

	// POST /tasks/batch
	{"POST /tasks/batch: a broken shared option or callback_url is 400 for the whole", func(t *testing.T, s *specWorld) {
		urls := []string{"https://a.example.com/a.wav"}
		s.refusedWith(s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "options": map[string]any{"enable_asr": false}}), 400, codeInvalidRequest)
		s.refusedWith(s.idle.do("POST", "/tasks/batch", map[string]any{"batch_mode": true, "audio_url": urls, "callback_url": "http://10.0.0.1/"}), 400, codeInvalidRequest)
	}},

	// GET /tasks

	// GET /tasks/:id, result, DELETE
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
		assert.Len(t, a.object(t), 1)
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
			view, err := s.idle.money.View(context.Background(), a.ID)
			require.NoError(t, err)
			assert.Equal(t, billing.Limits{Tier: tier, Concurrency: n, TPS: float64(n), Burst: 2 * n}, view.Limits)
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
	{"GET /pricing: the server caches too; a change applies from the next uncached request", func(t *testing.T, s *specWorld) {
		c := newClock()
		s.api.prices.now = c.now
		clear(s.api.prices.entries)
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
	{"Transactions: deduction negative with task_id, recharge positive and refund negative without", func(t *testing.T, s *specWorld) {
		a, k := s.newAccount("ledger", "2")
		_, err := s.money.Refund(context.Background(), a.ID, billing.Unit/2, "back")
		require.NoError(t, err)
		at := s.do("POST", "/tasks", upload(nil), with("X-Api-Key", k)).object(t)["id"].(string)
		require.Eventually(t, func() bool {
			return s.do("GET", "/tasks/"+at, nil, with("X-Api-Key", k)).object(t)["status"] == "done"
		}, 20*time.Second, 25*time.Millisecond)
		list := s.do("GET", "/billing/transactions", nil, with("X-Api-Key", k)).object(t)["transactions"].([]any)
		require.Len(t, list, 3)
		get := func(i int, f string) any { return list[i].(map[string]any)[f] }
		assert.Equal(t, []any{"deduction", "-0.0267", "1.5000", "1.4733", at}, []any{get(0, "type"), get(0, "amount"), get(0, "balance_before"), get(0, "balance_after"), get(0, "task_id")})
		assert.Equal(t, []any{"refund", "-0.5000", nil}, []any{get(1, "type"), get(1, "amount"), get(1, "task_id")})
		assert.Equal(t, []any{"recharge", "2.0000", nil}, []any{get(2, "type"), get(2, "amount"), get(2, "task_id")})
	}},

	// Authentication and errors
	{"The endpoints of OpenAI's interface need authentication: 401 with its code", func(t *testing.T, s *specWorld) {
		for _, path := range []string{"/audio/transcriptions", "/audio/translations"} {
			s.refusedWith(s.do("POST", path, nil, noKey), 401, "invalid_api_key")
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
	{"Callback: no callback without callback_url", func(t *testing.T, s *specWorld) { assert.Empty(t, s.media.callbacks(s.asr)) }},
	{"Callback: a delivery that fails is tried again with the same bytes and signature", func(t *testing.T, s *specWorld) {
		s.media.mu.Lock()
		s.media.fail = 2
		s.media.mu.Unlock()
		m := upload(nil)
		m["callback_url"], m["callback_secret"] = s.media.url+"/callback", "k"
		id := s.create(m)
		require.Eventually(t, func() bool { return len(s.media.callbacks(id)) == 3 }, 10*time.Second, 25*time.Millisecond)
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
