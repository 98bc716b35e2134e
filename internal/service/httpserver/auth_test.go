package httpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/fairuse"
)

// TestWrongKeysGetTheSame401: every wrong key gets the same 401. It covers T15
// of test/README.md.
func TestWrongKeysGetTheSame401(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	revoked, k, err := w.accounts.CreateKey(ctx, w.account.ID, accounts.KeyOptions{})
	require.NoError(t, err)
	require.Equal(t, 200, w.do("GET", "/account", nil, with("X-Api-Key", revoked)).status)
	require.NoError(t, w.accounts.RevokeKey(ctx, "", k.ID))
	assert.Len(t, w.key, 44)
	assert.True(t, strings.HasPrefix(w.key, "asr_"))
	n := 0
	texts := map[string]bool{}
	for name, key := range map[string]string{
		"revoked": revoked, "empty": " ", "prefix alone": "asr_", "unknown": "asr_" + strings.Repeat("0", 40), "upper case": strings.ToUpper(w.key),
		"lower case": strings.ToLower(w.key), "other prefix": "ASR_" + w.key[4:], "shorter": w.key[:43], "longer": w.key + "0", "quoted": `"` + w.key + `"`,
		"sql": "asr_' OR '1'='1", "latin-1": "asr_\xe9" + w.key[5:], "60 kB": strings.Repeat("a", 60<<10), "bearer inside": "Bearer " + w.key,
	} {
		a := w.do("GET", "/account", nil, http.Header{"X-Api-Key": {key}})
		assert.Equal(t, 401, a.status, name)
		assert.Equal(t, codeUnauthorized, a.code(t), name)
		texts[string(a.body)] = true
		n++
	}
	a := w.do("GET", "/account", nil, noKey)
	assert.Equal(t, 401, a.status)
	assert.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
	assert.Equal(t, 401, w.do("GET", "/account", nil, http.Header{"X-Api-Key": {w.key, w.key}}).status, "two keys")
	assert.Len(t, texts, 1, "all refusals have the same text")
	assert.NotContains(t, w.log.String(), w.key, "no key in the log")
	assert.NotContains(t, w.log.String(), revoked)
	t.Logf("T15: %d malformed, revoked or foreign keys, all 401 with one text", n)
}

func TestAPIKeyAsBearerToken(t *testing.T) {
	w := newWorld(t)
	assert.Equal(t, 200, w.do("GET", "/account", nil, noKey, with("Authorization", "Bearer "+w.key)).status)
	assert.Equal(t, 200, w.do("GET", "/account", nil, noKey, with("Authorization", "bearer "+w.key)).status)
	assert.Equal(t, 401, w.do("GET", "/account", nil, noKey, with("Authorization", w.key)).status)
	assert.Equal(t, 401, w.do("GET", "/account", nil, noKey, with("Authorization", "Basic "+w.key)).status)
	assert.Equal(t, 200, w.do("GET", "/account", nil, with("Authorization", "Bearer nonsense")).status, "the API key counts")
}

