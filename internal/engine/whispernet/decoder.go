//go:build cgo

package whispernet

import (
	"fmt"
	"slices"
	"unsafe"
)

// Decoder holds the buffers of decoder passes, not for concurrent use.
type Decoder struct {
	m                                *Model
	pool                             *workerPool
	x                                memory[float32] // the columns between layers
	normal, qkv, out, hidden, logits memory[float32]
	scores                           []memory[float32] // by worker
	eight                            rows8
	cells                            [][]unsafe.Pointer // by column, the cache of earlier positions
	columns                          []Column
}

// NewDecoder returns a decoder with the given number of threads.
func (m *Model) NewDecoder(threads int) *Decoder {
	c := newWorkerPool(threads)
	return &Decoder{m: m, pool: c, scores: make([]memory[float32], c.threads)}
}

// Free frees the buffers.
func (d *Decoder) Free() {
	for _, b := range []*memory[float32]{&d.x, &d.normal, &d.qkv, &d.out, &d.hidden, &d.logits} {
		b.free()
	}
	for i := range d.scores {
		d.scores[i].free()
	}
	d.eight.free()
	d.pool.free()
}

// Step runs one decoder pass over columns of any windows, at any positions. A
// column also attends to earlier positions of the same pass: a prompt is a pass
// with a column for each of its tokens, all in row 0. A column's results do not
// depend on the other columns of the pass, but of a window in the pass, only
// texts with a column in the pass are kept in the cache.
func (d *Decoder) Step(columns []Column, stop *Stop) (err error) {
	defer caught(&err)
	if len(columns) == 0 {
		return nil
	}
	d.columns = columns
	if err := d.embed(); err != nil {
		return err
	}
	for l := range d.m.decoder {
		if stop.Stopped() {
			return ErrStopped
		}
		d.layer(l, nil)
	}
	d.project()
	return nil
}

// linear multiplies the first m rows of x by w; threads share the panels of w.
func (d *Decoder) linear(w *matrix, x []float32, m int, t target) {
	a := operand{x: x, stride: w.k, m: m, eight: &d.eight}
	d.m.prepare(w, &a)
	all := panels(w.n, d.m.panel())
	d.pool.each(d.pool.threads, func(part, _ int) {
		if from, to := split(all, d.pool.threads, part); from < to {
			d.m.product(w, from, to, &a, t)
		}
	})
}

// embed turns tokens and positions into vectors, and looks up the columns'
// caches. It fails if the model or a column's window has no room.
func (d *Decoder) embed() error {
	h := d.m.header
	n := int(h.TextState)
	for _, c := range d.columns {
		if c.Token < 0 || c.Token >= h.Vocabulary || c.Position < 0 || c.Position >= int(h.TextContext) || c.Row < 0 || c.Row >= c.Window.rows {
			return fmt.Errorf("whispernet: expected a token of %d, a position of %d and a row of %d, found token %d at %d in row %d",
				h.Vocabulary, h.TextContext, c.Window.rows, c.Token, c.Position, c.Row)
		}
		c.Window.pass++
	}
	x := d.x.grow(len(d.columns) * n)
	for len(d.cells) < len(d.columns) {
		d.cells = append(d.cells, nil)
	}
	for i, c := range d.columns {
		v := x[i*n : i*n+n]
		d.m.column(d.m.embedding, int(c.Token), v)
		for j, p := range d.m.decoderPositions.values[c.Position*n:][:n] {
			v[j] += p
		}
		cells := d.cells[i][:0]
		for p := range c.Position {
			row := 0
			if c.Path != nil {
				row = int(c.Path[p])
			}
			cells = append(cells, c.Window.cell(p, row))
		}
		d.cells[i] = append(cells, c.Window.cell(c.Position, c.Row))
	}
	for i, c := range d.columns {
		if i == 0 || d.columns[i-1].Window != c.Window {
			c.Window.reclaim()
		}
	}
	return nil
}

// layer computes a block for all columns. watch, if not nil, receives the
// queries of the block's cross-attention.
func (d *Decoder) layer(l int, watch func(queries []float32)) {
	m, layer := len(d.columns), &d.m.decoder[l]
	n := int(d.m.header.TextState)
	x, normal, qkv, out := d.x.values, d.normal.grow(m*n), d.qkv.grow(m*3*n), d.out.grow(m*n)
	hidden := d.hidden.grow(m * layer.up.n)
	add := target{out: x, add: x, stride: n}

	d.m.normalize(&layer.attentionNorm, x, m, normal)
	d.linear(layer.qkv, normal, m, target{out: qkv, stride: 3 * n})
	d.remember(l, qkv, out)
	d.linear(layer.out, out, m, add)

	d.m.normalize(&layer.crossNorm, x, m, normal)
	d.linear(layer.crossQuery, normal, m, target{out: qkv, stride: n})
	by := headScale(d.m.headSize)
	for i := range qkv[:m*n] {
		qkv[i] *= by
	}
	if watch != nil {
		watch(qkv)
	}
	d.listen(l, qkv, out)
	d.linear(layer.crossOut, out, m, add)

	d.m.normalize(&layer.mlpNorm, x, m, normal)
	d.linear(layer.up, normal, m, target{out: hidden, stride: layer.up.n, gelu: true})
	d.linear(layer.down, hidden, m, add)
}

