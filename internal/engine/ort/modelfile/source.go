// Package modelfile passes the files of a model to ONNX Runtime.
package modelfile

import (
	"fmt"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// Source returns a model file as ONNX Runtime opens it: its path, or its bytes
// if they are in memory.
func Source(m *models.Model, f models.File) (ort.Source, error) {
	src := ort.Source{Path: f.Path, Name: f.Name, Role: string(m.Role)}
	if f.Data == nil && f.Path == "" {
		return src, fmt.Errorf("%s model %s: %w: it has no file", m.Role, m.Name, models.ErrMissing)
	}
	if f.Data != nil {
		data, err := f.Data()
		if err != nil {
			return src, fmt.Errorf("%s model %s: %w", m.Role, m.Name, err)
		}
		src.Path, src.Data = "", data
	}
	return src, nil
}
