package onnxfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Limits of the walk, far above published models (a large recognizer has some
// 10,000 nodes, 3,000 weights, a dozen inputs, 100 KB of tokens in metadata).
const (
	maxPorts      = 1024
	maxRank       = 16
	maxDepth      = 16 // graphs inside graphs
	maxNodes      = 1 << 20
	maxTensors    = 1 << 20
	maxName       = 1 << 12
	maxNames      = 64 << 20 // bytes of all names together
	maxFields     = 1 << 27  // of protobuf, in total
	maxMetaKeys   = 1 << 12
	maxMetaBytes  = 16 << 20
	maxExternal   = 1 << 10 // different files
	maxDimension  = 1 << 40
	maxElements   = 1 << 40
	maxModelBytes = 2<<30 - 1 // protobuf's own limit on one message
)

// Read reads the header of a model of size bytes, in pieces, skipping the
// weights: a model of a gigabyte takes a few reads. It checks that every
// tensor's data is as long as its shape requires, in subgraphs as well. An
// error wraps [ErrInvalid] unless reading failed.
func Read(r io.ReaderAt, size int64) (*Header, error) { return new(walk).read(r, size) }

func (w *walk) read(r io.ReaderAt, size int64) (*Header, error) {
	w.h, w.files, w.weights = &Header{Metadata: map[string]string{}, Opsets: map[string]int64{}}, map[string]bool{}, map[string]bool{}
	err := w.file(r, size)
	var failed readError
	switch {
	case err == nil:
		return w.h, nil
	case errors.As(err, &failed), errors.Is(err, ErrInvalid):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
}

func (w *walk) file(r io.ReaderAt, size int64) error {
	switch {
	case size == 0:
		return errors.New("the file is empty")
	case size > maxModelBytes:
		return fmt.Errorf("the file has %d bytes; ONNX files end at 2 GiB, larger weights lie in a second file", size)
	}
	var head [8]byte
	if n, _ := r.ReadAt(head[:], 0); n == 8 && IsORT(head[:]) {
		return w.translated(r, size)
	}
	return w.model(wire{src: newWindow(r), end: size})
}

// translated walks a file in ONNX Runtime's own format.
func (w *walk) translated(r io.ReaderAt, size int64) error {
	if size > MaxORTSize {
		return fmt.Errorf("the file has %d bytes; at most %d are accepted in ONNX Runtime's own format", size, MaxORTSize)
	}
	m, err := translate(&buffer{file: r, size: int(size), pages: map[int][]byte{}})
	if err != nil {
		return err
	}
	return w.model(wire{src: newWindow(m.reader()), end: int64(m.size)})
}

type walk struct {
	h              *Header
	weights        map[string]bool // names of the main graph's initializers
	nodes, tensors int
	metaBytes      int64
	nameBytes      int
	files          map[string]bool // of external data
	// visit, if set, is called for each stored dense tensor, and visitNode for
	// each node, also of nested graphs and functions.
	visit     func(t tensor, data field) error
	visitNode func(name string, inputs []string)
}

func (w *walk) model(c wire) error {
	graphs := 0
	err := c.each(func(f field) error {
		switch f.num {
		case 1:
			if f.kind != wireVarint {
				return errors.New("the format version is no number")
			}
			w.h.IRVersion = int64(f.value)
		case 7:
			if graphs++; graphs > 1 {
				return errors.New("more than one graph")
			}
			if err := w.graph(f, 0); err != nil {
				return fmt.Errorf("graph: %w", err)
			}
		case 8:
			if err := w.opset(f); err != nil {
				return fmt.Errorf("operator set: %w", err)
			}
		case 14:
			key, value, err := w.pair(f)
			if err != nil {
				return fmt.Errorf("metadata: %w", err)
			}
			w.h.Metadata[key] = value
			if len(w.h.Metadata) > maxMetaKeys {
				return fmt.Errorf("metadata: more than %d keys", maxMetaKeys)
			}
		case 25:
			if err := w.function(f); err != nil {
				return fmt.Errorf("function: %w", err)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case graphs == 0:
		return errors.New("there is no graph in it")
	case w.h.IRVersion < 1 || w.h.IRVersion > 1<<20:
		return fmt.Errorf("format version %d is impossible", w.h.IRVersion)
	case len(w.h.Opsets) == 0:
		return errors.New("it names no operator set")
	case len(w.h.Outputs) == 0:
		return errors.New("the graph has no output")
	}
	for i, list := range [][]Value{w.h.Inputs, w.h.Outputs} {
		seen := map[string]bool{}
		for _, p := range list {
			if p.Name == "" || seen[p.Name] {
				return fmt.Errorf("graph: %s %q is nameless or there twice", [...]string{"input", "output"}[i], p.Name)
			}
			seen[p.Name] = true
		}
	}
	w.h.Inputs = slices.DeleteFunc(w.h.Inputs, func(p Value) bool { return w.weights[p.Name] })
	return nil
}

// opset reads an OperatorSetIdProto.
func (w *walk) opset(f field) error {
	var domain string
	var version int64
	err := f.each(func(f field) (err error) {
		switch f.num {
		case 1:
			domain, err = f.text(maxName)
		case 2:
			version = int64(f.value)
		}
		return err
	})
	if err != nil {
		return err
	}
	w.h.Opsets[domain] = version
	if len(w.h.Opsets) > maxPorts {
		return fmt.Errorf("more than %d of them", maxPorts)
	}
	return nil
}

func (w *walk) pair(f field) (key, value string, err error) {
	if w.metaBytes += f.size(); w.metaBytes > maxMetaBytes {
		return "", "", fmt.Errorf("more than %d bytes", maxMetaBytes)
	}
	err = f.each(func(f field) (err error) {
		switch f.num {
		case 1:
			key, err = f.text(maxMetaBytes)
		case 2:
			value, err = f.text(maxMetaBytes)
		}
		return err
	})
	return key, value, err
}

// graph reads a GraphProto. For a nested graph, it reads only the weights.
func (w *walk) graph(f field, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("graphs are nested deeper than %d", maxDepth)
	}
	err := f.each(func(f field) error {
		switch f.num {
		case 1:
			if err := w.node(f, depth); err != nil {
				return fmt.Errorf("node: %w", err)
			}
		case 5, 15: // initializers, dense and sparse
			read := w.tensor
			if f.num == 15 {
				read = w.sparse
			}
			t, err := read(f)
			if err == nil {
				err = w.show(t)
			}
			if err != nil {
				return fmt.Errorf("weights %q: %w", t.name, err)
			}
			if depth == 0 {
				w.weights[t.name] = true
				return w.noteName(t.name)
			}
		case 11:
			if depth == 0 { // the runtime checks a subgraph's ports
				return w.port(f, "input", &w.h.Inputs)
			}
		case 12:
			if depth == 0 {
				return w.port(f, "output", &w.h.Outputs)
			}
		}
		return nil
	})
	if err != nil || depth > 0 {
		return err
	}
	live := 0
	for _, p := range w.h.Inputs {
		if !w.weights[p.Name] {
			live++
		}
	}
	if live > maxPorts || len(w.h.Outputs) > maxPorts {
		return fmt.Errorf("more than %d inputs or outputs", maxPorts)
	}
	return nil
}

func (w *walk) port(f field, kind string, list *[]Value) error {
	p, err := valueInfo(f)
	if err != nil {
		return fmt.Errorf("%s %q: %w", kind, p.Name, err)
	}
	// In old files every weight is also an input.
	if *list = append(*list, p); len(*list) > maxPorts+maxTensors {
		return fmt.Errorf("more than %d inputs or outputs", maxPorts)
	}
	return w.noteName(p.Name)
}

func (w *walk) noteName(name string) error {
	if w.nameBytes += len(name); w.nameBytes > maxNames {
		return fmt.Errorf("more than %d bytes of names", maxNames)
	}
	return nil
}

// node reads the tensors and graphs in the attributes of a NodeProto.
func (w *walk) node(f field, depth int) error {
	if w.nodes++; w.nodes > maxNodes {
		return fmt.Errorf("more than %d of them", maxNodes)
	}
	var name, output string
	var inputs []string
	err := f.each(func(f field) (err error) {
		switch {
		case f.num == 5:
			return w.attribute(f, depth, output)
		case w.visit == nil:
		case f.num == 1:
			var input string
			input, err = f.text(maxName)
			inputs = append(inputs, input)
		case f.num == 2 && output == "": // comes before the attributes
			output, err = f.text(maxName)
		case f.num == 3:
			name, err = f.text(maxName)
		}
		return err
	})
	if err == nil && w.visitNode != nil {
		w.visitNode(name, inputs)
	}
	return err
}

// attribute reads the tensors and graphs of an AttributeProto. A tensor gets
// the name of the node's output.
func (w *walk) attribute(f field, depth int, output string) error {
	return f.each(func(f field) error {
		read := w.tensor
		switch f.num {
		case 5, 10: // a tensor, tensors
		case 22, 23: // a sparse tensor, sparse tensors
			read = w.sparse
		case 6, 11: // a graph, graphs
			return w.graph(f, depth+1)
		default:
			return nil
		}
		t, err := read(f)
		if err == nil && f.num == 5 {
			t.name = cmp.Or(output, t.name)
			err = w.show(t)
		}
		if err != nil {
			return fmt.Errorf("constant %q: %w", t.name, err)
		}
		return nil
	})
}

func (w *walk) function(f field) error {
	return f.each(func(f field) (err error) {
		switch f.num {
		case 7:
			err = w.node(f, 1)
		case 11: // an attribute's default
			err = w.attribute(f, 1, "")
		}
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
		return nil
	})
}

// stored is a tensor with its data: bytes, or float32 numbers in one piece; the
// field's number is 0 if the data is stored otherwise.
type stored struct {
	tensor
	data field
}

// show has a tensor visited.
func (w *walk) show(t stored) error {
	if w.visit == nil || t.data.num == 0 {
		return nil
	}
	return w.visit(t.tensor, t.data)
}

// sparse checks the two tensors of a SparseTensorProto: values, whose name is
// that of the whole tensor, and indices.
func (w *walk) sparse(f field) (t stored, err error) {
	err = f.each(func(f field) (err error) {
		switch f.num {
		case 1:
			t, err = w.tensor(f)
		case 2:
			_, err = w.tensor(f)
		}
		return err
	})
	t.data = field{}
	return t, err
}

// tensor checks that a TensorProto's data is as long as its shape requires.
func (w *walk) tensor(f field) (t stored, err error) {
	if w.tensors++; w.tensors > maxTensors {
		return t, fmt.Errorf("more than %d tensors", maxTensors)
	}
	var (
		raw      int64 = -1
		external bool
		data     = externalData{length: -1}
	)
	err = f.each(func(f field) (err error) {
		switch f.num {
		case 4, 9:
			if f.num == 9 {
				raw = f.size()
			}
			if f.kind == wireBytes {
				t.data = f
			} else if f.num == 9 {
				return errors.New("the data is no byte string")
			}
		case 13:
			err = w.externalEntry(f, &data)
		case 14:
			external = f.value == 1
		default:
			err = t.read(f)
		}
		return err
	})
	if err != nil {
		return t, err
	}
	n, ok := Elements(t.shape)
	if !ok || n > maxElements || len(t.shape) > 0 && slices.Max(t.shape) > maxDimension {
		return t, fmt.Errorf("shape %s is impossible", FormatShape(t.shape))
	}
	need, sized := n*t.typ.Size(), t.typ.Size() > 0
	if t.data.size() != need {
		t.data = field{}
	}
	switch {
	case !external && sized && raw >= 0 && raw != need:
		return t, fmt.Errorf("shape %s of %s needs %d bytes of data, it has %d", FormatShape(t.shape), t.typ, need, raw)
	case !external:
		return t, nil
	case sized && data.length >= 0 && data.length != need:
		return t, fmt.Errorf("shape %s of %s needs %d bytes of external data, it names %d", FormatShape(t.shape), t.typ, need, data.length)
	case sized:
		data.length = need
	}
	w.h.parts = append(w.h.parts, data)
	if !w.files[data.location] {
		w.files[data.location] = true
		w.h.External = append(w.h.External, data.location)
	}
	if len(w.h.External) > maxExternal {
		return t, fmt.Errorf("external data in more than %d files", maxExternal)
	}
	return t, nil
}

// externalEntry reads one pair of a tensor's external_data.
func (w *walk) externalEntry(f field, data *externalData) error {
	key, value, err := w.pair(f)
	if err != nil {
		return err
	}
	if key == "location" {
		data.location = value
	}
	if number := map[string]*int64{"offset": &data.offset, "length": &data.length}[key]; number != nil {
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return fmt.Errorf("external data: %s %q is not a number of bytes", key, value)
		}
		*number = int64(n)
	}
	return nil
}

func valueInfo(f field) (p Value, err error) {
	err = f.each(func(f field) (err error) {
		switch f.num {
		case 1:
			if p.Name, err = f.text(maxName); err == nil && !utf8.ValidString(p.Name) {
				err = errors.New("the name is not UTF-8")
			}
		case 2:
			p.Type, p.Shape, err = typeProto(f)
		}
		return err
	})
	return p, err
}

// typeProto reads a TypeProto; it returns type 0 for a sequence or a map.
func typeProto(f field) (typ Type, shape []int64, err error) {
	err = f.each(func(f field) error {
		if f.num != 1 { // only tensors
			return nil
		}
		return f.each(func(f field) (err error) {
			switch f.num {
			case 1:
				typ = Type(min(f.value, math.MaxInt32))
			case 2:
				shape, err = shapeProto(f)
			}
			return err
		})
	})
	return typ, shape, err
}

// shapeProto reads a TensorShapeProto.
func shapeProto(f field) ([]int64, error) {
	shape := []int64{}
	err := f.each(func(f field) error {
		if f.num != 1 {
			return nil
		}
		size := int64(-1)
		err := f.each(func(f field) error {
			// -1 (and in some exports 0) means a free dimension
			if v := int64(f.value); f.num == 1 && f.kind == wireVarint && v > 0 {
				size = v
			}
			return nil
		})
		switch shape = append(shape, size); {
		case err != nil:
			return err
		case size > maxDimension:
			return fmt.Errorf("dimension of %d", size)
		case len(shape) > maxRank:
			return fmt.Errorf("more than %d dimensions", maxRank)
		}
		return nil
	})
	return shape, err
}
