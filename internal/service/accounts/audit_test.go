package accounts_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

func TestLogIsAppendOnly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		l := accounts.New(d, nil, func() time.Time { return clock })
		for _, action := range []string{"account create", "account credit", "key revoke"} {
			require.NoError(t, l.Record(t.Context(), accounts.AuditEntry{Operator: accounts.Operator(), Action: action, Subject: "a", Detail: "x"}))
			clock = clock.Add(time.Hour)
		}
		for _, statement := range []string{"UPDATE audit SET detail = 'y'", "DELETE FROM audit"} {
			err := d.Write(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(context.Background(), statement)
				return err
			})
			require.ErrorContains(t, err, "append-only", statement)
		}
		list, err := l.AuditLog(t.Context(), time.Time{}, 100)
		require.NoError(t, err)
		require.Len(t, list, 3)
		assert.Equal(t, "key revoke", list[0].Action, "the newest first")
		assert.Equal(t, time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC), list[0].At)
		assert.Contains(t, list[0].Operator, "@")
		list, err = l.AuditLog(t.Context(), time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC), 1)
		require.NoError(t, err)
		require.Len(t, list, 1)
		list, err = l.AuditLog(t.Context(), time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC), 100)
		require.NoError(t, err)
		assert.Len(t, list, 2)
	})
}
