package jsonstream

import (
	"bufio"
	"errors"
	"io"
)

// base64Reader decodes the Base64 content of a JSON string while it arrives. It
// reads from after the opening quote up to and including the closing one. It
// accepts the standard and the URL-safe alphabet, with or without padding. It
// also accepts white space between the characters, even raw line breaks, which
// strict JSON would not allow, because pasting the wrapped output of base64(1)
// into a body is the most common mistake.
type base64Reader struct {
	r       *bufio.Reader
	name    string // the field
	group   uint32 // up to three characters of an unfinished group of four
	chars   int    // number of characters in group
	padding int    // number of '=' seen
	done    bool   // the closing quote has been read
	err     error
}

// Classes in the decoding table beyond the 64 values.
const (
	b64Space = 0x40 + iota
	b64Pad
	b64Quote
	b64Escape
	b64Bad
)

var b64Table = func() (t [256]byte) {
	for i := range t {
		t[i] = b64Bad
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	t[' '], t['\t'], t['\r'], t['\n'] = b64Space, b64Space, b64Space, b64Space
	t['='], t['"'], t['\\'] = b64Pad, b64Quote, b64Escape
	return t
}()

// errBase64 is the cause of an Error for a string that is not Base64.
var errBase64 = errors.New("not valid Base64")

// Read implements io.Reader. After the closing quote it returns io.EOF; for
// content that is not Base64 it returns an *Error.
func (b *base64Reader) Read(p []byte) (int, error) {
	n := 0
	for n+3 <= len(p) && b.err == nil && !b.done {
		if _, err := b.r.Peek(1); err != nil {
			b.err = &ReadError{err}
			break
		}
		chunk, _ := b.r.Peek(b.r.Buffered())
		used := 0
		for used < len(chunk) && n+3 <= len(p) {
			// Whole groups of four are by far the most common case.
			if b.chars == 0 && b.padding == 0 && used+4 <= len(chunk) {
				v0, v1, v2, v3 := b64Table[chunk[used]], b64Table[chunk[used+1]], b64Table[chunk[used+2]], b64Table[chunk[used+3]]
				if v0|v1|v2|v3 < 0x40 {
					v := uint32(v0)<<18 | uint32(v1)<<12 | uint32(v2)<<6 | uint32(v3)
					p[n], p[n+1], p[n+2] = byte(v>>16), byte(v>>8), byte(v)
					n, used = n+3, used+4
					continue
				}
			}
			class := b64Table[chunk[used]]
			if class == b64Escape {
				break // the reader itself handles these
			}
			used++
			if class == b64Quote {
				n += b.finish(p[n:])
				break
			}
			n += b.take(class, p[n:])
			if b.err != nil {
				break
			}
		}
		_, _ = b.r.Discard(used)
		if b.err == nil && !b.done && n+3 <= len(p) && used < len(chunk) {
			c, err := readEscape(b.r)
			if err != nil {
				b.err = err
				break
			}
			class := b64Table[c]
			if class == b64Quote || class == b64Escape {
				class = b64Bad
			}
			n += b.take(class, p[n:])
		}
	}
	if n > 0 {
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	if b.done {
		return 0, io.EOF
	}
	return 0, io.ErrShortBuffer // p has no room for one group
}

// take processes one character and writes the three bytes of a completed group.
func (b *base64Reader) take(class byte, p []byte) int {
	switch {
	case class == b64Space:
	case class == b64Pad:
		if b.padding++; b.padding > 2 {
			b.err = b.bad()
		}
	case class >= 0x40 || b.padding > 0:
		b.err = b.bad()
	default:
		b.group = b.group<<6 | uint32(class)
		if b.chars++; b.chars == 4 {
			p[0], p[1], p[2] = byte(b.group>>16), byte(b.group>>8), byte(b.group)
			b.group, b.chars = 0, 0
			return 3
		}
	}
	return 0
}

// finish is called at the closing quote and writes the bytes of the last group.
func (b *base64Reader) finish(p []byte) int {
	b.done = true
	if (b.padding > 0 && b.chars+b.padding != 4) || b.chars == 1 {
		b.err = b.bad()
		return 0
	}
	switch b.chars {
	case 2:
		p[0] = byte(b.group >> 4)
		return 1
	case 3:
		p[0], p[1] = byte(b.group>>10), byte(b.group>>2)
		return 2
	}
	return 0
}

func (b *base64Reader) bad() error {
	e := invalid("%s: not valid Base64 (standard or URL-safe alphabet, without a data: prefix)", b.name)
	e.cause = errBase64
	return e
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
