package modeltest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/weightfile"
)

// Matrix is a tensor of synthetic weights.
type Matrix struct {
	Shape  []int64 // the outermost dimension first
	Values []float32
}

// Weights holds the tensors of a small Whisper model by their names in
// transformers.
type Weights map[string]Matrix

// Width is the width of the synthetic model, which has 2 heads, 2 layers each
// in encoder and decoder, 80 mel bands and 51865 tokens.
const Width = 32

// module is a part of a layer: its names and its sizes.
type module struct {
	hf, ct2 string
	out, in int64
}

// modules returns the parts of a layer of the encoder or decoder.
func modules(side string) []module {
	const n = Width
	list := []module{
		{"self_attn.q_proj", "self_attention/linear_0", n, n},
		{"self_attn.k_proj", "self_attention/linear_0", n, n},
		{"self_attn.v_proj", "self_attention/linear_0", n, n},
		{"self_attn.out_proj", "self_attention/linear_1", n, n},
		{"self_attn_layer_norm", "self_attention/layer_norm", n, 0},
		{"fc1", "ffn/linear_0", 4 * n, n},
		{"fc2", "ffn/linear_1", n, 4 * n},
		{"final_layer_norm", "ffn/layer_norm", n, 0},
	}
	if side == "decoder" {
		list = append(list, module{"encoder_attn.q_proj", "attention/linear_0", n, n},
			module{"encoder_attn.k_proj", "attention/linear_1", n, n}, module{"encoder_attn.v_proj", "attention/linear_1", n, n},
			module{"encoder_attn.out_proj", "attention/linear_2", n, n}, module{"encoder_attn_layer_norm", "attention/layer_norm", n, 0})
	}
	return list
}

// WhisperWeights returns a model whose tensors the caller may replace but not
// modify. Every number has 8 bits, and each row holds the largest number, so
// that every type stores the row exactly.
func WhisperWeights() Weights { return maps.Clone(whisperWeights()) }

var whisperWeights = sync.OnceValue(func() Weights {
	w := Weights{}
	seed := uint32(1)
	add := func(name string, shape ...int64) {
		m := Matrix{Shape: shape}
		count := int64(1)
		for _, d := range shape {
			count *= d
		}
		width := count / shape[0]
		for i := range count {
			seed = seed*1664525 + 1013904223
			v := float32(int32(seed>>24)%127) / 64
			if v != 0 && seed>>23&1 == 1 {
				v = -v
			}
			if i%width == 0 {
				v = 127.0 / 64
			}
			m.Values = append(m.Values, v)
		}
		w["model."+name] = m
	}
	add("encoder.conv1.weight", Width, 80, 3)
	add("encoder.conv1.bias", Width)
	add("encoder.conv2.weight", Width, Width, 3)
	add("encoder.conv2.bias", Width)
	add("encoder.embed_positions.weight", 1500, Width)
	add("decoder.embed_positions.weight", 448, Width)
	add("decoder.embed_tokens.weight", 51865, Width)
	for _, side := range []string{"encoder", "decoder"} {
		add(side+".layer_norm.weight", Width)
		add(side+".layer_norm.bias", Width)
		for layer := range 2 {
			for _, m := range modules(side) {
				name := fmt.Sprintf("%s.layers.%d.%s", side, layer, m.hf)
				if m.in == 0 {
					add(name+".weight", m.out)
				} else {
					add(name+".weight", m.out, m.in)
				}
				if !strings.HasSuffix(name, "k_proj") {
					add(name+".bias", m.out)
				}
			}
		}
	}
	return w
})

// Texts writes the text files that transformers stores with the weights.
func Texts(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	Place(t, filepath.Join(dir, "config.json"), []byte(`{"model_type": "whisper", "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
		"encoder_attention_heads": 2, "decoder_attention_heads": 2, "activation_function": "gelu", "_name_or_path": "someone/whisper-made"}`))
	Place(t, filepath.Join(dir, "generation_config.json"), []byte(`{"alignment_heads": [[0, 1], [1, 0]], "no_timestamps_token_id": 50363}`))
	Place(t, filepath.Join(dir, "README.md"), []byte("---\nlicense: apache-2.0\nlanguage: en\n---\n# Whisper made\n"))
	ids := map[string]int{}
	for i, text := range Tokens()[:50258] {
		ids[text] = i
	}
	data, err := json.Marshal(ids)
	require.NoError(t, err)
	Place(t, filepath.Join(dir, "vocab.json"), data)
}