func TestLoginReturnsAToken(t *testing.T) {
	w := newWorld(t)
	_, err := w.accounts.CreateUser(context.Background(), w.account.ID, "ann", "correct horse")
	require.NoError(t, err)
	a := w.do("POST", "/auth/login", `{"username":"ann","password":"correct horse"}`, noKey)
	require.Equal(t, 200, a.status, "%s", a.body)
	m := a.object(t)
	assert.Equal(t, "Bearer", m["token_type"])
	assert.EqualValues(t, 3600, m["expires_in"])
	token := m["access_token"].(string)
	bearer := func(token string) http.Header { return with("Authorization", "Bearer "+token) }
	mine := w.do("GET", "/account", nil, noKey, bearer(token))
	assert.Equal(t, 200, mine.status)
	assert.JSONEq(t, string(w.do("GET", "/account", nil).body), string(mine.body), "token and key belong to one account")
	assert.NotContains(t, w.log.String(), "correct horse")
	assert.NotContains(t, w.log.String(), token)

	for name, forged := range forgedTokens(t, w, token) {
		assert.Equal(t, 401, w.do("GET", "/account", nil, noKey, bearer(forged)).status, name)
	}
	for _, body := range []string{
		`{"username":"ann","password":"wrong"}`, `{"username":"nobody","password":"correct horse"}`, `{"username":"ANN","password":"correct horse"}`,
	} {
		a := w.do("POST", "/auth/login", body, noKey)
		assert.Equal(t, 401, a.status, body)
		assert.Equal(t, codeUnauthorized, a.code(t))
		assert.Contains(t, a.object(t)["error"], "username or password is wrong")
	}
	for _, body := range []string{``, `{}`, `{"username":"ann"}`, `{"password":"x"}`, `{"username":1,"password":"x"}`, `{"username":"ann","password":"x","otp":1}`, `{"username":"a\u0000","password":"x"}`, `[]`} {
		assert.Equal(t, 400, w.do("POST", "/auth/login", body, noKey).status, body)
	}
	assert.Equal(t, 413, w.do("POST", "/auth/login", `{"username":"`+strings.Repeat("a", maxSmallBody)+`"}`, noKey).status)
	assert.Equal(t, 415, w.do("POST", "/auth/login", "username=ann", noKey, with("Content-Type", "application/x-www-form-urlencoded")).status)
}

// forgedTokens returns tokens with one defect each.
func forgedTokens(t *testing.T, w *world, good string) map[string]string {
	key, err := w.accounts.SigningKey(context.Background())
	require.NoError(t, err)
	parts := strings.Split(good, ".")
	var payload map[string]any
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	require.NoError(t, numbers.Decode(&payload))
	sign := func(method jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
		now := time.Now()
		c := jwt.MapClaims{
			"iss": tokenIssuer, "aud": tokenAudience, "sub": payload["sub"], "account": w.account.ID, "password_set": payload["password_set"],
			"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		}
		if change != nil {
			change(c)
		}
		text, err := jwt.NewWithClaims(method, c).SignedString(key)
		require.NoError(t, err)
		return text
	}
	control := w.do("GET", "/account", nil, noKey, with("Authorization", "Bearer "+sign(jwt.SigningMethodHS256, key, nil)))
	require.Equal(t, 200, control.status, "the forger knows the form")
	payload["account"] = "another"
	changed, _ := json.Marshal(payload)
	return map[string]string{
		"no signature":      sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"none, stripped":    base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + ".",
		"HS384":             sign(jwt.SigningMethodHS384, key, nil),
		"HS512":             sign(jwt.SigningMethodHS512, key, nil),
		"another key":       sign(jwt.SigningMethodHS256, []byte(strings.Repeat("k", 32)), nil),
		"expired":           sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Second).Unix() }),
		"endless":           sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "exp") }),
		"too long a life":   sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(tokenLifetime + time.Minute).Unix() }),
		"life before birth": sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "iat") }),
		"not yet valid":     sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() }),
		"other issuer":      sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["iss"] = "someone" }),
		"other audience":    sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["aud"] = "someone" }),
		"no account":        sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "account") }),
		"unknown account":   sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["account"] = "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1" }),
		"no user":           sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "sub") }),
		"unknown user":      sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { c["sub"] = "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1" }),
		"no password":       sign(jwt.SigningMethodHS256, key, func(c jwt.MapClaims) { delete(c, "password_set") }),
		"changed payload":   parts[0] + "." + base64.RawURLEncoding.EncodeToString(changed) + "." + parts[2],
		"changed signature": good[:len(good)-2] + "AA",
		"cut":               good[:len(good)-10],
		"empty":             "",
		"dots":              "..",
		"long":              strings.Repeat("a", 60_000),
	}
}

