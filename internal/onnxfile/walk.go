package onnxfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// Limits of the walk, far above what published models have (a large recogniser:
// some 10,000 nodes, 3,000 weights, a dozen inputs, token lists of 100 KB in the
// metadata).
const (
	maxPorts      = 1024
	maxRank       = 16
	maxDepth      = 16 // graphs inside graphs
	maxNodes      = 1 << 20
	maxTensors    = 1 << 20
	maxName       = 1 << 12
	maxNames      = 64 << 20 // bytes of all names together
	maxFields     = 1 << 27  // of protobuf, all together
	maxMetaKeys   = 1 << 12
	maxMetaBytes  = 16 << 20
	maxExternal   = 1 << 10 // different files
	maxDimension  = 1 << 40
	maxElements   = 1 << 40
	maxModelBytes = 2<<30 - 1 // protobuf's own limit on one message
)

// Read reads the header of a model of size bytes, in pieces, stepping over the
// weights: a model of a gigabyte costs a few reads. It makes sure that every
// tensor's data is as long as its shape says, in subgraphs too. An error wraps
// [ErrInvalid] unless reading itself failed.
func Read(r io.ReaderAt, size int64) (*Header, error) {
	w := &walk{h: &Header{Metadata: map[string]string{}, Opsets: map[string]int64{}}, files: map[string]bool{}, weights: map[string]bool{}}
	err := w.file(r, size)
	var failed readError
	switch {
	case err == nil:
		return w.h, nil
	case errors.As(err, &failed):
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
	if n, _ := r.ReadAt(head[:], 0); n == 8 && string(head[4:8]) == "ORTM" {
		return errors.New("this is an ORT-format file; the .onnx file it was made from is needed")
	}
	return w.model(wire{src: &window{r: r}, end: size})
}

type walk struct {
	h         *Header
	weights   map[string]bool // names of the main graph's initializers
	nodes     int
	tensors   int
	metaBytes int64
	nameBytes int
	files     map[string]bool // of external data
}

func (w *walk) model(c wire) error {
	graphs := 0
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
		switch f.num {
		case 1:
			if f.kind != wireVarint {
				return errors.New("the format version is no number")
			}
			w.h.IRVersion = int64(f.value)
		case 2:
			if w.h.Producer, err = f.text(maxName); err != nil {
				return fmt.Errorf("producer: %w", err)
			}
		case 7:
			m, err := f.message()
			if err != nil {
				return fmt.Errorf("graph: %w", err)
			}
			if graphs++; graphs > 1 {
				return errors.New("more than one graph")
			}
			if err := w.subgraph(m, 0); err != nil {
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
	}
	switch {
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

func (w *walk) opset(f field) error {
	c, err := f.message()
	if err != nil {
		return err
	}
	var domain string
	var version int64
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
		switch f.num {
		case 1:
			if domain, err = f.text(maxName); err != nil {
				return err
			}
		case 2:
			version = int64(f.value)
		}
	}
	w.h.Opsets[domain] = version
	if len(w.h.Opsets) > maxPorts {
		return fmt.Errorf("more than %d of them", maxPorts)
	}
	return nil
}

// pair reads a StringStringEntryProto.
func (w *walk) pair(f field) (key, value string, err error) {
	c, err := f.message()
	if err != nil {
		return "", "", err
	}
	if w.metaBytes += f.size(); w.metaBytes > maxMetaBytes {
		return "", "", fmt.Errorf("more than %d bytes", maxMetaBytes)
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return "", "", err
		}
		switch f.num {
		case 1:
			key, err = f.text(maxMetaBytes)
		case 2:
			value, err = f.text(maxMetaBytes)
		}
		if err != nil {
			return "", "", err
		}
	}
	return key, value, nil
}

func (w *walk) subgraph(c wire, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("graphs are nested deeper than %d", maxDepth)
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
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
			name, err := read(f)
			if err != nil {
				return fmt.Errorf("weights %q: %w", name, err)
			}
			if depth == 0 {
				if err := w.noteName(name); err != nil {
					return err
				}
				w.weights[name] = true
			}
		case 11, 12:
			if depth > 0 {
				continue // a subgraph's ports are the runtime's business
			}
			p, err := valueInfo(f)
			if err != nil {
				return fmt.Errorf("%s %q: %w", map[uint64]string{11: "input", 12: "output"}[f.num], p.Name, err)
			}
			if err := w.noteName(p.Name); err != nil {
				return err
			}
			list := &w.h.Inputs
			if f.num == 12 {
				list = &w.h.Outputs
			}
			// In old files every weight is an input too.
			if *list = append(*list, p); len(*list) > maxPorts+maxTensors {
				return fmt.Errorf("more than %d inputs or outputs", maxPorts)
			}
		}
	}
	if depth == 0 {
		live := 0
		for _, p := range w.h.Inputs {
			if !w.weights[p.Name] {
				live++
			}
		}
		if live > maxPorts || len(w.h.Outputs) > maxPorts {
			return fmt.Errorf("more than %d inputs or outputs", maxPorts)
		}
	}
	return nil
}

