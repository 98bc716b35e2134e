package onnx

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// The sizes of madeUpParts.
const (
	testHeads, testWidth, testInner, testLayers, testTokens = 2, 12, 20, 2, 17
	testDim                                                 = testWidth / testHeads
)

var testFrequencies = []float32{1, 0.3}

// weightTable holds the weights of madeUpParts as numbers, by module or name;
// matrices are [in][out].
type weightTable map[string][]float64

// madeUpParts returns parts as the published 8-bit files have them: signed, as
// Moonshine base, or unsigned, as tiny.
func madeUpParts(signed bool) (encoder, decoder *onnxfile.Parts, table weightTable) {
	r := rand.New(rand.NewPCG(3, 4))
	table = weightTable{}
	parts := func() *onnxfile.Parts {
		return &onnxfile.Parts{Nodes: map[string][]string{}, Tensors: map[string]onnxfile.Tensor{
			"onnx::Expand_1": onnxfile.Floats([]int64{1, int64(len(testFrequencies)), 1}, testFrequencies...),
		}}
	}
	encoder, decoder = parts(), parts()
	float := func(p *onnxfile.Parts, name string, scale float64, shape ...int64) {
		t := onnxfile.Floats(shape, randomFloats(r, int(product(shape)), scale)...)
		p.Tensors[name] = t
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_merged_0"), "_add_tensor")
		for _, v := range t.Floats() {
			table[name] = append(table[name], float64(v))
		}
	}
	whole := func(p *onnxfile.Parts, stem, name string, in, out int) {
		const zero, scale = 120, 0.004
		raw, list := make([]byte, in*out), make([]float64, in*out)
		for i := range raw {
			raw[i] = byte(r.IntN(256))
			list[i] = (float64(raw[i]) - zero) * scale
		}
		shape := []int64{int64(in), int64(out)}
		p.Tensors[stem+"_quantized"] = onnxfile.RawTensor(onnxfile.Uint8, shape, raw)
		p.Tensors[stem+"_scale"] = onnxfile.Floats(nil, scale)
		p.Tensors[stem+"_zero_point"] = onnxfile.RawTensor(onnxfile.Uint8, nil, []byte{zero})
		if signed {
			for i := range raw {
				raw[i] -= 128
			}
			p.Tensors[stem+"_quantized"] = onnxfile.RawTensor(onnxfile.Int8, shape, raw)
			p.Tensors[stem+"_zero_point"] = onnxfile.Floats([]int64{1}, (128-zero)*scale)
		}
		table[name] = list
	}
	linear := func(p *onnxfile.Parts, root, module string, in, out int) {
		stem := fmt.Sprintf("onnx::MatMul_%d", len(p.Nodes))
		node, ending := "/MatMul_quant", "_quantized"
		if signed {
			node, ending = "/MatMul", "_add_tensor"
		}
		p.Nodes[root+module+node] = []string{"x", stem + ending}
		whole(p, stem, strings.Trim(root+module, "/"), in, out)
	}
	w := int64(testWidth)
	float(encoder, "conv1.weight_add_tensor", 0.3, w, 1, 127)
	float(encoder, "conv2.weight_add_tensor", 0.1, 2*w, w, 7)
	float(encoder, "conv3.weight_add_tensor", 0.1, w, 2*w, 3)
	float(encoder, "conv2.bias", 0.1, 2*w)
	float(encoder, "conv3.bias", 0.1, w)
	for _, op := range []string{"Mul", "Add"} {
		encoder.Nodes["/groupnorm/"+op] = []string{"x", "onnx::" + op}
		float(encoder, "onnx::"+op, 1, w, 1)
	}
	float(encoder, "layer_norm.weight", 1, w)
	float(decoder, "model.decoder.norm.weight_merged_0", 2, w)
	whole(decoder, "model.decoder.embed_tokens.weight_merged_0", "tokens", testTokens, testWidth)
	linear(decoder, "/", "proj_out", testWidth, testTokens)
	for i := range testLayers {
		l := fmt.Sprintf("layers.%d", i)
		for _, p := range []*onnxfile.Parts{encoder, decoder} {
			side, ending, inner := "", "", testInner
			if p == decoder {
				side, ending, inner = "model.decoder.", "_merged_0", 2*testInner
			}
			root := "/" + strings.ReplaceAll(side, ".", "/")
			for _, m := range []string{"q_proj", "k_proj", "v_proj", "o_proj"} {
				linear(p, root, l+"/self_attn/"+m, testWidth, testWidth)
				if p == decoder {
					linear(p, root, l+"/encoder_attn/"+m, testWidth, testWidth)
				}
			}
			linear(p, root, l+"/mlp/fc1", testWidth, inner)
			linear(p, root, l+"/mlp/fc2", testInner, testWidth)
			float(p, side+l+".mlp.fc1.bias"+ending, 1, int64(inner))
			for _, name := range []string{"mlp.fc2.bias", "input_layernorm.weight", "post_attention_layernorm.weight"} {
				float(p, side+l+"."+name+ending, 1, w)
			}
		}
		float(decoder, "model.decoder."+l+".final_layernorm.weight_merged_0", 1, w)
	}
	return encoder, decoder, table
}

