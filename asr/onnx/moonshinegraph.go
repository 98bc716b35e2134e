package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// The published graphs of Moonshine have 600 to 1,200 nodes, most of them for
// shapes and for padding: a decoder's step spends half its time on them, and an
// encoder keeps the attention of all frames to all frames. The functions here
// build graphs of 100 to 190 nodes with the same weights, whose texts differ by
// rounding alone (docs/measurements/moonshine.md).

// moonshineGraph is a graph with the weights of a published one, which are
// looked up by the names of their modules.
type moonshineGraph struct {
	*onnxfile.Graph
	parts        *onnxfile.Parts
	root, prefix string // of the modules' paths and of their tensors' names
	heads, width int64  // heads of a layer, and numbers of a frame or token
	rotary       int64  // numbers of a head that positions rotate
	missing      bool   // a weight, so that the graph cannot be built
}

const (
	decoderRoot = "/model/decoder/"
	// epsilon is the constant of Moonshine's layer normalizations.
	epsilon = 1e-5
	// mostPositions is above the number of frames, or tokens, of a window.
	mostPositions = int64(longestWindow) * 44
)

func newMoonshineGraph(p *onnxfile.Parts, root string, heads int64) *moonshineGraph {
	g := &moonshineGraph{Graph: onnxfile.NewGraph(), parts: p, root: root, prefix: strings.ReplaceAll(root[1:], "/", "."), heads: heads}
	g.Opset = 18
	g.width = int64(len(p.Tensors[g.stored("layers.0.input_layernorm.weight")].Floats()))
	g.missing = g.width%heads != 0
	return g
}

// done returns the graph, or nil if a weight is missing.
func (g *moonshineGraph) done() *onnxfile.Graph {
	if g.missing || g.width == 0 {
		return nil
	}
	return g.Graph
}

func (g *moonshineGraph) layers() (n int) {
	for g.stored(fmt.Sprintf("layers.%d.input_layernorm.weight", n)) != "" {
		n++
	}
	return n
}

// stored returns the name in the file of a module's tensor; "" if it has none.
func (g *moonshineGraph) stored(name string) string {
	for _, ending := range []string{"", "_merged_0", "_add_tensor"} {
		if _, ok := g.parts.Tensors[g.prefix+name+ending]; ok {
			return g.prefix + name + ending
		}
	}
	return ""
}

// float returns a module's weight or bias as floats; the file may have 8 bits.
func (g *moonshineGraph) float(name string) string {
	if at := g.stored(name); at != "" {
		return g.Const(g.parts.Tensors[at])
	}
	q, scale, zero := g.whole(g.prefix + name)
	out := make([]float32, len(q.Raw()))
	for i, v := range q.Raw() {
		out[i] = (float32(v) - float32(zero)) * scale
	}
	return g.Const(onnxfile.Floats(q.Shape(), out...))
}

// whole returns weights of 8 bits: (number − zero) · scale. Files store
// unsigned numbers, or signed numbers and the float −zero · scale.
func (g *moonshineGraph) whole(name string) (q onnxfile.Tensor, scale float32, zero uint8) {
	q = g.parts.Tensors[name+"_quantized"]
	s, z := g.parts.Tensors[name+"_scale"], g.parts.Tensors[name+"_zero_point"]
	if len(s.Floats()) != 1 || len(q.Raw()) == 0 {
		g.missing = true
		return q, 0, 0
	}
	scale = s.Floats()[0]
	switch {
	case q.Type() == onnxfile.Uint8 && z.Type() == onnxfile.Uint8 && len(z.Raw()) == 1:
		return q, scale, z.Raw()[0]
	case q.Type() == onnxfile.Int8 && len(z.Floats()) == 1:
		at := 128 - float64(z.Floats()[0])/float64(scale)
		g.missing = g.missing || !(math.Abs(at-math.Round(at)) < 0.01 && at > -0.5 && at < 255.5)
		raw := make([]byte, len(q.Raw()))
		for i, v := range q.Raw() {
			raw[i] = v + 128
		}
		return onnxfile.RawTensor(onnxfile.Uint8, q.Shape(), raw), scale, uint8(math.Round(min(max(at, 0), 255)))
	}
	g.missing = true
	return q, 0, 0
}

