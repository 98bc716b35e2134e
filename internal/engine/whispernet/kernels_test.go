//go:build cgo

package whispernet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachKernels runs a test with all kernels that this CPU can run.
func eachKernels(t *testing.T, f func(t *testing.T, k kernels)) {
	for _, name := range availableKernels() {
		t.Run(name, func(t *testing.T) {
			k, err := chooseKernels(name)
			require.NoError(t, err)
			require.Equal(t, name, k.name())
			f(t, k)
		})
	}
}

func randoms(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func floatBytes(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// matrixOf packs n columns of k numbers.
func matrixOf(k kernels, kind, depth, n int, x, bias []float32) *matrix {
	w := k.newMatrix(kind, depth, n)
	k.pack(w, 0, floatBytes(x), 0, panels(n, k.panel()))
	if bias != nil {
		w.bias = allocate[float32](n)
		copy(w.bias.values, bias)
	}
	return w
}

// inC copies values to memory outside Go's heap.
func inC(x []float32) memory[float32] {
	m := allocate[float32](len(x))
	copy(m.values, x)
	return m
}

func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

// TestProductsMatchTheirDefinition compares products, with and without bias,
// GELU and sum, with their definition. 8-bit numbers may differ by half a step
// on each side.
func TestProductsMatchTheirDefinition(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, c := range []struct{ kind, m, k, n int }{
			{kindFloat, 1, 7, 5},
			{kindFloat, 13, 30, 70},
			{kindHalf, 5, 33, 32},
			{kindHalf, 25, 64, 201},
			{kind8, 1, 4, 3},
			{kind8, 12, 256, 64},
			{kind8, 29, 260, 45},
			{kind8, 7, 1024, 33},
		} {
			for _, rich := range []bool{false, true} {
				a, x, bias, add := inC(randoms(r, c.m*c.k)), randoms(r, c.k*c.n), randoms(r, c.n), inC(randoms(r, c.m*c.n))
				out := allocate[float32](c.m * c.n)
				target := target{out: out.values, stride: c.n, gelu: rich}
				if rich {
					target.add = add.values
				} else {
					bias = nil
				}
				w := matrixOf(k, c.kind, c.k, c.n, x, bias)
				var eight rows8
				k.multiply(w, &operand{x: a.values, stride: c.k, m: c.m, eight: &eight}, target)
				tolerance := map[int]float64{kindFloat: 1e-5, kindHalf: 2e-3, kind8: 4e-2}[c.kind] * math.Sqrt(float64(c.k))
				for i := range c.m {
					for j := range c.n {
						var want float64
						for d := range c.k {
							want += float64(a.values[i*c.k+d]) * float64(x[j*c.k+d])
						}
						if rich {
							want = gelu(want+float64(bias[j])) + float64(add.values[i*c.n+j])
						}
						require.InDelta(t, want, out.values[i*c.n+j], tolerance, "%+v row %d column %d", c, i, j)
					}
				}
				w.free()
				eight.free()
				a.free()
				add.free()
				out.free()
			}
		}
	})
}

// TestRowsAreIndependent checks that a row's product is identical to the last
// bit, regardless of the other rows and of the panels that a call computes.
func TestRowsAreIndependent(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(3, 4))
		const m, depth, n = 29, 300, 77
		for _, kind := range []int{kindFloat, kindHalf, kind8} {
			a := inC(randoms(r, m*depth))
			w := matrixOf(k, kind, depth, n, randoms(r, depth*n), randoms(r, n))
			together, alone := allocate[float32](m*n), allocate[float32](m*n)
			var eight rows8
			k.multiply(w, &operand{x: a.values, stride: depth, m: m, eight: &eight}, target{out: together.values, stride: n, gelu: true})
			for i := range m {
				row := operand{x: a.values[i*depth:], stride: depth, m: 1, eight: &eight}
				k.prepare(w, &row)
				for p := range panels(n, k.panel()) {
					k.product(w, p, p+1, &row, target{out: alone.values[i*n:], stride: n, gelu: true})
				}
			}
			assert.Equal(t, alone.values, together.values, "kind %d", kind)
			for _, f := range []func(){w.free, eight.free, a.free, together.free, alone.free} {
				f()
			}
		}
	})
}

