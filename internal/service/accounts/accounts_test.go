package accounts_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

func TestMain(m *testing.M) { os.Exit(taskstest.Main(m)) }

func TestAccountsAreFoundByNameAndID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := accounts.New(d, nil, nil)
		a, err := s.Create(t.Context(), "Zoë & co"[:4])
		require.NoError(t, err)
		_, err = s.Create(t.Context(), a.Name)
		require.ErrorIs(t, err, accounts.ErrExists)
		for _, name := range []string{"", " x", "-x", "a\nb", strings.Repeat("x", 101)} {
			_, err = s.Create(t.Context(), name)
			require.ErrorIs(t, err, accounts.ErrInvalid, "%q", name)
		}
		for _, by := range []string{a.Name, a.ID} {
			found, err := s.Find(t.Context(), by)
			require.NoError(t, err)
			assert.Equal(t, a, found)
		}
		_, err = s.Find(t.Context(), "nobody")
		require.ErrorIs(t, err, accounts.ErrNotFound)
		list, err := s.List(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []accounts.Account{a}, list)
	})
}

// TestInvalidKeys tries invalid keys.
// It covers T15 of test/README.md.
func TestInvalidKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := accounts.New(d, nil, nil)
		a, err := s.Create(t.Context(), "a")
		require.NoError(t, err)
		key, k, err := s.CreateKey(t.Context(), a.ID, accounts.KeyOptions{})
		require.NoError(t, err)
		assert.Regexp(t, `^asr_[0-9A-Za-z]{40}$`, key)
		got, err := s.Authenticate(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, a.ID, got.AccountID)
		var stored string
		require.NoError(t, d.Read().QueryRow("SELECT hash || hint FROM api_keys").Scan(&stored))
		assert.NotContains(t, stored, key[8:], "the key itself is not kept")
		refused := 0
		swapped := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z':
				return r - 32
			case r >= 'A' && r <= 'Z':
				return r + 32
			}
			return r
		}, key[4:])
		for _, wrong := range []string{"", "asr_", key[:43], key + "0", "ASR_" + key[4:], "asr_" + swapped, strings.Repeat("a", 1<<20), key[:43] + "\x00", "asr_' OR 1=1 --" + strings.Repeat("x", 29)} {
			_, err := s.Authenticate(t.Context(), wrong)
			require.ErrorIs(t, err, accounts.ErrUnauthorized, "%.50q", wrong)
			refused++
		}
		require.NoError(t, s.RevokeKey(t.Context(), "", k.ID))
		require.NoError(t, s.RevokeKey(t.Context(), "", k.ID))
		_, err = s.Authenticate(t.Context(), key)
		require.ErrorIs(t, err, accounts.ErrUnauthorized)
		keys, err := s.Keys(t.Context(), a.ID)
		require.NoError(t, err)
		require.Len(t, keys, 1)
		assert.NotNil(t, keys[0].RevokedAt)
		require.ErrorIs(t, s.RevokeKey(t.Context(), "", "none"), accounts.ErrNotFound)
		_, _, err = s.CreateKey(t.Context(), "none", accounts.KeyOptions{})
		require.ErrorIs(t, err, accounts.ErrNotFound)
		t.Logf("T15: %d of %d wrong keys refused, 1 revoked one too", refused, refused)
	})
}

// TestConcurrentKeysStayBelowTheLimit: simultaneous requests create no more
// keys than the limit; a revoked key makes room.
func TestConcurrentKeysStayBelowTheLimit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := accounts.New(d, nil, nil)
		a, err := s.Create(t.Context(), "a")
		require.NoError(t, err)
		const most = 3
		var wait sync.WaitGroup
		refused := make([]error, 12)
		for i := range refused {
			wait.Go(func() { _, _, refused[i] = s.CreateKey(t.Context(), a.ID, accounts.KeyOptions{Most: most}) })
		}
		wait.Wait()
		created := 0
		for _, err := range refused {
			if err == nil {
				created++
			} else {
				assert.ErrorIs(t, err, accounts.ErrTooManyKeys)
			}
		}
		assert.Equal(t, most, created)
		keys, err := s.Keys(t.Context(), a.ID)
		require.NoError(t, err)
		require.Len(t, keys, most)
		require.NoError(t, s.RevokeKey(t.Context(), a.ID, keys[0].ID))
		_, _, err = s.CreateKey(t.Context(), a.ID, accounts.KeyOptions{Most: most})
		require.NoError(t, err)
		_, _, err = s.CreateKey(t.Context(), "nobody", accounts.KeyOptions{})
		assert.ErrorIs(t, err, accounts.ErrNotFound)
	})
}

func TestUsers(t *testing.T) {
	s := accounts.New(dbtest.SQLite(t, db.Options{}), nil, nil)
	a, err := s.Create(t.Context(), "a")
	require.NoError(t, err)
	u, err := s.CreateUser(t.Context(), a.ID, "ada", "correct horse")
	require.NoError(t, err)
	got, err := s.Login(t.Context(), "ada", "correct horse")
	require.NoError(t, err)
	assert.Equal(t, u, got)
	for _, c := range [][2]string{{"ada", "wrong horse"}, {"ada", ""}, {"eve", "correct horse"}, {"", ""}, {"ada", strings.Repeat("x", 2000)}} {
		_, err := s.Login(t.Context(), c[0], c[1])
		require.ErrorIs(t, err, accounts.ErrUnauthorized)
	}
	_, err = s.CreateUser(t.Context(), a.ID, "ada", "correct horse")
	require.ErrorIs(t, err, accounts.ErrExists)
	_, err = s.CreateUser(t.Context(), a.ID, "bob", "short")
	require.ErrorIs(t, err, accounts.ErrInvalid)
	_, err = s.CreateUser(t.Context(), "none", "bob", "long enough")
	require.ErrorIs(t, err, accounts.ErrNotFound)
	require.NoError(t, s.SetPassword(t.Context(), "ada", "another horse"))
	_, err = s.Login(t.Context(), "ada", "correct horse")
	require.ErrorIs(t, err, accounts.ErrUnauthorized)
	_, err = s.Login(t.Context(), "ada", "another horse")
	require.NoError(t, err)
	require.ErrorIs(t, s.SetPassword(t.Context(), "bob", "another horse"), accounts.ErrNotFound)
}

func TestSigningKeyIsCreatedOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := accounts.New(d, nil, nil)
		keys := make([]string, 8)
		var wait sync.WaitGroup
		for i := range keys {
			wait.Go(func() {
				key, err := s.SigningKey(t.Context())
				if err != nil {
					t.Error(err)
				}
				keys[i] = string(key)
			})
		}
		wait.Wait()
		for _, key := range keys {
			assert.Len(t, key, 32)
			assert.Equal(t, keys[0], key)
		}
	})
}
