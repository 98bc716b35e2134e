package onnxfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// MaxORTSize is the largest file that is translated, in bytes.
const MaxORTSize = 1 << 30

const (
	mostElements = 4 << 20 // of all vectors of tables and strings
	mostDepth    = 8       // of nested graphs
	mostAdded    = 1 << 20 // bytes by which the result may exceed twice the file's size
)

// IsORT reports whether bytes begin like a model in ONNX Runtime's format.
func IsORT(head []byte) bool { return len(head) >= 8 && string(head[4:8]) == "ORTM" }

// FromORT translates a model in ONNX Runtime's own format (.ort, a FlatBuffer)
// into an ONNX file in a block of alloc. ONNX Runtime then optimizes it as any
// other model: it computes constant parts once, while it opens the file, and
// not in every run, as it does with its own format. The translation also checks
// the bytes: every offset, count and depth is limited. Errors wrap ErrInvalid.
//
// The tables follow ort.fbs of the ONNX Runtime project, the fields of messages
// onnx.proto3 of the ONNX project.
func FromORT(data []byte, alloc func(size int) []byte) ([]byte, error) {
	out, err := translate(&buffer{data: data, size: len(data)})
	if err != nil {
		return nil, err
	}
	return out.join(alloc), nil
}

func translate(b *buffer) (*message, error) {
	if b.size < 8 || b.size > MaxORTSize || !IsORT(b.at(0, 8)) {
		return nil, fmt.Errorf("%w in ONNX Runtime's format: expected at most %d bytes with the mark ORTM", ErrInvalid, MaxORTSize)
	}
	// Elements take four bytes each, and are read at most twice unless the file
	// refers to them repeatedly.
	b.left = min(b.size, mostElements)
	session := table{b, b.uint32(0)}
	model := session.table(1)
	t := translator{buf: b}
	graph := t.graph(model.table(7), 0)
	out := new(message).number(1, model.int64(0)).bytes(2, model.bytes(2)).message(7, graph)
	for _, set := range model.tables(1) {
		out.message(8, new(message).bytes(1, set.bytes(0)).number(2, set.int64(1)))
	}
	for _, pair := range model.tables(9) {
		out.message(14, new(message).bytes(1, pair.bytes(0)).bytes(2, pair.bytes(1)))
	}
	switch {
	case b.failed != nil:
		return nil, b.failed
	case t.err != nil:
		return nil, fmt.Errorf("%w in ONNX Runtime's format: %w", ErrInvalid, t.err)
	case b.bad || graph.size == 0:
		return nil, fmt.Errorf("%w in ONNX Runtime's format: it is truncated, or refers to something outside of it", ErrInvalid)
	case out.size > 2*b.size+mostAdded:
		return nil, fmt.Errorf("%w in ONNX Runtime's format: its parts are stored once and used again and again", ErrInvalid)
	}
	return out, nil
}

// translator turns tables into messages and keeps the first error.
type translator struct {
	buf  *buffer
	size int // of all tensors
	err  error
}

func (t *translator) fail(format string, a ...any) { t.err = cmp.Or(t.err, fmt.Errorf(format, a...)) }

func (t *translator) graph(g table, depth int) *message {
	var out message
	if depth > mostDepth {
		t.fail("graphs are nested more than %d times", mostDepth)
		return &out
	}
	if len(g.vector(7, 4)) > 0 {
		t.fail("it has sparse weights, which are not supported")
	}
	for _, node := range t.ordered(g.tables(2)) {
		if t.err != nil || t.buf.bad {
			return &out
		}
		out.message(1, t.node(node, depth))
	}
	out.bytes(2, []byte("graph"))
	for _, weight := range g.tables(0) {
		out.message(5, t.tensor(weight))
	}
	values := map[string]table{}
	for _, v := range g.tables(1) {
		values[string(v.bytes(0))] = v
	}
	for num, slot := range map[uint64]int{11: 5, 12: 6} { // inputs, outputs
		for _, name := range g.strings(slot) {
			out.message(num, t.value(name, values[string(name)]))
		}
	}
	return &out
}

