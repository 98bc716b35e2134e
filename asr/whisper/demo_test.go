package whisper

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

// emulated reports whether the CPU is emulated, a hundred times slower than a
// real one (test/arm64/run.sh sets it). Some tests then skip repetitions with
// other clips, threads or options.
var emulated = os.Getenv("OTOGRAPH_EMULATED") != ""

// few returns the list, or in the short form and on an emulated CPU its first n
// elements.
func few[T any](n int, list ...T) []T {
	if emulated || testing.Short() {
		return list[:n]
	}
	return list
}

// demoModel returns the embedded demo model.
func demoModel(t testing.TB) modelFile {
	t.Helper()
	m, ok := demo.Models().Role(models.RoleStandard)
	require.True(t, ok, "the demo set has a standard recognizer")
	data, err := m.Main().Bytes()
	require.NoError(t, err)
	return modelFile{Data: data, Model: models.Model{Name: m.Name, WindowSeconds: m.WindowSeconds, Languages: m.Languages}}
}

// openDemo returns the engine of the demo model that most tests share; none may
// close it.
func openDemo(t testing.TB) *Engine {
	t.Helper()
	if shared == nil {
		var err error
		shared, err = openFile(demoModel(t), Options{})
		require.NoError(t, err)
	}
	return shared
}

// shared is the engine of openDemo, which closing closes after the tests.
var shared *Engine

type closing struct{ *testing.M }

func (c closing) Run() int {
	code := c.M.Run()
	if shared == nil {
		return code
	}
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func openModel(t testing.TB, m modelFile) *Engine {
	t.Helper()
	e, err := openFile(m, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// clip is a recording of testdata: one sentence, with its position (seconds).
type clip struct {
	name, language, text string
	end                  float64 // the speech begins at 0.25
}

var clips = []clip{
	{"en_00", "en", "Can we meet next month?", 1.67},
	{"en_05", "en", "He is reading a new book about China.", 2.26},
	{"en_12", "en", "I am going to London tonight.", 1.76},
	{"en_29", "en", "Have you seen my bottle?", 1.47},
	{"es_00", "es", "Hoy es domingo, treinta de marzo.", 2.02},
	{"fr_08", "fr", "Je vais au bureau ce soir.", 1.51},
	{"pt_00", "pt", "Eu gosto muito de leite e sopa.", 2.0},
	{"de_00", "de", "Ich mag Kuchen und Kaffee.", 1.77},
	{"zh_00", "zh", "你要喝牛奶还是咖啡？", 2.84},
}

func read(t testing.TB, name string) *audio.PCM {
	t.Helper()
	pcm, err := audio.Open(context.Background(), audio.File(filepath.Join("testdata", name+".wav")), audio.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pcm.Close()) })
	return pcm
}

func (c clip) speech() []audio.Span { return spans(0.22, c.end+0.03) }

// checkWords asserts properties of the words of every transcript.
func checkWords(t testing.TB, tr *asr.Transcript, speech []audio.Span) {
	t.Helper()
	within := func(at float64) bool {
		for _, s := range speech {
			if a, b := s.Seconds(); at >= a-1e-6 && at <= b+1e-6 {
				return true
			}
		}
		return false
	}
	before := 0.0
	for _, s := range tr.Segments {
		require.NotEmpty(t, s.Words, s.Text)
		assert.InDelta(t, s.Words[0].Start, s.Start, 1e-9)
		assert.InDelta(t, s.Words[len(s.Words)-1].End, s.End, 1e-9)
		var joined strings.Builder
		for _, w := range s.Words {
			assert.GreaterOrEqual(t, w.Start, before-1e-9, w.Text)
			assert.GreaterOrEqual(t, w.End-w.Start, 0.01-1e-9, w.Text)
			assert.True(t, within(w.Start) && within(w.End), "%s at %g to %g is outside the speech", w.Text, w.Start, w.End)
			assert.True(t, w.Probability > 0 && w.Probability <= 1, "%s has probability %g", w.Text, w.Probability)
			before = w.End
			joined.WriteString(w.Text)
		}
		assert.Equal(t, strings.ReplaceAll(s.Text, " ", ""), strings.ReplaceAll(joined.String(), " ", ""))
	}
}

func TestDemoClips(t *testing.T) {
	e := openDemo(t)
	list := clips
	if emulated || testing.Short() {
		list = []clip{clips[1], clips[4], clips[8]} // in three languages
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			pcm := read(t, c.name)
			o := asr.DefaultOptions()
			o.Language = c.language
			tr, err := e.Transcribe(context.Background(), pcm, c.speech(), o)
			require.NoError(t, err)
			assert.Equal(t, []string{c.text}, textsOf(tr))
			checkWords(t, tr, c.speech())
			if spec.Spaced(c.language) {
				assert.Len(t, tr.Segments[0].Words, len(strings.Fields(c.text)))
			} else {
				assert.Len(t, tr.Segments[0].Words, len([]rune(c.text))-1, "a word for every character, with its punctuation")
			}
		})
	}
}

