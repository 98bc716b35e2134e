// Package onnx is the optimized tier: recognizers of the CTC kind and their
// relatives (icefall Zipformer, WeNet, SenseVoice, NeMo CTC, wav2vec 2.0 and its
// kin, the transducers of NeMo and icefall, Paraformer) run through ONNX Runtime.
//
// A model is recognized by its metadata or by its inputs and outputs; whatever
// does not fit a known contract is refused with an error that names the file,
// its role, what was expected and what was found. Families with a CTC output or
// a transducer give words, when these are asked for.
package onnx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/ngram"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/ctc"
	"github.com/otograph/otograph/internal/decode"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

var (
	// ErrContract marks a model file whose inputs, outputs or metadata fit no
	// supported contract, or not the one it was said to have.
	ErrContract = ort.ErrContract
	// ErrTokens marks a token list that cannot be read or does not fit its model.
	ErrTokens = errors.New("token list does not fit")
	// ErrFile marks another file beside the model (CMVN, configuration, language
	// model) that is missing or cannot be read.
	ErrFile = errors.New("model file does not fit")
	// ErrLanguage marks a language that the model does not know.
	ErrLanguage = spec.Permanent(errors.New("language not known to the model"))
	// ErrNoLanguage is returned by DetectLanguage for a model that does not
	// detect languages.
	ErrNoLanguage = errors.New("the model does not detect languages")
	// ErrClosed is returned by an Engine after Close.
	ErrClosed = errors.New("recognizer is closed")
)

// sideFile is a small file beside the model, in memory.
type sideFile struct {
	Name string // for error texts
	Data []byte
}

// parts holds the files of one recognizer.
type parts struct {
	// Name names the recognizer in errors.
	Name string
	// ONNX is the graph; of a transducer the encoder.
	ONNX ort.Source
	// Decoder and Joiner are the other two graphs of a transducer. In the layout
	// of onnx-asr, Decoder is decoder_joint-model.onnx and Joiner is empty.
	Decoder, Joiner ort.Source
	// Tokens is tokens.txt, vocab.txt, units.txt, tokens.json, vocab.json or a
	// sentencepiece model.
	Tokens sideFile
	// CMVN is FunASR's am.mvn, needed when the graph's metadata do not carry it.
	CMVN sideFile
	// Config is the config.json of onnx-asr's layout, or the
	// preprocessor_config.json of a model on samples; optional.
	Config sideFile
	// LM is a language model over words in the ARPA format that the search takes
	// into account; optional.
	LM sideFile
	// Contract is one of the models.Contract constants, or "" to recognize the
	// model by its metadata and shapes.
	Contract string
	// Languages are the codes the model serves, as spec.NormalizeLanguage writes
	// them; empty leaves it to the family (SenseVoice knows its own, others take
	// any).
	Languages []string
	// WindowSeconds is the longest stretch to decode in one piece; 0 is 20 s.
	WindowSeconds float64
}

// Options of an engine.
type Options struct {
	// Threads is how many cores one run of the network uses; 0 is 1. Windows are
	// better spread over asr.Options.Parallel.
	Threads int
	// Batch is the most windows in one run, where the family allows several; 0
	// is the default of 4. The text does not depend on Parallel.
	Batch int
}

const (
	// defaultWindow and longestWindow limit the stretch that is decoded in one
	// piece, in seconds.
	defaultWindow = 20.0
	longestWindow = 60.0
	// defaultBatch is how many windows share a run.
	defaultBatch = 4
	// shortestInput is what shorter windows are padded to with zeros: several
	// networks fail inside a convolution below it.
	// Lengths need no further rounding: sessions keep no memory per length.
	shortestInput = audio.SampleRate * 2 / 5
	// joinPause is the silence (seconds) that ends an utterance, utterancePad what
	// is kept of it on either side. Networks of this kind are trained on
	// utterances: on the demo model's long recordings one utterance per window
	// gives 4.4 % errors in English where windows filled up to 20 s give 7.6 %.
	// The cost of short windows is nil, as those of similar length run together.
	joinPause    = 0.5
	utterancePad = 0.1
	// similar is how much shorter than the longest a window of a batch may be.
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
	// blank is the posterior that nothing is said where the token fires.
	blank float64
	// text is written in place of what the token writes: a hotword that was found in
	// the sound, of which the id is the blank's.
	text string
}

