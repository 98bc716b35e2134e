package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole writes a file that gets its name only when it is complete. It
// writes a pipe or /dev/null directly, and a link keeps its target.
func writeWhole(path string, write func(io.Writer) error) error {
	target, special, err := writeTarget(path)
	if err != nil {
		return err
	}
	if special {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := createBeside(path, target)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // already renamed after a success
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return os.Rename(f.Name(), target)
}

// checkWritable checks, before hours of work, whether writeWhole can write a
// file there.
func checkWritable(path string) error {
	target, special, err := writeTarget(path)
	if err != nil || special {
		return err
	}
	f, err := createBeside(path, target)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// writeTarget follows links; a special target must not be replaced by a rename.
func writeTarget(path string) (target string, special bool, err error) {
	if target, err = filepath.EvalSymlinks(path); errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	} else if err != nil {
		return "", false, fmt.Errorf("cannot write %s: %w", path, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", false, err
	}
	if info.IsDir() {
		return "", false, fmt.Errorf("%s is a folder, expected the name of a file", path)
	}
	return target, !info.Mode().IsRegular(), nil
}

// createBeside creates a temporary file in the target's folder, with the
// permissions of any new file.
func createBeside(path, target string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(target), ".otograph-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if reason, ok := errors.AsType[*fs.PathError](err); ok { // the temporary name is meaningless to users
		return nil, fmt.Errorf("cannot write %s: folder %s: %w", path, filepath.Dir(target), reason.Err)
	}
	return f, err
}

// checkDistinct returns an error if an output is one of the inputs, also
// through a link, before anything runs. "-" is standard input, and "" no file.
func checkDistinct(outputs, inputs []string) error {
	read := map[string]os.FileInfo{}
	for _, name := range inputs {
		info, err := os.Stat(name)
		if name == "-" {
			info, err = os.Stdin.Stat()
		}
		if err == nil && info.Mode().IsRegular() {
			read[name] = info
		}
	}
	for _, out := range outputs {
		info, err := os.Stat(out)
		if err != nil {
			continue // a new file
		}
		for name, in := range read {
			if os.SameFile(info, in) {
				return &usageError{fmt.Errorf("the output %s is the input %s: expected another file, because the output would replace it", out, name)}
			}
		}
	}
	return nil
}
