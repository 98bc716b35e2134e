package onnx

import (
	"encoding/json"
	"fmt"

	"github.com/otograph/otograph/asr/ngram"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// nemoConfig holds the fields used from onnx-asr's config.json.
type nemoConfig struct {
	ModelType   string `json:"model_type"`
	Features    int    `json:"features_size"`
	Subsampling int    `json:"subsampling_factor"`
	MostPerStep int    `json:"max_tokens_per_step"`
}

func parseConfig(f sideFile) (nemoConfig, error) {
	var c nemoConfig
	if len(f.Data) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(f.Data, &c); err != nil {
		return c, fmt.Errorf("%s: %w: expected the JSON object of onnx-asr: %w", f.Name, ErrFile, err)
	}
	if c.Features < 0 || c.Features > 512 || c.Subsampling < 0 || c.Subsampling > 64 || c.MostPerStep < 0 || c.MostPerStep > 1000 {
		return c, fmt.Errorf("%s: %w: expected features_size up to 512, subsampling_factor up to 64 and max_tokens_per_step up to 1000, found %d, %d and %d",
			f.Name, ErrFile, c.Features, c.Subsampling, c.MostPerStep)
	}
	return c, nil
}

// open builds a model's network: its family, with its tokens.
func open(m parts, opt Options) (network, string, *vocabulary, error) {
	g, contract, err := ort.InspectModel(m.ONNX, models.RoleOptimized, m.Contract)
	if err != nil {
		return nil, "", nil, err
	}
	options := ort.Options{Threads: opt.Threads}
	if contract == models.ContractMoonshine {
		net, vocab, err := openMoonshine(m, g, options)
		return net, contract, vocab, err
	}
	symbols, err := parseTokens(m.Tokens)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	kind := writePieces
	switch {
	case contract == models.ContractParaformer:
		kind = writeContinued
	case contract == models.ContractSenseVoice && nano(g):
		kind = writeBase64
	case contract == models.ContractWaveformCTC && !has(g.Input, "input_lengths"):
		kind = writeLetters
	}
	vocab, err := newVocabulary(m.Tokens.Name, symbols, kind)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", m.ONNX, err)
	}
	var net network
	switch contract {
	case models.ContractZipformerCTC, models.ContractWeNetCTC:
		net, err = openFrames(m, g, contract, vocab, options)
	case models.ContractSenseVoice:
		net, err = openSenseVoice(m, g, vocab, options)
	case models.ContractParaformer:
		net, err = openParaformer(m, g, vocab, options)
	case models.ContractNeMoCTC, models.ContractGigaAMCTC:
		net, err = openNeMo(m, g, vocab, options)
	case models.ContractNeMoTransducer, models.ContractGigaAMTransducer:
		net, err = openTransducer(m, g, vocab, options)
	case models.ContractIcefallTransducer:
		net, err = openIcefall(m, g, vocab, options)
	case models.ContractWaveformCTC:
		net, err = openWaveform(m, g, vocab, options)
	}
	if err != nil {
		return nil, "", nil, err
	}
	return net, contract, vocab, nil
}

// readLM reads the language model. It returns nil without a file.
func readLM(m parts) (*ngram.Model, error) {
	if m.LM.Name == "" {
		return nil, nil
	}
	model, err := ngram.Parse(m.LM.Name, m.LM.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", m.ONNX, ErrFile, err)
	}
	return model, nil
}
