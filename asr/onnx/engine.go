// Package onnx is the optimized tier: recognizers of the CTC kind and relatives
// (icefall Zipformer, WeNet, SenseVoice, NeMo CTC, wav2vec 2.0 and its kin,
// NeMo and icefall transducers, Paraformer, Moonshine) run with ONNX Runtime.
//
// A model is recognized by its metadata or by its inputs and outputs; a model
// that fits no known contract is refused with an error that names the file, its
// role, the expected value and the actual one. Families with a CTC output or a
// transducer, and Moonshine, return word times on request.
package onnx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

var (
	// ErrContract marks a model file whose inputs, outputs or metadata fit no
	// supported contract, or not the declared one.
	ErrContract = ort.ErrContract
	// ErrTokens marks a token list that cannot be read or does not fit its model.
	ErrTokens = errors.New("token list does not fit")
	// ErrFile marks a missing or unreadable file that belongs to the model
	// (CMVN, configuration, language model).
	ErrFile = errors.New("model file does not fit")
	// ErrClosed is returned by an Engine after Close.
	ErrClosed = errors.New("recognizer is closed")
)

// sideFile is a small file that belongs to the model, in memory.
type sideFile struct {
	Name string // for error texts
	Data []byte
}

// parts holds the files of one recognizer. If its model has no Languages, the
// family decides (SenseVoice knows its own, others accept any).
type parts struct {
	models.Model
	// ONNX is the graph, or a transducer's encoder.
	ONNX ort.Source
	// Decoder and Joiner are a transducer's other two graphs. In onnx-asr's
	// layout, Decoder is decoder_joint-model.onnx and Joiner is empty.
	Decoder, Joiner ort.Source
	// Frontend and Adapter are the graphs before and after a streaming
	// Moonshine's encoder.
	Frontend, Adapter ort.Source
	// Tokens is a token list (txt or json).
	Tokens sideFile
	// CMVN is FunASR's am.mvn, required without statistics in the graph.
	CMVN sideFile
	// Config is the config.json of onnx-asr's layout, or a waveform model's
	// preprocessor_config.json; optional.
	Config sideFile
	// LM is a word language model (ARPA) for the search; optional.
	LM sideFile
}

const (
	// defaultWindow and longestWindow limit a decoded stretch, in seconds.
	defaultWindow = 20.0
	longestWindow = 60.0
	// mostBatch is the most windows per run, if the family allows several.
	mostBatch = 4
	// shortestInput is the length to which shorter windows are padded with
	// zeros, because several networks fail in a convolution below it. Lengths
	// need no further rounding: sessions keep no memory per length.
	shortestInput = audio.SampleRate * 2 / 5
	// joinPause is the silence (seconds) that ends an utterance; utterancePad
	// is the part of it kept on either side. These networks are trained on
	// utterances: windows filled up to 20 s make 7.6 instead of 4.4 % errors in
	// English. Short windows cost no time: windows of similar length run together.
	joinPause    = 0.5
	utterancePad = 0.1
	// similar is the least length of a window in a batch, of the longest.
	similar = 0.85
)

// matrix is one window's features, frames x dim.
type matrix struct {
	data        []float32
	frames, dim int
}

// emission is one decoded token.
type emission struct {
	id         int
	start, end float64 // seconds from the beginning of the window
	logProb    float64
	// blank is the posterior of the blank in the token's row.
	blank float64
	// text is the written text, which vocabulary.write sets. A hotword of the
	// spotter already has its text; its id is the blank.
	text string
}

// hypothesis is the result of a network for one window.
type hypothesis struct {
	emissions []emission
	// unbounded reports that the emissions have no times within the window.
	unbounded bool
	// timed reports that the emissions have the times of words, not of places
	// somewhere inside of them.
	timed bool
	// steps counts evaluations of a decoder network.
	steps     int
	languages map[string]float64 // language probabilities; nil if the family has no language head
	// rows are the log posteriors, if requested.
	rows *align.Rows
	// attention is the attention at the steps that wrote the text, by step and
	// alignment head and frame of grid, if requested; nil if the family has none.
	attention [][][]float32
	grid      grid
	// spotted are the hotwords that the spotter found.
	spotted []ctc.Spotted
}

// request holds the parameters of a transcription for a network.
type request struct {
	language string // "" leaves it to the model
	beam     int    // beam size; 0 is 1
	fusion   fusion
	keep     bool // the log posteriors
	times    bool // whether the family must compute the times of words
	spotter  *ctc.Spotter
	draft    *draft // of the only window; nil to read all
	unlooped bool   // whether Moonshine may repeat nothing without end
}

