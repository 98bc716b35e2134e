package onnxfile

import (
	"fmt"
	"io"
	"slices"
)

// Limits on what a header may hold. Published speech models stay far below
// them; a file beyond is refused rather than walked.
const (
	maxValues   = 4096      // inputs or outputs
	maxDims     = 32        // of one value
	maxName     = 4 << 10   // bytes of a name or key
	maxMetaText = 4 << 20   // bytes of one metadata value
	maxMeta     = 4096      // metadata entries
	maxExternal = 4096      // external data files
	maxDepth    = 16        // graphs within graphs
	maxFields   = 8_000_000 // protobuf fields read in all
)

// Read reads the header of a model of size bytes. It reads in pieces and steps
// over the weights, so a model of a gigabyte costs a few reads. An error wraps
// ErrNotONNX unless reading itself failed.
func Read(r io.ReaderAt, size int64) (*Header, error) {
	w := &walker{r: r, h: &Header{Metadata: map[string]string{}}, initializers: map[string]bool{}, fields: maxFields}
	if err := w.model(0, size); err != nil {
		return nil, err
	}
	if !w.graphSeen {
		return nil, fmt.Errorf("%w: it has no graph", ErrNotONNX)
	}
	w.h.Inputs = slices.DeleteFunc(w.h.Inputs, func(v Value) bool { return w.initializers[v.Name] })
	if len(w.h.Inputs) == 0 || len(w.h.Outputs) == 0 {
		return nil, fmt.Errorf("%w: its graph has %d inputs and %d outputs", ErrNotONNX, len(w.h.Inputs), len(w.h.Outputs))
	}
	return w.h, nil
}

// walker reads protobuf fields at offsets, through a small buffer.
type walker struct {
	r            io.ReaderAt
	h            *Header
	initializers map[string]bool
	graphSeen    bool
	fields       int // fields that may still be read

	buf  [16 << 10]byte
	from int64 // offset of buf[0]
	held int   // bytes in buf
}

// at returns the byte at an offset.
func (w *walker) at(pos int64) (byte, error) {
	if pos < w.from || pos >= w.from+int64(w.held) {
		n, err := w.r.ReadAt(w.buf[:], pos)
		if n == 0 {
			if err == io.EOF {
				return 0, fmt.Errorf("%w: it ends at byte %d", ErrNotONNX, pos)
			}
			return 0, err
		}
		w.from, w.held = pos, n
	}
	return w.buf[pos-w.from], nil
}

func (w *walker) varint(pos, end int64) (v uint64, next int64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		if pos >= end {
			return 0, 0, fmt.Errorf("%w: a number runs over the end of its message at byte %d", ErrNotONNX, pos)
		}
		b, err := w.at(pos)
		if err != nil {
			return 0, 0, err
		}
		pos++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, pos, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: a number of more than ten bytes at byte %d", ErrNotONNX, pos)
}

// field is one field of a message: a number, or the range of its bytes.
type field struct {
	number     uint64
	wire       uint64
	value      uint64
	start, end int64
}

// message calls f for every field of the message in [pos,end).
func (w *walker) message(pos, end int64, f func(field) error) error {
	for pos < end {
		if w.fields--; w.fields < 0 {
			return fmt.Errorf("%w: more than %d fields", ErrNotONNX, maxFields)
		}
		key, next, err := w.varint(pos, end)
		if err != nil {
			return err
		}
		fd := field{number: key >> 3, wire: key & 7, start: next}
		if fd.number == 0 {
			return fmt.Errorf("%w: field number 0 at byte %d", ErrNotONNX, pos)
		}
		switch fd.wire {
		case 0:
			if fd.value, fd.end, err = w.varint(next, end); err != nil {
				return err
			}
		case 1:
			fd.end = next + 8
		case 2:
			var length uint64
			if length, fd.start, err = w.varint(next, end); err != nil {
				return err
			}
			if length > uint64(end-fd.start) {
				return fmt.Errorf("%w: a field of %d bytes at byte %d runs over the end of its message", ErrNotONNX, length, pos)
			}
			fd.end = fd.start + int64(length)
		case 5:
			fd.end = next + 4
		default:
			return fmt.Errorf("%w: wire type %d at byte %d", ErrNotONNX, fd.wire, pos)
		}
		if fd.end > end {
			return fmt.Errorf("%w: a field at byte %d runs over the end of its message", ErrNotONNX, pos)
		}
		if err := f(fd); err != nil {
			return err
		}
		pos = fd.end
	}
	return nil
}

// text reads a string field of at most limit bytes.
func (w *walker) text(fd field, limit int64) (string, error) {
	if fd.wire != 2 {
		return "", fmt.Errorf("%w: text expected at byte %d", ErrNotONNX, fd.start)
	}
	length := fd.end - fd.start
	if length > limit {
		return "", fmt.Errorf("%w: a text of %d bytes at byte %d (at most %d)", ErrNotONNX, length, fd.start, limit)
	}
	data := make([]byte, length)
	if n, err := w.r.ReadAt(data, fd.start); n < len(data) {
		if err == io.EOF {
			return "", fmt.Errorf("%w: it ends within a text at byte %d", ErrNotONNX, fd.start)
		}
		return "", err
	}
	return string(data), nil
}

