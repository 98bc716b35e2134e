package whisper

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

func TestMain(m *testing.M) {
	outside.Main(closing{m})
}

const second = audio.SampleRate

// spans returns spans of speech from seconds: start, end, start, end …
func spans(seconds ...float64) []audio.Span {
	var s []audio.Span
	for i := 0; i < len(seconds); i += 2 {
		s = append(s, audio.Span{Start: int(seconds[i] * second), End: int(seconds[i+1] * second)})
	}
	return s
}

// modelFile is a model's file on disk or in memory.
type modelFile struct {
	models.Model
	Path string
	Data []byte
}

func (m modelFile) model() *models.Model {
	f := models.File{Part: models.PartModel, Name: m.Name, Path: m.Path}
	if m.Data != nil {
		f.Data = func() ([]byte, error) { return m.Data, nil }
	}
	m.Files = []models.File{f}
	return &m.Model
}

func openFile(m modelFile, opt Options) (*Engine, error) { return Open(m.model(), opt) }

// open opens a test model and closes it after the test.
func open(t testing.TB, data []byte, opt Options) *Engine {
	t.Helper()
	return openWindows(t, data, 0, opt)
}

// openWindows is open with windows of the given length; at 2.5 s, two stretches
// of one second are two windows.
func openWindows(t testing.TB, data []byte, seconds float64, opt Options) *Engine {
	t.Helper()
	e, err := openFile(modelFile{Data: data, Model: models.Model{Name: "test.bin", WindowSeconds: seconds}}, opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// greedy returns the options of the cheapest decode.
func greedy() asr.Options {
	o := asr.DefaultOptions()
	o.Language, o.BeamSize = "en", 1
	return o
}

func textsOf(tr *asr.Transcript) []string {
	list := []string{}
	for _, s := range tr.Segments {
		list = append(list, s.Text)
	}
	return list
}

func TestTranscribeReturnsTheModelsText(t *testing.T) {
	e := open(t, testModel(), Options{})
	pcm := audio.FromSamples(make([]float32, 20*second))
	tr, err := e.Transcribe(context.Background(), pcm, spans(5.2, 6.2), greedy())
	require.NoError(t, err)
	require.Equal(t, "en", tr.Language)
	require.Len(t, tr.Segments, 1)
	s := tr.Segments[0]
	assert.Equal(t, "Alpha beta.", s.Text)
	assert.InDelta(t, 5.2, s.Start, 1e-6, "the window begins at 4.8, the speech at 5.2")
	assert.InDelta(t, 5.8, s.End, 1e-6, "the mark of 1.0 s")
	require.Len(t, s.Words, 2)
	assert.Equal(t, "beta.", s.Words[1].Text)
	assert.Greater(t, s.Words[0].Probability, 0.9)
	assert.Greater(t, s.AvgLogProb, -0.1)
	assert.Equal(t, asr.Stats{Windows: 1, EncoderPasses: 1, DecoderSteps: tr.Stats.DecoderSteps}, tr.Stats)
	assert.InDelta(t, 7, tr.Stats.DecoderSteps, 2, "prompt, mark, three words, mark, and the no-speech question")

	o := greedy()
	o.WordTimestamps = false
	tr, err = e.Transcribe(context.Background(), pcm, spans(5.2, 6.2), o)
	require.NoError(t, err)
	assert.Nil(t, tr.Segments[0].Words)
	assert.Equal(t, s.Text, tr.Segments[0].Text)
}

// TestSegmentMeasurements: tokens, temperature and the window's start are the
// decoder's own.
func TestSegmentMeasurements(t *testing.T) {
	e := open(t, testModel(), Options{})
	pcm := audio.FromSamples(make([]float32, 20*second))
	o := greedy()
	for _, o.Temperature = range []float64{0, 0.2} {
		tr, err := e.Transcribe(context.Background(), pcm, spans(5.2, 6.2), o)
		require.NoError(t, err)
		s := tr.Segments[0]
		assert.Equal(t, []int32{int32(wordToken(" Alpha")), int32(wordToken(" beta")), int32(wordToken("."))}, s.Tokens)
		assert.Equal(t, []int{1, 2}, []int{s.Words[0].Tokens, s.Words[1].Tokens})
		assert.InDelta(t, o.Temperature, s.Temperature, 1e-9)
		assert.InDelta(t, 4.8, s.Seek, 0.2)
		assert.LessOrEqual(t, s.Seek, s.Start)
	}
	unsure := open(t, buildModelAs(testHeader, say(0.0, " Alpha", " beta", ".", 1.0), 1), Options{})
	tr, err := unsure.Transcribe(context.Background(), pcm, spans(5.2, 6.2), greedy())
	require.NoError(t, err)
	require.NotEmpty(t, tr.Segments)
	for _, s := range tr.Segments {
		assert.Zero(t, s.Temperature, "unlikely, but no loop: it stays")
	}
}

// TestTranslation: the decoder gets the token for translation, and a model
// without training for it returns an error. After "translate" the test model
// starts 0.6 s into the window.
func TestTranslation(t *testing.T) {
	const translate, later = 50358, zeroMark + 30
	e := open(t, buildModelAs(testHeader, say(0.0, " Alpha", " beta", ".", 1.0), 8, func(embedding []float32, width int) {
		for i := range width {
			embedding[translate*width+i] = 64 * embedding[later*width+i]
		}
	}), Options{})
	require.True(t, e.Abilities().Translate)
	pcm := audio.FromSamples(make([]float32, 20*second))
	o := greedy()
	for want, translate := range map[float64]bool{5.2: false, 5.4: true} {
		o.Translate = translate
		tr, err := e.Transcribe(context.Background(), pcm, spans(5.2, 6.2), o)
		require.NoError(t, err)
		assert.InDelta(t, want, tr.Segments[0].Start, 1e-6)
	}
	untrained, err := openFile(modelFile{Data: testModel(), Model: models.Model{NoTranslation: true}}, Options{})
	require.NoError(t, err)
	defer untrained.Close()
	assert.False(t, untrained.Abilities().Translate)
	o.Translate = true // regardless of the loop's last value
	_, err = untrained.Transcribe(context.Background(), pcm, spans(5.2, 6.2), o)
	require.ErrorIs(t, err, ErrTranslation)
	assert.True(t, spec.IsPermanent(err))
}

func TestNothingIsDecodedWithoutSpeech(t *testing.T) {
	e := open(t, testModel(), Options{})
	tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, 20*second)), nil, greedy())
	require.NoError(t, err)
	assert.Empty(t, tr.Segments)
	assert.Equal(t, asr.Stats{}, tr.Stats)
}

