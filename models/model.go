package models

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

var (
	// ErrMissing marks a role that no model fills, or a file that is not there.
	ErrMissing = errors.New("model missing")
	// ErrBroken marks a file that is not what it should be: damaged, of
	// another format, of the wrong contract, or with the wrong hash.
	ErrBroken = errors.New("model broken")
)

// Part says what a file is to its model.
type Part string

// The parts of a model. A single-file model has one PartModel; a transducer has
// an encoder, a decoder and a joiner (or one decoder_joint in place of the last
// two); recognisers of the optimized tier have tokens besides.
const (
	PartModel        Part = "model"
	PartEncoder      Part = "encoder"
	PartDecoder      Part = "decoder"
	PartJoiner       Part = "joiner"
	PartDecoderJoint Part = "decoder_joint"
	// PartTokens is the token list (tokens.txt, vocab.txt, units.txt, tokens.json,
	// vocab.json).
	PartTokens Part = "tokens"
	// PartCMVN is FunASR's am.mvn (shift and scale of the features).
	PartCMVN Part = "cmvn"
	// PartConfig is a config.json in the layout of onnx-asr, or the
	// preprocessor_config.json of a CTC model on samples.
	PartConfig Part = "config"
	// PartLM is a word language model in the ARPA format, for a recogniser of the
	// optimized tier.
	PartLM Part = "lm"
	// PartData is an external data file, which ONNX Runtime opens by itself
	// beside the graph that names it.
	PartData Part = "data"
)

// File is one file of a model: on disk (Path) or in memory (Data).
type File struct {
	// Part says what the file is to its model.
	Part Part
	// Name is the file's own name, as it appears in errors and lists.
	Name string
	// Path is where the file lies; empty when it is held in memory.
	Path string
	// Data returns the file's bytes, which must not be written to; nil for a
	// file on disk. It may be called often and at once: the work behind it
	// (unpacking) is done once while anybody holds the bytes.
	Data func() ([]byte, error)
	// Size is the number of bytes; 0 when it is not known.
	Size int64
	// SHA256 is the expected hash in lower-case hex; empty when none is known.
	SHA256 string
}

// Bytes returns the file's content, from memory or read from disk. It is meant
// for small files (tokens) and models held in memory; a large model on disk is
// better opened by its Path. A file that is not there gives ErrMissing.
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

// Model is one model: its files and what is known about it.
type Model struct {
	Role Role
	// Name names the model in results, logs and errors ("demo-ctc").
	Name string
	// Contract is one of the Contract constants.
	Contract string
	// Languages are ISO 639-1 codes (and yue) that the model knows; empty means
	// that nothing is said about it: for Whisper all of its languages, for a
	// detector, embedder or tagger any.
	Languages []string
	Files     []File
	// WindowSeconds is the longest stretch of audio (seconds) that the model
	// should get at once; 0 leaves it to the engine (30 for Whisper).
	WindowSeconds float64
	// NoPrompts says that a Whisper model was not trained with prompts: an
	// initial prompt is left out, with a warning.
	NoPrompts bool
	// NoTranslation says that a Whisper model was not trained to translate into
	// English.
	NoTranslation bool
	// SameSpeaker is the cosine from which on two averaged voices of this
	// embedder are one person's; 0 leaves it to the engine.
	SameSpeaker float64
	// KnownVoice is the cosine from which on a speaker has a voice that is known by
	// name; 0 leaves it to SameSpeaker. It is higher: two parts of one recording
	// share its room, and a stranger must not get a name.
	KnownVoice float64
	// Calibration makes confidences of a recognizer's token probabilities; nil for a
	// model that was not calibrated.
	Calibration *Calibration
	// SampleRate is the rate (Hz) the model's waveform input expects where the
	// graph does not tell it (PANNs: 32000 or 16000); 0 leaves it to the engine.
	SampleRate int
	// Demo marks an embedded demonstration model.
	Demo bool
	// Notice is a plain paragraph to show a person once: for a demo model what
	// it knows, what it does not, and how to get a real one.
	Notice string
	// Licence names the licence of the weights, as far as it is known.
	Licence string
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

// Main returns the file that stands for the model: its graph, or the encoder
// where there are several. The zero File when the model has none.
func (m *Model) Main() File {
	for _, part := range []Part{PartModel, PartEncoder} {
		if f, ok := m.File(part); ok {
			return f
		}
	}
	return File{}
}

// knows tells whether the model covers a language (ISO 639-1). A model that
// lists no languages knows all.
func (m *Model) knows(language string) bool {
	return len(m.Languages) == 0 || slices.Contains(m.Languages, strings.ToLower(language))
}

// String is the model's name, role and contract on one line.
func (m *Model) String() string {
	return fmt.Sprintf("%s (%s, %s)", m.Name, m.Role, m.Contract)
}
