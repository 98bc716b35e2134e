package onnx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
)

const (
	lfrWindow, lfrShift = 7, 6
	lfrDim              = 80 * lfrWindow
	lfrSeconds          = lfrShift * 0.01
	// prompts is the number of rows that the network puts before the speech:
	// language, emotion, event, text normalization.
	prompts  = 4
	noSpeech = "nospeech"
)

// sensePrompts are SenseVoice small's prompts, if the metadata lacks them.
var sensePrompts = map[string]int{"auto": 0, "zh": 3, "en": 4, "yue": 7, "ja": 11, "ko": 12, noSpeech: 13}

var senseLanguages = []string{"zh", "en", "yue", "ja", "ko"}

const (
	senseWithITN = 14
	// senseVocabulary is the size of the published token list, and senseTagIDs
	// are the ids of its language tags, for lists that do not spell them out.
	senseVocabulary = 25055
)

var senseTagIDs = map[string]int{"zh": 24884, "en": 24885, "yue": 24888, "ja": 24892, "ko": 24896, noSpeech: 24992}

// funASR is the front end of SenseVoice and Paraformer: a Hamming-window filter
// bank on the 16-bit scale, seven frames stacked every six, shifted and scaled.
type funASR struct {
	fbank        *dsp.Extractor
	shift, scale []float32 // nil: features are not scaled
}

func newFunASR() funASR {
	o := dsp.DefaultFbankOptions()
	o.Window, o.Scale = dsp.WindowHamming, 32768
	return funASR{fbank: dsp.NewFbank(o)}
}

func (f *funASR) features(samples []float32) matrix {
	bank := fbankMatrix(f.fbank, samples)
	m := matrix{frames: dsp.LFRFrames(bank.frames, lfrShift), dim: lfrDim}
	m.data = make([]float32, m.frames*lfrDim)
	dsp.StackFrames(m.data, bank.data, bank.frames, 80, lfrWindow, lfrShift)
	if f.shift != nil {
		dsp.ApplyCMVN(m.data, f.shift, f.scale)
	}
	return m
}

// cmvn reads shift and scale from the metadata or from am.mvn.
func (f *funASR) cmvn(m parts, g *checker) {
	for key, want := range map[string]int{"lfr_window_size": lfrWindow, "lfr_window_shift": lfrShift} {
		if n := g.number(key, want, 1, 100); n != want {
			g.fail(ErrContract, "metadata %s: expected %d, found %d", key, want, n)
		}
	}
	f.shift, f.scale = g.numbers("neg_mean", lfrDim), g.numbers("inv_stddev", lfrDim)
	switch {
	case (f.shift == nil) != (f.scale == nil):
		g.fail(ErrContract, "expected neg_mean and inv_stddev in the metadata, found one of them")
	case f.shift != nil:
	case len(m.CMVN.Data) == 0:
		g.fail(ErrFile, "expected neg_mean and inv_stddev in the metadata or a file am.mvn next to the model, found neither")
	default:
		var err error
		if f.shift, f.scale, err = parseMVN(m.CMVN.Data, lfrDim); err != nil {
			g.fail(ErrFile, "%s: expected two <LearnRateCoef> lists of %d numbers: %w", m.CMVN.Name, lfrDim, err)
		}
	}
}

// mvnLists matches a list of an am.mvn: the numbers in brackets after its mark.
var mvnLists = regexp.MustCompile(`<LearnRateCoef>[^\[]*\[([^\]]*)\]`)

// parseMVN reads Kaldi's text form of am.mvn: the numbers in brackets after the
// two <LearnRateCoef> marks, the shift first, then the scale.
func parseMVN(data []byte, want int) (shift, scale []float32, err error) {
	if len(data) > 16<<20 {
		return nil, nil, fmt.Errorf("the file has %d bytes", len(data))
	}
	var lists [][]float32
	for _, list := range mvnLists.FindAllSubmatch(data, 2) {
		v, err := floats(strings.Fields(string(list[1])), want)
		if err != nil {
			return nil, nil, err
		}
		lists = append(lists, v)
	}
	if len(lists) < 2 {
		return nil, nil, fmt.Errorf("found %d", len(lists))
	}
	return lists[0], lists[1], nil
}

// senseVoice is SenseVoice small in the exports of k2-fsa and FunASR.
type senseVoice struct {
	ctcGraph
	funASR
	x                    string
	outputs              []string // the scores and, if the graph returns them, the numbers of rows
	lens, language, norm ort.Info
	languageIDs          map[string]int // prompt by code
	withITN              int
	tagIDs               map[string]int // vocabulary id of <|zh|> …
}

