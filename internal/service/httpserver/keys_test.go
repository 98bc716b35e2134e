package httpserver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeysAreManagedByPeople: a person who has logged in creates, lists and
// revokes the account's keys; a key cannot, and no account can touch
// another's keys.
func TestKeysAreManagedByPeople(t *testing.T) {
	w := newWorld(t)
	_, err := w.accounts.CreateUser(t.Context(), w.account.ID, "ann", "correct horse")
	require.NoError(t, err)
	token := w.do("POST", "/auth/login", `{"username":"ann","password":"correct horse"}`, noKey).object(t)["access_token"].(string)
	ann := with("X-Api-Key", "", "Authorization", "Bearer "+token)

	for _, ask := range [][2]string{{"GET", "/account/keys"}, {"POST", "/account/keys"}, {"DELETE", "/account/keys/" + unknownTask}} {
		a := w.do(ask[0], ask[1], nil)
		assert.Equal(t, 403, a.status, "%s: %s", ask, a.body)
		assert.Equal(t, 401, w.do(ask[0], ask[1], nil, noKey).status)
	}
	made := w.do("POST", "/account/keys", nil, ann)
	require.Equal(t, 201, made.status, "%s", made.body)
	key, id := made.object(t)["key"].(string), made.object(t)["id"].(string)
	assert.Equal(t, 200, w.do("GET", "/account", nil, with("X-Api-Key", key)).status)

	list := w.do("GET", "/account/keys", nil, ann)
	require.Equal(t, 200, list.status)
	assert.Len(t, list.object(t)["keys"], 2)
	assert.NotContains(t, string(list.body), key, "a key is shown once")
	assert.Contains(t, string(list.body), `"hint":"`+key[:8]+`"`)

	other, stranger := w.newAccount("someone else", "1")
	_, err = w.accounts.CreateUser(t.Context(), other.ID, "eve", "correct horse")
	require.NoError(t, err)
	eveToken := w.do("POST", "/auth/login", `{"username":"eve","password":"correct horse"}`, noKey).object(t)["access_token"].(string)
	eve := with("X-Api-Key", "", "Authorization", "Bearer "+eveToken)
	assert.Equal(t, 404, w.do("DELETE", "/account/keys/"+id, nil, eve).status)
	assert.Len(t, w.do("GET", "/account/keys", nil, eve).object(t)["keys"], 1)
	assert.Equal(t, 200, w.do("GET", "/account", nil, with("X-Api-Key", stranger)).status)

	for _, none := range []string{"nonsense", unknownTask} {
		assert.Equal(t, 404, w.do("DELETE", "/account/keys/"+none, nil, ann).status)
	}
	for range 2 { // a second revocation is not an error
		assert.Equal(t, 200, w.do("DELETE", "/account/keys/"+id, nil, ann).status)
	}
	assert.Equal(t, 401, w.do("GET", "/account", nil, with("X-Api-Key", key)).status)
	assert.Contains(t, string(w.do("GET", "/account/keys", nil, ann).body), `"revoked_at":"2`)
	assert.NotContains(t, w.log.String(), key)

	log, err := w.accounts.AuditLog(t.Context(), time.Time{}, 10)
	require.NoError(t, err)
	var entries []string // the newest first
	for _, e := range log {
		entries = append(entries, strings.Join([]string{e.Operator, e.Action, e.Subject, e.Detail}, ", "))
	}
	revoked := "user ann, key revoke, " + id + ", of local"
	assert.Equal(t, []string{
		revoked, revoked, "user ann, key create, local, unlimited, key " + id,
	}, entries, "another account's keys are none: whoever asks for one writes nothing")

	for made.status == 201 {
		made = w.do("POST", "/account/keys", nil, ann)
	}
	assert.Equal(t, 409, made.status, "%s", made.body)
	assert.Equal(t, maxKeys+1, strings.Count(string(w.do("GET", "/account/keys", nil, ann).body), `"id"`))
}
