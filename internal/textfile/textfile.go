// Package textfile reads texts that other programs wrote: with a byte order mark or
// without, in UTF-16 with one, else in UTF-8.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// ErrEncoding marks bytes that are no text in an encoding that is read.
var ErrEncoding = errors.New("expected a text in UTF-8, or in UTF-16 with a byte order mark, such as `iconv -f WINDOWS-1252 -t UTF-8` writes")

// Read returns the text of a file of at most so many bytes, without its byte order mark.
// An error names the file; it wraps ErrEncoding for another encoding.
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

// ReadFrom is Read for a reader; its errors name none.
func ReadFrom(r io.Reader, most int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(data)) > most:
		return "", fmt.Errorf("expected a text of at most %d bytes", most)
	}
	return decode(data)
}

func decode(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) { // as Windows writes "Unicode"
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