func openSenseVoice(m parts, g *checker, vocab *vocabulary) (network, error) {
	s := &senseVoice{funASR: newFunASR(), x: alias(g.Input, "x", "speech")}
	s.ctcGraph = ctcGraph{
		sessions: sessions{batch: !g.oneAtATime(s.x)}, out: alias(g.Output, "logits", "ctc_logits"), skip: prompts,
		head: head{vocab: vocab, blank: g.number("blank_id", max(vocab.blank, 0), 0, maxTokens), shift: lfrSeconds, logits: true},
	}
	if s.head.blank >= vocab.size() {
		g.fail(ErrTokens, "blank_id %d of the metadata is outside %s with %d tokens", s.head.blank, vocab.name, vocab.size())
	}
	lens, norm := alias(g.Input, "x_length", "speech_lengths", "x_lens"), alias(g.Input, "text_norm", "textnorm")
	g.ports([]ort.Info{float(s.x, -1, -1, lfrDim), {Name: lens}, {Name: "language"}, {Name: norm}}, float(s.out, -1, -1, -1))
	s.lens, s.language, s.norm = g.integer(lens, 1), g.integer("language", 1), g.integer(norm, 1)
	s.cmvn(m, g)
	s.readPrompts(g)
	g.width(s.out, vocab)
	s.outputs = []string{s.out}
	if has(g.Output, "encoder_out_lens") {
		s.outputs = append(s.outputs, "encoder_out_lens")
	}
	return s, s.open(m, g, s.outputs...)
}

// readPrompts reads the numbers of the prompts and of the language tags.
func (s *senseVoice) readPrompts(g *checker) {
	vocab := s.head.vocab
	s.languageIDs, s.tagIDs = map[string]int{}, map[string]int{}
	for code, fallback := range sensePrompts {
		s.languageIDs[code] = g.number("lang_"+code, fallback, 0, 1000)
		if code == "auto" {
			continue
		}
		id := slices.Index(vocab.symbols, "<|"+code+"|>")
		if id < 0 && vocab.size() == senseVocabulary {
			id = senseTagIDs[code]
		}
		if id >= 0 {
			s.tagIDs[code] = id
		}
	}
	s.withITN = g.number("with_itn", senseWithITN, 0, 1000)
	if !slices.ContainsFunc(senseLanguages, func(code string) bool { _, ok := s.tagIDs[code]; return ok }) {
		g.fail(ErrTokens, "%s has no language tags <|zh|>, <|en|> …", vocab.name)
	}
}

func (*senseVoice) languages() []string { return senseLanguages }

func (s *senseVoice) run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error) {
	counts := frameCounts(windows)
	same := func(v int) []int { return slices.Repeat([]int{v}, len(windows)) }
	out, err := s.encoder.Run(ctx, map[string]*ort.Tensor{
		s.x: pad(windows, 0), s.lens.Name: ort.NewIntegers(s.lens, counts),
		s.language.Name: ort.NewIntegers(s.language, same(s.languageIDs[cmp.Or(req.language, "auto")])), s.norm.Name: ort.NewIntegers(s.norm, same(s.withITN)),
	}, s.outputs...)
	if err != nil {
		return nil, err
	}
	var rows []int64
	if len(out) > 1 {
		rows = out[1].Integers()
	} else {
		for _, c := range counts {
			rows = append(rows, int64(c+s.skip))
		}
	}
	hyps, err := s.decodeRows(out[0], rows, len(windows), req)
	if err != nil {
		return nil, err
	}
	data, per, columns := out[0].Float32(), int(out[0].Shape()[1]), s.head.vocab.size()
	if per < prompts {
		return nil, fmt.Errorf("%s: %w: output %s: expected at least %d rows, found %d", s.source, ErrContract, s.out, prompts, per)
	}
	for i := range hyps {
		hyps[i].languages = s.readLanguage(data[i*per*columns:][:columns])
	}
	return hyps, nil
}

// readLanguage returns the language tags' probabilities in the first row.
func (s *senseVoice) readLanguage(row []float32) map[string]float64 {
	codes := slices.Sorted(maps.Keys(s.tagIDs)) // a fixed order of summation makes the result reproducible
	scores := make([]float32, len(codes))
	for i, code := range codes {
		scores[i] = row[s.tagIDs[code]]
	}
	probability, norm := map[string]float64{}, logSum(scores)
	for i, code := range codes {
		probability[code] = exp(float64(scores[i]) - norm)
	}
	return probability
}

// commonLanguage returns the most probable language over all windows, weighted
// by their length; "" if the family does not detect languages.
func commonLanguage(windows []decode.Window, hyps []hypothesis) string {
	sum := map[string]float64{}
	for i, h := range hyps {
		for code, p := range h.languages {
			sum[code] += p * float64(windows[i].Len()) / audio.SampleRate
		}
	}
	best, top := "", 0.0
	for _, code := range senseLanguages {
		if sum[code] > top {
			best, top = code, sum[code]
		}
	}
	return best
}
