package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
)

// Files of a data folder of Kaldi, one entry a line: a name and its value.
const (
	kaldiRecordings = "wav.scp"  // recording, path
	kaldiSegments   = "segments" // utterance, recording, start, end
	kaldiTexts      = "text"     // utterance, words
)

// loadKaldi reads a data folder of Kaldi. Without segments, each recording is
// an utterance.
func loadKaldi(dir string) ([]Item, error) {
	paths, order, err := kaldiLines(dir, kaldiRecordings)
	var texts, segments map[string]string
	if err == nil {
		texts, _, err = kaldiLines(dir, kaldiTexts)
	}
	if err == nil {
		var utterances []string
		if segments, utterances, err = kaldiLines(dir, kaldiSegments); len(utterances) > 0 {
			order = utterances
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	var items []Item
	for _, name := range order {
		it := Item{Name: name}
		recording := name
		if segment, ok := segments[name]; ok {
			fields := append(strings.Fields(segment), "", "", "")
			recording = fields[0]
			start, end, ok := Seconds(fields[1], fields[2])
			if !ok || end <= start {
				return nil, fmt.Errorf("%w: %s: %s: expected a recording, a start and an end, got %q", ErrManifest, kaldiSegments, name, segment)
			}
			it.Part = &Part{start, end - start}
		}
		path := paths[recording]
		if path == "" || strings.HasSuffix(path, "|") {
			return nil, fmt.Errorf("%w: %s: %s: expected a path, got %q: commands are not run", ErrManifest, kaldiRecordings, recording, path)
		}
		if it.Path = path; !filepath.IsAbs(path) { // relative to Kaldi's working directory or the moved folder
			if beside := within(dir, path); exists(beside) || !exists(path) {
				it.Path = beside
			}
		}
		if text, ok := texts[name]; ok {
			it.Text = &text
		}
		items = append(items, it)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%w: %s in %s names no recordings", ErrManifest, kaldiRecordings, dir)
	}
	return items, nil
}

// kaldiLines reads a file of names with values; nil if it does not exist.
func kaldiLines(dir, file string) (values map[string]string, order []string, err error) {
	text, err := textfile.Read(filepath.Join(dir, file), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	values = map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
		if name != "" {
			values[name] = value
			order = append(order, name)
		}
	}
	return values, order, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
