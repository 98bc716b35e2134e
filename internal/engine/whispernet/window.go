//go:build cgo

package whispernet

import (
	"math"
	"unsafe"
)

// Window is an encoded window of sound: the keys and values that the decoder
// attends to, and the decoder's own cache, by position, of up to rows columns.
// It must not be used concurrently.
type Window struct {
	m     *Model
	rows  int
	cross memory[byte]
	heads [][]attention // by layer and head
	cells [][]cacheCell // by position and row
	spare []memory[uint16]
	pass  int // number of the decoder's latest pass
}

// cacheCell is the cache of a row at a position, empty if no text uses it.
type cacheCell struct {
	memory[uint16]
	pass int // the latest pass that used the cell
}

func headScale(size int) float32 { return float32(1 / math.Sqrt(float64(size))) }

// crossKind returns the kind of a window's keys and values: 8-bit numbers if
// the weights are, which halves the data that every step reads.
func (m *Model) crossKind() int {
	if m.embedding.kind == kind8 && m.headSize <= widest && m.headSize%4 == 0 {
		return kind8
	}
	return kindHalf
}

// WindowBytes returns the size of an encoded window without the decoder's cache.
func (m *Model) WindowBytes() int {
	return len(m.decoder) * int(m.header.TextHeads) * m.attentionRoom(m.crossKind(), contextPositions, m.headSize)
}

// Encode runs the encoder on at most 30 s of sound (16 kHz, mono), padded with
// silence, with a number of threads. rows is the most columns (beams or
// samples) in later decodes of the window. stop ends it with ErrStopped.
func (m *Model) Encode(samples []float32, rows, threads int, stop *Stop) (*Window, error) {
	return m.encode(samples, m.layoutOf(len(samples), thinning), rows, threads, stop)
}

// EncodeWhole is like Encode, but computes all of the silence.
func (m *Model) EncodeWhole(samples []float32, rows, threads int, stop *Stop) (*Window, error) {
	return m.encode(samples, m.layoutOf(len(samples), 1), rows, threads, stop)
}

// EncodeBriefly is like Encode, but computes still less of the silence, or, if
// the model is not thin, pads with a second of silence, although the network
// was not trained on such short input: for language detection and texts so far,
// not for final texts.
func (m *Model) EncodeBriefly(samples []float32, threads int, stop *Stop) (*Window, error) {
	l := m.layoutOf(len(samples), briefThinning)
	if !m.thin {
		n := min(len(samples)/(2*hop)+silencePadding, contextPositions)
		l = layout{n, n, 1}
	}
	return m.encode(samples, l, 1, threads, stop)
}

func (m *Model) encode(samples []float32, l layout, rows, threads int, stop *Stop) (_ *Window, err error) {
	defer caught(&err)
	c := newWorkerPool(threads)
	defer c.free()
	s := m.takeScratch(c.threads)
	defer m.giveScratch(s)
	features := allocate[float32](2 * l.n * m.mel.bands)
	defer features.free()
	m.features(samples, c, features.values)
	p := &pass{Model: m, encoderScratch: s, pool: c, stop: stop, d: int(m.header.AudioState), layout: l}
	p.convolve(features.values)
	for i := range m.encoder {
		if stop.Stopped() {
			return nil, ErrStopped
		}
		p.layer(&m.encoder[i], int(m.header.AudioHeads))
	}
	n := l.n
	out := s.qkv.values[2*n*p.d:] // beside the keys and values of the window
	p.blocks(n, func(a, b int, _ *encoderWorker) { m.normalize(&m.encoderNorm, s.x.values[a*p.d:], b-a, out[a*p.d:]) })
	if stop.Stopped() {
		return nil, ErrStopped
	}
	w := p.window(out, max(rows, 1))
	if stop.Stopped() {
		w.Free()
		return nil, ErrStopped
	}
	return w, nil
}

// window computes the keys and values of all layers from an encoder's output.
func (p *pass) window(encoded []float32, rows int) *Window {
	m, d, n := p.Model, p.d, p.n
	heads := int(m.header.TextHeads)
	kind := m.crossKind()
	room := m.attentionRoom(kind, n, m.headSize)
	w := &Window{m: m, rows: rows, cross: allocate[byte](len(m.decoder) * heads * room)}
	whole := false
	defer func() {
		if !whole {
			w.Free()
		}
	}()
	for l := range m.decoder {
		kv := m.decoder[l].keyValue
		both := p.qkv.grow(n * 2 * d)
		p.blocks(n, func(a, b int, k *encoderWorker) {
			m.multiply(kv, &operand{x: encoded[a*d:], stride: d, m: b - a, eight: &k.eight}, target{out: both[a*2*d:], stride: 2 * d})
		})
		layer := make([]attention, heads)
		p.each(heads, func(h, _ int) {
			layer[h] = m.placeAttention(kind, n, m.headSize, w.cross.values[(l*heads+h)*room:])
			layer[h].thin(p.dense, p.several)
			m.packHead(&layer[h], both[h*m.headSize:], both[d+h*m.headSize:], 2*d)
		})
		w.heads = append(w.heads, layer)
	}
	whole = true
	return w
}

// Free frees the window's memory.
func (w *Window) Free() {
	w.cross.free()
	w.Forget()
}

// Forget empties the decoder's cache, so that another text can be decoded.
func (w *Window) Forget() {
	w.pass++
	w.reclaim()
	for i := range w.spare {
		w.spare[i].free()
	}
	w.cells, w.spare = nil, nil
}

// cellSize returns a column's halves per position: all layers' keys and values.
func (m *Model) cellSize() int { return len(m.decoder) * 2 * int(m.header.TextState) }

// cell returns the cache of a row at a position.
func (w *Window) cell(position, row int) unsafe.Pointer {
	for len(w.cells) <= position {
		w.cells = append(w.cells, make([]cacheCell, w.rows))
	}
	c := &w.cells[position][row]
	if last := len(w.spare) - 1; c.values == nil && last >= 0 {
		c.memory, w.spare = w.spare[last], w.spare[:last]
	}
	c.pass = w.pass
	return unsafe.Pointer(&c.grow(w.m.cellSize())[0])
}

// reclaim empties the cells that the latest pass did not use.
func (w *Window) reclaim() {
	for _, rows := range w.cells {
		for i := range rows {
			if c := &rows[i]; c.values != nil && c.pass != w.pass {
				w.spare, c.memory = append(w.spare, c.memory), memory[uint16]{}
			}
		}
	}
}
