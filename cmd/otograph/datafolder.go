package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/system/host"
)

// folder returns the data folder, created if missing and closed to others.
func (f *storeFlags) folder() (string, error) {
	keepFilesPrivate() // new files of this process are also private
	dir := f.Data
	if dir == "" {
		var err error
		if dir, err = host.DataDir("service"); err != nil {
			return "", fmt.Errorf("data folder: %w; name one with --data", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err = state.PrepareFolder(dir); errors.Is(err, state.ErrOpenFolder) {
		err = fmt.Errorf("%w (--data)", err)
	}
	return dir, err
}

// folderOf is like folder for a command about an existing service: with SQLite
// a missing folder is an error, and is not created.
func (f *storeFlags) folderOf(migrate bool) (string, error) {
	if f.Database == "" && !migrate && f.Data != "" {
		if _, err := os.Stat(f.Data); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("data folder %s: does not exist: correct --data, or start `otograph serve` first", f.Data)
		}
	}
	return f.folder()
}