// network is one family: features into tokens. It may be used concurrently.
type network interface {
	// features computes the input of one window (16 kHz samples).
	features(samples []float32) matrix
	// batchable reports whether several windows may share a run.
	batchable() bool
	// chunked returns the layout of an encoder that reads a window in chunks, or
	// nil.
	chunked() *chunks
	// run decodes the windows of one batch, a single window unless batchable.
	run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error)
	// languages returns the family's own languages; nil if it declares none.
	languages() []string
	// ctc returns the CTC output layer, or nil if the family has none.
	ctc() *head
	close() error
}

// Engine is an open recognizer: an asr.Transcriber and an asr.LanguageDetector.
// It is safe for concurrent use.
type Engine struct {
	name, contract string
	net            network
	vocab          *vocabulary
	lm             *wordScorer
	known          []string
	window         float64
	batch          int          // the most windows per run
	mu             sync.RWMutex // read-locked by every use, write-locked by Close
	closed         bool
	closeErr       error
	writing        func() *ctc.Vocabulary // the texts of a CTC output's tokens
	spell          func() *speller
}

var (
	_ asr.Transcriber      = (*Engine)(nil)
	_ asr.LanguageDetector = (*Engine)(nil)
)

// openParts recognizes the model, checks its files and opens its sessions.
func openParts(m parts) (*Engine, error) {
	m.ONNX.Role = cmp.Or(m.ONNX.Role, "optimized")
	m.Name = cmp.Or(m.Name, m.ONNX.String())
	if m.WindowSeconds < 0 || m.WindowSeconds > longestWindow || math.IsNaN(m.WindowSeconds) {
		return nil, fmt.Errorf("%s: %w: window of %g s, want 0 to %g", m.ONNX, ErrFile, m.WindowSeconds, longestWindow)
	}
	var (
		grams   *wordModel
		badLM   error
		reading sync.WaitGroup
	)
	if m.LM.Name != "" {
		reading.Go(func() { // beside the network
			if grams, badLM = parseARPA(m.LM.Name, m.LM.Data); badLM != nil {
				badLM = fmt.Errorf("%s: %w: %w", m.ONNX, ErrFile, badLM)
			}
		})
	}
	net, contract, vocab, err := open(m)
	reading.Wait()
	if err != nil {
		return nil, err
	}
	known, unknown := m.languages(net.languages())
	if err := cmp.Or(badLM, unknown); err != nil {
		_ = net.close()
		return nil, err
	}
	e := &Engine{name: m.Name, contract: contract, net: net, vocab: vocab, known: known, batch: mostBatch}
	e.window = cmp.Or(m.WindowSeconds, defaultWindow)
	if k := net.chunked(); k != nil && !k.anew { // a cut would lose the states
		e.window = cmp.Or(m.WindowSeconds, longestWindow)
	}
	if grams != nil {
		e.lm = newWordScorer(grams, vocab.texts())
	}
	e.writing = sync.OnceValue(e.tokens)
	e.spell = sync.OnceValue(func() *speller { return newSpeller(vocab.texts(), vocab.spaced) })
	return e, nil
}

// languages returns the model's languages: the family's own, or all of them.
func (m parts) languages(own []string) (known []string, err error) {
	for _, l := range m.Languages {
		code, ok := spec.NormalizeLanguage(l)
		if !ok {
			return nil, fmt.Errorf("%s: %w: language %q of the model is not a language code", m.ONNX, ErrFile, l)
		}
		if own != nil && !slices.Contains(own, code) {
			return nil, fmt.Errorf("%s: %w: language %q: the model supports %s", m.ONNX, ErrFile, l, strings.Join(own, ", "))
		}
		known = append(known, code)
	}
	if known == nil {
		return own, nil
	}
	return known, nil
}

// Languages returns the codes that asr.Options.Language may have. It is empty
// if the model was opened without a list and declares none.
func (e *Engine) Languages() []string { return slices.Clone(e.known) }

// Abilities implements asr.Transcriber: every search uses hotwords and the
// language model. Without either, transducers and Paraformer are greedy.
func (e *Engine) Abilities() asr.Abilities {
	return asr.Abilities{
		Beam: math.MaxInt, BeamForHotwords: e.net.ctc() == nil && e.lm == nil,
		Hotwords: true, NoSpeech: e.contract != models.ContractParaformer,
	}
}

