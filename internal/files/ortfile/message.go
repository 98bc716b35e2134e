package ortfile

import "encoding/binary"

// Message is a protobuf message in pieces, so that weights are copied once.
type Message struct {
	parts [][]byte
	size  int
}

// Append appends encoded fields.
func (m *Message) Append(fields []byte) {
	m.parts = append(m.parts, fields)
	m.size += len(fields)
}

func tag(num, kind uint64) []byte { return binary.AppendUvarint(nil, num<<3|kind) }

// Number appends an integer.
func (m *Message) Number(num uint64, v int64) {
	m.Append(binary.AppendUvarint(tag(num, 0), uint64(v)))
}

// Fixed32 appends four bytes, such as a float's.
func (m *Message) Fixed32(num uint64, bits uint32) {
	m.Append(binary.LittleEndian.AppendUint32(tag(num, 5), bits))
}

// Bytes appends a string or bytes, which it keeps.
func (m *Message) Bytes(num uint64, v []byte) {
	m.Append(binary.AppendUvarint(tag(num, 2), uint64(len(v))))
	m.Append(v)
}

// Message appends an embedded message.
func (m *Message) Message(num uint64, v *Message) {
	m.Append(binary.AppendUvarint(tag(num, 2), uint64(v.size)))
	m.Merge(v)
}

// Join writes the message to a block returned by alloc.
func (m *Message) Join(alloc func(size int) []byte) []byte {
	out := alloc(m.size)[:0]
	for _, p := range m.parts {
		out = append(out, p...)
	}
	return out
}

// Merge appends the fields of another message.
func (m *Message) Merge(other *Message) {
	m.parts = append(m.parts, other.parts...)
	m.size += other.size
}
