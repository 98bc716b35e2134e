package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

type backupCmd struct {
	storeFlags
	Files bool   `help:"Also copy the file store; TO is then a new folder."`
	To    string `arg:"" name:"to" help:"New file for the copy of the SQLite database; with --files, new folder."`
}

// Run copies the database while the service keeps running. It does not migrate:
// a backup changes nothing. The files are copied before and after the database,
// so that the copy contains every file that the copied database refers to,
// unless the service has deleted it in the meantime.
func (c *backupCmd) Run(ctx context.Context) error {
	dir, err := c.folderOf(false)
	if err != nil {
		return err
	}
	source := c.Database
	if source == "" {
		source = filepath.Join(dir, db.DataFile)
		if _, err := os.Stat(source); err != nil {
			return err
		}
	}
	d, err := db.Open(ctx, source, db.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	if !c.Files {
		return d.Backup(ctx, c.To)
	}
	from, err := c.openBlobs(ctx, dir)
	if err != nil {
		return err
	}
	defer from.Close()
	id, err := d.Identity(ctx)
	if err == nil && id.Claimed {
		err = from.Claim(ctx, state.StoreIdentity(id), true)
	}
	if err != nil {
		return advise(err)
	}
	if err := os.Mkdir(c.To, 0o700); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	to, err := blob.Open(ctx, filepath.Join(c.To, blob.DataFolder))
	if err != nil {
		return err
	}
	defer to.Close()
	before, err := copyFiles(ctx, from, to)
	if err != nil {
		return err
	}
	if err := d.Backup(ctx, filepath.Join(c.To, db.DataFile)); err != nil {
		return err
	}
	after, err := copyFiles(ctx, from, to)
	return sayUnless(err, "%s: the database and %d files\n", c.To, before+after)
}

// openBlobs opens the file store that the flags name.
func (f *storeFlags) openBlobs(ctx context.Context, dir string) (*blob.Store, error) {
	return state.OpenFiles(ctx, state.Config{Folder: dir, Files: f.Blobs})
}

// copyFiles copies the service's files that are missing in to and returns their
// number. It ignores files that are deleted meanwhile.
func copyFiles(ctx context.Context, from, to *blob.Store) (copied int, err error) {
	have, haveErr := keys(ctx, to)
	there, err := keys(ctx, from)
	if err := errors.Join(haveErr, err); err != nil {
		return 0, err
	}
	for key := range there {
		if have[key] {
			continue
		}
		switch err := copyFile(ctx, from, to, key); {
		case err == nil:
			copied++
		case !errors.Is(err, blob.ErrNotFound):
			return copied, err
		}
	}
	return copied, nil
}

// keys returns the keys of the service's files.
func keys(ctx context.Context, store *blob.Store) (map[string]bool, error) {
	found := map[string]bool{}
	for _, prefix := range blob.Prefixes {
		err := store.List(ctx, prefix, func(o blob.Object) error {
			found[o.Key] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func copyFile(ctx context.Context, from, to *blob.Store, key string) error {
	r, err := from.Open(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	return to.Put(ctx, key, r)
}

type restoreCmd struct {
	storeFlags
	Adopt bool   `help:"Use the file store even if another database has used it since, for a store whose database is lost."`
	From  string `arg:"" optional:"" help:"Output of backup: a file or, with --files, a folder. Omit on PostgreSQL, and load the dump with pg_restore first."`
}

// Run creates a data folder from a backup, or completes the restoration of a
// PostgreSQL dump: it assigns the file store to it and lists missing files.
func (c *restoreCmd) Run(ctx context.Context) error {
	dir, err := c.folder()
	if err != nil {
		return err
	}
	switch {
	case c.Database != "" && c.From != "":
		return &usageError{errors.New("restore: load a PostgreSQL dump with pg_restore, then run restore with --database alone")}
	case c.Database == "" && c.From == "":
		return &usageError{errors.New("restore: name the backup, a file or a folder")}
	}
	lock, err := db.LockFolder(dir)
	if err != nil {
		return fmt.Errorf("%w: stop the service first", err)
	}
	defer lock.Close()
	if c.From != "" {
		if err := c.copyBackup(ctx, dir); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	config, err := c.config(true)
	if err != nil {
		return err
	}
	s, err := state.Open(ctx, config)
	if err != nil {
		return err
	}
	defer s.Close()
	return recorded(ctx, s, "restore", c.From, "", func() error {
		if err := c.takeFiles(ctx, s); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		return report(ctx, s)
	})
}

// copyBackup copies the backup into the data folder, which must have none.
func (c *restoreCmd) copyBackup(ctx context.Context, dir string) error {
	target := filepath.Join(dir, db.DataFile)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if _, err := os.Stat(target + suffix); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("a database already exists: move %s away, or name another folder with --data", target+suffix))
		}
	}
	source := c.From
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	folder := ""
	if info.IsDir() {
		folder, source = source, filepath.Join(source, db.DataFile)
		if _, err := os.Stat(source); err != nil {
			return err
		}
	}
	return restoreDatabase(ctx, source, target, func(d *db.DB) error { return c.copyBackupFiles(ctx, dir, folder, d) })
}

// copyBackupFiles copies the files of a backup's folder, if it has any, into
// the file store, which must belong to the database or have no owner.
func (c *restoreCmd) copyBackupFiles(ctx context.Context, dir, folder string, d *db.DB) error {
	to, err := c.openBlobs(ctx, dir)
	if err != nil {
		return err
	}
	defer to.Close()
	if folder == "" {
		return c.checkStore(ctx, to, d, nil)
	}
	from, err := blob.Open(ctx, filepath.Join(folder, blob.DataFolder))
	if err != nil {
		return err
	}
	defer from.Close()
	own, err := keys(ctx, from)
	if err == nil {
		err = c.checkStore(ctx, to, d, own)
	}
	if err == nil {
		_, err = copyFiles(ctx, from, to)
	}
	return err
}

// checkStore refuses a file store that belongs to another database than d, and
// a store without an owner that contains foreign files: neither the backup's
// (own) nor files to which d refers. --adopt accepts both.
func (c *restoreCmd) checkStore(ctx context.Context, store *blob.Store, d *db.DB, own map[string]bool) error {
	if c.Adopt {
		return nil
	}
	id, err := d.Identity(ctx)
	if err != nil {
		return err
	}
	found, err := store.Identity(ctx)
	switch {
	case err == nil && found.Database != id.ID:
		return foreignRestore(&state.ForeignStoreError{Store: store.Name(), Owner: found.Database, ID: id.ID})
	case err == nil:
		return nil
	case !errors.Is(err, blob.ErrNotFound):
		return err
	}
	there, err := keys(ctx, store)
	if err != nil {
		return err
	}
	service, err := tasks.New(tasks.Config{DB: d, Blobs: store})
	if err != nil {
		return err
	}
	for key := range there {
		if own[key] {
			continue
		}
		referenced, err := service.Referenced(ctx, []string{key})
		if err != nil {
			return err
		}
		if !referenced[key] {
			return fmt.Errorf("%w: %s is not in the backup: correct --blobs, or repeat this with --adopt if the files are this service's", blob.ErrUnclaimed, key)
		}
	}
	return nil
}

// foreignRestore returns the error of restoring into another database's store.
func foreignRestore(err *state.ForeignStoreError) error {
	return fmt.Errorf("%w: correct --blobs, or repeat with --adopt if that database is lost", err)
}

// restoreDatabase copies the SQLite file source to target. The copy only gets
// its name after it was checked and files, which is called with it, has
// succeeded. The backup itself is only read.
func restoreDatabase(ctx context.Context, source, target string, files func(*db.DB) error) error {
	partial := target + ".restoring"
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, suffix := range []string{"", "-wal", "-shm", ".migrate-lock"} {
		// A killed restoration's write-ahead log would be applied to the copy.
		if err := os.Remove(partial + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		defer os.Remove(partial + suffix)
	}
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := withBackup(ctx, source, partial, files); err != nil {
		return err
	}
	return os.Rename(partial, target)
}

// withBackup checks the copy of source, migrates its tables, and calls files.
func withBackup(ctx context.Context, source, path string, files func(*db.DB) error) (err error) {
	d, err := db.Open(ctx, path, db.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }() // closing merges the write-ahead log into the file
	if err = d.CheckCopy(ctx); err == nil {
		err = d.Migrate(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return files(d)
}

// takeFiles assigns the file store to the restored database.
func (c *restoreCmd) takeFiles(ctx context.Context, s *stores) error {
	err := s.Files.Probe(ctx)
	if err == nil && c.From == "" { // copyBackup did it before writing
		err = c.checkStore(ctx, s.Files, s.DB, nil)
	}
	if err == nil {
		_, err = s.Adopt(ctx, c.Adopt)
	}
	if foreign, ok := errors.AsType[*state.ForeignStoreError](err); ok {
		return foreignRestore(foreign)
	}
	return err
}

// report prints the contents of the restored state and the missing files.
func report(ctx context.Context, s *stores) error {
	there, err := keys(ctx, s.Files)
	if err != nil {
		return err
	}
	var open, silent, empty int
	tasks, err := db.Select(ctx, s.DB.Read(), func(row db.Row, _ *struct{}) error {
		var phase, audio, url, result string
		err := row.Scan(&phase, &audio, &url, &result)
		if phase != "final" {
			open++
			if url == "" && !there[audio] {
				silent++
			}
		}
		if result != "" && !there[result] {
			empty++
		}
		return err
	}, "SELECT phase, COALESCE(audio_blob, ''), COALESCE(audio_url, ''), COALESCE(result_blob, '') FROM tasks")
	if err != nil {
		return err
	}
	say("%d tasks restored, %d of them unfinished: they will run again when the service starts.\n", len(tasks), open)
	if silent > 0 {
		say("The audio of %d unfinished tasks is lost: they will fail without a charge.\n", silent)
	}
	if empty > 0 {
		say("The results of %d finished tasks are lost.\n", empty)
	}
	return nil
}
