package tasks_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// TestCollectDeletesOnlyOwnFiles collects a store of 600 files with an empty
// database: a pass marks, a pass a week later deletes one file in a hundred,
// and files outside the service's prefixes are never touched.
func TestCollectDeletesOnlyOwnFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now()
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		old := clock.Add(-60 * 24 * time.Hour)
		put := func(key string) {
			path := filepath.Join(f.Dir, filepath.FromSlash(key))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
			require.NoError(t, os.Chtimes(path, old, old))
		}
		name := func(folder string, i int) string {
			return fmt.Sprintf("%s/%08d-0000-7000-8000-000000000000", folder, i)
		}
		wanted := name("audio", 300)
		strangers := []string{"photos/1", "otograph-store.json", "backup/audio/1", "audio/README.txt", "results/2024/summary.json"}
		for i := range 600 {
			put(name([]string{"audio", "results", "checkpoints"}[i%3], i))
		}
		for _, key := range strangers {
			put(key)
		}
		require.NoError(t, f.Config.Blobs.Delete(t.Context(), "otograph-store.json")) // replaced by the real identity
		id, err := d.Identity(t.Context())
		require.NoError(t, err)
		_, err = f.Config.Blobs.Adopt(t.Context(), blob.Identity{Database: id.ID})
		require.NoError(t, err)
		task := f.Add(nil) // a file with a row, younger than a day
		pass := func() tasks.Collected {
			t.Helper()
			found, err := f.Collect(t.Context(), tasks.CollectConfig{})
			require.NoError(t, err)
			return found
		}
		assert.Equal(t, tasks.Collected{Files: 601, Orphans: 600, Marked: 600}, pass())
		for range 6 {
			clock = clock.Add(24 * time.Hour)
			assert.Zero(t, pass().Deleted)
		}
		clock = clock.Add(24*time.Hour + time.Minute)
		assert.Equal(t, 6, pass().Deleted, "one in a hundred")
		assert.Equal(t, 5, pass().Deleted)

		// An old file with a row stays, and so does a file that gets a row in
		// time.
		f.Exec("UPDATE tasks SET audio_blob = $2 WHERE id = $1", task.ID, wanted)
		found, err := f.Collect(t.Context(), tasks.CollectConfig{MaxFiles: 10_000, MaxShare: 1})
		require.NoError(t, err)
		assert.Equal(t, 588, found.Deleted, "more only with a higher limit")
		left := f.Files()
		assert.Contains(t, left, wanted)
		for _, key := range strangers {
			assert.Contains(t, left, key)
		}
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM orphans WHERE key = $1", wanted))
	})
}

// TestCollectDeletesProbes: a process that is killed while it probes the store
// leaves a finished or unfinished file, which is deleted like other orphans.
func TestCollectDeletesProbes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		probe := blob.ProbePrefix + strings.ToLower(rand.Text())
		for _, key := range []string{probe, probe + ".18c0f.tmp", "probe/1", "probe/notes.txt"} {
			path := filepath.Join(f.Dir, filepath.FromSlash(key))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		}
		taskstest.Tidy(t, f.Service)
		left := f.Files()
		assert.NotContains(t, left, probe)
		assert.NotContains(t, left, probe+".18c0f.tmp")
		assert.Subset(t, left, []string{"probe/1", "probe/notes.txt"}, "not the service's")
	})
}

// TestCollectChecksTheStoresIdentity: after the database was exchanged under a
// running server, no file of the old database's store is marked.
func TestCollectChecksTheStoresIdentity(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		clock := time.Now().Add(30 * 24 * time.Hour)
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
		f.Audio("x")
		_, err := f.Config.Blobs.Adopt(t.Context(), blob.Identity{Database: "another"})
		require.NoError(t, err)
		_, err = f.Collect(t.Context(), tasks.CollectConfig{})
		require.ErrorIs(t, err, blob.ErrForeign)
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM orphans"))
		id, err := d.Identity(t.Context())
		require.NoError(t, err)
		_, err = f.Config.Blobs.Adopt(t.Context(), blob.Identity{Database: id.ID})
		require.NoError(t, err)
		found, err := f.Collect(t.Context(), tasks.CollectConfig{})
		require.NoError(t, err)
		assert.Equal(t, 1, found.Marked)
	})
}

// TestCollectForgetsMarks: a file that was deleted and stored again is kept for
// another week.
func TestCollectForgetsMarks(t *testing.T) {
	clock := time.Now().Add(30 * 24 * time.Hour)
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
	info := f.Audio("x")
	_, err := f.Collect(t.Context(), tasks.CollectConfig{})
	require.NoError(t, err)
	require.Equal(t, 1, f.Count("SELECT COUNT(*) FROM orphans"))
	require.NoError(t, f.Config.Blobs.Delete(t.Context(), info.Key))
	clock = clock.Add(24 * time.Hour)
	_, err = f.Collect(t.Context(), tasks.CollectConfig{})
	require.NoError(t, err)
	assert.Zero(t, f.Count("SELECT COUNT(*) FROM orphans"))
}

// TestCollectWritesOnlyDifferences: a pass over files with rows writes the same
// as a pass without files, and marks of a whole batch take one transaction.
func TestCollectWritesOnlyDifferences(t *testing.T) {
	clock, writes := time.Now().Add(30*24*time.Hour), 0
	d := dbtest.SQLite(t, db.Options{Observe: func(op string, _ time.Duration, _ error) {
		if op == "write" {
			writes++
		}
	}})
	f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return clock } })
	pass := func() (tasks.Collected, int) {
		writes = 0
		found, err := f.Collect(t.Context(), tasks.CollectConfig{})
		require.NoError(t, err)
		return found, writes
	}
	_, least := pass()
	for range 20 {
		f.Add(nil)
	}
	found, n := pass()
	assert.Equal(t, tasks.Collected{Files: 20}, found)
	assert.Equal(t, least, n)
	for range 20 {
		f.Audio("x")
	}
	found, n = pass()
	assert.Equal(t, tasks.Collected{Files: 40, Orphans: 20, Marked: 20}, found)
	assert.Equal(t, least+1, n)
}
