package whisperfolder

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/files/weightfile"
)

// values is a tensor that is read in portions.
type values struct {
	// name is the file and the tensor's name in it, for errors.
	name  string
	shape []int64 // the outermost dimension first
	// read fills into with the numbers from index from on.
	read func(into []float32, from int64) error
}

// product returns the number of values of a shape.
func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// like reports whether shapes are equal except for trailing dimensions of 1.
func (v *values) like(shape []int64) bool { return slices.Equal(trimmed(v.shape), trimmed(shape)) }

func trimmed(shape []int64) []int64 {
	for len(shape) > 1 && shape[len(shape)-1] == 1 {
		shape = shape[:len(shape)-1]
	}
	return shape
}

// each calls f for the numbers of a tensor, portion by portion.
func (v *values) each(f func(part []float32, at int64) error) error {
	buf := make([]float32, min(portion, product(v.shape)))
	for at := int64(0); at < product(v.shape); at += portion {
		part := buf[:min(portion, product(v.shape)-at)]
		if err := v.read(part, at); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if err := f(part, at); err != nil {
			return err
		}
	}
	return nil
}

// all reads a small tensor.
func (v *values) all() ([]float32, error) {
	into := make([]float32, product(v.shape))
	if err := v.read(into, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	return into, nil
}

// part returns part i of n equal parts along the outermost dimension.
func (v *values) part(i, n int64) *values {
	shape := slices.Clone(v.shape)
	shape[0] /= n
	begin := product(v.shape) / n * i
	return &values{v.name, shape, func(into []float32, from int64) error { return v.read(into, begin+from) }}
}

// format is how a file stores numbers: the bytes of a number, and a function
// that decodes many, because a call for each number takes four times as long.
type format struct {
	size   int64
	decode func(into []float32, raw []byte)
}

var formats = map[weightfile.Type]format{
	weightfile.F32: {4, func(into []float32, raw []byte) { _, _ = binary.Decode(raw, binary.LittleEndian, into) }},
	weightfile.F16: {2, func(into []float32, raw []byte) {
		for i := range into {
			into[i] = onnxfile.Half(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}},
	weightfile.BF16: {2, func(into []float32, raw []byte) {
		for i := range into {
			into[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	}},
	weightfile.I16: {2, func(into []float32, raw []byte) {
		for i := range into {
			into[i] = float32(int16(binary.LittleEndian.Uint16(raw[2*i:])))
		}
	}},
	weightfile.I8: {1, func(into []float32, raw []byte) {
		for i := range into {
			into[i] = float32(int8(raw[i]))
		}
	}},
}

// integer reports whether numbers of a type are multiplied by a scale.
func integer(t weightfile.Type) bool { return t == weightfile.I8 || t == weightfile.I16 }

// stored returns the numbers of a tensor of a file.
func stored(name string, file io.ReaderAt, t weightfile.Tensor, f format) *values {
	var raw []byte
	return &values{name, t.Shape, func(into []float32, from int64) error {
		raw = slices.Grow(raw[:0], int(f.size)*len(into))[:int(f.size)*len(into)]
		if n, err := file.ReadAt(raw, t.At+from*f.size); err != nil && n < len(raw) {
			return err
		}
		f.decode(into, raw)
		return nil
	}}
}

// scaled returns a tensor whose rows are divided by their scales, or by one.
func (v *values) scaled(scales []float32) *values {
	width := product(v.shape) / int64(len(scales))
	return &values{v.name, v.shape, func(into []float32, from int64) error {
		if err := v.read(into, from); err != nil {
			return err
		}
		for i := range into {
			into[i] /= scales[(from+int64(i))/width]
		}
		return nil
	}}
}
