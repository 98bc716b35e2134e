//go:build cgo

package whispernet

import (
	"fmt"
	"slices"
	"sync"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// Model is a loaded network. It is immutable and safe for concurrent use.
type Model struct {
	kernels
	header     ggmlfile.Header
	vocabulary *Vocabulary
	mel        *mel

	conv1, conv2     *matrix
	encoderPositions memory[float32]
	encoder          []encoderLayer
	encoderNorm      norm
	decoder          []decoderLayer
	decoderNorm      norm
	embedding        *matrix // of the tokens
	decoderPositions memory[float32]
	headSize         int
	thin             bool     // as in Options
	weights          []func() // free them
	mu               sync.Mutex
	passes           int // running passes of the encoder
	idle             []*encoderScratch
}

// encoderLayer is a transformer block of the encoder. qkv holds the projections
// to queries, keys and values, in this order.
type encoderLayer struct {
	attentionNorm, mlpNorm norm
	qkv, out, up, down     *matrix
}

// decoderLayer is a decoder block. keyValue projects the encoder's output.
type decoderLayer struct {
	encoderLayer
	crossNorm                      norm
	crossQuery, keyValue, crossOut *matrix
}

// contextFrames and contextPositions are the mel frames of the encoder's input
// and the positions of its output: 30 s.
const contextFrames, contextPositions = 3000, 1500

// silencePadding is the silence after a sound that is computed in full, in
// positions of 20 ms. With this silence alone, as EncodeBriefly has it, Whisper
// base and the demonstration model detect the same languages in 151 recordings
// as with 30 s.
const silencePadding = 50

// thinning and briefThinning are the positions of silence of which Encode and
// EncodeBriefly compute one, if the model is thin (docs/measurements/live.md).
const thinning, briefThinning = 4, 16

// Open reads a model with 1,500 encoder positions and all its tensors.
func Open(f *ggmlfile.Checked, opt Options) (_ *Model, err error) {
	defer caught(&err)
	k, err := chooseKernels(opt.Kernels)
	if err != nil {
		return nil, fmt.Errorf("whispernet: %w", err)
	}
	m := &Model{kernels: k, header: f.Header, vocabulary: newVocabulary(f.Texts, f.Header), headSize: int(f.TextState / f.TextHeads), thin: opt.Thin}
	opened := false
	defer func() {
		if !opened {
			m.Close()
		}
	}()
	l := &loader{m: m, file: f, k: k, pool: newWorkerPool(opt.Threads), tensors: map[string]ggmlfile.Tensor{}}
	defer l.pool.free()
	for _, t := range f.Index {
		l.tensors[t.Name] = t
	}
	m.load(l)
	if l.err != nil {
		return nil, l.err
	}
	opened = true
	return m, nil
}

func (m *Model) load(l *loader) {
	h := m.header
	m.mel = l.mel()
	m.conv1, m.conv2 = l.convolution("encoder.conv1"), l.convolution("encoder.conv2")
	m.encoderPositions, m.decoderPositions = l.vector("encoder.positional_embedding"), l.vector("decoder.positional_embedding")
	m.encoderNorm, m.decoderNorm = l.norm("encoder.ln_post"), l.norm("decoder.ln")
	m.embedding = l.linear("", "decoder.token_embedding")
	for i := range h.AudioLayers {
		m.encoder = append(m.encoder, l.encoderLayer(fmt.Sprintf("encoder.blocks.%d.", i)))
	}
	for i := range h.TextLayers {
		p := fmt.Sprintf("decoder.blocks.%d.", i)
		m.decoder = append(m.decoder, decoderLayer{
			encoderLayer: l.encoderLayer(p), crossNorm: l.norm(p + "cross_attn_ln"),
			crossQuery: l.linear(p, "cross_attn.query"), keyValue: l.linear(p, "cross_attn.key", "cross_attn.value"), crossOut: l.linear(p, "cross_attn.out"),
		})
	}
}

// Close frees the weights. No window and no decoder of the model may be in use.
func (m *Model) Close() {
	for _, s := range m.idle {
		s.free()
	}
	for _, free := range m.weights {
		free()
	}
	m.idle, m.weights = nil, nil
}

// Header returns the dimensions of the network.
func (m *Model) Header() ggmlfile.Header { return m.header }

// Vocabulary returns the tokens of the model.
func (m *Model) Vocabulary() *Vocabulary { return m.vocabulary }

// loader reads the weights of a file and keeps the first error.
type loader struct {
	m       *Model // owns the weights
	file    *ggmlfile.Checked
	k       kernels
	pool    *workerPool
	tensors map[string]ggmlfile.Tensor
	mu      sync.Mutex
	err     error
}

func (l *loader) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// tensor returns a tensor's place if its type is supported.
func (l *loader) tensor(name string) (t ggmlfile.Tensor, ok bool) {
	t, ok = l.tensors[name]
	switch {
	case !ok:
		l.fail(fmt.Errorf("%w: expected a tensor %s, found none", ggmlfile.ErrNotWhisper, name))
	case !slices.Contains(tensorTypes, t.Kind):
		l.fail(fmt.Errorf("%w: tensor %s: expected weights as f32, f16, q4_0, q4_1, q5_0, q5_1, q8_0 or q2_k to q6_k, found type %d", ggmlfile.ErrNotWhisper, name, t.Kind))
		ok = false
	}
	return t, ok
}

// tensorTypes lists ggml's numbers of the types that og_dequantize reads.
var tensorTypes = []int32{0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14}

func (l *loader) read(offset, size int64) memory[byte] {
	data := allocate[byte](int(size))
	l.readInto(data.values, offset)
	return data
}

func (l *loader) readInto(data []byte, offset int64) {
	if n, err := l.file.ReadAt(data, offset); n < len(data) {
		l.fail(err)
	}
}

// floats returns a tensor's numbers.
func (l *loader) floats(name string) memory[float32] {
	t, ok := l.tensor(name)
	if !ok {
		return memory[float32]{}
	}
	n := 1
	for _, d := range t.Dims {
		n *= int(d)
	}
	data := l.read(t.Offset, t.Size)
	defer data.free()
	return dequantize(t.Kind, data.values, n)
}

// vector returns a tensor's numbers as weights of the model.
func (l *loader) vector(name string) memory[float32] {
	v := l.floats(name)
	l.m.weights = append(l.m.weights, v.free)
	return v
}

// matrix returns room for a matrix of the model.
func (l *loader) matrix(kind, depth, n int) *matrix {
	w := l.k.newMatrix(kind, depth, n)
	l.m.weights = append(l.m.weights, w.free)
	return w
}

func (l *loader) norm(name string) norm {
	return norm{l.vector(name + ".weight"), l.vector(name + ".bias")}
}

func (l *loader) encoderLayer(p string) encoderLayer {
	return encoderLayer{
		attentionNorm: l.norm(p + "attn_ln"), mlpNorm: l.norm(p + "mlp_ln"),
		qkv: l.linear(p, "attn.query", "attn.key", "attn.value"), out: l.linear(p, "attn.out"),
		up: l.linear(p, "mlp.0"), down: l.linear(p, "mlp.2"),
	}
}

// linear reads one or more linear layers with the same input into one matrix; a
// layer without a bias in the file has the bias 0.
func (l *loader) linear(prefix string, names ...string) *matrix {
	var parts []ggmlfile.Tensor
	k, n := 0, 0
	kind := kind8
	for _, name := range names {
		t, ok := l.tensor(prefix + name + ".weight")
		if !ok {
			return nil
		}
		if len(parts) > 0 && parts[0].Kind != t.Kind {
			l.fail(fmt.Errorf("%w: tensor %s: expected weights of type %d, the type of its neighbor, found type %d", ggmlfile.ErrNotWhisper, t.Name, parts[0].Kind, t.Kind))
			return nil
		}
		parts = append(parts, t)
		k, n = int(t.Dims[0]), n+int(t.Dims[1])
		if t.Kind <= 1 {
			kind = kindHalf
		}
	}
	w := l.matrix(kind, k, n)
	w.bias = allocate[float32](n)
	clear(w.bias.values)
	at := 0
	for i, t := range parts {
		if _, ok := l.tensors[prefix+names[i]+".bias"]; ok {
			b := l.floats(prefix + names[i] + ".bias")
			copy(w.bias.values[at:], b.values)
			b.free()
		}
		at += int(t.Dims[1])
	}
	l.fill(w, parts)
	return w
}

// fill packs consecutive tensors of one type into a matrix.
func (l *loader) fill(w *matrix, parts []ggmlfile.Tensor) {
	panel, all := l.k.panel(), panels(w.n, l.k.panel())
	size := parts[0].Size / int64(parts[0].Dims[1]) // of a row
	const chunk = 64                                // panels read together
	l.pool.each((all+chunk-1)/chunk, func(part, _ int) {
		from, to := part*chunk, min(part*chunk+chunk, all)
		rows := allocate[byte]((min(to*panel, w.n) - from*panel) * int(size))
		defer rows.free()
		at, first := rows.values, 0
		for _, t := range parts {
			n := int(t.Dims[1])
			if a, b := max(from*panel-first, 0), min(to*panel-first, n); a < b {
				l.readInto(at[:int64(b-a)*size], t.Offset+int64(a)*size)
				at = at[int64(b-a)*size:]
			}
			first += n
		}
		l.k.pack(w, parts[0].Kind, rows.values, from, to)
	})
}

// convolution reads a convolution over three frames as a linear layer.
func (l *loader) convolution(name string) *matrix {
	t, ok := l.tensor(name + ".weight")
	if !ok {
		return nil
	}
	weights := l.floats(name + ".weight")
	defer weights.free()
	channels, n := int(t.Dims[1]), int(t.Dims[2])
	w := l.matrix(kindHalf, 3*channels, n)
	w.bias = l.floats(name + ".bias")
	rows := allocate[float32](3 * channels * n)
	defer rows.free()
	for o := range n {
		for j := range 3 {
			for c := range channels {
				rows.values[(o*3+j)*channels+c] = weights.values[(o*channels+c)*3+j]
			}
		}
	}
	l.k.pack(w, 0, rows.bytes(), 0, panels(n, l.k.panel()))
	return w
}
