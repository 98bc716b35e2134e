package jsonstream

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
)

// ReadTexts reads the JSON array of strings in r to its end, and passes each
// string to take while it arrives, however long it is. An escaped character
// beyond ASCII is passed on as the byte 0x80. It returns an *Error if the array
// is invalid, a *ReadError if r fails, and otherwise the error of take.
func ReadTexts(r io.Reader, take func(io.Reader) error) error {
	o := &object{r: bufio.NewReaderSize(r, readBuffer)}
	for before := byte('['); ; before = ',' {
		c, err := o.next()
		switch {
		case err != nil:
			return err
		case c == ']' && before == ',':
			return o.end(errTexts())
		case c != before:
			return errTexts()
		}
		if c, err = o.next(); err != nil {
			return err
		}
		if c == ']' && before == '[' {
			return o.end(errTexts())
		}
		if c != '"' {
			return errTexts()
		}
		text := &textReader{r: o.r}
		if err := take(text); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, text); err != nil {
			return err
		}
	}
}

func errTexts() *Error { return invalid("expected a JSON array of strings") }

// textReader reads a string from its opening quote, already read, to the end.
type textReader struct {
	r    *bufio.Reader
	done bool // the closing quote has been read
}

// Read implements io.Reader.
func (t *textReader) Read(p []byte) (int, error) {
	if t.done {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if _, err := t.r.Peek(1); err != nil {
		return 0, readError(err)
	}
	chunk, _ := t.r.Peek(min(t.r.Buffered(), len(p)))
	switch plain := bytes.IndexAny(chunk, `"\\`); {
	case plain < 0:
		return t.r.Read(p[:len(chunk)])
	case plain > 0:
		return t.r.Read(p[:plain])
	case chunk[0] == '"':
		t.done = true
		_, _ = t.r.Discard(1)
		return 0, io.EOF
	}
	c, err := readEscape(t.r)
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// readEscape reads one JSON escape of an ASCII character; for other characters
// it returns 0x80, which is in no Base64 alphabet.
func readEscape(r *bufio.Reader) (byte, error) {
	escape, err := r.Peek(2)
	if err == nil && escape[1] == 'u' {
		escape, err = r.Peek(6)
	}
	if err != nil {
		return 0, readError(err)
	}
	_, _ = r.Discard(len(escape)) // they are buffered
	switch c := escape[1]; c {
	case '"', '\\', '/':
		return c, nil
	case 'b', 'f':
		return 0x80, nil
	case 'n', 'r', 't':
		return '\n', nil
	case 'u':
		v, err := strconv.ParseUint(string(escape[2:]), 16, 16)
		if err != nil {
			return 0, invalid("the body is not valid JSON: a \\u escape needs four hexadecimal digits")
		}
		return byte(min(v, 0x80)), nil
	}
	return 0, invalid("the body is not valid JSON: unknown escape in a string")
}

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

// Base64 returns the decoded bytes of a text, which may be a data URL (RFC
// 2397). name is the field of the text, for errors.
func Base64(text io.Reader, name string) (io.Reader, error) {
	b := bufio.NewReaderSize(text, maxDataHead)
	head, err := b.Peek(len(DataURL))
	if strings.EqualFold(string(head), DataURL) {
		head, err = b.ReadSlice(',')
		if err == nil && !strings.HasSuffix(strings.ToLower(string(head)), ";base64,") || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
			return nil, invalid("%s: expected a data URL with ;base64 before its comma", name)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	a := &alphabetReader{text: b}
	return &base64Reader{a, base64.NewDecoder(base64.RawStdEncoding, a), name}, nil
}

// DataURL is the beginning of a data URL.
const DataURL = "data:"

// maxDataHead limits the head of a data URL (media type, parameters), in bytes.
const maxDataHead = 1 << 10

// Read implements io.Reader. It fills p, because the decoder returns few bytes at
// a time. For content that is not Base64 it returns an *Error.
func (b *base64Reader) Read(p []byte) (n int, err error) {
	if n, err = io.ReadFull(b.decoded, p); n > 0 {
		return n, nil // the decoder returns an error again
	}
	switch {
	case b.text.failed != nil: // the text may end within a group of four characters
		return 0, b.text.failed
	case errors.Is(err, errBase64), errors.As(err, new(base64.CorruptInputError)):
		e := invalid("%s: not valid Base64 (standard or URL-safe alphabet, or a data URL)", b.name)
		e.cause = errBase64
		return 0, e
	}
	return 0, err
}

// alphabetReader makes Base64 standard, without padding and white space.
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
