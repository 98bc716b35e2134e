package jsonstream

import (
	"encoding/base64"
	"errors"
	"io"
)

// errBase64 is the cause of an Error for a string that is not Base64.
var errBase64 = errors.New("not valid Base64")

// base64Reader decodes the Base64 content of a JSON string while it arrives. It
// accepts the standard and the URL-safe alphabet, with or without padding. It
// also accepts white space between the characters, even raw line breaks, which
// strict JSON would not allow, because pasting the wrapped output of base64(1)
// into a body is the most common mistake.
type base64Reader struct {
	text    *alphabetReader
	decoded io.Reader // of text
	name    string    // the field
}

func newBase64Reader(text io.Reader, name string) *base64Reader {
	a := &alphabetReader{text: text}
	return &base64Reader{a, base64.NewDecoder(base64.RawStdEncoding, a), name}
}

// Read implements io.Reader. It fills p, because the decoder returns few bytes at
// a time. For content that is not Base64 it returns an *Error.
func (b *base64Reader) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = b.decoded.Read(p[n:])
		n += more
	}
	if n > 0 {
		return n, nil // the decoder returns the error again
	}
	var corrupt base64.CorruptInputError
	switch {
	case b.text.failed != nil: // perhaps within a group of four characters
		return 0, b.text.failed
	case errors.Is(err, errBase64), errors.As(err, &corrupt):
		e := invalid("%s: not valid Base64 (standard or URL-safe alphabet, without a data: prefix)", b.name)
		e.cause = errBase64
		return 0, e
	}
	return 0, err
}

// alphabetReader converts Base64 to the standard alphabet without padding and
// white space.
type alphabetReader struct {
	text    io.Reader
	chars   int // read, without padding and white space
	padding int // number of '=' read
	failed  error
}

// Read implements io.Reader.
func (a *alphabetReader) Read(p []byte) (int, error) {
	for {
		n, err := a.text.Read(p)
		if errors.As(err, new(*ReadError)) {
			a.failed = err
		}
		end := 0
		for _, c := range p[:n] {
			switch c {
			case ' ', '\t', '\r', '\n':
				continue
			case '=':
				a.padding++
				continue
			case '-':
				c = '+'
			case '_':
				c = '/'
			}
			if a.padding > 0 {
				return 0, errBase64 // text after the padding
			}
			p[end] = c
			end++
		}
		a.chars += end
		if errors.Is(err, io.EOF) && (a.padding > 2 || a.padding > 0 && a.chars%4+a.padding != 4) {
			err = errBase64
		}
		if end > 0 || err != nil {
			return end, err
		}
	}
}