func product(shape []int64) int64 { n, _ := onnxfile.Elements(shape); return n }

type rows [][]float64

func (x rows) each(f func(row []float64, at int) []float64) rows {
	out := make(rows, len(x))
	for i, row := range x {
		out[i] = f(row, i)
	}
	return out
}

// linear is x·w + bias.
func (t weightTable) linear(x rows, module string) rows {
	w, bias := t[module], t[strings.ReplaceAll(module, "/", ".")+".bias"]
	return x.each(func(row []float64, _ int) []float64 {
		out := make([]float64, len(w)/len(row))
		copy(out, bias)
		for i, v := range row {
			for k := range out {
				out[k] += v * w[i*len(out)+k]
			}
		}
		return out
	})
}

func (t weightTable) normal(x rows, weight string) rows {
	return x.each(func(row []float64, _ int) []float64 {
		var mean, square float64
		for _, v := range row {
			mean += v / float64(len(row))
			square += v * v / float64(len(row))
		}
		out := make([]float64, len(row))
		for i, v := range row {
			out[i] = (v - mean) / math.Sqrt(square-mean*mean+epsilon) * t[weight][i]
		}
		return out
	})
}

func added(x, y rows) rows {
	return x.each(func(row []float64, at int) []float64 {
		out := make([]float64, len(row))
		for i := range row {
			out[i] = row[i] + y[at][i]
		}
		return out
	})
}

func rotated(x rows) rows {
	return x.each(func(row []float64, at int) []float64 {
		out := append([]float64(nil), row...)
		for h := range testHeads {
			for i, f := range testFrequencies {
				s, c := math.Sincos(float64(f) * float64(at))
				k := h*testDim + 2*i
				out[k], out[k+1] = row[k]*c-row[k+1]*s, row[k+1]*c+row[k]*s
			}
		}
		return out
	})
}

func attended(q, k, v rows, causal bool) rows {
	return q.each(func(row []float64, at int) []float64 {
		out := make([]float64, len(row))
		for h := 0; h < len(row); h += testDim {
			var total float64
			weights := make([]float64, len(k))
			for j := range k {
				if causal && j > at {
					continue
				}
				var s float64
				for i := h; i < h+testDim; i++ {
					s += row[i] * k[j][i] / math.Sqrt(testDim)
				}
				weights[j] = math.Exp(s)
				total += weights[j]
			}
			for j := range k {
				for i := h; i < h+testDim; i++ {
					out[i] += weights[j] / total * v[j][i]
				}
			}
		}
		return out
	})
}