// A draft of the same speech saves decoder passes, a wrong one costs none, and
// neither changes the text.
func TestDemoSketchesFromADraft(t *testing.T) {
	m := demoModel(t)
	m.AlignmentHeads = [][2]int{{0, 0}} // so that texts have no time marks
	e := openModel(t, m)
	sketch := func(c clip, draft string) *asr.Transcript {
		o := asr.DefaultOptions()
		o.Language, o.Draft.Text = c.language, draft
		tr, err := e.Sketch(t.Context(), read(t, c.name), c.speech(), o)
		require.NoError(t, err)
		require.Len(t, tr.Segments, 1)
		return tr
	}
	for _, c := range []clip{clips[1], clips[8]} {
		plain := sketch(c, "")
		for draft, least := range map[string]int{plain.Segments[0].Text: 4, "Milch": 0} {
			tr := sketch(c, draft)
			assert.Equal(t, plain.Segments, tr.Segments)
			assert.LessOrEqual(t, tr.Stats.DecoderSteps, plain.Stats.DecoderSteps-least)
		}
	}
}

func TestDemoDetectsLanguages(t *testing.T) {
	e := openModel(t, demoModel(t)) // the test counts the windows that the engine stores
	for _, c := range few(2, clips[3:]...) {
		language, p, err := e.DetectLanguage(context.Background(), read(t, c.name), c.speech(), asr.Detection{})
		require.NoError(t, err)
		assert.Equal(t, c.language, language, c.name)
		assert.True(t, p > 0.5 && p <= 1, "%s: %g", c.name, p)
		kept := len(e.cpu.stored)
		language, p, err = e.DetectLanguage(context.Background(), read(t, c.name), c.speech(), asr.Detection{Brief: true})
		require.NoError(t, err)
		assert.Equal(t, c.language, language, c.name)
		assert.True(t, p >= sureLanguage && p <= 1, "%s: %g", c.name, p)
		assert.Len(t, e.cpu.stored, kept, "no window is encoded in full")
	}
	if emulated {
		return // in silence every language is plausible, and is decoded
	}
	language, p, err := e.DetectLanguage(context.Background(), audio.FromSamples(make([]float32, 5*second)), nil, asr.Detection{})
	require.NoError(t, err)
	assert.Contains(t, e.Languages(), language, "a guess, from silence")
	assert.True(t, p > 0 && p <= 1)
	_, _, err = e.DetectLanguage(context.Background(), audio.FromSamples(nil), nil, asr.Detection{})
	require.NoError(t, err, "not even a sample")
}

