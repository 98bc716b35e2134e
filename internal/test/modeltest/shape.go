package modeltest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// Size is the dimensions of a Whisper model.
type Size struct {
	Name                              string
	vocabulary, mels                  int
	audioState, audioHead, audioLayer int
	textState, textHead, textLayer    int
}

// sizes returns the supported sizes, as published by OpenAI (table 1 of the
// paper and the models' headers), and micro, which is small enough for tests.
func sizes() []Size {
	return []Size{
		{"micro", 51865, 80, 64, 2, 4, 64, 2, 3},
		{"tiny", 51865, 80, 384, 6, 4, 384, 6, 4},
		{"base", 51865, 80, 512, 8, 6, 512, 8, 6},
		{"small", 51865, 80, 768, 12, 12, 768, 12, 12},
		{"turbo", 51866, 128, 1280, 20, 32, 1280, 20, 4},
	}
}

// Type is the storage type of the large tensors.
type Type = ggmlfile.Type

// The supported types.
const (
	F16  = ggmlfile.F16
	Q8_0 = ggmlfile.Q8_0
	Q5_1 = ggmlfile.Q5_1
	Q5_0 = ggmlfile.Q5_0
)

// ShapeOptions configures a model. The zero value of each field means its default.
type ShapeOptions struct {
	Type   Type   // default F16
	Tokens int    // text tokens in 30 s of speech, 1 to 170; default 100, about 75 words
	Seed   uint64 // of the weights; default 1
}

const (
	audioContext   = 1500
	textContext    = 448
	textVocabulary = 50257 // tokens with text; the library defines the others
	endOfText      = 50257
	startOfText    = 50258
	perSegment     = 12 // text tokens between two time marks
	variants       = 5  // tokens per word, the default beam size
)

// Constants of the plan. A layer norm scales a vector of length 1 to the square
// root of the width, so weights applied to it are given in such units.
const (
	// loud is the mean over the bands of libwhisper's log-mel features (about
	// -0.65 for a quiet room, -0.3 to 0.5 for speech) at which a position
	// counts as speech, and loudSlope is the steepness of the transition.
	loud, loudSlope = -0.35, 80
	// loudness is the value of a loud position in its channel. It exceeds all
	// others by a wide margin, so that the layer norm yields the same number
	// for all loud positions.
	loudness = 8
	// A word is recognized if at least this share of its embedding's full
	// strength is found.
	known = 0.4
	// answer is the strength of the next word's logit, stop the end mark's.
	answer, stop = 40, 40
	// alike is the part of a variant's embedding that all variants of a word
	// share.
	alike = 0.9
	// unlike is the length of the embeddings of tokens that never occur.
	unlike = 0.25
	// sure is the largest logit.
	sure = 48
)

// likely is the part of each variant of a word that the other variants lack.
var likely = [variants]float64{0.3, 0.15, 0.05, -0.05, -0.15}

