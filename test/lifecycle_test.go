package test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLifeCycleOfAccountsKeysAndUsers performs an operator's actions on a
// running service and finds each in the audit log, without a secret.
func TestLifeCycleOfAccountsKeysAndUsers(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--workers", "0").unlimited()
	const password = "correct horse battery"
	status := func(key string) int { return s.do("GET", "/account", nil, "X-API-Key", key).status }
	login := func() (int, string) {
		a := s.do("POST", "/auth/login", map[string]any{"username": "ann", "password": password}, "X-API-Key", "")
		token, _ := a.object(t)["access_token"].(string)
		return a.status, token
	}
	bearer := func(token string) int {
		return s.do("GET", "/account", nil, "X-API-Key", "", "Authorization", "Bearer "+token).status
	}
	s.must("account", "create", "acme")
	s.must("account", "limits", "acme", "--tps", "1000", "--burst", "1000") // the tier's limit of four concurrent tasks is soon reached
	out, err := s.run("user", "create", "acme", "ann", "--password", "Password")
	require.Error(t, err)
	assert.Contains(t, out, "most common passwords")
	s.must("user", "create", "acme", "ann", "--password", password)
	key := s.must("key", "create", "acme", "--read-only", "--expires", "24h")
	assert.Equal(t, 200, status(key))
	assert.Equal(t, 403, s.do("POST", "/tasks", map[string]any{"audio_url": "https://example.com/a.wav"}, "X-API-Key", key).status)
	shown := s.must("account", "list", "acme")
	for _, field := range []string{`"read_only": true`, `"expires_at"`, `"last_used_at"`} {
		assert.Contains(t, shown, field)
	}

	_, token := login()
	assert.Equal(t, 200, bearer(token))
	s.must("user", "logout", "ann")
	assert.Equal(t, 401, bearer(token))
	_, token = login()
	s.must("account", "suspend", "acme", "--note", "unpaid")
	assert.Equal(t, 403, status(key))
	assert.Equal(t, 403, bearer(token))
	s.must("account", "suspend", "acme", "--undo")
	assert.Equal(t, 200, status(key))
	assert.Equal(t, 200, bearer(token))
	assert.Contains(t, s.must("account", "list", "acme"), `"ann"`)
	s.must("user", "delete", "ann")
	assert.Equal(t, 401, bearer(token))
	code, _ := login()
	assert.Equal(t, 401, code)

	var entries []struct{ Action, Subject, Detail, Operator string }
	log := s.must("audit", "--json")
	require.NoError(t, json.Unmarshal([]byte(log), &entries))
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Action)
		assert.NotEmpty(t, e.Operator)
	}
	assert.Equal(t, "user delete, account resume, account suspend, user logout, key create, user create, user create, user create, account limits, account create",
		strings.Join(actions, ", "))
	assert.Contains(t, log, "unpaid")
	assert.Contains(t, log, "failed: ")
	for _, secret := range []string{password, key, token} {
		assert.NotContains(t, log, secret)
	}
	assert.Contains(t, s.must("audit"), "account suspend")
}
