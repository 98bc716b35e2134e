package silero

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// The published networks compute one window per call. But only their LSTM cell
// depends on earlier windows; the layers before it depend on one window alone.
// unroll takes the weights from such a file and builds two graphs: the front,
// which computes many windows in one call, and the cell with the layers after
// it, which takes the front's output for consecutive windows. Convolutions
// become matrix products, whose weights ONNX Runtime stores in its preferred
// order; as convolutions of a few frames it would reorder them in each call.
//
// Only the order of sums differs; Open compares it with the original.

// parts of an unrolled network
const (
	featureSize = 128 // of the front's output for a window, and of the cell's state
	frameSize   = 256 // samples of the spectrum's frames
	frameStep   = 128
	frames      = 4 // of a window
	bins        = frameSize/2 + 1
	rightPad    = 64 // samples by which the end of a window is mirrored
)

// weights finds a network's tensors by shapes and the ends of prefixed names.
type weights struct {
	all     map[string]onnxfile.Tensor
	missing bool
}

func (w *weights) get(suffix string, shape ...int64) []float32 {
	var found []float32
	n := 0
	for name, t := range w.all {
		if strings.HasSuffix(name, suffix) && slices.Equal(t.Shape(), shape) {
			found = t.Floats()
			n++
		}
	}
	if n != 1 || found == nil {
		w.missing = true
		size, _ := onnxfile.Elements(shape)
		return make([]float32, size)
	}
	return found
}

// unroll builds the two graphs; they are nil for an unknown network.
func unroll(all map[string]onnxfile.Tensor) (front, cell []byte) {
	for name, t := range all {
		// The published file holds a second network, for 8 kHz, under another
		// prefix and with shorter frames.
		prefix, ok := strings.CutSuffix(name, "stft.forward_basis_buffer")
		if ok && slices.Equal(t.Shape(), []int64{2 * bins, 1, frameSize}) {
			all = maps.Clone(all)
			maps.DeleteFunc(all, func(name string, _ onnxfile.Tensor) bool { return !strings.HasPrefix(name, prefix) })
			break
		}
	}
	w := &weights{all: all}
	if front, cell = build(w); w.missing {
		return nil, nil
	}
	return front, cell
}

// build is Silero VAD v5 and v6: magnitudes of a spectrum, four
// convolutions over its frames, an LSTM cell.
func build(w *weights) (front, cell []byte) {
	g := &frontGraph{onnxfile.NewGraph()}
	g.Input("input", onnxfile.Float32, "n", rowWidth)
	x := g.magnitudes(w.get("stft.forward_basis_buffer", 2*bins, 1, frameSize))
	t, channels := frames, bins
	for i, c := range []layer{{out: 128, stride: 1}, {out: 64, stride: 2}, {out: 64, stride: 2}, {out: 128, stride: 1}} {
		name := fmt.Sprintf("encoder.%d.reparam_conv.", i)
		c.in = channels
		c.kernel, c.bias = w.get(name+"weight", int64(c.out), int64(channels), 3), w.get(name+"bias", int64(c.out))
		x, t = g.convolve(x, t, c)
		channels = c.out
	}
	g.Node("Reshape", []string{x, g.Ints(-1, 1, featureSize)}, []string{"features"})
	g.Output("features", onnxfile.Float32, "n", 1, featureSize)
	return g.Bytes(), cellGraph(
		w.get("decoder.rnn.weight_ih", 4*featureSize, featureSize), w.get("decoder.rnn.weight_hh", 4*featureSize, featureSize),
		w.get("decoder.rnn.bias_ih", 4*featureSize), w.get("decoder.rnn.bias_hh", 4*featureSize),
		w.get("decoder.decoder.2.weight", 1, featureSize, 1), w.get("decoder.decoder.2.bias", 1))
}

// frontGraph is the graph of [n, 576] → features [n, 1, 128].
type frontGraph struct{ *onnxfile.Graph }

func (g *frontGraph) slice(x string, axis, from, to, step int64) string {
	return g.Op("Slice", []string{x, g.Ints(from), g.Ints(to), g.Ints(axis), g.Ints(step)})
}

func (g *frontGraph) reshape(x string, dims ...int64) string {
	return g.Op("Reshape", []string{x, g.Ints(dims...)})
}

