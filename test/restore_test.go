package test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestF11Restore copies a service with its files while it runs, destroys everything, and restores the copy in another
// place: every task that was accepted before the backup is there, ends done, and is charged once.
func TestF11Restore(t *testing.T) {
	s := serve(t, t.TempDir(), "--keep-audio", "24h").unlimited()
	audio := clip(t, 8, 1.5)
	var ids []string
	for range 4 {
		ids = append(ids, s.create(upload(audio, quick)))
	}
	s.wait(ids[0])
	for range 4 {
		ids = append(ids, s.create(upload(audio, quick)))
	}
	backup := filepath.Join(t.TempDir(), "backup")
	s.must("backup", "--files", backup)
	for _, id := range ids { // the lost time: what is done here is done again
		s.wait(id)
	}
	s.kill()
	// The killed server's workers notice that it is gone before the folder goes.
	require.Eventually(t, func() bool { return os.RemoveAll(s.data) == nil }, patience, 100*time.Millisecond)
	for _, name := range files(t, backup) {
		info, err := os.Stat(filepath.Join(backup, name))
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, name)
	}

	restored := &server{t: t, data: t.TempDir(), key: s.key, args: s.args}
	out := restored.must("restore", backup)
	assert.Contains(t, out, "8 tasks are restored")
	assert.NotContains(t, out, "gone")
	again, err := restored.run("restore", backup)
	require.Error(t, err, "nothing is overwritten")
	oneLine(t, again, "there is a database already")
	d := restored.store()
	waiting := count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase <> 'final'")
	require.NotZero(t, waiting, "the copy was taken while tasks ran")
	exact(t, d)

	restored = restored.again()
	for _, id := range ids {
		require.Equal(t, "done", restored.wait(id)["status"])
		assert.Equal(t, id, restored.result(id)["task_id"])
	}
	exact(t, d)
	assert.Equal(t, len(ids), count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	t.Logf("F11: %d tasks accepted before the backup, %d of them unfinished in it: all done on the restored service, %d charges", len(ids), waiting, len(ids))
}

// TestF11RestoreRefuses: files that are no backup, and folders that are in use.
func TestF11RestoreRefuses(t *testing.T) {
	s := &server{t: t, data: t.TempDir()}
	broken := filepath.Join(t.TempDir(), "broken.db")
	require.NoError(t, os.WriteFile(broken, []byte("this is no database, but it is long enough to look into"), 0o600))
	out, err := s.run("restore", broken)
	require.Error(t, err)
	oneLine(t, out, "restore: "+broken)
	_, err = os.Stat(filepath.Join(s.data, "otograph.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
	live := serve(t, t.TempDir(), "--workers", "0")
	out, err = live.run("restore", broken)
	require.Error(t, err)
	oneLine(t, out, "in use", "stop the service first")
}
