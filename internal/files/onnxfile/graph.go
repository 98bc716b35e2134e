package onnxfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// DefaultOpset and DefaultIR are the operator set and the format version of a new
// graph: in opset 13 Squeeze, Unsqueeze, Split and ReduceSum take their axes as an
// input, ReduceMean takes them as an attribute (as an input from 18 on).
const (
	DefaultOpset = 13
	DefaultIR    = 8
)

// Graph builds a small ONNX model: package silero rebuilds a published network
// with it, and tests make models with given inputs, outputs and metadata. It
// collects the parts in any order; [Graph.Bytes] writes them. Nodes must be
// added in the order of their use, as ONNX requires. It does not check the
// graph: ONNX Runtime refuses an inconsistent one with a message.
type Graph struct {
	Opset int64 // of the default domain; DefaultOpset in a new graph
	IR    int64 // format version

	nodes, inits, inputs, outputs, meta []*message
	count                               int
	contrib                             bool // has operators of Contrib
}

// NewGraph returns an empty graph.
func NewGraph() *Graph { return &Graph{Opset: DefaultOpset, IR: DefaultIR} }

// Input declares an input. Each dimension is an int or int64 (fixed), a string
// (free, with that name) or nil (free). Without dimensions it is a scalar.
func (g *Graph) Input(name string, typ Type, dims ...any) *Graph {
	g.inputs = append(g.inputs, valueProto(name, typ, shapeOf(name, dims)))
	return g
}

// Output declares an output that a node or a constant of the same name
// computes. The dimensions are as for Input.
func (g *Graph) Output(name string, typ Type, dims ...any) *Graph {
	g.outputs = append(g.outputs, valueProto(name, typ, shapeOf(name, dims)))
	return g
}

// OutputWithoutShape declares an output whose shape the file does not state.
func (g *Graph) OutputWithoutShape(name string, typ Type) *Graph {
	g.outputs = append(g.outputs, valueProto(name, typ, nil))
	return g
}

// Constant adds a named tensor (an initializer) that nodes can take as an input.
func (g *Graph) Constant(name string, t Tensor) *Graph {
	g.inits = append(g.inits, t.proto(name))
	return g
}

// Meta adds an entry to the model's metadata.
func (g *Graph) Meta(key, value string) *Graph {
	g.meta = append(g.meta, new(message).text(1, key).text(2, value))
	return g
}

// Contrib is the domain of ONNX Runtime's own operators.
const Contrib = "com.microsoft"

// Node adds an operator; an operator of ONNX Runtime has the prefix Contrib and
// a point. Inputs and outputs are names; an empty name omits an optional input
// or output.
func (g *Graph) Node(op string, inputs, outputs []string, attrs ...Attr) *Graph {
	var m message
	for _, in := range inputs {
		m.text(1, in)
	}
	for _, out := range outputs {
		m.text(2, out)
	}
	g.count++
	name := fmt.Sprintf("%s_%d", op, g.count)
	if n := len(attrs); n > 0 && attrs[n-1].typ == 0 {
		name, attrs = attrs[n-1].name, attrs[:n-1]
	}
	m.text(3, name).text(4, strings.TrimPrefix(op, Contrib+"."))
	for _, a := range attrs {
		attr := new(message).text(1, a.name)
		a.write(attr)
		m.message(5, attr.number(20, a.typ))
	}
	if strings.HasPrefix(op, Contrib+".") {
		m.text(7, Contrib)
		g.contrib = true
	}
	g.nodes = append(g.nodes, &m)
	return g
}

// Op adds an operator with one output and returns the output's generated name,
// so that expressions can be nested.
func (g *Graph) Op(op string, inputs []string, attrs ...Attr) string {
	out := fmt.Sprintf("t%d_%s", g.count+1, op)
	g.Node(op, inputs, []string{out}, attrs...)
	return out
}

// Const adds an unnamed constant and returns its generated name.
func (g *Graph) Const(t Tensor) string {
	name := fmt.Sprintf("c%d", len(g.inits)+1)
	g.Constant(name, t)
	return name
}

// Ints adds an unnamed list of integers and returns its generated name.
func (g *Graph) Ints(v ...int64) string { return g.Const(Ints([]int64{int64(len(v))}, v...)) }

// Bytes writes the model.
func (g *Graph) Bytes() []byte { return g.BytesIn(func(size int) []byte { return make([]byte, size) }) }