func (w *walk) node(f field, depth int) error {
	c, err := f.message()
	if err != nil {
		return err
	}
	if w.nodes++; w.nodes > maxNodes {
		return fmt.Errorf("more than %d of them", maxNodes)
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
		if f.num == 5 {
			if err := w.attribute(f, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) attribute(f field, depth int) error {
	c, err := f.message()
	if err != nil {
		return err
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
		switch f.num {
		case 5, 10: // a tensor, tensors
			if name, err := w.tensor(f); err != nil {
				return fmt.Errorf("constant %q: %w", name, err)
			}
		case 22, 23: // a sparse tensor, sparse tensors
			if name, err := w.sparse(f); err != nil {
				return fmt.Errorf("constant %q: %w", name, err)
			}
		case 6, 11: // a graph, graphs
			m, err := f.message()
			if err != nil {
				return err
			}
			if err := w.subgraph(m, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) function(f field) error {
	c, err := f.message()
	if err != nil {
		return err
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return err
		}
		switch f.num {
		case 7:
			err = w.node(f, 1)
		case 11: // an attribute's default
			err = w.attribute(f, 1)
		}
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	return nil
}

// sparse checks the two tensors of a SparseTensorProto: values, whose name is that of
// the whole, and indices.
func (w *walk) sparse(f field) (name string, err error) {
	c, err := f.message()
	if err != nil {
		return "", err
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return name, err
		}
		switch f.num {
		case 1:
			name, err = w.tensor(f)
		case 2:
			_, err = w.tensor(f)
		}
		if err != nil {
			return name, err
		}
	}
	return name, nil
}

// tensor checks that a TensorProto's data is as long as its shape says.
func (w *walk) tensor(f field) (name string, err error) {
	c, err := f.message()
	if err != nil {
		return "", err
	}
	if w.tensors++; w.tensors > maxTensors {
		return "", fmt.Errorf("more than %d tensors", maxTensors)
	}
	var (
		typ      Type
		dims     []int64
		raw      int64 = -1
		external bool
		data     = externalData{length: -1}
	)
	for c.more() {
		f, err := c.next()
		if err != nil {
			return name, err
		}
		switch f.num {
		case 1:
			if f.kind == wireVarint {
				dims = append(dims, int64(f.value))
			} else {
				for p := f.body; p.more(); {
					d, err := p.varint()
					if err != nil {
						return name, err
					}
					if dims = append(dims, int64(d)); len(dims) > maxRank {
						break
					}
				}
			}
			if len(dims) > maxRank {
				return name, fmt.Errorf("more than %d dimensions", maxRank)
			}
		case 2:
			typ = Type(min(f.value, math.MaxInt32))
		case 8:
			if name, err = f.text(maxName); err != nil {
				return name, err
			}
		case 9:
			if f.kind != wireBytes {
				return name, errors.New("the data is no byte string")
			}
			raw = f.size()
		case 13:
			key, value, err := w.pair(f)
			if err != nil {
				return name, err
			}
			switch key {
			case "location":
				data.location = value
			case "offset":
				data.offset, err = parseCount(value)
			case "length":
				data.length, err = parseCount(value)
			}
			if err != nil {
				return name, fmt.Errorf("external data: %s %q is no count of bytes", key, value)
			}
		case 14:
			external = f.value == 1
		}
	}
	n, ok := Elements(dims)
	for _, d := range dims {
		ok = ok && d <= maxDimension
	}
	if !ok || n > maxElements {
		return name, fmt.Errorf("shape %s is impossible", FormatShape(dims))
	}
	if size := typ.Size(); size > 0 && raw >= 0 && !external && raw != n*size {
		return name, fmt.Errorf("shape %s of %s needs %d bytes of data, it has %d", FormatShape(dims), typ, n*size, raw)
	}
	if external {
		if size := typ.Size(); size > 0 && data.length >= 0 && data.length != n*size {
			return name, fmt.Errorf("shape %s of %s needs %d bytes of external data, it names %d", FormatShape(dims), typ, n*size, data.length)
		} else if size > 0 && data.length < 0 {
			data.length = n * size
		}
		if err := w.noteExternal(data); err != nil {
			return name, err
		}
	}
	return name, nil
}

func parseCount(s string) (int64, error) {
	if s == "" || len(s) > 18 {
		return 0, errors.New("not a count")
	}
	var n int64
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, errors.New("not a count")
		}
		n = n*10 + int64(r-'0')
	}
	return n, nil
}

// valueInfo reads a ValueInfoProto.
func valueInfo(f field) (Value, error) {
	var p Value
	c, err := f.message()
	if err != nil {
		return p, err
	}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return p, err
		}
		switch f.num {
		case 1:
			if p.Name, err = f.text(maxName); err != nil {
				return p, err
			}
			if !utf8.ValidString(p.Name) {
				return p, errors.New("the name is not UTF-8")
			}
		case 2:
			m, err := f.message()
			if err != nil {
				return p, err
			}
			if p.Type, p.Shape, err = typeProto(m); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// typeProto reads a TypeProto; a sequence or a map has the type 0.
func typeProto(c wire) (typ Type, shape []int64, err error) {
	for c.more() {
		f, err := c.next()
		if err != nil {
			return 0, nil, err
		}
		if f.num != 1 { // only tensors
			continue
		}
		t, err := f.message()
		if err != nil {
			return 0, nil, err
		}
		for t.more() {
			f, err := t.next()
			if err != nil {
				return 0, nil, err
			}
			switch f.num {
			case 1:
				typ = Type(min(f.value, math.MaxInt32))
			case 2:
				m, err := f.message()
				if err != nil {
					return 0, nil, err
				}
				if shape, err = shapeProto(m); err != nil {
					return 0, nil, err
				}
			}
		}
	}
	return typ, shape, nil
}

func shapeProto(c wire) ([]int64, error) {
	shape := []int64{}
	for c.more() {
		f, err := c.next()
		if err != nil {
			return nil, err
		}
		if f.num != 1 {
			continue
		}
		d, err := f.message()
		if err != nil {
			return nil, err
		}
		size := int64(-1)
		for d.more() {
			f, err := d.next()
			if err != nil {
				return nil, err
			}
			if f.num == 1 && f.kind == wireVarint {
				// -1 (and in some exports 0) stands for a free dimension
				if v := int64(f.value); v > 0 {
					size = v
				}
			}
		}
		if size > maxDimension {
			return nil, fmt.Errorf("dimension of %d", size)
		}
		if shape = append(shape, size); len(shape) > maxRank {
			return nil, fmt.Errorf("more than %d dimensions", maxRank)
		}
	}
	return shape, nil
}

func (w *walk) noteName(name string) error {
	if w.nameBytes += len(name); w.nameBytes > maxNames {
		return fmt.Errorf("more than %d bytes of names", maxNames)
	}
	return nil
}

func (w *walk) noteExternal(d externalData) error {
	w.h.parts = append(w.h.parts, d)
	if !w.files[d.location] {
		w.files[d.location] = true
		w.h.External = append(w.h.External, d.location)
	}
	if len(w.h.External) > maxExternal {
		return fmt.Errorf("external data in more than %d files", maxExternal)
	}
	return nil
}
