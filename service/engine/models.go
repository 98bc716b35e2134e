package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

func sizes(set *models.Set) map[string]int64 {
	sizes := map[string]int64{}
	for _, m := range set.Models {
		for _, f := range m.Files {
			if info, err := os.Stat(f.Path); f.Path != "" && err == nil {
				sizes[f.Path] = info.Size()
			}
		}
	}
	return sizes
}

// CheckModels returns an error if a model file can no longer be read or has
// changed its size, or without the library that every set of models needs.
func (e *Engine) CheckModels(context.Context) error {
	if _, err := ort.Version(); err != nil {
		return err
	}
	for path, size := range e.files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		var readErr error
		if size > 0 {
			_, readErr = f.ReadAt(make([]byte, 1), size-1)
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && info.Size() != size {
			err = fmt.Errorf("%s: expected %d bytes, found %d", path, size, info.Size())
		}
		if err = cmp.Or(err, readErr); err != nil {
			return err
		}
	}
	return nil
}

// workID returns a hash of the program's version, the models' files (by size
// and time without a hash) and the settings: others do not continue the work.
func workID(p *otograph.Pipeline, version string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, version)
	fmt.Fprintln(sum, p.Settings())
	for _, m := range p.Models().Models {
		fmt.Fprintln(sum, m.Role, m.Name, m.Contract)
		for _, f := range m.Files {
			fmt.Fprintln(sum, f.Part, f.Name, f.SHA256)
			if info, err := os.Stat(f.Path); err == nil && f.SHA256 == "" {
				fmt.Fprintln(sum, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
