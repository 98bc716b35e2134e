package models

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/otograph/otograph/internal/system/fetch"
)

var (
	// ErrMissing marks a role without a model, or a missing file.
	ErrMissing = errors.New("model missing")
	// ErrBroken marks a file that is damaged, of another format, of the wrong
	// contract, or with the wrong hash.
	ErrBroken = errors.New("model broken")
)

// Part is the purpose of a file in its model.
type Part string

// The parts of a model. A single-file model has one PartModel; a transducer has
// an encoder, a decoder and a joiner (or a decoder_joint in place of the last
// two). Recognizers of the optimized tier also have tokens.
const (
	PartModel        Part = "model"
	PartEncoder      Part = "encoder"
	PartDecoder      Part = "decoder"
	PartJoiner       Part = "joiner"
	PartDecoderJoint Part = "decoder_joint"
	// PartFrontend and PartAdapter are the graphs before and after the encoder of
	// Moonshine's streaming layout.
	PartFrontend Part = "frontend"
	PartAdapter  Part = "adapter"
	// PartTokens is the token list (tokens.txt, vocab.json and so on).
	PartTokens Part = "tokens"
	// PartCMVN is FunASR's am.mvn (shift and scale of the features).
	PartCMVN Part = "cmvn"
	// PartConfig is a config.json in the layout of onnx-asr, the
	// preprocessor_config.json of a CTC model on samples, or a Moonshine's
	// streaming_config.json.
	PartConfig Part = "config"
	// PartLM is a word language model (ARPA) for the optimized tier.
	PartLM Part = "lm"
	// PartPLDA is an analysis of an embedder's vectors (see diarize.ParsePLDA).
	PartPLDA Part = "plda"
	// PartData is an external data file, which ONNX Runtime opens itself from
	// the folder of the graph that names it.
	PartData Part = "data"
)

// File is one file of a model: on disk (Path) or in memory (Data).
type File struct {
	// Part is the purpose of the file in its model.
	Part Part
	// Name is the file's name, as it appears in errors and lists.
	Name string
	// Path is the path of the file; empty if it is held in memory.
	Path string
	// Data returns the file's bytes, which must not be modified; nil for a file
	// on disk. It may be called repeatedly and concurrently: unpacking is done
	// only once as long as the bytes are in use.
	Data func() ([]byte, error)
	// Size is the number of bytes; 0 if unknown.
	Size int64
	// SHA256 is the expected hash in lower-case hex; empty if unknown.
	SHA256 string
}

// Bytes returns the file's content, from memory or read from disk. It is meant
// for small files (tokens) and models held in memory; open a large model on
// disk by its Path instead. It returns ErrMissing for a missing file.
func (f File) Bytes() ([]byte, error) {
	if f.Data != nil {
		return f.Data()
	}
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: no such file", ErrMissing, f.Path)
	}
	return data, err
}

// Model is one model: its files and properties, named as in otograph.json.
type Model struct {
	Role Role `json:"-"`
	// Name names the model in results, logs and errors ("demo-ctc").
	Name string `json:"name,omitempty"`
	// Contract is one of the Contract constants.
	Contract string `json:"contract,omitempty"`
	// Languages holds the ISO 639-1 codes (and yue) that the model supports.
	// Empty means unspecified: all of its languages for Whisper, any for a
	// detector, embedder or tagger.
	Languages []string `json:"languages,omitempty"`
	Files     []File   `json:"-"`
	// WindowSeconds is the longest stretch of audio (seconds) for one pass of
	// the model; 0 uses the engine's default (30 for Whisper).
	WindowSeconds float64 `json:"window_seconds,omitempty"`
	// NoPrompts is set for a Whisper model that was not trained with prompts:
	// it ignores an initial prompt, with a warning.
	NoPrompts bool `json:"no_prompts,omitempty"`
	// NoTranslation is set for a Whisper model not trained to translate.
	NoTranslation bool `json:"no_translation,omitempty"`
	// AlignmentHeads are the attention heads of a Whisper model's decoder that
	// follow the audio, as pairs of layer and head, both from 0. They yield the
	// times of words. nil if unknown.
	AlignmentHeads [][2]int `json:"alignment_heads,omitempty"`
	// SameSpeaker is the cosine at which two averaged voices of this embedder
	// count as one person; 0 means the engine's default and an estimate of the
	// model's scale from the recording.
	SameSpeaker float64 `json:"same_speaker,omitempty"`
	// OneVoice and TwoVoices are the usual cosines of two windows of 1.5 s of
	// one voice and of two voices in one recording; 0 if unknown.
	OneVoice  float64 `json:"one_voice,omitempty"`
	TwoVoices float64 `json:"two_voices,omitempty"`
	// KnownVoice is the least cosine with a known voice; 0 is SameSpeaker.
	KnownVoice float64 `json:"known_voice,omitempty"`
	// Calibration computes confidences from a recognizer's token probabilities;
	// nil for a model that was not calibrated.
	Calibration *Calibration `json:"calibration,omitempty"`
	// SampleRate is the rate (Hz) of the model's waveform input if the graph
	// does not state it (PANNs: 32000 or 16000); 0 uses the engine's default.
	SampleRate int `json:"sample_rate,omitempty"`
	// Demo marks an embedded demonstration model.
	Demo bool `json:"-"`
	// License names the license of the weights; empty if unknown.
	License string `json:"license,omitempty"`
}

// File returns the file that is the given part of the model.
func (m *Model) File(part Part) (File, bool) {
	for _, f := range m.Files {
		if f.Part == part {
			return f, true
		}
	}
	return File{}, false
}

// Main returns the main file of the model: its graph, or the encoder if there
// are several. It returns the zero File if the model has none.
func (m *Model) Main() File {
	for _, part := range []Part{PartModel, PartEncoder} {
		if f, ok := m.File(part); ok {
			return f
		}
	}
	return File{}
}

// Hash returns the SHA-256 of the main file, in hex.
func (m *Model) Hash() (string, error) {
	f := m.Main()
	if f.SHA256 != "" && f.Data != nil { // an embedded file has its declared hash
		return f.SHA256, nil
	}
	sum, _, err := fetch.HashFile(f.Path)
	if err != nil {
		return "", fmt.Errorf("%s model %s: %w", m.Role, m.Name, err)
	}
	return sum, nil
}

// String returns the model's name, role and contract on one line.
func (m *Model) String() string { return fmt.Sprintf("%s (%s, %s)", m.Name, m.Role, m.Contract) }

// Calibration estimates how much of a recognizer's text is correct from the
// mean logarithm of the probabilities that the model assigned to the text's
// tokens. The log odds that a word is correct are Offset + Slope times the log
// odds of the probabilities' geometric mean (Platt 1999). A calibration is
// valid for one model; tools/confidence measures it.
type Calibration struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

// Confidence returns the expected share of correct words for a mean logarithm.
func (c Calibration) Confidence(meanLogProb float64) float64 {
	return 1 / (1 + math.Exp(-c.Offset-c.Slope*LogOdds(meanLogProb)))
}

// LogOdds returns the log odds of a probability given by its logarithm, within
// 0.001 and 0.999, because no model is more certain than that.
func LogOdds(logProb float64) float64 {
	p := min(max(math.Exp(logProb), 0.001), 0.999)
	return math.Log(p / (1 - p))
}

// Valid reports whether the confidence rises with the mean.
func (c Calibration) Valid() bool {
	return c.Slope > 0 && !math.IsInf(c.Slope, 1) && !math.IsNaN(c.Offset) && !math.IsInf(c.Offset, 0)
}