// magnitudes adds the spectrum [4n, 129] of the windows' frames. basis holds the rows of cosines, then the rows of sines.
func (g *frontGraph) magnitudes(basis []float32) string {
	mirror := g.slice("input", 1, rowWidth-2, rowWidth-2-rightPad, -1)
	padded := g.Op("Concat", []string{"input", mirror}, onnxfile.AttrInt("axis", 1))
	list := make([]string, frames)
	for i := range list {
		list[i] = g.slice(padded, 1, int64(i*frameStep), int64(i*frameStep+frameSize), 1)
	}
	x := g.reshape(g.Op("Concat", list, onnxfile.AttrInt("axis", 1)), -1, frameSize)
	// Two products avoid copying the halves of a single one.
	half := bins * frameSize
	re, im := g.product(x, frameSize, bins, basis[:half]), g.product(x, frameSize, bins, basis[half:])
	return g.Op("Sqrt", []string{g.Op("Add", []string{g.Op("Mul", []string{re, re}), g.Op("Mul", []string{im, im})})})
}

// layer is a convolution over three frames.
type layer struct {
	in, out, stride int
	kernel, bias    []float32 // kernel as [out][in][3]
}

// convolve adds a convolution, with a frame of zeros on both sides, and ReLU. x
// has t frames of l.in numbers for each window, in any shape; the result has a
// row for each remaining frame.
func (g *frontGraph) convolve(x string, t int, l layer) (string, int) {
	in, out, stride := l.in, l.out, l.stride
	after := (t-1)/stride + 1
	rows := g.reshape(x, -1, int64(t*in))
	taps, first := 3, 0
	if after == 1 {
		taps, first = t, 1 // the other taps only meet zeros
	} else {
		rows = g.Op("Pad", []string{rows, g.Ints(0, int64(in), 0, int64(in))})
		list := make([]string, after)
		for i := range list {
			list[i] = g.slice(rows, 1, int64(i*stride*in), int64((i*stride+3)*in), 1)
		}
		rows = g.reshape(g.Op("Concat", list, onnxfile.AttrInt("axis", 1)), -1, int64(3*in))
	}
	w := make([]float32, 0, out*taps*in) // [out][taps][in], from [out][in][3]
	for o := range out {
		for k := range taps {
			for c := range in {
				w = append(w, l.kernel[(o*in+c)*3+first+k])
			}
		}
	}
	weights, bias := g.weights(taps*in, out, w), g.Const(onnxfile.Floats([]int64{int64(out)}, l.bias...))
	return g.Op("Relu", []string{g.Op("Gemm", []string{rows, weights, bias})}), after
}

// weights adds weights [out][in] as a constant [in][out].
func (g *frontGraph) weights(in, out int, w []float32) string {
	t := make([]float32, len(w))
	dsp.Transpose(t, w, out, in, out)
	return g.Const(onnxfile.Floats([]int64{int64(in), int64(out)}, t...))
}

// product multiplies rows x with weights [out][in].
func (g *frontGraph) product(x string, in, out int, w []float32) string {
	return g.Op("MatMul", []string{x, g.weights(in, out, w)})
}

// cellGraph is the LSTM over consecutive windows and their probabilities:
// features [n, 1, 128], h, c [1, 1, 128] → probs [n], hn, cn. PyTorch's order
// of gates is input, forget, cell, output; ONNX's input, output, forget, cell.
func cellGraph(weightIH, weightHH, biasIH, biasHH, out, outBias []float32) []byte {
	const h = featureSize
	order := func(w []float32, width int) []float32 {
		gate := func(i int) []float32 { return w[i*h*width : (i+1)*h*width] }
		t := make([]float32, 0, len(w))
		for _, i := range []int{0, 3, 1, 2} {
			t = append(t, gate(i)...)
		}
		return t
	}
	g := onnxfile.NewGraph()
	g.Input("features", onnxfile.Float32, "n", 1, h)
	g.Input("h", onnxfile.Float32, 1, 1, h).Input("c", onnxfile.Float32, 1, 1, h)
	g.Node("LSTM", []string{
		"features",
		g.Const(onnxfile.Floats([]int64{1, 4 * h, h}, order(weightIH, h)...)),
		g.Const(onnxfile.Floats([]int64{1, 4 * h, h}, order(weightHH, h)...)),
		g.Const(onnxfile.Floats([]int64{1, 8 * h}, append(order(biasIH, 1), order(biasHH, 1)...)...)),
		"", "h", "c",
	}, []string{"y", "hn", "cn"}, onnxfile.AttrInt("hidden_size", h))
	x := g.Op("Relu", []string{g.Op("Reshape", []string{"y", g.Ints(-1, h)})})
	x = g.Op("Gemm", []string{x, g.Const(onnxfile.Floats([]int64{h, 1}, out...)), g.Const(onnxfile.Floats([]int64{1}, outBias...))})
	x = g.Op("Sigmoid", []string{x})
	g.Node("Reshape", []string{x, g.Ints(-1)}, []string{"probs"})
	g.Output("probs", onnxfile.Float32, "n")
	g.Output("hn", onnxfile.Float32, 1, 1, h).Output("cn", onnxfile.Float32, 1, 1, h)
	return g.Bytes()
}