func TestVeryShortSpeech(t *testing.T) {
	e := open(t, testModel(), Options{})
	for _, n := range []int{1, 100, 1600, 8000} {
		tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, n)), []audio.Span{{End: n}}, greedy())
		require.NoError(t, err, "%d samples", n)
		assert.Equal(t, 1, tr.Stats.EncoderPasses)
	}
}

func TestRestOfAWindowIsDecoded(t *testing.T) {
	e := open(t, testModel(), Options{})
	pcm := audio.FromSamples(make([]float32, 10*second))
	tr, err := e.Transcribe(context.Background(), pcm, spans(0, 4.5), greedy())
	require.NoError(t, err)
	assert.Equal(t, 1, tr.Stats.Continued, "the text ends after 1 s each time, and a window has one repair")
	assert.Equal(t, 2, tr.Stats.EncoderPasses)
	assert.Equal(t, 1, tr.Stats.Untried)
	assert.Len(t, tr.Segments, 2)
	assert.InDelta(t, 1, tr.Segments[1].Start, 0.05)
}

func TestSkippedSpeechIsDecoded(t *testing.T) {
	e := open(t, buildModel(testHeader, say(0.0, " Alpha", " beta", " gamma", " delta", ".", 13.0)), Options{})
	const text = "Alpha beta gamma delta."
	for name, c := range map[string]struct {
		speech  []float64
		want    []string
		ends    float64 // of the first segment
		skipped int
	}{
		"found":                        {[]float64{0.2, 1.8, 2.2, 4.4}, []string{text, text}, 1.8, 1},
		"too little for its stretch":   {[]float64{0.2, 1.8, 2.2, 6.6}, []string{text}, 1.8, 1},
		"few words for all the speech": {[]float64{0.2, 1.8, 2.2, 4.4, 4.8, 7}, []string{text}, 7, 0},
		"all said":                     {[]float64{0.2, 2.2}, []string{text}, 2.2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, 14*second)), spans(c.speech...), greedy())
			require.NoError(t, err)
			assert.Equal(t, c.want, textsOf(tr))
			assert.InDelta(t, c.ends, tr.Segments[0].End, 1e-6)
			assert.Equal(t, c.skipped, tr.Stats.Skipped)
			assert.Equal(t, 1+c.skipped, tr.Stats.EncoderPasses)
			if len(tr.Segments) == 2 {
				assert.InDelta(t, 2.2, tr.Segments[1].Start, 1e-6)
				assert.InDelta(t, 4.4, tr.Segments[1].End, 1e-6)
			}
		})
	}
}

