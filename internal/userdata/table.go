package userdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxTable bounds a table's file, in bytes.
const maxTable = 1 << 20

// ReadTable reads a file of WriteTable from the folder of Dir. It returns an
// empty table if the file is missing or damaged.
func ReadTable[V any](name string) map[string]V {
	all := map[string]V{}
	path, err := Dir(name)
	if err != nil {
		return all
	}
	f, err := os.Open(path)
	if err != nil {
		return all
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxTable)).Decode(&all); err != nil || all == nil {
		return map[string]V{}
	}
	return all
}

// WriteTable replaces a JSON file in the folder of Dir atomically, and creates the
// folder.
func WriteTable[V any](name string, all map[string]V) error {
	path, err := Dir(name)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+name+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