// ordered returns the nodes so that each follows those whose outputs it uses,
// as FromORT requires; the file has them in another order.
func (t *translator) ordered(nodes []table) []table {
	nodes = slices.DeleteFunc(nodes, func(n table) bool { return len(n.bytes(5)) == 0 }) // places of removed nodes
	maker := map[string]int{}
	for i, n := range nodes {
		for _, name := range n.strings(9) {
			maker[string(name)] = i
		}
	}
	out := make([]table, 0, len(nodes))
	reached := make([]bool, len(nodes))
	var visit func(i int)
	visit = func(i int) {
		if reached[i] {
			return
		}
		reached[i] = true
		for _, slot := range []int{8, 12} { // inputs, values that nested graphs use
			for _, name := range nodes[i].strings(slot) {
				if from, ok := maker[string(name)]; ok && len(name) > 0 {
					visit(from)
				}
			}
		}
		out = append(out, nodes[i])
	}
	for i := range nodes {
		visit(i)
	}
	return out
}

func (t *translator) node(n table, depth int) *message {
	var out message
	for _, name := range n.strings(8) {
		out.bytes(1, name)
	}
	for _, name := range n.strings(9) {
		out.bytes(2, name)
	}
	out.bytes(3, n.bytes(0))
	out.bytes(4, n.bytes(5))
	for _, a := range n.tables(10) {
		out.message(5, t.attribute(a, depth))
	}
	out.bytes(7, n.bytes(2))
	return &out
}

// The types of attributes, as in both formats.
const (
	attrFloat = iota + 1
	attrInt
	attrString
	attrTensor
	attrGraph
	attrFloats
	attrInts
	attrStrings
)

func (t *translator) attribute(a table, depth int) *message {
	var out message
	out.bytes(1, a.bytes(0))
	switch kind := a.int32(2); kind {
	case attrFloat:
		out.fixed32(2, uint32(a.int32(3)))
	case attrInt:
		out.number(3, a.int64(4))
	case attrString:
		out.bytes(4, a.bytes(5))
	case attrTensor:
		out.message(5, t.tensor(a.table(6)))
	case attrGraph:
		out.message(6, t.graph(a.table(7), depth+1))
	case attrFloats:
		out.bytes(7, a.vector(8, 4)) // packed
	case attrInts:
		t.integers(&out, 8, a.vector(9, 8))
	case attrStrings:
		for _, s := range a.strings(10) {
			out.bytes(9, s)
		}
	default:
		t.fail("attribute %.60q is of kind %d, which is not supported", a.bytes(0), kind)
	}
	out.number(20, int64(a.int32(2)))
	return &out
}

// integers writes a vector of 64-bit integers.
func (t *translator) integers(out *message, num uint64, vector []byte) {
	if t.buf.left -= len(vector) / 8; t.buf.left < 0 {
		t.fail("it has more than %d elements", mostElements)
		return
	}
	for number := range slices.Chunk(vector, 8) {
		out.number(num, int64(binary.LittleEndian.Uint64(number)))
	}
}

// tensor writes a tensor of numbers; no supported model has one of strings.
func (t *translator) tensor(w table) *message {
	var out message
	name, raw := w.bytes(0), w.bytes(4)
	if Type(w.int32(3)) == String || w.field(6) != 0 && w.int64(6) >= 0 {
		t.fail("tensor %.60q holds strings or lies in a second file, which is not supported", name)
	}
	t.integers(&out, 1, w.vector(2, 8))
	out.number(2, int64(w.int32(3)))
	out.bytes(8, name)
	if t.size += len(raw); t.size > 2*t.buf.size {
		t.fail("its tensors are stored once and used again and again")
		return &out
	}
	out.bytes(9, raw)
	return &out
}

// value writes an input or output with its type, if it is a tensor.
func (t *translator) value(name []byte, v table) *message {
	const isTensor = 1
	info := v.table(2)
	if info.uint8(1) != isTensor {
		return new(message).bytes(1, name)
	}
	var shape *message
	tensor := info.table(2)
	if tensor.field(1) != 0 {
		shape = new(message)
		for _, d := range tensor.table(1).tables(0) {
			shape.message(1, dimension(d.table(0)))
		}
	}
	return valueProto(string(name), Type(tensor.int32(0)), shape)
}

func dimension(d table) *message {
	switch d.uint8(0) {
	case 1:
		return new(message).number(1, d.int64(1))
	case 2:
		return new(message).bytes(2, d.bytes(2))
	}
	return new(message)
}
