package onnx

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// giga reports whether a model is GigaAM: a NeMo model on other features.
func giga(contract string, g *ort.Graph) bool {
	return contract == models.ContractGigaAMCTC || contract == models.ContractGigaAMTransducer || g.Metadata["is_giga_am"] == "1" ||
		has(g.Input, "features", "feature_lengths") || has(g.Output, "encoded", "encoded_len")
}

// gigaMel returns the 64 log-mel bands of one of GigaAM's two versions.
func gigaMel(m parts, g *ort.Graph, c nemoConfig) (*dsp.Extractor, error) {
	version, err := gigaVersion(m, g, c)
	return dsp.NewGigaAMMel(version), err
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
