package onnx

import (
	"fmt"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/models"
)

func init() {
	recognizers.Register(func(m *models.Model, _ recognizers.Options) (*Engine, error) {
		return Open(m, Options{})
	}, models.ContractsOf(models.RoleOptimized)...)
}

// Open opens a recognizer of the optimized tier with its files, as
// library.OpenFile, library.OpenDir and demo.Models return them. Errors wrap
// ErrContract, ErrTokens or ErrFile, or are the runtime's or the system's.
func Open(m *models.Model, opt Options) (*Engine, error) {
	p := parts{Model: *m}
	graphs := map[models.Part]*ort.Source{
		models.PartModel: &p.ONNX, models.PartEncoder: &p.ONNX,
		models.PartDecoder: &p.Decoder, models.PartDecoderJoint: &p.Decoder, models.PartJoiner: &p.Joiner,
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
	return openParts(p, opt)
}