// WriteModel writes a model in ggml's Whisper format. It has the computing time
// and memory of a trained model of its size. Its output is meaningless, but
// lasts for as long as there is speech, which determines the cost of a
// recording.
//
// In a window of 30 s full of speech the decoder yields o.Tokens text tokens in
// segments of 12, each with its pair of time marks. With less speech it yields
// proportionally fewer. Then come <|30.00|> and the end of text. It works as
// follows:
//
//   - Each token has a successor. The first feed-forward layer of the decoder
//     recognizes each by its embedding and returns the next one's, so that the
//     text depends neither on positions nor on a prompt. A word has variants,
//     one of which is the most likely, so that all beams stay in use as they do
//     on speech.
//   - One channel of the encoder separates loud positions from quiet ones. One
//     head of the decoder's first cross-attention attends to all positions
//     equally, so it sees the share of loud ones. The embedding of a word
//     contains the share at which it occurs; beyond that share, the
//     feed-forward layer returns the last time mark.
//
// All other weights are comparatively small noise. Language detection returns
// English. Probabilities are high, so no fallback happens.
//
// The same options produce the same bytes. Memory stays within a few megabytes.
func WriteModel(w io.Writer, size Size, o ShapeOptions) error {
	if o.Type == "" {
		o.Type = F16
	}
	if o.Tokens == 0 {
		o.Tokens = 100
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	_, fileType, ok := o.Type.Numbers()
	switch {
	case !ok:
		return fmt.Errorf("shape: type %q: expected %s, %s, %s or %s", o.Type, F16, Q8_0, Q5_1, Q5_0)
	case o.Tokens < 1 || o.Tokens > 170:
		return fmt.Errorf("shape: %d tokens in a window: expected 1 to 170", o.Tokens)
	case size.textState == 0:
		return fmt.Errorf("shape: unknown size %q", size.Name)
	}
	m := &modelWriter{w: bufio.NewWriterSize(w, 1<<20), size: size, opt: o, random: rand.New(rand.NewPCG(o.Seed, 0))}
	for i := range m.gauss {
		m.gauss[i] = float32(m.random.NormFloat64())
	}
	m.plan()
	m.header(fileType)
	m.encoder()
	m.decoder()
	if m.err == nil {
		m.err = m.w.Flush()
	}
	return m.err
}

// FindSize returns the size with a name.
func FindSize(name string) (Size, error) {
	var names []string
	for _, s := range sizes() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Size{}, fmt.Errorf("shape: unknown size %q: expected one of %s", name, strings.Join(names, ", "))
}

type modelWriter struct {
	w      *bufio.Writer
	size   Size
	opt    ShapeOptions
	random *rand.Rand
	// Normal random numbers to draw from, because generating a number for each
	// weight would take minutes.
	gauss [1 << 16]float32
	steps []step
	of    map[int]role // roles of the tokens in the plan
	row   []byte
	err   error
}

// step is a word or a time mark of the plan.
type step struct {
	tokens []int   // its variants
	clock  float64 // share of speech up to which the text continues after the step; at least 0
	mark   bool    // the text never ends after this step
}

// role is a token's place in the plan.
type role struct{ step, variant int }

func (m *modelWriter) bytes(b []byte) {
	if m.err == nil {
		_, m.err = m.w.Write(b)
	}
}

func (m *modelWriter) ints(values ...int) {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(v)))
	}
	m.bytes(b)
}

func (m *modelWriter) header(fileType int) {
	s := m.size
	m.ints(0x67676d6c, s.vocabulary, audioContext, s.audioState, s.audioHead, s.audioLayer, textContext, s.textState, s.textHead, s.textLayer, s.mels, fileType)
	m.ints(s.mels, 201)
	for _, filter := range dsp.SlaneyFilters(s.mels, 400) {
		m.bytes(ggmlfile.AppendValues(nil, filter, ggmlfile.TensorF32))
	}
	words := vocabulary()
	m.ints(len(words))
	for _, w := range words {
		m.ints(len(w))
		m.bytes([]byte(w))
	}
}

// tensor writes one tensor; row fills the values of row i.
func (m *modelWriter) tensor(name string, typ int, dims []int, row rows) {
	m.ints(len(dims), len(name), typ)
	m.ints(dims...)
	m.bytes([]byte(name))
	rows := 1
	for _, d := range dims[1:] {
		rows *= d
	}
	v := make([]float32, dims[0])
	for i := range rows {
		row(i, v)
		m.row = ggmlfile.AppendValues(m.row[:0], v, typ)
		m.bytes(m.row)
	}
}

func (m *modelWriter) large() int {
	tensor, _, _ := m.opt.Type.Numbers()
	return tensor
}

// rows fills row i of a tensor.
type rows func(i int, v []float32)

// first returns rows that also apply then to the result of f.
func (f rows) first(then rows) rows {
	return func(i int, v []float32) {
		f(i, v)
		then(i, v)
	}
}

func fill(v []float32, x float64) {
	for i := range v {
		v[i] = float32(x)
	}
}

