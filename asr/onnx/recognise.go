package onnx

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/otograph/otograph/asr/ngram"
	"github.com/otograph/otograph/internal/ort"
)

// contracts lists the names for error texts.
var contracts = []string{ContractZipformer, ContractWeNet, ContractSenseVoice, ContractParaformer, ContractNeMoCTC, ContractTransducer}

func hasInputs(g *ort.Graph, names ...string) bool {
	for _, n := range names {
		if _, ok := g.Input(n); !ok {
			return false
		}
	}
	return true
}

func hasOutputs(g *ort.Graph, names ...string) bool {
	for _, n := range names {
		if _, ok := g.Output(n); !ok {
			return false
		}
	}
	return true
}

// Recognise names the contract of a recogniser's graph (of a transducer: its
// encoder) by its metadata or by its inputs and outputs. The error wraps
// ErrContract and says what the file looks like where that is known.
func Recognise(g *ort.Graph, source ort.Source) (string, error) {
	refuse := func(format string, a ...any) (string, error) {
		return "", fmt.Errorf("%s: %w: %s (it has %s)", source, ErrContract, fmt.Sprintf(format, a...), g.IOList())
	}
	kind := g.Metadata["model_type"]
	switch kind {
	case "zipformer2_ctc":
		if len(g.Inputs) > 2 {
			return refuse("this is a streaming Zipformer with %d inputs, expected the offline export with x and x_lens", len(g.Inputs))
		}
		return ContractZipformer, nil
	case "wenet_ctc":
		return ContractWeNet, nil
	case "sense_voice_ctc":
		return ContractSenseVoice, nil
	case "paraformer":
		return ContractParaformer, nil
	case "EncDecCTCModelBPE", "EncDecCTCModel", "EncDecHybridRNNTCTCBPEModel", "EncDecRNNTBPEModel":
		if kind != "EncDecRNNTBPEModel" && hasOutputs(g, "logprobs") {
			return ContractNeMoCTC, nil
		}
		if strings.Contains(kind, "RNNT") && hasOutputs(g, "outputs", "encoded_lengths") {
			return ContractTransducer, nil
		}
		return refuse("model_type %s: expected the output logprobs of a CTC model or outputs and encoded_lengths of a transducer's encoder", kind)
	}
	switch {
	case hasInputs(g, "language") && (hasInputs(g, "textnorm") || hasInputs(g, "text_norm")):
		return ContractSenseVoice, nil
	case hasInputs(g, "speech", "speech_lengths") && hasOutputs(g, "logits", "token_num"):
		return ContractParaformer, nil
	case hasInputs(g, "audio_signal", "length") && hasOutputs(g, "logprobs"):
		return ContractNeMoCTC, nil
	case hasInputs(g, "audio_signal", "length") && hasOutputs(g, "outputs", "encoded_lengths"):
		return ContractTransducer, nil
	case hasInputs(g, "x", "x_lens") && hasOutputs(g, "log_probs", "log_probs_len") && len(g.Inputs) == 2:
		return ContractZipformer, nil
	case hasInputs(g, "x", "x_lens") && hasOutputs(g, "log_probs", "log_probs_lens") && len(g.Inputs) == 2:
		return ContractWeNet, nil
	case hasInputs(g, "chunk", "att_cache") || hasInputs(g, "chunk", "offset"):
		return refuse("this is WeNet's own streaming export (encoder.onnx, ctc.onnx, decoder.onnx); expected the one-file CTC export with x and x_lens")
	case hasInputs(g, "hidden") && hasOutputs(g, "probs"):
		return refuse("this is the CTC layer of WeNet's own export; expected the one-file CTC export with x and x_lens")
	case hasOutputs(g, "encoder_out", "encoder_out_lens"):
		return refuse("this is the encoder of an icefall transducer, which is not supported; expected a CTC model")
	case hasInputs(g, "audio_signal", "length") && hasOutputs(g, "embs"):
		return refuse("this is a NeMo speaker model, no recogniser")
	case hasInputs(g, "mel") || hasInputs(g, "input_features"):
		return refuse("this looks like a Whisper export; the standard tier takes Whisper as a ggml file")
	case len(g.Inputs) > 6:
		return refuse("this looks like a streaming model; expected an offline one")
	}
	return refuse("expected one of %s, found model_type %q and no known set of inputs and outputs", strings.Join(contracts, ", "), kind)
}

// nemoConfig is what is read of onnx-asr's config.json.
type nemoConfig struct {
	ModelType   string `json:"model_type"`
	Features    int    `json:"features_size"`
	Subsampling int    `json:"subsampling_factor"`
}

func parseConfig(f File) (nemoConfig, error) {
	var c nemoConfig
	if len(f.Data) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(f.Data, &c); err != nil {
		return c, fmt.Errorf("%s: %w: expected the JSON object of onnx-asr: %w", f.Name, ErrFile, err)
	}
	if c.Features < 0 || c.Features > 512 || c.Subsampling < 0 || c.Subsampling > 64 {
		return c, fmt.Errorf("%s: %w: expected features_size up to 512 and subsampling_factor up to 64, found %d and %d", f.Name, ErrFile, c.Features, c.Subsampling)
	}
	return c, nil
}

// open recognises a model, reads its tokens and builds its network.
func open(m parts, opt Options) (network, string, *vocabulary, error) {
	g, err := ort.Inspect(m.ONNX)
	if err != nil {
		return nil, "", nil, err
	}
	if m.Contract != "" && !slices.Contains(contracts, m.Contract) {
		return nil, "", nil, fmt.Errorf("%s: %w: contract %q is not of this tier; expected one of %s", m.ONNX, ErrContract, m.Contract, strings.Join(contracts, ", "))
	}
	contract, err := Recognise(g, m.ONNX)
	if err != nil {
		return nil, "", nil, err
	}
	if m.Contract != "" && m.Contract != contract {
		return nil, "", nil, fmt.Errorf("%s: %w: expected contract %s, found %s (it has %s)", m.ONNX, ErrContract, m.Contract, contract, g.IOList())
	}
	symbols, err := parseTokens(m.Tokens)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	kind := writePieces
	switch {
	case contract == ContractParaformer:
		kind = writeContinued
	case contract == ContractSenseVoice && nano(g):
		kind = writeBase64
	}
	vocab, err := newVocabulary(m.Tokens.Name, symbols, kind)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	options := ort.Options{Threads: opt.Threads}
	var net network
	switch contract {
	case ContractZipformer, ContractWeNet:
		net, err = openFrames(m, g, contract, vocab, options)
	case ContractSenseVoice:
		net, err = openSenseVoice(m, g, vocab, options)
	case ContractParaformer:
		net, err = openParaformer(m, g, vocab, options)
	case ContractNeMoCTC:
		net, err = openNeMo(m, g, vocab, options)
	case ContractTransducer:
		net, err = openTransducer(m, g, vocab, options)
	}
	if err != nil {
		return nil, "", nil, err
	}
	return net, contract, vocab, nil
}

// openLM reads the language model; nil without a file.
func openLM(m parts, vocab *vocabulary) (*ngram.Scorer, error) {
	if m.LM.Name == "" {
		return nil, nil
	}
	model, err := ngram.Parse(m.LM.Name, m.LM.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", m.ONNX, ErrFile, err)
	}
	return ngram.NewScorer(model, vocab.texts()), nil
}
