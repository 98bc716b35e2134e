package service

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
)

// TestAccountsInTheLedger: the ledger distinguishes the initial balance of the
// first account from the balance of any other account.
func TestAccountsInTheLedger(t *testing.T) {
	s, err := Open(t.Context(), Config{Folder: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	key, err := s.CreateFirstAccount(t.Context(), "first", billing.Unit)
	require.NoError(t, err)
	assert.NotEmpty(t, key)
	key, err = s.CreateFirstAccount(t.Context(), "another", billing.Unit)
	require.NoError(t, err)
	assert.Empty(t, key)
	_, err = s.CreateAccount(t.Context(), "second", billing.Unit)
	require.NoError(t, err)
	for name, want := range map[string]string{"first": "first start", "second": "created"} {
		account, err := s.state.Accounts.Find(t.Context(), name)
		require.NoError(t, err)
		list, _, err := s.state.Billing.Transactions(t.Context(), account.ID, billing.Page{Number: 1, Size: 20})
		require.NoError(t, err)
		require.Len(t, list, 1)
		view, err := s.state.Billing.View(t.Context(), account.ID)
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"first": 50, "second": 2}[name], view.Limits.Concurrency, "the owner is not a customer")
		assert.Equal(t, want, list[0].Description)
	}
}
