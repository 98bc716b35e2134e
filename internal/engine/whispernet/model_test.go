//go:build cgo

package whispernet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// testHeader describes a network that computes in milliseconds.
var testHeader = ggmlfile.Header{
	Vocabulary: 51865, AudioContext: 1500, AudioState: 64, AudioHeads: 2, AudioLayers: 1,
	TextContext: 64, TextState: 64, TextHeads: 2, TextLayers: 2, Mels: 80,
}

// testFiles holds the files that testFile has written, by kind.
var testFiles = map[int32][]byte{}

// testFile returns a model with random weights, written once; kind is the type
// of its linear layers: 0 for f32, 1 for f16, 8 for q8_0.
func testFile(kind int32) []byte {
	if testFiles[kind] == nil {
		testFiles[kind] = writeTestFile(kind)
	}
	return testFiles[kind]
}

func writeTestFile(kind int32) []byte {
	r := rand.New(rand.NewPCG(15, 16))
	var b bytes.Buffer
	words := func(v ...int32) { _ = binary.Write(&b, binary.LittleEndian, v) }
	h := testHeader
	words(ggmlfile.Magic, h.Vocabulary, h.AudioContext, h.AudioState, h.AudioHeads, h.AudioLayers, h.TextContext, h.TextState, h.TextHeads, h.TextLayers, h.Mels, 1)
	words(h.Mels, bins)
	filters := make([]float32, h.Mels*bins)
	for i := range filters {
		filters[i] = r.Float32() / bins
	}
	_ = binary.Write(&b, binary.LittleEndian, filters)
	words(256)
	for i := range 256 {
		words(1)
		b.WriteByte(byte(i))
	}
	tensor := func(name string, kind int32, scale float64, dims ...int32) {
		words(int32(len(dims)), int32(len(name)), kind)
		words(dims...)
		b.WriteString(name)
		n := int32(1)
		for _, d := range dims {
			n *= d
		}
		for i := int32(0); i < n; i++ {
			v := float32(r.NormFloat64() * scale)
			switch kind {
			case 0:
				words(int32(math.Float32bits(v)))
			case 1: // truncated, which is as random
				bits := math.Float32bits(v)
				half := bits >> 16 & 0x8000
				if e := int(bits>>23&0xff) - 112; e > 0 {
					half |= uint32(e)<<10 | bits>>13&0x3ff
				}
				_ = binary.Write(&b, binary.LittleEndian, uint16(half))
			default:
				if i%32 == 0 {
					_ = binary.Write(&b, binary.LittleEndian, uint16(0x1800)) // 1/512
				}
				b.WriteByte(byte(int8(max(min(v*512, 127), -127))))
			}
		}
	}
	d := h.AudioState
	linear := func(name string, in, out int32, bias bool) {
		tensor(name+".weight", kind, 1/math.Sqrt(float64(in)), in, out)
		if bias {
			tensor(name+".bias", 0, 0.1, out)
		}
	}
	norm := func(name string) {
		tensor(name+".weight", 0, 1, d)
		tensor(name+".bias", 0, 0.1, d)
	}
	block := func(p string, attentions ...string) {
		for _, a := range attentions {
			norm(p + a + "_ln")
			linear(p+a+".query", d, d, true)
			linear(p+a+".key", d, d, false)
			linear(p+a+".value", d, d, true)
			linear(p+a+".out", d, d, true)
		}
		norm(p + "mlp_ln")
		linear(p+"mlp.0", d, 4*d, true)
		linear(p+"mlp.2", 4*d, d, true)
	}
	tensor("encoder.positional_embedding", 0, 0.1, d, 1500)
	tensor("encoder.conv1.weight", 1, 0.05, 3, h.Mels, d)
	tensor("encoder.conv1.bias", 0, 0.1, 1, d)
	tensor("encoder.conv2.weight", 1, 0.05, 3, d, d)
	tensor("encoder.conv2.bias", 0, 0.1, 1, d)
	for _, p := range []string{"encoder.ln_post", "decoder.ln"} {
		norm(p)
	}
	tensor("decoder.positional_embedding", 0, 0.1, d, h.TextContext)
	tensor("decoder.token_embedding.weight", kind, 0.2, d, h.Vocabulary)
	block("encoder.blocks.0.", "attn")
	for i := range h.TextLayers {
		block(fmt.Sprintf("decoder.blocks.%d.", i), "attn", "cross_attn")
	}
	return b.Bytes()
}

// checked returns a checked file.
func checked(t testing.TB, file []byte) *ggmlfile.Checked {
	t.Helper()
	f, err := ggmlfile.Check(bytes.NewReader(file), int64(len(file)), false)
	require.NoError(t, err)
	return f
}

