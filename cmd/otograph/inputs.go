package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
)

// readOnce reports whether a recording can only be read once: standard input, a
// named pipe, or a shell's <(…).
func readOnce(file string) bool {
	if file == "-" {
		return true
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice|os.ModeSocket) != 0
}

// errOnce refuses a second use of standard input.
var errOnce = errors.New("standard input (-) can be read only once")

// source returns the recording of an argument; the caller closes done.
func source(file string) (src otograph.Source, done io.Closer, err error) {
	switch {
	case file == "-":
		return audio.Reader(os.Stdin, "standard input"), io.NopCloser(nil), nil
	case readOnce(file):
		f, err := os.Open(file)
		return audio.Reader(f, file), f, err
	}
	return otograph.File(file), io.NopCloser(nil), nil
}

// inputs holds the recordings of a command line.
type inputs struct {
	files []string          // "-" is standard input
	under map[string]string // output subfolder of a file from a folder
	notes []string          // notes about skipped files
}

// several reports whether results go to a folder, because there are several
// recordings or a folder of recordings.
func (in *inputs) several() bool { return len(in.files) > 1 || len(in.under) > 0 }

// expandInputs replaces each folder with the recordings in it and below it. An
// explicitly named file is tried regardless of its extension.
func expandInputs(args []string) (in inputs, err error) {
	in.under = map[string]string{}
	folders := 0
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			folders++
		}
	}
	for _, arg := range args {
		if arg == "-" {
			if slices.Contains(in.files, "-") {
				return in, &usageError{errOnce}
			}
			in.files = append(in.files, arg)
			continue
		}
		if err := refuseAddress(arg); err != nil {
			return in, err
		}
		info, err := os.Stat(arg)
		if err != nil {
			return in, fmt.Errorf("%s: %w", arg, errors.Unwrap(err)) // without "stat"
		}
		if !info.IsDir() {
			in.files = append(in.files, arg)
			continue
		}
		if err := in.folder(arg, folders > 1); err != nil {
			return in, err
		}
	}
	return in, nil
}

// refuseAddress returns an error for an address instead of a file.
func refuseAddress(arg string) error {
	if _, err := os.Stat(arg); err != nil && strings.Contains(arg, "://") {
		return &usageError{fmt.Errorf("%s: expected a file or a folder, got an address: download it first (curl -LO %s)", arg, arg)}
	}
	return nil
}

// folder adds the recordings of a folder. Their outputs keep its subfolders
// and, with several folders, its name.
func (in *inputs) folder(dir string, several bool) error {
	files, others, err := mediafiles.Walk(dir)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no audio or video file in this folder (%s passed over)", dir, plural(len(others), "file"))
	}
	if len(others) > 0 {
		in.notes = append(in.notes, passedOver(dir, others))
	}
	for _, f := range files {
		below, err := filepath.Rel(dir, filepath.Dir(f))
		if err != nil {
			return err
		}
		if several {
			below = filepath.Join(filepath.Base(filepath.Clean(dir)), below)
		}
		in.under[f] = below
	}
	in.files = append(in.files, files...)
	return nil
}

// passedOver returns a note with the numbers of a folder's skipped entries.
func passedOver(dir string, others []string) string {
	links := 0
	for _, path := range others {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			links++
		}
	}
	var parts []string
	if n := len(others) - links; n > 0 {
		parts = append(parts, plural(n, "file")+" passed over, whose names do not end like those of recordings")
	}
	if links > 0 {
		parts = append(parts, plural(links, "link")+" not followed, to a folder or to nothing")
	}
	return dir + ": " + strings.Join(parts, "; ")
}
