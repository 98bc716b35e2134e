package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/spec"
)

// Errors of a data set; test with errors.Is.
var (
	// ErrUnknown marks a name that is not in List.
	ErrUnknown = errors.New("unknown data set")
	// ErrFolder marks a folder that belongs to something else.
	ErrFolder = errors.New("folder in use")
	// ErrContent marks an archive without the expected content.
	ErrContent = errors.New("unexpected data set")
)

// Set is a public data set: description, files, and its manifest's rule.
type Set struct {
	Name    string  // such as "librispeech-test-clean"; "fleurs:LANG" takes a language
	About   string  // its content
	License string  // as an SPDX identifier
	Page    string  // its description
	Hours   float64 // of sound; 0 if not published
	// Language of all recordings; "" if it is unknown.
	Language string

	files []source
	// lines reads the references in the folder.
	lines func(folder string) ([]line, error)
}

// Size returns the size of the files in bytes, 0 if it is not published.
func (s Set) Size() (size int64) {
	for _, f := range s.files {
		if f.Size == 0 {
			return 0
		}
		size += f.Size
	}
	return size
}

// Checked reports whether a hash is known for each file before it is unpacked:
// it is in the recipe, or the source states it in a pointer of Git LFS.
func (s Set) Checked() bool {
	return !slices.ContainsFunc(s.files, func(f source) bool { return f.SHA256 == "" && f.pointer == "" })
}

// source is a file of a data set.
type source struct {
	fetch.File
	// pointer is the address of the file's pointer in Git LFS, which states its
	// size and hash; "" without one.
	pointer string
	// place returns the path in the folder for a file of the archive, "" to
	// skip it; nil for a file that is not an archive.
	place func(name string) string
	// to is the path in the folder of a file that is not an archive.
	to string
}

// Folders of a data set.
const (
	audioDir      = "audio"
	referencesDir = "references"
)

// line is an object of the manifest.
type line struct {
	File      string     `json:"file"`
	Text      *string    `json:"text,omitempty"`
	Language  string     `json:"language,omitempty"`
	RTTM      string     `json:"rttm,omitempty"`
	UEM       string     `json:"uem,omitempty"`
	Speakers  *int       `json:"speakers,omitempty"`
	Sentences []sentence `json:"sentences,omitempty"`
	Speaker   string     `json:"speaker,omitempty"`
	Gender    string     `json:"gender,omitempty"`
	License   string     `json:"license"`
}

type sentence struct {
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker string  `json:"speaker"`
}

// List returns the data sets. FLEURS is listed as "fleurs:LANG".
func List() []Set {
	list := slices.Concat(librispeech(), []Set{fleurs("LANG")}, ami(), voxconverse())
	slices.SortStableFunc(list, func(a, b Set) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Find returns the data set with a name.
func Find(name string) (Set, error) {
	if code, ok := strings.CutPrefix(name, "fleurs:"); ok {
		return findFLEURS(code)
	}
	var names []string
	for _, s := range List() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Set{}, fmt.Errorf("%w: %q: expected one of %s", ErrUnknown, name, strings.Join(names, ", "))
}

// matching returns a place function: the names that match the pattern go to the
// folder whose path is to, with its groups filled in.
func matching(rules ...string) func(string) string {
	var patterns []*regexp.Regexp
	for i := 0; i < len(rules); i += 2 {
		patterns = append(patterns, regexp.MustCompile(rules[i]))
	}
	return func(name string) string {
		for i, p := range patterns {
			if m := p.FindStringSubmatchIndex(name); m != nil {
				return string(p.ExpandString(nil, rules[2*i+1], name, m))
			}
		}
		return ""
	}
}

// glob returns the paths of the files in a folder that match a pattern.
func glob(folder, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(folder), pattern)
	for i, name := range names {
		names[i] = filepath.Join(folder, filepath.FromSlash(name))
	}
	return names, err
}

// language returns Whisper's code for a language tag, "" if it has none.
func language(tag string) string {
	code, _ := spec.NormalizeLanguage(tag)
	return code
}