// Close waits for running decodes and frees the model, also when repeated.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed, e.closeErr = true, e.net.close()
	}
	return e.closeErr
}

// Transcribe decodes the speech of a recording. Segments contain words if
// opt.WordTimestamps requests them and the family has their times. If
// opt.Language is empty, the model detects the language if it can, and uses its
// only language otherwise. CTC families use a prefix beam of twice
// opt.BeamSize. Transducers and Paraformer use opt.BeamSize with hotwords or a
// language model, and decode greedily otherwise.
func (e *Engine) Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	language, err := e.language(opt.Language)
	if err != nil {
		return nil, err
	}
	req := request{language: language, beam: beamSize(opt), fusion: newFusion(opt.Hotwords, e.vocab, e.lm), spotter: e.newSpotter(opt.Hotwords), times: true}
	windows := e.windows(pcm, speech)
	d, unread := e.draft(pcm, windows, req, opt.Draft)
	req.draft = d
	var settle func(hyps []hypothesis)
	if given := 0; opt.Settled != nil {
		settle = func(hyps []hypothesis) { // passes on each sentence once, as soon as later windows cannot change it
			list := e.segments(pcm, windows[:len(hyps)], hyps, speech, false)
			if n := len(list) - 1; n > given { // the last one may continue
				opt.Settled(list[given:n])
				given = n
			}
		}
	}
	hyps, err := e.decode(ctx, pcm, unread, req, opt, settle)
	if err != nil {
		return nil, err
	}
	t := &asr.Transcript{Language: language, Stats: asr.Stats{Windows: len(windows), EncoderPasses: len(windows)}, Unspelled: e.unspelled(opt.Hotwords)}
	for _, h := range hyps {
		t.Stats.DecoderSteps += h.steps
	}
	if language == "" {
		t.Language = commonLanguage(windows, hyps)
		if t.Language == "" && len(e.known) == 1 {
			t.Language = e.known[0]
		}
	}
	if d != nil && opt.Draft.Open {
		t.State, t.Grows = d, !e.net.chunked().anew
	}
	t.Segments = e.segments(pcm, windows, hyps, speech, opt.WordTimestamps)
	return t, nil
}

// windows cuts speech into utterances, which are stretches between pauses of at
// least joinPause, and splits utterances that are too long for the model.
func (e *Engine) windows(pcm *audio.PCM, speech []audio.Span) []decode.Window {
	var out []decode.Window
	for i := 0; i < len(speech); {
		j := i + 1
		for j < len(speech) && float64(speech[j].Start-speech[j-1].End)/audio.SampleRate < joinPause {
			j++
		}
		out = append(out, decode.Pack(speech[i:j], pcm, decode.PackOptions{Max: e.window, Lead: utterancePad, Tail: utterancePad})...)
		i = j
	}
	return out
}

// language checks a requested language; "" leaves it to the model.
func (e *Engine) language(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	return asr.Language(e.name, s, e.known)
}

func init() {
	recognizers.Register(func(m *models.Model, _ recognizers.Options) (*Engine, error) {
		return Open(m)
	}, models.ContractsOf(models.RoleOptimized)...)
}

// Open opens a recognizer of the optimized tier with its files, as
// library.OpenFile, library.OpenDir and demo.Models return them. Errors wrap
// ErrContract, ErrTokens or ErrFile, or are ONNX Runtime's or the system's.
func Open(m *models.Model) (*Engine, error) {
	p := parts{Model: *m}
	graphs := map[models.Part]*ort.Source{
		models.PartModel: &p.ONNX, models.PartEncoder: &p.ONNX,
		models.PartDecoder: &p.Decoder, models.PartDecoderJoint: &p.Decoder, models.PartJoiner: &p.Joiner,
		models.PartFrontend: &p.Frontend, models.PartAdapter: &p.Adapter,
	}
	texts := map[models.Part]*sideFile{models.PartTokens: &p.Tokens, models.PartCMVN: &p.CMVN, models.PartConfig: &p.Config, models.PartLM: &p.LM}
	for _, f := range m.Files {
		if target, ok := graphs[f.Part]; ok {
			src, err := ort.SourceOf(m, f)
			if err != nil {
				return nil, err
			}
			*target = src
		}
		if target, ok := texts[f.Part]; ok {
			data, err := f.Bytes()
			if err != nil {
				return nil, fmt.Errorf("%s model %s: %w", m.Role, m.Name, err)
			}
			*target = sideFile{Name: f.Name, Data: data}
		}
	}
	return openParts(p)
}
