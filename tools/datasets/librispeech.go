package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/internal/system/fetch"
)

// maxReference limits the size of a reference in bytes.
const maxReference = 256 << 20

// librispeech returns the four parts of LibriSpeech that models are compared on
// (OpenSLR 12). The hashes are torchaudio's, the sizes Kaldi's.
func librispeech() (list []Set) {
	for _, part := range []struct {
		name, sum string
		size      int64
		hours     float64
	}{
		{"dev-clean", "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3", 337_926_286, 5.4},
		{"dev-other", "12661c48e8c3fe1de2c1caa4c3e135193bfb1811584f11f569dd12645aa84365", 314_305_928, 5.3},
		{"test-clean", "39fde525e59672dc6d1551919b1478f724438a95aa55f874b576be21967e6c23", 346_663_984, 5.4},
		{"test-other", "d09c181bba5cf717b3dee7d4d592af11a3ee3a09e08ae025c5506f6ebe961c29", 328_757_843, 5.1},
	} {
		file := part.name + ".tar.gz"
		list = append(list, Set{
			Name: "librispeech-" + part.name, About: "English, read from books", License: "CC-BY-4.0", Page: "https://www.openslr.org/12",
			Hours: part.hours, Language: "en",
			files: []source{{
				File:  fetch.File{Name: file, URL: "https://www.openslr.org/resources/12/" + file, Size: part.size, SHA256: part.sum},
				place: matching(`/([^/]+\.flac)$`, audioDir+"/$1", `/([^/]+\.trans\.txt)$`, referencesDir+"/$1"),
			}},
			lines: librispeechLines,
		})
	}
	return list
}

// librispeechLines reads all chapters' lines "READER-CHAPTER-NUMBER TEXT".
func librispeechLines(folder string) (lines []line, err error) {
	files, err := glob(folder, referencesDir+"/*.trans.txt")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := textfile.Read(file, maxReference)
		if err != nil {
			return nil, err
		}
		for row := range strings.Lines(text) {
			name, words, ok := strings.Cut(strings.TrimSpace(row), " ")
			if !ok {
				return nil, fmt.Errorf("%w: %s: expected lines of a name and a text, found %q", ErrContent, filepath.Base(file), row)
			}
			reader, _, _ := strings.Cut(name, "-")
			lines = append(lines, line{File: audioDir + "/" + name + ".flac", Text: &words, Speaker: reader})
		}
	}
	return lines, nil
}
