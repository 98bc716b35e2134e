// Package modelfile hands the files of a model to ONNX Runtime.
package modelfile

import (
	"fmt"

	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
)

// Source returns where ONNX Runtime finds a file of a model: its path, or its bytes
// where it is held in memory.
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