func TestDecodingEndsALoop(t *testing.T) {
	parts := []any{0.0}
	for range 8 {
		parts = append(parts, " Alpha", " beta")
	}
	e := open(t, buildModel(testHeader, say(append(parts, 1.0)...)), Options{})
	tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, 2*second)), spans(0, 1), greedy())
	require.NoError(t, err)
	assert.Equal(t, []string{"Alpha beta"}, textsOf(tr))
	assert.Equal(t, 5, tr.Stats.Fallbacks, "0.2, 0.4 … 1.0")
	assert.Equal(t, 6, tr.Stats.Loops)
	assert.Equal(t, 2, tr.Stats.EncoderPasses)
}

func TestThePromptReachesTheDecoder(t *testing.T) {
	// A prompt of n tokens and the mark before it shift the plan by n+1
	// positions; this model then writes no text.
	e := open(t, buildModel(testHeader, say(0.0, " Alpha", " beta", " gamma", " delta", ".", 1.0)), Options{})
	pcm := audio.FromSamples(make([]float32, 4*second))
	o := greedy()
	for prompt, unprompted := range map[string]int{"": 0, "omega omega": 1} {
		o.InitialPrompt = prompt
		tr, err := e.Transcribe(context.Background(), pcm, spans(0, 1), o)
		require.NoError(t, err)
		assert.Equal(t, []string{"Alpha beta gamma delta."}, textsOf(tr))
		assert.Equal(t, unprompted, tr.Stats.Unprompted)
		assert.Equal(t, 1, tr.Stats.EncoderPasses)
	}
}

func TestTextWithoutSpeechIsDiscarded(t *testing.T) {
	e := open(t, testModel(), Options{})
	w := decode.Window{Pieces: spans(10, 20), Speech: spans(10, 11, 18, 20)}
	mark := func(s float64) token { return token{id: int32(zeroMark + int(s*50))} }
	word := func(s string) token { return token{id: int32(wordToken(s))} }
	words, skips, covered, ended := readText(e.cpu, w, attempt{tokens: []token{
		mark(0), word(" Alpha"), mark(1), mark(3), word(" gamma"), word(" delta"), mark(6), mark(8), word(" beta"), mark(9.5),
	}})
	require.Len(t, words, 2)
	assert.Equal(t, " Alpha", words[0].Text)
	assert.Equal(t, " beta", words[1].Text)
	assert.InDelta(t, 18, words[1].Start, 1e-6)
	assert.Empty(t, skips)
	assert.InDelta(t, 19.5, covered, 1e-6)
	assert.True(t, ended)
}

func TestParallelWindowsGiveTheSameText(t *testing.T) {
	e := openWindows(t, testModel(), 2.5, Options{})
	pcm := audio.FromSamples(make([]float32, 400*second))
	var speech []audio.Span
	for i := range 12 {
		speech = append(speech, spans(float64(30*i), float64(30*i)+1.2)...)
	}
	var want *asr.Transcript
	for _, parallel := range few(3, 0, 1, 2, 5) {
		o := greedy()
		o.Parallel = parallel
		var reported []float64
		o.Progress = func(done, total float64) { reported = append(reported, done/total) }
		var passes atomic.Int64
		o.Working = func() { passes.Add(1) }
		tr, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		if want == nil {
			want = tr
			require.Len(t, want.Segments, 12)
		}
		assert.Equal(t, want, tr)
		assert.Greater(t, int(passes.Load()), tr.Stats.EncoderPasses, "each pass of encoder and decoder")
		require.Len(t, reported, tr.Stats.Windows)
		assert.IsIncreasing(t, reported)
		assert.InDelta(t, 1, reported[len(reported)-1], 1e-9)
	}
}

func TestConcurrentTranscriptions(t *testing.T) {
	e := openWindows(t, testModel(), 2.5, Options{})
	pcm := audio.FromSamples(make([]float32, 100*second))
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			o := greedy()
			o.Parallel = 2
			tr, err := e.Transcribe(context.Background(), pcm, spans(0, 1, 31, 32, 62, 63), o)
			if assert.NoError(t, err) {
				assert.Equal(t, []string{"Alpha beta.", "Alpha beta.", "Alpha beta."}, textsOf(tr))
			}
		})
	}
	group.Wait()
}