// BytesIn writes the model to a block returned by alloc.
func (g *Graph) BytesIn(alloc func(size int) []byte) []byte {
	var m message
	m.number(1, g.IR).text(2, "onnxfile").message(7, g.proto()).message(8, new(message).number(2, g.Opset))
	if g.contrib {
		m.message(8, new(message).text(1, Contrib).number(2, 1))
	}
	return m.messages(14, g.meta).join(alloc)
}

// proto writes the graph without the model around it.
func (g *Graph) proto() *message {
	var m message
	return m.messages(1, g.nodes).text(2, "made_up").messages(5, g.inits).messages(11, g.inputs).messages(12, g.outputs)
}

// Tensor is constant data.
type Tensor struct {
	typ      Type
	shape    []int64
	raw      []byte
	location string // external data, with raw unused
	length   int64
}

// Floats returns a float32 tensor; an empty shape is a scalar.
func Floats(shape []int64, v ...float32) Tensor { return RawTensor(Float32, shape, littleEndian(v)) }

// Ints returns an int64 tensor; an empty shape is a scalar.
func Ints(shape []int64, v ...int64) Tensor { return RawTensor(Int64, shape, littleEndian(v)) }

func littleEndian(numbers any) []byte {
	raw, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic(err) // impossible: only types without a fixed size fail
	}
	return raw
}

// RawTensor returns a tensor of any type from its little-endian bytes.
func RawTensor(typ Type, shape []int64, raw []byte) Tensor {
	return Tensor{typ: typ, shape: shape, raw: raw}
}

// ExternalTensor returns a tensor whose bytes are in a file next to the model.
func ExternalTensor(typ Type, shape []int64, location string, length int64) Tensor {
	return Tensor{typ: typ, shape: shape, location: location, length: length}
}

func (t Tensor) proto(name string) *message {
	var m message
	for _, d := range t.shape {
		m.number(1, d)
	}
	m.number(2, int64(t.typ))
	if name != "" {
		m.text(8, name)
	}
	if t.location != "" {
		m.message(13, new(message).text(1, "location").text(2, t.location))
		m.message(13, new(message).text(1, "length").text(2, fmt.Sprint(t.length)))
		return m.number(14, 1)
	}
	return m.bytes(9, t.raw)
}

// Attr is an attribute of a node.
type Attr struct {
	name  string
	typ   int64 // AttributeProto.AttributeType
	write func(m *message)
}

// Named sets a node's name; it must be the last attribute.
func Named(name string) Attr { return Attr{name: name} }

// AttrInt returns an integer attribute, such as axis.
func AttrInt(name string, v int64) Attr {
	return Attr{name, attrInt, func(m *message) { m.number(3, v) }}
}

// AttrInts returns an attribute with a list of integers, such as axes or perm.
func AttrInts(name string, v ...int64) Attr {
	return Attr{name, attrInts, func(m *message) {
		for _, x := range v {
			m.number(8, x)
		}
	}}
}

// AttrFloat returns a float attribute, such as epsilon.
func AttrFloat(name string, v float32) Attr {
	return Attr{name, attrFloat, func(m *message) { m.fixed32(2, math.Float32bits(v)) }}
}

// AttrTensor returns a tensor attribute, such as the value of ConstantOfShape.
func AttrTensor(name string, t Tensor) Attr {
	return Attr{name, attrTensor, func(m *message) { m.message(5, t.proto("")) }}
}

// AttrGraph returns a graph attribute: a branch of If, the body of Loop.
func AttrGraph(name string, g *Graph) Attr {
	return Attr{name, attrGraph, func(m *message) { m.message(6, g.proto()) }}
}

// valueProto returns an input or output of a graph; a nil shape is not stated.
func valueProto(name string, typ Type, shape *message) *message {
	tensor := new(message).number(1, int64(typ))
	if shape != nil {
		tensor.message(2, shape)
	}
	return new(message).text(1, name).message(2, new(message).message(1, tensor))
}

func shapeOf(name string, dims []any) *message {
	var shape message
	for _, d := range dims {
		var dim message
		switch d := d.(type) {
		case int:
			dim.number(1, int64(d))
		case int64:
			dim.number(1, d)
		case string:
			dim.text(2, d)
		case nil:
		default:
			panic(fmt.Sprintf("onnxfile: %s: a dimension of type %T (want int, int64, string or nil)", name, d))
		}
		shape.message(1, &dim)
	}
	return &shape
}
