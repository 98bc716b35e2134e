package onnxfile

import "bytes"

// Parts are the nodes and the stored tensors of a model by name, also those of
// branches of If. Of several with one name, the first counts.
type Parts struct {
	Nodes   map[string]Node
	Tensors map[string]Tensor
}

// Node is an operator with the names of its inputs.
type Node struct{ Inputs []string }

// ReadParts reads the parts of a model that [Read] accepted. The tensors share
// its bytes. A tensor whose data is external or in several pieces is left out.
// Errors wrap ErrInvalid.
func ReadParts(model []byte) (*Parts, error) {
	p := &Parts{map[string]Node{}, map[string]Tensor{}}
	c := collector{
		keep: func(t tensor, data field) error {
			if _, ok := p.Tensors[t.name]; !ok {
				p.Tensors[t.name] = RawTensor(t.typ, t.shape, model[data.body.at:data.body.end])
			}
			return nil
		},
		node: func(name string, n Node) {
			if _, ok := p.Nodes[name]; !ok {
				p.Nodes[name] = n
			}
		},
	}
	return p, c.model(bytes.NewReader(model), int64(len(model)))
}

// Type returns the type of the tensor's elements.
func (t Tensor) Type() Type { return t.typ }

// Shape returns the tensor's dimensions; none is a scalar.
func (t Tensor) Shape() []int64 { return t.shape }

// Raw returns the tensor's elements in little-endian order.
func (t Tensor) Raw() []byte { return t.raw }

// Floats returns the elements of a float32 or float16 tensor; nil for another
// type.
func (t Tensor) Floats() []float32 {
	if t.typ != Float32 && t.typ != Float16 {
		return nil
	}
	return floats(t.typ, t.raw)
}
