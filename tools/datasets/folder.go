package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/otograph/otograph/internal/system/host"
)

// originName is the file that marks a folder of a data set as ours.
const originName = "dataset.json"

// lockName is a file in partials that the running Get locks.
const lockName = "lock"

// claim creates and locks the folder, which must hold nothing else.
func (g *retrieval) claim() (release func(), err error) {
	entries, err := foreign(g.Dir)
	if err != nil {
		return nil, err
	}
	g.origin = origin{Name: g.Name, About: g.About, License: g.License, Page: g.Page}
	switch owner, err := owner(g.Dir); {
	case err != nil:
		return nil, err
	case owner != "" && owner != g.Name:
		return nil, fmt.Errorf("%w: %s: expected %s, found %s: choose another folder", ErrFolder, g.Dir, g.Name, owner)
	case owner == "" && len(entries) > 0:
		return nil, fmt.Errorf("%w: %s: expected an empty folder, found %s: choose another folder", ErrFolder, g.Dir, entries[0])
	}
	made := !exists(g.Dir)
	if err := os.MkdirAll(filepath.Join(g.Dir, partials), 0o777); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(g.partial(lockName), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := host.TryLock(lock); err != nil {
		lock.Close()
		if errors.Is(err, host.ErrLocked) {
			err = fmt.Errorf("%w: %s: another process is downloading into it; wait for it", ErrFolder, g.Dir)
		}
		return nil, err
	}
	return func() {
		lock.Close()
		if made && !exists(filepath.Join(g.Dir, manifestName)) { // without a byte of the data set, no folder stays
			for _, name := range []string{g.partial(lockName), g.partial("content"), filepath.Join(g.Dir, partials), filepath.Join(g.Dir, originName), g.Dir} {
				if os.Remove(name) != nil { // it has content
					break
				}
			}
		}
	}, nil
}

// foreign lists a folder's content, except the files of a Get that was stopped
// before it wrote dataset.json.
func foreign(dir string) (names []string, err error) {
	for _, part := range []string{"", partials} {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name := filepath.Join(part, e.Name()); !slices.Contains([]string{partials, filepath.Join(partials, lockName), filepath.Join(partials, originName)}, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// owner returns the data set that a folder belongs to, "" if it has none.
func owner(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, originName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var o origin
	if err := json.Unmarshal(data, &o); err != nil || o.Name == "" {
		return "", fmt.Errorf("%w: %s: expected the description of a data set in %s", ErrFolder, dir, originName)
	}
	return o.Name, nil
}

// writeOrigin writes dataset.json.
func (g *retrieval) writeOrigin() error {
	data, err := json.MarshalIndent(g.origin, "", "  ")
	if err != nil {
		return err
	}
	return replace(filepath.Join(g.Dir, originName), append(data, '\n'))
}

// manifestName is the name of the manifest in a folder, as otograph bench reads
// it.
const manifestName = "manifest.jsonl"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
