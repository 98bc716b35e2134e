// Command wordset creates recordings whose word times are known exactly: the
// synthesizers that speak them report the times themselves (espeak-ng its word
// events, flite the segments of its utterances, festival its Word relation).
//
//	go run -C tools ./wordset -seed 7 -o DIR
//	otograph bench --tier standard --tier optimized DIR/manifest.jsonl
//
// The sentences come from the demonstration recognizers' grammars, but were
// held out from their training. Requirements: a C compiler, libespeak-ng-dev,
// flite1-dev, festival with festvox-kallpc16k, ffmpeg; -english selects any
// voice of these programs, such as festival's from festvox-kdlpc16k and
// festvox-us-slt-hts.
//
// Starts of words are exact. The end of a word is the start of the next one or
// the end of the clause; pauses inside clauses are not reported.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/otograph/otograph/tools/internal/checkout"
)

// rate is the recordings' sample rate in Hz.
const rate = 16000

// voices are each language's voices on which no demonstration model was
// trained.
var voices = map[string][]voice{
	"en": {
		{"espeak", "en-us", true},
		{"espeak", "en-gb-x-rp", true},
		{"espeak", "en-us", true},
		{"espeak", "en", true},
		{"flite", "rms", false},
		{"festival", "kal_diphone", false},
	},
	"es": {{"espeak", "es", true}, {"espeak", "es-419", true}},
	"fr": {{"espeak", "fr", true}},
	"pt": {{"espeak", "pt-br", true}, {"espeak", "pt", true}},
	"de": {{"espeak", "de", true}},
	"zh": {{"espeak", "cmn-latn-pinyin", true}},
}

// variants are espeak-ng's voice variants held out from training.
var variants = []string{"f4", "m6", "Andrea", "pedro", "Michael", "marcelo", "m8"}

// trainingVariants are variants on which the demonstration models were trained.
var trainingVariants = []string{
	"f1", "f2", "f3", "f5", "m1", "m2", "m3", "m4", "m5", "m7", "Alex", "Alicia", "Annie", "Diogo", "Gene", "Hugo", "Lee", "Mario",
	"Reed", "Storm", "adam", "anika", "belinda", "benjamin", "caleb", "david", "ed", "klatt", "klatt2", "linda", "max", "paul", "quincy",
	"rob", "steph", "travis", "victor", "zac",
}

type voice struct {
	engine, name string
	variants     bool
}

// word is a word with its times in seconds.
type word struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Word  string  `json:"word"`
}

// line is a line of the manifest.
type line struct {
	File     string `json:"file"`
	Text     string `json:"text"`
	Language string `json:"language"`
	Voice    string `json:"voice"`
	Noise    bool   `json:"noise"`
	Words    []word `json:"words"`
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of sentences, voices, pauses and noise")
	out := flag.String("o", "", "folder to write")
	count := flag.Int("n", 30, "recordings")
	sentences := flag.Int("sentences", 5, "sentences in each")
	noise := flag.String("noise", "", "decibels from the sound down to white noise, for each recording in turn, - for none (-,20,10,5,0); default: 20 in every third")
	training := flag.Bool("train", false, "voices and sentences to learn from instead of those held out")
	english := flag.String("english", "", "record English only, in these voices: ENGINE:NAME,… (flite:awb,festival:ked_diphone)")
	texts := flag.String("texts", "tools/training/asr", "folder of the grammars texts_LANGUAGE.txt")
	flag.Parse()
	if *out == "" {
		log.Fatal("wordset: -o is missing")
	}
	levels, err := noises(*noise)
	if err == nil {
		err = checkout.Enter()
	}
	order := []string{"en", "es", "fr", "en", "pt", "de", "en", "zh"}
	if *english != "" && err == nil {
		order = []string{"en"}
		voices["en"], err = namedVoices(*english)
	}
	if err == nil {
		err = set{*seed, *out, *texts, order, *count, *sentences, *training, levels}.write()
	}
	if err != nil {
		log.Fatal("wordset: ", err)
	}
}

// namedVoices reads a list of voices.
func namedVoices(list string) (out []voice, err error) {
	for s := range strings.SplitSeq(list, ",") {
		engine, name, ok := strings.Cut(s, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("-english: expected ENGINE:NAME, found %q", s)
		}
		out = append(out, voice{engine: engine, name: name})
	}
	return out, nil
}

