package otograph

import (
	"fmt"

	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
)

// openCTC opens a recogniser of the optimized tier with all of its files.
func openCTC(m *models.Model) (*onnx.Engine, error) {
	cm := onnx.Model{Name: m.Name, Contract: m.Contract, Languages: m.Languages, WindowSeconds: m.WindowSeconds}
	graphs := map[models.Part]*ort.Source{
		models.PartModel: &cm.ONNX, models.PartEncoder: &cm.ONNX,
		models.PartDecoder: &cm.Decoder, models.PartDecoderJoint: &cm.Decoder, models.PartJoiner: &cm.Joiner,
	}
	texts := map[models.Part]*onnx.File{models.PartTokens: &cm.Tokens, models.PartCMVN: &cm.CMVN, models.PartConfig: &cm.Config, models.PartLM: &cm.LM}
	for _, f := range m.Files {
		if target, ok := graphs[f.Part]; ok {
			src, err := source(m, f)
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
			*target = onnx.File{Name: f.Name, Data: data}
		}
	}
	return onnx.Open(cm, onnx.Options{})
}