// remember writes the columns' keys and values into their windows' caches and
// lets each column attend to its text so far.
func (d *Decoder) remember(l int, qkv, out []float32) {
	m, n, heads := len(d.columns), int(d.m.header.TextState), int(d.m.header.TextHeads)
	scaleQueries(qkv[:m*3*n], n, heads)
	offset := l * 2 * n
	for i, c := range d.columns {
		d.m.halves(qkv[i*3*n+n:][:2*n], d.cells[i][c.Position], offset)
	}
	parts := min(m, 4*d.pool.threads)
	d.pool.each(parts, func(part, worker int) {
		from, to := split(m, parts, part)
		for i := from; i < to; i++ {
			scores := d.scores[worker].grow(max(heads*len(d.cells[i]), tileRows*d.m.padded(contextPositions)))
			d.m.recall(qkv[i*3*n:][:n], heads, d.cells[i], offset, scores, out[i*n:])
		}
	})
}

// listen lets the columns attend to their windows.
func (d *Decoder) listen(l int, queries, out []float32) {
	n, heads, size := int(d.m.header.TextState), int(d.m.header.TextHeads), d.m.headSize
	type run struct{ from, to int }
	var runs []run // of columns of one window
	for i, c := range d.columns {
		if k := len(runs) - 1; k >= 0 && d.columns[runs[k].from].Window == c.Window {
			runs[k].to = i + 1
		} else {
			runs = append(runs, run{i, i + 1})
		}
	}
	d.pool.each(len(runs)*heads, func(part, worker int) {
		r, h := runs[part/heads], part%heads
		scores := d.scores[worker].grow(tileRows * d.m.padded(contextPositions))
		d.m.attend(&d.columns[r.from].Window.heads[l][h], queries[r.from*n+h*size:], n, r.to-r.from, scores, out[r.from*n+h*size:], n)
	})
}

// project computes the requested logits.
func (d *Decoder) project() {
	n, vocabulary := int(d.m.header.TextState), int(d.m.header.Vocabulary)
	wanted := d.out.values[:0]
	m := 0
	for i, c := range d.columns {
		if c.Logits != nil {
			wanted = append(wanted, d.x.values[i*n:i*n+n]...)
			m++
		}
	}
	if m == 0 {
		return
	}
	normal, logits := d.normal.values[:m*n], d.logits.grow(m*vocabulary)
	d.m.normalize(&d.m.decoderNorm, wanted, m, normal)
	d.linear(d.m.embedding, normal, m, target{out: logits, stride: vocabulary})
	at := 0
	for _, c := range d.columns {
		if c.Logits != nil {
			copy(c.Logits, logits[at:at+vocabulary])
			at += vocabulary
		}
	}
}

// Attention runs the tokens of a whole text (preceded by SOT, language, task,
// no timestamps) through the decoder in one pass and returns the raw scores
// (before the softmax) of cross-attention heads, pairs of layer and head:
// [head][token][encoder position of 20 ms], for the given number of positions,
// at most 1500. It overwrites the window's cache.
func (d *Decoder) Attention(w *Window, tokens []int32, heads [][2]int, positions int, stop *Stop) (scores [][][]float32, err error) {
	defer caught(&err)
	w.Forget()
	columns := make([]Column, len(tokens))
	for i, t := range tokens {
		columns[i] = Column{Window: w, Position: i, Token: t}
	}
	d.columns = columns
	if err := d.embed(); err != nil {
		return nil, err
	}
	last := -1
	for _, h := range heads {
		last = max(last, h[0])
	}
	positions = min(positions, contextPositions)
	padded := d.m.padded(contextPositions)
	all := allocate[float32](len(tokens) * padded)
	defer all.free()
	scores = make([][][]float32, len(heads))
	for l := range last + 1 {
		if stop.Stopped() {
			return nil, ErrStopped
		}
		d.layer(l, func(queries []float32) {
			for i, h := range heads {
				if h[0] == l {
					d.m.score(&w.heads[l][h[1]], queries[h[1]*d.m.headSize:], int(d.m.header.TextState), len(tokens), all.values, padded)
					scores[i] = make([][]float32, len(tokens))
					for t := range scores[i] {
						scores[i][t] = slices.Clone(all.values[t*padded:][:positions])
					}
				}
			}
		})
	}
	return scores, nil
}
