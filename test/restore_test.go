package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestBackupIsRestoredElsewhere copies a running service with its files,
// destroys everything, and restores the copy elsewhere: every task that was
// accepted before the backup exists, is done in the end, and is charged once.
func TestBackupIsRestoredElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--keep-audio", "24h").unlimited()
	audio := clip(t, 8, 1.5)
	var ids []string
	for range 4 {
		ids = append(ids, s.create(upload(audio, quick)))
	}
	s.wait(ids[0])
	s.must("queue", "pause", "tasks") // but tasks that run go on
	for range 4 {
		ids = append(ids, s.create(upload(audio, quick)))
	}
	backup := filepath.Join(t.TempDir(), "backup")
	s.must("backup", "--files", backup)
	s.must("queue", "pause", "tasks", "--undo")
	for _, id := range ids { // this work is lost and done again
		s.wait(id)
	}
	s.kill()
	// Wait until the killed server's workers have noticed and the folder can be
	// removed.
	require.Eventually(t, func() bool { return os.RemoveAll(s.data) == nil }, patience, 100*time.Millisecond)
	for _, name := range files(t, backup) {
		info, err := os.Stat(filepath.Join(backup, name))
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, name)
	}

	restored := &server{t: t, data: t.TempDir(), key: s.key, args: s.args}
	out := restored.must("restore", backup)
	assert.Contains(t, out, "8 tasks restored")
	assert.NotContains(t, out, "gone")
	again, err := restored.run("restore", backup)
	require.Error(t, err, "nothing is overwritten")
	oneLine(t, again, "a database already exists")
	d := restored.store()
	waiting := count(t, d, "SELECT COUNT(*) FROM tasks WHERE phase <> 'final'")
	require.GreaterOrEqual(t, waiting, 4, "the copy was taken while tasks waited")
	exact(t, d)

	restored = restored.again()
	restored.must("queue", "pause", "tasks", "--undo")
	for _, id := range ids {
		require.Equal(t, "done", restored.wait(id)["status"])
		assert.Equal(t, id, restored.result(id)["task_id"])
	}
	exact(t, d)
	assert.Equal(t, len(ids), count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	t.Logf("%d tasks accepted before the backup, %d of them unfinished in it: all done on the restored service, %d charges", len(ids), waiting, len(ids))
}

// TestPostgresBackupIsRestored dumps PostgreSQL with pg_dump while tasks run,
// copies the files, destroys both, and restores them with pg_restore and
// `otograph restore`. Every task that was accepted before is done and charged
// once, except one whose audio was lost: it fails immediately and is not
// charged.
func TestPostgresBackupIsRestored(t *testing.T) {
	t.Parallel()
	source := dbtest.PostgresSource(t)
	blobs := filepath.Join(t.TempDir(), "blobs")
	s := serve(t, t.TempDir(), "--workers", "1", "--database", source, "--blobs", blobs, "--keep-audio", "24h").unlimited()
	audio := clip(t, 8, 1.5)
	ids := []string{s.create(upload(audio, quick))}
	s.wait(ids[0])
	s.must("queue", "pause", "tasks")
	for range 4 {
		ids = append(ids, s.create(upload(audio, quick)))
	}
	dump, copied := filepath.Join(t.TempDir(), "otograph.dump"), filepath.Join(t.TempDir(), "files")
	postgres(t, "pg_dump", "--format=custom", "--file="+dump, "--dbname="+source)
	require.NoError(t, os.CopyFS(copied, os.DirFS(blobs)))
	s.must("queue", "pause", "tasks", "--undo")
	for _, id := range ids { // the lost time
		s.wait(id)
	}
	require.NoError(t, s.stop())
	require.NoError(t, os.RemoveAll(blobs))
	postgres(t, "psql", "--quiet", "--dbname="+source, "--command=DROP SCHEMA public CASCADE; CREATE SCHEMA public")

	postgres(t, "pg_restore", "--dbname="+source, "--single-transaction", dump)
	unknown := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(unknown, "audio"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(unknown, "audio", "of-another.wav"), []byte("sound"), 0o600))
	out, err := s.run("restore", "--blobs", unknown)
	require.Error(t, err)
	oneLine(t, out, "audio/of-another.wav is not in the backup")
	assert.Equal(t, []string{"audio/of-another.wav"}, files(t, unknown))
	require.NoError(t, os.CopyFS(blobs, os.DirFS(copied)))
	lost := ids[len(ids)-1]
	d := s.store()
	var key string
	require.NoError(t, d.Read().QueryRow("SELECT audio_blob FROM tasks WHERE id = $1", lost).Scan(&key))
	require.NoError(t, os.Remove(filepath.Join(blobs, filepath.FromSlash(key))))
	out = s.must("restore", "--blobs", blobs)
	assert.Contains(t, out, "5 tasks restored, 4 of them unfinished")
	assert.Contains(t, out, "The audio of 1 unfinished tasks is lost")
	exact(t, d)

	s = s.again()
	s.must("queue", "pause", "tasks", "--undo") // paused since the dump
	for _, id := range ids[:len(ids)-1] {
		require.Equal(t, "done", s.wait(id)["status"])
		assert.Equal(t, id, s.result(id)["task_id"])
	}
	task := s.wait(lost)
	assert.Equal(t, "failed", task["status"])
	assert.Contains(t, task["error_message"], "audio gone")
	exact(t, d)
	assert.Equal(t, len(ids)-1, count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"))
	assert.Equal(t, 1, count(t, d, "SELECT attempt FROM tasks WHERE id = $1", lost), "no retry can restore the audio")
	t.Logf("on PostgreSQL: %d tasks in the dump, 4 unfinished: %d done, 1 without its audio failed, %d charges", len(ids), len(ids)-1, len(ids)-1)
}

