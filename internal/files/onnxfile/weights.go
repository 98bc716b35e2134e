package onnxfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Weight is a tensor stored in the file.
type Weight struct {
	Shape []int64
	Data  []float32 // float32, or float16 converted
}

// maxWeights limits the bytes that Weights reads: small networks'.
const maxWeights = 16 << 20

// Weights reads a small network's float32 and float16 tensors by name: weights
// and the values of Constant nodes (by their output), also in branches of If
// and bodies of Loop. It skips tensors of another type, external ones and those
// in several pieces. The model must be one that [Read] accepted.
func Weights(r io.ReaderAt, size int64) (map[string]Weight, error) {
	found, left := map[string]Weight{}, int64(maxWeights)
	c := collector{keep: func(t tensor, data field) error {
		if t.typ != Float32 && t.typ != Float16 {
			return nil
		}
		if left -= data.size(); left < 0 {
			return fmt.Errorf("more than %d bytes of weights", maxWeights)
		}
		raw := make([]byte, data.size())
		if k, err := data.body.src.r.ReadAt(raw, data.body.at); k < len(raw) {
			return short(err)
		}
		found[t.name] = Weight{t.shape, floats(t.typ, raw)}
		return nil
	}}
	return found, c.model(r, size)
}

// floats returns the numbers of a float32 or float16 tensor.
func floats(typ Type, raw []byte) []float32 {
	out := make([]float32, int64(len(raw))/typ.Size())
	for i := range out {
		if typ == Float16 {
			out[i] = Half(binary.LittleEndian.Uint16(raw[2*i:]))
		} else {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}
	return out
}

// collector visits the tensors that are stored in a model, and its nodes, also
// in branches of If and bodies of Loop.
type collector struct {
	keep func(t tensor, data field) error
	node func(name string, n Node) // nil for the tensors alone
}

func (c collector) model(r io.ReaderAt, size int64) error {
	err := wire{src: &window{r: r}, end: size}.each(func(f field) error {
		if f.num == 7 {
			return c.graph(f, 0)
		}
		return nil
	})
	var failed readError
	if err != nil && !errors.As(err, &failed) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

func (c collector) graph(f field, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("graphs are nested deeper than %d", maxDepth)
	}
	return f.each(func(f field) error {
		switch f.num {
		case 1:
			return c.operator(f, depth)
		case 5:
			return c.tensor(f, "")
		}
		return nil
	})
}

func (c collector) operator(f field, depth int) error {
	var name, output string
	var n Node
	err := f.each(func(f field) (err error) {
		switch f.num {
		case 1:
			var input string
			input, err = f.text(maxName)
			n.Inputs = append(n.Inputs, input)
		case 2: // comes before the attributes
			if output == "" {
				output, err = f.text(maxName)
			}
		case 3:
			name, err = f.text(maxName)
		case 5:
			err = f.each(func(f field) error {
				switch f.num {
				case 5:
					return c.tensor(f, output)
				case 6, 11:
					return c.graph(f, depth+1)
				}
				return nil
			})
		}
		return err
	})
	if err == nil && c.node != nil {
		c.node(name, n)
	}
	return err
}

// tensor visits a TensorProto under the name, or under its name in the file if
// that is empty.
func (c collector) tensor(f field, name string) error {
	var t tensor
	var data field
	err := f.each(func(f field) error {
		if (f.num == 4 || f.num == 9) && f.kind == wireBytes { // numbers in one piece, or bytes
			data = f
		}
		return t.read(f)
	})
	if n, ok := Elements(t.shape); err != nil || data.num == 0 || !ok || n*t.typ.Size() != data.size() {
		return err
	}
	t.name = cmp.Or(name, t.name)
	return c.keep(t, data)
}

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

// Parts holds the nodes and the stored tensors of a model and of the branches of
// its If nodes, by name. If several have the same name, it holds the first.
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
