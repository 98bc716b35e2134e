//go:build cgo

package whispernet

/*
#cgo CFLAGS: -O3 -g0 -fno-strict-aliasing -Wall -Wno-unknown-pragmas
#cgo LDFLAGS: -lm
#include <stdlib.h>
#include "kernels.h"

static void product8(const og_kernels *s, const og_panels *w, int from, int to, const og_rows *q, float *c, long c_stride, const float *bias, const float *add, int gelu) {
	og_result r = {.c = c, .stride = c_stride, .bias = bias, .add = add, .gelu = gelu};
	s->product_q8(w, from, to, q, &r);
}
static void product(const og_kernels *s, int kind, const og_panels *w, int from, int to, const float *a, long stride, int m,
	float *c, long c_stride, const float *bias, const float *add, int gelu) {
	og_result r = {.c = c, .stride = c_stride, .bias = bias, .add = add, .gelu = gelu};
	(kind == OG_F16 ? s->product_half : s->product_float)(w, from, to, a, stride, m, &r);
}
static void quantize(const og_kernels *s, const float *x, long stride, int m, int k, void *data, float *scales, int32_t *start) {
	s->quantize(x, stride, m, k, data, scales, start);
}
static void normalize(const og_kernels *s, const float *x, int m, int d, const float *w, const float *b, float *y) { s->normalize(x, m, d, w, b, y); }
static void attend(const og_kernels *s, const float *q, long stride, int m, const og_attention *a, float *scores, float *out, long out_stride) {
	s->attend(q, stride, m, a, scores, out, out_stride);
}
static void score(const og_kernels *s, const float *q, long stride, int m, const og_attention *a, float *scores, long scores_stride) {
	s->score(q, stride, m, a, scores, scores_stride);
}
static void recall(const og_kernels *s, const float *q, int d, int heads, void *cells, int count, long offset, float *scores, float *out) {
	s->recall(q, d, heads, cells, count, offset, scores, out);
}
static void to_half(const og_kernels *s, const float *x, long n, uint16_t *y) { s->to_half(x, n, y); }
static void log_softmax(const og_kernels *s, float *x, int n, int begin, float *marks, float *best) { s->log_softmax(x, n, begin, marks, best); }
*/
import "C"

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"unsafe"
)

// Kinds of weights, as ggml's numbers of tensor types.
const (
	kindFloat = C.OG_F32
	kindHalf  = C.OG_F16
	kind8     = C.OG_Q8_0
	kind16    = C.OG_I16 // for attention only
	// widest is the largest head that 8-bit or 16-bit numbers can hold.
	widest = C.OG_WIDEST
)

// tileRows is the greatest number of rows that attention computes together.
const tileRows = 12

// kernels is the arithmetic for one instruction set.
type kernels struct{ s *C.og_kernels }

// chooseKernels returns the kernels of a name, or the CPU's best for "".
func chooseKernels(name string) (kernels, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	s := C.og_choose(c)
	if s == nil {
		return kernels{}, fmt.Errorf("kernels %q: expected %s", name, strings.Join(availableKernels(), ", "))
	}
	return kernels{s}, nil
}

// Kernels returns the instruction set that Open uses for Options.Kernels.
func Kernels(name string) (string, error) {
	k, err := chooseKernels(name)
	if err != nil {
		return "", fmt.Errorf("whispernet: %w", err)
	}
	return k.name(), nil
}

// availableKernels returns the names of this CPU's kernels, best first.
func availableKernels() (names []string) {
	for _, s := range []*C.og_kernels{C.og_avx512(), C.og_avxvnni(), C.og_avx2(), C.og_neon(), C.og_generic()} {
		if s != nil {
			names = append(names, C.GoString(s.name))
		}
	}
	return names
}

func (k kernels) name() string     { return C.GoString(k.s.name) }
func (k kernels) panel() int       { return int(k.s.nr) }
func panels(n, panel int) int      { return (n + panel - 1) / panel }
func (k kernels) padded(n int) int { return panels(n, k.panel()) * k.panel() }

// memory holds values outside Go's heap, so that C may keep pointers to them
// and the garbage collector need not count them.
type memory[T any] struct{ values []T }

// allocate returns n uninitialized values.
func allocate[T any](n int) memory[T] {
	var one T
	p := C.og_alloc(C.size_t(n) * C.size_t(unsafe.Sizeof(one)))
	if p == nil {
		panic(ErrMemory)
	}
	return memory[T]{unsafe.Slice((*T)(p), n)}
}

func (m *memory[T]) free() {
	if m.values != nil {
		C.og_release(unsafe.Pointer(unsafe.SliceData(m.values)))
		m.values = nil
	}
}

// bytes returns the memory's content.
func (m memory[T]) bytes() []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.values))), len(m.values)*int(unsafe.Sizeof(one)))
}

