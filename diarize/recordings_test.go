package diarize_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// shared returns the folder of the test recordings outside the repository.
func shared(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("OTOGRAPH_SHARED")
	if folder == "" {
		t.Skip("OTOGRAPH_SHARED is not set: no further recordings")
	}
	return filepath.Join(folder, "testdata")
}

// demoModel returns an embedded demo model.
func demoModel(t testing.TB, role models.Role) *models.Model {
	t.Helper()
	m, err := demo.Models().Need(role)
	require.NoError(t, err)
	return m
}

// listener is a voice activity detector and an embedder.
type listener struct {
	vad   *silero.Model
	voice *networks.Embedder
	model *models.Model // of voice
}

// newListener opens the embedded models. OTOGRAPH_EMBEDDER is a model folder
// whose embedder replaces the embedded one.
func newListener(t testing.TB) listener {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	detector, err := silero.Open(demoModel(t, models.RoleVAD), silero.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, detector.Close()) })
	model := demoModel(t, models.RoleEmbedder)
	if folder := os.Getenv("OTOGRAPH_EMBEDDER"); folder != "" {
		set, err := library.OpenDir(folder)
		require.NoError(t, err)
		model, err = set.Need(models.RoleEmbedder)
		require.NoError(t, err)
	}
	voice, err := networks.OpenEmbedder(model, networks.Options{Threads: 2})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, voice.Close()) })
	return listener{detector, voice, model}
}

func open(t testing.TB, path string) *audio.PCM {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	if errors.Is(err, audio.ErrDecoderMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pcm.Close()) })
	return pcm
}

// diarize finds the speakers with the defaults of the specification.
func (l listener) diarize(t testing.TB, pcm *audio.PCM, opt diarize.Options) ([]audio.Span, *diarize.Result) {
	t.Helper()
	speech, err := vad.Detect(t.Context(), l.vad, pcm, vad.DefaultOptions())
	require.NoError(t, err)
	r, err := diarize.Diarize(t.Context(), l.voice, pcm, speech, opt)
	require.NoError(t, err)
	if opt.Segmenter == nil {
		requireSane(t, speech, r)
	}
	return speech, r
}

// requireSane asserts that turns cover exactly the speech, in order, and that
// speakers are numbered in order of appearance.
func requireSane(t testing.TB, speech []audio.Span, r *diarize.Result) {
	t.Helper()
	at, samples := 0.0, 0
	seen := 0
	var covered float64
	for _, turn := range r.Turns {
		require.Less(t, turn.Start, turn.End)
		require.GreaterOrEqual(t, turn.Start, at)
		require.LessOrEqual(t, turn.Speaker, seen, "speakers are numbered by their first turn")
		seen = max(seen, turn.Speaker+1)
		covered += turn.End - turn.Start
		at = turn.End
	}
	for _, s := range speech {
		samples += s.Len()
	}
	require.InDelta(t, float64(samples)/audio.SampleRate, covered, 1e-6)
	require.Len(t, r.Speakers, seen)
	for _, s := range r.Speakers {
		var sq float64
		for _, v := range s.Embedding {
			sq += float64(v) * float64(v)
		}
		require.InDelta(t, 1, sq, 1e-4)
		require.Positive(t, s.Segments)
	}
}

func score(t testing.TB, rttm string, r *diarize.Result, collar float64) bench.DER {
	t.Helper()
	f, err := os.Open(rttm)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	ref, err := bench.ReadRTTM(f)
	require.NoError(t, err)
	var hyp []bench.SpeakerTurn
	for _, turn := range r.Turns {
		hyp = append(hyp, bench.SpeakerTurn{Start: turn.Start, End: turn.End, Speaker: fmt.Sprintf("SPEAKER_%d", turn.Speaker)})
	}
	return bench.ScoreTurns(ref, hyp, bench.DEROptions{Collar: collar})
}

// TestConversation runs the whole chain on one conversation of three synthetic
// voices.
func TestConversation(t *testing.T) {
	l := newListener(t)
	pcm := open(t, "testdata/conv3.flac")
	_, r := l.diarize(t, pcm, diarize.DefaultOptions())
	assert.Len(t, r.Speakers, 3)
	assert.Less(t, score(t, "testdata/conv3.rttm", r, 0.25).Rate(), 0.05)
	for _, s := range r.Speakers {
		assert.Len(t, s.Embedding, 192)
	}
	if !testing.Short() {
		_, again := l.diarize(t, pcm, diarize.DefaultOptions())
		assert.Equal(t, r, again, "the same input gives the same result")
	}

	opt := diarize.DefaultOptions()
	opt.NumSpeakers = 2
	_, two := l.diarize(t, audio.FromSamples(slices.Clone(pcm.Samples(0, 20*audio.SampleRate))), opt)
	assert.Len(t, two.Speakers, 2)
}

