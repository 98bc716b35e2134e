package otograph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

const conversation = "testdata/conversation.flac"

// spoken is the text of the bundled recording.
const spoken = "Good morning, how are you today? I am very well, thank you, and you? I am fine, thank you. " +
	"Can we meet at the office on Friday? No, Friday is not possible. How about Monday? Yes, Monday at ten o'clock is fine for me. " +
	"Let us talk about the budget first. The budget for March is four thousand two hundred euros. The telephone is ringing. " +
	"One moment, please. Of course, no problem. I am sorry, what do you think about the new contract? I think the contract is good. " +
	"There is a mistake in the invoice. I will send you the invoice tomorrow. Thank you very much for your help. " +
	"Goodbye and have a nice weekend. See you on Monday."

func TestMain(m *testing.M) {
	// Hide the user's models from OpenDefault.
	if err := errors.Join(os.Unsetenv("OTOGRAPH_MODELS"), os.Setenv("XDG_DATA_HOME", "/nonexistent")); err != nil {
		panic(err)
	}
	outside.Main(closing{m})
}

// demonstration is the pipeline that most tests share, because loading the
// models takes longer than many runs.
var demonstration = sync.OnceValues(func() (*otograph.Pipeline, error) {
	return otograph.Open(demo.Models(), otograph.Config{Cascade: new(0.0)})
})

// closing closes the shared pipeline after the tests.
type closing struct{ *testing.M }

func (c closing) Run() int {
	code := c.M.Run()
	p, err := demonstration()
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// shared returns the pipeline of the demo models that no test may close.
func shared(t testing.TB) *otograph.Pipeline {
	t.Helper()
	needNative(t)
	p, err := demonstration()
	require.NoError(t, err)
	return p
}

func needNative(t testing.TB) {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("needs the native libraries (make setup): %v", err)
	}
}