// TestAttentionMatchesItsDefinition compares attention with its definition for
// all kinds of keys.
func TestAttentionMatchesItsDefinition(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(5, 6))
		const heads, size, positions, m = 3, 20, 45, 14
		const d = heads * size
		q, keys, values := inC(randoms(r, m*d)), inC(randoms(r, positions*d)), inC(randoms(r, positions*d))
		out, scores, raw := allocate[float32](m*d), allocate[float32](tileRows*k.padded(positions)), allocate[float32](m*k.padded(positions))
		for kind, tolerance := range map[int]float64{kindFloat: 1e-5, kindHalf: 5e-3, kind8: 0.1, kind16: 5e-3} {
			if kind == kind16 && k.s.shorts == 0 {
				continue
			}
			for h := range heads {
				room := allocate[byte](k.attentionRoom(kind, positions, size))
				a := k.placeAttention(kind, positions, size, room.values)
				k.packHead(&a, keys.values[h*size:], values.values[h*size:], d)
				k.attend(&a, q.values[h*size:], d, m, scores.values, out.values[h*size:], d)
				k.score(&a, q.values[h*size:], d, m, raw.values, k.padded(positions))
				for i := range m {
					want, products := attendPlainly(q.values[i*d+h*size:][:size], keys.values[h*size:], values.values[h*size:], d, positions)
					for j := range want {
						require.InDelta(t, want[j], out.values[i*d+h*size+j], tolerance, "kind %d head %d row %d", kind, h, i)
					}
					for j := range products {
						require.InDelta(t, products[j], raw.values[i*k.padded(positions)+j], 10*tolerance, "kind %d head %d row %d", kind, h, i)
					}
				}
				room.free()
			}
		}
		for _, b := range []*memory[float32]{&q, &keys, &values, &out, &scores, &raw} {
			b.free()
		}
	})
}

// A position that counts as several has the weight of several equal positions.
func TestAttendThin(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(9, 10))
		const size, dense, few, several, m = 32, 21, 9, 4, 5
		const all = dense + few*several
		q, keys, values := inC(randoms(r, m*size)), inC(randoms(r, all*size)), inC(randoms(r, all*size))
		out, scores := allocate[float32](m*size), allocate[float32](tileRows*k.padded(all))
		for _, x := range []*memory[float32]{&keys, &values} {
			for i := dense; i < all; i++ { // the computed positions, then each one repeated
				copy(x.values[i*size:][:size], x.values[(dense+(i-dense)%few)*size:])
			}
		}
		for kind, tolerance := range map[int]float64{kindFloat: 1e-5, kindHalf: 5e-3, kind8: 0.1, kind16: 5e-3} {
			if kind == kind16 && k.s.shorts == 0 {
				continue
			}
			room := allocate[byte](k.attentionRoom(kind, dense+few, size))
			a := k.placeAttention(kind, dense+few, size, room.values)
			a.thin(dense, several)
			k.packHead(&a, keys.values, values.values, size)
			k.attend(&a, q.values, size, m, scores.values, out.values, size)
			for i := range m {
				want, _ := attendPlainly(q.values[i*size:][:size], keys.values, values.values, size, all)
				for j := range want {
					require.InDelta(t, want[j], out.values[i*size+j], tolerance, "kind %d row %d", kind, i)
				}
			}
			room.free()
		}
		for _, b := range []*memory[float32]{&q, &keys, &values, &out, &scores} {
			b.free()
		}
	})
}

func attendPlainly(q, keys, values []float32, stride, positions int) (out, products []float64) {
	out, products = make([]float64, len(q)), make([]float64, positions)
	var sum float64
	for p := range positions {
		for j := range q {
			products[p] += float64(q[j]) * float64(keys[p*stride+j])
		}
		sum += math.Exp(products[p])
	}
	for p := range positions {
		for j := range q {
			out[j] += math.Exp(products[p]) / sum * float64(values[p*stride+j])
		}
	}
	return out, products
}

// TestRecall compares a column's attention to its past with the definition.
func TestRecall(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(7, 8))
		const heads, size, count, offset = 2, 36, 9, 5
		const d = heads * size
		q, scores, out := inC(randoms(r, d)), allocate[float32](heads*count), allocate[float32](d)
		defer q.free()
		defer scores.free()
		defer out.free()
		var cells []unsafe.Pointer
		keys, values := make([]float32, 0, count*d), make([]float32, 0, count*d)
		for range count {
			cell := allocate[uint16](offset + 2*d)
			defer cell.free()
			kv := inC(randoms(r, 2*d))
			k.halves(kv.values, unsafe.Pointer(unsafe.SliceData(cell.values)), offset)
			keys, values = append(keys, kv.values[:d]...), append(values, kv.values[d:]...)
			kv.free()
			cells = append(cells, unsafe.Pointer(unsafe.SliceData(cell.values)))
		}
		k.recall(q.values, heads, cells, offset, scores.values, out.values)
		for h := range heads {
			want, _ := attendPlainly(q.values[h*size:][:size], keys[h*size:], values[h*size:], d, count)
			for j := range want {
				assert.InDelta(t, want[j], out.values[h*size+j], 1e-2)
			}
		}
	})
}

