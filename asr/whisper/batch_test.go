package whisper

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

func TestWindowsPerWorker(t *testing.T) {
	const megabyte = 1 << 20
	for _, c := range []struct{ windows, workers, bytes, want int }{
		{20, 1, 10 * megabyte, 8},
		{20, 2, 10 * megabyte, 4},
		{3, 2, 10 * megabyte, 2},
		{20, 6, 10 * megabyte, 2},
		{20, 1, 250 * megabyte, 4}, // large, 16-bit weights
		{20, 2, 250 * megabyte, 2},
		{20, 8, 250 * megabyte, 1},
	} {
		assert.Equal(t, c.want, windowsEach(c.windows, c.workers, c.bytes), "%+v", c)
	}
}

// countedGate is a gate of one core that counts how often it is passed.
type countedGate struct {
	sync.Mutex
	passed, inside atomic.Int64
	t              *testing.T
}

func (g *countedGate) Acquire(ctx context.Context, n int64) error {
	g.Lock()
	g.passed.Add(n)
	assert.EqualValues(g.t, 1, g.inside.Add(n))
	return ctx.Err()
}

func (g *countedGate) Release(n int64) {
	g.inside.Add(-n)
	g.Unlock()
}

// Workers release their cores and acquire them again, however few cores there
// are.
func TestWorkersTakeTurnsAtTheGate(t *testing.T) {
	e := openWindows(t, testModel(), 2.5, Options{})
	pcm, speech := far(30, 0, 1)
	o := greedy()
	o.Parallel = 3
	gate := &countedGate{t: t}
	o.Gate = gate
	tr, err := e.Transcribe(context.Background(), pcm, speech, o)
	require.NoError(t, err)
	assert.Len(t, tr.Segments, 30)
	assert.Greater(t, gate.passed.Load(), int64(3))
	assert.Zero(t, gate.inside.Load())
}

// The windows of language detection are decoded without encoding them again.
func TestTranscriptionReusesDetectionsEncoderPasses(t *testing.T) {
	e := openWindows(t, testModel(), 2.5, Options{Threads: 2})
	c := e.cpu
	pcm, speech := far(5, 0, 1)
	_, _, err := e.DetectLanguage(context.Background(), pcm, speech, asr.Detection{})
	require.NoError(t, err)
	heard := len(c.stored)
	assert.Positive(t, heard)
	assert.LessOrEqual(t, heard, 3)
	other, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, pcm.Len())), speech, greedy())
	require.NoError(t, err)
	assert.Len(t, c.stored, heard, "another recording's")
	o := greedy()
	o.BeamSize = maxBeams
	_, err = e.Transcribe(context.Background(), pcm, speech[:1], o)
	require.NoError(t, err)
	assert.Len(t, c.stored, heard-1)
	tr, err := e.Transcribe(context.Background(), pcm, speech, greedy())
	require.NoError(t, err)
	assert.Empty(t, c.stored)
	assert.Equal(t, other.Segments, tr.Segments)
	for range 2 * mostStored {
		_, _, err = e.DetectLanguage(context.Background(), audio.FromSamples(make([]float32, second)), nil, asr.Detection{})
		require.NoError(t, err)
	}
	assert.Len(t, c.stored, mostStored)
	for i := range c.stored {
		c.stored[i].since = c.stored[i].since.Add(-storeFor)
	}
	c.drop()
	assert.Empty(t, c.stored, "unused for too long")
}

// A recording without speech takes a single pass.
func TestSilenceTakesOnePass(t *testing.T) {
	e := open(t, testModel(), Options{})
	_, _, err := e.DetectLanguage(context.Background(), audio.FromSamples(make([]float32, 90*second)), nil, asr.Detection{})
	require.NoError(t, err)
	assert.Len(t, e.cpu.stored, 1)
}

// beginGate is a gate of two cores. No worker may reach the gate while the
// third worker passes it: the first two windows are decoded alone, and the
// third is encoded before another worker begins.
type beginGate struct {
	*semaphore.Weighted
	come atomic.Int64
	t    *testing.T
}

func (g *beginGate) Acquire(ctx context.Context, n int64) error {
	if g.come.Add(1) == 3 {
		time.Sleep(20 * time.Millisecond)
		assert.EqualValues(g.t, 3, g.come.Load())
	}
	return g.Weighted.Acquire(ctx, n)
}

// TestFirstSentence counts the windows that are decoded before the first
// sentences of a long recording come: a short window, and for the language a
// part of another one; then the second window alone.
func TestFirstSentence(t *testing.T) {
	e := openWindows(t, buildModel(testHeader, say(0.0, " Alpha", " beta", ".", " Alpha", " delta", ".", 4.5)), 6, Options{})
	e.packing.Opening = 2
	pcm, speech := far(8, 0.2, 4.4)
	speech = append(spans(0.2, 1.5, 2.4, 4.4), speech[1:]...)
	_, _, err := e.DetectLanguage(t.Context(), pcm, speech, asr.Detection{})
	require.NoError(t, err)
	require.Len(t, e.cpu.stored, 1, "the other one is of no further use")
	assert.Len(t, e.cpu.stored[0].pieces, 1)
	assert.Equal(t, pcm, e.cpu.stored[0].pcm.Value())
	o := greedy()
	o.Parallel = 2
	gate := &beginGate{Weighted: semaphore.NewWeighted(2), t: t}
	o.Gate = gate
	decoded, given := 0, 0
	o.Progress = func(float64, float64) { decoded++ }
	o.Settled = func([]asr.Segment) {
		if given++; given <= 2 {
			assert.Equal(t, given-1, decoded, "other windows")
			assert.True(t, gate.TryAcquire(2), "no other window is decoded")
			gate.Release(2)
		}
	}
	got, err := e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	assert.Greater(t, given, 4, "window by window")
	assert.Greater(t, gate.come.Load(), int64(3))
	o.Settled = nil
	want, err := e.Transcribe(t.Context(), pcm, speech, o)
	require.NoError(t, err)
	assert.Equal(t, want, got, "whether somebody waits or not")
}

