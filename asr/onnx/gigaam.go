package onnx

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/dsp"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
)

// giga reports whether a model is GigaAM, which runs as NeMo's models do on
// other features.
func giga(contract string, g *ort.Graph) bool {
	return contract == models.ContractGigaAMCTC || contract == models.ContractGigaAMTransducer || g.Metadata["is_giga_am"] == "1" ||
		hasInputs(g, "features", "feature_lengths") || hasOutputs(g, "encoded", "encoded_len")
}

// openGigaAMFront is openNeMoFront for GigaAM: 64 bands, not normalized, in one
// of two versions.
func openGigaAMFront(m parts, g *ort.Graph, c nemoConfig) (nemoFront, error) {
	f := nemoFront{signal: aliasInput(g, "features", "audio_signal"), length: aliasInput(g, "feature_lengths", "length")}
	version, err := gigaVersion(m, g, c)
	if err != nil {
		return f, err
	}
	mel := dsp.NewGigaAMMel(version)
	if err := g.Check(ort.Contract{
		Inputs: []ort.Info{{Name: f.signal, Type: ort.Float32, Shape: []int64{-1, int64(mel.Bands()), -1}}, {Name: f.length}}, Exact: true,
	}); err != nil {
		return f, err
	}
	if f.lens, err = checkInteger(g, m.ONNX, f.length); err != nil {
		return f, err
	}
	factor := c.Subsampling
	if factor == 0 {
		factor = 4
	}
	f.mel = mel
	f.subsampling, err = metaInt(g, m.ONNX, "subsampling_factor", factor, 1, 64)
	return f, err
}

// gigaVersion returns 2 for the features of versions 1 and 2, or 3. It reads
// the metadata of sherpa-onnx's files (version 3 has a comment that names it),
// then the model_type of onnx-asr's config.json, then the file's name.
func gigaVersion(m parts, g *ort.Graph, c nemoConfig) (int, error) {
	if g.Metadata["is_giga_am"] == "1" {
		if strings.HasPrefix(g.Metadata["comment"], "v3") {
			return 3, nil
		}
		return 2, nil
	}
	for _, name := range []string{c.ModelType, filepath.Base(m.ONNX.Path), m.ONNX.Name, m.Name} {
		switch {
		case strings.Contains(name, "v3"):
			return 3, nil
		case strings.Contains(name, "v2"):
			return 2, nil
		}
	}
	return 0, fmt.Errorf("%s: %w: expected GigaAM v2 or v3 in the metadata, in model_type of config.json or in the file's name, found neither", m.ONNX, ErrContract)
}
