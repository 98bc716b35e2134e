package queue_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestDownloadClaimsRespectBusyLists claims downloads while accounts, hosts and
// lanes are busy, and compares each claim with all waiting downloads.
func TestDownloadClaimsRespectBusyLists(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		random := rand.New(rand.NewPCG(28, 0))
		accounts := []string{f.Account, f.NewAccount("b", 10000), f.NewAccount("c", 10000)}
		hosts := []string{"", "a.example", "B.example", "b-c.example", "ä.example"} // collations order these differently
		var waiting []tasks.Task
		hostOf := map[string]string{}
		for range 40 {
			host := hosts[random.IntN(len(hosts))]
			task := f.Add(func(r *tasks.Request) {
				r.Account, r.Batch = accounts[random.IntN(len(accounts))], random.IntN(2) == 0
				r.URL = "https://source.example/x"
			})
			hostOf[task.ID] = host
			f.Exec("UPDATE tasks SET audio_host = $2, queued_at = $3 WHERE id = $1", task.ID, host, random.IntN(20))
			if host == "" && random.IntN(2) == 0 {
				f.Exec("UPDATE tasks SET audio_host = NULL WHERE id = $1", task.ID)
			}
			waiting = append(waiting, task)
		}
		room := map[bool]int{false: 2, true: 1} // by batch, the same for all accounts
		for _, account := range accounts {
			f.Exec("INSERT INTO lane_accounts (lane, account_id, waiting) VALUES ('tasks', $1, 1), ('batch', $1, 2)", account)
		}
		age := map[string]int{}
		for _, task := range waiting {
			age[task.ID] = f.Count(fmt.Sprintf("SELECT queued_at FROM tasks WHERE id = '%s'", task.ID))
		}
		order := func(a, b tasks.Task) int {
			batch := map[bool]int{true: 1}
			return cmp.Or(cmp.Compare(batch[a.BatchMode], batch[b.BatchMode]), cmp.Compare(age[a.ID], age[b.ID]), cmp.Compare(a.ID, b.ID))
		}
		for step := 0; len(waiting) > 0; step++ {
			require.Less(t, step, 1000)
			busy := queue.Busy{Accounts: some(random, accounts), Hosts: some(random, hosts), Ahead: 1 + random.IntN(3)}
			allowed := slices.DeleteFunc(slices.Clone(waiting), func(t tasks.Task) bool {
				full := 3-room[t.BatchMode] >= busy.Ahead
				return slices.Contains(busy.Accounts, t.AccountID) || slices.Contains(busy.Hosts, hostOf[t.ID]) || full
			})
			c, err := f.NextFetch(t.Context(), "f", busy)
			require.NoError(t, err)
			if len(allowed) == 0 {
				require.Nil(t, c, "%+v", busy)
				continue
			}
			require.NotNil(t, c, "%+v", busy)
			own := slices.DeleteFunc(allowed, func(t tasks.Task) bool { return t.AccountID != c.AccountID })
			require.NotEmpty(t, own, "%+v", busy)
			assert.Equal(t, slices.MinFunc(own, order).ID, c.ID, "%+v", busy)
			waiting = slices.DeleteFunc(waiting, func(t tasks.Task) bool { return t.ID == c.ID })
		}
	})
}

// TestLockedDownloadsAreSkipped checks that a download locked by an operator's
// transaction is skipped with its account, and is claimed after the lock is
// released.
func TestLockedDownloadsAreSkipped(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if d.Dialect() != db.Postgres {
			t.Skip("SQLite locks no rows")
		}
		f := taskstest.New(t, d)
		for _, account := range []string{f.Account, f.NewAccount("b", 10000), f.NewAccount("c", 10000)} {
			f.Add(func(r *tasks.Request) { r.Account, r.URL = account, "https://source.example/x" })
		}
		turns, err := db.Column[string](t.Context(), d.Read(), "SELECT t.id FROM lane_accounts l JOIN tasks t ON t.account_id = l.account_id WHERE l.lane = 'fetch' ORDER BY l.served, l.account_id")
		require.NoError(t, err)
		require.Len(t, turns, 3)
		claim := func() string {
			c, err := f.NextFetch(t.Context(), "f", queue.Busy{Ahead: 10})
			require.NoError(t, err)
			if c == nil {
				return ""
			}
			return c.ID
		}
		require.NoError(t, d.Write(t.Context(), func(tx *sql.Tx) error {
			locked, err := db.Column[string](t.Context(), tx, "SELECT id FROM tasks WHERE id IN ($1, $2) FOR UPDATE", turns[0], turns[1])
			assert.Len(t, locked, 2)
			assert.Equal(t, turns[2], claim())
			assert.Empty(t, claim(), "locked tasks are not claimed")
			return err
		}))
		assert.Equal(t, turns[0], claim())
		assert.Equal(t, turns[1], claim())
	})
}

// some returns a random subset of values.
func some(random *rand.Rand, values []string) (chosen []string) {
	for _, v := range values {
		if random.IntN(3) == 0 {
			chosen = append(chosen, v)
		}
	}
	return chosen
}
