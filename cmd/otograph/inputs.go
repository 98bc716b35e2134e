package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mediaExtensions are the files that are taken from a folder. A file that is
// named itself is tried whatever its extension.
var mediaExtensions = []string{
	".3gp", ".aac", ".aif", ".aifc", ".aiff", ".amr", ".au", ".awb", ".caf", ".flac", ".m4a", ".m4b", ".m4v", ".mka", ".mkv",
	".mov", ".mp2", ".mp3", ".mp4", ".mpeg", ".mpg", ".oga", ".ogg", ".ogv", ".opus", ".snd", ".ts", ".w64", ".wav", ".wave",
	".weba", ".webm", ".wma", ".wmv", ".wv",
}

// expandInputs replaces each folder by the media files in it and below it, in
// the order of their names; "-" is standard input.
func expandInputs(args []string) ([]string, error) {
	var files []string
	stdin := false
	for _, arg := range args {
		if arg == "-" {
			if stdin {
				return nil, &usageError{fmt.Errorf("standard input (-) can be read only once")}
			}
			stdin = true
			files = append(files, arg)
			continue
		}
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		found := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && path != arg && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			if d.Type().IsRegular() && slices.Contains(mediaExtensions, strings.ToLower(filepath.Ext(path))) {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == found {
			return nil, fmt.Errorf("%s: no audio or video file in this folder", arg)
		}
	}
	return files, nil
}
