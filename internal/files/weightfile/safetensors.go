package weightfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// ErrInvalid marks data that is not a valid file of its format.
var ErrInvalid = errors.New("not a usable file of weights")

// Limits. The header of Whisper large-v3 has 0.2 MB for 1,260 tensors.
const (
	maxHeader  = 8 << 20 // bytes
	maxTensors = 1 << 16
	maxRank    = 8
)

// Type is a number type, under safetensors' name.
type Type string

// The types of weights.
const (
	F32  Type = "F32"
	F16  Type = "F16"
	BF16 Type = "BF16"
	I32  Type = "I32"
	I16  Type = "I16"
	I8   Type = "I8"
)

// sizes maps the types to the bytes of a number.
var sizes = map[Type]int64{
	F32: 4, F16: 2, BF16: 2, "F64": 8, "I64": 8, "U64": 8, I32: 4, "U32": 4, I16: 2, "U16": 2,
	I8: 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}

// Tensor is one tensor of a file.
type Tensor struct {
	Type  Type
	Shape []int64 // the outermost dimension first; empty for a single number
	// At and Size are the range of the data in the file, in bytes.
	At, Size int64
}

// IsSafetensors reports whether head (9 bytes or more) may begin safetensors.
func IsSafetensors(head []byte) bool {
	if len(head) < 9 {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n <= maxHeader && head[8] == '{'
}

// ReadSafetensors returns the tensors of a safetensors file of size bytes by
// name. They cover the data without gaps and overlaps. It does not read the data
// itself. Errors wrap ErrInvalid unless reading failed.
//
// A file is the header's length (8 bytes, little-endian), a JSON object {name:
// {"dtype", "shape", "data_offsets": [begin, end]}} with an optional
// "__metadata__", and the data, from whose beginning offsets count.
func ReadSafetensors(file io.ReaderAt, size int64) (map[string]Tensor, error) {
	const lengthSize = 8
	if size < lengthSize {
		return nil, fmt.Errorf("%w: expected a header, found a file of %d bytes", ErrInvalid, size)
	}
	r := NewReader(file, size, lengthSize)
	length := r.Bytes(lengthSize)
	if r.Err != nil {
		return nil, r.Err
	}
	n := binary.LittleEndian.Uint64(length)
	if n < 2 || n > maxHeader || int64(n) > size-lengthSize {
		return nil, fmt.Errorf("%w: expected a header of 2 to %d bytes in a file of %d, found one of %d", ErrInvalid, maxHeader, size, n)
	}
	text := r.Bytes(int64(n))
	if r.Err != nil {
		return nil, r.Err
	}
	tensors, err := header(text)
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrInvalid, err)
	}
	if err := place(tensors, r.At, size); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return tensors, nil
}

// header reads the JSON object, with offsets from the data's beginning.
func header(text []byte) (map[string]Tensor, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("expected a JSON object"), err)
	}
	tensors := map[string]Tensor{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if name == "__metadata__" {
			var texts map[string]string
			if err := dec.Decode(&texts); err != nil {
				return nil, fmt.Errorf("__metadata__: %w", err)
			}
			continue
		}
		t, err := tensor(dec)
		if err != nil {
			return nil, fmt.Errorf("tensor %.100q: %w", name, err)
		}
		if _, twice := tensors[name]; twice {
			return nil, fmt.Errorf("tensor %.100q is there twice", name)
		}
		if tensors[name] = t; len(tensors) > maxTensors {
			return nil, fmt.Errorf("more than %d tensors", maxTensors)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected text after the JSON object")
	}
	return tensors, nil
}

// tensor reads the description of one tensor.
func tensor(dec *json.Decoder) (t Tensor, err error) {
	var d struct {
		Type    Type    `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := dec.Decode(&d); err != nil {
		return t, err
	}
	size, known := sizes[d.Type]
	switch {
	case !known:
		return t, fmt.Errorf("dtype: expected a type of the format, found %.20q", d.Type)
	case len(d.Shape) > maxRank:
		return t, fmt.Errorf("shape: expected at most %d dimensions, found %d", maxRank, len(d.Shape))
	case len(d.Offsets) != 2 || d.Offsets[0] < 0 || d.Offsets[1] < d.Offsets[0]:
		return t, fmt.Errorf("data_offsets: expected a beginning and an end, found %d", d.Offsets)
	}
	t = Tensor{Type: d.Type, Shape: d.Shape, At: d.Offsets[0], Size: d.Offsets[1] - d.Offsets[0]}
	count := t.Size / size
	for _, n := range d.Shape {
		if n < 0 || n > 0 && size > t.Size/n {
			size = -1
			break
		}
		size *= n
	}
	if size != t.Size {
		return t, fmt.Errorf("expected %v numbers in its %d bytes, which have room for %d", d.Shape, t.Size, count)
	}
	return t, nil
}

// place converts the tensors' offsets to offsets in the file, and checks that
// the tensors cover the data.
func place(tensors map[string]Tensor, data, size int64) error {
	inOrder := slices.SortedFunc(maps.Keys(tensors), func(a, b string) int {
		return cmp.Or(cmp.Compare(tensors[a].At, tensors[b].At), cmp.Compare(tensors[a].Size, tensors[b].Size))
	})
	at := int64(0)
	for _, name := range inOrder {
		t := tensors[name]
		if t.At != at {
			return fmt.Errorf("tensor %.100q: expected its data at %d, after the previous tensor, found %d", name, at, t.At)
		}
		at += t.Size
		if at > size-data {
			return fmt.Errorf("tensor %.100q ends at byte %d of the data, the file has %d", name, at, size-data)
		}
		t.At += data
		tensors[name] = t
	}
	if at != size-data {
		return fmt.Errorf("expected %d bytes of data, found %d", at, size-data)
	}
	return nil
}
