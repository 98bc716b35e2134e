package native

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Part describes one installed package and its source.
type Part struct {
	Name    string // libwhisper1, libggml0, onnxruntime …
	Version string // the package's version, or the path of a local build
	SHA256  string // of the downloaded package, "" for a local build
	Source  string // debian, npm, pkg-config, prefix, own
}

// Facts describes the packages that the fetch recipe installed into a folder,
// and the libraries' own report when they were loaded there.
type Facts struct {
	Parts []Part
	// Check holds the libraries' reports: whisper, cpu (ggml's choice of
	// processor code on the machine that fetched), onnxruntime, ort_api.
	Check map[string]string
}

// Versions reads the facts about the libraries in [Dir]. It returns
// [os.ErrNotExist] for an installation that the recipe did not create (a system
// package), and [ErrMissing] without any library.
func Versions() (Facts, error) {
	dir, err := Dir()
	if err != nil {
		return Facts{}, err
	}
	name := filepath.Join(filepath.Dir(dir), "VERSIONS")
	f, err := os.Open(name)
	if err != nil {
		return Facts{}, fmt.Errorf("native versions: %w", err)
	}
	defer f.Close()
	facts, err := parseVersions(io.LimitReader(f, 1<<16))
	if err != nil {
		return Facts{}, fmt.Errorf("native versions: %s: %w", name, err)
	}
	return facts, nil
}

// parseVersions reads lines of four words (name, version, digest, source; the
// version may be a folder, with spaces in its name) and lines of key=value
// words.
func parseVersions(r io.Reader) (Facts, error) {
	facts := Facts{Check: map[string]string{}}
	s := bufio.NewScanner(r)
	for s.Scan() {
		words := strings.Fields(s.Text())
		switch {
		case len(words) == 0:
		case strings.Contains(words[0], "="):
			for _, w := range words {
				if k, v, ok := strings.Cut(w, "="); ok {
					facts.Check[k] = v
				}
			}
		case len(words) >= 4:
			n := len(words)
			p := Part{Name: words[0], Version: strings.Join(words[1:n-2], " "), SHA256: words[n-2], Source: words[n-1]}
			if p.SHA256 == "-" {
				p.SHA256 = ""
			}
			facts.Parts = append(facts.Parts, p)
		default:
			return Facts{}, fmt.Errorf("line %q: want name, version, digest and source", s.Text())
		}
	}
	return facts, s.Err()
}