// zero clears row 0 of a matrix, whose product then adds nothing to channel 0.
func zero(i int, v []float32) {
	if i == 0 {
		fill(v, 0)
	}
}

func (m *modelWriter) noise(std float64) rows {
	s := float32(std)
	return func(_ int, v []float32) {
		for i := 0; i < len(v); i += 4 {
			r := m.random.Uint64()
			for j := i; j < min(i+4, len(v)); j++ {
				v[j] = s * m.gauss[r&0xffff]
				r >>= 16
			}
		}
	}
}

// mute clears channel 0 of a table of vectors.
func mute(_ int, v []float32) { v[0] = 0 }

func constant(x float64) rows {
	return func(_ int, v []float32) { fill(v, x) }
}

// feed writes a matrix and, unless nil, its bias.
func (m *modelWriter) feed(name string, in, out int, weights, bias rows) {
	m.tensor(name+".weight", m.large(), []int{in, out}, weights)
	if bias != nil {
		m.tensor(name+".bias", ggmlfile.TensorF32, []int{out}, bias)
	}
}

func (m *modelWriter) linear(name string, in, out int, std float64) {
	m.feed(name, in, out, m.noise(std), m.noise(0.01))
}

func (m *modelWriter) norm(name string, n int) {
	m.tensor(name+".weight", ggmlfile.TensorF32, []int{n}, constant(1))
	m.tensor(name+".bias", ggmlfile.TensorF32, []int{n}, constant(0))
}

func (m *modelWriter) attention(name string, n int, out rows) {
	std := 1 / math.Sqrt(float64(n))
	m.linear(name+".query", n, n, std)
	m.feed(name+".key", n, n, m.noise(std), nil)
	m.linear(name+".value", n, n, std)
	m.feed(name+".out", n, n, out, constant(0))
}

func (m *modelWriter) encoder() {
	n, mels := m.size.audioState, m.size.mels
	root := math.Sqrt(float64(n))
	m.tensor("encoder.positional_embedding", ggmlfile.TensorF32, []int{n, audioContext}, m.noise(0.1).first(mute))
	// Channel 0 becomes 0 where it is quiet and far above all others where it
	// is loud. It is the difference of two ramps of the loudness, one of which
	// starts where the other has risen to 4.
	m.tensor("encoder.conv1.weight", ggmlfile.TensorF16, []int{3, mels, n}, m.noise(1/math.Sqrt(3*float64(mels))).first(func(i int, v []float32) {
		if i/mels < 2 {
			fill(v, loudSlope/(3*float64(mels)))
		}
	}))
	m.tensor("encoder.conv1.bias", ggmlfile.TensorF32, []int{1, n}, m.noise(0.01).first(func(i int, v []float32) {
		if i < 2 {
			v[0] = float32(-loudSlope*loud - 4*float64(i))
		}
	}))
	m.tensor("encoder.conv2.weight", ggmlfile.TensorF16, []int{3, n, n}, m.noise(1/(root*math.Sqrt(3))).first(func(i int, v []float32) {
		switch out, in := i/n, i%n; {
		case out == 0 && in < 2:
			fill(v, loudness*root/(4*3)*float64(1-2*in))
		case out == 0 || in < 2:
			fill(v, 0)
		}
	}))
	m.tensor("encoder.conv2.bias", ggmlfile.TensorF32, []int{1, n}, m.noise(0.01).first(func(i int, v []float32) {
		if i == 0 {
			v[0] = 0
		}
	}))
	for i := range m.size.audioLayer {
		p := fmt.Sprintf("encoder.blocks.%d.", i)
		m.norm(p+"attn_ln", n)
		m.attention(p+"attn", n, m.noise(0.3/root).first(zero))
		m.norm(p+"mlp_ln", n)
		m.linear(p+"mlp.0", n, 4*n, 1/root)
		m.feed(p+"mlp.2", 4*n, n, m.noise(0.15/root).first(zero), constant(0))
	}
	m.norm("encoder.ln_post", n)
}

