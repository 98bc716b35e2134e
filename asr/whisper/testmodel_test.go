package whisper

import (
	"bytes"
	"math"
	"math/rand"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// The test model is a minimal Whisper model, written by the test: all weights
// are zero except where the decoder needs them to write its plan, for any
// sound. It loads and decodes in milliseconds, so that many tests can use one.
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
	var tokens [][]byte
	for i := range 256 {
		tokens = append(tokens, []byte{byte(i)})
	}
	for _, s := range testWords {
		tokens = append(tokens, []byte(s))
	}
	var out bytes.Buffer
	out.Grow(4*int(h.Vocabulary)*int(h.TextState) + 1<<20) // the embedding, and little else
	w := ggmlfile.NewWriter(&out, h, make([]float32, h.Mels*ggmlfile.MelBins), tokens)
	width := int(h.TextState)
	embedding := testEmbedding()
	if n := int(h.Vocabulary) * width; n != len(embedding) {
		embedding = randomEmbedding(n, width)
	} else if len(edits) > 0 {
		embedding = slices.Clone(embedding)
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
	byName := func(a, b ggmlfile.Tensor) int { return strings.Compare(a.Name, b.Name) }
	for _, tensor := range slices.SortedFunc(slices.Values(ggmlfile.Tensors(h)), byName) {
		name, dims := tensor.Name, tensor.Dims
		n := 1
		for _, d := range dims {
			n *= int(d)
		}
		typ := ggmlfile.TensorF32
		if h.Type == 1 && len(dims) > 1 && strings.HasSuffix(name, ".weight") {
			typ = ggmlfile.TensorF16
		}
		w.Tensor(name, dims, typ)
		var values []float32
		switch name {
		case "decoder.token_embedding.weight":
			values = embedding
		case "decoder.positional_embedding":
			values = position
		case "decoder.ln.weight":
			values = slices.Repeat([]float32{sure}, n)
		default:
			values = make([]float32, n)
		}
		w.Values(values, typ)
	}
	return out.Bytes()
}

// testEmbedding are the embeddings of the usual test model's tokens.
var testEmbedding = sync.OnceValue(func() []float32 {
	return randomEmbedding(int(testHeader.Vocabulary)*testWidth, testWidth)
})

func randomEmbedding(n, width int) []float32 {
	r := rand.New(rand.NewSource(7))
	embedding := make([]float32, n)
	for i := range embedding {
		embedding[i] = float32(r.NormFloat64() / math.Sqrt(float64(width)))
	}
	return embedding
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