// TestNewPasswordEndsTokens: changing a compromised password must end existing
// tokens immediately.
func TestNewPasswordEndsTokens(t *testing.T) {
	w := newWorld(t)
	_, err := w.accounts.CreateUser(t.Context(), w.account.ID, "ann", "correct horse")
	require.NoError(t, err)
	login := func(password string) http.Header {
		a := w.do("POST", "/auth/login", `{"username":"ann","password":"`+password+`"}`, noKey)
		require.Equal(t, 200, a.status)
		return with("Authorization", "Bearer "+a.object(t)["access_token"].(string))
	}
	before := login("correct horse")
	require.Equal(t, 200, w.do("GET", "/account", nil, noKey, before).status)
	require.NoError(t, w.accounts.SetPassword(t.Context(), "ann", "another horse"))
	a := w.do("GET", "/account", nil, noKey, before)
	assert.Equal(t, 401, a.status)
	assert.Equal(t, codeUnauthorized, a.code(t))
	assert.Equal(t, 200, w.do("GET", "/account", nil, noKey, login("another horse")).status)
}

func TestTokenExpires(t *testing.T) {
	tk, err := newTokens(make([]byte, 32))
	require.NoError(t, err)
	c := newClock()
	tk.now = c.now
	set := time.UnixMicro(1_700_000_000_123_456)
	token, err := tk.issue(accounts.User{AccountID: "a", ID: "u", PasswordSet: set})
	require.NoError(t, err)
	who, passwordSet, err := tk.check(token)
	require.NoError(t, err)
	assert.Equal(t, principal{Account: "a", User: "u"}, who)
	assert.True(t, passwordSet.Equal(set), passwordSet)
	c.move(tokenLifetime - time.Second)
	_, _, err = tk.check(token)
	assert.NoError(t, err)
	c.move(time.Second)
	_, _, err = tk.check(token)
	assert.ErrorIs(t, err, errToken)
	_, err = newTokens(make([]byte, 31))
	assert.Error(t, err, "a short key")
}

// TestLoginThrottle: after five failures a minute for a user and address, every
// login gets 429, even with the right password; others are not affected.
func TestLoginThrottle(t *testing.T) {
	w := newWorld(t)
	c := newClock()
	w.api.logins = accounts.NewThrottle(c.now)
	for _, u := range []string{"ann", "bob"} {
		_, err := w.accounts.CreateUser(context.Background(), w.account.ID, u, "correct horse")
		require.NoError(t, err)
	}
	try := func(user, password string) answer {
		return w.do("POST", "/auth/login", fmt.Sprintf(`{"username":%q,"password":%q}`, user, password), noKey)
	}
	for range accounts.PairFailures {
		assert.Equal(t, 401, try("ann", "wrong").status)
	}
	a := try("ann", "correct horse")
	assert.Equal(t, 429, a.status)
	assert.Equal(t, codeRateLimited, a.code(t))
	assert.Equal(t, "60", a.header.Get("Retry-After"))
	assert.Equal(t, 429, try("ANN", "wrong").status, "case does not distinguish users")
	assert.Equal(t, 200, try("bob", "correct horse").status)
	c.move(accounts.ThrottleWindow)
	assert.Equal(t, 200, try("ann", "correct horse").status)
	for range accounts.PairFailures - 1 {
		assert.Equal(t, 401, try("ann", "wrong").status)
	}
	assert.Equal(t, 200, try("ann", "correct horse").status, "a success resets the failures")
	assert.Equal(t, 401, try("ann", "wrong").status)
}

// TestLoginsBehindAProxy: clients of a trusted proxy are distinguished, and
// other proxies' headers are ignored; the log names users and addresses.
func TestLoginsBehindAProxy(t *testing.T) {
	local, err := fairuse.ParseProxies([]string{"127.0.0.1", "::1"})
	require.NoError(t, err)
	for _, trusted := range []fairuse.Proxies{local, nil} {
		w := newWorld(t, func(c *Config) { c.TrustedProxies = trusted })
		_, err := w.accounts.CreateUser(context.Background(), w.account.ID, "ann", "correct horse")
		require.NoError(t, err)
		try := func(password, from string) int {
			return w.do("POST", "/auth/login", `{"username":"ann","password":"`+password+`"}`, noKey, with("X-Forwarded-For", from)).status
		}
		for range accounts.PairFailures {
			require.Equal(t, 401, try("wrong horse", "203.0.113.9"))
		}
		assert.Equal(t, 429, try("correct horse", "203.0.113.9"))
		want := 200
		if trusted == nil {
			want = 429
		}
		assert.Equal(t, want, try("correct horse", "203.0.113.10"), "trusted: %v", trusted)
		log := w.log.String()
		assert.Contains(t, log, `"msg":"login failed"`)
		assert.Contains(t, log, `"user":"ann"`)
		assert.NotContains(t, log, "horse")
		assert.Equal(t, trusted != nil, strings.Contains(log, `"from":"203.0.113.9"`))
	}
}