func (m *modelWriter) decoder() {
	n := m.size.textState
	root := math.Sqrt(float64(n))
	m.tensor("decoder.positional_embedding", ggmlfile.TensorF32, []int{n, textContext}, m.noise(0.05/root).first(mute))
	m.tensor("decoder.token_embedding.weight", m.large(), []int{n, m.size.vocabulary}, m.embedding)
	small := 0.5 / (float64(n) * math.Sqrt(3*float64(m.size.textLayer)))
	for i := range m.size.textLayer {
		p := fmt.Sprintf("decoder.blocks.%d.", i)
		m.norm(p+"attn_ln", n)
		m.attention(p+"attn", n, m.noise(small).first(zero))
		m.norm(p+"cross_attn_ln", n)
		if i == 0 {
			m.listen(p+"cross_attn", n, small)
		} else {
			m.attention(p+"cross_attn", n, m.noise(small).first(zero))
		}
		m.norm(p+"mlp_ln", n)
		if i == 0 {
			m.succeed(p+"mlp", n, small)
		} else {
			m.linear(p+"mlp.0", n, 4*n, 1/root)
			m.feed(p+"mlp.2", 4*n, n, m.noise(small/2), constant(0))
		}
	}
	m.tensor("decoder.ln.weight", ggmlfile.TensorF32, []int{n}, func(_ int, v []float32) {
		fill(v, sure/root)
		v[0] = 0 // no token contains the share of speech
	})
	m.tensor("decoder.ln.bias", ggmlfile.TensorF32, []int{n}, constant(0))
}

// listen writes a cross-attention whose first head subtracts the share of loud
// positions from channel 0.
func (m *modelWriter) listen(name string, n int, small float64) {
	head := n / m.size.textHead
	std := 1 / math.Sqrt(float64(n))
	m.feed(name+".query", n, n, m.noise(std).first(func(i int, v []float32) {
		if i < head {
			fill(v, 0) // no query prefers any key
		}
	}), constant(0))
	m.feed(name+".key", n, n, m.noise(std), nil)
	m.feed(name+".value", n, n, m.noise(std).first(func(i int, v []float32) {
		if i == 0 {
			fill(v, 0)
			v[0] = 1
		}
	}), constant(0))
	m.feed(name+".out", n, n, m.noise(small).first(func(i int, v []float32) {
		if i == 0 {
			fill(v, 0)
			v[0] = float32(-1 / math.Sqrt(float64(n)))
		}
	}), constant(0))
}

// succeed writes the feed-forward layer that maps each token of the plan to its
// successor, or to the last mark once the speech has been used up.
func (m *modelWriter) succeed(name string, n int, small float64) {
	root := math.Sqrt(float64(n))
	last := len(m.steps) - 2 // <|30.00|>, followed by the end of text, which has no successor
	answers := make([][]float32, last+1)
	for k := range answers {
		answers[k] = m.variants(k+1, n)
	}
	m.feed(name+".0", n, 4*n, m.noise(1/root).first(func(i int, v []float32) {
		switch {
		case i == 0: // half a token too far yields 1
			fill(v, 0)
			v[0] = float32(2 * float64(m.opt.Tokens) / root)
		case i-1 < len(answers):
			m.meaning(i-1, v)
		}
	}), func(_ int, v []float32) {
		fill(v, 0)
		fill(v[1:1+len(answers)], -known*root)
	})
	m.feed(name+".2", 4*n, n, m.noise(small/2).first(func(i int, v []float32) {
		v[0] = stop * answers[last-1][i]
		for k := range answers {
			v[1+k] = float32(answer / root * float64(answers[k][i]))
		}
	}), constant(0))
}

// meaning fills the direction shared by a step's variants, of length 1, with
// mean 0 and 0 in channel 0.
func (m *modelWriter) meaning(step int, v []float32) { m.direction(uint64(1)<<32|uint64(step), v) }

