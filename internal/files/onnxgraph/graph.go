// Package onnxgraph builds small ONNX models in Go. Package silero uses it to
// rebuild a published network, and tests use it for models with given inputs,
// outputs and metadata.
//
//	g := onnxgraph.New()
//	g.Input("x", onnxgraph.Float32, "N", 3)
//	g.Constant("w", onnxgraph.Floats([]int64{3, 2}, 1, 0, 0, 1, 0, 0))
//	g.Node("MatMul", []string{"x", "w"}, []string{"y"})
//	g.Output("y", onnxgraph.Float32, "N", 2)
//	g.Meta("model_type", "made_up")
//	data := g.Bytes()
//
// A model is written as protobuf with the field numbers of onnx.proto3. The
// package checks nothing: ONNX Runtime refuses inconsistent graphs with a
// message.
package onnxgraph

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Type is an element type, numbered as in ONNX.
type Type int32

// Element types.
const (
	Float32 Type = 1
	Uint8   Type = 2
	Int8    Type = 3
	Int32   Type = 6
	Int64   Type = 7
	Bool    Type = 9
	Float16 Type = 10
	Float64 Type = 11
)

// DefaultOpset and DefaultIR are the operator set and the format version of a new
// graph: in opset 13 Squeeze, Unsqueeze, Split and ReduceSum take their axes as an
// input, ReduceMean takes them as an attribute (as an input from 18 on).
const (
	DefaultOpset = 13
	DefaultIR    = 8
)

// Graph collects the parts of a model in any order; [Graph.Bytes] writes it.
// Nodes must be added in the order of their use, as ONNX requires.
type Graph struct {
	Opset int64 // of the default domain; DefaultOpset in a new graph
	IR    int64 // format version

	nodes   [][]byte
	inits   [][]byte
	inputs  [][]byte
	outputs [][]byte
	meta    [][2]string
	count   int
}

// New returns an empty graph.
func New() *Graph { return &Graph{Opset: DefaultOpset, IR: DefaultIR} }

// Input declares an input. Each dimension is an int or int64 (fixed), a string
// (free, with that name) or nil (free). Without dimensions it is a scalar.
func (g *Graph) Input(name string, typ Type, dims ...any) *Graph {
	g.inputs = append(g.inputs, valueInfo(name, typ, dims))
	return g
}

// Output declares an output that a node or a constant of the same name
// computes. The dimensions are as for Input.
func (g *Graph) Output(name string, typ Type, dims ...any) *Graph {
	g.outputs = append(g.outputs, valueInfo(name, typ, dims))
	return g
}

// OutputWithoutShape declares an output whose shape the file does not state.
func (g *Graph) OutputWithoutShape(name string, typ Type) *Graph {
	tensor := varintField(nil, 1, uint64(typ))
	b := stringField(nil, 1, name)
	g.outputs = append(g.outputs, bytesField(b, 2, bytesField(nil, 1, tensor)))
	return g
}

// Constant adds a named tensor (an initializer) that nodes can take as an input.
func (g *Graph) Constant(name string, t Tensor) *Graph {
	g.inits = append(g.inits, t.proto(name))
	return g
}

// Meta adds an entry to the model's metadata.
func (g *Graph) Meta(key, value string) *Graph {
	g.meta = append(g.meta, [2]string{key, value})
	return g
}

// Node adds an operator. Inputs and outputs are names; an empty name omits an
// optional one.
func (g *Graph) Node(op string, inputs, outputs []string, attrs ...Attr) *Graph {
	var b []byte
	for _, in := range inputs {
		b = stringField(b, 1, in)
	}
	for _, out := range outputs {
		b = stringField(b, 2, out)
	}
	g.count++
	name := fmt.Sprintf("%s_%d", op, g.count)
	if n := len(attrs); n > 0 && attrs[n-1].typ == 0 {
		name, attrs = attrs[n-1].name, attrs[:n-1]
	}
	b = stringField(b, 3, name)
	b = stringField(b, 4, op)
	for _, a := range attrs {
		b = bytesField(b, 5, a.proto())
	}
	g.nodes = append(g.nodes, b)
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

// Bytes writes the model.
func (g *Graph) Bytes() []byte {
	b := varintField(nil, 1, uint64(g.IR))
	b = stringField(b, 2, "onnxgraph")
	b = bytesField(b, 7, g.proto())
	b = bytesField(b, 8, varintField(nil, 2, uint64(g.Opset)))
	for _, m := range g.meta {
		b = bytesField(b, 14, stringField(stringField(nil, 1, m[0]), 2, m[1]))
	}
	return b
}

// proto writes the graph without the model around it.
func (g *Graph) proto() []byte {
	var graph []byte
	for _, n := range g.nodes {
		graph = bytesField(graph, 1, n)
	}
	graph = stringField(graph, 2, "made_up")
	for _, t := range g.inits {
		graph = bytesField(graph, 5, t)
	}
	for _, p := range g.inputs {
		graph = bytesField(graph, 11, p)
	}
	for _, p := range g.outputs {
		graph = bytesField(graph, 12, p)
	}
	return graph
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
func Floats(shape []int64, v ...float32) Tensor {
	return Raw(Float32, shape, littleEndian(v))
}

// Zeros returns a float32 tensor of zeros.
func Zeros(shape ...int64) Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return Raw(Float32, shape, make([]byte, 4*n))
}

// Ints returns an int64 tensor; an empty shape is a scalar.
func Ints(shape []int64, v ...int64) Tensor {
	return Raw(Int64, shape, littleEndian(v))
}

// Int32s returns an int32 tensor; an empty shape is a scalar.
func Int32s(shape []int64, v ...int32) Tensor {
	return Raw(Int32, shape, littleEndian(v))
}

func littleEndian(numbers any) []byte {
	raw, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic(err) // impossible: it fails for types without a fixed size
	}
	return raw
}

