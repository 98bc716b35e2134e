// Package textfile reads text files of other programs: UTF-8 with or without a
// byte order mark, or UTF-16 with a byte order mark.
package textfile

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/bidi"
)

// ErrEncoding marks bytes in an encoding that Read does not support.
var ErrEncoding = errors.New("expected a text in UTF-8, or in UTF-16 with a byte order mark, such as `iconv -f WINDOWS-1252 -t UTF-8` writes")

// Read returns the text of a file of up to most bytes, without its byte order
// mark. Errors name the file; an unsupported encoding wraps ErrEncoding.
func Read(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := ReadFrom(f, most)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// ReadFrom is like Read for a reader; its errors name no file.
func ReadFrom(r io.Reader, most int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(data)) > most:
		return "", fmt.Errorf("expected a text of at most %d bytes", most)
	}
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) { // Windows calls it "Unicode"
		decoded, err := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(data)
		if err != nil || bytes.ContainsRune(decoded, utf8.RuneError) {
			return "", ErrEncoding
		}
		data = decoded
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", ErrEncoding
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}

// LineTimes matches the times before lines of transcripts by whisper.cpp,
// faster-whisper and Otograph, with Otograph's speaker as its group, and
// Otograph's other lines.
var LineTimes = regexp.MustCompile(`(?m)^\s*(?:\[(?:\d+\.\d+s?|(?:\d+:)?\d+:\d+[.,]\d+) --?> (?:\d+\.\d+s?|(?:\d+:)?\d+:\d+[.,]\d+)\]|\d[\d:]*:\d+\.\d – +\d[\d:]*:\d+\.\d(?:  sound +\[.*|  (\S+(?: \S+)*)  )?|WARNING: .*)`)

// CompressionRatio returns the length of a text divided by its length after
// zlib, the Whisper paper's measure of repetition (Radford et al. 2022, section
// 4.5): a text above 2.4 counts as a loop. It is 0 for an empty text.
func CompressionRatio(text string) float64 {
	if text == "" {
		return 0
	}
	var n counter
	z := writers.Get().(*zlib.Writer)
	defer writers.Put(z)
	z.Reset(&n)
	_, _ = z.Write([]byte(text)) // writing to a counter never fails
	_ = z.Close()
	return float64(len(text)) / float64(n)
}

// writers are reused, because each takes 600 KB.
var writers = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// RightToLeft reports whether most letters of a text belong to scripts that are
// written from right to left.
func RightToLeft(text string) bool {
	balance := 0
	for _, r := range text {
		p, _ := bidi.LookupRune(r)
		if class := p.Class(); class == bidi.R || class == bidi.AL {
			balance++
		} else if class == bidi.L {
			balance--
		}
	}
	return balance > 0
}

// Isolate returns a text that keeps the direction of its script after a name or
// a time: a right-to-left text is put between U+2067 and U+2069.
func Isolate(text string) string {
	if RightToLeft(text) {
		return "\u2067" + text + "\u2069"
	}
	return text
}

// IsolateLines isolates lines of a right-to-left text: lines after a name, and
// lines that begin with a word of another direction, because players give a
// line the direction of its first strong character.
func IsolateLines(lines []string, named bool) {
	text := strings.Join(lines, " ")
	for i, line := range lines {
		if first, _, _ := strings.Cut(line, " "); RightToLeft(text) && (named || !RightToLeft(first)) {
			lines[i] = "\u2067" + line + "\u2069"
		}
	}
}
