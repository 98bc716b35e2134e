package mediafiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Walk returns the recordings in a folder and below it, in the order of their
// names, and how many other files there are, by their names or because a link
// leads to no file. Links to files are followed, those to folders are not. Hidden
// files and folders are left out and not counted.
func Walk(dir string) (files []string, others int, err error) {
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
			others++
		}
		return nil
	})
	return files, others, err
}
