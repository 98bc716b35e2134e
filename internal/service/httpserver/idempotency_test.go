package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
)

// TestEqualSubmissionsMakeOneTask: 50 parallel identical requests with one key
// make one task and one hold, and get the same response. It covers T12 of
// test/README.md.
func TestEqualSubmissionsMakeOneTask(t *testing.T) {
	for name, body := range map[string]any{"base64": upload(nil), "url": map[string]any{"audio_url": "https://a.example.com/a.wav"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text, err := json.Marshal(body)
			require.NoError(t, err)
			var mu sync.Mutex
			answers := map[string]int{}
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					a := w.do("POST", "/tasks", text, with("Idempotency-Key", "order-1"))
					assert.Equal(t, 201, a.status)
					mu.Lock()
					defer mu.Unlock()
					answers[string(a.body)]++
				})
			}
			wg.Wait()
			assert.Len(t, answers, 1)
			total := w.do("GET", "/tasks", nil).object(t)["total"]
			account := w.do("GET", "/account", nil).object(t)
			assert.EqualValues(t, 1, total)
			assert.EqualValues(t, 1, account["active_tasks"])
			assert.EqualValues(t, 0.0133, account["held_amount"])
			if name == "base64" {
				assert.Len(t, blobKeys(t, w), 1, "the other uploads are deleted")
			}
			t.Logf("T12: 50 parallel requests, %d answer, %v task, held %v", len(answers), total, account["held_amount"])
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	a := w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav"}`, with("Idempotency-Key", "k"))
	require.Equal(t, 201, a.status)
	b := w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav"}`, with("Idempotency-Key", "k"))
	assert.Equal(t, a.body, b.body)
	assert.Equal(t, "true", b.header.Get("Idempotency-Replayed"))
	c := w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/b.wav"}`, with("Idempotency-Key", "k"))
	assert.Equal(t, 409, c.status)
	assert.Equal(t, codeConflict, c.code(t))
	d := w.do("POST", "/tasks/batch", `{"audio_url":["https://a.example.com/a.wav"],"batch_mode":true}`, with("Idempotency-Key", "k"))
	assert.Equal(t, 409, d.status, "another endpoint is another request")
	_, other := w.newAccount("other", "1")
	e := w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/b.wav"}`, with("Idempotency-Key", "k"), with("X-Api-Key", other))
	assert.Equal(t, 201, e.status, "keys are separate for each account")
	for _, key := range []string{" ", strings.Repeat("k", 256), "é"} {
		f := w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav"}`, map[string][]string{"Idempotency-Key": {key}})
		assert.Equal(t, 400, f.status, key)
	}
	batch := `{"audio_url":["https://a.example.com/a.wav","http://10.0.0.1/"],"batch_mode":true}`
	g := w.do("POST", "/tasks/batch", batch, with("Idempotency-Key", "b"))
	require.Equal(t, 201, g.status)
	h := w.do("POST", "/tasks/batch", batch, with("Idempotency-Key", "b"))
	assert.Equal(t, g.body, h.body)
	assert.EqualValues(t, 2, w.do("GET", "/tasks", nil).object(t)["total"])
}

// TestARefusalIsNotRemembered: a key whose request got 402 works once the
// account has money.
func TestARefusalIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	a, key := w.newAccount("poor", "0")
	ask := func() answer {
		return w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav"}`, with("Idempotency-Key", "k"), with("X-Api-Key", key))
	}
	assert.Equal(t, 402, ask().status)
	_, err := w.money.Recharge(context.Background(), a.ID, billing.Unit, "")
	require.NoError(t, err)
	assert.Equal(t, 201, ask().status)
}

// TestAKeyDoesNotBypassTheBalance: an account without money is refused before
// its upload is read, even with an idempotency key, unless the key has been
// used.
func TestAKeyDoesNotBypassTheBalance(t *testing.T) {
	w := newWorld(t)
	a, key := w.newAccount("poor", "0.0133")
	body, err := json.Marshal(upload(nil))
	require.NoError(t, err)
	body = append(body, bytes.Repeat([]byte(" "), maxSmallBody)...) // large enough to be checked
	ask := func(idempotent string, body io.Reader) answer {
		return w.do("POST", "/tasks", body, with("Idempotency-Key", idempotent), with("X-Api-Key", key))
	}
	first := ask("used", bytes.NewReader(body))
	require.Equal(t, 201, first.status, "%s", first.body)
	_, err = w.money.Refund(context.Background(), a.ID, 133, "")
	require.NoError(t, err)
	again := ask("used", bytes.NewReader(body))
	assert.Equal(t, 201, again.status, "%s", again.body)
	assert.Equal(t, first.body, again.body)

	never, end := io.Pipe()
	defer end.Close()
	refused := ask("new", io.MultiReader(bytes.NewReader(body[:100]), never))
	assert.Equal(t, 402, refused.status, "before the rest of the body arrives")
	assert.Equal(t, codeInsufficientBalance, refused.code(t))
}

// TestASmallRepetitionIgnoresTheBalance: a small upload whose idempotency key was
// used gets its first response from an account without money too.
func TestASmallRepetitionIgnoresTheBalance(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Tasks.Config.Prober = fakeProber(func(string, string) (float64, error) { return 1, nil })
	})
	a, key := w.newAccount("poor", "0.0133")
	ask := func() answer {
		return w.do("POST", "/tasks", upload(nil), with("Idempotency-Key", "used"), with("X-Api-Key", key))
	}
	first := ask()
	require.Equal(t, 201, first.status, "%s", first.body)
	_, err := w.money.Refund(context.Background(), a.ID, 133, "")
	require.NoError(t, err)
	again := ask()
	assert.Equal(t, 201, again.status, "%s", again.body)
	assert.Equal(t, first.body, again.body)
}

// TestSubmissionsCannotOverdraw: of 100 parallel submissions exactly as many
// pass as the balance covers. It covers T13 of test/README.md.
func TestSubmissionsCannotOverdraw(t *testing.T) {
	w := newWorld(t)
	_, key := w.newAccount("ten", "0.1330") // a minute of everything costs 0.0133
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			a := w.do("POST", "/tasks", `{"audio_url":"https://a.example.com/a.wav"}`, with("X-Api-Key", key))
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	wg.Wait()
	assert.Equal(t, map[int]int{201: 10, 402: 90}, statuses)
	available := w.do("GET", "/account", nil, with("X-Api-Key", key)).object(t)["available_balance"]
	assert.EqualValues(t, 0, available)
	t.Logf("T13: %v, available balance %v", statuses, available)
}
