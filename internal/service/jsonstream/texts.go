package jsonstream

import (
	"bufio"
	"bytes"
	"io"
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

// textReader reads a string from after its opening quote up to and including
// the closing one.
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
		return 0, &ReadError{err}
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

// readEscape reads one JSON escape of an ASCII character; for anything beyond
// ASCII it returns 0x80, which is in no Base64 alphabet.
func readEscape(r *bufio.Reader) (byte, error) {
	if _, err := r.Discard(1); err != nil {
		return 0, &ReadError{err}
	}
	c, err := r.ReadByte()
	if err != nil {
		return 0, &ReadError{err}
	}
	switch c {
	case '"', '\\', '/':
		return c, nil
	case 'b', 'f':
		return 0x80, nil
	case 'n', 'r', 't':
		return '\n', nil
	case 'u':
		var v uint32
		for range 4 {
			h, err := r.ReadByte()
			if err != nil {
				return 0, &ReadError{err}
			}
			switch {
			case h >= '0' && h <= '9':
				v = v<<4 | uint32(h-'0')
			case h >= 'a' && h <= 'f':
				v = v<<4 | uint32(h-'a'+10)
			case h >= 'A' && h <= 'F':
				v = v<<4 | uint32(h-'A'+10)
			default:
				return 0, invalid("the body is not valid JSON: a \\u escape needs four hexadecimal digits")
			}
		}
		if v < 0x80 {
			return byte(v), nil
		}
		return 0x80, nil
	}
	return 0, invalid("the body is not valid JSON: unknown escape in a string")
}
