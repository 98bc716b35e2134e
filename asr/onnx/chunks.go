package onnx

import (
	"context"
	"fmt"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

const (
	newState     = "new_"  // prefix of a state's output; the name of its input follows
	chunkTail    = 30      // frames of silence after a window, as icefall has them
	largestState = 1 << 26 // elements
)

// chunks describes the encoder of a streaming export, which reads a window in
// chunks: x [1,size,80] and the states that it returned for the chunk before,
// each under newState and the name of its input; the first are zeros. Chunks
// begin shift frames apart (k2-fsa/sherpa-onnx, online-recognizer-transducer-impl.h).
type chunks struct {
	size, shift int
	states      []ort.Info
	outputs     []string // the encoder's frames, and the states
}

// chunks reads the layout of a streaming encoder.
func (c *checker) chunks(output string) *chunks {
	x, _ := c.Input("x")
	k := &chunks{size: c.number("T", 0, 1, 1<<14), shift: c.number("decode_chunk_len", 0, 1, 1<<14), outputs: []string{output}}
	c.ports(nil, float(output, -1, -1, -1))
	fits := func(dim int, n int64) bool { return x.Shape[dim] < 0 || x.Shape[dim] == n }
	if k.shift < 1 || k.size < k.shift || x.Type != ort.Float32 || x.Rank() != 3 || !fits(1, int64(k.size)) || !fits(2, 80) {
		c.fail(ErrContract, "expected input x float32[?,T,80] and metadata T and decode_chunk_len of 1 to T, found %s, T %q and decode_chunk_len %q",
			x, c.Metadata["T"], c.Metadata["decode_chunk_len"])
	}
	for _, s := range without(c.Inputs, "x") {
		s.Shape = slices.Clone(s.Shape)
		if i := slices.Index(s.Shape, -1); i >= 0 {
			s.Shape[i] = 1
		}
		n, fixed := onnxfile.Elements(s.Shape)
		if !fixed || n > largestState || !has(c.Output, newState+s.Name) || !slices.Contains([]ort.Type{ort.Float32, ort.Int32, ort.Int64}, s.Type) {
			c.fail(ErrContract, "expected a state with one free dimension at most and an output %s%s, found %s (it has %s)", newState, s.Name, s, c.IOList())
		}
		k.states, k.outputs = append(k.states, s), append(k.outputs, newState+s.Name)
	}
	return k
}

// features returns the frames of a window and of the silence after it.
func (k *chunks) features(fbank *dsp.Extractor, samples []float32) matrix {
	n := (fbank.Frames(len(samples)) + chunkTail + k.shift - 1) / k.shift
	padded := make([]float32, ((n-1)*k.shift+k.size)*audio.SampleRate/100)
	copy(padded, samples)
	return fbankMatrix(fbank, padded)
}

// run reads a window.
func (k *chunks) run(ctx context.Context, encoder *ort.Session, w matrix) (frames encoded, err error) {
	in := map[string]*ort.Tensor{}
	for _, s := range k.states {
		n, _ := onnxfile.Elements(s.Shape)
		if s.Type == ort.Float32 {
			in[s.Name] = ort.NewFloat32(s.Shape, make([]float32, n))
		} else {
			in[s.Name] = ort.NewIntegers(s, make([]int, n), s.Shape...)
		}
	}
	for at := 0; at+k.size <= w.frames; at += k.shift {
		in["x"] = ort.NewFloat32([]int64{1, int64(k.size), int64(w.dim)}, w.data[at*w.dim:][:k.size*w.dim])
		out, err := encoder.Run(ctx, in, k.outputs...)
		if err != nil {
			return frames, err
		}
		s := out[0].Shape()
		if len(s) != 3 || s[0] != 1 {
			return frames, fmt.Errorf("%s: %w: expected output %s float32[1,?,?], found %v", encoder.Source(), ErrContract, k.outputs[0], s)
		}
		frames = encoded{data: append(frames.data, out[0].Float32()...), dim: int(s[2]), stride: 1, step: int(s[2]), n: frames.n + int(s[1])}
		for i, s := range k.states {
			in[s.Name] = out[i+1]
		}
	}
	return frames, nil
}
