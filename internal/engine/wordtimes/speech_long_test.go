//go:build long && cgo

package wordtimes_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/engine/wordtimes"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// reader transcribes recordings by greedy decoding, and keeps the inputs of
// word times.
type reader struct {
	shared   string
	detector *silero.Model
	model    *whispernet.Model
	decoder  *whispernet.Decoder
	took     time.Duration // in Times
}

// passage is the text of a window.
type passage struct {
	window  decode.Window
	encoded *whispernet.Window
	tokens  []int32
	words   []decode.Word
	in      wordtimes.Input
	times   []wordtimes.Time
}

// openReader opens Whisper base in the folder OTOGRAPH_REAL and the published
// Silero in OTOGRAPH_SHARED, which also has the recordings.
func openReader(t *testing.T) *reader {
	t.Helper()
	folder, shared := os.Getenv("OTOGRAPH_REAL"), os.Getenv("OTOGRAPH_SHARED")
	if folder == "" || shared == "" {
		t.Skip("OTOGRAPH_REAL names no folder with ggml-base-q8_0.bin, or OTOGRAPH_SHARED none with recordings")
	}
	network, err := library.OpenFile(models.RoleVAD, filepath.Join(shared, "models", "real", "silero_vad.onnx"))
	require.NoError(t, err)
	r := &reader{shared: shared}
	r.detector, err = silero.Open(network, silero.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.detector.Close() })
	file, err := os.Open(filepath.Join(folder, "ggml-base-q8_0.bin"))
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	checked, err := ggmlfile.Check(file, info.Size(), false)
	require.NoError(t, err)
	r.model, err = whispernet.Open(checked, whispernet.Options{Threads: 2})
	require.NoError(t, err)
	t.Cleanup(r.model.Close)
	r.decoder = r.model.NewDecoder(2)
	t.Cleanup(r.decoder.Free)
	return r
}

// read calls each with the passages of a recording. text is the transcript, if
// it is known and fits into a window.
func (r *reader) read(t *testing.T, path, language, text string, each func(*passage)) {
	t.Helper()
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	defer func() { _ = pcm.Close() }()
	speech, err := vad.Detect(t.Context(), r.detector, pcm, vad.DefaultOptions())
	require.NoError(t, err)
	for _, w := range decode.Pack(speech, pcm, decode.PackOptions{}) {
		p := &passage{window: w}
		p.in.Samples, p.in.Speech = w.Samples(nil, pcm), w.Spoken()
		p.encoded, err = r.model.Encode(p.in.Samples, 1, 2, nil)
		require.NoError(t, err)
		r.spell(t, p, language, text)
		r.time(t, p)
		each(p)
		p.encoded.Free()
	}
}

// spell sets the text of a passage: the known one, or the decoder's most likely
// one.
func (r *reader) spell(t *testing.T, p *passage, language, text string) {
	t.Helper()
	v := r.model.Vocabulary()
	code := slices.IndexFunc(spec.Languages(), func(l spec.Language) bool { return l.Code == language })
	p.tokens = []int32{v.SOT, v.Language(code), v.Transcribe, v.NoTimestamps}
	if !r.model.Header().Multilingual() {
		p.tokens = []int32{v.SOT, v.NoTimestamps}
	}
	p.in.Prefix = len(p.tokens)
	if text == "" {
		r.decode(t, p)
	} else {
		p.tokens = append(p.tokens, v.Tokenize(" "+text)...)
	}
	var list []decode.Token
	for _, token := range p.tokens[p.in.Prefix:] {
		list = append(list, decode.Token{Text: v.Text(token)})
	}
	p.tokens = append(p.tokens, v.EOT)
	p.words = decode.Words(list)
	for _, w := range p.words {
		p.in.Words = append(p.in.Words, wordtimes.Word{Text: w.Text, First: w.First, Last: w.Last})
	}
}

