// Package shape makes what cost can be measured with where no trained model is
// at hand: Whisper models of the published sizes with made-up weights, and sound
// that a voice activity detector takes for speech.
package shape

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Size is the dimensions of a Whisper model.
type Size struct {
	Name                              string
	vocabulary, mels                  int
	audioState, audioHead, audioLayer int
	textState, textHead, textLayer    int
}

// Sizes are the sizes that can be made, as OpenAI published them (paper's table 1
// and the models' own headers); micro is none of them but small enough for tests.
func Sizes() []Size {
	return []Size{
		{"micro", 51865, 80, 64, 2, 4, 64, 2, 2},
		{"tiny", 51865, 80, 384, 6, 4, 384, 6, 4},
		{"base", 51865, 80, 512, 8, 6, 512, 8, 6},
		{"small", 51865, 80, 768, 12, 12, 768, 12, 12},
		{"turbo", 51866, 128, 1280, 20, 32, 1280, 20, 4},
	}
}

// Type is how the large tensors are stored.
type Type string

// The types that can be made.
const (
	F16  Type = "f16"
	Q8_0 Type = "q8_0" // blocks of 32 eight-bit values with one scale
)

// Options say what to make. The zero value of each field means its default.
type Options struct {
	Type   Type   // default F16
	Tokens int    // text tokens in each window of 30 s, 1 to 170; default 100, about 75 words
	Seed   uint64 // of the weights; default 1
}

const (
	audioContext   = 1500
	textContext    = 448
	textVocabulary = 50257 // tokens with text; the rest are named by the library
	endOfText      = 50257
	startOfText    = 50258
	perSegment     = 12 // text tokens between two time marks
)

