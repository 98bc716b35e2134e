package ort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) { outside.Main(m) }

func openModel(t testing.TB, src Source, opt Options) *Session {
	t.Helper()
	s, err := Open(src, opt)
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestVersion(t *testing.T) {
	v, err := Version()
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	assert.Regexp(t, `^\d+\.\d+\.\d+`, v)
}

func TestRun(t *testing.T) {
	s := openModel(t, Source{Data: linear().Bytes(), Name: "linear.onnx"}, Options{})
	out, err := s.Run(context.Background(), map[string]*Tensor{"x": NewFloat32([]int64{3, 2}, []float32{1, 0, 0, 1, 1, 1})}, "y")
	require.NoError(t, err)
	require.Len(t, out, 1)
	assert.Equal(t, []int64{3, 2}, out[0].Shape())
	assert.Equal(t, []float32{1, 2, 3, 4, 4, 6}, out[0].Float32())
	assert.Equal(t, "linear", s.Graph().Metadata["model_type"])

	empty, err := s.Run(context.Background(), map[string]*Tensor{"x": NewFloat32([]int64{0, 2}, nil)})
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 2}, empty[0].Shape())
	assert.Empty(t, empty[0].Float32())
}

// TestRunWithStoredInt8 checks that weights that are only stored as int8 are
// dequantized before ONNX Runtime opens the model.
func TestRunWithStoredInt8(t *testing.T) {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 2)
	g.Constant("q", onnxfile.RawTensor(onnxfile.Int8, []int64{2, 2}, []byte{1, 0xfe, 3, 0x80}))
	g.Constant("s", onnxfile.Floats([]int64{1, 2}, 0.5, 2))
	g.Node("Cast", []string{"q"}, []string{"f"}, onnxfile.AttrInt("to", int64(onnxfile.Float32)))
	g.Node("Mul", []string{"f", "s"}, []string{"w"})
	g.Node("MatMul", []string{"x", "w"}, []string{"y"})
	g.Output("y", onnxfile.Float32, "N", 2)
	s := openModel(t, Source{Data: g.Bytes(), Name: "stored.onnx"}, Options{})
	out, err := s.Run(context.Background(), map[string]*Tensor{"x": NewFloat32([]int64{2, 2}, []float32{1, 0, 1, 1})}, "y")
	require.NoError(t, err)
	assert.Equal(t, []float32{0.5, -4, 2, -260}, out[0].Float32())
}

func TestRunFromFileWithExternalData(t *testing.T) {
	dir := t.TempDir()
	weights := []byte{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64} // 1 2 3 4
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.bin"), weights, 0o644))
	name := filepath.Join(dir, "model.onnx")
	require.NoError(t, os.WriteFile(name, withExternal("w.bin", 16), 0o644))
	s := openModel(t, Source{Path: name}, Options{})
	out, err := s.Run(context.Background(), map[string]*Tensor{"x": NewFloat32([]int64{1, 2}, []float32{1, 1})})
	require.NoError(t, err)
	assert.Equal(t, []float32{4, 6}, out[0].Float32())
}

// TestEveryTypeRuns runs every supported type, as a vector and as a scalar that
// multiplies it. A scalar output cannot be read.
func TestEveryTypeRuns(t *testing.T) {
	g := onnxfile.NewGraph()
	types := map[string]onnxfile.Type{"f32": onnxfile.Float32, "i64": onnxfile.Int64, "i32": onnxfile.Int32}
	for name, typ := range types {
		g.Input(name, typ, "N").Input(name+"0", typ)
		g.Node("Mul", []string{name, name + "0"}, []string{name + "_out"}).Output(name+"_out", typ, "N")
		g.Node("Identity", []string{name + "0"}, []string{name + "0_out"}).Output(name+"0_out", typ)
	}
	g.Node("Cast", []string{"f32"}, []string{"f16_out"}, onnxfile.AttrInt("to", int64(onnxfile.Float16))).Output("f16_out", onnxfile.Float16, "N")
	s := openModel(t, Source{Data: g.Bytes(), Name: "types.onnx"}, Options{})
	n := []int64{2}
	out, err := s.Run(context.Background(), map[string]*Tensor{
		"f32": NewFloat32(n, []float32{1.5, -2}), "f320": NewFloat32([]int64{}, []float32{7.5}),
		"i64": NewInt64(n, []int64{1, -2}), "i640": NewInt64([]int64{}, []int64{16000}),
		"i32": NewInt32(n, []int32{1, -2}), "i320": NewInt32([]int64{}, []int32{8}),
	}, "f32_out", "i64_out", "i32_out")
	require.NoError(t, err)
	assert.Equal(t, []float32{11.25, -15}, out[0].Float32())
	assert.Equal(t, []int64{16000, -32000}, out[1].Integers())
	assert.Equal(t, []int64{8, -16}, out[2].Integers())
	_, err = Open(Source{Data: g.Bytes(), Name: "types.onnx"}, Options{Outputs: []string{"f320_out"}})
	require.ErrorIs(t, err, ErrContract)

	_, err = Open(Source{Data: g.Bytes(), Name: "types.onnx"}, Options{Outputs: []string{"f16_out"}})
	require.ErrorIs(t, err, ErrContract)
	assert.ErrorContains(t, err, "f16_out float16[?]")
}