// open opens a pipeline without the cascade by default, because the standard
// tier's text of a doubtful segment depends on the processor.
func open(t testing.TB, set *models.Set, config ...otograph.Config) *otograph.Pipeline {
	t.Helper()
	needNative(t)
	var c otograph.Config
	if len(config) > 0 {
		c = config[0]
	}
	if c.Cascade == nil {
		c.Cascade = new(0.0)
	}
	p, err := otograph.Open(set, c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// excerpt returns 7 seconds of the recording with both speakers, for tests
// that are not about the words.
func excerpt(t testing.TB) otograph.Source {
	t.Helper()
	pcm, err := audio.Open(t.Context(), otograph.File(conversation), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	samples := slices.Clone(pcm.Samples(5*audio.SampleRate, 12*audio.SampleRate))
	return audio.Raw(samples, audio.SampleRate, 1)
}

func text(res *otograph.Result) string {
	var b strings.Builder
	for _, s := range res.Segments {
		b.WriteString(s.Text + " ")
	}
	return b.String()
}

// The bundled recording in the optimized tier: no word error, two speakers, the
// music and the telephone.
func TestConversation(t *testing.T) {
	p := shared(t)
	var mu sync.Mutex
	var stages []otograph.Stage
	last := 0.0
	var working atomic.Int64
	res, err := p.Run(t.Context(), otograph.File(conversation), otograph.Options{}, otograph.RunOptions{Working: func() { working.Add(1) }, Progress: func(r otograph.Progress) {
		mu.Lock()
		defer mu.Unlock()
		assert.GreaterOrEqual(t, r.Fraction, last, "progress never falls")
		last = r.Fraction
		if r.Done {
			stages = append(stages, r.Stage)
		}
	}})
	require.NoError(t, err)
	assert.InDelta(t, 1, last, 1e-9)
	assert.Greater(t, working.Load(), int64(125), "the tagger alone reports 125 frames")
	assert.ElementsMatch(t, []otograph.Stage{"decode", "vad", "language", "transcribe", "embed", "events", "diarize"}, stages)

	assert.Equal(t, 60.43, res.AudioDuration)
	assert.Equal(t, "5d3e48cc38029df3004dad3aa9409db1", res.AudioMD5)
	assert.Equal(t, "en", res.Language)
	assert.Greater(t, res.LanguageProbability, 0.5)
	assert.Equal(t, otograph.TierOptimized, res.Tier)
	errs := bench.CompareWords(bench.Units("en", spoken), bench.Units("en", text(res)))
	t.Logf("word error rate %.1f %%", errs.Rate()*100)
	assert.Zero(t, errs.Errors(), "%+v: %s", errs, text(res))

	assert.Equal(t, 2, res.NumSpeakers)
	require.Len(t, res.SpeakerEmbeddings, 2)
	assert.Len(t, res.SpeakerEmbeddings[0].Embedding, 192)
	assert.Equal(t, "SPEAKER_0", res.Segments[0].Speaker, "who speaks first is number 0")
	heard := map[string]bool{}
	for i, e := range res.AudioEvents {
		heard[e.Class] = true
		assert.Greater(t, e.Confidence, 0.3)
		if i > 0 {
			assert.GreaterOrEqual(t, e.Start, res.AudioEvents[i-1].Start)
		}
	}
	assert.True(t, heard["Music"] && heard["Telephone"], "%v", heard)
	for i, s := range res.Segments {
		assert.Equal(t, i, s.ID)
		assert.Less(t, s.Start, s.End)
		assert.Nil(t, s.Words, "the optimized tier has no words")
	}
}

// noisy returns half the recording under white noise that is louder than the voices.
func noisy(t testing.TB) []float32 {
	t.Helper()
	pcm, err := audio.Open(t.Context(), otograph.File(conversation), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	samples := slices.Clone(pcm.Samples(0, pcm.Len()/2))
	noise := rand.New(rand.NewPCG(3, 3))
	for i := range samples {
		samples[i] = 0.4*samples[i] + float32(0.08*noise.NormFloat64())
	}
	return samples
}

// The beam size affects the search of the optimized tier: in noisy audio, a
// narrow beam finds another text.
func TestBeamSizeOptimized(t *testing.T) {
	p := shared(t)
	samples := noisy(t)
	texts := map[string]bool{}
	for _, size := range []int{1, 5} {
		res, err := p.Run(t.Context(), audio.Raw(samples, audio.SampleRate, 1), otograph.Options{
			EnableDiarize: new(false), EnableAudioEvents: new(false), ASRLanguage: new("en"), VADThreshold: new(0.05), ASRBeamSize: new(size),
		})
		require.NoError(t, err)
		assert.Empty(t, res.Warnings)
		texts[text(res)] = true
	}
	assert.Len(t, texts, 2)
}

// The no-speech threshold removes segments of the optimized tier that are
// probably not speech: at 0 all segments, at 1 none, at 0.3 some of the
// segments under loud noise.
func TestNoSpeechThresholdOptimized(t *testing.T) {
	p := shared(t)
	samples := noisy(t)
	segments := map[float64]int{}
	for _, threshold := range []float64{0, 0.3, 1} {
		res, err := p.Run(t.Context(), audio.Raw(samples, audio.SampleRate, 1), otograph.Options{
			EnableDiarize: new(false), EnableAudioEvents: new(false), ASRLanguage: new("en"), VADThreshold: new(0.05), NoSpeechThreshold: new(threshold),
		})
		require.NoError(t, err)
		segments[threshold] = len(res.Segments)
		if threshold < 1 {
			assert.Positive(t, res.Stats.ASR.Discarded)
		}
	}
	t.Logf("segments by threshold: %v", segments)
	assert.Zero(t, segments[0])
	assert.Less(t, segments[0.3], segments[1])
	assert.Positive(t, segments[0.3])
}

// The standard tier has no word error in the conversation either, although the
// first decoding skips one sentence. The times of words increase and lie inside
// speech. Its sentences arrive in several portions during the run.
func TestStandardTierWords(t *testing.T) {
	p := shared(t)
	var told sentences
	res, err := p.Run(t.Context(), otograph.File(conversation), otograph.Options{Optimize: new(false), EnableDiarize: new(false), EnableAudioEvents: new(false)}, told.options())
	require.NoError(t, err)
	told.equal(t, res)
	assert.Greater(t, told.portions, 1)
	assert.Equal(t, otograph.TierStandard, res.Tier)
	assert.Positive(t, res.Stats.ASR.AlignmentPasses, "the words are timed by the CTC model")
	assert.Empty(t, res.Warnings)
	errs := bench.CompareWords(bench.Units("en", spoken), bench.Units("en", text(res)))
	t.Logf("word error rate %.1f %%", errs.Rate()*100)
	assert.Zero(t, errs.Errors(), "%+v: %s", errs, text(res))
	at := 0.0
	for _, s := range res.Segments {
		assert.NotEmpty(t, s.Words)
		for _, w := range s.Words {
			assert.GreaterOrEqual(t, w.Start, at-1e-9)
			assert.GreaterOrEqual(t, w.End, w.Start+0.01-1e-9)
			at = w.Start
			inside := false
			for _, v := range res.VADSegments {
				inside = inside || w.Start >= v.Start-0.02 && w.Start <= v.End+0.02
			}
			assert.True(t, inside, "%q at %.2f begins outside speech", w.Word, w.Start)
		}
	}
}

// The same input and options yield the same result, even with other runs in
// parallel.
func TestDeterministicAndConcurrent(t *testing.T) {
	p := shared(t)
	other := open(t, demo.Models(), otograph.Config{Cores: 1})
	results := make([]string, 3)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			run := p
			if i == 0 {
				run = other
			}
			res, err := run.Run(t.Context(), excerpt(t), otograph.Options{ASRLanguage: new("en")})
			if assert.NoError(t, err) {
				b, err := json.Marshal(res)
				assert.NoError(t, err)
				results[i] = string(b)
			}
		})
	}
	wg.Wait()
	for i := range results {
		assert.Equal(t, results[0], results[i], "run %d differs", i)
	}
}

func TestSingleCapabilities(t *testing.T) {
	p := shared(t)
	off := new(false)
	tests := []struct {
		name string
		opt  otograph.Options
		ran  otograph.Capabilities
	}{
		{"events", otograph.Options{EnableASR: off, EnableDiarize: off}, otograph.Capabilities{AudioEvents: true}},
		{"events by one switch", otograph.Options{EnableASR: off}, otograph.Capabilities{AudioEvents: true}},
		{"transcription", otograph.Options{EnableDiarize: off, EnableAudioEvents: off}, otograph.Capabilities{ASR: true}},
		{"transcription and speakers", otograph.Options{EnableAudioEvents: off}, otograph.Capabilities{ASR: true, Diarize: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opt.ASRLanguage = new("en")
			res, err := p.Run(t.Context(), excerpt(t), tt.opt)
			require.NoError(t, err)
			assert.Equal(t, tt.ran, res.Ran)
		})
	}
}

// Digital silence: no segment and no speaker, and the lists in JSON are empty,
// not null.
func TestSilence(t *testing.T) {
	p := shared(t)
	res, err := p.Run(t.Context(), audio.Raw(make([]float32, 5*audio.SampleRate), audio.SampleRate, 1), otograph.Options{})
	require.NoError(t, err)
	assert.Empty(t, res.Segments)
	assert.Empty(t, res.VADSegments)
	assert.Zero(t, res.NumSpeakers)
	b, err := json.Marshal(res)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"segments":[]`)
	assert.Contains(t, string(b), `"diarize_segments":[]`)
}

// A missing device causes a warning if the standard tier is used, and the CPU
// takes over.
func TestMissingDeviceFallsBackToTheCPU(t *testing.T) {
	_, err := otograph.Open(demo.Models(), otograph.Config{Device: "abacus"})
	require.ErrorContains(t, err, `found "abacus"`)

	p := open(t, demo.Models(), otograph.Config{Device: "vulkan:200"})
	opt := otograph.Options{ASRLanguage: new("en"), Optimize: new(false), EnableDiarize: new(false), EnableAudioEvents: new(false)}
	res, err := p.Run(context.Background(), excerpt(t), opt)
	require.NoError(t, err)
	assert.Contains(t, text(res), "Good morning")
	require.Len(t, res.Warnings, 1)
	assert.Equal(t, "device", res.Warnings[0].Option)
	assert.Contains(t, res.Warnings[0].Reason, "vulkan:200 is not used: this program was built without asr/whispercpp")

	opt.Optimize = new(true)
	res, err = p.Run(context.Background(), excerpt(t), opt)
	require.NoError(t, err)
	assert.Equal(t, otograph.TierOptimized, res.Tier)
	assert.Empty(t, res.Warnings)

	p = open(t, demo.Models(), otograph.Config{Device: "vulkan:200", Cascade: new(1.0)})
	res, err = p.Run(context.Background(), excerpt(t), opt)
	require.NoError(t, err)
	require.Positive(t, res.Stats.Cascade.Doubtful)
	require.Len(t, res.Warnings, 1)
	assert.Equal(t, "device", res.Warnings[0].Option)
}

func TestCanceledRunReturnsItsCause(t *testing.T) {
	p := shared(t)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := p.Run(ctx, excerpt(t), otograph.Options{}, otograph.RunOptions{Progress: func(r otograph.Progress) {
		if r.Stage == otograph.StageVAD && r.Done {
			cancel(reason)
		}
	}})
	assert.ErrorIs(t, err, reason)
}

// Close stops a run and waits for it; later runs are refused.
func TestCloseDuringRun(t *testing.T) {
	p := open(t, demo.Models())
	source := excerpt(t)
	begun := make(chan struct{})
	ended := make(chan error, 1)
	var once sync.Once
	go func() {
		_, err := p.Run(context.Background(), source, otograph.Options{Optimize: new(false)},
			otograph.RunOptions{Progress: func(otograph.Progress) { once.Do(func() { close(begun) }) }})
		ended <- err
	}()
	<-begun
	require.NoError(t, p.Close())
	assert.ErrorIs(t, <-ended, otograph.ErrClosed)
	_, err := p.Run(t.Context(), excerpt(t), otograph.Options{})
	assert.ErrorIs(t, err, otograph.ErrClosed)
	assert.NoError(t, p.Close(), "again")
}

// without returns the demo set without one role.
func without(role models.Role) *models.Set {
	set := &models.Set{Name: "partial"}
	for _, m := range demo.Models().Models {
		if m.Role != role {
			set.Models = append(set.Models, m)
		}
	}
	return set
}

// A missing model is an error that names the role, before any work is done.
func TestMissingModel(t *testing.T) {
	for _, role := range []models.Role{models.RoleVAD, models.RoleEmbedder, models.RoleTagger} {
		p := open(t, without(role))
		_, err := p.Run(t.Context(), otograph.File("there is no such file"), otograph.Options{})
		assert.ErrorIs(t, err, models.ErrMissing)
		assert.ErrorContains(t, err, "role "+string(role))
		assert.Equal(t, err, p.Check(otograph.Options{}), "the same without a recording")
	}
	p := open(t, without(models.RoleStandard))
	res, err := p.Run(t.Context(), excerpt(t), otograph.Options{ASRLanguage: new("ja"), EnableAudioEvents: new(false)})
	assert.ErrorIs(t, err, models.ErrMissing)
	assert.ErrorContains(t, err, "role standard")
	require.NotNil(t, res, "the other stages' results are kept")
	_, err = p.Run(t.Context(), excerpt(t), otograph.Options{EnableDiarize: new(false), EnableAudioEvents: new(false)})
	assert.ErrorIs(t, err, otograph.ErrOptions, "no stage detects the language")
	assert.ErrorContains(t, err, "asr_language")
}

// TestOptimizedLanguages: the optimized tier serves every language that its
// model lists, unless it is restricted.
func TestOptimizedLanguages(t *testing.T) {
	for tier, p := range map[otograph.Tier]*otograph.Pipeline{
		otograph.TierOptimized: shared(t),
		otograph.TierStandard:  open(t, demo.Models(), otograph.Config{OptimizedLanguages: spec.OptimizedLanguages()}),
	} {
		res, err := p.Run(t.Context(), otograph.File("testdata/demo/short/de_00.flac"), otograph.Options{
			ASRLanguage: new("de"), EnableDiarize: new(false), EnableAudioEvents: new(false),
		})
		require.NoError(t, err)
		assert.Equal(t, tier, res.Tier)
		assert.NotEmpty(t, res.Segments)
	}
}

// broken returns the demo set with a file of another kind for one role.
func broken(role models.Role) *models.Set {
	set := demo.Models()
	for i := range set.Models {
		if set.Models[i].Role == role {
			files := append([]models.File(nil), set.Models[i].Files...)
			files[0].Data = func() ([]byte, error) { return []byte("this is no model at all"), nil }
			set.Models[i].Files = files
			set.Models[i].Contract = ""
		}
	}
	return set
}

// A broken model is an error that names file and role; the other stages'
// results are kept, and the error names the failed stage.
func TestBrokenModel(t *testing.T) {
	stages := map[models.Role]otograph.Stage{
		models.RoleVAD: otograph.StageVAD, models.RoleEmbedder: otograph.StageEmbed, models.RoleTagger: otograph.StageEvents,
		models.RoleOptimized: otograph.StageTranscribe, models.RoleStandard: otograph.StageLanguage,
	}
	for role, stage := range stages {
		t.Run(string(role), func(t *testing.T) {
			set := broken(role)
			m, _ := set.Role(role)
			p := open(t, set)
			opt := otograph.Options{ASRLanguage: new("en"), EnableDiarize: new(role == models.RoleEmbedder)}
			if role == models.RoleStandard {
				opt.ASRLanguage = nil // the standard tier detects the language
			}
			res, err := p.Run(t.Context(), excerpt(t), opt)
			var failed *otograph.StageError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, stage, failed.Stage)
			assert.ErrorContains(t, err, m.Main().Name)
			assert.ErrorContains(t, err, string(role))
			require.NotNil(t, res)
			assert.Equal(t, role != models.RoleTagger, res.Ran.AudioEvents)
			assert.Equal(t, role == models.RoleTagger || role == models.RoleEmbedder, res.Ran.ASR)
			assert.ErrorContains(t, p.Load(t.Context(), role), m.Main().Name)
		})
	}
}

// TestCutRecording: a recording that ends early is transcribed up to its end,
// and the result and its JSON contain a warning.
func TestCutRecording(t *testing.T) {
	whole, err := os.ReadFile("testdata/conversation.flac")
	require.NoError(t, err)
	p := shared(t)
	res, err := p.Run(t.Context(), audio.Reader(bytes.NewReader(whole[:len(whole)/3]), "cut.flac"), otograph.Options{EnableDiarize: new(false), EnableAudioEvents: new(false)})
	require.NoError(t, err)
	want := []spec.Warning{{Option: spec.WarnAudio, Reason: fmt.Sprintf("the recording is cut or damaged: the result covers the %.1f s that could be read", res.AudioDuration)}}
	assert.Equal(t, want, res.Warnings)
	data, err := json.Marshal(res)
	require.NoError(t, err)
	var again otograph.Result
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Equal(t, want, again.Warnings)
	a, err := p.Align(t.Context(), audio.Reader(bytes.NewReader(whole[:len(whole)/3]), "cut.flac"), text(res), otograph.AlignOptions{})
	require.NoError(t, err)
	assert.Equal(t, want, a.Warnings)
}

func TestBadInputIsPermanent(t *testing.T) {
	p := shared(t)
	_, err := p.Run(t.Context(), otograph.File("testdata/missing.wav"), otograph.Options{})
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = p.Run(t.Context(), audio.Reader(strings.NewReader("no sound"), "note.txt"), otograph.Options{})
	assert.ErrorIs(t, err, audio.ErrTooSmall)
	assert.True(t, spec.IsPermanent(err))
	_, err = p.Run(t.Context(), audio.Reader(io.LimitReader(zeros{}, 5000), "zeros.bin"), otograph.Options{})
	assert.True(t, spec.IsPermanent(err), "%v", err)
	assert.ErrorContains(t, err, "zeros.bin")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// memory stores checkpoints and counts the loaded ones. It needs no lock,
// because a run calls one method at a time.
type memory struct {
	kept   map[string][]byte
	loaded int
}

func (m *memory) Load(_ context.Context, stage string) ([]byte, error) {
	if m.kept[stage] != nil {
		m.loaded++
	}
	return m.kept[stage], nil
}

func (m *memory) Save(_ context.Context, stage string, data []byte) error {
	m.kept[stage] = data
	return nil
}

// A run that resumes from checkpoints returns the same result.
func TestCheckpoints(t *testing.T) {
	p := shared(t)
	m := &memory{kept: map[string][]byte{}}
	first, err := p.Run(t.Context(), excerpt(t), otograph.Options{}, otograph.RunOptions{Checkpoints: m})
	require.NoError(t, err)
	assert.Zero(t, m.loaded)
	second, err := p.Run(t.Context(), excerpt(t), otograph.Options{}, otograph.RunOptions{Checkpoints: m})
	require.NoError(t, err)
	assert.Equal(t, 4, m.loaded)
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(second)
	assert.JSONEq(t, string(a), string(b))
}

func Example() {
	p, err := otograph.Open(demo.Models())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	res, err := p.Run(ctx, otograph.File(conversation), otograph.Options{EnableAudioEvents: new(false)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range res.Segments[:2] {
		fmt.Printf("%.0f s %s: %s\n", s.Start, s.Speaker, s.Text)
	}
	// Output:
	// 6 s SPEAKER_0: Good morning, how are you today?
	// 8 s SPEAKER_1: I am very well, thank you, and you?
}

// TestDecodingStops checks that a run decodes no more than its limit, and only
// continues if its caller accepts the length.
func TestDecodingStops(t *testing.T) {
	p := shared(t)
	src := excerpt(t)
	var seconds []float64
	length := func(s float64) error { seconds = append(seconds, s); return nil }
	_, err := p.Run(t.Context(), src, otograph.Options{}, otograph.RunOptions{MaxSeconds: 6, Decoded: length})
	require.ErrorIs(t, err, audio.ErrTooLong)
	assert.Empty(t, seconds, "it was not decoded whole")
	refused := errors.New("nobody pays for that")
	var stages []otograph.Stage
	_, err = p.Run(t.Context(), src, otograph.Options{}, otograph.RunOptions{
		MaxSeconds: 7,
		Decoded:    func(s float64) error { _ = length(s); return refused },
		Progress:   func(p otograph.Progress) { stages = append(stages, p.Stage) },
	})
	require.Equal(t, refused, err)
	assert.Equal(t, []float64{7}, seconds)
	for _, stage := range stages {
		assert.Equal(t, otograph.StageDecode, stage, "nothing else is done")
	}
}

// TestMeasuresOfBothTiers: each sentence has its recognizer's tokens and
// probabilities, even if a change of speaker splits it; only Whisper has a
// temperature.
func TestMeasuresOfBothTiers(t *testing.T) {
	p := shared(t)
	for _, optimize := range []bool{false, true} {
		res, err := p.Run(t.Context(), excerpt(t), otograph.Options{ASRLanguage: new("en"), Optimize: &optimize, EnableAudioEvents: new(false)})
		require.NoError(t, err)
		require.NotEmpty(t, res.Segments)
		before := 0.0
		for _, s := range res.Segments {
			m := s.Measures
			require.NotNil(t, m, s.Text)
			assert.GreaterOrEqual(t, len(m.Tokens), len(strings.Fields(s.Text)))
			assert.True(t, m.AvgLogProb <= 0 && m.AvgLogProb > -2, "%s: %g", s.Text, m.AvgLogProb)
			assert.True(t, m.Seek >= before && m.Seek <= s.Start+0.01, "%s: %g", s.Text, m.Seek)
			require.NotNil(t, m.NoSpeechProb)
			assert.True(t, *m.NoSpeechProb >= 0 && *m.NoSpeechProb <= 0.6)
			assert.Equal(t, optimize, m.Temperature == nil)
			before = m.Seek
		}
	}
	_, err := p.Run(t.Context(), excerpt(t), otograph.Options{}, otograph.RunOptions{Extras: spec.Extras{Translate: true}})
	require.ErrorIs(t, err, whisper.ErrTranslation)
}

// TestKnownVoices: the speaker with the known voice gets the name, other
// speakers get none; errors about unsuitable recordings state their index.
func TestKnownVoices(t *testing.T) {
	p := shared(t)
	const threeVoices = "diarize/testdata/conv3.flac"
	pcm, err := audio.Open(t.Context(), otograph.File(threeVoices), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	cut := func(from, to float64) otograph.Source {
		return audio.Raw(slices.Clone(pcm.Samples(int(from*audio.SampleRate), int(to*audio.SampleRate))), audio.SampleRate, 1)
	}
	off := false
	opt := otograph.Options{ASRLanguage: new("en"), EnableAudioEvents: &off}
	res, err := p.Run(t.Context(), cut(0, 23), opt, otograph.RunOptions{Voices: []otograph.KnownVoice{{Name: "Ruth", Recording: cut(0.7, 9.7)}}})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{res.Segments[0].Speaker: "Ruth"}, res.Names)
	assert.Equal(t, 3, res.NumSpeakers)

	speakers, ok := demo.Models().Role(models.RoleEmbedder)
	require.True(t, ok)
	alike := networks.KnownVoice(speakers)
	voice := func(from, to float64) []float32 {
		voice, err := p.Voice(t.Context(), cut(from, to))
		require.NoError(t, err)
		return voice.Vector
	}
	ruth := voice(0.7, 9.7)
	assert.InDelta(t, 1, diarize.Similarity(ruth, ruth), 1e-6)
	assert.Greater(t, diarize.Similarity(ruth, voice(0.7, 5)), alike)
	_, err = p.Voice(t.Context(), otograph.File(threeVoices))
	assert.ErrorContains(t, err, threeVoices+": expected one voice, found ")
	assert.True(t, spec.IsPermanent(err))

	for want, src := range map[string]otograph.Source{
		"at least 2 s of audio": cut(0.7, 2),
		"at most 10.1 s":        cut(0, 12),
		"speech":                audio.Raw(make([]float32, 4*audio.SampleRate), audio.SampleRate, 1),
	} {
		_, err := p.Run(t.Context(), excerpt(t), opt, otograph.RunOptions{Voices: []otograph.KnownVoice{{Name: "Ruth", Recording: cut(0.7, 3)}, {Name: "Tom", Recording: src}}})
		var bad *otograph.VoiceError
		require.ErrorAs(t, err, &bad, want)
		assert.Equal(t, 1, bad.Index)
		assert.ErrorContains(t, err, want)
		assert.True(t, spec.IsPermanent(err), want)
	}
}

// half returns the first half of the recording, which takes the standard tier
// several windows.
func half(t testing.TB) otograph.Source {
	t.Helper()
	pcm, err := audio.Open(t.Context(), otograph.File(conversation), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	return audio.Raw(slices.Clone(pcm.Samples(0, pcm.Len()/2)), audio.SampleRate, 1)
}

// sentences are the segments that a run reports before its result.
type sentences struct {
	list     []spec.Segment
	portions int
}

// options returns the options of a run that tells its sentences.
func (s *sentences) options() otograph.RunOptions {
	return otograph.RunOptions{Segments: func(more []otograph.Segment) { s.portions++; s.list = append(s.list, more...) }}
}

// equal checks the identifiers, texts and starts against the segments of the result.
func (s *sentences) equal(t *testing.T, res *otograph.Result) {
	t.Helper()
	require.Len(t, s.list, len(res.Segments))
	for i, told := range s.list {
		assert.Equal(t, []any{res.Segments[i].ID, res.Segments[i].Text}, []any{told.ID, told.Text})
		assert.InDelta(t, res.Segments[i].Start, told.Start, 1)
	}
	t.Logf("%d portions of %d sentences", s.portions, len(s.list))
}

// TestSentencesArriveDuringTheRun: the sentences equal those of the result in
// the optimized tier; TestStandardTierWords has the other one.
func TestSentencesArriveDuringTheRun(t *testing.T) {
	p := shared(t)
	var told sentences
	res, err := p.Run(t.Context(), half(t), otograph.Options{ASRLanguage: new("en"), EnableDiarize: new(false), EnableAudioEvents: new(false)}, told.options())
	require.NoError(t, err)
	require.Equal(t, otograph.TierOptimized, res.Tier)
	told.equal(t, res)
}

// TestStoppedReaderEndsTheRun: the iterator yields the sentences of the
// callback; a caller that stops reading ends the run, and the loop's end is the
// run's end. The short form has the optimized tier.
func TestStoppedReaderEndsTheRun(t *testing.T) {
	p := shared(t)
	off := false
	opt := otograph.Options{ASRLanguage: new("en"), Optimize: new(testing.Short()), EnableDiarize: &off, EnableAudioEvents: &off}
	var reported, yielded []otograph.Segment
	more := otograph.RunOptions{Segments: func(list []otograph.Segment) { reported = append(reported, list...) }}
	for s, err := range p.Segments(t.Context(), half(t), opt, more) {
		require.NoError(t, err)
		yielded = append(yielded, s)
	}
	require.NotEmpty(t, yielded)
	assert.Equal(t, reported, yielded)

	var done []otograph.Stage
	more = otograph.RunOptions{Progress: func(r otograph.Progress) {
		if r.Done {
			done = append(done, r.Stage)
		}
	}}
	opt.EnableDiarize = nil
	for s, err := range p.Segments(t.Context(), half(t), opt, more) {
		require.NoError(t, err)
		assert.Equal(t, yielded[0].Text, s.Text)
		break
	}
	// The last sentences wait for a reader, and the speakers for the sentences.
	assert.NotContains(t, done, otograph.StageDiarize)

	refused := errors.New("refused")
	more = otograph.RunOptions{Decoded: func(float64) error { return refused }}
	for _, err := range p.Segments(t.Context(), excerpt(t), opt, more) {
		assert.Equal(t, refused, err)
	}
}

// The cascade decodes segments below the confidence again, here all of them. It
// returns the same text each time, and without the cascade nothing is decoded
// again.
func TestCascade(t *testing.T) {
	off := false
	opt := otograph.Options{ASRLanguage: new("en"), EnableDiarize: &off, EnableAudioEvents: &off}
	run := func(src otograph.Source, config ...otograph.Config) *otograph.Result {
		res, err := open(t, demo.Models(), config...).Run(t.Context(), src, opt)
		require.NoError(t, err)
		return res
	}
	first, second := run(excerpt(t), otograph.Config{Cascade: new(1.0)}), run(excerpt(t), otograph.Config{Cascade: new(1.0), Cores: 1})
	assert.Equal(t, otograph.TierOptimized, first.Tier)
	// If a window is decoded alone, the third digit of its probabilities
	// depends on the number of threads (package whisper); the text does not.
	require.Len(t, second.Segments, len(first.Segments))
	for i, s := range first.Segments {
		assert.Equal(t, s.Text, second.Segments[i].Text)
		assert.InDelta(t, s.Start, second.Segments[i].Start, 0.1)
	}
	again := first.Stats.Cascade
	assert.Positive(t, again.Segments)
	assert.Equal(t, again.Segments, again.Doubtful)
	assert.Positive(t, again.ASR.EncoderPasses)
	assert.InDelta(t, 1, again.Share(), 0.05)
	for _, s := range first.Segments {
		require.NotNil(t, s.Confidence)
		assert.True(t, *s.Confidence > 0 && *s.Confidence <= 1, s.Text)
	}
	plain := run(excerpt(t), otograph.Config{Cascade: new(0.0), NoConfidences: true})
	assert.Zero(t, plain.Stats.Cascade)
	assert.Nil(t, plain.Segments[0].Confidence)
	data, err := json.Marshal(plain)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "confidence", "the JSON matches the service's specification")
}

// TestHotwordsWithoutEffect: the CTC model searches for hotwords that take many
// Whisper tokens, and the standard tier looks for long ones in its text.
// Without the CTC model, a warning names the short ones, as well as hotwords
// that the CTC model's tokens cannot spell.
func TestHotwordsWithoutEffect(t *testing.T) {
	alone, both := open(t, without(models.RoleOptimized)), shared(t)
	const effectless = "have no effect on"
	for i, test := range []struct {
		p        *otograph.Pipeline
		fast     bool
		hotwords []string
		reason   string
	}{
		{alone, false, []string{"Yark", "month"}, effectless + ` "Yark":`},
		{alone, false, []string{"Yarrowick", "month"}, ""},
		{both, true, []string{"Yarrowick"}, ""},
		{both, true, []string{"Yarrowick", "Ωμέγα"}, effectless + ` "Ωμέγα":`},
		{both, false, []string{"Yarrowick"}, ""},
		{both, false, []string{"Yarrowick", "Ωμέγα"}, effectless + ` "Ωμέγα":`},
		{alone, false, []string{"Ωμέγα"}, effectless + ` "Ωμέγα":`},
	} {
		if i > 3 && testing.Short() {
			break
		}
		opt := otograph.Options{ASRLanguage: new("en"), Optimize: &test.fast, Hotwords: test.hotwords, EnableDiarize: new(false), EnableAudioEvents: new(false)}
		res, err := test.p.Run(t.Context(), excerpt(t), opt)
		require.NoError(t, err)
		if test.reason == "" {
			assert.Empty(t, res.Warnings, test.hotwords)
			continue
		}
		if assert.Len(t, res.Warnings, 1, test.hotwords) {
			assert.Equal(t, "hotwords", res.Warnings[0].Option)
			assert.Contains(t, res.Warnings[0].Reason, test.reason)
		}
	}
}

// If the standard tier fails, the optimized tier's text remains complete.
func TestFailingCascadeKeepsTheText(t *testing.T) {
	off := false
	opt := otograph.Options{ASRLanguage: new("en"), EnableDiarize: &off, EnableAudioEvents: &off}
	plain, err := shared(t).Run(t.Context(), excerpt(t), opt)
	require.NoError(t, err)
	require.NotEmpty(t, plain.Segments)
	assert.Empty(t, plain.Warnings)
	res, err := open(t, broken(models.RoleStandard), otograph.Config{Cascade: new(1.0)}).Run(t.Context(), excerpt(t), opt)
	require.NoError(t, err)
	assert.Equal(t, plain.Segments, res.Segments)
	require.Len(t, res.Warnings, 1)
	assert.Equal(t, "cascade", res.Warnings[0].Option)
	assert.Contains(t, res.Warnings[0].Reason, "standard")
}
