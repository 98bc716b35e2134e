package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// Names in a data folder, in addition to the database and the files.
const (
	// MetricsFolder is the folder of the worker processes' metrics.
	MetricsFolder = "metrics"
	// FirstKeyFile holds the first API key if no terminal could show it.
	FirstKeyFile = "first-api-key"
)

// OthersBits are the permissions of all users but the owner.
const OthersBits = 0o077

// ErrOpenFolder is returned for a data folder that other users can open and
// that contains other files.
var ErrOpenFolder = errors.New("other users can open it and it holds other files: name a separate folder, or chmod 700 it")

// PrepareFolder creates the data folder dir if it is missing. It removes other
// users' permissions from the folder and its database, which contain the key
// that signs access tokens, password hashes, and customers' audio. It refuses a
// folder with other files (ErrOpenFolder) and leaves it unchanged.
func PrepareFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if info.Mode().Perm()&OthersBits != 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
		if !ours(entries) {
			return fmt.Errorf("data folder %s (mode %04o): %w", dir, info.Mode().Perm(), ErrOpenFolder)
		}
		if err := os.Chmod(dir, info.Mode().Perm()&^os.FileMode(OthersBits)); err != nil {
			return fmt.Errorf("data folder: other users can open it: %w", err)
		}
	}
	return closeDatabase(dir)
}

// closeDatabase removes other users' permissions from the database in dir.
func closeDatabase(dir string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := filepath.Join(dir, db.DataFile+suffix)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode().Perm()&OthersBits != 0 {
			if err := os.Chmod(path, 0o600); err != nil {
				return fmt.Errorf("database: other users can read it: %w", err)
			}
		}
	}
	return nil
}

// ours reports whether a folder only contains files of the service.
func ours(entries []os.DirEntry) bool {
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, db.DataFile), name == db.LockFile, name == blob.DataFolder, name == MetricsFolder, name == FirstKeyFile:
		default:
			return false
		}
	}
	return true
}