func TestNormalize(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(9, 10))
		const m, d = 3, 37
		x, y := inC(randoms(r, m*d)), allocate[float32](m*d)
		n := norm{inC(randoms(r, d)), inC(randoms(r, d))}
		k.normalize(&n, x.values, m, y.values)
		for i := range m {
			row := x.values[i*d : i*d+d]
			var mean, variance float64
			for _, v := range row {
				mean += float64(v) / d
			}
			for _, v := range row {
				variance += (float64(v) - mean) * (float64(v) - mean) / d
			}
			for j, v := range row {
				want := (float64(v)-mean)/math.Sqrt(variance+1e-5)*float64(n.weight.values[j]) + float64(n.bias.values[j])
				assert.InDelta(t, want, y.values[i*d+j], 1e-5)
			}
		}
		x.free()
		y.free()
		n.weight.free()
		n.bias.free()
	})
}

func TestLogSoftmax(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, n := range []int{5, 31, 200} {
			x := randoms(r, n)
			x[1], x[n-1] = float32(math.Inf(-1)), 30
			begin := n * 2 / 3
			want := make([]float64, n)
			var all, last float64
			best := math.Inf(-1)
			for i, v := range x {
				all += math.Exp(float64(v))
				if i >= begin {
					last += math.Exp(float64(v))
				}
			}
			for i, v := range x {
				want[i] = float64(v) - math.Log(all)
				if i < begin {
					best = max(best, want[i])
				}
			}
			marks, top := k.logSoftmax(x, begin)
			assert.InDelta(t, math.Log(last/all), marks, 1e-4)
			assert.InDelta(t, best, top, 1e-4)
			for i := range x {
				if i != 1 {
					assert.InDelta(t, want[i], x[i], 1e-4)
				}
			}
			assert.True(t, math.IsInf(float64(x[1]), -1))
		}
		none := slices.Repeat([]float32{float32(math.Inf(-1))}, 20)
		marks, top := k.logSoftmax(none, 10)
		assert.True(t, math.IsInf(float64(marks), -1) && math.IsInf(float64(top), -1))
	})
}

// TestHalfPrecisionRounding checks that every finite half is unchanged, and
// that a number between two halves is rounded to the nearer one.
func TestHalfPrecisionRounding(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		var all []float32
		var bits []uint16
		for h := range 1 << 16 {
			if h&0x7c00 != 0x7c00 {
				bits = append(bits, uint16(h))
			}
		}
		raw := make([]byte, 0, 2*len(bits))
		for _, h := range bits {
			raw = binary.LittleEndian.AppendUint16(raw, h)
		}
		read := dequantize(1, raw, len(bits))
		defer read.free()
		all = append(all, read.values...)
		out := allocate[uint16](len(bits))
		defer out.free()
		k.halves(read.values, unsafe.Pointer(unsafe.SliceData(out.values)), 0)
		assert.Equal(t, bits, out.values)
		for i := 1; i < 0x7bff; i += 7 { // 0.4 of the way to the next half
			read.values[i] = all[i] + (all[i+1]-all[i])*0.4
		}
		k.halves(read.values, unsafe.Pointer(unsafe.SliceData(out.values)), 0)
		for i := 1; i < 0x7bff; i += 7 {
			require.Equal(t, bits[i], out.values[i])
		}
	})
}