func TestHalfPrecision(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0: 0, 0x3c00: 1, 0xbc00: -1, 0x7bff: 65504, 0x0400: 0x1p-14, 0x0001: 0x1p-24, 0x8001: -0x1p-24, 0x3555: 0.333251953125,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		assert.Equal(t, want, float64(onnxfile.Half(bits)), "%#x", bits)
	}
	assert.True(t, math.IsNaN(float64(onnxfile.Half(0x7e00))))
}

func TestWrongInputs(t *testing.T) {
	s := openModel(t, Source{Data: linear().Bytes(), Name: "linear.onnx", Role: "tagger"}, Options{})
	x := NewFloat32([]int64{1, 2}, []float32{1, 2})
	for name, tt := range map[string]struct {
		in   map[string]*Tensor
		want string
	}{
		"missing":        {nil, "no tensor for input x float32[?,2]"},
		"unknown":        {map[string]*Tensor{"x": x, "z": x}, `no input "z", it has x float32[?,2]`},
		"type":           {map[string]*Tensor{"x": NewInt64([]int64{1, 2}, []int64{1, 2})}, "expected x float32[?,2], got int64[1,2]"},
		"rank":           {map[string]*Tensor{"x": NewFloat32([]int64{2}, []float32{1, 2})}, "expected x float32[?,2], got float32[2]"},
		"dimension":      {map[string]*Tensor{"x": NewFloat32([]int64{1, 3}, make([]float32, 3))}, "got float32[1,3]"},
		"too little":     {map[string]*Tensor{"x": NewFloat32([]int64{4, 2}, make([]float32, 7))}, "needs 8 elements, got 7"},
		"negative shape": {map[string]*Tensor{"x": NewFloat32([]int64{-1, 2}, nil)}, "got 0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Run(context.Background(), tt.in)
			require.ErrorIs(t, err, ErrInput)
			assert.ErrorContains(t, err, "tagger model linear.onnx")
			assert.ErrorContains(t, err, tt.want)
		})
	}
	_, err := s.Run(context.Background(), map[string]*Tensor{"x": x}, "z")
	require.ErrorIs(t, err, ErrContract)
	_, err = Open(Source{Data: linear().Bytes()}, Options{Outputs: []string{"z"}})
	require.ErrorIs(t, err, ErrContract)
	assert.ErrorContains(t, err, "it has y float32[?,2]")
}

func TestChosenOutputs(t *testing.T) {
	g := linear()
	g.Node("Identity", []string{"y"}, []string{"copy"}).Output("copy", onnxfile.Float32, "N", 2)
	s := openModel(t, Source{Data: g.Bytes()}, Options{Outputs: []string{"copy"}})
	in := map[string]*Tensor{"x": NewFloat32([]int64{1, 2}, []float32{1, 0})}
	out, err := s.Run(context.Background(), in)
	require.NoError(t, err)
	require.Len(t, out, 1)
	assert.Equal(t, []float32{1, 2}, out[0].Float32())
	_, err = s.Run(context.Background(), in, "y")
	assert.ErrorIs(t, err, ErrContract)
	assert.Len(t, s.Graph().Outputs, 2)
}

// TestRuntimeErrors uses a valid file that ONNX Runtime refuses, and one that
// fails while it computes.
func TestRuntimeErrors(t *testing.T) {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N").Node("NoSuchOperator", []string{"x"}, []string{"y"}).Output("y", onnxfile.Float32, "N")
	_, err := Open(Source{Data: g.Bytes(), Name: "odd.onnx", Role: "vad"}, Options{})
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "vad model odd.onnx")
	assert.ErrorContains(t, err, "NoSuchOperator")

	g = onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N").Input("n", onnxfile.Int64, 1)
	g.Node("Reshape", []string{"x", "n"}, []string{"y"}).Output("y", onnxfile.Float32, "M")
	s := openModel(t, Source{Data: g.Bytes(), Name: "reshape.onnx"}, Options{})
	said := stderr(t, func() {
		_, err = s.Run(context.Background(), map[string]*Tensor{"x": NewFloat32([]int64{3}, make([]float32, 3)), "n": NewInt64([]int64{1}, []int64{5})})
	})
	require.ErrorIs(t, err, ErrRun)
	assert.ErrorContains(t, err, "reshape.onnx")
	assert.NotContains(t, err.Error(), "\n")
	assert.Empty(t, said, "ONNX Runtime wrote to the terminal")

	// An output of rank 0 that the file does not declare cannot be read.
	g = onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N").Node("ReduceMax", []string{"x"}, []string{"y"}, onnxfile.AttrInt("keepdims", 0)).OutputWithoutShape("y", onnxfile.Float32)
	s = openModel(t, Source{Data: g.Bytes(), Name: "scalar.onnx"}, Options{})
	_, err = s.Run(context.Background(), map[string]*Tensor{"x": NewFloat32([]int64{3}, make([]float32, 3))})
	assert.ErrorIs(t, err, ErrRun)
}

