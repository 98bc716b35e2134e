package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/internal/test/outside"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

func TestMain(m *testing.M) { outside.Main(m) }

func TestBootstrap(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	mean := func(sample []int) float64 {
		sum := 0.0
		for _, i := range sample {
			sum += values[i]
		}
		return sum / float64(len(sample))
	}
	e := bootstrap(len(values), 1, mean)
	assert.Equal(t, 5.5, e.Value)
	// The mean's standard error is √(8.25/10) = 0.91, so the 95 % interval is
	// about 5.5 ± 1.78.
	assert.InDelta(t, 3.72, e.Low, 0.25)
	assert.InDelta(t, 7.28, e.High, 0.25)
	assert.Equal(t, e, bootstrap(len(values), 1, mean), "the seed decides")
	assert.NotEqual(t, e, bootstrap(len(values), 2, mean))

	one := bootstrap(1, 1, mean)
	assert.Equal(t, &estimate{Value: 1, Low: 1, High: 1, N: 1}, one)
	assert.Nil(t, bootstrap(0, 1, func([]int) float64 { return 0 }))
	assert.Nil(t, bootstrap(3, 1, func([]int) float64 { return math.NaN() }))
}

func TestPercentile(t *testing.T) {
	v := []float64{1, 2, 3, 4}
	assert.Equal(t, 1.0, percentile(v, 0))
	assert.Equal(t, 2.5, percentile(v, 50))
	assert.InDelta(t, 3.85, percentile(v, 95), 1e-12)
	assert.Equal(t, 4.0, percentile(v, 100))
	assert.True(t, math.IsNaN(percentile(nil, 50)))
	assert.Equal(t, 2.0, median([]float64{3, 1, 2}))
}

func result() *otograph.Result {
	return &otograph.Result{
		AudioDuration: 10, Language: "en", Tier: otograph.TierStandard, NumSpeakers: 2,
		Ran: otograph.Capabilities{ASR: true, Diarize: true, AudioEvents: true},
		Segments: []otograph.Segment{
			{Start: 1, End: 3, Text: "Good mourning, Ann.", Words: []otograph.Word{{Word: "Good", Start: 1, End: 1.5}, {Word: "mourning,", Start: 1.5, End: 2}, {Word: "Ann.", Start: 2, End: 3}}},
			{Start: 4, End: 5, Text: "Hello there.", Words: []otograph.Word{{Word: "Hello", Start: 4, End: 4.5}, {Word: "there.", Start: 4.5, End: 5}}},
		},
		DiarizeSegments: []otograph.Turn{{Start: 1, End: 3, Speaker: "SPEAKER_0"}, {Start: 4, End: 5, Speaker: "SPEAKER_1"}},
		AudioEvents:     []otograph.AudioEvent{{Start: 0, End: 1, Class: "Music", Confidence: 0.9}, {Start: 1, End: 3, Class: "Speech", Confidence: 0.8}},
	}
}

func TestScoreResult(t *testing.T) {
	item := Item{
		Text: new("Good morning, Ann. Hello."), Language: "en", Turns: []SpeakerTurn{talk(1, 3, "a"), talk(4, 6, "b")}, Speakers: new(3),
		Events: []spec.AudioEvent{{Start: 0, End: 2, Class: "Music"}}, Sentences: []TimedText{{Start: 1.2, End: 3, Text: "Good morning, Ann."}},
		Words: []TimedText{{Start: 1.1, End: 1.5, Text: "good"}, {Start: 2, End: 3, Text: "ann"}},
	}
	s := scoreResult(item, result(), scoreOptions{EventClasses: []string{"Music"}})
	assert.Equal(t, &WordErrors{Substitutions: 1, Insertions: 1, Reference: 4}, s.Words)
	assert.InDelta(t, 0.25, s.Turns.Rate(), 1e-9)
	assert.Equal(t, &speakerCount{Reference: 3, Hypothesis: 2}, s.Speakers)
	assert.Equal(t, &languageScore{"en", "en"}, s.Language)
	assert.Equal(t, &scores.Counts{Hits: 1, Misses: 1}, s.Events)
	assert.Equal(t, &TimeErrors{Starts: []float64{0.2}, Ends: []float64{0}}, s.Sentences)
	assert.Equal(t, &TimeErrors{Starts: []float64{0.1, 0}, Ends: []float64{0, 0}}, s.WordTimes)

	assert.Equal(t, itemScore{}, scoreResult(Item{}, result(), scoreOptions{}), "without a reference there is no score")
	res := result()
	res.Ran = otograph.Capabilities{}
	assert.Equal(t, itemScore{}, scoreResult(item, res, scoreOptions{}), "stages that did not run have no score")
	assert.Nil(t, scoreResult(item, result(), scoreOptions{LanguageGiven: true}).Language)
}