func testModel(t *testing.T, kind int32, kernels string) *Model {
	t.Helper()
	file := testFile(kind)
	m, err := Open(checked(t, file), Options{Kernels: kernels, Threads: 2})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

func testSound(seed uint64) []float32 {
	x := randoms(rand.New(rand.NewPCG(seed, 1)), 40000)
	for i := range x {
		x[i] *= 0.1
	}
	return x
}

func encode(t *testing.T, m *Model, seed uint64, threads int) *Window {
	t.Helper()
	w, err := m.Encode(testSound(seed), 5, threads, nil)
	require.NoError(t, err)
	t.Cleanup(w.Free)
	return w
}

// say decodes tokens as one text, one pass per token, and returns the last
// logits.
func say(t *testing.T, m *Model, w *Window, threads int, tokens ...int32) []float32 {
	t.Helper()
	d := m.NewDecoder(threads)
	defer d.Free()
	w.Forget()
	logits := make([]float32, m.header.Vocabulary)
	for i, token := range tokens {
		require.NoError(t, d.Step([]Column{{Window: w, Position: i, Token: token, Logits: logits}}, nil))
	}
	return logits
}

// TestResultsDoNotDependOnTheRestOfThePass checks that logits do not depend on
// the rest of the pass, nor on threads: prompts in one pass, several windows in
// one pass, beams with a common past.
func TestResultsDoNotDependOnTheRestOfThePass(t *testing.T) {
	for _, kind := range []int32{1, 8} {
		m := testModel(t, kind, "")
		a, b := encode(t, m, 1, 1), encode(t, m, 2, 3)
		wantA, wantB := say(t, m, a, 1, 50258, 7, 9, 11), say(t, m, b, 3, 50258, 8)
		require.NotEqual(t, wantA, wantB)
		a.Forget()
		b.Forget()
		d := m.NewDecoder(2)
		v := m.header.Vocabulary
		gotA, gotB := make([]float32, v), make([]float32, v)
		require.NoError(t, d.Step([]Column{ // two prompts in one pass
			{Window: b, Position: 0, Token: 50258},
			{Window: b, Position: 1, Token: 8, Logits: gotB},
			{Window: a, Position: 0, Token: 50258},
			{Window: a, Position: 1, Token: 7},
		}, nil))
		assert.Equal(t, wantB, gotB, "type %d", kind)
		require.NoError(t, d.Step([]Column{ // two beams diverge
			{Window: a, Row: 0, Position: 2, Token: 5, Path: []uint8{0, 0}}, {Window: a, Row: 3, Position: 2, Token: 9, Path: []uint8{0, 0}},
		}, nil))
		require.NoError(t, d.Step([]Column{{Window: a, Row: 1, Position: 3, Token: 11, Path: []uint8{0, 0, 3}, Logits: gotA}}, nil))
		assert.Equal(t, wantA, gotA, "type %d", kind)
		d.Free()
	}
}

// TestCacheHoldsTheTextsThatContinue checks that the cells of texts that a beam
// search has left are used again.
func TestCacheHoldsTheTextsThatContinue(t *testing.T) {
	m := testModel(t, 8, "")
	w := encode(t, m, 1, 1)
	tokens := []int32{50258}
	for i := range int(m.header.TextContext) - 1 {
		tokens = append(tokens, int32(5+i%7))
	}
	want := say(t, m, w, 1, tokens...)
	w.Forget()
	d := m.NewDecoder(1)
	defer d.Free()
	got := make([]float32, m.header.Vocabulary)
	path := make([]uint8, 0, len(tokens))
	for i, token := range tokens {
		var beams []Column
		right := i % 5 // the row of the text that continues
		for row := range 5 {
			c := Column{Window: w, Row: row, Position: i, Token: int32(1000 + row), Path: path}
			if row == right {
				c.Token, c.Logits = token, got
			}
			beams = append(beams, c)
		}
		require.NoError(t, d.Step(beams, nil))
		path = append(path, uint8(right))
	}
	assert.Equal(t, want, got)
	cells := 0
	for _, rows := range w.cells {
		for _, c := range rows {
			cells += len(c.values) / m.cellSize()
		}
	}
	assert.Equal(t, len(tokens)+4, cells, "the text that continues, and four that the last pass left")
}

// TestKernelsAgree checks that all kernels compute the same result, up to
// rounding.
func TestKernelsAgree(t *testing.T) {
	for kind, tolerance := range map[int32]float64{1: 2e-2, 8: 0.15} {
		var want []float32
		for _, name := range availableKernels() {
			m := testModel(t, kind, name)
			got := say(t, m, encode(t, m, 3, 2), 2, 50258, 50259, 50359, 300)
			if want == nil {
				want = got
			}
			var worst, spread float64
			for i := range got {
				worst = max(worst, math.Abs(float64(got[i]-want[i])))
				spread = max(spread, math.Abs(float64(want[i])))
			}
			assert.Less(t, worst, tolerance*spread, "%s, type %d", name, kind)
		}
	}
}

// TestAttention checks that the scores match the decoder's own cross-attention:
// a later token does not change the scores of an earlier one.
func TestAttention(t *testing.T) {
	m := testModel(t, 1, "")
	w := encode(t, m, 4, 1)
	d := m.NewDecoder(2)
	defer d.Free()
	heads := [][2]int{{1, 0}, {0, 1}}
	long, err := d.Attention(w, []int32{50258, 50259, 50359, 40, 41}, heads, 1200, nil)
	require.NoError(t, err)
	short, err := d.Attention(w, []int32{50258, 50259, 50359, 40}, heads, 1200, nil)
	require.NoError(t, err)
	require.Len(t, long, 2)
	for h := range heads {
		require.Len(t, long[h], 5)
		require.Len(t, long[h][0], 1200)
		assert.Equal(t, short[h], long[h][:4])
	}
	assert.NotEqual(t, long[0], long[1])
	assert.NotEqual(t, long[0][3], long[0][4])
}

func TestStopEndsComputing(t *testing.T) {
	m := testModel(t, 1, "")
	w := encode(t, m, 5, 1)
	var stop Stop
	assert.False(t, stop.Stopped())
	stop.Now()
	_, err := m.Encode(testSound(5), 5, 1, &stop)
	assert.ErrorIs(t, err, ErrStopped)
	d := m.NewDecoder(1)
	defer d.Free()
	assert.ErrorIs(t, d.Step([]Column{{Window: w, Token: 50258}}, &stop), ErrStopped)
	_, err = d.Attention(w, []int32{50258}, [][2]int{{0, 0}}, 1500, &stop)
	assert.ErrorIs(t, err, ErrStopped)
	require.NoError(t, d.Step(nil, nil))
	for _, wrong := range []Column{{Window: w, Token: -1}, {Window: w, Token: 51865}, {Window: w, Row: 5}, {Window: w, Position: 64}} {
		assert.ErrorContains(t, d.Step([]Column{wrong}, nil), "expected a token of 51865")
	}
}

// TestMemoryOfPassesShrinks: after passes side by side, the model holds the
// memory of one.
func TestMemoryOfPassesShrinks(t *testing.T) {
	m := testModel(t, 0, "")
	var all []*encoderScratch
	for range 4 {
		all = append(all, m.takeScratch(1))
	}
	for i, want := range []int{1, 2, 1, 1} { // idle while 3, 2, 1 and 0 still run
		m.giveScratch(all[i])
		require.Len(t, m.idle, want, "after %d passes", i+1)
	}
}

// TestIncompleteFile checks that files with missing weights, or with weights
// that no kernel reads, are errors.
func TestIncompleteFile(t *testing.T) {
	file := testFile(1)
	f := checked(t, file)
	last := f.Index[len(f.Index)-2] // the weights of the last layer
	short := file[:last.Offset-int64(len(last.Name))-12-4*int64(len(last.Dims))]
	_, err := Open(checked(t, short), Options{})
	require.ErrorIs(t, err, ggmlfile.ErrNotWhisper)
	assert.ErrorContains(t, err, last.Name)
	f.Index[len(f.Index)-2].Kind = 9 // q8_1
	_, err = Open(f, Options{})
	require.ErrorIs(t, err, ggmlfile.ErrNotWhisper)
	assert.ErrorContains(t, err, last.Name)
}

// A thin model computes all positions of a sound and a quarter of those of the
// silence after it, each at its place among the 1,500.
func TestThinModelSkipsSilence(t *testing.T) {
	m := testModel(t, 1, "")
	whole, err := m.Encode(testSound(3), 1, 1, nil)
	require.NoError(t, err)
	defer whole.Free()
	m.thin = true
	thin, err := m.Encode(testSound(3), 1, 1, nil)
	require.NoError(t, err)
	defer thin.Free()
	assert.Less(t, len(thin.cross.values), len(whole.cross.values)/2)
	a, b := say(t, m, whole, 1, 50258, 7), say(t, m, thin, 1, 50258, 7)
	var worst, spread float64
	for i := range a {
		worst, spread = max(worst, math.Abs(float64(a[i]-b[i]))), max(spread, math.Abs(float64(a[i])))
	}
	assert.Less(t, worst, 0.05*spread)
	for _, samples := range []int{0, 1, 16000, 16161, 40001, 478000, 480000, 500000} {
		l := m.layoutOf(samples, thinning)
		assert.GreaterOrEqual(t, l.dense, min((samples+319)/320, contextPositions))
		assert.Equal(t, contextPositions, l.dense+thinning*(l.n-l.dense), "%d samples", samples)
		places := make([]float32, contextPositions)
		for i := range places {
			places[i] = float32(i)
		}
		got := l.positions(places, 1, make([]float32, l.n))
		assert.Equal(t, places[:l.dense], got[:l.dense])
		for i, at := range got[l.dense:] {
			assert.EqualValues(t, l.dense+thinning*i+thinning/2, at)
		}
	}
}

// TestEncodeBriefly checks that 30 s of sound are encoded as by Encode, and a
// short sound at its own length plus a second of silence.
func TestEncodeBriefly(t *testing.T) {
	m := testModel(t, 1, "")
	const half = contextFrames * hop / 2
	short := testSound(3)
	long := make([]float32, 2*half)
	for i := range long {
		long[i] = short[i%len(short)]
	}
	full, err := m.Encode(long, 1, 1, nil)
	require.NoError(t, err)
	defer full.Free()
	brief, err := m.EncodeBriefly(long, 1, nil)
	require.NoError(t, err)
	defer brief.Free()
	assert.Equal(t, full.cross.values, brief.cross.values)
	brief, err = m.EncodeBriefly(long[:half], 2, nil)
	require.NoError(t, err)
	defer brief.Free()
	positions := half/(2*hop) + 50
	room := m.attentionRoom(m.crossKind(), positions, m.headSize)
	assert.Len(t, brief.cross.values, int(testHeader.TextLayers*testHeader.TextHeads)*room)
	var logits [2][]float32
	for i, threads := range []int{1, 2} {
		d := m.NewDecoder(threads)
		defer d.Free()
		logits[i] = make([]float32, testHeader.Vocabulary)
		require.NoError(t, d.Step([]Column{{Window: brief, Token: 5, Logits: logits[i]}}, nil))
		brief.Forget()
	}
	assert.Equal(t, logits[0], logits[1])
	assert.False(t, math.IsNaN(float64(logits[0][0])))
}

// TestFeatures compares log-mel features with their definition.
func TestFeatures(t *testing.T) {
	m := testModel(t, 1, "")
	sound := testSound(6)
	c := newWorkerPool(2)
	defer c.free()
	got := allocate[float32](contextFrames * 80)
	defer got.free()
	m.features(sound, c, got.values)
	filters := make([]float32, bins)
	want := make([]float64, contextFrames)
	top := -10.0
	const band = 3
	for b := range 80 { // the features depend on the largest of all bands
		m.column(m.mel.filters, b, filters)
		for frame := range 260 {
			v := math.Log10(max(1e-10, bandPower(sound, frame, filters)))
			top = max(top, v)
			if b == band {
				want[frame] = v
			}
		}
	}
	for frame := range contextFrames {
		if frame >= 260 {
			want[frame] = -10
		}
		assert.InDelta(t, (max(want[frame], top-8)+4)/4, got.values[frame*80+band], 1e-4, "frame %d", frame)
	}
}

// bandPower returns the power of a frame in a band, by the definition of the
// Fourier transform.
func bandPower(sound []float32, frame int, filter []float32) (power float64) {
	x := make([]float64, fftSize)
	for i := range x {
		at := frame*hop + i - fftSize/2
		if at < 0 {
			at = -at
		}
		if at < len(sound) {
			x[i] = float64(sound[at]) * (0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/fftSize))
		}
	}
	key := fmt.Sprint(frame)
	spectrum, ok := spectra[key]
	if !ok {
		for b := range bins {
			var re, im float64
			for i, v := range x {
				sin, cos := math.Sincos(2 * math.Pi * float64(b*i) / fftSize)
				re, im = re+v*cos, im+v*sin
			}
			spectrum = append(spectrum, re*re+im*im)
		}
		spectra[key] = spectrum
	}
	for b, p := range spectrum {
		power += p * float64(filter[b])
	}
	return power
}

var spectra = map[string][]float64{}

// TestCancelIsQuick checks that a long computation ends soon after
// cancellation.
func TestCancelIsQuick(t *testing.T) {
	m := testModel(t, 1, "")
	var stop Stop
	done := make(chan error)
	go func() {
		for {
			w, err := m.Encode(testSound(7), 5, 1, &stop)
			if err != nil {
				done <- err
				return
			}
			w.Free()
		}
	}()
	time.Sleep(20 * time.Millisecond)
	stop.Now()
	assert.ErrorIs(t, <-done, ErrStopped)
}