// hypothesis is the result of a network for one window.
type hypothesis struct {
	emissions []emission
	// unbounded reports that the emissions have no times: they are somewhere in
	// the window.
	unbounded bool
	// steps counts evaluations of a decoder network.
	steps int
	heard map[string]float64 // probabilities of the languages; nil where the family does not tell
	// rows are the log posteriors, when the request asks for them.
	rows *align.Rows
	// spotted are the hotwords that were found in the sound.
	spotted []ctc.Spotted
}

// request holds the parameters of a transcription for a network.
type request struct {
	language string // "" leaves it to the model
	beam     int    // beam size; 0 is 1
	fusion   fusion
	keep     bool // the log posteriors
	spotter  *ctc.Spotter
}

// network is one family: features in, tokens out. It is safe for concurrent use.
type network interface {
	// features computes the input of one window (16 kHz samples).
	features(samples []float32) matrix
	// batchable reports whether several windows may share a run.
	batchable() bool
	// run decodes the windows of one batch.
	run(ctx context.Context, windows []matrix, req request) ([]hypothesis, error)
	// languages lists what the family itself knows; nil for no opinion.
	languages() []string
	// ctc is the CTC output layer; nil for a family that has none.
	ctc() *head
	close() error
}

// Engine is an open recognizer: an asr.Transcriber and an asr.LanguageDetector.
// It is safe for concurrent use.
type Engine struct {
	name      string
	contract  string
	net       network
	vocab     *vocabulary
	lm        *ngram.Scorer
	known     []string
	window    float64
	batch     int
	mu        sync.RWMutex // held for reading by every use, for writing by Close
	closed    bool
	closeOnce sync.Once
	closeErr  error
	writing   func() *ctc.Vocabulary // what the tokens of a CTC output write
	spell     func() *speller
}

var (
	_ asr.Transcriber      = (*Engine)(nil)
	_ asr.LanguageDetector = (*Engine)(nil)
)

// openParts recognizes the model, checks its files against each other and makes
// its sessions.
func openParts(m parts, opt Options) (*Engine, error) {
	if m.ONNX.Role == "" {
		m.ONNX.Role = "optimized"
	}
	if m.Name == "" {
		m.Name = m.ONNX.String()
	}
	if m.WindowSeconds < 0 || m.WindowSeconds > longestWindow || math.IsNaN(m.WindowSeconds) {
		return nil, fmt.Errorf("%s: %w: window of %g s, want 0 to %g", m.ONNX, ErrFile, m.WindowSeconds, longestWindow)
	}
	var (
		grams   *ngram.Model
		badLM   error
		reading sync.WaitGroup
	)
	reading.Go(func() { grams, badLM = readLM(m) }) // beside the network
	net, contract, vocab, err := open(m, opt)
	reading.Wait()
	if err != nil {
		return nil, err
	}
	if badLM != nil {
		_ = net.close()
		return nil, badLM
	}
	var lm *ngram.Scorer
	if grams != nil {
		lm = ngram.NewScorer(grams, vocab.texts())
	}
	e := &Engine{name: m.Name, contract: contract, net: net, vocab: vocab, lm: lm, window: m.WindowSeconds, batch: opt.Batch}
	e.writing = sync.OnceValue(e.tokens)
	e.spell = sync.OnceValue(func() *speller { return newSpeller(vocab.texts(), vocab.spaced) })
	if e.window == 0 {
		e.window = defaultWindow
	}
	if e.batch <= 0 {
		e.batch = defaultBatch
	}
	for _, l := range m.Languages {
		code, ok := spec.NormalizeLanguage(l)
		if !ok {
			_ = net.close()
			return nil, fmt.Errorf("%s: %w: language %q of the model is not a language code", m.ONNX, ErrFile, l)
		}
		if own := net.languages(); own != nil && !slices.Contains(own, code) {
			_ = net.close()
			return nil, fmt.Errorf("%s: %w: language %q: the model supports %s", m.ONNX, ErrFile, l, strings.Join(own, ", "))
		}
		e.known = append(e.known, code)
	}
	if len(e.known) == 0 {
		e.known = net.languages()
	}
	return e, nil
}