// TestDemoChoosesAmongLanguages: detection answers with one of the given
// languages, or with any if the model knows none of them.
func TestDemoChoosesAmongLanguages(t *testing.T) {
	e := openDemo(t)
	c := clips[slices.IndexFunc(clips, func(c clip) bool { return c.language == "en" })]
	for _, tt := range []struct {
		want  string
		among []string
	}{{"zh", []string{"zh", "de"}}, {"en", []string{"de", "en"}}, {"en", []string{"tlh"}}} {
		language, p, err := e.DetectLanguage(context.Background(), read(t, c.name), c.speech(), asr.Detection{Among: tt.among})
		require.NoError(t, err)
		assert.Equal(t, tt.want, language, "%q", tt.among)
		assert.True(t, p > 0 && p <= 1, "%g", p)
	}
}

// TestDemoComparesTextsWhenLanguageIsUnclear: in noise the network takes a
// Chinese sentence for English; its texts in both languages show that it is
// Chinese.
func TestDemoComparesTextsWhenLanguageIsUnclear(t *testing.T) {
	if emulated {
		t.Skip("decodes in every plausible language, some minutes in an emulator")
	}
	e := openDemo(t)
	c := clips[slices.IndexFunc(clips, func(c clip) bool { return c.language == "zh" })]
	pcm := read(t, c.name)
	x := slices.Clone(pcm.Samples(0, pcm.Len()))
	var energy float64
	for _, v := range x {
		energy += float64(v) * float64(v)
	}
	noise := math.Sqrt(energy/float64(len(x))) * math.Pow(10, -11.0/20) // 11 dB below
	r := rand.New(rand.NewPCG(1, 7))
	for i := range x {
		x[i] += float32(noise * r.NormFloat64())
	}
	pcm = audio.FromSamples(x)
	heard, err := e.firstPass(context.Background(), pcm, e.listen(pcm, c.speech()), false)
	require.NoError(t, err)
	require.Equal(t, "en", likeliest(average(e.listen(pcm, c.speech()), heard), e.languages), "else this clip shows nothing")
	language, p, err := e.DetectLanguage(context.Background(), pcm, c.speech(), asr.Detection{})
	require.NoError(t, err)
	assert.Equal(t, "zh", language)
	assert.True(t, p > 0.5 && p <= 1, "%g", p)
	language, again, err := e.DetectLanguage(context.Background(), pcm, c.speech(), asr.Detection{Brief: true})
	require.NoError(t, err)
	assert.Equal(t, "zh", language, "not sure: it decides as DetectLanguage does")
	assert.InDelta(t, p, again, 1e-9)
}

// A state's earlier decodes must not affect a later language detection.
func TestDemoDetectionDependsOnlyOnTheSound(t *testing.T) {
	e := openDemo(t)
	detect := func(c clip) float64 {
		language, p, err := e.DetectLanguage(context.Background(), read(t, c.name), c.speech(), asr.Detection{})
		require.NoError(t, err)
		assert.Equal(t, c.language, language)
		return p
	}
	first := detect(clips[3])
	o := asr.DefaultOptions()
	o.Language = clips[0].language
	_, err := e.Transcribe(context.Background(), read(t, clips[0].name), clips[0].speech(), o)
	require.NoError(t, err)
	detect(clips[4])
	assert.Equal(t, first, detect(clips[3]))
}

// together joins clips with pauses between them, and returns the speech.
func together(t testing.TB, pause float64, list ...clip) (*audio.PCM, []audio.Span) {
	t.Helper()
	var x []float32
	var speech []audio.Span
	for _, c := range list {
		pcm := read(t, c.name)
		for _, s := range c.speech() {
			speech = append(speech, audio.Span{Start: len(x) + s.Start, End: len(x) + s.End})
		}
		x = append(x, pcm.Samples(0, pcm.Len())...)
		x = append(x, make([]float32, int(pause*second))...)
	}
	return audio.FromSamples(x), speech
}

