// Package embedded makes models of files that are compiled into a program.
package embedded

import (
	"errors"
	"fmt"

	"github.com/otograph/otograph/internal/files/packed"
	"github.com/otograph/otograph/models"
)

// File returns a packed file as a part of a model. Its Data unpacks the file,
// and returns models.ErrBroken if the executable is damaged.
func File(part models.Part, p *packed.File) models.File {
	return models.File{Part: part, Name: p.Name, Size: int64(p.Size), SHA256: p.SHA256, Data: func() ([]byte, error) {
		data, err := p.Bytes()
		if errors.Is(err, packed.ErrDamaged) {
			return nil, fmt.Errorf("%w: %w", models.ErrBroken, err)
		}
		return data, err
	}}
}