// postgres runs one of PostgreSQL's programs.
func postgres(t *testing.T, program string, args ...string) {
	t.Helper()
	path := filepath.Join(dbtest.Programs(), program)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed", program)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", program, out)
}

// TestRestoreRefusesBadBackups: files that are not backups, and folders that
// are in use, are refused.
func TestRestoreRefusesBadBackups(t *testing.T) {
	t.Parallel()
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

// TestRestoreLeavesForeignStoresAlone: a backup is only restored into its own
// file store or an empty one. A refusal leaves neither files nor a database, so
// that the command can be repeated as its error says.
func TestRestoreLeavesForeignStoresAlone(t *testing.T) {
	t.Parallel()
	newStore := func() *server {
		s := &server{t: t, data: t.TempDir()}
		s.must("migrate")
		s.must("store", "--adopt")
		return s
	}
	const name = "audio/00000000-0000-7000-8000-00000000000%d.wav"
	put := func(folder string, n int) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "audio"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf(name, n)), []byte("sound"), 0o600))
	}
	original, other, another := newStore(), newStore(), newStore()
	put(filepath.Join(original.data, "blobs"), 1)
	backup := filepath.Join(t.TempDir(), "backup")
	out, err := original.run("backup", "--files", backup, "--blobs", filepath.Join(other.data, "blobs"))
	require.Error(t, err)
	assert.Contains(t, out, "belongs to another database", "no backup without the files")
	original.must("backup", "--files", backup)
	database := filepath.Join(backup, "otograph.db")
	whole, err := os.ReadFile(database)
	require.NoError(t, err)
	unclaimed, unknown, broken := t.TempDir(), t.TempDir(), t.TempDir()
	put(unclaimed, 2)
	put(unknown, 3)
	require.NoError(t, os.CopyFS(broken, os.DirFS(backup)))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "otograph.db"), whole[:len(whole)/2], 0o600))
	for _, c := range []struct{ name, from, blobs, why string }{
		{"another database's", backup, filepath.Join(other.data, "blobs"), "belongs to database"},
		{"another database's, without files", database, filepath.Join(another.data, "blobs"), "belongs to database"},
		{"nobody's, with a file", backup, unclaimed, fmt.Sprintf(name, 2) + " is not in the backup"},
		{"nobody's, with a file, without files", database, unknown, fmt.Sprintf(name, 3) + " is not in the backup"},
		{"a truncated backup", broken, t.TempDir(), "restore: " + broken},
	} {
		before := files(t, c.blobs)
		restored := &server{t: t, data: t.TempDir()}
		out, err := restored.run("restore", c.from, "--blobs", c.blobs)
		require.Error(t, err, c.name)
		oneLine(t, out, c.why)
		assert.Equal(t, before, files(t, c.blobs), c.name)
		_, err = os.Stat(filepath.Join(restored.data, "otograph.db"))
		require.ErrorIs(t, err, os.ErrNotExist, c.name)
		if c.from != broken {
			assert.Contains(t, restored.must("restore", c.from, "--blobs", c.blobs, "--adopt"), "0 tasks restored", c.name)
		}
	}
	resumed := t.TempDir() // a restoration that was interrupted while copying files
	put(resumed, 1)
	assert.Contains(t, (&server{t: t, data: t.TempDir()}).must("restore", backup, "--blobs", resumed), "0 tasks restored")
}

// TestRestoreAfterAKilledRestore: the remains of a killed restoration are not
// applied to the next one's copy.
func TestRestoreAfterAKilledRestore(t *testing.T) {
	t.Parallel()
	original, other := &server{t: t, data: t.TempDir()}, &server{t: t, data: t.TempDir()}
	original.must("migrate")
	backup := filepath.Join(t.TempDir(), "backup.db")
	original.must("backup", backup)
	other.must("migrate")
	d := other.store() // keeps the write-ahead log
	change(t, d, "CREATE TABLE left_behind (id INTEGER)")
	restored := &server{t: t, data: t.TempDir()}
	log, err := os.ReadFile(filepath.Join(other.data, "otograph.db-wal"))
	require.NoError(t, err)
	require.NotEmpty(t, log)
	for _, suffix := range []string{"", "-wal"} {
		require.NoError(t, os.WriteFile(filepath.Join(restored.data, "otograph.db.restoring"+suffix), log, 0o600))
	}
	restored.must("restore", backup)
	assert.Zero(t, count(t, restored.store(), "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'left_behind'"))
	left, err := filepath.Glob(filepath.Join(restored.data, "*.restoring*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