// TestRepeatedSoundIsFoundAsWindowsOpen: the first sentences do not wait for the
// search for repeated sound in later windows.
func TestRepeatedSoundIsFoundAsWindowsOpen(t *testing.T) {
	e := openWindows(t, buildModel(testHeader, say(0.0, " Alpha", " beta", ".", 4)), 6, Options{})
	const windows = 4
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 30*windows*second)
	for i := range windows {
		at := x[30*i*second:]
		for k := range 2 * second {
			at[k] = float32(r.NormFloat64())
		}
		copy(at[5*second/2:9*second/2], at)
	}
	pcm := audio.FromSamples(x)
	_, speech := far(windows, 0, 2, 2.5, 4.5)
	packed := decode.Pack(speech, pcm, e.packing)
	require.Len(t, packed, windows)
	o := greedy()
	o.Settled = func([]asr.Segment) {}
	tk, finder, jobs := &task{opt: o, language: "en"}, new(decode.Finder), make([]*job, windows)
	for i := range jobs {
		jobs[i] = e.textJob(pcm, packed[i], textPlan{t: tk, language: "en"})
		jobs[i].finder = finder
	}
	closed := 0
	require.NoError(t, e.decode(t.Context(), jobs, o, func(i int) {
		assert.Equal(t, closed, i)
		closed++
		assert.NotEmpty(t, jobs[i].echoes)
		assert.Less(t, jobs[i].window.Len(), packed[i].Len())
		for _, later := range jobs[closed:] {
			assert.Empty(t, later.echoes)
		}
	}))
	assert.Equal(t, windows, closed)
}

// TestSentencesComeWindowByWindow: sentences come while later windows are
// decoded, also from a repaired window, and the text is the same as without
// them.
func TestSentencesComeWindowByWindow(t *testing.T) {
	const windows = 8
	for name, tt := range map[string]struct {
		speech []float64
		when   []int // windows decoded before the sentences come
	}{
		"whole": {[]float64{0.2, 4.4}, []int{1, 2, 3, 4, 5, 6, 7}},
		"bare":  {[]float64{0.2, 1.8, 2.2, 4.4}, []int{1, 2, 3}}, // three may be repaired early
	} {
		pcm, speech := far(windows, tt.speech...)
		e := openWindows(t, buildModel(testHeader, say(0.0, " Alpha", " beta", " gamma", " delta", ".", 4.5)), 6, Options{})
		o := greedy()
		o.Parallel = 1
		want, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		decoded := 0
		var when []int
		var sentences []asr.Segment
		o.Progress = func(done, all float64) { decoded = int(windows*done/all + 0.5) }
		o.Settled = func(list []asr.Segment) {
			sentences = append(sentences, list...)
			when = append(when, decoded)
		}
		got, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
		assert.Equal(t, tt.when, when, name)
		for i, s := range sentences {
			assert.Equal(t, got.Segments[i].Text, s.Text, name)
		}
	}
}

// An unlikely text of a short sound is decoded again once, with all silence
// after the sound; a likely text, or the text of a longer sound, is not.
func TestDoubtfulTextsGetAllSilence(t *testing.T) {
	for _, c := range []struct {
		sure    float32
		seconds int
		passes  int
	}{{8, 4, 1}, {2, 4, 2}, {2, 16, 1}} { // 16 s of sound get no second pass, also with a doubtful text
		e := open(t, buildModelAs(testHeader, say(0.0, " Alpha", " beta", ".", 3.0), c.sure), Options{})
		tr, err := e.Transcribe(context.Background(), audio.FromSamples(make([]float32, c.seconds*second)), spans(0, float64(c.seconds)), greedy())
		require.NoError(t, err)
		assert.Equal(t, c.passes, tr.Stats.EncoderPasses-tr.Stats.Continued-tr.Stats.Skipped, "%+v: %+v", c, tr.Stats)
	}
}

func TestLikelierTextStays(t *testing.T) {
	for _, thin := range []float64{-0.6, -1.2} {
		plan := &textPlan{spoken: "de", best: &outcome{attempt: attempt{avgLogProb: -0.9}}}
		plan.thin = &textPlan{spoken: "nl", best: &outcome{attempt: attempt{avgLogProb: thin}}}
		again, err := new(worker).reconsider(&opened{job: &job{plan: plan}})
		require.NoError(t, err)
		assert.False(t, again, "once is enough")
		assert.InDelta(t, max(thin, -0.9), plan.text().avgLogProb, 0)
		assert.Equal(t, thin > -0.9, plan.spoken == "nl")
	}
}

func TestLastWorkersTakeTheThreadsOfOthers(t *testing.T) {
	e := open(t, buildModel(testHeader, say(0.0, " Alpha", 1.0)), Options{})
	b := &batch{cpu: e.cpu}
	b.free.Store(5)
	w := &worker{batch: b, threads: 2, decoder: e.cpu.model.NewDecoder(2)}
	for range 2 {
		w.join()
		assert.Equal(t, fewThreads, w.threads)
		assert.EqualValues(t, 3, b.free.Load())
	}
	w.decoder.Free()
}
