package onnx

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// moonshine is Moonshine (N. Jeffries and others 2024): an encoder of samples,
// and a decoder that writes the text token by token and keeps the keys and
// values of its attention between the tokens.
type moonshine struct {
	// The joiner, which returns the keys and values of the sound, is nil for a
	// published decoder of the first version, which does so itself in its first step.
	sessions
	stream *moonshineStream // the graphs around the encoder of version 2; nil for version 1
	vocab  *vocabulary
	// begin and end are the tokens before and after a text.
	begin, end int
	// masked reports that the encoder takes a mask of the samples. If the decoder
	// does, windows of different lengths may share a run.
	masked bool
	// own and sound are the decoder's keys and values: of the text so far and of
	// the sound.
	own, sound []keys
	// layers is the number of layers whose keys (or values) are one tensor; its
	// decoder reads the token of one text at a time.
	layers, heads, dim int64    // heads of a layer, and numbers of a head
	columns            int      // scores of a step
	attention          []string // by layer: the outputs with its attention to the sound
	align              [][2]int // the model's own alignment heads: layer and head
	grid               grid
}

// keys are keys or values: the names as an input of the decoder and as an output.
type keys struct{ in, out string }

// grid holds the samples of an encoder's frame, and the middle of the first one.
type grid struct{ stride, middle int }

const (
	pastPrefix, presentPrefix = "past_key_values.", "present."
	// moonshinePace is the most tokens per second of sound, the limit of
	// Moonshine's own programs: on unfamiliar sound the network may loop.
	moonshinePace = 6.5
	// moonshineStride is the number of samples per encoder frame, and
	// moonshineMiddle the middle of the first one: half of the 127 samples, 7
	// frames of 64 and 3 of 192 that the three convolutions read.
	moonshineStride = 384
	moonshineMiddle = (127 + 6*64 + 2*192) / 2
	// attentionNodes is the end of the names of the nodes that turn the scores
	// of the attention to the sound into probabilities.
	attentionNodes = "/encoder_attn/Softmax"
)

func openMoonshine(m parts, g *checker) (network, *vocabulary, error) {
	n := &moonshine{sessions: sessions{source: m.ONNX}, align: m.AlignmentHeads, layers: 1, grid: grid{moonshineStride, moonshineMiddle}}
	if has(g.Input, "features") {
		return n.opened(m, g, n.openStream)
	}
	inputs := []ort.Info{float("input_values", -1, -1)}
	if has(g.Input, "attention_mask") {
		inputs = append(inputs, ort.Info{Name: "attention_mask", Type: ort.Int64})
	}
	g.ports(inputs, float("last_hidden_state", -1, -1, -1))
	if !present(m.Decoder) {
		g.fail(ErrFile, "Moonshine needs its decoder (decoder_model_merged) next to the encoder, found none")
	}
	return n.opened(m, g, n.openGraphs)
}

// opened opens a checked model's graphs with its tokens.
func (n *moonshine) opened(m parts, g *checker, graphs func(parts, *checker) error) (network, *vocabulary, error) {
	if g.err != nil {
		return nil, nil, g.err
	}
	symbols, err := moonshineSymbols(m.Tokens)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	if err = graphs(m, g); err == nil {
		n.vocab, err = n.vocabulary(m, symbols)
	}
	if err != nil {
		_ = n.close()
		return nil, nil, err
	}
	return n, n.vocab, nil
}

// openGraphs opens lean graphs with the model's weights if it is a published
// one in 8 bits, and the model's own graphs otherwise.
func (n *moonshine) openGraphs(m parts, encoder *checker) error {
	g, err := ort.Inspect(m.Decoder)
	if err != nil {
		return err
	}
	rebuild := func(build func(*onnxfile.Parts, int64) *onnxfile.Graph) func(*onnxfile.Parts) *onnxfile.Graph {
		past, _ := g.Input(pastPrefix + "0.decoder.key")
		if past.Rank() != 4 || past.Shape[1] < 1 {
			return nil
		}
		return func(p *onnxfile.Parts) *onnxfile.Graph { return build(p, past.Shape[1]) }
	}
	n.encoder, err = ort.Open(m.ONNX, ort.Options{Outputs: []string{"last_hidden_state"}, Rebuild: rebuild(moonshineEncoder)})
	if err == nil {
		n.decoder, err = ort.Open(m.Decoder, ort.Options{Expose: attentionNodes, Rebuild: rebuild(moonshineStep), Arena: true})
	}
	if err == nil && !has(n.decoder.Graph().Input, "use_cache_branch") {
		n.joiner, err = ort.Open(m.Decoder, ort.Options{Rebuild: rebuild(moonshineSound)})
	}
	if err != nil {
		return err
	}
	n.masked = has(n.encoder.Graph().Input, "attention_mask")
	return n.checkDecoder(encoder)
}