func TestCancellation(t *testing.T) {
	e := openWindows(t, testModel(), 2.5, Options{})
	pcm := audio.FromSamples(make([]float32, 3000*second))
	var speech []audio.Span
	for i := range 90 {
		speech = append(speech, spans(float64(31*i), float64(31*i)+1)...)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	o := greedy()
	n := 0
	o.Progress = func(float64, float64) {
		if n++; n == 3 {
			cancel(why)
		}
	}
	_, err := e.Transcribe(ctx, pcm, speech, o)
	require.ErrorIs(t, err, why)
	assert.LessOrEqual(t, n, 4, "nothing is begun after the cancellation")
	_, err = e.Transcribe(ctx, pcm, speech, o)
	require.ErrorIs(t, err, why)
	_, _, err = e.DetectLanguage(ctx, pcm, speech, asr.Detection{})
	require.ErrorIs(t, err, why)

	// in the middle of a window
	for range 10 {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		_, err := e.Transcribe(ctx, pcm, speech, greedy())
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	tr, err := e.Transcribe(context.Background(), pcm, speech[:1], greedy())
	require.NoError(t, err)
	assert.Equal(t, []string{"Alpha beta."}, textsOf(tr), "as before")
}

func TestCloseDuringRuns(t *testing.T) {
	pcm := audio.FromSamples(make([]float32, 3000*second))
	var speech []audio.Span
	for i := range 90 {
		speech = append(speech, spans(float64(31*i), float64(31*i)+1)...)
	}
	for range 5 {
		e, err := openFile(modelFile{Data: testModel(), Model: models.Model{WindowSeconds: 2.5}}, Options{})
		require.NoError(t, err)
		begun := make(chan struct{})
		var once sync.Once
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				o := greedy()
				o.Parallel = 2
				o.Progress = func(float64, float64) { once.Do(func() { close(begun) }) }
				_, err := e.Transcribe(context.Background(), pcm, speech, o)
				assert.ErrorIs(t, err, ErrClosed)
			})
		}
		<-begun
		group.Go(func() { assert.NoError(t, e.Close()) })
		require.NoError(t, e.Close())
		group.Wait()
		require.NoError(t, e.Close())
		_, err = e.Transcribe(context.Background(), pcm, speech, greedy())
		require.ErrorIs(t, err, ErrClosed)
		_, _, err = e.DetectLanguage(context.Background(), pcm, speech, asr.Detection{})
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	e := open(t, testModel(), Options{})
	pcm := audio.FromSamples(make([]float32, second))
	for name, c := range map[string]struct {
		change func(*asr.Options)
		is     error
		want   string
	}{
		"no language":      {func(o *asr.Options) { o.Language = "" }, asr.ErrLanguage, `not ""`},
		"unknown language": {func(o *asr.Options) { o.Language = "portugese" }, asr.ErrLanguage, `not "portugese"`},
		"not the model's":  {func(o *asr.Options) { o.Language = "yue" }, asr.ErrLanguage, `not "yue"`},
		"hot":              {func(o *asr.Options) { o.Temperature = 1.5 }, nil, "temperature: expected 0 to 1, found 1.5"},
		"many":             {func(o *asr.Options) { o.BestOf = 21 }, nil, "best of: expected 0 to 20, found 21"},
	} {
		o := greedy()
		c.change(&o)
		_, err := e.Transcribe(context.Background(), pcm, spans(0, 1), o)
		require.ErrorContains(t, err, c.want, name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is, name)
		}
	}
	assert.Len(t, e.Languages(), 99)
	o := greedy()
	o.Language = "pt-BR"
	tr, err := e.Transcribe(context.Background(), pcm, nil, o)
	require.NoError(t, err)
	assert.Equal(t, "pt", tr.Language)
}

func TestModelLanguages(t *testing.T) {
	e, err := openFile(modelFile{Data: testModel(), Model: models.Model{Languages: []string{"de", "zh-CN"}}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"de", "zh"}, e.Languages())
	require.NoError(t, e.Close())
	_, err = openFile(modelFile{Data: testModel(), Model: models.Model{Languages: []string{"??"}}}, Options{})
	require.ErrorContains(t, err, "languages")
}

func TestSamplingDoesNotDependOnEarlierRuns(t *testing.T) {
	e := open(t, testModel(), Options{})
	pcm := audio.FromSamples(make([]float32, 2*second))
	o := greedy()
	o.Temperature = 1
	for _, bestOf := range few(3, 0, 1, 3, 10) {
		o.BestOf = bestOf
		first, err := e.Transcribe(context.Background(), pcm, spans(0, 1), o)
		require.NoError(t, err)
		again, err := e.Transcribe(context.Background(), pcm, spans(0, 1), o)
		require.NoError(t, err)
		assert.Equal(t, first, again)
		assert.Equal(t, 1, first.Stats.EncoderPasses, "all samples in one pass")
	}
}
