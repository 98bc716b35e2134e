package onnxfile

import (
	"fmt"
	"math"
)

// tensor holds the properties of a TensorProto.
type tensor struct {
	name  string
	typ   Type
	shape []int64
}

// read reads one field; it ignores the data and unknown fields.
func (t *tensor) read(f field) (err error) {
	switch f.num {
	case 1:
		if f.kind == wireVarint {
			t.shape = append(t.shape, int64(f.value))
		}
		for p := f.body; p.more() && len(t.shape) <= maxRank; { // packed
			d, err := p.varint()
			if err != nil {
				return err
			}
			t.shape = append(t.shape, int64(d))
		}
		if len(t.shape) > maxRank {
			return fmt.Errorf("more than %d dimensions", maxRank)
		}
	case 2:
		t.typ = Type(min(f.value, math.MaxInt32))
	case 8:
		t.name, err = f.text(maxName)
	}
	return err
}
