// Package mediafiles recognizes recordings by their file names. Package audio
// determines a file's format from its content.
package mediafiles

import (
	_ "embed" // the list of endings
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// endings has a line for each container: its name and the endings of its files.
//
//go:embed endings.txt
var endings string

// Endings are the endings of file names by package audio's containers.
var Endings = func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(endings) {
		fields := strings.Fields(line)
		m[fields[0]] = fields[1:]
	}
	return m
}()

// Ending returns the ending of a recording's name, in the case of the name. It
// returns "" for other text after the last point, which belongs to a title.
func Ending(name string) string {
	ending := filepath.Ext(name)
	for _, list := range Endings {
		if slices.Contains(list, strings.ToLower(ending)) {
			return ending
		}
	}
	return ""
}

// Stem returns a name without the ending of a recording.
func Stem(name string) string { return strings.TrimSuffix(name, Ending(name)) }

// TextEndings lists the endings of a recording's text in a folder, in the order
// of preference; .lab is HTK's.
var TextEndings = []string{".txt", ".TXT", ".lab"}

// Walk returns the recordings in a folder and its subfolders, ordered by name,
// and the other files, including links that lead to no file. It follows links
// to files, but not links to folders. Hidden files and folders are left out of
// both.
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

// Kind names the kind of a file, other than a regular one, for an error message.
func Kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	}
	return "no file"
}