// TestLoginsTakeTurns: a flood of logins from one address delays a login from
// another by a few password checks, and logins beyond the queue's limit are
// refused.
func TestLoginsTakeTurns(t *testing.T) {
	local, err := fairuse.ParseProxies([]string{"127.0.0.1", "::1"})
	require.NoError(t, err)
	var running atomic.Int64
	release := make(chan struct{})
	w := newWorld(t, func(c *Config) { c.TrustedProxies = local })
	free := sync.OnceFunc(func() { close(release) })
	defer free() // else a failure would wait for the requests for ever
	w.api.login = func(context.Context, string, string) (accounts.User, error) {
		running.Add(1)
		<-release
		return accounts.User{}, accounts.ErrUnauthorized
	}
	// Distinct users: no pair of user and address is refused, and one address
	// fails up to AddressFailures times.
	try := func(user int, from string) int {
		return w.do("POST", "/auth/login", fmt.Sprintf(`{"username":"u%d","password":"x"}`, user), noKey, with("X-Forwarded-For", from)).status
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	const floods, each = 5, 25
	for f := range floods {
		for i := range each {
			wg.Go(func() {
				s := try(f*1000+i, fmt.Sprint("203.0.113.", f))
				mu.Lock()
				statuses[s]++
				mu.Unlock()
			})
		}
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return statuses[429] == floods*each-maxLoginsWaiting-int(running.Load())
	}, time.Minute, time.Millisecond)
	assert.LessOrEqual(t, running.Load(), int64(4), "passwords are checked at the same time")
	free()
	wg.Wait()
	assert.Equal(t, floods*each, statuses[401]+statuses[429])
	assert.GreaterOrEqual(t, statuses[401], maxLoginsWaiting)
}

// TestAccountsAreIsolated: another account's tasks can't be read, listed or
// deleted. It covers T14 of test/README.md.
func TestAccountsAreIsolated(t *testing.T) {
	w := newWorld(t)
	id := w.create(upload(nil))
	_, other := w.newAccount("other", "10")
	as := with("X-Api-Key", other)
	for _, q := range []struct{ method, path string }{{"GET", "/tasks/" + id}, {"GET", "/tasks/" + id + "/result"}, {"DELETE", "/tasks/" + id}} {
		a := w.do(q.method, q.path, nil, as)
		assert.Equal(t, 403, a.status, q)
		assert.Equal(t, codeForbidden, a.code(t))
		assert.NotContains(t, string(a.body), w.account.ID)
		missing := strings.Replace(q.path, id, "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1", 1)
		assert.Equal(t, 404, w.do(q.method, missing, nil, as).status, q)
	}
	m := w.do("GET", "/tasks", nil, as).object(t)
	assert.EqualValues(t, 0, m["total"])
	assert.Empty(t, m["tasks"])
	assert.EqualValues(t, 1, w.do("GET", "/tasks", nil).object(t)["total"])
	assert.EqualValues(t, 10, w.do("GET", "/account", nil, as).object(t)["balance"])
	txs := w.do("GET", "/billing/transactions", nil, as).object(t)
	assert.EqualValues(t, 1, txs["total"])
	assert.NotEqual(t, w.account.ID, txs["transactions"].([]any)[0].(map[string]any)["user_id"])
	assert.Equal(t, "processing", w.task(id)["status"], "still there")

	// Both responses cost the same: reading one row.
	measure := func(path string) time.Duration {
		best := time.Hour
		for range 60 {
			start := time.Now()
			w.do("GET", path, nil, as)
			best = min(best, time.Since(start))
		}
		return best
	}
	t.Logf("T14: 403 in %v, 404 in %v at best of 60", measure("/tasks/"+id), measure("/tasks/01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"))
}