// decode repeatedly takes the most likely token.
func (r *reader) decode(t *testing.T, p *passage) {
	t.Helper()
	v := r.model.Vocabulary()
	logits := make([]float32, v.Size)
	for i := 0; len(p.tokens) < 220; i++ {
		c := whispernet.Column{Window: p.encoded, Position: i, Token: p.tokens[i]}
		if i+1 == len(p.tokens) {
			c.Logits = logits
		}
		require.NoError(t, r.decoder.Step([]whispernet.Column{c}, nil))
		if i+1 < len(p.tokens) {
			continue
		}
		best := v.EOT
		for token := range v.EOT {
			if logits[token] > logits[best] {
				best = token
			}
		}
		if best == v.EOT {
			break
		}
		p.tokens = append(p.tokens, best)
	}
}

// time measures the words by the alignment heads of the model.
func (r *reader) time(t *testing.T, p *passage) {
	t.Helper()
	heads := wordtimes.Published(r.model.Header())
	require.Len(t, heads, 8)
	p.in.Scores = r.scores(t, p, heads)
	begin := time.Now()
	p.times = wordtimes.Times(p.in)
	r.took += time.Since(begin)
}

func (r *reader) scores(t *testing.T, p *passage, heads [][2]int) [][][]float32 {
	t.Helper()
	scores, err := r.decoder.Attention(p.encoded, p.tokens, heads, p.in.Positions(), nil)
	require.NoError(t, err)
	return scores
}

// tally compares starts of words with a reference.
type tally struct{ words, near, sum float64 }

// spoken is a word of a reference.
type spoken struct {
	text  string
	start float64
}

var notLetters = regexp.MustCompile(`\(\d\)|[^\p{L}\p{N}']`)

func plain(s string) string { return notLetters.ReplaceAllString(strings.ToLower(s), "") }

// add compares a passage with the words of its recording, both in order; words
// that differ are skipped.
func (s *tally) add(p *passage, reference []spoken) {
	at := 0
	for _, w := range reference {
		found := slices.IndexFunc(p.words[at:min(at+4, len(p.words))], func(q decode.Word) bool { return plain(q.Text) == plain(w.text) })
		if found < 0 || len(p.times) == 0 {
			continue
		}
		at += found + 1
		off := math.Abs(p.window.Time(p.times[at-1].Start) - w.start)
		s.words++
		s.sum += off
		if off <= 0.05 {
			s.near++
		}
	}
}

func (s *tally) check(t *testing.T, name string) {
	t.Helper()
	t.Logf("%s: %.0f words, starts off by %.0f ms on the mean, %.2f within 50 ms", name, s.words, 1000*s.sum/s.words, s.near/s.words)
	assert.Greater(t, s.words, 10.0)
	assert.LessOrEqual(t, s.sum/s.words, 0.04, name)
	assert.GreaterOrEqual(t, s.near/s.words, 0.8, name)
}