func TestSpeakersOfSixConversations(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	folder := filepath.Join(shared(t), "diarize")
	l := newListener(t)
	for _, threshold := range []float64{0.35, 0.5} {
		mean, exact, right := 0.0, 0.0, 0
		for i, speakers := range []int{2, 2, 3, 3, 4, 5} {
			name := filepath.Join(folder, fmt.Sprintf("conv%d", i+1))
			pcm := open(t, name+".flac")
			opt := vad.DefaultOptions()
			opt.Threshold = threshold
			speech, err := vad.Detect(t.Context(), l.vad, pcm, opt)
			require.NoError(t, err)
			r, err := diarize.Diarize(t.Context(), l.voice, pcm, speech, diarize.DefaultOptions())
			require.NoError(t, err)
			requireSane(t, speech, r)
			d, whole := score(t, name+".rttm", r, 0.25), score(t, name+".rttm", r, 0)
			t.Logf("vad %.2f conv%d: %d speakers, found %d; DER %.2f %% (collar 0.25 s), %.2f %% without collar (missed %.2f s, false alarm %.2f s, confusion %.2f s of %.1f s)",
				threshold, i+1, speakers, len(r.Speakers), 100*d.Rate(), 100*whole.Rate(), whole.Missed, whole.FalseAlarm, whole.Confusion, whole.Scored)
			mean += d.Rate() / 6
			exact += whole.Rate() / 6
			if len(r.Speakers) == speakers {
				right++
			}
		}
		t.Logf("vad %.2f: speaker count right in %d of 6, mean DER %.2f %% (collar 0.25 s), %.2f %% without collar", threshold, right, 100*mean, 100*exact)
		assert.Equal(t, 6, right)
		assert.Less(t, mean, 0.05)
	}
}

// TestOneVoice: each of twenty recordings has all sentences of one voice in one
// language, from recordings of many voices and single sentences, half of them
// with noise or a room.
func TestOneVoice(t *testing.T) {
	folder := filepath.Join(shared(t), "demo")
	l := newListener(t)
	type sentence struct {
		Start, End float64
		Voice      string
		file       string
	}
	f, err := os.Open(filepath.Join(folder, "manifest.jsonl"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	type voice struct {
		name      string
		sentences []sentence
		seconds   float64
	}
	var voices []voice
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r struct {
			File, Voice, Language string
			Sentences             []sentence
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		for _, s := range r.Sentences {
			if s.Voice == "" {
				s.Voice = r.Voice
			}
			s.file = r.File
			_, variant, ok := strings.Cut(s.Voice, "+") // espeak:en-us+m6 is espeak:en+m6 with another accent
			if !ok {
				variant = s.Voice
			}
			name := variant + " " + r.Language
			i := slices.IndexFunc(voices, func(v voice) bool { return v.name == name })
			if i < 0 {
				i = len(voices)
				voices = append(voices, voice{name: name})
			}
			voices[i].sentences = append(voices[i].sentences, s)
			voices[i].seconds += s.End - s.Start
		}
	}
	slices.SortStableFunc(voices, func(a, b voice) int { return cmp.Compare(b.seconds, a.seconds) })
	require.GreaterOrEqual(t, len(voices), 20)
	files := map[string]*audio.PCM{}
	right := 0
	for _, v := range voices[:20] {
		var samples []float32
		for _, s := range v.sentences {
			if files[s.file] == nil {
				files[s.file] = open(t, filepath.Join(folder, s.file))
			}
			samples = append(samples, files[s.file].Samples(int((s.Start-0.2)*audio.SampleRate), int((s.End+0.2)*audio.SampleRate))...)
		}
		speech, r := l.diarize(t, audio.FromSamples(samples), diarize.DefaultOptions())
		t.Logf("%s: %.1f s in %d sentences, %d segments, %d speakers", v.name, v.seconds, len(v.sentences), len(speech), len(r.Speakers))
		if len(r.Speakers) == 1 {
			right++
		}
	}
	assert.Equal(t, 20, right, "recordings of one voice")
}

// TestRealRecordings only reports: the demo embedder knows only synthetic
// voices.
func TestRealRecordings(t *testing.T) {
	folder := filepath.Join(shared(t), "real")
	l := newListener(t)
	for _, name := range []string{"ami_dev00", "ami_tst00", "pyannote_sample"} {
		pcm := open(t, filepath.Join(folder, name+".flac"))
		_, r := l.diarize(t, pcm, diarize.DefaultOptions())
		d, whole := score(t, filepath.Join(folder, name+".rttm"), r, 0.25), score(t, filepath.Join(folder, name+".rttm"), r, 0)
		t.Logf("%s: found %d speakers, %d turns; DER %.1f %% (collar 0.25 s), %.1f %% without collar (missed %.1f s, false alarm %.1f s, confusion %.1f s of %.1f s)",
			name, len(r.Speakers), len(r.Turns), 100*d.Rate(), 100*whole.Rate(), whole.Missed, whole.FalseAlarm, whole.Confusion, whole.Scored)
	}
	for _, name := range []string{"falcon_3spk", "leopard_3spk", "jfk", "silero_60s", "librispeech_en"} {
		_, r := l.diarize(t, open(t, filepath.Join(folder, name+".flac")), diarize.DefaultOptions())
		t.Logf("%s: found %d speakers, %d turns", name, len(r.Speakers), len(r.Turns))
	}
}

// BenchmarkDiarize diarizes one conversation without voice activity detection,
// with the embedder alone and with the segmenter.
func BenchmarkDiarize(b *testing.B) {
	l := newListener(b)
	pcm := open(b, "testdata/conv3.flac")
	speech, err := vad.Detect(b.Context(), l.vad, pcm, vad.DefaultOptions())
	require.NoError(b, err)
	segmenter, err := networks.OpenSegmenter(demoModel(b, models.RoleSegmenter), networks.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { assert.NoError(b, segmenter.Close()) })
	for name, opt := range map[string]diarize.Options{"embedder": diarize.DefaultOptions(), "segmenter": {EmbedOptions: diarize.EmbedOptions{Segmenter: segmenter}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := diarize.Diarize(b.Context(), l.voice, pcm, speech, opt)
				require.NoError(b, err)
			}
			b.ReportMetric(pcm.Duration()*float64(b.N)/b.Elapsed().Seconds(), "x_realtime")
		})
	}
}