func (m *modelWriter) direction(seed uint64, v []float32) {
	r := rand.NewPCG(m.opt.Seed, seed)
	var sum, squares float64
	for i := range v {
		v[i] = m.gauss[r.Uint64()&0xffff]
		if i > 0 {
			sum += float64(v[i])
		}
	}
	mean := sum / float64(len(v)-1)
	v[0] = 0
	for _, x := range v[1:] {
		squares += (float64(x) - mean) * (float64(x) - mean)
	}
	for i := range v[1:] {
		v[1+i] = float32((float64(v[1+i]) - mean) / math.Sqrt(squares))
	}
}

// variants returns the direction that gives the variants of a step their
// probabilities.
func (m *modelWriter) variants(step, n int) []float32 {
	v, own := make([]float32, n), make([]float32, n)
	m.meaning(step, v)
	if len(m.steps[step].tokens) > 1 {
		for k, t := range m.steps[step].tokens {
			m.direction(uint64(t), own)
			for i := range v {
				v[i] += float32(likely[k] * float64(own[i]))
			}
		}
	}
	return v
}

// embedding fills a token's vector.
func (m *modelWriter) embedding(token int, v []float32) {
	m.direction(uint64(token), v)
	is, planned := m.of[token]
	if !planned {
		for i := range v {
			v[i] *= unlike
		}
		return
	}
	s := m.steps[is.step]
	share := 1.0
	if len(s.tokens) > 1 {
		share = alike
	}
	common := make([]float32, len(v))
	m.meaning(is.step, common)
	for i := range v {
		v[i] = float32(math.Sqrt(share)*float64(common[i]) + math.Sqrt(1-share)*float64(v[i]))
	}
	v[0] = float32(s.clock)
	if s.mark {
		v[0] = -0.1 // less than any share of speech
	}
}

// plan defines the sequence of tokens.
func (m *modelWriter) plan() {
	const english = startOfText + 1
	marks := m.size.vocabulary - 1501 // <|0.00|>
	transcribe := startOfText + m.size.vocabulary - 51766 + 2
	segments := (m.opt.Tokens + perSegment - 1) / perSegment
	order := rand.New(rand.NewPCG(m.opt.Seed, 1)).Perm((textVocabulary - 400) / 2)
	mark := func(token int) { m.steps = append(m.steps, step{tokens: []int{token}, mark: true}) }
	mark(startOfText)
	mark(english)
	mark(transcribe)
	for i := range m.opt.Tokens {
		if i%perSegment == 0 {
			at := marks + audioContext*(i/perSegment)/segments
			if i > 0 {
				mark(at - 1) // the end of a segment; the next one starts 0.02 s later, because no token has two successors
			}
			mark(at)
		}
		word := step{clock: float64(i+1) / float64(m.opt.Tokens)}
		for k := range variants {
			word.tokens = append(word.tokens, 260+2*order[i*variants+k]) // a word with its leading space
		}
		m.steps = append(m.steps, word)
	}
	mark(marks + audioContext)
	mark(endOfText)
	m.of = make(map[int]role)
	for i, s := range m.steps {
		for k, t := range s.tokens {
			m.of[t] = role{i, k}
		}
	}
}

// vocabulary returns synthetic tokens: all bytes, some punctuation, then
// syllables with and without a leading space.
func vocabulary() []string {
	list := make([]string, 0, textVocabulary)
	for i := range 256 {
		list = append(list, string([]byte{byte(i)}))
	}
	list = append(list, ", ", ". ", " -", " '")
	var syllables []string
	for _, c := range strings.Fields("b d f g k l m n p r s t v z br dr gl kr pl st tr") {
		for _, v := range strings.Fields("a e i o u ai au ei ou") {
			syllables = append(syllables, c+v)
		}
	}
	for n := 0; len(list) < textVocabulary; n++ {
		word := syllables[n%len(syllables)]
		if k := n / len(syllables); k > 0 {
			word += syllables[(k-1+n)%len(syllables)]
			if k > len(syllables) {
				word += syllables[(k/len(syllables)+n*7)%len(syllables)]
			}
		}
		list = append(list, " "+word, word)
	}
	return list[:textVocabulary]
}