// Raw returns a tensor of any type from its little-endian bytes.
func Raw(typ Type, shape []int64, raw []byte) Tensor { return Tensor{typ: typ, shape: shape, raw: raw} }

// External returns a tensor whose bytes are in a file next to the model.
func External(typ Type, shape []int64, location string, length int64) Tensor {
	return Tensor{typ: typ, shape: shape, location: location, length: length}
}

func (t Tensor) proto(name string) []byte {
	var b []byte
	for _, d := range t.shape {
		b = varintField(b, 1, uint64(d))
	}
	b = varintField(b, 2, uint64(t.typ))
	if name != "" {
		b = stringField(b, 8, name)
	}
	if t.location != "" {
		b = bytesField(b, 13, stringField(stringField(nil, 1, "location"), 2, t.location))
		b = bytesField(b, 13, stringField(stringField(nil, 1, "length"), 2, fmt.Sprint(t.length)))
		return varintField(b, 14, 1)
	}
	return bytesField(b, 9, t.raw)
}

// Attr is an attribute of a node.
type Attr struct {
	name  string
	typ   uint64 // AttributeProto.AttributeType
	write func(b []byte) []byte
}

func (a Attr) proto() []byte {
	b := stringField(nil, 1, a.name)
	b = a.write(b)
	return varintField(b, 20, a.typ)
}

// Named gives a node a name of its own; it is a node's last attribute.
func Named(name string) Attr { return Attr{name: name} }

// AttrInt returns an integer attribute, such as axis.
func AttrInt(name string, v int64) Attr {
	return Attr{name, 2, func(b []byte) []byte { return varintField(b, 3, uint64(v)) }}
}

// AttrInts returns an attribute with a list of integers, such as axes or perm.
func AttrInts(name string, v ...int64) Attr {
	return Attr{name, 7, func(b []byte) []byte {
		for _, x := range v {
			b = varintField(b, 8, uint64(x))
		}
		return b
	}}
}

// AttrFloat returns a float attribute, such as epsilon.
func AttrFloat(name string, v float32) Attr {
	return Attr{name, 1, func(b []byte) []byte { return fixed32Field(b, 2, math.Float32bits(v)) }}
}

// AttrTensor returns a tensor attribute, such as the value of ConstantOfShape.
func AttrTensor(name string, t Tensor) Attr {
	return Attr{name, 4, func(b []byte) []byte { return bytesField(b, 5, t.proto("")) }}
}

// AttrGraph returns a graph attribute, such as a branch of If or the body of
// Loop.
func AttrGraph(name string, g *Graph) Attr {
	return Attr{name, 5, func(b []byte) []byte { return bytesField(b, 6, g.proto()) }}
}

func valueInfo(name string, typ Type, dims []any) []byte {
	shape := []byte{}
	for _, d := range dims {
		var dim []byte
		switch d := d.(type) {
		case int:
			dim = varintField(nil, 1, uint64(int64(d)))
		case int64:
			dim = varintField(nil, 1, uint64(d))
		case string:
			dim = stringField(nil, 2, d)
		case nil:
		default:
			panic(fmt.Sprintf("onnxgraph: %s: a dimension of type %T (want int, int64, string or nil)", name, d))
		}
		shape = bytesField(shape, 1, dim)
	}
	tensor := varintField(nil, 1, uint64(typ))
	tensor = bytesField(tensor, 2, shape)
	b := stringField(nil, 1, name)
	return bytesField(b, 2, bytesField(nil, 1, tensor))
}

func varintField(b []byte, num, v uint64) []byte {
	b = binary.AppendUvarint(b, num<<3)
	return binary.AppendUvarint(b, v)
}

func fixed32Field(b []byte, num uint64, v uint32) []byte {
	b = binary.AppendUvarint(b, num<<3|5)
	return binary.LittleEndian.AppendUint32(b, v)
}

func bytesField(b []byte, num uint64, v []byte) []byte {
	b = binary.AppendUvarint(b, num<<3|2)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

func stringField(b []byte, num uint64, v string) []byte { return bytesField(b, num, []byte(v)) }