func TestDemoIsReproducible(t *testing.T) {
	e := openDemo(t)
	pcm, speech := together(t, 1.5, clips[0], clips[1], clips[2], clips[3])
	o := asr.DefaultOptions()
	o.Language = "en"
	first, err := e.Transcribe(context.Background(), pcm, speech, o)
	require.NoError(t, err)
	require.Len(t, first.Segments, 4)
	assert.Equal(t, clips[0].text, first.Segments[0].Text)
	assert.Equal(t, clips[2].text, first.Segments[2].Text)
	checkWords(t, first, speech)
	for i, s := range first.Segments {
		a, b := speech[i].Seconds()
		assert.InDelta(t, a, s.Start, 0.4)
		assert.InDelta(t, b, s.End, 0.4)
	}
	var group sync.WaitGroup
	for _, i := range few(1, 1, 0, 2) { // concurrently, and each at another parallelism
		group.Go(func() {
			o := o
			o.Parallel = 1 + i
			tr, err := e.Transcribe(context.Background(), pcm, speech, o)
			if assert.NoError(t, err) {
				assert.Equal(t, first, tr)
			}
		})
	}
	group.Wait()
}

// TestDemoKeepsNoStateBetweenRuns: earlier decodes leave no trace.
func TestDemoKeepsNoStateBetweenRuns(t *testing.T) {
	e := openModel(t, demoModel(t))
	long, longSpeech := together(t, 0.5, clips[0], clips[1], clips[2])
	o := asr.DefaultOptions()
	o.Language, o.BeamSize = "en", 1
	run := func(pcm *audio.PCM, speech []audio.Span) *asr.Transcript {
		tr, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		return tr
	}
	fresh := run(read(t, "en_05"), clips[1].speech())
	run(long, longSpeech)
	assert.Equal(t, fresh, run(read(t, "en_05"), clips[1].speech()), "to the last digit of every probability")
	_, _, err := e.DetectLanguage(context.Background(), long, longSpeech, asr.Detection{})
	require.NoError(t, err)
	assert.Equal(t, fresh, run(read(t, "en_05"), clips[1].speech()))
}

// The numbers of open windows and of threads do not change the text.
func TestDemoThreadsDoNotChangeTheText(t *testing.T) {
	m := demoModel(t)
	m.WindowSeconds = 5.5
	e := openModel(t, m)
	pcm, speech := together(t, 0.3, clips[0], clips[1], clips[2], clips[3], clips[2], clips[1])
	for _, beam := range few(1, 5, 1) {
		o := asr.DefaultOptions()
		o.Language, o.BeamSize = "en", beam
		one, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		require.Equal(t, 3, one.Stats.Windows)
		for _, cores := range few(1, 2, 3) {
			o.Parallel = cores
			tr, err := e.Transcribe(context.Background(), pcm, speech, o)
			require.NoError(t, err)
			assert.Equal(t, one, tr, "to the last digit of every probability: %d cores, beam %d", cores, beam)
		}
	}
}

func TestDemoFindsNothingInSilence(t *testing.T) {
	e := openDemo(t)
	x := make([]float32, 3*second)
	seed := uint32(1)
	for i := range x { // faint noise that a detector took for speech
		seed = seed*1664525 + 1013904223
		x[i] = (float32(seed>>8)/(1<<23) - 1) * 0.003
	}
	o := asr.DefaultOptions()
	o.Language = "en"
	o.Hotwords = []string{"London", "tonight", "Kubernetes"}
	for _, samples := range [][]float32{x, make([]float32, len(x))} {
		tr, err := e.Transcribe(context.Background(), audio.FromSamples(samples), spans(0.5, 2.5), o)
		require.NoError(t, err)
		assert.Empty(t, textsOf(tr))
	}
}

func TestDemoTokenizes(t *testing.T) {
	e := openDemo(t)
	for _, text := range []string{" London", " tonight", "你要喝牛奶", " São Paulo", "Kubernetes"} {
		var b strings.Builder
		tokens := e.cpu.Tokenize(text)
		for _, k := range tokens {
			b.WriteString(e.cpu.Text(k))
		}
		assert.Equal(t, text, b.String())
		assert.Equal(t, tokens, spell(e.cpu, text))
	}
	for _, text := range []string{"Ωμέγα", " Ωμέγα", "Łódź", "Ω London"} { // a vocabulary without these letters
		assert.Empty(t, spell(e.cpu, text), text)
	}
}