// grow makes room for n values, which are then uninitialized.
func (m *memory[T]) grow(n int) []T {
	if len(m.values) < n {
		m.free()
		*m = allocate[T](n)
	}
	return m.values[:n]
}

func address(x []float32) *C.float { return (*C.float)(unsafe.SliceData(x)) }

// matrix holds the weights of a linear layer and its bias.
type matrix struct {
	k, n, kind   int
	data         memory[byte]
	scales, bias memory[float32]
	c            C.og_panels // data and scales
}

func (w *matrix) free() {
	w.data.free()
	w.scales.free()
	w.bias.free()
}

// groups is the number of scales of a row of k 8-bit numbers.
func groups(k int) int { return (k + C.GROUP - 1) / C.GROUP }

// newMatrix returns room for n columns of k numbers.
func (k kernels) newMatrix(kind, depth, n int) *matrix {
	w := &matrix{k: depth, n: n, kind: kind, data: allocate[byte](int(C.og_panel_bytes(k.s, C.int(kind), C.int(depth), C.int(n))))}
	if kind == kind8 {
		w.scales = allocate[float32](k.padded(n) * groups(depth))
	}
	w.c = C.og_panels{k: C.int(w.k), n: C.int(w.n), data: unsafe.Pointer(unsafe.SliceData(w.data.values)), scales: address(w.scales.values)}
	return w
}

// pack fills panels from .. to-1 with rows, which begin at panel from.
func (k kernels) pack(w *matrix, tensorType int32, rows []byte, from, to int) {
	panel := k.panel()
	offset := int(C.og_panel_bytes(k.s, C.int(w.kind), C.int(w.k), C.int(from*panel)))
	var scales *C.float
	if w.kind == kind8 {
		scales = address(w.scales.values[from*panel*groups(w.k):])
	}
	if C.og_pack(k.s, C.int(w.kind), C.int(tensorType), unsafe.Pointer(unsafe.SliceData(rows)), C.int(w.k),
		C.int(min(w.n-from*panel, (to-from)*panel)), 0, C.int(to-from), unsafe.Pointer(unsafe.SliceData(w.data.values[offset:])), scales) == 0 {
		panic(ErrMemory)
	}
}

func (k kernels) column(w *matrix, column int, out []float32) {
	C.og_column(k.s, C.int(w.kind), &w.c, C.int(column), address(out))
}

// dequantize reads n numbers of a tensor.
func dequantize(tensorType int32, data []byte, n int) memory[float32] {
	out := allocate[float32](n)
	C.og_dequantize(C.int(tensorType), unsafe.Pointer(unsafe.SliceData(data)), C.int(n), address(out.values))
	return out
}

// rows8 is the left side of a product as 8-bit numbers.
type rows8 struct {
	data   memory[byte]
	scales memory[float32]
	start  memory[int32]
	c      C.og_rows // the rows prepared last
}

func (r *rows8) free() {
	r.data.free()
	r.scales.free()
	r.start.free()
}

// operand is the left side of a product: m rows, and their 8-bit form if the
// weights are 8-bit numbers.
type operand struct {
	x         []float32
	stride, m int
	eight     *rows8
}

// prepare computes the 8-bit form of an operand for w.
func (k kernels) prepare(w *matrix, a *operand) {
	if w.kind != kind8 {
		return
	}
	data, scales, start := a.eight.data.grow(a.m*w.k*int(k.s.element)), a.eight.scales.grow(a.m*groups(w.k)), a.eight.start.grow(a.m*groups(w.k))
	a.eight.c = C.og_rows{m: C.int(a.m), data: unsafe.Pointer(unsafe.SliceData(data)), stride: C.long(w.k), scales: address(scales), start: (*C.int32_t)(unsafe.SliceData(start))}
	C.quantize(k.s, address(a.x), C.long(a.stride), C.int(a.m), C.int(w.k), unsafe.Pointer(unsafe.SliceData(data)), address(scales), a.eight.c.start)
}

// target is the output of a product: out = gelu(product + bias) + add.
type target struct {
	out    []float32
	stride int
	add    []float32
	gelu   bool
}

// product multiplies a prepared operand by the panels from .. to-1 of w.
func (k kernels) product(w *matrix, from, to int, a *operand, t target) {
	gelu := C.int(0)
	if t.gelu {
		gelu = 1
	}
	if w.kind == kind8 {
		C.product8(k.s, &w.c, C.int(from), C.int(to), &a.eight.c, address(t.out), C.long(t.stride), address(w.bias.values), address(t.add), gelu)
		return
	}
	C.product(k.s, C.int(w.kind), &w.c, C.int(from), C.int(to), address(a.x), C.long(a.stride), C.int(a.m),
		address(t.out), C.long(t.stride), address(w.bias.values), address(t.add), gelu)
}