func gelu(row []float64, _ int) []float64 {
	out := make([]float64, len(row))
	for i, v := range row {
		out[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
	}
	return out
}

// gated is the second half of each row by SiLU, times the first.
func gated(row []float64, _ int) []float64 {
	out := make([]float64, len(row)/2)
	for i := range out {
		g := row[len(out)+i]
		out[i] = row[i] * g / (1 + math.Exp(-g))
	}
	return out
}

// convolved is a convolution of x by frames, with weights [out][in][size].
func (t weightTable) convolved(x rows, name string, out, size, stride int) rows {
	w, bias := t[name+".weight"], t[name+".bias"]
	var y rows
	for at := 0; at+size <= len(x); at += stride {
		row := make([]float64, out)
		copy(row, bias)
		for o := range row {
			for k := range size {
				for i, v := range x[at+k] {
					row[o] += v * w[(o*len(x[0])+i)*size+k]
				}
			}
		}
		y = append(y, row)
	}
	return y
}

func (t weightTable) encoder(samples []float32) rows {
	var x rows
	for _, s := range samples {
		x = append(x, []float64{float64(s)})
	}
	x = t.convolved(x, "conv1", testWidth, 127, 64)
	var mean, square float64
	n := float64(len(x) * testWidth)
	x = x.each(func(row []float64, _ int) []float64 {
		for i, v := range row {
			row[i] = math.Tanh(v)
			mean += row[i] / n
			square += row[i] * row[i] / n
		}
		return row
	})
	x = x.each(func(row []float64, _ int) []float64 {
		for i, v := range row {
			row[i] = (v-mean)/math.Sqrt(square-mean*mean+epsilon)*t["onnx::Mul"][i] + t["onnx::Add"][i]
		}
		return row
	})
	x = t.convolved(x, "conv2", 2*testWidth, 7, 3).each(gelu)
	x = t.convolved(x, "conv3", testWidth, 3, 2).each(gelu)
	for i := range testLayers {
		l := fmt.Sprintf("layers.%d", i)
		y := t.normal(x, l+".input_layernorm.weight")
		y = attended(rotated(t.linear(y, l+"/self_attn/q_proj")), rotated(t.linear(y, l+"/self_attn/k_proj")), t.linear(y, l+"/self_attn/v_proj"), false)
		x = added(x, t.linear(y, l+"/self_attn/o_proj"))
		y = t.normal(x, l+".post_attention_layernorm.weight")
		x = added(x, t.linear(t.linear(y, l+"/mlp/fc1").each(gelu), l+"/mlp/fc2"))
	}
	return t.normal(x, "layer_norm.weight")
}

// decoder returns the scores after each of the tokens.
func (t weightTable) decoder(tokens []int64, sound rows) rows {
	var x rows
	for _, id := range tokens {
		x = append(x, t["tokens"][id*testWidth:][:testWidth])
	}
	for i := range testLayers {
		l := fmt.Sprintf("model/decoder/layers.%d", i)
		norm := fmt.Sprintf("model.decoder.layers.%d.", i)
		y := t.normal(x, norm+"input_layernorm.weight")
		y = attended(rotated(t.linear(y, l+"/self_attn/q_proj")), rotated(t.linear(y, l+"/self_attn/k_proj")), t.linear(y, l+"/self_attn/v_proj"), true)
		x = added(x, t.linear(y, l+"/self_attn/o_proj"))
		y = t.linear(t.normal(x, norm+"post_attention_layernorm.weight"), l+"/encoder_attn/q_proj")
		y = attended(y, t.linear(sound, l+"/encoder_attn/k_proj"), t.linear(sound, l+"/encoder_attn/v_proj"), false)
		x = added(x, t.linear(y, l+"/encoder_attn/o_proj"))
		y = t.linear(t.normal(x, norm+"final_layernorm.weight"), l+"/mlp/fc1").each(gated)
		x = added(x, t.linear(y, l+"/mlp/fc2"))
	}
	return t.linear(t.normal(x, "model.decoder.norm.weight"), "proj_out")
}

// TestMoonshineGraphs compares the graphs that are built from a published
// model's weights with the definition of the network.
func TestMoonshineGraphs(t *testing.T) {
	for name, signed := range map[string]bool{"tiny": false, "base": true} {
		t.Run(name, func(t *testing.T) {
			encoder, decoder, table := madeUpParts(signed)
			samples := randomFloats(rand.New(rand.NewPCG(1, 1)), 6000, 1)
			run := func(g *onnxfile.Graph, in map[string]*ort.Tensor) map[string]*ort.Tensor {
				t.Helper()
				require.NotNil(t, g, "a weight is missing")
				s, err := ort.Open(ort.Source{Data: g.Bytes()}, ort.Options{})
				require.NoError(t, err)
				defer func() { require.NoError(t, s.Close()) }()
				list, err := s.Run(context.Background(), in)
				require.NoError(t, err)
				out := map[string]*ort.Tensor{}
				for i, o := range s.Graph().Outputs {
					out[o.Name] = list[i]
				}
				return out
			}
			states := run(moonshineEncoder(encoder, testHeads), map[string]*ort.Tensor{"input_values": ort.NewFloat32([]int64{1, 6000}, samples)})["last_hidden_state"]
			want := table.encoder(samples)
			near(t, want, states.Float32(), 0.05)

			in := map[string]*ort.Tensor{"bias": ort.NewFloat32([]int64{1, 1, 1, int64(len(want))}, make([]float32, len(want)))}
			for name, x := range run(moonshineSound(decoder, testHeads), map[string]*ort.Tensor{"encoder_hidden_states": states}) {
				in[strings.Replace(name, presentPrefix, pastPrefix, 1)] = x
			}
			for i := range testLayers {
				for _, kind := range []string{"key", "value"} {
					in[fmt.Sprintf("%s%d.decoder.%s", pastPrefix, i, kind)] = ort.NewFloat32([]int64{1, testHeads, 0, testDim}, nil)
				}
			}
			tokens := []int64{3, 16, 0, 7, 7, 2}
			wanted := table.decoder(tokens, want)
			step := moonshineStep(decoder, testHeads)
			for i, id := range tokens {
				in["input_ids"] = ort.NewInt64([]int64{1, 1}, []int64{id})
				out := run(step, in)
				near(t, wanted[i:i+1], out["logits"].Float32(), 0.05)
				for name, x := range out {
					if strings.Contains(name, ".decoder.") {
						in[strings.Replace(name, presentPrefix, pastPrefix, 1)] = x
					}
				}
			}

			delete(decoder.Nodes, "/model/decoder/layers.1/mlp/fc1/MatMul")
			delete(decoder.Nodes, "/model/decoder/layers.1/mlp/fc1/MatMul_quant")
			assert.Nil(t, moonshineStep(decoder, testHeads), "a graph without one of its weights")
			assert.Nil(t, moonshineEncoder(encoder, testHeads+3), "heads that do not divide the width")
		})
	}
}

// near compares numbers that 8 bits of the activations round: most differences
// must be a fraction of the numbers' spread.
func near(t *testing.T, want rows, got []float32, within float64) {
	t.Helper()
	var wrong, spread float64
	i := 0
	for _, row := range want {
		for _, v := range row {
			wrong += (v - float64(got[i])) * (v - float64(got[i]))
			spread += v * v
			i++
		}
	}
	require.Len(t, got, i)
	t.Logf("off by %.4f of the numbers", math.Sqrt(wrong/spread))
	assert.Less(t, math.Sqrt(wrong/spread), within)
}
