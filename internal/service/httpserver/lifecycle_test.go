package httpserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
)

func TestReadOnlyKeyChangesNothing(t *testing.T) {
	w := newWorld(t)
	key, _, err := w.accounts.CreateKey(t.Context(), w.account.ID, accounts.KeyOptions{ReadOnly: true})
	require.NoError(t, err)
	as := with("X-Api-Key", key)
	for _, path := range []string{"/account", "/tasks", "/billing/transactions", "/pricing"} {
		assert.Equal(t, 200, w.do("GET", path, nil, as).status, path)
	}
	for _, q := range [][2]string{{"POST", "/tasks"}, {"POST", "/tasks/batch"}, {"DELETE", "/tasks/01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"}} {
		a := w.do(q[0], q[1], `{"audio_url":"https://source.example/a.wav"}`, as)
		assert.Equal(t, 403, a.status, q)
		assert.Equal(t, codeForbidden, a.code(t), q)
	}
}

func TestSuspendedAccountIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.accounts.CreateUser(t.Context(), w.account.ID, "ann", "correct horse")
	require.NoError(t, err)
	login := func() answer {
		return w.do("POST", "/auth/login", `{"username":"ann","password":"correct horse"}`, noKey)
	}
	token := with("Authorization", "Bearer "+login().object(t)["access_token"].(string))
	require.NoError(t, w.accounts.Suspend(t.Context(), w.account.ID))
	for _, a := range []answer{w.do("GET", "/account", nil), w.do("GET", "/account", nil, noKey, token), login()} {
		assert.Equal(t, 403, a.status, "%s", a.body)
		assert.Equal(t, codeForbidden, a.code(t))
	}
	assert.Equal(t, 200, w.do("GET", "/pricing", nil).status, "prices need no account")
	require.NoError(t, w.accounts.Resume(t.Context(), w.account.ID))
	assert.Equal(t, 200, w.do("GET", "/account", nil).status)
	assert.Equal(t, 200, w.do("GET", "/account", nil, noKey, token).status)
}
