//go:build cgo

package whispernet

// encoderRows is the number of positions that pass through a linear layer
// together: few enough to stay in the CPU's cache between layers.
const encoderRows = 96

type encoderScratch struct {
	x, qkv  memory[float32]
	workers []encoderWorker
}

// encoderWorker is the memory of one goroutine of a pass.
type encoderWorker struct {
	normal, hidden, scores memory[float32]
	head                   memory[byte]
	eight                  rows8
}

func (s *encoderScratch) free() {
	s.x.free()
	s.qkv.free()
	for i := range s.workers {
		w := &s.workers[i]
		w.normal.free()
		w.hidden.free()
		w.scores.free()
		w.head.free()
		w.eight.free()
	}
}

// takeScratch returns memory for a pass with the given number of threads.
func (m *Model) takeScratch(threads int) *encoderScratch {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes++
	s := &encoderScratch{}
	if n := len(m.idle); n > 0 {
		s, m.idle = m.idle[n-1], m.idle[:n-1]
	}
	for len(s.workers) < threads {
		s.workers = append(s.workers, encoderWorker{})
	}
	return s
}

// giveScratch keeps the memory of a pass for a later pass. The model keeps the
// memory of at most as many passes as still run, or of one.
func (m *Model) giveScratch(s *encoderScratch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes--
	m.idle = append(m.idle, s)
	for len(m.idle) > max(m.passes, 1) {
		last := len(m.idle) - 1
		m.idle[last].free()
		m.idle = m.idle[:last]
	}
}

type pass struct {
	*Model
	*encoderScratch
	pool *workerPool
	stop *Stop
	d    int
	layout
}

// layout is the positions of the encoder that are computed: all at the
// beginning, then one of several in the silence after a short sound. Such a
// position counts as several in every attention, so that the network gets the
// 30 s that it was trained on, at a part of the cost.
type layout struct {
	n       int // positions that are computed
	dense   int // the first positions, which are all computed
	several int
}

// layoutOf returns the layout for a number of samples.
func (m *Model) layoutOf(samples, several int) layout {
	if !m.thin {
		return layout{contextPositions, contextPositions, 1}
	}
	dense := min(samples/(2*hop)+silencePadding, contextPositions)
	dense += (contextPositions - dense) % several
	return layout{dense + (contextPositions-dense)/several, dense, several}
}

// positions returns the positional embeddings of a layout in out, d numbers each.
func (l layout) positions(all []float32, d int, out []float32) []float32 {
	copy(out, all[:l.dense*d])
	for i := l.dense; i < l.n; i++ {
		at := l.dense + (i-l.dense)*l.several + l.several/2
		copy(out[i*d:i*d+d], all[at*d:])
	}
	return out
}

// each calls the pool's each and skips the remaining parts once the pass is
// stopped, whose results are then not used.
func (p *pass) each(n int, f func(part, worker int)) {
	p.pool.each(n, func(part, worker int) {
		if !p.stop.Stopped() {
			f(part, worker)
		}
	})
}

// blocks calls f for blocks of rows.
func (p *pass) blocks(rows int, f func(from, to int, w *encoderWorker)) {
	p.each((rows+encoderRows-1)/encoderRows, func(part, worker int) {
		f(part*encoderRows, min(part*encoderRows+encoderRows, rows), &p.workers[worker])
	})
}

// convolve applies both convolutions to features and adds the positions.
func (p *pass) convolve(features []float32) {
	d, channels := p.d, p.conv1.k/3
	frames := 2 * p.n
	room := p.qkv.grow(3 * p.n * d) // unused until the first layer
	first, positions := room[:frames*d], p.positions(p.encoderPositions.values, d, room[frames*d:])
	convolve := func(w *matrix, from []float32, frames, channels, step, rows int, out []float32, add []float32) {
		p.blocks(rows, func(a, b int, k *encoderWorker) {
			cut := k.hidden.grow(encoderRows * max(3*channels, 4*d))
			patches(from, frames, channels, step, a, b, cut)
			t := target{out: out[a*d:], stride: d, gelu: true}
			if add != nil {
				t.add = add[a*d:]
			}
			p.multiply(w, &operand{x: cut, stride: 3 * channels, m: b - a, eight: &k.eight}, t)
		})
	}
	convolve(p.conv1, features, frames, channels, 1, frames, first, nil)
	convolve(p.conv2, first, frames, d, 2, p.n, p.x.grow(p.n*d), positions)
}

// attention lets every position attend to all positions, and overwrites the
// queries with the result.
func (p *pass) attention(weights, heads int) {
	d, n := p.d, p.n
	size := d / heads
	kind := kindFloat // of the keys
	if weights == kind8 && p.s.shorts != 0 && size <= widest {
		kind = kind16
	}
	room := p.attentionRoom(kind, n, size)
	qkv := p.qkv.values
	p.each(heads, func(h, worker int) {
		w := &p.workers[worker]
		head := p.placeAttention(kind, n, size, w.head.grow(room))
		head.thin(p.dense, p.several)
		p.packHead(&head, qkv[d+h*size:], qkv[2*d+h*size:], 3*d)
		p.attend(&head, qkv[h*size:], 3*d, n, w.scores.grow(tileRows*p.padded(n)), qkv[h*size:], 3*d)
	})
}

// layer computes a transformer block.
func (p *pass) layer(l *encoderLayer, heads int) {
	d, n := p.d, p.n
	x, qkv := p.x.values, p.qkv.grow(3*n*d)
	p.blocks(n, func(a, b int, w *encoderWorker) {
		normal := w.normal.grow(encoderRows * d)
		p.normalize(&l.attentionNorm, x[a*d:], b-a, normal)
		p.multiply(l.qkv, &operand{x: normal, stride: d, m: b - a, eight: &w.eight}, target{out: qkv[a*3*d:], stride: 3 * d})
		scaleQueries(qkv[a*3*d:b*3*d], d, heads)
	})
	p.attention(l.qkv.kind, heads)
	p.blocks(n, func(a, b int, w *encoderWorker) {
		normal, hidden := w.normal.grow(encoderRows*d), w.hidden.grow(encoderRows*l.up.n)
		rows := func(x []float32, stride int) *operand {
			return &operand{x: x, stride: stride, m: b - a, eight: &w.eight}
		}
		at := target{out: x[a*d:], add: x[a*d:], stride: d}
		p.multiply(l.out, rows(qkv[a*3*d:], 3*d), at)
		p.normalize(&l.mlpNorm, x[a*d:], b-a, normal)
		p.multiply(l.up, rows(normal, d), target{out: hidden, stride: l.up.n, gelu: true})
		p.multiply(l.down, rows(hidden, l.up.n), at)
	})
}

// scaleQueries divides the queries, in rows of queries, keys and values, by the
// square root of the heads' size.
func scaleQueries(qkv []float32, d, heads int) {
	by := headScale(d / heads)
	for at := 0; at < len(qkv); at += 3 * d {
		q := qkv[at : at+d]
		for i := range q {
			q[i] *= by
		}
	}
}