// sub walks a field that must be a message.
func (w *walker) sub(fd field, f func(field) error) error {
	if fd.wire != 2 {
		return fmt.Errorf("%w: message expected at byte %d", ErrNotONNX, fd.start)
	}
	return w.message(fd.start, fd.end, f)
}

// model walks a ModelProto.
func (w *walker) model(pos, end int64) error {
	return w.message(pos, end, func(fd field) error {
		switch fd.number {
		case 1:
			w.h.IRVersion = int64(fd.value)
		case 7:
			w.graphSeen = true
			return w.graph(fd, 0)
		case 8:
			return w.opset(fd)
		case 14:
			return w.metadata(fd)
		}
		return nil
	})
}

// opset walks an OperatorSetIdProto.
func (w *walker) opset(fd field) error {
	var domain string
	var version int64
	err := w.sub(fd, func(fd field) (err error) {
		switch fd.number {
		case 1:
			domain, err = w.text(fd, maxName)
		case 2:
			version = int64(fd.value)
		}
		return err
	})
	if domain == "" || domain == "ai.onnx" {
		w.h.Opset = version
	}
	return err
}

// pair walks a StringStringEntryProto.
func (w *walker) pair(fd field) (key, value string, err error) {
	err = w.sub(fd, func(fd field) (err error) {
		switch fd.number {
		case 1:
			key, err = w.text(fd, maxName)
		case 2:
			value, err = w.text(fd, maxMetaText)
		}
		return err
	})
	return key, value, err
}

func (w *walker) metadata(fd field) error {
	key, value, err := w.pair(fd)
	if err != nil {
		return err
	}
	if len(w.h.Metadata) >= maxMeta {
		return fmt.Errorf("%w: more than %d metadata entries", ErrNotONNX, maxMeta)
	}
	w.h.Metadata[key] = value
	return nil
}

// graph walks a GraphProto. Of a graph within another only the external data
// counts.
func (w *walker) graph(fd field, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: graphs within graphs deeper than %d", ErrNotONNX, maxDepth)
	}
	return w.sub(fd, func(fd field) error {
		switch fd.number {
		case 1:
			if depth == 0 {
				w.h.Nodes++
			}
			return w.node(fd, depth)
		case 5:
			return w.tensor(fd, depth == 0)
		case 15: // sparse_initializer: values = 1, indices = 2
			return w.sub(fd, func(fd field) error {
				if fd.number == 1 || fd.number == 2 {
					return w.tensor(fd, depth == 0)
				}
				return nil
			})
		case 11:
			return w.value(fd, depth, &w.h.Inputs)
		case 12:
			return w.value(fd, depth, &w.h.Outputs)
		}
		return nil
	})
}

// node walks a NodeProto for tensors and graphs among its attributes.
func (w *walker) node(fd field, depth int) error {
	return w.sub(fd, func(fd field) error {
		if fd.number != 5 {
			return nil
		}
		return w.sub(fd, func(fd field) error { // AttributeProto
			switch fd.number {
			case 5, 10: // t, tensors
				return w.tensor(fd, false)
			case 6, 11: // g, graphs
				return w.graph(fd, depth+1)
			}
			return nil
		})
	})
}

// tensor walks a TensorProto for its name and external data, stepping over the
// data inside.
func (w *walker) tensor(fd field, initializer bool) error {
	return w.sub(fd, func(fd field) error {
		switch fd.number {
		case 8:
			if initializer {
				name, err := w.text(fd, maxName)
				if err != nil {
					return err
				}
				w.initializers[name] = true
			}
		case 13: // external_data
			key, value, err := w.pair(fd)
			if err != nil {
				return err
			}
			if key == "location" && !slices.Contains(w.h.External, value) {
				if len(w.h.External) >= maxExternal {
					return fmt.Errorf("%w: more than %d external data files", ErrNotONNX, maxExternal)
				}
				w.h.External = append(w.h.External, value)
			}
		}
		return nil
	})
}

// value walks a ValueInfoProto.
func (w *walker) value(fd field, depth int, into *[]Value) error {
	if depth > 0 {
		return nil
	}
	var v Value
	err := w.sub(fd, func(fd field) (err error) {
		switch fd.number {
		case 1:
			v.Name, err = w.text(fd, maxName)
		case 2: // TypeProto
			err = w.sub(fd, func(fd field) error {
				if fd.number != 1 { // only tensor_type
					return nil
				}
				return w.sub(fd, func(fd field) error {
					switch fd.number {
					case 1:
						v.Type = Type(int32(fd.value))
					case 2:
						return w.shape(fd, &v)
					}
					return nil
				})
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(*into) >= maxValues {
		return fmt.Errorf("%w: more than %d inputs or outputs", ErrNotONNX, maxValues)
	}
	*into = append(*into, v)
	return nil
}

// shape walks a TensorShapeProto. A dimension without a value, and a negative
// one, is free.
func (w *walker) shape(fd field, v *Value) error {
	v.Shape = []int64{}
	return w.sub(fd, func(fd field) error {
		if fd.number != 1 {
			return nil
		}
		if len(v.Shape) >= maxDims {
			return fmt.Errorf("%w: %s has more than %d dimensions", ErrNotONNX, v.Name, maxDims)
		}
		dim := int64(-1)
		err := w.sub(fd, func(fd field) error {
			if fd.number == 1 && fd.wire == 0 {
				dim = max(int64(fd.value), -1)
			}
			return nil
		})
		v.Shape = append(v.Shape, dim)
		return err
	})
}