// Tokens returns the model's vocabulary in GPT-2's spelling.
func Tokens() []string {
	list := make([]string, 51865)
	for i := range list {
		switch {
		case i == 50257:
			list[i] = "<|endoftext|>"
		case i >= 51865-1501:
			list[i] = fmt.Sprintf("<|%.2f|>", float64(i-(51865-1501))*0.02)
		case i > 50257:
			list[i] = fmt.Sprintf("<|special%d|>", i)
		default:
			list[i] = fmt.Sprintf("Ġtoken%d", i)
		}
	}
	return list
}

// Numbers encodes values in a type of safetensors.
func Numbers(values []float32, typ weightfile.Type) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		switch typ {
		case weightfile.F32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		case weightfile.F16:
			b = binary.LittleEndian.AppendUint16(b, ggmlfile.Half(v))
		default:
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
		}
	}
	return b
}

// Safetensors returns the weights as one file.
func (w Weights) Safetensors(typ weightfile.Type) []byte {
	head := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(w)) {
		begin := len(data)
		data = append(data, Numbers(w[name].Values, typ)...)
		head[name] = map[string]any{"dtype": typ, "shape": w[name].Shape, "data_offsets": []int{begin, len(data)}}
	}
	text, _ := json.Marshal(head)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), append(text, data...)...)
}

// Shards writes the weights as two files and their index.
func (w Weights) Shards(t testing.TB, dir string, typ weightfile.Type) {
	t.Helper()
	parts := []Weights{{}, {}}
	index := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(w)) {
		parts[i%2][name] = w[name]
		index[name] = fmt.Sprintf("model-%05d-of-00002.safetensors", i%2+1)
	}
	for i, part := range parts {
		Place(t, filepath.Join(dir, fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)), part.Safetensors(typ))
	}
	text, err := json.Marshal(map[string]any{"weight_map": index})
	require.NoError(t, err)
	Place(t, filepath.Join(dir, "model.safetensors.index.json"), text)
}

// CT2Folder writes the model in CTranslate2's layout.
func (w Weights) CT2Folder(t testing.TB, dir string, version uint32, typ weightfile.Type) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	Place(t, filepath.Join(dir, "model.bin"), w.CTranslate2(version, typ))
	Place(t, filepath.Join(dir, "vocabulary.txt"), []byte(strings.Join(Tokens(), "\n")))
	Place(t, filepath.Join(dir, "config.json"), []byte(`{"alignment_heads": [[0, 1], [1, 0]], "suppress_ids": [1]}`))
}