// weights returns constants for weights of 8 bits: numbers, scale and zero.
func (g *moonshineGraph) weights(name string, transpose bool) []string {
	q, scale, zero := g.whole(name)
	if transpose && len(q.Shape()) == 2 {
		rows, columns := int(q.Shape()[0]), int(q.Shape()[1])
		raw := make([]byte, len(q.Raw()))
		dsp.Transpose(raw, q.Raw(), rows, columns, rows)
		q = onnxfile.RawTensor(onnxfile.Uint8, []int64{int64(columns), int64(rows)}, raw)
	}
	return []string{g.Const(q), g.Const(onnxfile.Floats(nil, scale)), g.Const(onnxfile.RawTensor(onnxfile.Uint8, nil, []byte{zero}))}
}

// linear multiplies x by the 8-bit weights of the first of the modules that the
// file has, and adds its bias, if any.
func (g *moonshineGraph) linear(x string, modules ...string) string {
	for _, m := range modules {
		inputs, ok := g.parts.Nodes[g.root+m+"/MatMul_quant"]
		if !ok {
			inputs = g.parts.Nodes[g.root+m+"/MatMul"]
		}
		if len(inputs) < 2 {
			continue
		}
		name, transposed := strings.CutSuffix(inputs[1], "_transposed")
		if transposed {
			name += "_merged_0"
		}
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_add_tensor"), "_quantized")
		inputs = append([]string{x}, g.weights(name, transposed)...)
		if bias := strings.ReplaceAll(m, "/", ".") + ".bias"; g.stored(bias) != "" {
			inputs = append(inputs, g.float(bias))
		}
		return g.Op(onnxfile.Contrib+".DynamicQuantizeMatMul", inputs)
	}
	g.missing = true
	return x
}

// rotation returns the cosines and sines of all positions.
func (g *moonshineGraph) rotation() []string {
	var frequencies []float32
	for _, t := range g.parts.Tensors {
		f, s := t.Floats(), t.Shape()
		if len(s) == 3 && s[0]*s[2] == 1 && len(f) > 1 && f[0] == 1 {
			frequencies = f
		}
	}
	g.rotary = int64(2 * len(frequencies))
	g.missing = g.missing || len(frequencies) == 0 || g.rotary > g.width/g.heads
	var cos, sin []float32
	for at := range mostPositions {
		for _, f := range frequencies {
			s, c := math.Sincos(float64(f) * float64(at))
			cos, sin = append(cos, float32(c)), append(sin, float32(s))
		}
	}
	shape := []int64{mostPositions, g.rotary / 2}
	return []string{g.Const(onnxfile.Floats(shape, cos...)), g.Const(onnxfile.Floats(shape, sin...))}
}

// rotate rotates keys or queries by their positions, the first of which is at.
func (g *moonshineGraph) rotate(x, at string, tables []string) string {
	return g.Op(onnxfile.Contrib+".RotaryEmbedding", append([]string{x, at}, tables...), onnxfile.AttrInt("interleaved", 1),
		onnxfile.AttrInt("num_heads", g.heads), onnxfile.AttrInt("rotary_embedding_dim", g.rotary))
}

// normalized returns x + y, first normalized and then unchanged.
func (g *moonshineGraph) normalized(x, y, weight string) (normal, sum string) {
	normal, sum = x+"_normal", x+"_sum"
	g.Node(onnxfile.Contrib+".SkipLayerNormalization", []string{x, y, g.float(weight)}, []string{normal, "", "", sum}, onnxfile.AttrFloat("epsilon", epsilon))
	return normal, sum
}

func (g *moonshineGraph) gelu(x string) string { return g.Op(onnxfile.Contrib+".Gelu", []string{x}) }

