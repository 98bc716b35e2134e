package httpserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
)

// TestHookOverHTTP: a full key sets, shows, rotates and removes the account's
// hook; a read-only key only shows it; the secret is returned once, and the
// audit log has every change with the API key's id, without the URL.
func TestHookOverHTTP(t *testing.T) {
	w := newWorld(t)
	key, _, err := w.accounts.CreateKey(t.Context(), w.account.ID, accounts.KeyOptions{ReadOnly: true})
	require.NoError(t, err)
	reader := with("X-Api-Key", key)
	const path = "/account/hook"
	for _, ask := range [][2]string{{"GET", path}, {"DELETE", path}, {"POST", path + "/secret"}} {
		assert.Equal(t, 404, w.do(ask[0], ask[1], nil).status)
	}
	body := map[string]any{"url": "https://hook.example.com/hook-with-a-token", "budget": 12.5, "timezone": "Europe/Berlin", "events": []string{"task.done", "budget.warning"}}
	for _, ask := range [][2]string{{"PUT", path}, {"DELETE", path}, {"POST", path + "/secret"}} {
		assert.Equal(t, 403, w.do(ask[0], ask[1], body, reader).status)
		assert.Equal(t, 401, w.do(ask[0], ask[1], body, noKey).status)
	}
	for field, wrong := range map[string]any{"url": "https://127.0.0.1/", "events": []string{"task.gone"}, "budget": "much", "timezone": "Here"} {
		bad := map[string]any{"url": body["url"], field: wrong}
		a := w.do("PUT", path, bad)
		assert.Equal(t, 400, a.status)
		assert.Contains(t, string(a.body), field+": ")
	}
	made := w.do("PUT", path, body)
	require.Equal(t, 201, made.status, "%s", made.body)
	secret := made.object(t)["secret"].(string)
	assert.Equal(t, 12.5, made.object(t)["budget"])
	body["budget"] = 20
	assert.Equal(t, 200, w.do("PUT", path, body).status)
	shown := w.do("GET", path, nil, reader)
	assert.NotContains(t, string(shown.body), "whsec_")
	assert.Equal(t, []any{"task.done", "budget.warning"}, shown.object(t)["events"])
	rotated := w.do("POST", path+"/secret", nil)
	require.Equal(t, 200, rotated.status)
	assert.NotEqual(t, secret, rotated.object(t)["secret"])
	assert.NotNil(t, rotated.object(t)["old_secret_expires_at"])
	assert.Equal(t, 200, w.do("DELETE", path, nil).status)

	log, err := w.accounts.AuditLog(t.Context(), time.Time{}, 10)
	require.NoError(t, err)
	var actions []string
	for _, e := range log {
		if e.Detail != "failed: remove hook: the account has no hook" {
			actions = append(actions, e.Action)
		}
		assert.Equal(t, w.account.Name, e.Subject)
		assert.Regexp(t, "^key [0-9a-f-]{36}$", e.Operator)
		assert.NotContains(t, e.Detail, "example.com")
		assert.NotContains(t, e.Detail, "whsec_")
	}
	assert.Equal(t, []string{"hook remove", "hook rotate", "hook set", "hook set"}, actions[:4])
	assert.NotContains(t, w.log.String(), secret)
}
