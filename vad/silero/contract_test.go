package silero

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/native"
)

func TestUnknownFormsAreRefused(t *testing.T) {
	v3 := onnxfile.NewGraph()
	v3.Input("input", onnxfile.Float32, "N", 512).Input("h0", onnxfile.Float32, 2, "N", 64).Input("c0", onnxfile.Float32, 2, "N", 64)
	v3.Node("Identity", []string{"input"}, []string{"output"}).Output("output", onnxfile.Float32, 1, 2, 1)
	v4 := onnxfile.NewGraph()
	v4.Input("input", onnxfile.Float32, "N", 512).Input("sr", onnxfile.Int64).Input("h", onnxfile.Float32, 2, "N", 64).Input("c", onnxfile.Float32, 2, "N", 64)
	v4.Node("Identity", []string{"input"}, []string{"output"}).Output("output", onnxfile.Float32, "N", 1)
	v4.Node("Identity", []string{"h"}, []string{"hn"}).Output("hn", onnxfile.Float32, 2, "N", 64)
	v4.Node("Identity", []string{"c"}, []string{"cn"}).Output("cn", onnxfile.Float32, 2, "N", 64)
	narrow := constant(512)
	extra := constant(576)
	extra.Input("mood", onnxfile.Float32, 1)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"v3":           {v3.Bytes(), "Silero VAD v3 or v4: expected silero_vad.onnx"},
		"v4":           {v4.Bytes(), "Silero VAD v3 or v4: expected silero_vad.onnx"},
		"no context":   {narrow.Bytes(), "expected input input float32[?,576], found input float32[?,512]"},
		"extra input":  {extra.Bytes(), "nothing to feed to input mood float32[1]"},
		"other layers": {constant(576).Bytes(), "other layers: expected silero_vad.onnx of version 5 or 6"},
		"other sums":   {alike().Bytes(), "other layers: expected silero_vad.onnx of version 5 or 6"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openSource(ort.Source{Data: tt.data, Name: "odd.onnx", Role: "vad"}, "", Options{})
			if errors.Is(err, native.ErrMissing) {
				t.Skip(err)
			}
			require.ErrorIs(t, err, ort.ErrContract)
			assert.ErrorContains(t, err, "vad model odd.onnx")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

// constant returns a network with the inputs and outputs of v5 whose output is
// 0.25.
func constant(width int) *onnxfile.Graph {
	g := onnxfile.NewGraph()
	g.Input("input", onnxfile.Float32, "N", width).Input("state", onnxfile.Float32, 2, "N", 128)
	first := g.Op("Gather", []string{"input", g.Const(onnxfile.Ints([]int64{1}, 0))}, onnxfile.AttrInt("axis", 1))
	zero := g.Op("Mul", []string{first, g.Const(onnxfile.Floats(nil, 0))})
	g.Node("Add", []string{zero, g.Const(onnxfile.Floats(nil, 0.25))}, []string{"output"}).Output("output", onnxfile.Float32, "N", 1)
	g.Node("Identity", []string{"state"}, []string{"stateN"}).Output("stateN", onnxfile.Float32, 2, "N", 128)
	return g
}

// alike returns a network with the names and shapes of Silero's weights that
// computes something else.
func alike() *onnxfile.Graph {
	g := constant(576)
	for name, shape := range map[string][]int64{
		"stft.forward_basis_buffer":     {258, 1, 256},
		"encoder.0.reparam_conv.weight": {128, 129, 3}, "encoder.0.reparam_conv.bias": {128},
		"encoder.1.reparam_conv.weight": {64, 128, 3}, "encoder.1.reparam_conv.bias": {64},
		"encoder.2.reparam_conv.weight": {64, 64, 3}, "encoder.2.reparam_conv.bias": {64},
		"encoder.3.reparam_conv.weight": {128, 64, 3}, "encoder.3.reparam_conv.bias": {128},
		"decoder.rnn.weight_ih": {512, 128}, "decoder.rnn.weight_hh": {512, 128}, "decoder.rnn.bias_ih": {512}, "decoder.rnn.bias_hh": {512},
		"decoder.decoder.2.weight": {1, 128, 1}, "decoder.decoder.2.bias": {1},
	} {
		n, _ := onnxfile.Elements(shape)
		g.Constant(name, onnxfile.Floats(shape, make([]float32, n)...))
	}
	return g
}

// biased returns the network with another bias of its last layer at 16 kHz.
func biased(t *testing.T, bias float32) ort.Source {
	t.Helper()
	src := embedded(t)
	all, err := ort.Weights(src)
	require.NoError(t, err)
	of := func(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
	var was []byte
	for name, w := range all {
		prefix, ok := strings.CutSuffix(name, "decoder.decoder.2.bias")
		if ok && slices.Equal(all[prefix+"stft.forward_basis_buffer"].Shape(), []int64{258, 1, 256}) {
			was = of(w.Floats()[0])
		}
	}
	require.Equal(t, 1, bytes.Count(src.Data, was))
	src.Data = bytes.Replace(src.Data, was, of(bias), 1)
	return src
}

func TestImpossibleProbabilities(t *testing.T) {
	_, err := openSource(biased(t, float32(math.NaN())), "", Options{})
	if errors.Is(err, native.ErrMissing) {
		t.Skip(err)
	}
	assert.ErrorContains(t, err, "vad model silero-v6.2.1")
	assert.ErrorContains(t, err, "NaN as the probability of speech")
}