// moonshineEncoder returns an encoder of windows without padding; nil if the
// parts are no published encoder in 8 bits.
func moonshineEncoder(p *onnxfile.Parts, heads int64) *onnxfile.Graph {
	g := newMoonshineGraph(p, "/", heads)
	g.Input("input_values", onnxfile.Float32, "N", "T")
	x := g.Op("Unsqueeze", []string{"input_values", g.Ints(1)})
	x = g.Op("Tanh", []string{g.Op("Conv", []string{x, g.float("conv1.weight")}, onnxfile.AttrInts("strides", 64))})
	one, zero := g.Const(onnxfile.Floats([]int64{1}, 1)), g.Const(onnxfile.Floats([]int64{1}, 0))
	flat := g.Op("Reshape", []string{x, g.Ints(0, 1, -1)})
	flat = g.Op("InstanceNormalization", []string{flat, one, zero}, onnxfile.AttrFloat("epsilon", epsilon))
	x = g.Op("Reshape", []string{flat, g.Op("Shape", []string{x})})
	for _, op := range []string{"Mul", "Add"} {
		name := slices.Concat(p.Nodes["/groupnorm/"+op], []string{"", ""})[1]
		g.missing = g.missing || len(p.Tensors[name].Floats()) == 0
		x = g.Op(op, []string{x, g.Const(p.Tensors[name])})
	}
	for i, stride := range []int64{3, 2} {
		module := fmt.Sprintf("conv%d.", i+2)
		x = g.gelu(g.Op("Conv", []string{x, g.float(module + "weight"), g.float(module + "bias")}, onnxfile.AttrInts("strides", stride)))
	}
	sum := g.Op("Transpose", []string{x}, onnxfile.AttrInts("perm", 0, 2, 1))
	x = g.Op("LayerNormalization", []string{sum, g.float("layers.0.input_layernorm.weight")}, onnxfile.AttrFloat("epsilon", epsilon))
	tables, first, layers := g.rotation(), g.Ints(0), g.layers()
	for i := range layers {
		l := fmt.Sprintf("layers.%d", i)
		q, k, v := g.linear(x, l+"/self_attn/q_proj"), g.linear(x, l+"/self_attn/k_proj"), g.linear(x, l+"/self_attn/v_proj")
		seen := g.Op(onnxfile.Contrib+".MultiHeadAttention", []string{g.rotate(q, first, tables), g.rotate(k, first, tables), v}, onnxfile.AttrInt("num_heads", heads))
		x, sum = g.normalized(sum, g.linear(seen, l+"/self_attn/o_proj", l+"/self_attn/dense"), l+".post_attention_layernorm.weight")
		x = g.linear(g.gelu(g.linear(x, l+"/mlp/fc1")), l+"/mlp/fc2")
		x, sum = g.normalized(sum, x, g.next(i, layers, "layer_norm.weight"))
	}
	g.Node("Identity", []string{x}, []string{"last_hidden_state"})
	g.Output("last_hidden_state", onnxfile.Float32, "N", "F", g.width)
	return g.done()
}

// next returns the weight of the normalization after layer i.
func (g *moonshineGraph) next(i, layers int, last string) string {
	if i+1 == layers {
		return last
	}
	return fmt.Sprintf("layers.%d.input_layernorm.weight", i+1)
}

// moonshineSound returns the keys and values of the encoder's output for the
// decoder's attention; nil if the parts are no published decoder in 8 bits.
func moonshineSound(p *onnxfile.Parts, heads int64) *onnxfile.Graph {
	g := newMoonshineGraph(p, decoderRoot, heads)
	g.Input("encoder_hidden_states", onnxfile.Float32, "N", "F", g.width)
	shape := g.Ints(0, 0, heads, g.width/heads)
	for i := range g.layers() {
		for kind, module := range map[string]string{"key": "k_proj", "value": "v_proj"} {
			x := g.Op("Reshape", []string{g.linear("encoder_hidden_states", fmt.Sprintf("layers.%d/encoder_attn/%s", i, module)), shape})
			out := fmt.Sprintf("%s%d.encoder.%s", presentPrefix, i, kind)
			g.Node("Transpose", []string{x}, []string{out}, onnxfile.AttrInts("perm", 0, 2, 1, 3))
			g.Output(out, onnxfile.Float32, "N", heads, "F", g.width/heads)
		}
	}
	return g.done()
}

