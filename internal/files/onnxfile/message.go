package onnxfile

import (
	"encoding/binary"
	"io"
	"slices"
)

// message is a protobuf message in pieces, so that weights are copied once. Its
// methods append a field and return the message.
type message struct {
	parts [][]byte
	size  int
}

func (m *message) append(fields []byte) *message {
	m.parts = append(m.parts, fields)
	m.size += len(fields)
	return m
}

func tag(num, kind uint64) []byte { return binary.AppendUvarint(nil, num<<3|kind) }

func (m *message) number(num uint64, v int64) *message {
	return m.append(binary.AppendUvarint(tag(num, wireVarint), uint64(v)))
}

// fixed32 appends four bytes, such as a float's.
func (m *message) fixed32(num uint64, bits uint32) *message {
	return m.append(binary.LittleEndian.AppendUint32(tag(num, wire32), bits))
}

// bytes appends a string or bytes without a copy.
func (m *message) bytes(num uint64, v []byte) *message {
	return m.append(binary.AppendUvarint(tag(num, wireBytes), uint64(len(v)))).append(v)
}

func (m *message) text(num uint64, s string) *message { return m.bytes(num, []byte(s)) }

func (m *message) message(num uint64, v *message) *message {
	return m.append(binary.AppendUvarint(tag(num, wireBytes), uint64(v.size))).merge(v)
}

func (m *message) messages(num uint64, list []*message) *message {
	for _, v := range list {
		m.message(num, v)
	}
	return m
}

// merge appends the fields of another message.
func (m *message) merge(other *message) *message {
	m.parts = append(m.parts, other.parts...)
	m.size += other.size
	return m
}

// reader returns a reader of the message that copies none of its parts.
func (m *message) reader() io.ReaderAt {
	p := pieces{parts: m.parts}
	var end int64
	for _, part := range m.parts {
		end += int64(len(part))
		p.ends = append(p.ends, end)
	}
	return p
}

type pieces struct {
	parts [][]byte
	ends  []int64
}

func (p pieces) ReadAt(b []byte, at int64) (n int, err error) {
	i, _ := slices.BinarySearch(p.ends, at+1)
	for ; i < len(p.parts) && n < len(b); i++ {
		part := p.parts[i]
		n += copy(b[n:], part[at+int64(n+len(part))-p.ends[i]:])
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// join writes the message to a block returned by alloc.
func (m *message) join(alloc func(size int) []byte) []byte {
	out := alloc(m.size)[:0]
	for _, p := range m.parts {
		out = append(out, p...)
	}
	return out
}
