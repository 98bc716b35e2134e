package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/metrics"
	"github.com/otograph/otograph/internal/userdata"
)

// othersBits are the permissions of all users but the owner.
const othersBits = 0o077

// folder returns the data folder and creates it if it is missing. It holds the
// key that signs access tokens, password hashes, and customers' audio: a folder
// of ours that others can read is closed to them, any other one is refused.
func (f *storeFlags) folder() (string, error) {
	keepFilesPrivate() // nor are the files readable that this process creates
	dir := f.Data
	if dir == "" {
		var err error
		if dir, err = userdata.Dir("service"); err != nil {
			return "", fmt.Errorf("data folder: %w; name one with --data", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data folder: %w", err)
	}
	return dir, closeFolder(dir)
}

// folderOf is folder for a command about a service that is there already: with
// SQLite a folder that is missing is a mistake, and is not created.
func (f *storeFlags) folderOf(migrate bool) (string, error) {
	if f.Database == "" && !migrate && f.Data != "" {
		if _, err := os.Stat(f.Data); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("data folder %s: does not exist: correct --data, or start `otograph serve` first", f.Data)
		}
	}
	return f.folder()
}

// closeFolder takes the permissions of others from the data folder dir and from
// the database in it.
func closeFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&othersBits != 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if !ours(entries) {
			return fmt.Errorf("data folder %s: other users can open it (mode %04o) and it holds other files: name a separate folder with --data, or chmod 700 it",
				dir, info.Mode().Perm())
		}
		if err := os.Chmod(dir, info.Mode().Perm()&^os.FileMode(othersBits)); err != nil {
			return fmt.Errorf("data folder: other users can open it: %w", err)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := filepath.Join(dir, db.DataFile+suffix)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode().Perm()&othersBits != 0 {
			if err := os.Chmod(path, 0o600); err != nil {
				return fmt.Errorf("database: other users can read it: %w", err)
			}
		}
	}
	return nil
}

// ours reports whether a folder holds only files of the service.
func ours(entries []os.DirEntry) bool {
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, db.DataFile) && name != db.LockFile && name != blob.DataFolder && name != metrics.Folder && name != firstKeyFile {
			return false
		}
	}
	return true
}
