package onnx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

const (
	chunkTail    = 30      // frames of silence after a window, as icefall has them
	largestState = 1 << 26 // elements
	frameHop     = audio.SampleRate / 100
)

// chunks describes the encoder of a streaming export, which reads a window in
// chunks: size frames and the states that it returned for the chunk before; the
// first are zeros. Chunks begin shift frames apart (k2-fsa/sherpa-onnx,
// online-recognizer-transducer-impl.h and -nemo-impl.h).
type chunks struct {
	size, shift int
	frames      string   // input
	length      ort.Info // input; unnamed if there is none
	turned      bool     // frames are columns, in the input and the output
	anew        bool     // the text is written anew after more sound, and a cut loses no state
	states      []ort.Info
	outputs     []string // the encoder's frames, and the states
}

// chunks reads the layout of a streaming encoder: k has its inputs and its first
// output, the metadata size and shift have the chunks, next names a state's output.
func (c *checker) chunks(k *chunks, bands int, size, shift string, next func(state string) string) *chunks {
	x, _ := c.Input(k.frames)
	k.size, k.shift = c.number(size, 0, 1, 1<<14), c.number(shift, 0, 1, 1<<14)
	c.ports(nil, float(k.outputs[0], -1, -1, -1))
	want := []int64{-1, int64(k.size), int64(bands)}
	if k.turned {
		slices.Reverse(want[1:])
	}
	fits := func(dim int) bool { return x.Shape[dim] < 0 || x.Shape[dim] == want[dim] }
	if k.shift < 1 || k.size < k.shift || x.Type != ort.Float32 || x.Rank() != 3 || !fits(1) || !fits(2) {
		c.fail(ErrContract, "expected input %s with %d bands and %s frames, and metadata %s of 1 to %s, found %s, %s %q and %s %q",
			k.frames, bands, size, shift, size, x, size, c.Metadata[size], shift, c.Metadata[shift])
	}
	for _, s := range without(c.Inputs, k.frames, k.length.Name) {
		s.Shape = slices.Clone(s.Shape)
		free := 1 // the batch; other free dimensions stand in the metadata
		for axis, n := range s.Shape {
			if n < 0 {
				s.Shape[axis] = int64(c.number(fmt.Sprintf("%s_dim%d", s.Name, axis), free, 1, 1<<14))
				free = -1
			}
		}
		n, fixed := onnxfile.Elements(s.Shape)
		if !fixed || n > largestState || !has(c.Output, next(s.Name)) || !slices.Contains([]ort.Type{ort.Float32, ort.Int32, ort.Int64}, s.Type) {
			c.fail(ErrContract, "expected a state with one free dimension at most (or metadata %s_dim1 …) and an output %s, found %s (it has %s)", s.Name, next(s.Name), s, c.IOList())
		}
		k.states, k.outputs = append(k.states, s), append(k.outputs, next(s.Name))
	}
	return k
}

// features returns the frames of a window and of the silence after it.
func (k *chunks) features(fbank *dsp.Extractor, samples []float32) matrix {
	n := (fbank.Frames(len(samples)) + chunkTail + k.shift - 1) / k.shift
	padded := make([]float32, ((n-1)*k.shift+k.size)*frameHop)
	copy(padded, samples)
	return fbankMatrix(fbank, padded)
}

// begin returns the inputs before the first chunk.
func (k *chunks) begin() map[string]*ort.Tensor {
	in := map[string]*ort.Tensor{}
	for _, s := range k.states {
		n, _ := onnxfile.Elements(s.Shape)
		if s.Type == ort.Float32 {
			in[s.Name] = ort.NewFloat32(s.Shape, make([]float32, n))
		} else {
			in[s.Name] = ort.NewIntegers(s, make([]int, n), s.Shape...)
		}
	}
	if k.length.Name != "" {
		in[k.length.Name] = ort.NewIntegers(k.length, []int{k.size})
	}
	return in
}

// run reads a window, or those chunks of it that a draft has not.
func (k *chunks) run(ctx context.Context, encoder *ort.Session, w matrix, d *draft) (frames encoded, err error) {
	d = cmp.Or(d, &draft{end: w.frames})
	in := maps.Clone(d.inputs)
	if in == nil {
		in = k.begin()
	}
	d.inputs = in
	for at := d.again * k.shift; at+k.size <= min(d.end, w.frames); at += k.shift {
		rows, shape := w.data[at*w.dim:][:k.size*w.dim], []int64{1, int64(k.size), int64(w.dim)}
		if k.turned {
			rows, shape = turned(rows, k.size, w.dim), []int64{1, int64(w.dim), int64(k.size)}
		}
		in[k.frames] = ort.NewFloat32(shape, rows)
		out, err := encoder.Run(ctx, in, k.outputs...)
		if err != nil {
			return frames, err
		}
		s := out[0].Shape()
		if len(s) != 3 || s[0] != 1 {
			return frames, fmt.Errorf("%s: %w: expected output %s float32[1,?,?], found %v", encoder.Source(), ErrContract, k.outputs[0], s)
		}
		n, dim, data := int(s[1]), int(s[2]), out[0].Float32()
		if k.turned {
			n, dim, data = dim, n, turned(data, n, dim)
		}
		frames = encoded{data: append(frames.data, data...), dim: dim, stride: 1, step: dim, n: frames.n + n}
		for i, s := range k.states {
			in[s.Name] = out[i+1]
		}
		d.chunks++
	}
	return frames, nil
}

// turned returns the columns of a matrix as rows.
func turned(x []float32, rows, columns int) []float32 {
	out := make([]float32, len(x))
	dsp.Transpose(out, x, rows, columns, rows)
	return out
}
