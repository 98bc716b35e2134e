// Package weightfile opens files of weights and reads the structure of
// safetensors files and of CTranslate2's model.bin without the data in them.
package weightfile

import (
	"fmt"
	"io"
)

// Reader reads on and keeps the first error: later reads return zeros.
type Reader struct {
	// At is the position, Size the size of the file in bytes.
	At, Size int64
	// Err is the first error. Unread reports that Err is an error of reading,
	// so that the file may be valid.
	Err    error
	Unread bool

	file      io.ReaderAt
	readAhead int64
	ahead     []byte // the file's bytes from begin on
	begin     int64
}

// NewReader returns a Reader at the beginning of a file of size bytes, which it reads
// in pieces of at least readAhead bytes.
func NewReader(file io.ReaderAt, size, readAhead int64) *Reader {
	return &Reader{Size: size, file: file, readAhead: readAhead}
}

// Skip moves the position over n bytes; a shorter file is an error.
func (r *Reader) Skip(n int64) {
	if r.Err != nil {
		return
	}
	if n < 0 || n > r.Size-r.At {
		r.Err = fmt.Errorf("it ends at byte %d, expected %d more bytes at %d", r.Size, n, r.At)
		return
	}
	r.At += n
}

// Bytes returns the next n bytes until the next call; nil after an error.
func (r *Reader) Bytes(n int64) []byte {
	at := r.At
	if r.Skip(n); r.Err != nil {
		return nil
	}
	if at < r.begin || r.At > r.begin+int64(len(r.ahead)) {
		want := min(max(n, r.readAhead), r.Size-at)
		if int64(cap(r.ahead)) < want {
			r.ahead = make([]byte, want)
		}
		r.ahead, r.begin = r.ahead[:want], at
		if got, err := r.file.ReadAt(r.ahead, at); err != nil && int64(got) < want {
			r.Err, r.ahead, r.Unread = err, nil, true
			return nil
		}
	}
	return r.ahead[at-r.begin:][:n]
}

// number returns the next n bytes as a number, 0 after an error.
func (r *Reader) number(n int64) (v uint32) {
	for i, b := range r.Bytes(n) {
		v |= uint32(b) << (8 * i)
	}
	return v
}

// Uint8 returns the next byte.
func (r *Reader) Uint8() uint8 { return uint8(r.number(1)) }

// Uint16 returns the next two bytes.
func (r *Reader) Uint16() uint16 { return uint16(r.number(2)) }

// Uint32 returns the next four bytes.
func (r *Reader) Uint32() uint32 { return r.number(4) }
