package onnxfile

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// Dequantized converts the int8 weights of a model to float32 if its graph
// converts them with Cast and Mul, so that they are only stored quantized. Each
// int8 tensor, its Cast to float32 and its product with a float32 tensor (one
// factor per index of one axis) become one float32 tensor. ONNX Runtime does
// the same while it opens the model, one operator at a time. The products are
// identical to the last bit.
//
// The result is stored in a block returned by alloc. It is nil if there is
// nothing to convert. Models with nested graphs are not changed.
func Dequantized(data []byte, alloc func(size int) []byte) []byte {
	d := dequantizer{data: data, uses: map[string]int{}, tensors: map[string]*stored{}, nodes: map[string]*operator{}}
	if d.read() != nil || d.nested {
		return nil
	}
	d.match()
	if len(d.products) == 0 {
		return nil
	}
	return d.write(alloc)
}

type (
	// part is a field with its tag: its range in the file.
	part struct{ at, end int64 }
	// stored is an initializer whose data are raw bytes.
	stored struct {
		part
		tensor
		raw []byte
	}
	// operator is a Cast to float32 or a Mul.
	operator struct {
		part
		op      string
		inputs  []string
		outputs []string
	}
	// product is a float32 tensor that replaces quantized ones.
	product struct {
		name           string
		weight, factor *stored
		inner          int // number of neighbors that share a factor
	}
	dequantizer struct {
		data     []byte
		graph    field // of the model
		head     int64 // offset of the graph's tag
		parts    []part
		nested   bool
		uses     map[string]int // number of uses of a value, by nodes and as an output of the model
		tensors  map[string]*stored
		nodes    map[string]*operator // by output
		products map[int64]product    // keyed by the offset of the quantized tensor
		dropped  map[int64]bool       // offsets of parts that the products replace
	}
)

