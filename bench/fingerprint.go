package bench

import (
	"fmt"

	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/models"
)

// fingerprints holds the SHA-256 of the systems' model files, by path, from the
// current files: a folder of models may state no hash or a wrong one.
type fingerprints map[string]string

func newFingerprints(systems []System) (fingerprints, error) {
	sums := fingerprints{}
	for _, s := range systems {
		for _, m := range s.models() {
			for _, f := range m.Files {
				if _, done := sums[f.Path]; done || f.Path == "" {
					continue
				}
				sum, _, err := fetch.HashFile(f.Path)
				if err != nil {
					return nil, fmt.Errorf("%s: %s model %s: %w", s.Name, m.Role, m.Name, err)
				}
				sums[f.Path] = sum
			}
		}
	}
	return sums, nil
}

// of returns a file's SHA-256; a file held in memory already has one.
func (sums fingerprints) of(f models.File) string {
	if f.Path == "" {
		return f.SHA256
	}
	return sums[f.Path]
}