// multiply prepares a and multiplies it by all panels.
func (k kernels) multiply(w *matrix, a *operand, t target) {
	k.prepare(w, a)
	k.product(w, 0, panels(w.n, k.panel()), a, t)
}

// norm holds the weights of a layer normalization.
type norm struct{ weight, bias memory[float32] }

func (k kernels) normalize(n *norm, x []float32, m int, y []float32) {
	C.normalize(k.s, address(x), C.int(m), C.int(len(n.weight.values)), address(n.weight.values), address(n.bias.values), address(y))
}

// attention holds the keys and values of one head.
type attention struct{ c C.og_attention }

// attentionParts returns the offsets of the parts of a head: keys, values, the
// scales of both (for 8-bit or 16-bit numbers), and the end.
func (k kernels) attentionParts(kind, positions, size int) (at [5]int) {
	sizes := [4]int{int(C.og_panel_bytes(k.s, C.int(kind), C.int(size), C.int(positions))), int(C.og_panel_bytes(k.s, C.int(kind), C.int(positions), C.int(size)))}
	switch kind {
	case kind8:
		sizes[2], sizes[3] = 4*k.padded(positions), 4*positions
	case kind16:
		sizes[2], sizes[3] = 4*k.padded(positions), 4*k.padded(size)
	}
	for i, n := range sizes {
		at[i+1] = at[i] + (n+63)/64*64
	}
	return at
}

// attentionRoom returns the size of a head in bytes.
func (k kernels) attentionRoom(kind, positions, size int) int {
	return k.attentionParts(kind, positions, size)[4]
}

// placeAttention places a head in room, which must be aligned.
func (k kernels) placeAttention(kind, positions, size int, room []byte) (a attention) {
	at := k.attentionParts(kind, positions, size)
	a.c.kind, a.c.thin = C.int(kind), C.int(positions)
	a.c.keys = C.og_panels{k: C.int(size), n: C.int(positions), data: unsafe.Pointer(&room[at[0]])}
	a.c.values = C.og_panels{k: C.int(positions), n: C.int(size), data: unsafe.Pointer(&room[at[1]])}
	if kind == kind8 || kind == kind16 {
		a.c.keys.scales, a.c.values.scales = (*C.float)(unsafe.Pointer(&room[at[2]])), (*C.float)(unsafe.Pointer(&room[at[3]]))
	}
	return a
}

// thin makes each position from an index on count as several.
func (a *attention) thin(from, several int) {
	a.c.thin, a.c.weight = C.int(from), C.float(math.Log(float64(several)))
}

// packHead fills keys and values from rows with the given stride.
func (k kernels) packHead(a *attention, keys, values []float32, stride int) {
	C.og_pack_head(k.s, &a.c, address(keys), address(values), C.long(stride))
}

// attend computes the attention of m queries; scores has tileRows padded rows.
func (k kernels) attend(a *attention, q []float32, stride, m int, scores, out []float32, outStride int) {
	C.attend(k.s, address(q), C.long(stride), C.int(m), &a.c, address(scores), address(out), C.long(outStride))
}

// score computes only the products of m queries and the keys.
func (k kernels) score(a *attention, q []float32, stride, m int, out []float32, outStride int) {
	C.score(k.s, address(q), C.long(stride), C.int(m), &a.c, address(out), C.long(outStride))
}

// recall computes the attention of one column to cells of the decoder's cache.
func (k kernels) recall(q []float32, heads int, cells []unsafe.Pointer, offset int, scores, out []float32) {
	C.recall(k.s, address(q), C.int(len(q)), C.int(heads), unsafe.Pointer(unsafe.SliceData(cells)), C.int(len(cells)), C.long(offset), address(scores), address(out))
}

// halves writes numbers as halves into a cell, from the given offset in halves.
func (k kernels) halves(x []float32, cell unsafe.Pointer, offset int) {
	C.to_half(k.s, address(x), C.long(len(x)), (*C.uint16_t)(unsafe.Add(cell, 2*offset)))
}

// patches cuts frames into patches of three for a convolution.
func patches(x []float32, frames, channels, step, from, to int, out []float32) {
	C.og_patches(address(x), C.int(frames), C.int(channels), C.int(step), C.int(from), C.int(to), address(out))
}

// best returns the kernels for computations without a model.
var best = sync.OnceValue(func() kernels {
	k, _ := chooseKernels("") // every CPU has some
	return k
})

// Normalize turns logits into log probabilities in place (log-softmax over the
// values above -Inf). It returns the log of the total probability of the tokens
// from begin on, and the largest log probability below begin.
func Normalize(logits []float32, begin int32) (marks, largest float32) {
	return best().logSoftmax(logits, int(begin))
}

func (k kernels) logSoftmax(x []float32, begin int) (marks, best float32) {
	var m, b C.float
	C.log_softmax(k.s, address(x), C.int(len(x)), C.int(begin), &m, &b)
	return float32(m), float32(b)
}