// slow returns a model that multiplies by a matrix many times: it takes seconds
// for 512 rows, no time for one row.
func slow() []byte {
	const n = 512
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", n)
	g.Constant("w", onnxfile.Floats([]int64{n, n}, make([]float32, n*n)...))
	at := "x"
	for range 400 {
		at = g.Op("MatMul", []string{at, "w"})
	}
	g.Node("Identity", []string{at}, []string{"y"}).Output("y", onnxfile.Float32, "N", n)
	return g.Bytes()
}

func TestCanceledRunEnds(t *testing.T) {
	s := openModel(t, Source{Data: slow(), Name: "slow.onnx"}, Options{})
	in := func(rows int64) map[string]*Tensor {
		return map[string]*Tensor{"x": NewFloat32([]int64{rows, 512}, make([]float32, rows*512))}
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(30*time.Millisecond, cancel)
	var err error
	said := stderr(t, func() { _, err = s.Run(ctx, in(2048)) })
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "slow.onnx")
	assert.Empty(t, said, "ONNX Runtime wrote to the terminal")

	_, err = s.Run(ctx, in(1))
	require.ErrorIs(t, err, context.Canceled, "nothing starts with a canceled context")
	_, err = s.Run(context.Background(), in(1))
	require.NoError(t, err, "the session is usable after a canceled run")
}

func TestConcurrentRuns(t *testing.T) {
	s := openModel(t, Source{Data: linear().Bytes()}, Options{Threads: 2})
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for i := range 50 {
				v := float32(k*100 + i)
				out, err := s.Run(ctx, map[string]*Tensor{"x": NewFloat32([]int64{1, 2}, []float32{v, 0})})
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, []float32{v, 2 * v}, out[0].Float32())
			}
		})
	}
	wg.Wait()
}

func TestClose(t *testing.T) {
	s := openModel(t, Source{Data: linear().Bytes(), Name: "linear.onnx"}, Options{})
	x := NewFloat32([]int64{1, 2}, make([]float32, 2))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := s.Run(context.Background(), map[string]*Tensor{"x": x}); err != nil {
					assert.ErrorIs(t, err, ErrClosed)
					return
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	wg.Wait()
	assert.ErrorIs(t, s.Into(map[string]*Tensor{"x": x}, nil), ErrClosed)
}

func TestOutputsIntoGivenTensors(t *testing.T) {
	s := openModel(t, Source{Data: linear().Bytes(), Name: "linear.onnx"}, Options{})
	x, y := make([]float32, 2), make([]float32, 2)
	in, out := map[string]*Tensor{"x": NewFloat32([]int64{1, 2}, x)}, map[string]*Tensor{"y": NewFloat32([]int64{1, 2}, y)}
	for i := range 10 {
		x[0], x[1] = float32(i), 1
		require.NoError(t, s.Into(in, out))
		assert.Equal(t, []float32{float32(i) + 3, float32(2*i) + 4}, y)
	}

	err := s.Into(in, map[string]*Tensor{"y": NewFloat32([]int64{1, 3}, make([]float32, 3))})
	require.ErrorIs(t, err, ErrContract)
	assert.ErrorContains(t, err, "expected y float32[?,2], got float32[1,3]")
	assert.ErrorIs(t, s.Into(nil, out), ErrInput)
}

// TestNothingLeaks opens, runs and closes sessions repeatedly.
func TestNothingLeaks(t *testing.T) {
	g := onnxfile.NewGraph()
	g.Input("x", onnxfile.Float32, "N", 256)
	g.Constant("w", onnxfile.Floats([]int64{256, 256}, make([]float32, 256*256)...))
	g.Node("MatMul", []string{"x", "w"}, []string{"y"}).Output("y", onnxfile.Float32, "N", 256)
	data := g.Bytes()
	round := func(i int) {
		s := openModel(t, Source{Data: data}, Options{Threads: 1 + i%2})
		rows := int64(1 + i*7%50)
		x := NewFloat32([]int64{rows, 256}, make([]float32, rows*256))
		_, err := s.Run(context.Background(), map[string]*Tensor{"x": x})
		require.NoError(t, err)
		require.NoError(t, s.Into(map[string]*Tensor{"x": x}, map[string]*Tensor{"y": NewFloat32([]int64{rows, 256}, make([]float32, rows*256))}))
		require.NoError(t, s.Close())
	}
	for i := range 60 {
		round(i)
	}
	before, files := resident(t), openFiles(t)
	for i := range 200 {
		round(i)
	}
	grown := resident(t) - before
	t.Logf("resident memory grew by %d KiB over 200 rounds", grown/1024)
	assert.Less(t, grown, int64(12<<20), "every round leaks about %d KiB", grown/1024/200)
	assert.Equal(t, files, openFiles(t), "open files")
}

func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var size, pages int64
	_, err = fmt.Fscan(bytes.NewReader(raw), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