// Contract returns the contract that the model was recognized as.
func (e *Engine) Contract() string { return e.contract }

// Languages lists the codes that asr.Options.Language may have; empty when the
// model was opened without a list and does not carry one.
func (e *Engine) Languages() []string { return slices.Clone(e.known) }

// Abilities implements asr.Transcriber: hotwords and the language model take part
// in the search of every family. Without either, transducers and Paraformer take
// the best token at each step.
func (e *Engine) Abilities() asr.Abilities {
	return asr.Abilities{
		Beam: math.MaxInt, BeamForHotwords: e.net.ctc() == nil && e.lm == nil,
		Hotwords: true, NoSpeech: e.contract != models.ContractParaformer,
	}
}

// Close waits for decodes in flight and frees the model. It may be called more
// than once.
func (e *Engine) Close() error {
	e.closeOnce.Do(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.closed = true
		e.closeErr = e.net.close()
	})
	return e.closeErr
}

// Transcribe decodes the speech of a recording. Segments carry words if
// opt.WordTimestamps asks for them and the family knows their times. An
// empty opt.Language leaves the language to the model where it can tell, and to
// the only one it knows otherwise. CTC families search with a prefix beam of twice
// opt.BeamSize; transducers and Paraformer with one of opt.BeamSize where there are
// hotwords or a language model, and greedily otherwise.
func (e *Engine) Transcribe(ctx context.Context, pcm *audio.PCM, speech []audio.Span, opt asr.Options) (*asr.Transcript, error) {
	language, err := e.language(opt.Language)
	if err != nil {
		return nil, err
	}
	req := request{language: language, beam: beamSize(opt), fusion: newFusion(opt.Hotwords, e.vocab, e.lm), spotter: e.newSpotter(opt.Hotwords)}
	windows := e.windows(pcm, speech)
	hyps, passes, err := e.decode(ctx, pcm, windows, req, opt)
	if err != nil {
		return nil, err
	}
	t := &asr.Transcript{Language: language, Stats: asr.Stats{Windows: len(windows), EncoderPasses: passes}, Unspelled: e.unspelled(opt.Hotwords)}
	for _, h := range hyps {
		t.Stats.DecoderSteps += h.steps
	}
	if language == "" {
		t.Language = heardLanguage(windows, hyps)
		if t.Language == "" && len(e.known) == 1 {
			t.Language = e.known[0]
		}
	}
	t.Segments = e.segments(pcm, windows, hyps, speech, opt.WordTimestamps)
	return t, nil
}

// windows cuts speech into utterances: stretches between pauses of joinPause or
// more, and where such a stretch is longer than the model takes, parts of it.
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

// language checks a requested language against those of the model.
func (e *Engine) language(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	code, ok := spec.NormalizeLanguage(s)
	if !ok {
		hint := ""
		if near := spec.NearestLanguage(s); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return "", fmt.Errorf("%s: %w: %q is not a language code%s", e.name, ErrLanguage, s, hint)
	}
	if len(e.known) > 0 && !slices.Contains(e.known, code) {
		return "", fmt.Errorf("%s: %w: %q; it supports %s", e.name, ErrLanguage, code, strings.Join(e.known, ", "))
	}
	return code, nil
}