// WriteModel writes a model in ggml's Whisper format. It costs the computing time
// and memory of a trained model of its size and says nothing sensible.
//
// So that decoding costs what it costs on speech, the decoder follows a plan: at
// every position one token is clearly the most likely, whatever the sound is. In
// each window it yields o.Tokens text tokens in segments of 12, each with its
// pair of time marks, then <|30.00|> and the end of text. The plan lies in the
// table of positions: the entry of a position is the embedding of the token that
// shall follow, eight times, and the layers add noise of about a fourth of that.
// Language detection answers English. Probabilities are high, so no fallback
// happens.
//
// The same options make the same bytes. Memory stays within a few megabytes.
func WriteModel(w io.Writer, size Size, o Options) error {
	if o.Type == "" {
		o.Type = F16
	}
	if o.Tokens == 0 {
		o.Tokens = 100
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	fileType, ok := map[Type]int{F16: 1, Q8_0: 2007}[o.Type]
	switch {
	case !ok:
		return fmt.Errorf("shape: type %q: expected %s or %s", o.Type, F16, Q8_0)
	case o.Tokens < 1 || o.Tokens > 170:
		return fmt.Errorf("shape: %d tokens in a window: expected 1 to 170", o.Tokens)
	case size.textState == 0:
		return fmt.Errorf("shape: unknown size %q", size.Name)
	}
	m := &modelWriter{w: bufio.NewWriterSize(w, 1<<20), size: size, opt: o, random: rand.New(rand.NewPCG(o.Seed, 0))}
	for i := range m.gauss {
		m.gauss[i] = float32(m.random.NormFloat64())
	}
	m.header(fileType)
	m.encoder()
	m.decoder()
	if m.err == nil {
		m.err = m.w.Flush()
	}
	return m.err
}

// Find returns the size of a name.
func Find(name string) (Size, error) {
	var names []string
	for _, s := range Sizes() {
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
	opt    Options
	random *rand.Rand
	gauss  [1 << 16]float32 // normal numbers to draw from: making them anew for each weight would take minutes
	row    []byte
	err    error
}

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
	filters := melFilters(s.mels)
	for _, f := range filters {
		m.bytes(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
	}
	words := vocabulary()
	m.ints(len(words))
	for _, w := range words {
		m.ints(len(w))
		m.bytes([]byte(w))
	}
}

// tensor writes one tensor; row fills the values of row i.
func (m *modelWriter) tensor(name string, typ int, dims []int, row func(i int, v []float32)) {
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
		m.row = appendValues(m.row[:0], v, typ)
		m.bytes(m.row)
	}
}

// Tensor types of ggml.
const (
	tensorF32  = 0
	tensorF16  = 1
	tensorQ8_0 = 8
)

func (m *modelWriter) large() int {
	if m.opt.Type == Q8_0 {
		return tensorQ8_0
	}
	return tensorF16
}

// appendValues appends a row of values in a tensor type.
func appendValues(b []byte, row []float32, typ int) []byte {
	switch typ {
	case tensorF16:
		for _, v := range row {
			b = binary.LittleEndian.AppendUint16(b, half(v))
		}
	case tensorQ8_0:
		for block := range slices.Chunk(row, 32) {
			var peak float32
			for _, v := range block {
				peak = max(peak, v, -v)
			}
			d := peak / 127
			b = binary.LittleEndian.AppendUint16(b, half(d))
			for _, v := range block {
				q := 0.0
				if d > 0 {
					q = math.Round(float64(v / d))
				}
				b = append(b, byte(int8(max(-127, min(127, q)))))
			}
		}
	default:
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// half rounds to the nearest 16-bit float.
func half(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, exponent, mantissa := uint16(bits>>16&0x8000), int(bits>>23&0xff)-112, bits&0x7fffff
	switch {
	case exponent >= 31:
		return sign | 0x7bff // the largest there is
	case exponent < -10:
		return sign
	case exponent <= 0: // below the normal range
		shift := uint(14 - exponent)
		return sign | uint16((mantissa|0x800000+1<<(shift-1))>>shift)
	}
	return sign | uint16((uint32(exponent)<<23+mantissa+0x1000)>>13)
}

func (m *modelWriter) noise(std float64) func(int, []float32) {
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

func constant(c float32) func(int, []float32) {
	return func(_ int, v []float32) {
		for i := range v {
			v[i] = c
		}
	}
}

func (m *modelWriter) linear(name string, in, out int, std float64, bias bool) {
	m.tensor(name+".weight", m.large(), []int{in, out}, m.noise(std))
	if bias {
		m.tensor(name+".bias", tensorF32, []int{out}, m.noise(0.01))
	}
}

func (m *modelWriter) norm(name string, n int, weight float32) {
	m.tensor(name+".weight", tensorF32, []int{n}, constant(weight))
	m.tensor(name+".bias", tensorF32, []int{n}, constant(0))
}

func (m *modelWriter) attention(name string, n int, out float64) {
	std := 1 / math.Sqrt(float64(n))
	m.linear(name+".query", n, n, std, true)
	m.linear(name+".key", n, n, std, false)
	m.linear(name+".value", n, n, std, true)
	m.linear(name+".out", n, n, out, true)
}

func (m *modelWriter) encoder() {
	n, mels := m.size.audioState, m.size.mels
	root := math.Sqrt(float64(n))
	m.tensor("encoder.positional_embedding", tensorF32, []int{n, audioContext}, m.noise(0.1))
	m.tensor("encoder.conv1.weight", tensorF16, []int{3, mels, n}, m.noise(1/math.Sqrt(3*float64(mels))))
	m.tensor("encoder.conv1.bias", tensorF32, []int{1, n}, m.noise(0.01))
	m.tensor("encoder.conv2.weight", tensorF16, []int{3, n, n}, m.noise(1/(root*math.Sqrt(3))))
	m.tensor("encoder.conv2.bias", tensorF32, []int{1, n}, m.noise(0.01))
	for i := range m.size.audioLayer {
		p := fmt.Sprintf("encoder.blocks.%d.", i)
		m.norm(p+"attn_ln", n, 1)
		m.attention(p+"attn", n, 0.3/root)
		m.norm(p+"mlp_ln", n, 1)
		m.linear(p+"mlp.0", n, 4*n, 1/root, true)
		m.linear(p+"mlp.2", 4*n, n, 0.15/root, true)
	}
	m.norm("encoder.ln_post", n, 1)
}

func (m *modelWriter) decoder() {
	n := m.size.textState
	plan := m.plan()
	m.tensor("decoder.positional_embedding", tensorF32, []int{n, textContext}, func(position int, v []float32) {
		next := endOfText
		if position < len(plan) {
			next = plan[position]
		}
		m.embedding(next, v)
		for i := range v {
			v[i] *= 8
		}
	})
	m.tensor("decoder.token_embedding.weight", m.large(), []int{n, m.size.vocabulary}, m.embedding)
	// The layers' noise must stay small beside the plan.
	small := 2 / (float64(n) * math.Sqrt(3*float64(m.size.textLayer)))
	for i := range m.size.textLayer {
		p := fmt.Sprintf("decoder.blocks.%d.", i)
		m.norm(p+"attn_ln", n, 1)
		m.attention(p+"attn", n, small)
		m.norm(p+"cross_attn_ln", n, 1)
		m.attention(p+"cross_attn", n, small)
		m.norm(p+"mlp_ln", n, 1)
		m.linear(p+"mlp.0", n, 4*n, 1/math.Sqrt(float64(n)), true)
		m.linear(p+"mlp.2", 4*n, n, small/2, true)
	}
	// The last norm sets how far the planned token stands out; narrow models need help.
	m.norm("decoder.ln", n, float32(max(1, math.Sqrt(384/float64(n)))))
}

// embedding fills the unit vector of a token; the plan needs single ones, so each
// has a generator of its own.
func (m *modelWriter) embedding(token int, v []float32) {
	r := rand.NewPCG(m.opt.Seed, uint64(token)+1)
	k := float32(1 / math.Sqrt(float64(len(v))))
	for i := range v {
		v[i] = k * m.gauss[r.Uint64()&0xffff]
	}
}

// plan is the token that follows each position.
func (m *modelWriter) plan() []int {
	const english = startOfText + 1
	marks := m.size.vocabulary - 1501 // <|0.00|>
	transcribe := startOfText + m.size.vocabulary - 51766 + 2
	segments := (m.opt.Tokens + perSegment - 1) / perSegment
	order := rand.New(rand.NewPCG(m.opt.Seed, 1)).Perm((textVocabulary - 400) / 2)
	plan := []int{english, transcribe}
	for i := range m.opt.Tokens {
		if i%perSegment == 0 {
			mark := marks + audioContext*(i/perSegment)/segments
			if i > 0 {
				plan = append(plan, mark) // the end of one is the start of the next
			}
			plan = append(plan, mark)
		}
		plan = append(plan, 260+2*order[i]) // a word with its leading space
	}
	return append(plan, marks+audioContext)
}

// vocabulary returns made-up tokens: all bytes, some punctuation, then syllables
// with and without a leading space.
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

// melFilters returns triangular filters over the 201 bins of an FFT of 400 at 16 kHz.
func melFilters(n int) []float32 {
	out := make([]float32, n*201)
	edge := func(i int) float64 { // in Hz, equal steps on the mel scale up to 8 kHz
		top := 1127 * math.Log(1+8000.0/700)
		return 700 * (math.Exp(top*float64(i)/float64(n+1)/1127) - 1)
	}
	for f := range n {
		low, middle, high := edge(f), edge(f+1), edge(f+2)
		for k := range 201 {
			hz := float64(k) * 40
			if v := min((hz-low)/(middle-low), (high-hz)/(high-middle)); v > 0 {
				out[f*201+k] = float32(v * 2 / (high - low))
			}
		}
	}
	return out
}