// noises parses a list of levels in decibels; none is +Inf.
func noises(list string) ([]float64, error) {
	if list == "" {
		return []float64{math.Inf(1), math.Inf(1), 20}, nil
	}
	var levels []float64
	for s := range strings.SplitSeq(list, ",") {
		level := math.Inf(1)
		if s != "-" {
			var err error
			if level, err = strconv.ParseFloat(s, 64); err != nil || math.IsNaN(level) {
				return nil, fmt.Errorf("-noise: expected decibels or -, found %q", s)
			}
		}
		levels = append(levels, level)
	}
	return levels, nil
}

// set describes the recordings to write.
type set struct {
	seed             uint64
	out, texts       string   // folders
	order            []string // languages, in turn
	count, sentences int
	training         bool
	noise            []float64 // levels, in turn
}

func (w set) write() error {
	if err := os.MkdirAll(w.out, 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "wordset")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s, err := newSpeakers(tmp)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(w.seed, 0x3030))
	grammars := map[string]*grammar{}
	for l := range voices {
		if grammars[l], err = readGrammar(filepath.Join(w.texts, "texts_"+l+".txt")); err != nil {
			return err
		}
	}
	manifest, err := os.Create(filepath.Join(w.out, "manifest.jsonl"))
	if err != nil {
		return err
	}
	defer manifest.Close()
	enc := json.NewEncoder(manifest)
	enc.SetEscapeHTML(false)
	for i := range w.count {
		language := w.order[i%len(w.order)]
		l, x, err := record(s, r, grammars[language], language, w.sentences, w.training)
		if err != nil {
			return err
		}
		l.File = fmt.Sprintf("%s_%02d.flac", language, i)
		if below := w.noise[i%len(w.noise)]; !math.IsInf(below, 1) {
			l.Noise = true
			addNoise(x, r, below)
		}
		if err := save(filepath.Join(w.out, l.File), x); err != nil {
			return err
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return manifest.Close()
}

// record speaks sentences with pauses between them.
func record(s *speakers, r *rand.Rand, g *grammar, language string, sentences int, training bool) (line, []float32, error) {
	v := voices[language][r.IntN(len(voices[language]))]
	how := manner{rate: 140 + r.IntN(40), pitch: 35 + r.IntN(30), stretch: 0.9 + 0.2*r.Float64()}
	pool := variants
	if training {
		pool = trainingVariants
		how = manner{rate: 120 + r.IntN(90), pitch: 20 + r.IntN(60), stretch: 0.8 + 0.4*r.Float64()}
		if v.engine != "espeak" {
			v = voice{"flite", "slt", false}
		}
	}
	if v.variants {
		v.name += "+" + pool[r.IntN(len(pool))]
	}
	l := line{Language: language, Voice: v.engine + ":" + v.name}
	x := make([]float32, rate*4/10)
	for range sentences {
		text := g.sentence(r, training)
		y, words, err := s.say(v, how, text)
		if err != nil {
			return l, nil, fmt.Errorf("%s: %q: %w", l.Voice, text, err)
		}
		at := float64(len(x)) / rate
		for _, w := range words {
			l.Words = append(l.Words, word{round(at + w.Start), round(at + w.End), w.Word})
		}
		if l.Text += text; language != "zh" {
			l.Text += " "
		}
		x = append(append(x, y...), make([]float32, rate*(2+r.IntN(12))/10)...)
	}
	l.Text = strings.TrimSpace(l.Text)
	return l, x, nil
}

func round(t float64) float64 { return math.Round(t*1e4) / 1e4 }

// addNoise adds white noise the given number of decibels below the sound.
func addNoise(x []float32, r *rand.Rand, below float64) {
	var energy float64
	for _, v := range x {
		energy += float64(v) * float64(v)
	}
	level := math.Sqrt(energy/float64(len(x))) * math.Pow(10, -below/20)
	for i := range x {
		x[i] += float32(level * r.NormFloat64())
	}
}

// save writes a FLAC file.
func save(path string, x []float32) error {
	c := exec.Command("ffmpeg", "-y", "-v", "error", "-f", "f32le", "-ar", fmt.Sprint(rate), "-ac", "1", "-i", "-", "-sample_fmt", "s16", path)
	c.Stdin = strings.NewReader(string(floatBytes(x)))
	return command(c)
}

// command runs a command and includes its output in the error if it fails.
func command(c *exec.Cmd) error {
	var said strings.Builder
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// cut returns a part of a text given in characters.
func cut(text string, from, n int) (string, error) {
	runes := []rune(text)
	if !utf8.ValidString(text) || from < 0 || n < 0 || from+n > len(runes) {
		return "", errors.New("a word lies outside the text")
	}
	return string(runes[from : from+n]), nil
}
