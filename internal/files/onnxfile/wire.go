package onnxfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// wire walks protobuf's wire format inside [at, end) of a file. A message is
// entered by creating a cursor for its range. Thus weights are skipped unread,
// and no length in the file is allocated unchecked.
type wire struct {
	src     *window
	at, end int64
}

// window is a small buffer over the file, shared by all cursors of one walk.
type window struct {
	r     io.ReaderAt
	start int64
	n     int
	seen  int // fields
	buf   []byte
}

func newWindow(r io.ReaderAt) *window { return &window{r: r, buf: make([]byte, 8192)} }

var errCutOff = errors.New("the file ends in the middle of a field")

// readError marks an error of reading, as opposed to a fault of the content.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// short returns the error of a read that returned too few bytes.
func short(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errCutOff
	}
	return readError{err}
}

func (w *window) byteAt(off int64) (byte, error) {
	if off < w.start || off >= w.start+int64(w.n) {
		n, err := w.r.ReadAt(w.buf, off)
		if n == 0 {
			return 0, short(err)
		}
		w.start, w.n = off, n
	}
	return w.buf[off-w.start], nil
}

// The wire types of protobuf that occur in ONNX.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func (c *wire) more() bool { return c.at < c.end }

// ReadByte implements io.ByteReader for varint.
func (c *wire) ReadByte() (byte, error) {
	if c.at >= c.end {
		return 0, errCutOff
	}
	b, err := c.src.byteAt(c.at)
	c.at++
	return b, err
}

func (c *wire) varint() (uint64, error) { return binary.ReadUvarint(c) }

// field is a message's field: its number, and its varint or its bytes' range.
type field struct {
	num   uint64
	kind  int
	value uint64
	body  wire
}

func (c *wire) next() (field, error) {
	if c.src.seen++; c.src.seen > maxFields {
		return field{}, fmt.Errorf("more than %d fields", maxFields)
	}
	tag, err := c.varint()
	if err != nil {
		return field{}, err
	}
	f := field{num: tag >> 3, kind: int(tag & 7)}
	if f.num == 0 || f.num > 1<<29-1 {
		return field{}, fmt.Errorf("field number %d is impossible", f.num)
	}
	var n uint64
	switch f.kind {
	case wireVarint:
		f.value, err = c.varint()
		return f, err
	case wire64:
		n = 8
	case wire32:
		n = 4
	case wireBytes:
		if n, err = c.varint(); err != nil {
			return field{}, err
		}
	default:
		return field{}, fmt.Errorf("wire type %d does not occur in it", f.kind)
	}
	if n > uint64(c.end-c.at) {
		return field{}, errCutOff
	}
	f.body = wire{src: c.src, at: c.at, end: c.at + int64(n)}
	c.at += int64(n)
	return f, nil
}

func (f field) size() int64 { return f.body.end - f.body.at }

// text reads a string of at most limit bytes.
func (f field) text(limit int64) (string, error) {
	if f.kind != wireBytes {
		return "", fmt.Errorf("field %d is no string", f.num)
	}
	if f.size() > limit {
		return "", fmt.Errorf("a string of %d bytes, at most %d are accepted", f.size(), limit)
	}
	b := make([]byte, f.size())
	if len(b) == 0 {
		return "", nil
	}
	n, err := f.body.src.r.ReadAt(b, f.body.at)
	if n < len(b) {
		return "", short(err)
	}
	return string(b), nil
}

// each calls fn for every field of a message, until the first error.
func (c wire) each(fn func(field) error) error {
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// each calls fn for every field of an embedded message, until the first error.
func (f field) each(fn func(field) error) error {
	if f.kind != wireBytes {
		return fmt.Errorf("field %d is no message", f.num)
	}
	return f.body.each(fn)
}
