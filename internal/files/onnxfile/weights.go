package onnxfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Half converts an IEEE 754 half-precision number.
func Half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 31
	frac := uint32(h) & 1023
	switch exp {
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case 0:
		v := float32(frac) / (1 << 24) // subnormal: a multiple of 2^-24, exact in float32
		if sign != 0 {
			return -v
		}
		return v
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Parts holds the nodes, as the names of their inputs, and the stored tensors
// of a model and of the branches of its If nodes, by name. If a name is used
// twice, it holds the first.
type Parts struct {
	Nodes   map[string][]string
	Tensors map[string]Tensor
}

// ReadParts reads the parts of a model in ONNX's format. The tensors share its
// bytes. A tensor whose data is external or in several pieces is left out.
// Errors wrap ErrInvalid.
func ReadParts(model []byte) (*Parts, error) {
	p := &Parts{map[string][]string{}, map[string]Tensor{}}
	if IsORT(model) {
		return nil, fmt.Errorf("%w: expected ONNX's format, found ONNX Runtime's", ErrInvalid)
	}
	w := walk{
		visit: func(t tensor, data field) error {
			if _, ok := p.Tensors[t.name]; !ok {
				p.Tensors[t.name] = RawTensor(t.typ, t.shape, model[data.body.at:data.body.end])
			}
			return nil
		},
		visitNode: func(name string, inputs []string) {
			if _, ok := p.Nodes[name]; !ok {
				p.Nodes[name] = inputs
			}
		},
	}
	_, err := w.read(bytes.NewReader(model), int64(len(model)))
	return p, err
}

// Type returns the type of the tensor's elements.
func (t Tensor) Type() Type { return t.typ }

// Shape returns the tensor's dimensions; none is a scalar.
func (t Tensor) Shape() []int64 { return t.shape }

// Raw returns the tensor's elements in little-endian order.
func (t Tensor) Raw() []byte { return t.raw }

// Floats returns the elements of a float32 or float16 tensor, else nil.
func (t Tensor) Floats() []float32 {
	if t.typ != Float32 && t.typ != Float16 {
		return nil
	}
	out := make([]float32, int64(len(t.raw))/t.typ.Size())
	for i := range out {
		if t.typ == Float16 {
			out[i] = Half(binary.LittleEndian.Uint16(t.raw[2*i:]))
		} else {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.raw[4*i:]))
		}
	}
	return out
}
