package mediafiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Walk returns the recordings in a folder and its subfolders, ordered by name,
// and the other files, including links that lead to no file. It follows links to
// files, but not links to folders. Hidden files and folders are in neither list.
func Walk(dir string) (files, others []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != dir && strings.HasPrefix(d.Name(), ".")
		switch {
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && Ending(path) != "" {
			files = append(files, path)
		} else {
			others = append(others, path)
		}
		return nil
	})
	return files, others, err
}
