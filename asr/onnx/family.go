package onnx

import (
	"encoding/json"
	"fmt"

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

// config reads a config.json, which may be missing.
func (c *checker) config(f sideFile) (o nemoConfig) {
	if len(f.Data) == 0 {
		return o
	}
	if err := json.Unmarshal(f.Data, &o); err != nil {
		c.fail(ErrFile, "%s: expected the JSON object of onnx-asr: %w", f.Name, err)
	}
	if o.Features < 0 || o.Features > 512 || o.Subsampling < 0 || o.Subsampling > 64 || o.MostPerStep < 0 || o.MostPerStep > 1000 {
		c.fail(ErrFile, "%s: expected features_size up to 512, subsampling_factor up to 64 and max_tokens_per_step up to 1000, found %d, %d and %d",
			f.Name, o.Features, o.Subsampling, o.MostPerStep)
		return nemoConfig{}
	}
	return o
}

// openers open the networks of contracts whose tokens are a list.
var openers = map[string]func(m parts, g *checker, vocab *vocabulary) (network, error){
	models.ContractZipformerCTC: openFrames, models.ContractWeNetCTC: openFrames,
	models.ContractNeMoCTC: openNeMo, models.ContractGigaAMCTC: openNeMo,
	models.ContractNeMoTransducer: openTransducer, models.ContractGigaAMTransducer: openTransducer,
	models.ContractSenseVoice: openSenseVoice, models.ContractParaformer: openParaformer,
	models.ContractIcefallTransducer: openIcefall, models.ContractWaveformCTC: openWaveform,
}

// open builds a model's network: its family, with its tokens.
func open(m parts) (network, string, *vocabulary, error) {
	graph, contract, err := ort.InspectModel(m.ONNX, models.RoleOptimized, m.Contract)
	if err != nil {
		return nil, "", nil, err
	}
	g := &checker{Graph: graph, source: m.ONNX}
	if contract == models.ContractMoonshine {
		net, vocab, err := openMoonshine(m, g)
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
	case contract == models.ContractWaveformCTC && !has(g.Input, "input_lengths"):
		kind = writeLetters
	}
	vocab := newVocabulary(m.Tokens.Name, symbols, kind)
	m.Contract = contract
	net, err := openers[contract](m, g, vocab)
	return net, contract, vocab, err
}