func TestSummaryWeighsRecordingsByUnits(t *testing.T) {
	a := summarize([]itemReport{
		{Score: itemScore{Words: &WordErrors{Substitutions: 1, Reference: 9}, Language: &languageScore{"en", "en"}, Speakers: &speakerCount{2, 2, new(0.9)}, Turns: &DER{Scored: 10, Missed: 1}}},
		{Score: itemScore{Words: &WordErrors{Deletions: 1, Reference: 1}, Language: &languageScore{"de", "en"}, Speakers: &speakerCount{1, 3, new(0.6)}, Turns: &DER{Scored: 30, Confusion: 1}}},
		{Score: itemScore{Words: &WordErrors{Insertions: 1, Reference: 4}}, character: true},
		{Score: itemScore{Words: &WordErrors{}}},
		{Score: itemScore{Words: &WordErrors{Insertions: 3}}},
		{Score: itemScore{Sentences: &TimeErrors{Starts: []float64{0.1, 0.3}, Ends: []float64{0, 0.2}, Missing: 2}}},
	}, 1)
	assert.Equal(t, WordErrors{Substitutions: 1, Deletions: 1, Insertions: 4, Reference: 14}, a.Words)
	assert.InDelta(t, 0.2, a.WordRate.Value, 1e-12, "two errors of ten words, not the mean of 11 % and 100 %")
	assert.InDelta(t, 0.25, a.CharRate.Value, 1e-12)
	assert.InDelta(t, 0.5, a.WordRateAll.Value, 1e-12, "including three words without speech")
	assert.Nil(t, a.CharRateAll, "there is speech in each")
	assert.InDelta(t, 0.5, a.Invented.Value, 1e-12)
	assert.InDelta(t, 0.05, a.TurnRate.Value, 1e-12)
	assert.InDelta(t, 0.5, a.Language.Value, 1e-12)
	assert.InDelta(t, 0.5, a.Speakers.Value, 1e-12)
	assert.InDelta(t, 0.75, a.SpeakersExpected.Value, 1e-12)
	assert.InDelta(t, 1, a.SpeakersSure.Value, 1e-12)
	assert.InDelta(t, 0.2, a.Sentences.MedianStart, 1e-12)
	assert.InDelta(t, 0.5, a.Sentences.Matched, 1e-12)
	assert.Nil(t, a.EventF1)
	assert.Nil(t, a.WordTimes)
	for _, f := range figures() {
		if strings.HasPrefix(f.key, "sentence_") && f.key != "sentence_matched" {
			assert.Nil(t, f.of(systemReport{Accuracy: accuracy{Sentences: timeStat([]TimeErrors{{Missing: 2}})}}), "%s without a matched sentence", f.key)
		}
	}
	assert.Equal(t, accuracy{TurnRates: map[string]*estimate{}}, summarize(nil, 1))
}

func TestCostSummary(t *testing.T) {
	items := []itemReport{
		{repeats: []Cost{{Audio: 10, Wall: 5, CPU: 9, PeakRSS: 7}, {Audio: 10, Wall: 1, CPU: 2, FirstSegment: 0.5}, {Audio: 10, Wall: 2, CPU: 3, FirstSegment: 0.6}}},
		{repeats: []Cost{{Audio: 30, Wall: 3, CPU: 5}}},
	}
	for i, it := range items {
		items[i].Cost = typical(it.repeats)
	}
	s := summarizeCosts(items, 1)
	assert.Equal(t, 40.0, s.Audio)
	assert.InDelta(t, 0.15, s.RTFp50, 1e-12, "0.2, the middle repeat, and 0.1")
	assert.InDelta(t, 8.0, s.Speed.Value, 1e-12)
	assert.InDelta(t, 8*90.0, s.CPUPerHour, 1e-9)
	assert.Equal(t, int64(7), s.PeakRSS)
	assert.InDelta(t, 0.6, s.FirstSegmentP50, 1e-12)
	assert.Equal(t, costSummary{}, summarizeCosts(nil, 1))
}

func TestRunFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	f, err := openRunFile(path, "head")
	require.NoError(t, err)
	require.NoError(t, f.put(record{System: 1, Item: "a", Repeat: 1, Cost: &Cost{Wall: 2}}))
	require.NoError(t, f.put(record{System: 0, Item: "a", Error: "broken"}))
	require.NoError(t, f.Close())

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(data, `{"system":1,"item":"a","repe`...), 0o600)) // killed while writing
	f, err = openRunFile(path, "head")
	require.NoError(t, err)
	assert.Equal(t, []record{{System: 1, Item: "a", Repeat: 1, Cost: &Cost{Wall: 2}}}, f.find(1, "a"))
	require.NoError(t, f.put(record{System: 1, Item: "a", Repeat: 2, Cost: &Cost{Wall: 3}}))
	require.NoError(t, f.Close())
	f, err = openRunFile(path, "head")
	require.NoError(t, err)
	assert.Len(t, f.find(1, "a"), 2)
	require.NoError(t, f.Close())

	_, err = openRunFile(path, "other")
	require.ErrorIs(t, err, errRunFile)
	assert.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte("{\"head\":\"head\"}\nnonsense\n"), 0o600))
	_, err = openRunFile(path, "head")
	require.ErrorIs(t, err, errRunFile)
	assert.ErrorContains(t, err, "line 2")
}

// Replacing a model file starts another run, even under the same name.
func TestReplacedModelStartsAnotherRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vad.onnx")
	set := &models.Set{Models: []models.Model{{Role: models.RoleVAD, Name: "vad", Files: []models.File{{Name: "vad.onnx", Path: path}}}}}
	c := Config{Systems: []System{{Name: "a", Set: set}}}
	head := func(data string) string {
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		sums, err := newFingerprints(c.Systems)
		require.NoError(t, err)
		h, err := c.head(sums)
		require.NoError(t, err)
		return h
	}
	first := head("one")
	assert.NotEqual(t, first, head("two"))
	assert.Equal(t, first, head("one"))

	require.NoError(t, os.Remove(path))
	_, err := newFingerprints(c.Systems)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "vad model vad")
}

