package tasks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestUnknownLengthHoldsTheConfiguredPrice: with UnknownLength of an hour, the
// price of an hour is held for an unknown length, and the actual price for a
// known one.
func TestUnknownLengthHoldsTheConfiguredPrice(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.UnknownLength = time.Hour })
	for seconds, want := range map[float64]billing.Money{0: 8000, 60: 133, 7200: 16000} {
		task := f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("audio"), seconds })
		held, _, err := f.Billing().HoldLimit(t.Context(), task.ID)
		require.NoError(t, err)
		assert.Equal(t, want, held, "%v s", seconds)
	}
}
