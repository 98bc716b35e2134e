package onnxfile

import (
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

// maxWeights limits the bytes that Weights reads, because it is meant for small
// networks.
const maxWeights = 16 << 20

// Weights reads a small network's float32 and float16 tensors by name: weights
// and the values of Constant nodes (under the name of their output), also in
// branches of If and bodies of Loop. It skips a tensor of another type, and one
// whose data is external or in several pieces. The model must be one that
// [Read] accepted.
func Weights(r io.ReaderAt, size int64) (map[string]Weight, error) {
	c := collector{found: map[string]Weight{}, left: maxWeights}
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
	return c.found, err
}

type collector struct {
	found map[string]Weight
	left  int64 // bytes that may still be read
}

func (c *collector) graph(f field, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("graphs are nested deeper than %d", maxDepth)
	}
	return f.each(func(f field) error {
		switch f.num {
		case 1:
			return c.node(f, depth)
		case 5:
			return c.tensor(f, "")
		}
		return nil
	})
}

func (c *collector) node(f field, depth int) error {
	output := ""
	return f.each(func(f field) (err error) {
		switch f.num {
		case 2: // comes before the attributes
			if output == "" {
				output, err = f.text(maxName)
			}
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
}

// tensor stores a TensorProto under the name, or under its name in the file if
// that is empty.
func (c *collector) tensor(f field, name string) error {
	var t tensor
	var data field
	err := f.each(func(f field) error {
		if (f.num == 4 || f.num == 9) && f.kind == wireBytes { // numbers in one piece, or bytes
			data = f
		}
		return t.read(f)
	})
	n, ok := Elements(t.shape)
	switch {
	case err != nil:
		return err
	case t.typ != Float32 && t.typ != Float16 || data.num == 0 || !ok || n*t.typ.Size() != data.size():
		return nil
	}
	if c.left -= data.size(); c.left < 0 {
		return fmt.Errorf("more than %d bytes of weights", maxWeights)
	}
	raw := make([]byte, data.size())
	if k, err := data.body.src.r.ReadAt(raw, data.body.at); k < len(raw) {
		return short(err)
	}
	w := Weight{t.shape, make([]float32, n)}
	for i := range w.Data {
		if t.typ == Float16 {
			w.Data[i] = Half(binary.LittleEndian.Uint16(raw[2*i:]))
		} else {
			w.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}
	c.found[cmp.Or(name, t.name)] = w
	return nil
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