// TestStartsOfRealSpeech compares the starts of words in read books with
// another recognizer's starts, given the text.
func TestStartsOfRealSpeech(t *testing.T) {
	r := openReader(t)
	paths, err := filepath.Glob(filepath.Join(r.shared, "real", "austen", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var all, apart tally
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var file struct {
			Words []struct {
				Text  string  `json:"t"`
				Start float64 `json:"b"`
			} `json:"w"`
		}
		require.NoError(t, json.Unmarshal(data, &file))
		var reference []spoken
		for _, w := range file.Words {
			if w.Text[0] != '<' { // silence
				reference = append(reference, spoken{w.Text, w.Start})
			}
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		r.read(t, filepath.Join(r.shared, "testdata", "speech", name+".flac"), "en", "", func(p *passage) {
			all.add(p, reference)
			if name != "austen_0870_en" && name != "austen_0880_en" {
				apart.add(p, reference)
			}
		})
	}
	all.check(t, "all")
	apart.check(t, "held apart from the choice of constants")
}

// TestStartsOfSyntheticSpeech compares the starts of words with the synthesizers' starts; OTOGRAPH_WORD_SET names a set other than package
// align's.
func TestStartsOfSyntheticSpeech(t *testing.T) {
	r := openReader(t)
	manifest := filepath.Join("..", "..", "..", "align", "testdata", "manifest.jsonl")
	if other := os.Getenv("OTOGRAPH_WORD_SET"); other != "" {
		manifest = other
	}
	data, err := os.ReadFile(manifest)
	require.NoError(t, err)
	var all tally
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var item struct {
			File, Language, Text string
			Words                []struct {
				Word  string
				Start float64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &item))
		var reference []spoken
		for _, w := range item.Words {
			reference = append(reference, spoken{w.Word, w.Start})
		}
		var own tally
		r.read(t, filepath.Join(filepath.Dir(manifest), item.File), item.Language, item.Text, func(p *passage) {
			own.add(p, reference)
			all.add(p, reference)
		})
		t.Logf("%s: %.0f words, %.0f ms, %.2f within 50 ms", item.File, own.words, 1000*own.sum/own.words, own.near/own.words)
	}
	all.check(t, "all")
}

// TestNoWordSpansAPause checks all recordings of speech.
func TestNoWordSpansAPause(t *testing.T) {
	r := openReader(t)
	data, err := os.ReadFile(filepath.Join(r.shared, "testdata", "speech", "truth.jsonl"))
	require.NoError(t, err)
	var windows, words, untimed int
	var seconds float64
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var item struct {
			File     string
			Language *string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &item))
		if item.Language == nil {
			continue
		}
		r.read(t, filepath.Join(r.shared, "testdata", "speech", item.File), *item.Language, "", func(p *passage) {
			windows++
			seconds += float64(len(p.in.Samples)) / audio.SampleRate
			words += len(p.words)
			if len(p.times) == 0 {
				untimed += len(p.words)
				return
			}
			before := 0.0
			for i, w := range p.times {
				name := item.File + ":" + p.words[i].Text
				assert.GreaterOrEqual(t, w.Start, before-1e-9, name)
				assert.GreaterOrEqual(t, w.End-w.Start, 0.02-1e-9, name)
				before = w.End
				from, to := p.window.Time(w.Start), p.window.Time(w.End)
				for k, s := range p.window.Speech[1:] {
					_, quiet := p.window.Speech[k].Seconds()
					again, _ := s.Seconds()
					over := min(to, again) - max(from, quiet)
					assert.False(t, again-quiet >= 0.3 && over > 1e-9, "%s %.2f – %.2f spans the pause %.2f – %.2f", name, from, to, quiet, again)
				}
			}
		})
	}
	t.Logf("%d windows of %.0f s, %d words, %d in texts for which the speech has no room; word times took %.1f ms a window", windows, seconds, words, untimed, float64(r.took.Milliseconds())/float64(windows))
	assert.Greater(t, words, 4000)
	assert.Less(t, untimed, words/50)
}

// TestChosenHeads: without its list of alignment heads, a published model gets
// nearly the same heads.
func TestChosenHeads(t *testing.T) {
	r := openReader(t)
	h := r.model.Header()
	r.read(t, filepath.Join(r.shared, "testdata", "speech", "long_lj001_en.mp3"), "en", "", func(p *passage) {
		if len(p.words) < 40 {
			return
		}
		heads, err := wordtimes.Choose(t.Context(), p.in, int(h.TextLayers), func(layer int) ([][][]float32, error) {
			var all [][2]int
			for head := range int(h.TextHeads) {
				all = append(all, [2]int{layer, head})
			}
			return r.scores(t, p, all), nil
		})
		require.NoError(t, err)
		published, same := wordtimes.Published(h), 0
		for _, head := range heads {
			if slices.Contains(published, head) {
				same++
			}
		}
		t.Logf("%d words: %d of %d heads are published: %v", len(p.words), same, len(heads), heads)
		assert.GreaterOrEqual(t, same, 4) // of 24 candidates
	})
}