// checkDecoder compares the decoder's ports with the contract.
func (n *moonshine) checkDecoder(encoder *checker) error {
	g := &checker{Graph: n.decoder.Graph(), source: n.decoder.Source()}
	out, _ := encoder.Output("last_hidden_state")
	inputs := []ort.Info{{Name: "input_ids", Type: ort.Int64}}
	if n.joiner != nil {
		inputs, n.batch = append(inputs, float("bias", -1, 1, 1, -1)), true
	} else {
		inputs = append(inputs, float("encoder_hidden_states", -1, -1, out.Last()), ort.Info{Name: "use_cache_branch", Type: onnxfile.Bool})
		if n.batch = has(g.Input, "encoder_attention_mask"); n.batch {
			inputs = append(inputs, ort.Info{Name: "encoder_attention_mask", Type: ort.Int64})
		}
	}
	outputs := []ort.Info{float("logits", -1, -1, -1)}
	for _, in := range g.Inputs {
		name, ok := strings.CutPrefix(in.Name, pastPrefix)
		if !ok {
			continue
		}
		list := &n.own
		if strings.Contains(name, ".encoder.") {
			list = &n.sound
		}
		*list = append(*list, keys{in.Name, presentPrefix + name})
		if in.Rank() == 4 && n.heads == 0 {
			n.heads, n.dim = in.Shape[1], in.Shape[3]
		}
		inputs = append(inputs, float(in.Name, -1, max(n.heads, 1), -1, max(n.dim, 1)))
		if n.joiner == nil || list == &n.own {
			outputs = append(outputs, float(presentPrefix+name, -1, max(n.heads, 1), -1, max(n.dim, 1)))
		}
	}
	g.ports(inputs, outputs...)
	return n.measure(g, pastPrefix+"… float32[?,heads,?,size]", onnxfile.Exposed)
}

// measure reads the decoder's width and its outputs with attention, by layer.
func (n *moonshine) measure(g *checker, inputs string, attention func(layer int) string) error {
	logits, _ := g.Output("logits")
	if n.columns = int(logits.Last()); len(n.own) == 0 || n.heads < 1 || n.dim < 1 || n.columns < 1 {
		g.fail(ErrContract, "expected inputs %s and logits of a fixed width (it has %s)", inputs, g.IOList())
	}
	for has(g.Output, attention(len(n.attention))) {
		n.attention = append(n.attention, attention(len(n.attention)))
	}
	return g.err
}

// vocabulary returns the tokens; the decoder may score more than the list has.
func (n *moonshine) vocabulary(m parts, symbols []string) (*vocabulary, error) {
	if len(symbols) > n.columns {
		return nil, fmt.Errorf("%s: %w: %s lists %d tokens, so output logits should have as many columns or more, it has %d",
			n.decoder.Source(), ErrTokens, m.Tokens.Name, len(symbols), n.columns)
	}
	n.begin, n.end = slices.Index(symbols, "<s>"), slices.Index(symbols, "</s>")
	if n.begin < 0 || n.end < 0 {
		return nil, fmt.Errorf("%s: %w: %s lists no <s> and </s>, which begin and end a text", m.ONNX, ErrTokens, m.Tokens.Name)
	}
	return newVocabulary(m.Tokens.Name, append(symbols, make([]string, n.columns-len(symbols))...), writePieces), nil
}

func (*moonshine) features(samples []float32) matrix {
	return matrix{data: slices.Clone(samples), frames: 1, dim: len(samples)}
}

func (n *moonshine) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	sounds := make([]encodedWindow, len(windows))
	for i, w := range windows {
		var err error
		samples := len(w.data)
		if n.stream == nil {
			sounds[i], err = n.encode(ctx, w.data)
		} else if sounds[i], err = n.encodeStream(ctx, w.data, req.draft); sounds[i].frames == 0 && err == nil {
			return make([]hypothesis, 1), nil // too short for a frame
		} else {
			samples = sounds[i].frames * n.grid.stride
		}
		if err != nil {
			return nil, err
		}
		sounds[i].most = max(int(math.Ceil(float64(samples)/audio.SampleRate*moonshinePace)), 1)
	}
	return n.write(ctx, sounds, req)
}

// encode returns the encoder's frames of a window.
func (n *moonshine) encode(ctx context.Context, samples []float32) (w encodedWindow, err error) {
	shape := []int64{1, int64(len(samples))}
	in := map[string]*ort.Tensor{"input_values": ort.NewFloat32(shape, samples)}
	if n.masked {
		in["attention_mask"] = ort.NewInt64(shape, slices.Repeat([]int64{1}, len(samples)))
	}
	w, _, err = oneWindow(ctx, n.encoder, in, "last_hidden_state")
	return w, err
}

// oneWindow runs a graph whose first output are the frames of one window.
func oneWindow(ctx context.Context, s *ort.Session, in map[string]*ort.Tensor, outputs ...string) (w encodedWindow, others []*ort.Tensor, err error) {
	out, err := s.Run(ctx, in, outputs...)
	if err != nil {
		return w, nil, err
	}
	shape := out[0].Shape()
	if len(shape) != 3 || shape[0] != 1 || shape[1] < 1 {
		return w, nil, fmt.Errorf("%s: %w: output %s: expected float32[1,?,?], found %v", s.Source(), ErrContract, outputs[0], shape)
	}
	return encodedWindow{states: out[0].Float32(), frames: int(shape[1]), dim: int(shape[2])}, out[1:], nil
}

type encodedWindow struct {
	states      []float32 // frames x dim
	frames, dim int
	most        int // the maximum number of tokens of the text
}

// alignment returns the heads whose attention follows the sound: the heads that
// the model names or, without any, all heads of the later half of the layers.
func (n *moonshine) alignment() (heads [][2]int) {
	for _, h := range n.align {
		if h[0] < len(n.attention) && h[1] < int(n.heads) {
			heads = append(heads, h)
		}
	}
	for layer := len(n.attention) / 2; layer < len(n.attention) && len(n.align) == 0; layer++ {
		for h := range int(n.heads) {
			heads = append(heads, [2]int{layer, h})
		}
	}
	return heads
}
