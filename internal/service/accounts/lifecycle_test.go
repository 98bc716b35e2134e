package accounts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

func TestCommonPasswordsAreRefused(t *testing.T) {
	s := accounts.New(dbtest.SQLite(t, db.Options{}), nil, nil)
	a, err := s.Create(t.Context(), "a")
	require.NoError(t, err)
	for _, password := range []string{"password", "Password", "12345678", "qwertyuiop", "iloveyou", "Football", "sunshine"} {
		_, err := s.CreateUser(t.Context(), a.ID, "ada", password)
		require.ErrorIs(t, err, accounts.ErrInvalid, password)
		assert.ErrorContains(t, err, "most common passwords", password)
	}
	_, err = s.CreateUser(t.Context(), a.ID, "ada", "correct horse")
	require.NoError(t, err)
	require.ErrorIs(t, s.SetPassword(t.Context(), "ada", "password"), accounts.ErrInvalid)
}

func TestKeyExpiresAndShowsItsLastUse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := accounts.New(d, nil, func() time.Time { return clock })
		a, err := s.Create(t.Context(), "a")
		require.NoError(t, err)
		_, _, err = s.CreateKey(t.Context(), a.ID, accounts.KeyOptions{ExpiresAt: clock})
		require.ErrorIs(t, err, accounts.ErrInvalid)
		key, _, err := s.CreateKey(t.Context(), a.ID, accounts.KeyOptions{ReadOnly: true, ExpiresAt: clock.Add(time.Hour)})
		require.NoError(t, err)
		used := func() *time.Time {
			keys, err := s.Keys(t.Context(), a.ID)
			require.NoError(t, err)
			require.Len(t, keys, 1)
			assert.True(t, keys[0].ReadOnly)
			assert.Equal(t, time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC), *keys[0].ExpiresAt)
			return keys[0].UsedAt
		}
		assert.Nil(t, used())
		first := clock
		for range 3 {
			k, err := s.Authenticate(t.Context(), key)
			require.NoError(t, err)
			assert.True(t, k.ReadOnly)
			assert.Equal(t, first, *used(), "accurate to ten minutes")
			clock = clock.Add(3 * time.Minute)
		}
		clock = first.Add(10 * time.Minute)
		_, err = s.Authenticate(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, clock, *used())
		clock = first.Add(time.Hour)
		_, err = s.Authenticate(t.Context(), key)
		require.ErrorIs(t, err, accounts.ErrUnauthorized)
	})
}

func TestSuspensionRefusesKeysLoginsAndTokens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := accounts.New(d, nil, nil)
		a, err := s.Create(t.Context(), "a")
		require.NoError(t, err)
		key, _, err := s.CreateKey(t.Context(), a.ID, accounts.KeyOptions{})
		require.NoError(t, err)
		u, err := s.CreateUser(t.Context(), a.ID, "ada", "correct horse")
		require.NoError(t, err)
		try := func() (errs []error) {
			_, byKey := s.Authenticate(t.Context(), key)
			_, byPassword := s.Login(t.Context(), "ada", "correct horse")
			_, byToken := s.PasswordSet(t.Context(), u.ID)
			return []error{byKey, byPassword, byToken}
		}
		require.NoError(t, s.Suspend(t.Context(), a.ID))
		require.NoError(t, s.Suspend(t.Context(), a.ID))
		for _, err := range try() {
			require.ErrorIs(t, err, accounts.ErrSuspended)
		}
		_, err = s.Login(t.Context(), "ada", "wrong horse")
		require.ErrorIs(t, err, accounts.ErrUnauthorized, "a wrong password reveals no suspension")
		found, err := s.Find(t.Context(), "a")
		require.NoError(t, err)
		assert.NotNil(t, found.SuspendedAt)
		require.NoError(t, s.Resume(t.Context(), a.ID))
		for _, err := range try() {
			require.NoError(t, err)
		}
		require.ErrorIs(t, s.Suspend(t.Context(), "none"), accounts.ErrNotFound)
	})
}

func TestUsersAreListedLoggedOutAndDeleted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		s := accounts.New(d, nil, func() time.Time { return clock })
		a, err := s.Create(t.Context(), "a")
		require.NoError(t, err)
		bob, err := s.CreateUser(t.Context(), a.ID, "bob", "correct horse")
		require.NoError(t, err)
		ada, err := s.CreateUser(t.Context(), a.ID, "ada", "correct horse")
		require.NoError(t, err)
		users, err := s.Users(t.Context(), a.ID)
		require.NoError(t, err)
		assert.Equal(t, []accounts.User{ada, bob}, users)

		require.NoError(t, s.EndSessions(t.Context(), "ada")) // in the same microsecond as the last login
		set, err := s.PasswordSet(t.Context(), ada.ID)
		require.NoError(t, err)
		assert.True(t, set.After(ada.PasswordSet), "earlier tokens are invalid")
		_, err = s.Login(t.Context(), "ada", "correct horse")
		require.NoError(t, err)

		require.NoError(t, s.DeleteUser(t.Context(), "ada"))
		_, err = s.PasswordSet(t.Context(), ada.ID)
		require.ErrorIs(t, err, accounts.ErrUnauthorized)
		_, err = s.Login(t.Context(), "ada", "correct horse")
		require.ErrorIs(t, err, accounts.ErrUnauthorized)
		require.ErrorIs(t, s.DeleteUser(t.Context(), "ada"), accounts.ErrNotFound)
		require.ErrorIs(t, s.EndSessions(t.Context(), "ada"), accounts.ErrNotFound)
	})
}