// TestDequantize reads blocks of known numbers.
func TestDequantize(t *testing.T) {
	low := func(i int) byte { return byte(i%16) | byte((i+5)%16)<<4 } // numbers i and i+16
	number := func(i int) float32 {
		if i < 16 {
			return float32(i % 16)
		}
		return float32((i - 16 + 5) % 16)
	}
	var nibbles []byte
	for i := range 16 {
		nibbles = append(nibbles, low(i))
	}
	const half, two = 0x3800, 0x4000 // 0.5 and 2
	head := func(words ...uint16) (b []byte) {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint16(b, w)
		}
		return b
	}
	fifth := []byte{0b1010_1010, 0, 0xff, 0} // of numbers 1, 3, 5, 7 and 16 to 23
	high := func(i int) float32 {
		if i < 8 && i%2 == 1 || i >= 16 && i < 24 {
			return 16
		}
		return 0
	}
	var bytes []byte
	for i := range 32 {
		bytes = append(bytes, byte(int8(i*8-128)))
	}
	for name, c := range map[string]struct {
		kind int32
		data []byte
		want func(i int) float32
	}{
		"q4_0": {2, append(head(half), nibbles...), func(i int) float32 { return 0.5 * (number(i) - 8) }},
		"q4_1": {3, append(head(half, two), nibbles...), func(i int) float32 { return 0.5*number(i) + 2 }},
		"q5_0": {6, append(append(head(half), fifth...), nibbles...), func(i int) float32 { return 0.5 * (number(i) + high(i) - 16) }},
		"q5_1": {7, append(append(head(half, two), fifth...), nibbles...), func(i int) float32 { return 0.5*(number(i)+high(i)) + 2 }},
		"q8_0": {8, append(head(half), bytes...), func(i int) float32 { return 0.5 * float32(i*8-128) }},
	} {
		out := dequantize(c.kind, c.data, 32)
		for i, v := range out.values {
			assert.Equal(t, c.want(i), v, "%s number %d", name, i)
		}
		out.free()
	}
}

// TestColumnIsReadAsPacked checks that a column of a packed matrix is read back
// unchanged.
func TestColumnIsReadAsPacked(t *testing.T) {
	eachKernels(t, func(t *testing.T, k kernels) {
		r := rand.New(rand.NewPCG(13, 14))
		const depth, n = 260, 50
		x := randoms(r, depth*n)
		for kind, tolerance := range map[int]float64{kindFloat: 0, kindHalf: 2e-3, kind8: 2e-2} {
			w := matrixOf(k, kind, depth, n, x, nil)
			out := make([]float32, depth)
			for c := range n {
				k.column(w, c, out)
				for i := range out {
					require.InDelta(t, x[c*depth+i], out[i], tolerance)
				}
			}
			w.free()
		}
	})
}

func TestPatchesOfAConvolution(t *testing.T) {
	out := make([]float32, 2*3*2)
	patches([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2, 2, 0, 2, out) // 4 frames of 2 channels, step 2
	assert.Equal(t, []float32{0, 0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8}, out)
}

func TestUnknownKernels(t *testing.T) {
	_, err := chooseKernels("sse9")
	assert.ErrorContains(t, err, fmt.Sprintf("kernels %q: expected ", "sse9"))
	assert.ErrorContains(t, err, "generic")
}

// TestDequantizeSuperblocks compares blocks of 256 numbers with the output of
// ggml's reference implementation in Python (package gguf) for the same bytes:
// four numbers, and a sum that weights positions differently.
func TestDequantizeSuperblocks(t *testing.T) {
	for _, c := range []struct {
		kind, size int
		halves     []int // offsets of 0.5 and 0.25
		numbers    [4]float32
		sum        float64
	}{
		{10, 84, []int{80, 82}, [4]float32{16.5, 20.25, 2.75, 2.25}, 4015.75},
		{11, 110, []int{108}, [4]float32{40.5, 0, 8.5, 21.0}, 1482.0},
		{12, 144, []int{0, 2}, [4]float32{157.75, 230.75, 172.5, 24.25}, 105074.5},
		{13, 176, []int{0, 2}, [4]float32{405.75, 558.75, 172.5, 54.25}, 229678.5},
		{14, 210, []int{208}, [4]float32{-715.5, 665.0, -84.0, -30.0}, 4938.5},
	} {
		block := make([]byte, c.size)
		for i := range block {
			block[i] = byte(i*37 + 11)
		}
		for i, at := range c.halves {
			binary.LittleEndian.PutUint16(block[at:], []uint16{0x3800, 0x3400}[i])
		}
		out := dequantize(int32(c.kind), block, 256)
		var sum float64
		for i, v := range out.values {
			sum += float64(v) * float64(i%7+1)
		}
		assert.Equal(t, c.numbers, [4]float32{out.values[0], out.values[77], out.values[150], out.values[255]}, "type %d", c.kind)
		assert.InDelta(t, c.sum, sum, 1e-3, "type %d", c.kind)
		out.free()
	}
}