// moonshineStep returns a decoder step: from tokens and the keys and values of
// texts and sound to the next tokens' scores; nil if the parts are no published
// decoder in 8 bits. The scores of the attention to the sound get "bias" added
// and are outputs too (onnxfile.Exposed).
func moonshineStep(p *onnxfile.Parts, heads int64) *onnxfile.Graph {
	g := newMoonshineGraph(p, decoderRoot, heads)
	g.Input("input_ids", onnxfile.Int64, "N", 1).Input("bias", onnxfile.Float32, "N", 1, 1, "F")
	tokens := g.prefix + "embed_tokens.weight_merged_0"
	list := g.weights(tokens, false)
	sum := g.Op("DequantizeLinear", append([]string{g.Op("Gather", []string{list[0], "input_ids"})}, list[1:]...))
	x := g.Op("LayerNormalization", []string{sum, g.float("layers.0.input_layernorm.weight")}, onnxfile.AttrFloat("epsilon", epsilon))
	tables, layers, dim := g.rotation(), g.layers(), g.width/heads
	at := g.Op("Shape", []string{pastPrefix + "0.decoder.key"}, onnxfile.AttrInt("start", 2), onnxfile.AttrInt("end", 3))
	apart, together := g.Ints(0, heads, 1, dim), g.Ints(0, 1, g.width)
	for i := range layers {
		l := fmt.Sprintf("layers.%d", i)
		port := func(prefix, side, kind string) string { return fmt.Sprintf("%s%d.%s.%s", prefix, i, side, kind) }
		attend := func(q, k, v string, weigh func(scores string) string) string {
			scores := g.Op(onnxfile.Contrib+".FusedMatMul", []string{g.Op("Reshape", []string{q, apart}), k}, onnxfile.AttrInt("transB", 1),
				onnxfile.AttrFloat("alpha", float32(1/math.Sqrt(float64(dim)))))
			return g.Op("Reshape", []string{g.Op("MatMul", []string{g.Op("Softmax", []string{weigh(scores)}, onnxfile.AttrInt("axis", -1)), v}), together})
		}
		own := func(kind, latest string) string {
			past, now := port(pastPrefix, "decoder", kind), port(presentPrefix, "decoder", kind)
			g.Input(past, onnxfile.Float32, "N", heads, "P", dim).Output(now, onnxfile.Float32, "N", heads, "L", dim)
			g.Node("Concat", []string{past, g.Op("Reshape", []string{latest, apart})}, []string{now}, onnxfile.AttrInt("axis", 2))
			return now
		}
		q, k, v := g.linear(x, l+"/self_attn/q_proj"), g.linear(x, l+"/self_attn/k_proj"), g.linear(x, l+"/self_attn/v_proj")
		seen := attend(g.rotate(q, at, tables), own("key", g.rotate(k, at, tables)), own("value", v), func(s string) string { return s })
		x, sum = g.normalized(sum, g.linear(seen, l+"/self_attn/o_proj", l+"/self_attn/dense"), l+".post_attention_layernorm.weight")
		key, value := port(pastPrefix, "encoder", "key"), port(pastPrefix, "encoder", "value")
		g.Input(key, onnxfile.Float32, "N", heads, "F", dim).Input(value, onnxfile.Float32, "N", heads, "F", dim)
		seen = attend(g.linear(x, l+"/encoder_attn/q_proj"), key, value, func(s string) string {
			g.Node("Add", []string{s, "bias"}, []string{onnxfile.Exposed(i)})
			g.Output(onnxfile.Exposed(i), onnxfile.Float32, "N", heads, 1, "F")
			return onnxfile.Exposed(i)
		})
		x, sum = g.normalized(sum, g.linear(seen, l+"/encoder_attn/o_proj", l+"/encoder_attn/dense"), l+".final_layernorm.weight")
		halves := []string{l + "_up", l + "_gate"}
		g.Node("Split", []string{g.linear(x, l+"/mlp/fc1", l+"/mlp/up_proj")}, halves, onnxfile.AttrInt("axis", 2), onnxfile.AttrInt("num_outputs", 2))
		gate := g.Op(onnxfile.Contrib+".QuickGelu", halves[1:], onnxfile.AttrFloat("alpha", 1))
		x = g.linear(g.Op("Mul", []string{halves[0], gate}), l+"/mlp/fc2", l+"/mlp/down_proj")
		x, sum = g.normalized(sum, x, g.next(i, layers, "norm.weight"))
	}
	g.root = "/"
	g.Node("Identity", []string{g.linear(x, "proj_out")}, []string{"logits"})
	g.Output("logits", onnxfile.Float32, "N", 1, append(p.Tensors[tokens+"_quantized"].Shape(), 0)[0])
	return g.done()
}