// read walks the model's main graph.
func (d *dequantizer) read() error {
	c := wire{src: &window{r: bytes.NewReader(d.data)}, end: int64(len(d.data))}
	for c.more() {
		at := c.at
		f, err := c.next()
		if err != nil {
			return err
		}
		if f.num == 7 {
			d.graph, d.head = f, at
		}
	}
	for g := d.graph.body; g.more(); {
		at := g.at
		f, err := g.next()
		if err != nil {
			return err
		}
		here := part{at, g.at}
		d.parts = append(d.parts, here)
		switch f.num {
		case 1:
			err = d.node(f, here)
		case 5:
			err = d.tensor(f, here)
		case 11, 12: // an input may override the weight of the same name
			err = f.each(func(f field) (err error) {
				if f.num == 1 {
					var name string
					name, err = f.text(maxName)
					d.uses[name] += 2
				}
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dequantizer) node(f field, here part) error {
	n := &operator{part: here}
	var domain string
	to := uint64(0)
	err := f.each(func(f field) (err error) {
		var s string
		switch f.num {
		case 1:
			s, err = f.text(maxName)
			n.inputs = append(n.inputs, s)
			d.uses[s]++
		case 2:
			s, err = f.text(maxName)
			n.outputs = append(n.outputs, s)
		case 4:
			n.op, err = f.text(maxName)
		case 5:
			err = f.each(func(f field) error {
				switch f.num {
				case 3: // a Cast's only whole number is its type
					to = f.value
				case 6, 11:
					d.nested = true
				}
				return nil
			})
		case 7:
			domain, err = f.text(maxName)
		}
		return err
	})
	if err == nil && domain == "" && len(n.outputs) == 1 &&
		(n.op == "Mul" && len(n.inputs) == 2 || n.op == "Cast" && len(n.inputs) == 1 && to == uint64(Float32)) {
		d.nodes[n.outputs[0]] = n
	}
	return err
}

func (d *dequantizer) tensor(f field, here part) error {
	t := &stored{part: here}
	plain := true
	err := f.each(func(f field) error {
		if f.num == 9 && f.kind == wireBytes {
			t.raw = d.data[f.body.at:f.body.end]
			return nil
		}
		plain = plain && slices.Contains([]uint64{1, 2, 8, 12}, f.num) // 12 is a comment
		return t.read(f)
	})
	n, ok := Elements(t.shape)
	if err == nil && plain && ok && n > 0 && (t.typ == Int8 || t.typ == Float32) && n*t.typ.Size() == int64(len(t.raw)) {
		d.tensors[t.name] = t
	}
	return err
}

// match finds the products. Values with other uses in the model stay.
func (d *dequantizer) match() {
	d.products, d.dropped = map[int64]product{}, map[int64]bool{}
	for _, mul := range d.nodes {
		if mul.op != "Mul" {
			continue
		}
		for i, from := range mul.inputs {
			cast, factor := d.nodes[from], d.tensors[mul.inputs[1-i]]
			if cast == nil || cast.op != "Cast" || factor == nil || factor.typ != Float32 || d.uses[from] != 1 {
				continue
			}
			weight := d.tensors[cast.inputs[0]]
			if weight == nil || weight.typ != Int8 || d.uses[weight.name] != 1 {
				continue
			}
			inner, ok := shared(weight.shape, factor.shape)
			if !ok {
				continue
			}
			d.products[weight.at] = product{mul.outputs[0], weight, factor, inner}
			d.dropped[mul.at], d.dropped[cast.at] = true, true
			if d.uses[factor.name] == 1 {
				d.dropped[factor.at] = true
			}
			break
		}
	}
}

// shared returns the number of neighbors in memory that share a factor, if the
// factors lie along one axis of the weight or there is a single one.
func shared(weight, factor []int64) (inner int, ok bool) {
	if len(weight) != len(factor) {
		return 0, false
	}
	axis := -1
	for i, n := range factor {
		if n == 1 {
			continue
		}
		if n != weight[i] || axis >= 0 {
			return 0, false
		}
		axis = i
	}
	inner = 1
	for _, n := range weight[axis+1:] {
		inner *= int(n)
	}
	return inner, true
}

// write returns the model with the products in place of the quantized tensors.
// It returns nil if the model would exceed the limit of a file.
func (d *dequantizer) write(alloc func(size int) []byte) []byte {
	var graph int64
	heads := map[int64][]byte{} // the products' tensors without their data
	for _, p := range d.parts {
		switch made, ok := d.products[p.at]; {
		case ok:
			heads[p.at] = made.head()
			graph += int64(len(heads[p.at]) + 4*len(made.weight.raw))
		case !d.dropped[p.at]:
			graph += p.end - p.at
		}
	}
	tag := binary.AppendUvarint([]byte{7<<3 | wireBytes}, uint64(graph))
	size := d.head + int64(len(tag)) + graph + int64(len(d.data)) - d.graph.body.end
	if size > maxModelBytes {
		return nil
	}
	out := append(append(alloc(int(size))[:0], d.data[:d.head]...), tag...)
	var work sync.WaitGroup // half of the time goes into touching fresh memory
	defer work.Wait()
	for _, p := range d.parts {
		switch made, ok := d.products[p.at]; {
		case ok:
			out = append(out, heads[p.at]...)
			room := out[len(out) : len(out)+4*len(made.weight.raw)]
			out = out[:len(out)+len(room)]
			work.Go(func() { made.multiply(room) })
		case !d.dropped[p.at]:
			out = append(out, d.data[p.at:p.end]...)
		}
	}
	return append(out, d.data[d.graph.body.end:]...)
}

// head returns the tensor's bytes, including the tag, up to its data.
func (p product) head() []byte {
	var b []byte
	for _, n := range p.weight.shape {
		b = binary.AppendUvarint(append(b, 1<<3|wireVarint), uint64(n))
	}
	b = binary.AppendUvarint(append(b, 2<<3|wireVarint), uint64(Float32))
	b = binary.AppendUvarint(append(b, 8<<3|wireBytes), uint64(len(p.name)))
	b = append(b, p.name...)
	data := uint64(4 * len(p.weight.raw))
	b = binary.AppendUvarint(append(b, 9<<3|wireBytes), data)
	head := binary.AppendUvarint([]byte{5<<3 | wireBytes}, uint64(len(b))+data)
	return append(head, b...)
}

// multiply writes the products as little-endian float32.
func (p product) multiply(out []byte) {
	factors := make([]float32, len(p.factor.raw)/4)
	for i := range factors {
		factors[i] = math.Float32frombits(binary.LittleEndian.Uint32(p.factor.raw[4*i:]))
	}
	for q := p.weight.raw; len(q) > 0; {
		if p.inner == 1 {
			scale(out, q, factors)
			q, out = q[len(factors):], out[4*len(factors):]
			continue
		}
		for _, factor := range factors {
			for i, v := range q[:p.inner] {
				binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(float32(int8(v))*factor))
			}
			q, out = q[p.inner:], out[4*p.inner:]
		}
	}
}

// scale writes one product per factor, four at a time: this is most of the work.
func scale(out, q []byte, factors []float32) {
	for len(factors) >= 4 && len(q) >= 4 && len(out) >= 16 {
		f, w, o := factors[:4], q[:4], out[:16]
		binary.LittleEndian.PutUint32(o[0:], math.Float32bits(float32(int8(w[0]))*f[0]))
		binary.LittleEndian.PutUint32(o[4:], math.Float32bits(float32(int8(w[1]))*f[1]))
		binary.LittleEndian.PutUint32(o[8:], math.Float32bits(float32(int8(w[2]))*f[2]))
		binary.LittleEndian.PutUint32(o[12:], math.Float32bits(float32(int8(w[3]))*f[3]))
		factors, q, out = factors[4:], q[4:], out[16:]
	}
	for i, f := range factors {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(float32(int8(q[i]))*f))
	}
}