// CTranslate2 returns the weights as a model.bin of the given version.
func (w Weights) CTranslate2(version uint32, typ weightfile.Type) []byte {
	c := &ct2Writer{version: version, typ: typ, variables: map[string][]byte{}}
	join := func(names ...string) (m Matrix) {
		for _, name := range names {
			part, ok := w["model."+name]
			if !ok { // a key without a bias
				part = Matrix{[]int64{Width}, make([]float32, Width)}
			}
			if m.Shape == nil {
				m.Shape = slices.Clone(part.Shape)
				m.Shape[0] = 0
			}
			m.Shape[0] += part.Shape[0]
			m.Values = append(m.Values, part.Values...)
		}
		return m
	}
	plain := weightfile.F32
	for _, conv := range []string{"conv1", "conv2"} {
		c.weights("encoder/"+conv+"/weight", join("encoder."+conv+".weight"))
		c.variable("encoder/"+conv+"/bias", join("encoder."+conv+".bias"), plain)
	}
	c.weights("decoder/embeddings/weight", join("decoder.embed_tokens.weight"))
	for _, side := range []string{"encoder", "decoder"} {
		c.variable(side+"/position_encodings/encodings", join(side+".embed_positions.weight"), plain)
		c.variable(side+"/layer_norm/gamma", join(side+".layer_norm.weight"), plain)
		c.variable(side+"/layer_norm/beta", join(side+".layer_norm.bias"), plain)
		c.variable(side+"/num_heads", Matrix{nil, []float32{2}}, weightfile.I16)
		for layer := range 2 {
			parts := map[string][]string{}
			for _, m := range modules(side) {
				parts[m.ct2] = append(parts[m.ct2], fmt.Sprintf("%s.layers.%d.%s", side, layer, m.hf))
			}
			for name, list := range parts {
				at := fmt.Sprintf("%s/layer_%d/%s/", side, layer, name)
				weights, biases := suffixed(list, ".weight"), suffixed(list, ".bias")
				if strings.HasSuffix(name, "norm") {
					c.variable(at+"gamma", join(weights...), plain)
					c.variable(at+"beta", join(biases...), plain)
					continue
				}
				c.weights(at+"weight", join(weights...))
				c.variable(at+"bias", join(biases...), plain)
			}
		}
	}
	return c.bytes()
}

func suffixed(names []string, end string) (out []string) {
	for _, name := range names {
		out = append(out, name+end)
	}
	return out
}

type ct2Writer struct {
	version   uint32
	typ       weightfile.Type
	variables map[string][]byte
}

func text(s string) []byte {
	return append(binary.LittleEndian.AppendUint16(nil, uint16(len(s)+1)), s+"\x00"...)
}

// weights adds a matrix, with scales if it is stored as integers.
func (c *ct2Writer) weights(name string, m Matrix) {
	switch c.typ {
	case weightfile.I8, weightfile.I16:
		whole, scales := Matrix{Shape: m.Shape}, Matrix{Shape: m.Shape[:1]}
		for _, v := range m.Values {
			whole.Values = append(whole.Values, v*64)
		}
		for range m.Shape[0] {
			scales.Values = append(scales.Values, 64)
		}
		if c.typ == weightfile.I16 {
			scales = Matrix{nil, []float32{64}}
		}
		c.variable(name, whole, c.typ)
		c.variable(name+"_scale", scales, weightfile.F32)
	default:
		c.variable(name, m, c.typ)
	}
}

func (c *ct2Writer) variable(name string, m Matrix, typ weightfile.Type) {
	b := append(text(name), byte(len(m.Shape)))
	for _, d := range m.Shape {
		b = binary.LittleEndian.AppendUint32(b, uint32(d))
	}
	var data []byte
	switch typ {
	case weightfile.F32:
		data = Numbers(m.Values, weightfile.F32)
	case weightfile.F16:
		data = Numbers(m.Values, weightfile.F16)
	case weightfile.BF16:
		data = Numbers(m.Values, weightfile.BF16)
	case weightfile.I16:
		for _, v := range m.Values {
			data = binary.LittleEndian.AppendUint16(data, uint16(int16(v)))
		}
	default:
		for _, v := range m.Values {
			data = append(data, byte(int8(v)))
		}
	}
	if c.version >= 4 {
		b = binary.LittleEndian.AppendUint32(append(b, byte(slices.Index(weightfile.CTranslate2Types, typ))), uint32(len(data)))
	} else {
		b = binary.LittleEndian.AppendUint32(append(b, byte(len(data)/max(len(m.Values), 1))), uint32(len(m.Values)))
	}
	c.variables[name] = append(b, data...)
}

func (c *ct2Writer) bytes() []byte {
	b := binary.LittleEndian.AppendUint32(nil, c.version)
	b = append(b, text(weightfile.WhisperSpec)...)
	b = binary.LittleEndian.AppendUint32(b, 3)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.variables)))
	for _, name := range slices.Sorted(maps.Keys(c.variables)) {
		b = append(b, c.variables[name]...)
	}
	if c.version >= 3 {
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = append(b, text("decoder/projection/weight")...)
		b = append(b, text("decoder/embeddings/weight")...)
	}
	return b
}
