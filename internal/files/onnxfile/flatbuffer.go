package onnxfile

import (
	"encoding/binary"
	"io"
	"slices"
)

// buffer reads a FlatBuffer (flatbuffers.dev/internals). Reads outside of the
// bytes return zeros and set bad.
type buffer struct {
	data []byte // nil to read from file
	size int
	left int // elements of vectors that may still be read
	bad  bool

	file   io.ReaderAt
	pages  map[int][]byte // of the file
	zeros  []byte
	failed error // of the file
}

// pageSize is the size of the pieces of a file that are read. Longer byte
// strings are weights, which a header does not need: they are not read, and
// appear as zeros.
const pageSize = 64 << 10

func (b *buffer) at(offset, size int) []byte {
	if offset < 0 || size < 0 || offset > b.size-size {
		b.bad = true
		return make([]byte, min(max(size, 0), 8))
	}
	switch {
	case b.file == nil:
		return b.data[offset : offset+size : offset+size]
	case size > pageSize:
		if size > len(b.zeros) {
			b.zeros = make([]byte, size)
		}
		return b.zeros[:size:size]
	}
	piece := b.page(offset / pageSize)[offset%pageSize:]
	if rest := size - len(piece); rest > 0 {
		piece = slices.Concat(piece, b.page(offset/pageSize + 1)[:rest])
	}
	return piece[:size:size]
}

// page returns a page of the file, filled up with zeros after the file's end.
func (b *buffer) page(i int) []byte {
	page, ok := b.pages[i]
	if !ok {
		page = make([]byte, pageSize)
		want := min(pageSize, max(b.size-i*pageSize, 0))
		if n, err := b.file.ReadAt(page[:want], int64(i)*pageSize); n < want && b.failed == nil {
			b.failed = short(err)
		}
		b.pages[i] = page
	}
	return page
}

func (b *buffer) uint32(offset int) int { return int(binary.LittleEndian.Uint32(b.at(offset, 4))) }

// table is a table of a buffer; the zero value has no fields.
type table struct {
	buf    *buffer
	offset int
}

// field returns the offset of a field, 0 if the table lacks it.
func (t table) field(slot int) int {
	if t.buf == nil || t.buf.bad {
		return 0
	}
	b := t.buf
	fields := t.offset - int(int32(b.uint32(t.offset)))
	if 4+2*slot+2 > int(binary.LittleEndian.Uint16(b.at(fields, 2))) {
		return 0
	}
	if from := int(binary.LittleEndian.Uint16(b.at(fields+4+2*slot, 2))); from != 0 {
		return t.offset + from
	}
	return 0
}

// target returns the offset that a field refers to, 0 if the table lacks it.
func (t table) target(slot int) int {
	at := t.field(slot)
	if at == 0 {
		return 0
	}
	return at + t.buf.uint32(at)
}

func (t table) table(slot int) table {
	if at := t.target(slot); at != 0 {
		return table{t.buf, at}
	}
	return table{}
}

// scalar returns the bytes of a field, zeros if it is missing.
func (t table) scalar(slot, size int) []byte {
	if at := t.field(slot); at != 0 {
		return t.buf.at(at, size)
	}
	return make([]byte, size)
}

func (t table) uint8(slot int) byte { return t.scalar(slot, 1)[0] }

func (t table) int32(slot int) int32 { return int32(binary.LittleEndian.Uint32(t.scalar(slot, 4))) }

func (t table) int64(slot int) int64 { return int64(binary.LittleEndian.Uint64(t.scalar(slot, 8))) }

// vector returns the bytes of a vector of elements of size bytes.
func (t table) vector(slot, size int) []byte {
	at := t.target(slot)
	if at == 0 {
		return nil
	}
	n := t.buf.uint32(at)
	if n > (t.buf.size-at)/size {
		t.buf.bad = true
		return nil
	}
	return t.buf.at(at+4, n*size)
}

func (t table) bytes(slot int) []byte { return t.vector(slot, 1) }

// each calls use with the target's offset of each of a vector's references.
func (t table) each(slot int, use func(target int)) {
	elements := t.vector(slot, 4)
	if elements == nil {
		return
	}
	first := t.target(slot) + 4
	if t.buf.left -= len(elements) / 4; t.buf.left < 0 {
		t.buf.bad = true
	}
	for i := 0; i < len(elements) && !t.buf.bad; i += 4 {
		use(first + i + t.buf.uint32(first+i))
	}
}

func (t table) tables(slot int) (list []table) {
	t.each(slot, func(target int) { list = append(list, table{t.buf, target}) })
	return list
}

func (t table) strings(slot int) (list [][]byte) {
	t.each(slot, func(target int) {
		if n := t.buf.uint32(target); !t.buf.bad {
			list = append(list, t.buf.at(target+4, n))
		}
	})
	return list
}
