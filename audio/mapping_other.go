//go:build !unix

package audio

import (
	"fmt"
	"io"
	"os"
)

// mapSamples reads the first n float32 of f into memory.
func mapSamples(f *os.File, n int) (mapped []byte, samples []float32, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	samples = make([]float32, n)
	mapped = asBytes(samples)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(n)*4), mapped); err != nil {
		return nil, nil, fmt.Errorf("audio: read %d decoded samples: %w", n, err)
	}
	return mapped, samples, nil
}

func releasePages([]byte) {}

func unmap([]byte) error { return nil }