// conversation returns a manifest of the bundled recording, which is only a
// minute long.
func conversation(t *testing.T) []Item {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	if _, err := native.Whisper(); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "m.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"file": "conversation.flac", "language": "en",
		"text": "Good morning, how are you today? I am very well, thank you, and you? I am fine, thank you. Can we meet at the office on Friday? No, Friday is not possible. How about Monday? Yes, Monday at ten o'clock is fine for me. Let us talk about the budget first. The budget for March is four thousand two hundred euros. The telephone is ringing. One moment, please. Of course, no problem. I am sorry, what do you think about the new contract? I think the contract is good. There is a mistake in the invoice. I will send you the invoice tomorrow. Thank you very much for your help. Goodbye and have a nice weekend. See you on Monday.",
		"turns": [{"speaker": "A", "start": 5.7, "end": 7.45}, {"speaker": "B", "start": 8.15, "end": 11.01}, {"speaker": "A", "start": 11.71, "end": 15.7}, {"speaker": "B", "start": 16.4, "end": 20.14}, {"speaker": "A", "start": 20.84, "end": 23.28}, {"speaker": "B", "start": 23.98, "end": 26.02}, {"speaker": "A", "start": 26.72, "end": 29.78}, {"speaker": "B", "start": 35.38, "end": 38.65}, {"speaker": "A", "start": 39.35, "end": 40.82}, {"speaker": "B", "start": 41.52, "end": 45.02}, {"speaker": "A", "start": 45.72, "end": 49.51}, {"speaker": "B", "start": 50.21, "end": 52.36}, {"speaker": "A", "start": 53.06, "end": 55.04}, {"speaker": "B", "start": 55.74, "end": 57.49}, {"speaker": "A", "start": 58.19, "end": 59.23}],
		"events": [{"class": "Music", "start": 0, "end": 5}, {"class": "Telephone bell ringing", "start": 30.98, "end": 34.78}],
		"sentences": [{"start": 5.7, "end": 7.45, "text": "Good morning, how are you today?"}]}`), 0o600))
	items, err := Load(path)
	require.NoError(t, err)
	items[0].Path = filepath.Join("..", "testdata", "conversation.flac")
	return items
}

// A run that is interrupted and continued reports everything, in every format.
func TestRun(t *testing.T) {
	items := append(conversation(t), Item{Name: "missing.wav", Path: "missing.wav", Text: new("x")})
	ctx, cancel := context.WithCancel(t.Context())
	var steps []string
	c := Config{
		Items: items, Repeat: 1, Seed: 1, RunFile: filepath.Join(t.TempDir(), "run.jsonl"), DER: DEROptions{Collar: 0.25},
		Systems: []System{
			{Name: "all", Set: demo.Models(), KnownLanguage: true},
			{Name: "text <only>", Set: demo.Models(), Options: otograph.Options{ASRLanguage: new("en"), EnableDiarize: new(false), EnableAudioEvents: new(false)}},
		},
		Progress: func(s Step) {
			steps = append(steps, s.System+" "+s.Item+" "+s.What)
			if s.System == "text <only>" {
				cancel()
			}
		},
	}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)

	first := steps
	steps = nil
	cancel = func() {}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Contains(t, first, "all conversation.flac repeat 1 of 1")
	assert.NotContains(t, steps, "all conversation.flac repeat 1 of 1", "no measurement is repeated")
	assert.Contains(t, steps, "text <only> conversation.flac repeat 1 of 1")

	require.Len(t, r.Systems, 2)
	all, words := r.Systems[0], r.Systems[1]
	assert.Equal(t, 1, all.Failed)
	assert.Contains(t, all.Items[1].Error, "missing.wav")
	assert.Equal(t, map[otograph.Tier]int{otograph.TierOptimized: 1}, all.Tiers)
	assert.Less(t, all.Accuracy.WordRate.Value, 0.05)
	assert.Less(t, all.Accuracy.TurnRate.Value, 0.2)
	assert.Equal(t, 1.0, all.Accuracy.Speakers.Value)
	assert.Greater(t, all.Accuracy.SpeakersExpected.Value, 0.3)
	assert.Positive(t, all.Accuracy.EventF1.Value)
	assert.Nil(t, all.Accuracy.Language, "it was given")
	assert.Nil(t, words.Accuracy.TurnRate)
	assert.Positive(t, all.Cost.Speed.Value)
	assert.Positive(t, all.Cost.FirstSegmentP50)
	assert.Positive(t, all.Load)
	require.Len(t, r.Comparisons, 1)
	assert.Zero(t, r.Comparisons[0].WordRate.Value, "the same model returns the same text")

	steps = nil
	again, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Empty(t, steps, "nothing remains to be measured")
	assert.Equal(t, r.Systems, again.Systems)

	c.Systems[1].Options.ASRLanguage = new("es")
	_, err = Run(t.Context(), c)
	require.ErrorIs(t, err, errRunFile)

	checkForms(t, r)
}

func checkForms(t *testing.T, r *Report) {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, r.WriteTable(&buf))
	for _, want := range []string{"word error rate, %", "text <only>", "diarization error rate", "failed on missing.wav"} {
		assert.Contains(t, buf.String(), want)
	}
	buf.Reset()
	require.NoError(t, r.WriteJSON(&buf))
	var back Report
	require.NoError(t, json.Unmarshal(buf.Bytes(), &back))
	assert.Equal(t, r.Systems[0].Accuracy, back.Systems[0].Accuracy)
	buf.Reset()
	require.NoError(t, r.WriteCSV(&buf))
	lines, err := csv.NewReader(&buf).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, []string{"system", "figure", "value", "low", "high", "unit", "normalizer", "key", "part", "against"}, lines[0])
	assert.Greater(t, len(lines), 30)
	assert.Equal(t, defaultNormalizer, lines[1][6])
	assert.Equal(t, []string{"text <only>", "units_difference", "0", "0", "0", "fraction", defaultNormalizer, "", "", "all"}, lines[len(lines)-3])
	buf.Reset()
	require.NoError(t, r.WriteHTML(&buf))
	page := buf.String()
	assert.Contains(t, page, "text &lt;only&gt;")
	assert.Contains(t, page, "prefers-color-scheme: dark")
	assert.Contains(t, page, "Measured with otograph bench")
	for _, outside := range []string{"http://", "https://", "<link", "src=", "@import", "url(", "fetch("} {
		assert.NotContains(t, page, outside, "the page is self-contained")
	}
	assert.NotContains(t, page, "NaN")
}

func TestNothingToRun(t *testing.T) {
	_, err := Run(t.Context(), Config{})
	require.ErrorContains(t, err, "nothing to run")
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	assert.Positive(t, m.Cores)
	assert.NotEmpty(t, m.Go)
	assert.Contains(t, m.String(), m.OS)
	before := host.ProcessorSeconds()
	for x := 0.0; host.ProcessorSeconds() == before; x += math.Sqrt(x + 1) {
	}
	assert.Greater(t, host.ProcessorSeconds(), before)
	var resident int64
	host.Fields("/proc/self/status", func(key, value string) {
		if key == "VmRSS" {
			resident = host.Kilobytes(value) << 10
		}
	})
	if resident == 0 {
		t.Skip("the system does not tell about memory")
	}
	assert.GreaterOrEqual(t, host.PeakMemory("self"), resident)
}
