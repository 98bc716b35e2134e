package whisper

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/internal/ggmlfile"
)

// The test model is a minimal Whisper model, written by the test: all weights
// are zero except where the decoder needs them to write its plan, for any
// sound. It loads and decodes in milliseconds, so that closing, cancellation
// and the options' effect on native calls can be tested often.
const (
	testWidth   = 32
	testContext = 64
	eotToken    = 50257
	sotToken    = 50258
	zeroMark    = 50364 // <|0.00|> of the multilingual vocabulary of 51865
)

// testWords are the tokens of the test model after the 256 bytes.
var testWords = []string{" Alpha", " beta", " gamma", " delta", ".", " omega"}

func wordToken(w string) int { return 256 + slices.Index(testWords, w) }

// modelWriter writes a ggml file.
type modelWriter struct{ bytes.Buffer }

func (w *modelWriter) words(v ...int32) {
	for _, x := range v {
		_ = binary.Write(&w.Buffer, binary.LittleEndian, x)
	}
}

func (w *modelWriter) floats(v []float32) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	w.Write(b)
}

// halves writes 16-bit floats, truncated rather than rounded, and 0 for tiny
// values.
func (w *modelWriter) halves(v []float32) {
	b := make([]byte, 0, 2*len(v))
	for _, x := range v {
		bits := math.Float32bits(x)
		half := bits >> 16 & 0x8000
		if exponent := int(bits>>23&0xff) - 112; exponent > 0 {
			half |= uint32(exponent)<<10 | bits>>13&0x3ff
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(half))
	}
	w.Write(b)
}

var testHeader = ggmlfile.Header{
	Vocabulary: 51865, AudioContext: 1500, AudioState: testWidth, AudioHeads: 1, AudioLayers: 1,
	TextContext: testContext, TextState: testWidth, TextHeads: 1, TextLayers: 1, Mels: 80, Type: 0,
}

// buildModel writes a model whose decoder writes the plan: after the position
// of plan[i], counted from "start of transcript", the token plan[i+1].
func buildModel(h ggmlfile.Header, plan []int) []byte { return buildModelAs(h, plan, 8) }

// buildModelAs is buildModel with a given certainty: at 1 nearly all tokens are
// equally likely. edits change a token's effect on the next one.
func buildModelAs(h ggmlfile.Header, plan []int, sure float32, edits ...func(embedding []float32, width int)) []byte {
	var w modelWriter
	w.words(ggmlfile.Magic, h.Vocabulary, h.AudioContext, h.AudioState, h.AudioHeads, h.AudioLayers,
		h.TextContext, h.TextState, h.TextHeads, h.TextLayers, h.Mels, h.Type)
	w.words(h.Mels, melBins)
	w.floats(make([]float32, h.Mels*melBins))
	w.words(int32(256 + len(testWords)))
	for i := range 256 {
		w.words(1)
		w.WriteByte(byte(i))
	}
	for _, s := range testWords {
		w.words(int32(len(s)))
		w.WriteString(s)
	}
	r := rand.New(rand.NewSource(7))
	width := int(h.TextState)
	embedding := make([]float32, int(h.Vocabulary)*width)
	for i := range embedding {
		embedding[i] = float32(r.NormFloat64() / math.Sqrt(float64(width)))
	}
	position := make([]float32, int(h.TextContext)*width)
	for p := range int(h.TextContext) {
		next := eotToken
		if p+1 < len(plan) {
			next = plan[p+1]
		}
		for i := range width {
			position[p*width+i] = 8 * embedding[next*width+i]
		}
	}
	for _, edit := range edits {
		edit(embedding, width)
	}
	names := make([]string, 0, 64)
	want := tensors(h)
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		dims := want[name]
		n := 1
		for _, d := range dims {
			n *= int(d)
		}
		write, typ := w.floats, int32(0)
		if h.Type == 1 && len(dims) > 1 && strings.HasSuffix(name, ".weight") {
			write, typ = w.halves, 1
		}
		w.words(int32(len(dims)), int32(len(name)))
		w.words(typ)
		w.words(dims...)
		w.WriteString(name)
		values := make([]float32, n)
		switch name {
		case "decoder.token_embedding.weight":
			values = embedding
		case "decoder.positional_embedding":
			values = position
		case "decoder.ln.weight":
			for i := range values {
				values[i] = sure
			}
		}
		write(values)
	}
	return w.Bytes()
}

// say returns the plan of a text: marks are given in seconds, words by name.
func say(parts ...any) []int {
	plan := []int{sotToken, sotToken + 1, 50359}
	for _, p := range parts {
		switch v := p.(type) {
		case float64:
			plan = append(plan, zeroMark+int(math.Round(v*50)))
		case string:
			plan = append(plan, wordToken(v))
		}
	}
	return plan
}

// testModel writes "Alpha beta." in the first second.
var testModel = sync.OnceValue(func() []byte {
	return buildModel(testHeader, say(0.0, " Alpha", " beta", ".", 1.0))
})
